// Cuts the text of one large JSON array into pieces that are arrays themselves. So a feed of 100,000 routes is parsed a
// millisecond at a time. It only finds the commas between members. `JSON.parse` judges everything else, so nothing is
// taken here that it would refuse as a whole. Knows no route and no I/O.

/** Members of one piece, or why the text is no JSON array. */
type Piece =
  | { readonly ok: true; readonly members: readonly unknown[] }
  | { readonly ok: false; readonly reason: string };

type ArrayCutter = {
  /** The members that are complete with these bytes. Not to be called again after a refusal. */
  readonly push: (bytes: Uint8Array) => Piece;
  /** Ends the array after its last bytes; refuses one that is not closed. */
  readonly end: () => Piece;
};

const NOTHING: Piece = { ok: true, members: [] };
const NO_ARRAY: Piece = { ok: false, reason: 'it is not a JSON array' };
const BROKEN: Piece = { ok: false, reason: 'it is not valid JSON' };
const CUT_OFF: Piece = { ok: false, reason: 'the JSON array is cut off' };

const QUOTE = 0x22;
const COMMA = 0x2c;
const OPEN_ARRAY = 0x5b;
const BACKSLASH = 0x5c;
const CLOSE_ARRAY = 0x5d;
const OPEN_OBJECT = 0x7b;
const CLOSE_OBJECT = 0x7d;

/** Cuts an array into its members, of at most `memberLimit` bytes each. */
export function createArrayCutter(memberLimit: number): ArrayCutter {
  const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
  let carried: Uint8Array[] = [];
  let carriedBytes = 0;
  // Depth: 0 before the array, 1 between its members.
  let depth = 0;
  let inString = false;
  let escaped = false;
  let closed = false;
  let sawMember = false;

  const parse = (last: Uint8Array, final: boolean): Piece => {
    const bytes = carriedBytes === 0 ? last : Buffer.concat([...carried, last]);
    carried = [];
    carriedBytes = 0;
    try {
      const members: unknown = JSON.parse(`[${decoder.decode(bytes)}]`);
      if (!Array.isArray(members)) return BROKEN;
      // Something has to stand between two commas, and behind the last of them.
      if (members.length === 0 && (!final || sawMember)) return BROKEN;
      sawMember = true;
      return { ok: true, members };
    } catch {
      return BROKEN;
    }
  };

  /** Reads on to the end of the array or of `bytes`: `comma` is the last one between members, -1 if there is none. */
  const scan = (bytes: Uint8Array, from: number): { comma: number; at: number } => {
    // State in locals: what a closure shares is read from memory at every byte.
    let [level, quoted, skip, comma, at] = [depth, inString, escaped, -1, from];
    for (; at < bytes.length && level > 0; at++) {
      const byte = bytes[at];
      if (quoted) {
        if (skip) skip = false;
        else if (byte === BACKSLASH) skip = true;
        else if (byte === QUOTE) quoted = false;
      } else if (byte === QUOTE) quoted = true;
      else if (byte === COMMA && level === 1) comma = at;
      else if (byte === OPEN_OBJECT || byte === OPEN_ARRAY) level++;
      else if (byte === CLOSE_OBJECT || byte === CLOSE_ARRAY) level--;
    }
    [depth, inString, escaped] = [level, quoted, skip];
    closed = level === 0;
    return { comma, at };
  };

  const push = (bytes: Uint8Array): Piece => {
    if (closed) return skipSpace(bytes, 0) < bytes.length ? BROKEN : NOTHING;
    let start = 0;
    if (depth === 0) {
      start = skipSpace(bytes, 0);
      if (start === bytes.length) return NOTHING;
      if (bytes[start] !== OPEN_ARRAY) return NO_ARRAY;
      depth = 1;
      start++;
    }
    const { comma, at } = scan(bytes, start);
    if (closed) {
      const whole = bytes[at - 1] === CLOSE_ARRAY && skipSpace(bytes, at) === bytes.length;
      return whole ? parse(bytes.subarray(start, at - 1), true) : BROKEN;
    }
    const piece = comma < 0 ? NOTHING : parse(bytes.subarray(start, comma), false);
    const rest = bytes.subarray(comma < 0 ? start : comma + 1);
    carried.push(rest);
    carriedBytes += rest.length;
    return carriedBytes > memberLimit ? { ok: false, reason: `one route is larger than ${memberLimit} bytes` } : piece;
  };

  return { push, end: () => (closed ? NOTHING : depth === 0 ? NO_ARRAY : CUT_OFF) };
}

function skipSpace(bytes: Uint8Array, from: number): number {
  let at = from;
  while (at < bytes.length && isSpace(bytes[at])) at++;
  return at;
}

function isSpace(byte: number | undefined): boolean {
  return byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09;
}
