// Reads one canonical target per request. A paywall is a deny-list in front of a router that it does not know. It must
// match on the coarsest reading that any router uses, forward exactly what it matched, and refuse what two routers
// could read differently. Everything later works on what this file returned; nothing parses the target again. The
// folding of a path into match keys stands in fold.ts. Sources: RFC 3986, RFC 9112 section 3.2.
import { foldPath, MOST_STEPS, TOO_MANY_READINGS } from './fold.ts';
import { namesOf } from './names.ts';
import { problem, type Problem } from '../problem.ts';
import type { PathFolding } from './profile.ts';

export type TargetOptions = {
  /** Limit of the whole request target in bytes; one more is 414. */
  readonly limit: number;
  readonly methods: ReadonlySet<string>;
  readonly encodedSlashes: 'refuse' | 'keep';
  readonly doubleSlashes: 'merge' | 'keep';
  readonly folding: PathFolding;
};

export type CanonicalPath = {
  /** Path that goes upstream: `/`-led, escapes of unreserved characters decoded, other escapes upper-cased. */
  readonly path: string;
  /** Every reading that a router could have of `path`, folded; the plain reading first. */
  readonly keys: readonly string[];
  /** Match keys of other names that a router may have for it. */
  readonly names: readonly string[];
  /** Steps that may still be spent on it. */
  readonly left: number;
};
type PathResult = ({ readonly ok: true } & CanonicalPath) | { readonly ok: false; readonly reason: string };

type RequestLine = { readonly method: string; readonly target: string; readonly host: string | undefined };
type SplitTarget = { readonly rawPath: string; readonly query: string };

/**
 * Checks method and form of the target and cuts it into path and query, neither of them decoded. The query goes on byte
 * for byte. Problems: `method_unsupported`, `target_too_long`, `target_ambiguous`.
 */
