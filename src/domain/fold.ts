// Folds a canonical path into match keys: one for every way in which some router reads it. A key is the path decoded
// and stripped of everything that a router may overlook; a pattern's literals are folded by the same function, so the
// two meet. Folding never decides what is free: a reading too many costs a 402, a reading too few is a way around.
import type { Folding } from './profile.ts';

export type FoldResult =
  | { readonly ok: true; readonly keys: readonly string[] }
  | { readonly ok: false; readonly reason: string };

// Stand in a key for an encoded slash or backslash that a router may keep inside a segment. They cannot occur otherwise.
const KEPT_SLASH = '\u0000';
const KEPT_BACKSLASH = '\u0001';

// The two above count as ASCII; encoded control characters were refused before.
const ASCII = /^[\x00-\x7e]*$/;
// C1 controls and the Unicode line and paragraph separators: no URL needs them, parsers disagree about them.
const CONTROL = /[\u0080-\u009f\u2028\u2029]/;
const HIDDEN_ESCAPE = /%[0-9A-Fa-f]{2}/;
const DOT_SEGMENT = /\/[. ]+(?:;[^/]*)?(?:\/|$)/;
const DOTS = 'the path holds a segment of dots or spaces, or an escape hidden in a compatibility form';
const PLAIN = /^[A-Za-z0-9_-]+$/;
const DELIMITER = /[;?#]/;

/** The keys of `path`: `/`-led, no trailing slash (the root is `/`), at least one, the plain reading first, no two alike. */
export function foldPath(path: string, folding: Folding): FoldResult {
  let text = path;
  let kept = false;
  if (path.includes('%')) {
    const marked = path.replace(/%2F/g, KEPT_SLASH).replace(/%5C/g, KEPT_BACKSLASH);
    kept = marked !== path;
    try {
      text = decodeURIComponent(marked);
    } catch {
      return refuse('the path is not valid UTF-8 when decoded');
    }
    if (HIDDEN_ESCAPE.test(text)) return refuse('the path is percent-encoded twice');
  }
  if (!ASCII.test(text)) {
    if (CONTROL.test(text)) return refuse('the path holds an encoded control character');
    // Compatibility forms of dots, slashes and percent signs must not smuggle in what was refused in ASCII.
    const compatible = normalize(text);
    if (HIDDEN_ESCAPE.test(compatible) || DOT_SEGMENT.test(split(compatible))) return refuse(DOTS);
    if (folding.compatibility) text = compatible;
  }
  if (DOT_SEGMENT.test(kept ? split(text) : text)) return refuse(DOTS);

  const keys: string[] = [];
  for (const reading of kept ? [text, split(text)] : [text]) {
    add(keys, foldReading(reading, folding));
    // A router may drop the parameters of each segment, or end the path at the first delimiter that it decodes.
    const end = folding.matrix ? reading.search(DELIMITER) : -1;
    if (end >= 0) {
      add(keys, foldReading(reading.replace(/;[^/]*/g, ''), folding));
      add(keys, foldReading(reading.slice(0, end), folding));
    }
  }
  return { ok: true, keys };
}

/** A pattern's literal segment, already decoded, as it stands in a key under `folding`. Empty: nothing is left of it. */
export function foldSegment(literal: string, folding: Folding): string {
  if (PLAIN.test(literal)) return folding.letterCase ? literal.toLowerCase() : literal;
  const text = folding.compatibility ? normalize(literal) : literal;
  return foldReading(`/${folding.matrix ? text.replace(/;.*$/, '') : text}`, folding).slice(1);
}

/** The keys of a path without the suffix of its last segment: cut at its first dot and at its last one. */
export function withoutSuffix(key: string): readonly string[] {
  const start = key.lastIndexOf('/') + 1;
  const first = key.indexOf('.', start + 1);
  if (first < 0) return [];
  const last = key.lastIndexOf('.');
  return last === first ? [key.slice(0, first)] : [key.slice(0, last), key.slice(0, first)];
}

function foldReading(reading: string, folding: Folding): string {
  let text = reading;
  if (folding.letterCase) text = text.toLowerCase();
  // Lower-casing can leave a composable sequence behind; composing again makes folding idempotent.
  if (folding.compatibility && !ASCII.test(text)) text = normalize(text);
  if (folding.trim && (text.includes('.') || text.includes(' '))) text = text.split('/').map(trimEnd).join('/');
  if (text.includes('//')) text = text.replace(/\/{2,}/g, '/');
  return text.length > 1 && text.endsWith('/') ? text.slice(0, -1) : text || '/';
}

// By hand: a regular expression for "dots and spaces at the end" is quadratic on a long run of them in the middle.
function trimEnd(segment: string): string {
  let end = segment.length;
  while (end > 0 && (segment.charCodeAt(end - 1) === 0x2e || segment.charCodeAt(end - 1) === 0x20)) end--;
  return end === segment.length ? segment : segment.slice(0, end);
}

function normalize(text: string): string {
  return text.normalize('NFKC').replaceAll('\\', '/');
}

/** The reading in which an encoded slash or backslash separates segments. */
function split(text: string): string {
  return text.replace(/[\u0000\u0001]/g, '/');
}

function add(keys: string[], key: string): void {
  if (!keys.includes(key)) keys.push(key);
}

function refuse(reason: string): FoldResult {
  return { ok: false, reason };
}
