// Remembers what was made for an object, for as long as somebody else keeps that object.

/** `make` is asked once for each key. */
export function remember<Key extends WeakKey, Value extends object>(make: (key: Key) => Value): (key: Key) => Value {
  const known = new WeakMap<Key, Value>();
  return (key) => {
    let value = known.get(key);
    if (value === undefined) known.set(key, (value = make(key)));
    return value;
  };
}
