// Reads columns of a row and checks their types. A column that is not as the schema says throws here: no wrong value is
// handed on.
export type Row = Readonly<Record<string, unknown>>;

export function text(row: Row, column: string): string {
  const value = row[column];
  if (typeof value !== 'string') throw new TypeError(`the column ${column} of the store is not text`);
  return value;
}

export function nullableText(row: Row, column: string): string | null {
  return row[column] === null ? null : text(row, column);
}

export function integer(row: Row, column: string): number {
  const value = row[column];
  if (typeof value !== 'number') throw new TypeError(`the column ${column} of the store is not an integer`);
  return value;
}

export function bytes(row: Row, column: string): Buffer {
  const value = row[column];
  if (!(value instanceof Uint8Array)) throw new TypeError(`the column ${column} of the store is not bytes`);
  return Buffer.from(value.buffer, value.byteOffset, value.byteLength);
}

export function nullableInteger(row: Row, column: string): number | null {
  return row[column] === null ? null : integer(row, column);
}
