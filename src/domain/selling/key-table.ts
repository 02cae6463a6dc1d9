// A table of SHA-256 digests of keys, up to a million of them, each maybe with a name: bytes and numbers in place of a map of
// strings, which would take several times the memory and stop the process to collect it. Read from the bytes of a file, a
// slice at a time, so that a large file stalls no request. A digest is looked up by its own first bytes, which nobody can
// choose. A million keys with names take
// 60 MB and 0.8 s of one core, in slices of about a millisecond: `TOLLGATE_KEYS=1000000 vitest run test/domain/selling/key-table.test.ts`.
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
const DIGEST_DIGITS = 2 * DIGEST_BYTES;
const MOST_NAME_BYTES = 64;
/** Lines that are read at a time: about a millisecond. */
const SLICE = 1024;
const KEY_LINE =
  '64 hexadecimal digits of the SHA-256 of a key, then maybe a name of up to 64 visible ASCII characters';
const [TAB, LINE_FEED, RETURN, SPACE, HASH, DASH, LAST_VISIBLE] = [0x09, 0x0a, 0x0d, 0x20, 0x23, 0x2d, 0x7e];
/** Value of each byte as a hexadecimal digit; 255: it is none. */
const DIGITS = Uint8Array.from({ length: 256 }, (_, byte) => {
  const value = '0123456789abcdef'.indexOf(String.fromCharCode(byte).toLowerCase());
  return value < 0 ? 255 : value;
});

/** Reads the bytes of a file; each step is a slice. Throws a sentence that names the first line that is wrong. */
export function* readKeyTable(file: Uint8Array): Generator<void, KeyTable, void> {
  const open = openTable(file.length);
  let number = 0;
  for (let start = 0; start <= file.length;) {
    const found = file.indexOf(LINE_FEED, start);
    const end = found < 0 ? file.length : found;
    number++;
    if (number % SLICE === 0) yield;
    const line = trimmed(file, start, end);
    start = end + 1;
    if (line.start === line.end || file[line.start] === HASH) continue;
    if (!open.add(file, line)) {
      if (open.isFull()) throw new Error(`it holds more than ${MOST_KEYS} keys; take some out`);
      throw new Error(`line ${number} is not usable; write ${KEY_LINE}`);
    }
  }
  return open.close();
}

/** Part of the bytes of a file. */
type FilePart = { readonly start: number; readonly end: number };

/** A line without spaces at its end, or without any if it is blank. */
function trimmed(file: Uint8Array, start: number, lineEnd: number): FilePart {
  let end = lineEnd;
  while (end > start && (isSpace(file[end - 1]) || file[end - 1] === RETURN)) end--;
  return { start, end };
}

function isSpace(byte: number | undefined): boolean {
  return byte === SPACE || byte === TAB;
}

type OpenTable = {
  /** False: the line is none of a key, or there is no place for it. */
  readonly add: (file: Uint8Array, line: FilePart) => boolean;
  readonly isFull: () => boolean;
  readonly close: () => KeyTable;
};

/** A table with room for what a file of so many bytes may hold. */
function openTable(fileBytes: number): OpenTable {
  const places = Math.min(MOST_KEYS, Math.floor(fileBytes / DIGEST_DIGITS));
  let slots = 1;
  while (slots < 2 * places + 1) slots *= 2;
  const table = new Int32Array(slots).fill(-1);
  const digests = Buffer.alloc(places * DIGEST_BYTES);
  const nameEnds = new Uint32Array(places);
  let names = Buffer.alloc(Math.min(1 << 16, fileBytes));
  let namesEnd = 0;
  let size = 0;

  /** The slot of the digest at `from`, or the free one where it would stand. */
  const slotOf = (bytes: Buffer, from: number, isEqual: (at: number) => boolean): number => {
    let slot = bytes.readUInt32LE(from) % slots;
    for (let at = table[slot] ?? -1; at >= 0; at = table[slot] ?? -1) {
      if (isEqual(at)) return slot;
      slot = (slot + 1) % slots;
    }
    return slot;
  };
  const addName = (file: Uint8Array, { start, end }: FilePart): void => {
    if (namesEnd + end - start > names.length) {
      const longer = Buffer.alloc(2 * names.length + MOST_NAME_BYTES);
      names.copy(longer, 0, 0, namesEnd);
      names = longer;
    }
    names.set(file.subarray(start, end), namesEnd);
    namesEnd += end - start;
  };

  return {
    isFull: () => size === MOST_KEYS,
    add: (file, line) => {
      const name = nameIn(file, line);
      if (name === undefined || size === places) return false;
      const from = size * DIGEST_BYTES;
      if (!readDigest(file, line.start, digests.subarray(from, from + DIGEST_BYTES))) return false;
      const slot = slotOf(
        digests,
        from,
        (at) => digests.compare(digests, at * DIGEST_BYTES, (at + 1) * DIGEST_BYTES, from, from + DIGEST_BYTES) === 0,
      );
      // Of a key that stands twice the first line counts; the second one keeps its place and is never found.
      if ((table[slot] ?? -1) < 0) table[slot] = size;
      addName(file, name);
      nameEnds[size] = namesEnd;
      size++;
      return true;
    },
    close: () => ({
      size,
      find: (digest) => {
        const at =
          table[
            slotOf(digest, 0, (each) =>
              timingSafeEqual(digests.subarray(each * DIGEST_BYTES, (each + 1) * DIGEST_BYTES), digest),
            )
          ] ?? -1;
        return at < 0 ? undefined : names.toString('latin1', at === 0 ? 0 : nameEnds[at - 1], nameEnds[at]);
      },
    }),
  };
}

/** The name in a line, which may be empty; undefined: the line has not the form of a key's. */
function nameIn(file: Uint8Array, { start, end }: FilePart): FilePart | undefined {
  const digestEnd = start + DIGEST_DIGITS;
  if (end === digestEnd) return { start: end, end };
  if (end < digestEnd || !isSpace(file[digestEnd])) return undefined;
  let at = digestEnd;
  while (isSpace(file[at])) at++;
  // sha256sum writes a dash for what it reads from a pipe: as a name all keys would share it, and one quota.
  if (end - at === 1 && file[at] === DASH) return { start: end, end };
  if (end - at > MOST_NAME_BYTES) return undefined;
  for (let each = at; each < end; each++) {
    const byte = file[each] ?? 0;
    if (byte <= SPACE || byte > LAST_VISIBLE) return undefined;
  }
  return { start: at, end };
}

/** Writes the digest that hexadecimal digits at `start` say; false: they say none. */
function readDigest(file: Uint8Array, start: number, digest: Uint8Array): boolean {
  for (let at = 0; at < DIGEST_BYTES; at++) {
    const [high, low] = [DIGITS[file[start + 2 * at] ?? 0] ?? 255, DIGITS[file[start + 2 * at + 1] ?? 0] ?? 255];
    if (high > 15 || low > 15) return false;
    digest[at] = 16 * high + low;
  }
  return true;
}

/** Reads all bytes at once. */
export function readKeyTableAtOnce(file: Uint8Array): KeyTable {
  const reading = readKeyTable(file);
  let step = reading.next();
  while (step.done !== true) step = reading.next();
  return step.value;
}