export function splitTarget(line: RequestLine, options: TargetOptions): SplitTarget | Problem {
  if (!options.methods.has(line.method))
    return problem('method_unsupported', 'This server does not support the request method.');
  let target = line.target;
  if (target.length > options.limit) {
    return problem('target_too_long', `The request target is longer than ${options.limit} bytes.`);
  }
  if (target.charCodeAt(0) !== SLASH) {
    const absolute = /^https?:\/\/([^/?#]*)(.*)$/i.exec(target);
    const authority = absolute?.[1];
    if (authority === undefined) return ambiguous('the request target must start with a slash');
    if (authority === '' || authority.toLowerCase() !== line.host?.toLowerCase()) {
      return ambiguous('an absolute request target must name the same authority as the Host header');
    }
    // An empty path means the root (RFC 9112, section 3.2.2).
    const rest = absolute?.[2] ?? '';
    target = rest.charCodeAt(0) === SLASH ? rest : `/${rest}`;
  }
  const mark = target.indexOf('?');
  if (mark < 0) return { rawPath: target, query: '' };
  const query = target.slice(mark);
  if (!QUERY.test(query)) return ambiguous('the query may hold visible ASCII only, without #; percent-encode the rest');
  return { rawPath: target.slice(0, mark), query };
}

const QUERY = /^[\x21\x22\x24-\x7e]*$/;
const SLASH = 0x2f;
const DOT_CODE = 0x2e;
const PERCENT_CODE = 0x25;

function ambiguous(reason: string): Problem {
  return problem('target_ambiguous', `The request target is ambiguous: ${reason}.`);
}

export function refuseAmbiguous(reason: string): Problem {
  return ambiguous(reason);
}

// Flags, one per kind of byte, so that one pass over a path says what has to be done to it.
const UPPER = 1;
const DOT = 2;
const PERCENT = 4;
const DELIMITER = 8;
const ENCODE = 16;
const BACKSLASH = 32;
const REFUSED = 64;
const SEPARATOR = 128;
const DOUBLE = 256;
/** A dot that ends a segment, or that stands before the last one. */
const DOT_INSIDE = 512;
const SLASH_AT_END = 1024;
/** Kinds of bytes with which a path is its own canonical form and has one reading, but for letter case. */
const SIMPLE = UPPER | DOT | SEPARATOR;
const CLASS = classes();

function classes(): Uint8Array {
  const table = new Uint8Array(256).fill(REFUSED);
  const set = (characters: string, flag: number): void => {
    for (const character of characters) table[character.charCodeAt(0)] = flag;
  };
  set("abcdefghijklmnopqrstuvwxyz0123456789-_~!$'()*,=:@", 0);
  set('/', SEPARATOR);
  set('ABCDEFGHIJKLMNOPQRSTUVWXYZ', UPPER);
  set('.', DOT);
  set('%', PERCENT);
  set(';+&', DELIMITER);
  set('"<>[]^`{|}', ENCODE);
  set('\\', BACKSLASH);
  return table;
}

function flagsOf(raw: string): number {
  let flags = 0;
  for (let i = 0; i < raw.length; i++) {
    const code = raw.charCodeAt(i);
    const kind = code > 255 ? REFUSED : (CLASS[code] ?? REFUSED);
    flags |= kind;
    if (kind === SEPARATOR && i > 0) {
      if (flags & DOT) flags |= DOT_INSIDE;
      if (raw.charCodeAt(i - 1) === SLASH) flags |= DOUBLE;
    }
  }
  const last = raw.charCodeAt(raw.length - 1);
  if (last === DOT_CODE) flags |= DOT_INSIDE;
  return last === SLASH ? flags | SLASH_AT_END : flags;
}

/**
 * The canonical form of `raw` (a path without query) and its match keys. Canonicalising twice changes nothing, and the
 * result is a fixed point of `new URL().pathname`, so that no later parser can read another path into it.
 */
export function canonicalPath(
  raw: string,
  options: Pick<TargetOptions, 'encodedSlashes' | 'doubleSlashes' | 'folding'>,
): PathResult {
  const flags = flagsOf(raw);
  if (raw.charCodeAt(0) !== SLASH) return refuse('the path must start with a slash');
  if (flags & REFUSED)
    return refuse('the path holds a control character, a space, a # or a byte outside ASCII; percent-encode it');
  if ((flags & ~SIMPLE) === 0) {
    const key = flags & UPPER && options.folding.letterCase ? raw.toLowerCase() : raw;
    return withNames(raw, [key], options.folding, MOST_STEPS - key.length);
  }
  if (flags & BACKSLASH && options.encodedSlashes === 'refuse') return refuse('the path holds a backslash');
  let path = raw;
  if (flags & (PERCENT | ENCODE | BACKSLASH)) {
    const spelled = spell(raw, options.encodedSlashes);
    if (!spelled.ok) return spelled;
    path = spelled.path;
  }
  // Two slashes at the beginning name an authority to whatever reads the path as a URL: they are never kept.
  if (flags & DOUBLE) path = path.replace(options.doubleSlashes === 'merge' ? /\/\/+/g : /^\/\/+/, '/');
  const folded = foldPath(path, options.folding);
  return folded.ok ? withNames(path, folded.keys, options.folding, folded.left) : folded;
}

function withNames(path: string, keys: readonly string[], folding: PathFolding, steps: number): PathResult {
  const named = namesOf(keys, folding, steps);
  return named === undefined
    ? refuse(TOO_MANY_READINGS)
    : { ok: true, path, keys, names: named.names, left: named.left };
}

/** Spelling of each byte: unreserved characters bare, everything else as an escape in upper case. */
const SPELLING = Array.from({ length: 256 }, (_, byte) => {
  const character = String.fromCharCode(byte);
  return /[A-Za-z0-9\-._~]/.test(character) ? character : `%${byte.toString(16).toUpperCase().padStart(2, '0')}`;
});
/** Kinds of bytes that a path may not hold bare though clients send them so. */
const TO_ESCAPE = ENCODE | BACKSLASH;

/** Spells a path in one way: unreserved characters bare, other escapes in upper case, the rest escaped. */
function spell(
  raw: string,
  encodedSlashes: 'refuse' | 'keep',
): { ok: true; path: string } | { ok: false; reason: string } {
  let path = '';
  /** End of the part of `raw` that `path` stands for. */
  let done = 0;
  for (let i = 0; i < raw.length; i++) {
    const code = raw.charCodeAt(i);
    if (code === PERCENT_CODE) {
      const byte = hexDigit(raw.charCodeAt(i + 1)) * 16 + hexDigit(raw.charCodeAt(i + 2));
      if (Number.isNaN(byte)) return refuse('the path holds a % that is not followed by two hexadecimal digits');
      if (byte < 0x20 || byte === 0x7f) return refuse('the path holds an encoded control character');
      if ((byte === SLASH || byte === 0x5c) && encodedSlashes === 'refuse')
        return refuse('the path holds an encoded slash or backslash');
      const spelling = SPELLING[byte] ?? '';
      if (!raw.startsWith(spelling, i)) {
        path += raw.slice(done, i) + spelling;
        done = i + 3;
      }
      i += 2;
    } else if (((CLASS[code] ?? 0) & TO_ESCAPE) !== 0) {
      path += raw.slice(done, i) + (SPELLING[code] ?? '');
      done = i + 1;
    }
  }
  return { ok: true, path: done === 0 ? raw : path + raw.slice(done) };
}

/** Value of a hexadecimal digit; NaN if `code` is none. */
function hexDigit(code: number): number {
  if (code >= 0x30 && code <= 0x39) return code - 0x30;
  const letter = code | 0x20;
  return letter >= 0x61 && letter <= 0x66 ? letter - 0x57 : Number.NaN;
}

function refuse(reason: string): { ok: false; reason: string } {
  return { ok: false, reason };
}
