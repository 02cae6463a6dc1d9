// Reads the signature of a contract that may not be on the chain yet (ERC-6492). It holds a factory, the call that makes the
// factory deploy the contract, and the signature that the contract then checks. Facilitators read it leniently, and take for
// valid what no transaction settles. Here it has exactly one form.

/** End of every such signature, as hex. */
export const MAGIC = '6492'.repeat(16);
const WORD = 32;
const ADDRESS_BYTES = 20;
const SELECTOR_BYTES = 4;

/** Whether `signature`, hex in lower case that ends with MAGIC, is in the exact form. */
export function isExactWrapper(signature: string): boolean {
  return isWrapped(Buffer.from(signature.slice(2, -MAGIC.length), 'hex'));
}

/** Reads three words (the factory, and where the two others begin), then the call and the inner signature, with nothing between. */
function isWrapped(bytes: Buffer): boolean {
  const factory = bytes.subarray(WORD - ADDRESS_BYTES, WORD);
  if (!isZero(bytes.subarray(0, WORD - ADDRESS_BYTES)) || isZero(factory)) return false;
  const call = readBytes(bytes, 3 * WORD);
  if (call === undefined || call.value.length < SELECTOR_BYTES) return false;
  const inner = readBytes(bytes, call.end);
  if (inner === undefined || inner.value.length === 0 || inner.end !== bytes.length) return false;
  // A signature in two wrappers is taken out of one of them to be verified and out of both to be settled.
  if (inner.value.toString('hex').endsWith(MAGIC)) return false;
  return readNumber(bytes, WORD) === 3 * WORD && readNumber(bytes, 2 * WORD) === call.end;
}

/** Reads a length, so many bytes, and zeros up to a whole word; `end` may be beyond the last byte. */
function readBytes(bytes: Buffer, at: number): { readonly value: Buffer; readonly end: number } | undefined {
  const length = readNumber(bytes, at);
  if (length === undefined) return undefined;
  const start = at + WORD;
  const end = start + Math.ceil(length / WORD) * WORD;
  const isFilledUp = isZero(bytes.subarray(start + length, end));
  return isFilledUp ? { value: bytes.subarray(start, start + length), end } : undefined;
}

/** Reads a word that is a small number. */
function readNumber(bytes: Buffer, at: number): number | undefined {
  const word = bytes.subarray(at, at + WORD);
  return word.length === WORD && isZero(word.subarray(0, WORD - 4)) ? word.readUInt32BE(WORD - 4) : undefined;
}

function isZero(bytes: Buffer): boolean {
  return bytes.every((byte) => byte === 0);
}
