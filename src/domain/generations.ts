// Remembers what was made for a key, for as many keys as were asked for lately: two generations, of which the older is
// dropped whole when the younger is full. Cheaper to ask than an order of use, and bounded like one. What is remembered
// keeps its key alive.

/** `make` is asked for what is not remembered; at least the `size` keys asked for last are, twice as many at most. */
export function createGenerations<Key, Value extends object>(
  size: number,
  make: (key: Key) => Value,
): (key: Key) => Value {
  let younger = new Map<Key, Value>();
  let older = new Map<Key, Value>();
  return (key) => {
    const known = younger.get(key);
    if (known !== undefined) return known;
    const value = older.get(key) ?? make(key);
    if (younger.size >= size) {
      older = younger;
      younger = new Map();
    }
    younger.set(key, value);
    return value;
  };
}
