// The spellings of a known path that some router takes for that path, and the paths that no router has. A target is
// bytes: it is written here as it goes over the wire, and no URL parser may touch it on the way. Most repeat the path
// that was named in another spelling; a few go below it and beside it, where some routers run its handler too.

export type CanaryKind =
  | 'letter case'
  | 'slashes'
  | 'dot segments'
  | 'encoded slashes'
  | 'backslashes'
  | 'percent-encoding'
  | 'double encoding'
  | 'control characters'
  | 'dots and spaces at the end'
  | ';parameters'
  | '.suffix'
  | 'query and fragment'
  | 'letters that look alike'
  | 'forms of the target'
  | 'scripts'
  | 'an empty parameter'
  | 'other names'
  | 'below and beside';

export type Canary = { readonly kind: CanaryKind; readonly target: string };

/**
 * Path that the upstream is known to answer. `path` is canonical, begins with `/` and has a letter in it. `query` has
 * its `?` or is empty, and stands behind every spelling. `parameter`: the upstream also answers any other last segment,
 * so the last segment is a parameter of a route.
 */
export type KnownPath = { readonly path: string; readonly query: string; readonly parameter: boolean };

const FORMATS = ['json', 'html', 'css', 'rsc', 'php'];
const SCRIPT = /\.(?:php\d?|phtml|f?cgi|pl|py|rb|wsgi|aspx?|ashx|jspx?|do)$/i;

/** Pattern of the name of a build in a page of Next; a server that is not built calls it `development`. */
const BUILD = /\/_next\/static\/([\w-]{1,64})\/_\w+Manifest\.js|"buildId":"([\w-]{1,64})"/;

/** The build under which Next serves the data of `page`, what the path answers. */
export function buildOf(page: string): string {
  const [, inFile, named] = BUILD.exec(page) ?? [];
  return inFile ?? named ?? 'development';
}

/**
 * Every spelling of `known` that is worth asking, none twice and not `known` itself. `host`: the Host header; `build`: as
 * `buildOf` has it.
 */
export function spellings(known: KnownPath, host: string, build = buildOf('')): Canary[] {
  const byKind = spellingsByKind(known, host, build);
  const seen = new Set([known.path + known.query]);
  const canaries: Canary[] = [];
  for (const kind of KINDS) {
    for (const spelling of byKind[kind]) {
      const target = withQuery(spelling, known.query);
      if (seen.has(target)) continue;
      seen.add(target);
      canaries.push({ kind, target });
    }
  }
  return canaries;
}

