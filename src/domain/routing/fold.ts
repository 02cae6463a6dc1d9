// Folds a canonical path into match keys: one for every way in which some router reads it. A key is the path, decoded
// and stripped of everything that a router may overlook. A pattern's literals are folded by the same function, so the
// two meet. Folding never decides what is free. One reading too many costs a 402; one too few is a way around the
// paywall.
import type { PathFolding } from './profile.ts';

type FoldResult =
  /** Match keys of a path, or why it has none. `left` has the steps that remain for work on the keys. */
  | { readonly ok: true; readonly keys: readonly string[]; readonly left: number }
  | { readonly ok: false; readonly reason: string };

// Characters that stand in a key for an encoded slash or backslash that a router may keep inside a segment. They cannot
// occur otherwise.
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
export const TOO_MANY_READINGS = 'the path can be read in too many ways for its length';
const PLAIN = /^[A-Za-z0-9_-]+$/;
const DELIMITER = /[;?#]/;
/**
 * Steps that one path may take: a letter of a reading is one, and a reading some more for its look-ups. A path that
 * takes longer is refused, so none costs more than 100 microseconds. Ordinary paths take a few hundred steps.
 */
export const MOST_STEPS = 8_500;
const STEPS_A_READING = 64;
/** A letter outside ASCII is normalised, upper-cased and lower-cased by tables. */
const STEPS_A_LETTER = 12;
/** Steps to cut a path into its segments, which are trimmed one by one. */
const STEPS_A_CUT = 4;
/** A run of combining marks is sorted when it is normalised; no language has so many (Unicode's Stream-Safe Text Format). */
const MARKS = /\p{M}{31}/u;
/** A file with more of the path behind it: the first script, the last script, the first file of another kind. */
const FILES = [
  /^(.*?\.(?:php[0-9]?|phtml|f?cgi|pl|py|rb|wsgi|aspx?|ashx|jspx?|do))(\/.*)$/i,
  /^(.*\.(?:php[0-9]?|phtml|f?cgi|pl|py|rb|wsgi|aspx?|ashx|jspx?|do))(\/.*)$/i,
  /^(.*?\.(?:json|xml|html?|csv|txt|pdf|zip|png|jpe?g|gif|svg|webp|mp[34]))(\/.*)$/i,
];

/** The readings of one path so far, and the steps that are left. */
type Readings = { readonly made: string[]; readonly keys: string[]; left: number };

/** Spends steps, which all readings of one path share; false: nothing more may be made of it. */
function spend(readings: Readings, steps: number): boolean {
  readings.left -= steps;
  return readings.left >= 0;
}

/** The keys of `path`: `/`-led, no trailing slash (the root is `/`), at least one, the plain reading first, no two alike. */
export function foldPath(path: string, folding: PathFolding): FoldResult {
  // The escapes of a path were read once, and are read again.
  const readings: Readings = { made: [], keys: [], left: MOST_STEPS - path.length };
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
    if (!spend(readings, STEPS_A_LETTER * text.length) || MARKS.test(text)) return refuse(TOO_MANY_READINGS);
    // Compatibility forms of dots, slashes and percent signs must not smuggle in what was refused in ASCII.
    compatible = normalize(text);
    if (HIDDEN_ESCAPE.test(compatible) || DOT_SEGMENT.test(split(compatible))) return refuse(DOTS);
  }
  if (hasDotSegment(kept ? split(text) : text)) return refuse(DOTS);

  // The compatibility form stands beside the plain reading, not in its place: it may hold more slashes, or fewer
  // letters.
  if (compatible !== undefined && folding.compatibility) addReadings(readings, compatible, kept, folding);
  addReadings(readings, text, kept, compatible === undefined ? folding : { ...folding, compatibility: false });
  if (folding.empty) {
    // `/reports/` may be `/reports/:id` without an id, and so may a double slash that is kept.
    for (const reading of kept ? [text, split(text)] : [text]) {
      if (reading.endsWith('/')) add(readings, reading.slice(0, -1), folding, `/${EMPTY}`);
      if (reading.includes('//')) add(readings, reading.replace(/\/(?=\/|$)/g, `/${EMPTY}`), folding);
    }
  }
  return readings.left < 0 ? refuse(TOO_MANY_READINGS) : { ok: true, keys: readings.keys, left: readings.left };
}

function addReadings(readings: Readings, text: string, kept: boolean, folding: PathFolding): void {
  addKeys(readings, text, folding);
  if (!kept) return;
  // Some routers take an encoded slash and backslash for separators, some only the slash, some only the backslash.
  addKeys(readings, split(text), folding);
  addKeys(readings, text.replaceAll(KEPT_SLASH, '/'), folding);
  addKeys(readings, text.replaceAll(KEPT_BACKSLASH, '/'), folding);
}

