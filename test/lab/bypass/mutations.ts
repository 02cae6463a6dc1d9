// The rules that keep requests out, each switched off once by changing the line that has it. A suite that stays quiet
// about one of these shows nothing about it. `text` must stand exactly once in `file`: a rule that moved is a row to mend.
// `needed`: an upstream that the tests always have, and a request that reaches a protected handler of it without the rule.
// Where none is named no upstream of the suite needs the rule, because another one catches the same: defence in depth.
import { draftOf, type Draft } from './draft.ts';
import type { Settings } from './gateway.ts';

/** A line of the source and what stands there instead. */
export type Edit = { readonly file: string; readonly text: string; readonly by: string };

export type Mutation = Edit & {
  readonly rule: string;
  readonly needed: readonly (readonly [upstream: string, draft: Draft])[];
  /** Requests for which less than the amount is asked without the rule. */
  readonly dear?: readonly (readonly [draft: Draft, amount: string])[];
  readonly settings?: Partial<Settings>;
};

const get = (target: string): Draft => draftOf('GET', target);

/** Switches a flag of the folding off for every profile. */
const flag = (name: string): Edit => ({
  file: 'domain/routing/profile.ts',
  text: 'return PROFILES[name];',
  by: `return { ...PROFILES[name], ${name}: false };`,
});

