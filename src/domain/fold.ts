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
/** Stands in a key for a segment without a character: a parameter may be filled by it, no literal is. */
const EMPTY = '\u0002';

// The two above count as ASCII; encoded control characters were refused before.
const ASCII = /^[\x00-\x7e]*$/;
// C1 controls and the Unicode line and paragraph separators: no URL needs them, parsers disagree about them.
const CONTROL = /[\u0080-\u009f\u2028\u2029]/;
const HIDDEN_ESCAPE = /%[0-9A-Fa-f]{2}/;
const DOT_SEGMENT = /\/[. ]+(?:[;?#&][^/]*)?(?:\/|$)/;
const DOTS = 'the path holds a segment of dots or spaces, or an escape hidden in a compatibility form';
const PLAIN = /^[A-Za-z0-9_-]+$/;
const DELIMITER = /[;?#]/;
/** No path of anybody's has half as many readings; every one of them is looked up. */
const MOST_KEYS = 64;
/** A segment that names a script, the first or the last one, with more of the path behind it. */
const FIRST_SCRIPT = /^(.*?\.(?:php[0-9]?|phtml|f?cgi|pl|py|rb|wsgi|aspx?|ashx|jspx?|do))(\/.*)$/i;
const LAST_SCRIPT = /^(.*\.(?:php[0-9]?|phtml|f?cgi|pl|py|rb|wsgi|aspx?|ashx|jspx?|do))(\/.*)$/i;

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
  let compatible: string | undefined;
  if (!ASCII.test(text)) {
    if (CONTROL.test(text)) return refuse('the path holds an encoded control character');
    // Compatibility forms of dots, slashes and percent signs must not smuggle in what was refused in ASCII.
    compatible = normalize(text);
    if (HIDDEN_ESCAPE.test(compatible) || DOT_SEGMENT.test(split(compatible))) return refuse(DOTS);
  }
  if (hasDotSegment(kept ? split(text) : text)) return refuse(DOTS);

  const keys: string[] = [];
  // Beside the plain reading, not in its place: a compatibility form may hold more slashes, or fewer letters.
  if (compatible !== undefined && folding.compatibility) addReadings(keys, compatible, kept, folding);
  addReadings(keys, text, kept, compatible === undefined ? folding : { ...folding, compatibility: false });
  if (folding.empty) {
    // `/reports/` may be `/reports/:id` without an id, and so may a double slash that is kept.
    for (const reading of kept ? [text, split(text)] : [text]) {
      if (reading.endsWith('/')) add(keys, `${foldReading(reading.slice(0, -1), folding)}/${EMPTY}`.replace('//', '/'));
      if (reading.includes('//')) add(keys, foldReading(reading.replace(/\/(?=\/|$)/g, `/${EMPTY}`), folding));
    }
  }
  if (keys.length > MOST_KEYS) return refuse('the path can be read in too many ways');
  return { ok: true, keys };
}

function addReadings(keys: string[], text: string, kept: boolean, folding: Folding): void {
  addKeys(keys, text, folding);
  if (!kept) return;
  // Some routers take both for separators, some only the slash, some only the backslash.
  addKeys(keys, split(text), folding);
  addKeys(keys, text.replaceAll(KEPT_SLASH, '/'), folding);
  addKeys(keys, text.replaceAll(KEPT_BACKSLASH, '/'), folding);
}

/** The keys of one reading: as it stands, and with what a router may cut off it. */
function addKeys(keys: string[], reading: string, folding: Folding): void {
  if (keys.length > MOST_KEYS) return;
  add(keys, foldReading(reading, folding));
  // A router may drop the parameters of each segment, or end the path at the first delimiter that it decodes.
  const end = folding.matrix ? reading.search(DELIMITER) : -1;
  if (end >= 0) {
    addKeys(keys, reading.slice(0, end), folding);
    if (reading.includes(';')) addKeys(keys, reading.replace(/;[^/]*/g, ''), folding);
  }
  // A path that becomes part of a query on its way is read as one: & ends it and + is a space. Or only one of the two.
  if (folding.form && (reading.includes('&') || reading.includes('+'))) {
    const rest = { ...folding, form: false };
    const value = reading.split('&', 1)[0] ?? '';
    addKeys(keys, value, rest);
    addKeys(keys, value.replaceAll('+', ' '), rest);
    addKeys(keys, reading.replaceAll('+', ' '), rest);
  }
  // Behind the name of a script stands what the script is asked for; and the script runs whatever stands there.
  const dot = folding.script ? reading.indexOf('.') : -1;
  if (dot < 0 || dot > reading.lastIndexOf('/')) return;
  const rest = { ...folding, script: false };
  for (const script of [FIRST_SCRIPT.exec(reading), LAST_SCRIPT.exec(reading)]) {
    if (script === null) continue;
    addKeys(keys, script[1] ?? '/', rest);
    addKeys(keys, script[2] ?? '/', rest);
  }
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
  if (folding.letterCase) text = ASCII.test(text) ? text.toLowerCase() : foldCase(text);
  // Case folding can leave a composable sequence behind; composing again makes folding idempotent.
  if (folding.compatibility && !ASCII.test(text)) text = compose(text);
  if (folding.trim && hasToTrim(text)) text = text.split('/').map(trim).join('/');
  if (text.includes('//')) text = text.replace(/\/{2,}/g, '/');
  return text.length > 1 && text.endsWith('/') ? text.slice(0, -1) : text || '/';
}

// Both look for what is rare before anything is made or a regular expression reads the text: most paths have none of it.
function hasDotSegment(text: string): boolean {
  return (text.includes('/.') || text.includes('/ ')) && DOT_SEGMENT.test(text);
}

function hasToTrim(text: string): boolean {
  if (text.endsWith('.') || text.includes('./')) return true;
  return text.includes(' ') && (text.includes(' /') || text.includes('/ ') || text.trim() !== text);
}

// By hand: a regular expression for "dots and spaces at the end" is quadratic on a long run of them in the middle.
function trim(segment: string): string {
  let start = 0;
  let end = segment.length;
  while (end > 0 && (segment.charCodeAt(end - 1) === 0x2e || segment.charCodeAt(end - 1) === 0x20)) end--;
  while (start < end && segment.charCodeAt(start) === 0x20) start++;
  return segment.slice(start, end);
}

/**
 * Routers compare by upper case or by lower case, letter by letter or as a whole. What any of them takes for one letter is
 * one here: the dotless and the dotted i, the long s, the Kelvin sign; the sharp s is two.
 */
function foldCase(text: string): string {
  return text
    .replace(/[\u0130\u0131]/g, 'i')
    .toUpperCase()
    .toLowerCase();
}

/** The compatibility form, without what no reader sees and with every kind of space as a plain one. */
function normalize(text: string): string {
  return compose(text).replaceAll('\\', '/');
}

function compose(text: string): string {
  return text.normalize('NFKC').replace(INVISIBLE, '').replace(SPACES, ' ').normalize('NFKC');
}

const INVISIBLE = /[\p{Default_Ignorable_Code_Point}\ufeff]/gu;
const SPACES = /\p{Space_Separator}/gu;

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