/** The keys of one reading: as it stands, and with what a router may cut off it. */
function addKeys(readings: Readings, reading: string, folding: PathFolding): void {
  if (!spend(readings, reading.length) || readings.made.includes(reading)) return;
  readings.made.push(reading);
  if (!add(readings, reading, folding)) return;
  // A router may drop the parameters of each segment, or end the path at the first delimiter that it decodes.
  const end = folding.matrix ? reading.search(DELIMITER) : -1;
  if (end >= 0) {
    addKeys(readings, reading.slice(0, end), folding);
    if (reading.includes(';')) addKeys(readings, reading.replace(/;[^/]*/g, ''), folding);
  }
  // A path that becomes part of a query on its way is read as one: & ends it and + is a space. Or only one of the two.
  const ampersand = folding.form ? reading.indexOf('&') : -1;
  const plus = folding.form && reading.includes('+');
  if (ampersand >= 0 || plus) {
    const rest = { ...folding, form: false };
    const value = ampersand < 0 ? reading : reading.slice(0, ampersand);
    if (ampersand >= 0) addKeys(readings, value, rest);
    if (plus) addKeys(readings, value.replaceAll('+', ' '), rest);
    if (plus && ampersand >= 0) addKeys(readings, reading.replaceAll('+', ' '), rest);
  }
  // A script's name is followed by what the script is asked for; the script runs, and the file is read, whatever that
  // is.
  const dot = folding.script ? reading.indexOf('.') : -1;
  if (dot < 0 || dot > reading.lastIndexOf('/')) return;
  const rest = { ...folding, script: false };
  for (const [index, file] of FILES.entries()) {
    if (!spend(readings, reading.length)) return;
    const found = file.exec(reading);
    if (found === null) continue;
    addKeys(readings, found[1] ?? '/', rest);
    if (index < 2) addKeys(readings, found[2] ?? '/', rest);
  }
}

/** Adds a reading. It is counted before it is made, also if it is there already. False: the steps are used up. */
function add(readings: Readings, reading: string, folding: PathFolding, tail = ''): boolean {
  const cut = folding.trim && hasToTrim(reading) ? STEPS_A_CUT : 0;
  const each = (ASCII.test(reading) ? 1 : STEPS_A_LETTER) + cut;
  if (!spend(readings, STEPS_A_READING + each * reading.length)) return false;
  const key = foldReading(reading, folding);
  const whole = tail === '' ? key : (key + tail).replace('//', '/');
  if (!readings.keys.includes(whole)) readings.keys.push(whole);
  return true;
}

/** A pattern's literal segment, already decoded, as it stands in a key under `folding`. Empty: nothing is left of it. */
export function foldSegment(literal: string, folding: PathFolding): string {
  if (PLAIN.test(literal)) return folding.letterCase ? literal.toLowerCase() : literal;
  const text = folding.compatibility ? normalize(literal) : literal;
  return foldReading(`/${folding.matrix ? text.replace(/;.*$/, '') : text}`, folding).slice(1);
}

function foldReading(reading: string, folding: PathFolding): string {
  let text = reading;
  if (folding.letterCase) text = ASCII.test(text) ? text.toLowerCase() : foldCase(text);
  // Case folding can leave a composable sequence behind; composing again makes folding idempotent.
  if (folding.compatibility && !ASCII.test(text)) text = compose(text);
  if (folding.trim && hasToTrim(text)) text = text.split('/').map(trim).join('/');
  if (text.includes('//')) text = text.replace(/\/\/+/g, '/');
  return text.length > 1 && text.endsWith('/') ? text.slice(0, -1) : text || '/';
}

// Looks for what is rare before anything is made or a regular expression reads the text: most paths have none of it.
function hasDotSegment(text: string): boolean {
  return (text.includes('/.') || text.includes('/ ')) && DOT_SEGMENT.test(text);
}

function hasToTrim(text: string): boolean {
  if (text.endsWith('.') || text.includes('./')) return true;
  return text.includes(' ') && (text.includes(' /') || text.includes('/ ') || text.trim() !== text);
}

// Trims by hand: a regular expression for "dots and spaces at the end" is quadratic on a long run of them in the
// middle.
function trim(segment: string): string {
  let start = 0;
  let end = segment.length;
  while (end > 0 && (segment.charCodeAt(end - 1) === 0x2e || segment.charCodeAt(end - 1) === 0x20)) end--;
  while (start < end && segment.charCodeAt(start) === 0x20) start++;
  return segment.slice(start, end);
}

/**
 * Routers compare by upper case or by lower case, letter by letter or as a whole. Letters that any of them takes for
 * one letter are one here, such as the dotless and the dotted i, the long s and s, the Kelvin sign and k. The sharp s
 * is two letters.
 */
function foldCase(text: string): string {
  return text
    .replace(/[\u0130\u0131]/g, 'i')
    .toUpperCase()
    .toLowerCase();
}

/** The compatibility form, without invisible characters, and with a plain space for every kind of space. */
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

function refuse(reason: string): { ok: false; reason: string } {
  return { ok: false, reason };
}
