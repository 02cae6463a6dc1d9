// Reads answers off a socket as leanly as can be: a head with a Content-Length and that many bytes, which is all that the
// bench's servers send. For load that must cost less than what it measures; answers are checked in full elsewhere.

export type Reader = { pending: Buffer | undefined };

/** Takes a piece of an answer in and returns the status once it is whole, else undefined. Never more than one answer. */
export function readStatus(reader: Reader, chunk: Buffer): number | undefined {
  const data = reader.pending === undefined ? chunk : Buffer.concat([reader.pending, chunk]);
  const end = data.indexOf('\r\n\r\n');
  const head = data.toString('latin1', 0, Math.max(0, end));
  const length = LENGTH.exec(head)?.[1];
  if (end >= 0 && length === undefined) throw new Error(`an answer without a length: ${head}`);
  const size = end + 4 + Number(length);
  if (end < 0 || data.length < size) {
    reader.pending = data;
    return undefined;
  }
  if (data.length > size) throw new Error(`an answer with ${data.length - size} bytes too many: ${head}`);
  reader.pending = undefined;
  return Number(head.slice(9, 12));
}

const LENGTH = /\r\ncontent-length: *(\d+)/i;
