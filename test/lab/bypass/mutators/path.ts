// Ways to spell a path so that two parsers read two paths. Each takes a path and a generator and gives another spelling;
// they are composed, so each must take whatever another one made.
import type { Rng } from '../../../support/random.ts';

export type PathMutator = (path: string, rng: Rng) => string;

export const SLASHES = [
  '//',
  '///',
  '/./',
  '\\',
  '/\\',
  '%2f',
  '%2F',
  '%5c',
  '%5C',
  '%252f',
  '%255c',
  '/;/',
  '/;x=y/',
  ';/',
  ';a=b/',
  '/%2e/',
  '/%2E;/',
  '%c0%af',
  '%e0%80%af',
  '%ef%bc%8f',
  '%ef%bc%bc',
  '%e2%88%95',
  '%e2%81%84',
  '%e2%a7%b8',
  '/%20/',
  '/ /',
  '.',
  '/@@',
  '/x,',
  '/%09/',
  '/%00/',
  '/\t',
  '%u2215',
  '/..;/',
  '/%3b/',
  '%3b/',
  '/+/',
  '/&/',
  '%2f/',
  '/%2f',
  '/%c2%ad/',
  '/x/../',
  '/x/%2e%2e/',
  '%5c..%5c',
  '/%e2%80%8b/',
  '/~/',
] as const;

export const DOTS = [
  '..',
  '%2e%2e',
  '.%2e',
  '%2E.',
  '..;',
  '..;a=b',
  '%2e%2e;',
  '..%3b',
  '%252e%252e',
  '%c0%ae%c0%ae',
  '%ef%bc%8e%ef%bc%8e',
  '%e2%80%a5',
  '%e2%80%a4%e2%80%a4',
  '..%20',
  '%20..',
  '..%00',
  '%u002e%u002e',
  '..%0d',
  '..%5c',
  '...',
  '.%c2%ad.',
  '..%c2%a0',
  '.%e2%80%8b.',
  '..%ef%bb%bf',
  '%ef%b9%92%ef%b9%92',
  '.%20.',
  '..%c2%ad',
  '%e3%80%82%e3%80%82',
  '..?',
  '..#',
  '..%3f',
  '..%23',
  '..&',
  '..+',
  '.,.',
] as const;

export const PREFIXES = [
  '/.',
  '/..',
  '/./',
  '/%2e',
  '/free/..',
  '/free/x/../..',
  '/free/%2e%2e',
  '/free/..;',
  '/free/.%2e',
  '/;',
  '/;x',
  '/%3b',
  '/',
  '//',
  '/\\',
  '\\',
  '/free/..%2f',
  '/free%2f..',
  '/free/..\\',
  '//localhost',
  '//free',
  '///free/..',
  '/_next/data/x',
  '/@@',
  '/index.php',
  '/free/index.php',
  '/app.cgi',
  '/x.php;a',
  '/index.php%2f..',
  '/%20',
  '/%09',
  '/+',
  '/%c2%ad',
  '/%ef%bb%bf',
  '/free%3f',
  '/free?',
  '/free#',
  '/free%23',
  '/?',
  '/#',
  '.',
  '',
  '*',
  '/*',
  '/@',
  '/localhost',
  '/http:',
  '/http://localhost',
  '/free/%252e%252e',
  '/free/%ef%bc%8e%ef%bc%8e',
  '/%e2%80%8b',
  '/%00',
  '/~',
] as const;

export const TAILS = [
  '/',
  '//',
  '/.',
  '/./',
  '/..',
  '/../export',
  '.',
  '..',
  '%20',
  '%20%20',
  '%09',
  '%0a',
  '%0d',
  '%0d%0a',
  '%00',
  '%00.json',
  '.json',
  '.css',
  '.xml',
  '.html',
  '.php',
  '.json.',
  '.json%20',
  '%20.json',
  '.a.b',
  '%2e',
  '%2ejson',
  '?',
  '??',
  '?x',
  '?/../',
  '?x=/..',
  '%3f',
  '%3Fx',
  '%3fx=y',
  '%23',
  '%23x',
  '#',
  '#x',
  '&',
  '&x=y',
  '%26',
  '%26x=y',
  '+',
  '%2b',
  '+%20',
  '/index',
  '/index.html',
  '/index.php',
  '/__data.json',
  '.html__data.json',
  '.segments/_tree.segment.rsc',
  '/@@',
  ',x',
  '.x/y',
  '/x',
  '.php/x',
  '.php/',
  '.cgi/x',
  ';',
  ';x',
  ';a=b',
  '/;',
  '/;x',
  ';.css',
  ';x.json',
  '.json;x',
  '/;/',
  '%3b',
  '%3bx',
  ',',
  ',x',
  '~',
  '.%20',
  '%20.',
  '%c2%a0',
  '%ef%bb%bf',
  '%e1%9a%80',
  '%e3%80%80',
  '%e2%80%a8',
  '%c2%85',
  '%c2%ad',
  '/%20',
  '/%2e',
  '/.;',
  '/%c2%ad',
  '/%ef%bc%8f',
  '%ef%bc%8f',
  '%ef%bc%bc',
  '/%e2%84%80',
  '::$DATA',
  '%c0%80',
  '*',
  '!',
  '/-',
  '%25',
  '%2525',
  '%2500',
  '%',
  '%2',
  '%zz',
  '%e3%80%82',
  '%ef%bc%8e',
  '%e2%80%a4',
  '%ef%bc%9b',
  '%ef%bc%9b%ef%bc%9b',
  '%ef%bc%9f',
  '%ef%bc%83',
  '%ef%bc%85',
  '|',
  '^',
  '"',
  "'",
  '<',
  '>',
  '`',
  '{',
  '}',
  '[',
  ']',
  '\\',
  '\t',
  '\x00',
  '\x0b',
  '\x7f',
  '\x80',
  '\xff',
  '\xa0',
  '%ff',
  '%c3',
  '%cc%87',
  '%cc%81',
  '/public',
  '/open',
  '%2f',
  '%5c',
  '%2f..',
  '%2fx',
  '/%2f',
  '%e2%80%8b',
  '%ef%b8%8f',
  '%f3%a0%81%a1',
  '(',
  ')',
  '=',
  ':',
  ':8080',
  '@',
  '@x',
] as const;