function spellingsByKind(
  known: KnownPath,
  host: string,
  build: string,
): Readonly<Record<CanaryKind, readonly string[]>> {
  const base = known.path.replace(/(?<=.)\/$/, '');
  const cut = base.lastIndexOf('/');
  const head = base.slice(0, cut);
  const last = base.slice(cut + 1);
  const rest = base.slice(1);
  const [first = '', ...others] = rest.split('/');
  /** Path after the first segment; equal to the tail if there is only one segment. */
  const below = others.length > 0 ? `/${others.join('/')}` : '';
  // The text in place of a parameter may be anything, so the letter is one before it.
  const at = known.parameter && hasLetter(head) ? letterAt(head) : letterAt(base);
  const letter = base[at] ?? '';
  const swap = (spelling: string): string => base.slice(0, at) + spelling + base.slice(at + 1);
  /** Joins head and last segment by `separator`. A path of one segment keeps its slash, or it would be no path. */
  const joined = (separator: string): string => `${head === '' ? '/' : head}${separator}${last}`;
  return {
    'letter case': [swapCase(base), `${head}/${swapCase(last)}`, `/${swapCase(first)}${below}`, swap(swapCase(letter))],
    slashes: [base, `${base}/`, `${base}//`, `/${base}`, `//${base}`, `${head}//${last}`, base.replaceAll('/', '//')],
    'dot segments': [
      `/.${base}`,
      `${head}/./${last}`,
      `/x/..${base}`,
      `${head}/x/../${last}`,
      `${base}/.`,
      `${base}/x/..`,
      `/%2E${base}`,
      `/x/%2E%2E${base}`,
      `/x/.%2E${base}`,
      `/x/..;${base}`,
      `/..${base}`,
    ],
    'encoded slashes': [
      joined('%2F'),
      joined('%2f'),
      `/%2F${rest}`,
      `${base}%2F`,
      `/x/..%2F${rest}`,
      `/x%2F..${base}`,
      `/x/%2E%2E%2F${rest}`,
    ],
    backslashes: [
      joined('\\'),
      joined('%5C'),
      `/\\${rest}`,
      `${base}\\`,
      `${base}%5C`,
      `/x/..\\${rest}`,
      `/x\\..\\${rest}`,
      `/x/..%5C${rest}`,
    ],
    'percent-encoding': [
      swap(escape(letter)),
      `${head}/${escapeAll(last)}`,
      `/${escape(first[0] ?? '')}${rest.slice(1)}`,
    ],
    'double encoding': [swap(`%25${hex(letter)}`), joined('%252F'), swap(`%25%${hex('6')}${hex(letter).slice(1)}`)],
    'control characters': [`${base}%00`, `${base}%0A`, `${base}%0D%0A`, `${base}%09`, `${base}%00.json`, `${base}%7F`],
    'dots and spaces at the end': [
      `${base}.`,
      `${base}..`,
      `${base}%20`,
      `${base}%20.`,
      `${base}./`,
      `${head}/%20${last}`,
      `/${first}.${below}`,
      `/${first}%20${below}`,
      `${base}%C2%A0`,
    ],
    ';parameters': [
      `${base};`,
      `${base};x=1`,
      `${base};.css`,
      `/${first};x=1${below}`,
      `/;x=1${base}`,
      `${head}/;/${last}`,
      `${base}%3Bx=1`,
      `${base};/`,
    ],
    '.suffix': [...FORMATS.map((format) => `${base}.${format}`), `${base}.x.json`, `${base}%2Ejson`],
    'query and fragment': [
      `${base}?x=1`,
      `${base}%3Fx=1`,
      `${base}#x`,
      `${base}%23x`,
      `${base}&x=1`,
      `${base}+`,
      base.replaceAll('%20', '+'),
    ],
    'letters that look alike': [
      swap(encodeURIComponent(fullwidth(letter))),
      ...lookalikes(base),
      `${base}%C2%AD`,
      `${base}%E2%80%8B`,
      swap(overlong(letter)),
      swap(`%u00${hex(letter)}`),
    ],
    scripts: [`/index.php${base}`, `${base}.php/x`, ...(SCRIPT.test(last) ? [`${base}/x`] : [])],
    // The root fills no parameter.
    'an empty parameter': known.parameter && head !== '' ? [`${head}/`, `${head}//`, `${head}/;x=1`] : [],
    'other names': [
      `${base}/__data.json`,
      `/_next/data/${build}${base}.json`,
      `${base}/index`,
      `${base}/index.html`,
      `${base}/INDEX`,
      `${head}/@@${last}`,
      `${base}/@@`,
      `${head}/x,${last}`,
      ...(head === '' ? [] : [`${head}.${last}`]),
      ...(/[-_]/.test(last) ? [`${head}/${swapDashes(last)}`, `${head}/${last.replace(/[-_]/, '.')}`] : []),
      ...(last.includes('.') ? [`${head}/${last.replace('.', '-')}`, `${head}/${last.replace('.', 'x')}`] : []),
    ],
    'below and beside': [`${base}/x`, `${base}/x/y`, `${base}x`, `${base}-x/y`, `${base}.x/y`],
    'forms of the target': [`http://${host}${base}`, `HTTP://${host}${base}`, `http://x.invalid${base}`, rest],
  };
}

