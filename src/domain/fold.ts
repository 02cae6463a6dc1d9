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

// What a text holds, found in one pass: most paths have nothing that the rest of this file would look for.
/** Beyond ASCII, where DEL counts too; the two above do not, and encoded control characters were refused before. */
const OTHER = 1;
const DELIMITER = 2;
const DOT_OR_SPACE = 4;
// C1 controls and the Unicode line and paragraph separators: no URL needs them, parsers disagree about them.
const CONTROL = /[\u0080-\u009f\u2028\u2029]/;
const HIDDEN_ESCAPE = /%[0-9A-Fa-f]{2}/;
const DOT_SEGMENT = /\/[. ]+(?:;[^/]*)?(?:\/|$)/;
const DOTS = 'the path holds a segment of dots or spaces, or an escape hidden in a compatibility form';
const PLAIN = /^[A-Za-z0-9_-]+$/;
const FIRST_DELIMITER = /[;?#]/;

/** The keys of `path`: `/`-led, no trailing slash (the root is `/`), at least one, the plain reading first, no two alike. */
export function foldPath(path: string, folding: Folding): FoldResult {
  let text = path;
  let kept = false;
  if (path.includes('%')) {
    kept = path.includes('%2F') || path.includes('%5C');
    const marked = kept ? path.replaceAll('%2F', KEPT_SLASH).replaceAll('%5C', KEPT_BACKSLASH) : path;
    try {
      text = decodeURIComponent(marked);
    } catch {
      return refuse('the path is not valid UTF-8 when decoded');
    }
    if (text.includes('%') && HIDDEN_ESCAPE.test(text)) return refuse('the path is percent-encoded twice');
  }
  let held = featuresOf(text);
  if (held & OTHER) {
    if (CONTROL.test(text)) return refuse('the path holds an encoded control character');
    // Compatibility forms of dots, slashes and percent signs must not smuggle in what was refused in ASCII.
    const compatible = normalize(text);
    if (HIDDEN_ESCAPE.test(compatible) || DOT_SEGMENT.test(split(compatible))) return refuse(DOTS);
    if (folding.compatibility) {
      text = compatible;
      held = featuresOf(text);
    }
  }
  if (held & DOT_OR_SPACE && DOT_SEGMENT.test(kept ? split(text) : text)) return refuse(DOTS);

  const keys: string[] = [];
  for (const reading of kept ? [text, split(text)] : [text]) {
    add(keys, foldReading(reading, held, folding));
    // A router may drop the parameters of each segment, or end the path at the first delimiter that it decodes.
    if (folding.matrix && held & DELIMITER) {
      add(keys, foldReading(reading.replace(/;[^/]*/g, ''), held, folding));
      add(keys, foldReading(reading.slice(0, reading.search(FIRST_DELIMITER)), held, folding));
    }
  }
  return { ok: true, keys };
}

/** A pattern's literal segment, already decoded, as it stands in a key under `folding`. Empty: nothing is left of it. */
export function foldSegment(literal: string, folding: Folding): string {
  if (PLAIN.test(literal)) return folding.letterCase ? literal.toLowerCase() : literal;
  const text = folding.compatibility ? normalize(literal) : literal;
  const reading = `/${folding.matrix ? text.replace(/;.*$/, '') : text}`;
  return foldReading(reading, featuresOf(reading), folding).slice(1);
}

/** The keys of a path without the suffix of its last segment: cut at its first dot and at its last one. */
export function withoutSuffix(key: string): readonly string[] {
  const start = key.lastIndexOf('/') + 1;
  const first = key.indexOf('.', start + 1);
  if (first < 0) return [];
  const last = key.lastIndexOf('.');
  return last === first ? [key.slice(0, first)] : [key.slice(0, last), key.slice(0, first)];
}

function featuresOf(text: string): number {
  let held = 0;
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (code > 0x7e) held |= OTHER;
    else if (code === 0x2e || code === 0x20) held |= DOT_OR_SPACE;
    else if (code === 0x3b || code === 0x3f || code === 0x23) held |= DELIMITER;
  }
  return held;
}

/** `held`: features of `reading`, or more. */
function foldReading(reading: string, held: number, folding: Folding): string {
  let text = reading;
  if (folding.letterCase) text = text.toLowerCase();
  // Lower-casing can leave a composable sequence behind; composing again makes folding idempotent.
  if (folding.compatibility && held & OTHER) text = normalize(text);
  // Looked at again once something was normalized: that can bring out dots and spaces.
  if (folding.trim && held & (DOT_OR_SPACE | OTHER) && endsInDotOrSpace(text))
    text = text.split('/').map(trimEnd).join('/');
  if (text.includes('//')) text = text.replace(/\/{2,}/g, '/');
  return text.length > 1 && text.endsWith('/') ? text.slice(0, -1) : text || '/';
}

/** Some segment does. */
function endsInDotOrSpace(text: string): boolean {
  return text.includes('./') || text.includes(' /') || text.endsWith('.') || text.endsWith(' ');
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