/** What may stand for a parameter or below a wildcard: nothing, almost nothing, and letters that are more than one. */
export const IDS = [
  '',
  '%e2%84%80',
  '%e2%84%85',
  '%ef%bc%8f',
  '%ef%bc%bc',
  '%ef%b9%a8',
  'a%ef%bc%8fb',
  '%c2%ad',
  '%e2%80%8b',
  '%ef%bb%bf',
  '%ef%bc%9f',
  '%ef%bc%9b',
  '%ef%bc%9bx',
  '%ef%bc%83',
  '%ef%bc%85',
  '%2f',
  '%5c',
  'a%2fb',
  'a%5cb',
  '+',
  ';',
  ';x',
  '%3b',
  '?',
  '%3f',
  '%3fx',
  '#',
  '%23',
  '&',
  '%26x',
  '..%2f',
  '%25',
  '%2525',
  '%e2%85%93',
  '.',
  '%2e',
  '...',
  '.%20',
  '%20',
  '%c2%a0',
  '%e3%80%80',
  '.json',
  'x.',
  'x%20',
  '%20x',
  'open.',
  'open%20',
  'OPEN',
  'Open',
  'open/',
  'open;x',
  'open%3bx',
  'open.json',
  'open%3f',
  'open%26',
  '%ef%bd%8fpen',
  'ope%c5%84',
  'o%c2%adpen',
  'PUBLIC',
  'public.',
  'public/',
  'public;',
  'public/x',
  'publi%c7%86',
  '%f0%9d%97%bc%f0%9d%97%bd%f0%9d%97%b2%f0%9d%97%bb',
  'open+',
  '+open',
  '%20open',
  'open%c2%a0',
  'open%ef%bb%bf',
  'open.php',
  'open.php/x',
  '*',
  ':id',
  '{id}',
  '-',
  '_',
  '~',
  '%7f',
  '%80',
  '%e2%80%a8',
  "'",
  '(x)',
  'a,b',
  'a=b',
  '@',
  '%40',
  '%3a',
  ':',
] as const;

const LOOKALIKES: Readonly<Record<string, readonly string[]>> = {
  i: ['\u0131', '\u0130', '\u2139', '\u24d8', '\uff49', '\uff29', '\u2170', '\u0456', 'i\u0307'],
  k: ['\u212a', '\uff4b', '\uff2b', '\u24da'],
  s: ['\u017f', '\uff53', '\u24e2', '\u02e2', '\ufb06'],
  ss: ['\u00df', '\u1e9e', '\u017f\u017f', 's\u017f'],
  t: ['\uff54', '\ufb06', '\u1d57'],
  a: ['\u00aa', '\u0430', '\u1d43', 'a\u0301'],
  o: ['\u00ba', '\u043e', '\u2092'],
};

/** UTF-8 bytes of `text`, each percent-encoded. */
export function escaped(text: string): string {
  return [...Buffer.from(text, 'utf8')].map((byte) => `%${byte.toString(16).padStart(2, '0')}`).join('');
}

function replaceAt(text: string, at: number, length: number, by: string): string {
  return text.slice(0, at) + by + text.slice(at + length);
}

/** The position of a character that `wanted` takes, or -1. */
function somewhere(path: string, rng: Rng, wanted: RegExp): number {
  const places = [...path.matchAll(wanted)].map(({ index }) => index);
  return places.length === 0 ? -1 : rng.pick(places);
}

const hex = (byte: number, rng: Rng): string => {
  const digits = byte.toString(16).padStart(2, '0');
  return rng.chance(0.5) ? digits : digits.toUpperCase();
};

