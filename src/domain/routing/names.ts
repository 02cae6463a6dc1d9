// Finds other names that some routers have for a path: without a suffix, as a page's data, as a folder's index, with
// dots for slashes, several in a list. They are looked up beside the path's keys, never in their place. If they lead to
// a higher priced route than the path itself, that one counts.
import type { PathFolding } from './profile.ts';

/** Steps for a look-up, beside one for every second letter. */
const STEPS_A_NAME = 64;
const STEPS_A_PART = 3;
/** Steps for a letter that may be a mark, which is replaced alone. */
const STEPS_A_MARK = 2;
const NO_NAMES: readonly string[] = [];
/** Marks without which a key has no other name; most keys hold none. */
const MARK = /[.,@]/;

/** Root with a format of Rails, or its data as Next and React Router name it. */
const ROOT = /^\/(?:\.[a-z0-9]{1,8}|_root\.data)$/i;
const NEXT_DATA = /^(.*?)\/_next\/data\/[^/]+(\/.*?)(?:\.json)?$/;
const NEXT_SEGMENTS = /^(.*?)\.segments(?:\/.*)?$/;
/** Page data as SvelteKit and Nuxt name it. */
const PAGE_DATA = /^(.*?)(?:\.html|\/)_{1,2}(?:data\.json|payload\.js(?:on)?)$/;
const INDEX = /^(.*)\/(?:index(?:\.[^/.]*)?|default\.aspx?)$/i;
const MARKED = /[!-.:-@[-`{-~]/;
/** Table by character code: 1 if MARKED finds the character. */
const MARKS = Uint8Array.from({ length: 256 }, (_, code) => (MARKED.test(String.fromCharCode(code)) ? 1 : 0));
/** Letters of which one byte does not say all. */
const WIDE = /[^\x00-\xff]/;
const LISTED = /^[\d.:-]*$/;

type NameList = { readonly names: readonly string[]; readonly left: number };

/** Finds other names than `keys`, each once. Undefined: they are more than `steps` allow. */
export function namesOf(keys: readonly string[], folding: PathFolding, steps: number): NameList | undefined {
  let names: string[] | undefined;
  let left = steps;
  const add = (name: string): void => {
    left -= STEPS_A_NAME + (name.length >> 1);
    if (left < 0 || keys.includes(name)) return;
    if (names === undefined) names = [name];
    else if (!names.includes(name)) names.push(name);
  };
  for (const key of keys) {
    if (!MARK.test(key) && !key.endsWith('/index')) continue;
    // Counts what the expressions below read of the key.
    left -= key.length;
    const start = key.lastIndexOf('/') + 1;
    if (folding.suffix) addWithoutSuffix(key, start, add);
    if (folding.pageData) addPages(key, add);
    if (folding.index) {
      const folder = INDEX.exec(key)?.[1];
      if (folder !== undefined) add(folder || '/');
    }
    // A dot ends moleculer's actions and connect's mounts like a slash.
    if (folding.dots && key.includes('.')) add(merged(key.replaceAll('.', '/')));
    // Views of Zope and Pyramid.
    if (folding.views && key.includes('/@@')) add(merged(key.replace(/\/@@/g, '/')));
    if (folding.lists && key.includes(',', start)) {
      const folder = key.slice(0, start);
      for (const name of key.slice(start).split(',')) {
        left -= STEPS_A_PART;
        if (left < 0) return undefined;
        // Numbers are values of a parameter and no names.
        if (!LISTED.test(name)) add(folder + name);
      }
    }
    if (left < 0) return undefined;
  }
  return { names: names ?? NO_NAMES, left };
}

/** Cuts the key at the first dot of the last segment and at its last one. */
function addWithoutSuffix(key: string, start: number, add: (name: string) => void): void {
  if (ROOT.test(key)) add('/');
  const first = key.indexOf('.', start + 1);
  if (first < 0) return;
  const last = key.lastIndexOf('.');
  if (last !== first) add(key.slice(0, last));
  add(key.slice(0, first));
}

function addPages(key: string, add: (name: string) => void): void {
  const next = NEXT_DATA.exec(key);
  const page = next === null ? (PAGE_DATA.exec(key) ?? NEXT_SEGMENTS.exec(key))?.[1] : `${next[1]}${next[2]}`;
  if (page === undefined) return;
  add(page || '/');
  const folder = INDEX.exec(page)?.[1];
  if (folder !== undefined) add(folder || '/');
}

function merged(name: string): string {
  const text = name.replace(/\/\/+/g, '/');
  return text.length > 1 && text.endsWith('/') ? text.slice(0, -1) : text;
}

/**
 * Adds the names under which CherryPy, which reads every mark as an underscore, finds a handler; and with dashes for
 * it. Undefined: they are more than the steps that are left allow.
 */
export function withDashes({
  keys,
  names,
  left,
}: NameList & { readonly keys: readonly string[] }): readonly string[] | undefined {
  const dashed = keys.filter((key) => MARKED.test(key));
  if (dashed.length === 0) return names;
  const steps = dashed.reduce((sum, key) => sum + 2 * (STEPS_A_NAME + STEPS_A_MARK * key.length), 0);
  if (steps > left) return undefined;
  const all = new Set(names);
  for (const key of dashed) for (const mark of ['_', '-']) all.add(remarked(key, mark));
  for (const key of keys) all.delete(key);
  return [...all];
}

/** Puts `mark` in place of every mark of `key`. An expression that stops at each takes some fifty times as long. */
function remarked(key: string, mark: string): string {
  const wide = WIDE.test(key);
  const encoding = wide ? 'utf16le' : 'latin1';
  const bytes = Buffer.from(key, encoding);
  const code = mark.charCodeAt(0);
  for (let i = 0; i < bytes.length; i += wide ? 2 : 1)
    if (MARKS[bytes[i] ?? 0] === 1 && (!wide || bytes[i + 1] === 0)) bytes[i] = code;
  return bytes.toString(encoding);
}
