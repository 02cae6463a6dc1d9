// A table of SHA-256 digests of keys, up to a million of them, each maybe with a name: bytes and numbers in place of a map of
// strings, which would take several times the memory. Read from the text of a file, a slice at a time, so that a large file
// stalls no request. A digest is looked up by its own first bytes, which nobody can choose.
import { timingSafeEqual } from 'node:crypto';

export type KeyTable = {
  readonly size: number;
  /** The name of the key with this digest, empty if it has none; undefined: there is no such key. */
  readonly find: (digest: Buffer) => string | undefined;
};

/** Size above which a file holds no list of keys. */
export const MOST_KEY_FILE_BYTES = 192 * 1024 * 1024;
/** Keys that a file may hold. */
const MOST_KEYS = 1_000_000;
const DIGEST_BYTES = 32;
const LINE = /^([0-9a-fA-F]{64})(?:[ \t]+([\x21-\x7e]{1,64}))?[ \t]*$/;
/** Lines that are read at a time: about a millisecond. */
const SLICE = 4096;
const KEY_LINE =
  '64 hexadecimal digits of the SHA-256 of a key, then maybe a name of up to 64 visible ASCII characters';

/** Reads `text`; each step is a slice. Throws a sentence that names the first line that is wrong. */
export function* readKeyTable(text: string): Generator<void, KeyTable, void> {
  const digests: Buffer[] = [];
  const names: (string | undefined)[] = [];
  let number = 0;
  for (let start = 0; start <= text.length;) {
    const found = text.indexOf('\n', start);
    const end = found < 0 ? text.length : found;
    const line = text.slice(start, end).replace(/\r$/, '');
    start = end + 1;
    number++;
    if (number % SLICE === 0) yield;
    if (line.trim() === '' || line.startsWith('#')) continue;
    const [, digest, name] = LINE.exec(line) ?? [];
    if (digest === undefined) throw new Error(`line ${number} is not usable; write ${KEY_LINE}`);
    if (digests.length === MOST_KEYS) throw new Error(`it holds more than ${MOST_KEYS} keys; take some out`);
    digests.push(Buffer.from(digest, 'hex'));
    names.push(name);
  }
  return yield* index(digests, names);
}

function* index(digests: readonly Buffer[], names: readonly (string | undefined)[]): Generator<void, KeyTable, void> {
  const size = digests.length;
  let slots = 1;
  while (slots < 2 * size + 1) slots *= 2;
  const table = new Int32Array(slots).fill(-1);
  const bytes = Buffer.alloc(size * DIGEST_BYTES);
  const digestAt = (at: number): Buffer => bytes.subarray(at * DIGEST_BYTES, (at + 1) * DIGEST_BYTES);
  /** The slot of a digest, or the free one where it would stand. */
  const slotOf = (digest: Buffer): number => {
    let slot = digest.readUInt32LE(0) % slots;
    for (let at = table[slot] ?? -1; at >= 0; at = table[slot] ?? -1) {
      if (timingSafeEqual(digestAt(at), digest)) return slot;
      slot = (slot + 1) % slots;
    }
    return slot;
  };
  for (const [at, digest] of digests.entries()) {
    if (at % SLICE === SLICE - 1) yield;
    const slot = slotOf(digest);
    // Of a key that stands twice the first line counts.
    if ((table[slot] ?? -1) >= 0) continue;
    digest.copy(bytes, at * DIGEST_BYTES);
    table[slot] = at;
  }
  return {
    size,
    find: (digest) => {
      const at = table[slotOf(digest)] ?? -1;
      return at < 0 ? undefined : (names[at] ?? '');
    },
  };
}

/** Reads a whole text at once. */
export function readKeyTableAtOnce(text: string): KeyTable {
  const reading = readKeyTable(text);
  let step = reading.next();
  while (step.done !== true) step = reading.next();
  return step.value;
}
