// Grows typed arrays: a copy of at least twice the size takes the place of one that is full.

/** A copy with room for at least `length` numbers. */
export function grown<T extends Int32Array | Uint16Array>(array: T, length: number, make: (size: number) => T): T {
  const copy = make(Math.max(length, array.length * 2));
  copy.set(array);
  return copy;
}

export const makeInt32 = (size: number): Int32Array<ArrayBuffer> => new Int32Array(size);
export const makeUint16 = (size: number): Uint16Array<ArrayBuffer> => new Uint16Array(size);