const KINDS: readonly CanaryKind[] = [
  'letter case',
  'slashes',
  'dot segments',
  'encoded slashes',
  'backslashes',
  'percent-encoding',
  'double encoding',
  'control characters',
  'dots and spaces at the end',
  ';parameters',
  '.suffix',
  'query and fragment',
  'letters that look alike',
  'scripts',
  'an empty parameter',
  'other names',
  'below and beside',
  'forms of the target',
];

/** Paths that no API has: beside the known one (`name` in place of its last segment), and far from it. */
export function unknownPaths(known: KnownPath, name: string): { beside: string; far: string } {
  const base = known.path.replace(/(?<=.)\/$/, '');
  return {
    beside: `${base.slice(0, base.lastIndexOf('/'))}/${name}${known.query}`,
    far: `/${name}/${name}${known.query}`,
  };
}

/** The path above a parameter: it often lists what the parameter names. */
export function pathAbove({ path }: KnownPath): string {
  const base = path.replace(/(?<=.)\/$/, '');
  return base.slice(0, base.lastIndexOf('/')) || '/';
}

/** Puts `query` behind the path and before a fragment. A canary with a query of its own gets it as a further one. */
export function withQuery(spelling: string, query: string): string {
  if (query === '') return spelling;
  const mark = spelling.indexOf('#');
  if (mark >= 0) return spelling.slice(0, mark) + query + spelling.slice(mark);
  return spelling.includes('?') ? `${spelling}&${query.slice(1)}` : spelling + query;
}

/**
 * The position of the letter that is spelled in other ways: in the last segment if that has one, never inside an
 * escape.
 */
function letterAt(path: string): number {
  const bare = path.replace(/%[0-9A-F]{2}/g, '%%%');
  const inLast = bare.slice(bare.lastIndexOf('/')).search(/[A-Za-z]/);
  return inLast >= 0 ? bare.lastIndexOf('/') + inLast : bare.search(/[A-Za-z]/);
}

/** Whether there is anything in `path` that could be spelled in another way. */
export function hasLetter(path: string): boolean {
  return letterAt(path) > 0;
}

function swapCase(text: string): string {
  return text.replace(/%[0-9A-F]{2}|[A-Za-z]/g, (found) => {
    if (found.startsWith('%')) return found;
    return found === found.toLowerCase() ? found.toUpperCase() : found.toLowerCase();
  });
}

function swapDashes(text: string): string {
  return text.replace(/[-_]/g, (mark) => (mark === '-' ? '_' : '-'));
}

function hex(character: string): string {
  return character.charCodeAt(0).toString(16).toUpperCase().padStart(2, '0');
}

/** An unreserved character as an escape; others stay, because they may mean something else once decoded. */
function escape(character: string): string {
  return /[A-Za-z0-9_~-]/.test(character) ? `%${hex(character)}` : character;
}

function escapeAll(text: string): string {
  return text.replace(/%[0-9A-F]{2}|[^%]/g, (found) => (found.startsWith('%') ? found : escape(found)));
}

function fullwidth(letter: string): string {
  return String.fromCharCode(letter.charCodeAt(0) + 0xfee0);
}

/** Two bytes where one would do: what an old decoder reads as the letter. */
function overlong(letter: string): string {
  const code = letter.charCodeAt(0);
  return `%${(0xc0 | (code >> 6)).toString(16).toUpperCase()}%${(0x80 | (code & 0x3f)).toString(16).toUpperCase()}`;
}

/** Letters that turn into ASCII ones when case is folded: the Kelvin sign, the long s, i with and without its dot. */
function lookalikes(path: string): string[] {
  const bare = path.replace(/%[0-9A-F]{2}/g, '%%%');
  const pairs: readonly (readonly [letter: string, other: string])[] = [
    ['k', '\u212a'],
    ['s', '\u017f'],
    ['i', '\u0131'],
    ['i', '\u0130'],
  ];
  return pairs.flatMap(([letter, other]) => {
    const at = bare.toLowerCase().lastIndexOf(letter);
    return at < 0 ? [] : [path.slice(0, at) + encodeURIComponent(other) + path.slice(at + 1)];
  });
}