function encodeLetter(letter: string, rng: Rng): string {
  const digits = hex(letter.charCodeAt(0), rng);
  switch (rng.int(8)) {
    case 0:
      return `%25${digits}`;
    case 1:
      return `%2525${digits}`;
    case 2:
      return `%25${digits.replace(/./g, (digit) => `%${digit.charCodeAt(0).toString(16)}`)}`;
    case 3:
      return `%u00${digits}`;
    default:
      return `%${digits}`;
  }
}

function lookalike(path: string, rng: Rng): string {
  const key = rng.pick(Object.keys(LOOKALIKES));
  const at = somewhere(path, rng, new RegExp(key, 'gi'));
  if (at >= 0) {
    const text = rng.pick(LOOKALIKES[key] ?? []);
    return replaceAt(path, at, key.length, escaped(text));
  }
  return fullwidth(path, rng);
}

function fullwidth(path: string, rng: Rng): string {
  const at = somewhere(path, rng, /[!-~]/g);
  if (at < 0) return path;
  return replaceAt(path, at, 1, escaped(String.fromCharCode(path.charCodeAt(at) + 0xfee0)));
}

const INSERTED = [
  '%c2%ad',
  '%e2%80%8b',
  '%e2%80%8d',
  '%ef%bb%bf',
  '%cd%8f',
  '%e2%81%a0',
  '%ef%b8%8f',
  '%00',
  '%0a',
  '%0d',
  '%09',
  '%20',
  '%7f',
  '%c2%a0',
  '%e3%80%80',
  '%c2%85',
  '%e2%80%a8',
  '+',
  '%2b',
  '|',
  '^',
  '`',
  '"',
  '<',
  '{',
  '[',
  ';',
  '%3b',
  '%',
  '\t',
  '\x00',
  '\x80',
  '\xc2\xad',
  '%ff',
  '%c0%80',
  '%cc%87',
  '.',
  '*',
  '%25',
  '&',
  '%26',
  '?',
  '%3f',
  '#',
  '%23',
  '\\',
] as const;

export const PATH_MUTATORS: Readonly<Record<string, PathMutator>> = {
  'another slash': (path, rng) => {
    const at = somewhere(path, rng, /\//g);
    return at < 0 ? `/${path}` : replaceAt(path, at, 1, rng.pick(SLASHES));
  },
  'dot segments': (path, rng) => {
    const at = somewhere(path, rng, /\//g);
    const slash = rng.chance(0.8) ? '/' : rng.pick(SLASHES);
    const away = rng.chance(0.5) ? 'free' : 'x';
    return replaceAt(path, Math.max(0, at), 0, `/${away}${slash}${rng.pick(DOTS)}`);
  },
  'a prefix': (path, rng) => rng.pick(PREFIXES) + path,
  'a tail': (path, rng) => path + rng.pick(TAILS),
  'an odd last segment': (path, rng) => path.slice(0, path.lastIndexOf('/') + 1) + rng.pick(IDS),
  'an odd segment': (path, rng) => {
    const segments = path.split('/');
    segments[rng.int(segments.length)] = rng.pick(IDS);
    return segments.join('/');
  },
  'one letter encoded': (path, rng) => {
    const at = somewhere(path, rng, /[!-~]/g);
    return at < 0 ? path : replaceAt(path, at, 1, encodeLetter(path[at] ?? '', rng));
  },
  'many letters encoded': (path, rng) =>
    path.replace(/[A-Za-z0-9._~-]/g, (letter) => (rng.chance(0.5) ? `%${hex(letter.charCodeAt(0), rng)}` : letter)),
  'letter case': (path, rng) => {
    if (rng.chance(0.3)) return rng.chance(0.5) ? path.toUpperCase() : path.toLowerCase();
    const at = somewhere(path, rng, /[A-Za-z]/g);
    const letter = path[at] ?? '';
    return at < 0
      ? path
      : replaceAt(path, at, 1, letter === letter.toLowerCase() ? letter.toUpperCase() : letter.toLowerCase());
  },
  'a look-alike': lookalike,
  'a fullwidth form': fullwidth,
  'something inserted': (path, rng) => replaceAt(path, rng.int(path.length + 1), 0, rng.pick(INSERTED)),
  'matrix parameters': (path, rng) => {
    const segments = path.split('/');
    const at = rng.int(segments.length);
    segments[at] =
      `${segments[at]}${rng.pick([';x', ';a=b', ';', '%3bx', ';x/y', ';x;y', ';x=.', ';x%3by', ',x', ';%2f', ';?', ';.json'])}`;
    return segments.join('/');
  },
  'something twice or gone': (path, rng) => {
    const at = rng.int(path.length);
    return rng.chance(0.5) ? replaceAt(path, at, 1, '') : replaceAt(path, at, 0, path[at] ?? '');
  },
  'a query': (path, rng) =>
    path +
    rng.pick([
      '?',
      '?x=1',
      '?_method=GET',
      '?_method=POST',
      '?/../..',
      '?_url=/v1/export',
      '?r=/v1/export',
      '?url=/v1/export',
      '??',
      '?#',
      '?%00',
      '?x=\xff',
      '?;',
      '?a[b]=c',
      '?x?/v1/export',
      '?&',
      '?_path=/v1/export',
    ]),
};