export const MUTATIONS: readonly Mutation[] = [
  {
    rule: 'letter case does not count',
    ...flag('letterCase'),
    needed: [
      ['express 5', get('/V1/export')],
      ['koa and @koa/router', get('/v1/exporT')],
    ],
  },
  {
    rule: 'compatibility forms are the letters',
    ...flag('compatibility'),
    needed: [['model: compatibility forms', get('/v1/%ef%bd%85xport')]],
  },
  {
    rule: 'parameters of a segment are not part of it',
    ...flag('matrix'),
    needed: [
      ['fastify, useSemicolonDelimiter', get('/v1/export;x')],
      ['model: servlet container', get('/;x/v1/export')],
    ],
  },
  {
    rule: 'a path may end at a decoded question mark',
    ...flag('matrix'),
    needed: [['node:http, decodeURIComponent, then before ? and #', get('/v1/export%3Fx')]],
  },
  {
    rule: 'a suffix is looked up without itself',
    ...flag('suffix'),
    needed: [['model: format suffixes', get('/v1/export.json')]],
  },
  {
    rule: 'dots and spaces at the end of a segment do not count',
    ...flag('trim'),
    needed: [
      ['model: Windows server', get('/v1/export%20')],
      ['model: segments trimmed', get('/v1/%20export')],
    ],
  },
  {
    rule: 'a parameter may be filled by nothing',
    ...flag('empty'),
    needed: [
      ['fastify', get('/v1/reports/')],
      ['node:http, parameters may be empty', get('/v1/reports/')],
    ],
  },
  {
    rule: 'a path may be read as a form',
    ...flag('form'),
    needed: [
      ['model: path rewritten into a query', get('/v1/export&x')],
      ['node:http, plus is a space', get('/v1/my+report')],
    ],
  },
  {
    rule: 'a script may stand before the path',
    ...flag('script'),
    needed: [['model: front controller with PATH_INFO', get('/index.php/v1/export')]],
  },
  {
    rule: 'a script runs whatever follows its name',
    ...flag('script'),
    needed: [['model: scripts as endpoints', get('/v1/export.php/x')]],
  },
  {
    rule: 'the data of a page is the page',
    ...flag('pageData'),
    needed: [
      ['model: page data', get('/_next/data/aB3/v1/export.json')],
      ['model: page data', get('/v1/export/__data.json')],
      ['model: page data', get('/v1/export.segments/_tree.segment.rsc')],
    ],
  },
  {
    rule: 'the index of a folder is the folder',
    ...flag('index'),
    needed: [['model: index of a folder', get('/v1/export/index')]],
  },
  {
    rule: 'a dot may be a slash',
    ...flag('dots'),
    needed: [['model: dots for slashes', get('/v1.export')]],
  },
  {
    rule: 'a dash may be an underscore',
    ...flag('dashes'),
    needed: [['model: marks are underscores', get('/v1/daily-report')]],
  },
  {
    rule: 'a view is named with @@ or without',
    ...flag('views'),
    needed: [['model: @@ before a view', get('/v1/@@export')]],
  },
  {
    rule: 'each name of a list is looked up',
    ...flag('lists'),
    needed: [['model: lists of procedures', get('/v1/free,export')]],
  },
  {
    rule: 'a file is read whatever follows its name',
    ...flag('script'),
    needed: [['model: files with PATH_INFO', get('/v1/data.json/x')]],
  },
  {
    rule: 'the plain reading counts beside the compatibility form',
    file: 'domain/routing/fold.ts',
    text: 'addReadings(readings, text, kept, compatible === undefined ? folding',
    by: 'if (compatible === undefined) addReadings(readings, text, kept, compatible === undefined ? folding',
    needed: [
      ['express 5', get('/v1/reports/%ef%bc%8f')],
      ['fastify', get('/v1/reports/%e2%84%80')],
    ],
  },
  {
    rule: 'letters are compared by upper and by lower case',
    file: 'domain/routing/fold.ts',
    text: "    .replace(/[\\u0130\\u0131]/g, 'i')\n    .toUpperCase()\n",
    by: '',
    needed: [
      ['node:http, comparing upper case', get('/v1/ki%c3%9f/data')],
      ['model: simple lower case of Unicode', get('/v1/k%c4%b0ss/data')],
    ],
  },
  {
    rule: 'dot segments are refused',
    file: 'domain/routing/fold.ts',
    text: 'if (hasDotSegment(kept ? split(text) : text)) return refuse(DOTS);',
    by: '',
    needed: [
      ['hono', get('/free/../v1/export')],
      ['node:http, new URL', get('/free/%2e%2e/v1/export')],
      ['model: servlet container', get('/free/..;/v1/export')],
    ],
  },
  {
    rule: 'dot segments are refused before any delimiter',
    file: 'domain/routing/fold.ts',
    text: '(?:[;?#&][^/]*)?',
    by: '(?:;[^/]*)?',
    needed: [['node:http, decoded, before ?, normalised', get('/v1/export/x/..%3f')]],
  },
  {
    rule: 'dots between kept slashes are refused',
    file: 'domain/routing/fold.ts',
    text: 'if (hasDotSegment(kept ? split(text) : text)) return refuse(DOTS);',
    by: 'if (hasDotSegment(text)) return refuse(DOTS);',
    settings: { encodedSlashes: 'keep' },
    needed: [['node:http, normalised file path', get('/free/..%2fv1/export')]],
  },
  {
    rule: 'a kept slash is looked up as a slash too',
    file: 'domain/routing/fold.ts',
    text: '  if (!kept) return;',
    by: '  return;',
    settings: { encodedSlashes: 'keep' },
    needed: [['node:http, decodeURIComponent', get('/v1%2fexport')]],
  },
  {
    rule: 'a kept slash may be one where a kept backslash is none',
    file: 'domain/routing/fold.ts',
    text: "  addKeys(readings, text.replaceAll(KEPT_SLASH, '/'), folding);",
    by: '',
    settings: { encodedSlashes: 'keep' },
    needed: [['node:http, decodeURIComponent', get('/v1%2freports%2fa%5cb')]],
  },
  {
    rule: 'an encoded slash is refused',
    file: 'domain/routing/target.ts',
    text: "(byte === SLASH || byte === 0x5c) && encodedSlashes === 'refuse'",
    by: "(byte === 0x5c) && encodedSlashes === 'refuse'",
    needed: [],
  },
  {
    rule: 'a backslash is refused',
    file: 'domain/routing/target.ts',
    text: "if (flags & BACKSLASH && options.encodedSlashes === 'refuse') return refuse('the path holds a backslash');",
    by: '',
    needed: [],
  },
  {
    rule: 'double slashes are merged',
    file: 'domain/routing/target.ts',
    text: "options.doubleSlashes === 'merge' ? /\\/\\/+/g : /^\\/\\/+/",
    by: '/^$/',
    needed: [['node:http, new URL', get('//x/v1/export')]],
  },
  {
    rule: 'escapes of plain letters are decoded before matching',
    file: 'domain/routing/target.ts',
    text: "const spelling = SPELLING[byte] ?? '';",
    by: 'const spelling = raw.slice(i, i + 3);',
    needed: [],
  },
  {
    rule: 'a path that is encoded twice is refused',
    file: 'domain/routing/fold.ts',
    text: "if (text.includes('%') && HIDDEN_ESCAPE.test(text)) return refuse('the path is percent-encoded twice');",
    by: '',
    needed: [['model: path rewritten into a query', get('/v1/%2565xport')]],
  },
  {
    rule: 'encoded control characters are refused',
    file: 'domain/routing/target.ts',
    text: "if (byte < 0x20 || byte === 0x7f) return refuse('the path holds an encoded control character');",
    by: '',
    needed: [['model: segments trimmed', get('/v1/export%0a')]],
  },
  {
    rule: 'an absolute target must name the Host',
    file: 'domain/routing/target.ts',
    text: "if (authority === '' || authority.toLowerCase() !== line.host?.toLowerCase()) {",
    by: 'if (false) {',
    needed: [],
  },
  {
    rule: 'a fragment is refused',
    file: 'domain/routing/target.ts',
    text: 'table = new Uint8Array(256).fill(REFUSED)',
    by: 'table = new Uint8Array(256).fill(0)',
    needed: [
      ['hono', get('/v1/export#x')],
      ['node:http, new URL', get('/v1/export#x')],
    ],
  },
  {
    rule: 'where readings disagree the dearest price counts',
    file: 'domain/routing/resolve.ts',
    text: 'if (!read.some(isHigherPriced) && !others.some(isHigherPriced)) return',
    by: 'return',
    needed: [
      ['fastify', get('/v1/reports/OPEN')],
      ['hono', get('/v1/reports/open.')],
      ['h3 2', get('/v1/files/Public')],
    ],
  },
  {
    rule: 'the dearer of a path and its other name counts',
    file: 'domain/routing/resolve.ts',
    text: 'const named = active ? higherPricedOf(matcher, names, method, whole, priceOf) : names.flatMap(reached);',
    by: 'const named = active ? NO_ROUTES : names.flatMap(reached);',
    needed: [],
    dear: [
      [get('/v1/summaries/yearly.json'), '1.00'],
      [get('/v1/summaries/x,yearly'), '1.00'],
    ],
  },
  {
    rule: 'undeclared methods pay',
    file: 'domain/decide.ts',
    text: 'price(highestPriced, match.spelled, rules, question.request);',
    by: 'UNDECLARED;',
    needed: [
      ['node:http, before the query', draftOf('POST', '/v1/export')],
      ['hono, strict: false, all methods', draftOf('DELETE', '/v1/export')],
    ],
  },
  {
    rule: 'HEAD costs what GET costs',
    file: 'domain/routing/trie.ts',
    text: "method === 'HEAD' ? (this.methods.get('GET') ?? NO_METHOD) : NO_METHOD",
    by: 'NO_METHOD',
    settings: { undeclaredMethods: 'forward' },
    needed: [
      ['express 5', draftOf('HEAD', '/v1/export')],
      ['hono', draftOf('HEAD', '/v1/export')],
    ],
  },
  {
    rule: 'a wildcard covers its prefix',
    file: 'domain/routing/trie.ts',
    text: "return wildcards === 0 || typeof found === 'object'",
    by: "return at >= key.length || wildcards === 0 || typeof found === 'object'",
    needed: [['hono', get('/v1/files')]],
  },
  {
    rule: 'headers that name another path are dropped',
    file: 'gateway/headers.ts',
    text: '|| NAMES_A_TARGET.test(lower)',
    by: '',
    needed: [
      [
        'model: headers that rewrite the URL',
        draftOf('GET', '/free/x', {
          headers: [
            ['Host', 'localhost'],
            ['Connection', 'close'],
            ['X-Original-URL', '/v1/export'],
          ],
        }),
      ],
    ],
  },
  {
    rule: 'Host names a host and nothing else',
    file: 'gateway/headers.ts',
    text: '!isHost(host)',
    by: 'false',
    needed: [
      [
        'node:http, new URL with the Host',
        draftOf('GET', '/free/x', {
          headers: [
            ['Host', 'localhost/v1/export?'],
            ['Connection', 'close'],
          ],
        }),
      ],
    ],
  },
];
