// One canonical target per request. A paywall is a deny-list in front of a router it does not know: it must match on the
// coarsest reading that any router uses, forward exactly what it matched, and refuse what two routers could read
// differently. Everything later works on what this file returned; nothing parses the target again.
// The folding of a path into match keys stands in fold.ts. Sources: CONTRACT section 4, RFC 3986, RFC 9112 section 3.2.
import { foldPath } from './fold.ts';
import { problem, type Problem } from './problem.ts';
import type { Folding } from './profile.ts';

export type TargetOptions = {
  /** Bytes of the whole request target; one more is 414. */
  readonly limit: number;
  readonly methods: ReadonlySet<string>;
  readonly encodedSlashes: 'refuse' | 'keep';
  readonly doubleSlashes: 'merge' | 'keep';
  readonly folding: Folding;
};

export type CanonicalPath = {
  /** What goes upstream: `/`-led, escapes of unreserved characters decoded, other escapes upper-cased. */
  readonly path: string;
  /** Every reading that a router could have of `path`, folded; the plain reading first. */
  readonly keys: readonly string[];
};
export type PathResult = ({ readonly ok: true } & CanonicalPath) | { readonly ok: false; readonly reason: string };

export type RequestLine = { readonly method: string; readonly target: string; readonly host: string | undefined };
export type SplitTarget = { readonly rawPath: string; readonly query: string };

const DEFAULT_METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'];
const NEVER = new Set(['TRACE', 'CONNECT']);

/** The methods a proxy lets in: the seven common ones and what the operator adds; never TRACE or CONNECT. */
export function allowedMethods(added: readonly string[] = []): ReadonlySet<string> {
  return new Set([...DEFAULT_METHODS, ...added].filter((method) => !NEVER.has(method)));
}

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

function ambiguous(reason: string): Problem {
  return problem('target_ambiguous', `The request target is ambiguous: ${reason}.`);
}

export function refuseAmbiguous(reason: string): Problem {
  return ambiguous(reason);
}

// One flag per kind of byte, so that a plain path is known by one pass over it.
const UPPER = 1;
const DOT = 2;
const PERCENT = 4;
const DELIMITER = 8;
const ENCODE = 16;
const BACKSLASH = 32;
const REFUSED = 64;
const DOUBLE = 128;
const CLASS = classes();

function classes(): Uint8Array {
  const table = new Uint8Array(256).fill(REFUSED);
  const set = (characters: string, flag: number): void => {
    for (const character of characters) table[character.charCodeAt(0)] = flag;
  };
  set("abcdefghijklmnopqrstuvwxyz0123456789-_~!$'()*,=:@/", 0);
  set('ABCDEFGHIJKLMNOPQRSTUVWXYZ', UPPER);
  set('.', DOT);
  set('%', PERCENT);
  set(';+&', DELIMITER);
  set('"<>[]^`{|}', ENCODE);
  set('\\', BACKSLASH);
  return table;
}

/**
 * The canonical form of `raw` (a path without query) and its match keys. Canonicalising twice changes nothing, and the
 * result is a fixed point of `new URL().pathname`, so that no later parser can read another path into it.
 */
export function canonicalPath(
  raw: string,
  options: Pick<TargetOptions, 'encodedSlashes' | 'doubleSlashes' | 'folding'>,
): PathResult {
  let flags = 0;
  let previous = 0;
  for (let i = 0; i < raw.length; i++) {
    const code = raw.charCodeAt(i);
    flags |= code > 255 ? REFUSED : (CLASS[code] ?? REFUSED);
    if (code === SLASH && previous === SLASH) flags |= DOUBLE;
    previous = code;
  }
  if (raw.charCodeAt(0) !== SLASH) return refuse('the path must start with a slash');
  if (flags & REFUSED)
    return refuse('the path holds a control character, a space, a # or a byte outside ASCII; percent-encode it');
  if (flags === 0 && !endsInSlash(raw)) return { ok: true, path: raw, keys: [raw] };
  if (flags & BACKSLASH && options.encodedSlashes === 'refuse') return refuse('the path holds a backslash');
  let path = raw;
  if (flags & (PERCENT | ENCODE | BACKSLASH)) {
    const spelled = spell(raw, options.encodedSlashes);
    if (!spelled.ok) return spelled;
    path = spelled.path;
  }
  // Two slashes at the beginning name an authority to whatever reads the path as a URL: they are never kept.
  if (flags & DOUBLE) path = path.replace(options.doubleSlashes === 'merge' ? /\/{2,}/g : /^\/{2,}/, '/');
  const folded = foldPath(path, options.folding);
  return folded.ok ? { ok: true, path, keys: folded.keys } : folded;
}

/** `raw` where there is nothing to canonicalise and nothing to fold; undefined for every other path. */
export function plainPath(raw: string): PathResult | undefined {
  let previous = 0;
  for (let i = 0; i < raw.length; i++) {
    const code = raw.charCodeAt(i);
    if (code > 255 || CLASS[code] !== 0 || (code === SLASH && previous === SLASH)) return undefined;
    previous = code;
  }
  return raw.charCodeAt(0) === SLASH && previous !== SLASH ? { ok: true, path: raw, keys: [raw] } : undefined;
}

function endsInSlash(raw: string): boolean {
  return raw.charCodeAt(raw.length - 1) === SLASH;
}

const ESCAPE = /%([0-9A-Fa-f]{2})?|["<>[\]^`{|}\\]/g;
const UNRESERVED = /[A-Za-z0-9\-._~]/;

/** One spelling per path: unreserved characters bare, every other escape in upper case, what a path may not hold escaped. */
function spell(
  raw: string,
  encodedSlashes: 'refuse' | 'keep',
): { ok: true; path: string } | { ok: false; reason: string } {
  let reason: string | undefined;
  const path = raw.replace(ESCAPE, (text: string, hex: string | undefined) => {
    if (text.charCodeAt(0) !== 0x25) return escapeByte(text.charCodeAt(0));
    if (hex === undefined) {
      reason ??= 'the path holds a % that is not followed by two hexadecimal digits';
      return text;
    }
    const byte = Number.parseInt(hex, 16);
    if (byte < 0x20 || byte === 0x7f) reason ??= 'the path holds an encoded control character';
    if ((byte === SLASH || byte === 0x5c) && encodedSlashes === 'refuse')
      reason ??= 'the path holds an encoded slash or backslash';
    const character = String.fromCharCode(byte);
    return UNRESERVED.test(character) ? character : escapeByte(byte);
  });
  return reason === undefined ? { ok: true, path } : { ok: false, reason };
}

function escapeByte(byte: number): string {
  return `%${byte.toString(16).toUpperCase().padStart(2, '0')}`;
}

function refuse(reason: string): { ok: false; reason: string } {
  return { ok: false, reason };
}
