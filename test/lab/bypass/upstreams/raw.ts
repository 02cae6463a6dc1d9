// Handlers on node:http without a framework, as people write them, from the strictest reading of a target to the loosest.
// None asks for the method. The models stand for families that the tests cannot install everywhere: what a servlet
// container, a Windows server, a front controller or a rewrite rule does to a path before anything of the user's runs.
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import path from 'node:path';
import { FREE_PATHS } from '../routes.ts';
import { fromListener, type UpstreamSpec } from '../upstream.ts';

type Read = (req: IncomingMessage) => string;
type Judge = (path: string) => boolean;

/** The suite's routes on a decoded path, letter by letter. */
export function isPaid(at: string): boolean {
  if (at === '/v1/reports/open' || at === '/v1/files/public') return false;
  return (
    at === '/v1/export' ||
    /^\/v1\/reports\/[^/]+$/.test(at) ||
    at.startsWith('/v1/files/') ||
    /^\/v1\/teams\/[^/]+\/jobs\/[^/]+$/.test(at) ||
    at === '/v1/Kiss/Data' ||
    at === '/v1/daily_report' ||
    at === '/v1/my report' ||
    at === '/v1/my%20report'
  );
}

/** The same where letter case does not count: `fold` is how this upstream compares. */
function ignoringCase(fold: (text: string) => string): Judge {
  const exact = new Set(['/v1/export', '/v1/Kiss/Data', '/v1/my report'].map(fold));
  const free = new Set(FREE_PATHS.map(fold));
  const [reports = '', files = '', teams = '', jobs = ''] = ['/v1/reports/', '/v1/files/', '/v1/teams/', '/jobs/'].map(
    fold,
  );
  return (at) => {
    const folded = fold(at);
    if (free.has(folded)) return false;
    if (exact.has(folded) || folded.startsWith(files)) return true;
    if (folded.startsWith(reports)) return /^[^/]+$/.test(folded.slice(reports.length));
    const [team = '', job = '', ...more] = folded.startsWith(teams) ? folded.slice(teams.length).split(jobs) : [];
    return more.length === 0 && /^[^/]+$/.test(team) && /^[^/]+$/.test(job);
  };
}

function raw(name: string, read: Read, judge: Judge = isPaid): UpstreamSpec {
  return fromListener(name, undefined, (ran): RequestListener => (req: IncomingMessage, res: ServerResponse) => {
    req.resume();
    let body = 'free';
    try {
      if (judge(read(req))) body = ran();
    } catch {
      res.statusCode = 400;
    }
    res.end(body);
  });
}

const target: Read = (req) => req.url ?? '';
const beforeQuery: Read = (req) => target(req).split('?', 1)[0] ?? '';
const decoded: Read = (req) => decodeURIComponent(beforeQuery(req));
const url: Read = (req) => new URL(target(req), 'http://api').pathname;

/** Path parameters are cut off each segment, then dots are resolved. */
const servlet: Read = (req) => {
  const bare = beforeQuery(req).replace(/;[^/]*/g, '');
  return path.posix.normalize(decodeURIComponent(bare));
};

const windows: Read = (req) =>
  path.posix
    .normalize(decoded(req).replaceAll('\\', '/'))
    .split('/')
    .map((segment) => segment.replace(/[. ]+$/, ''))
    .join('/');

const trimmed: Read = (req) =>
  `/${decoded(req)
    .split('/')
    .map((segment) => segment.trim())
    .filter((segment) => segment !== '')
    .join('/')}`;

/** `RewriteRule ^(.*)$ index.php?url=$1`: what was a path becomes part of a query, and is decoded as one. */
const rewritten: Read = (req) => {
  const inside = new URLSearchParams(`url=${decoded(req).slice(1)}`).get('url') ?? '';
  return `/${inside.replace(/^\/+|[/ ]+$/g, '')}`;
};

/** PATH_INFO of a front controller, which is the path after the script's own name where that is written out. */
const pathInfo: Read = (req) => decoded(req).replace(/^.*?\.php(?=\/)/, '');

/** Endpoints that are files: a script runs whatever follows its name, and its suffix may be left out. */
const scripts: Read = (req) => {
  const at = decoded(req);
  const script = /^(.*?)\.php(?:\/.*)?$/.exec(at);
  return script?.[1] ?? at;
};

const suffixed: Read = (req) => decoded(req).replace(/\.[A-Za-z0-9]+$/, '');
const emptySegments: Judge = (at) =>
  isPaid(at) || at === '/v1/reports/' || /^\/v1\/teams\/[^/]*\/jobs\/[^/]*$/.test(at);

/** Frameworks of old that believe a header before the request line. */
const headers: Read = (req) => {
  const { headers: sent } = req;
  const named = [
    'x-original-url',
    'x-rewrite-url',
    'x-forwarded-uri',
    'x-original-uri',
    'x-forwarded-path',
    'x-matched-path',
    'x-ms-original-url',
    'x-original-path',
    'x-rewrite-uri',
    'x-real-url',
    'x-override-url',
    'path-info',
    'x-path-info',
  ]
    .map((name) => sent[name])
    .find((value) => typeof value === 'string');
  return typeof named === 'string' ? (named.split('?', 1)[0] ?? '') : beforeQuery(req);
};

/** Next's and SvelteKit's. */
const pageData: Read = (req) => {
  const at = decoded(req);
  const next = /^\/_next\/data\/[^/]+(\/.*)\.json$/.exec(at);
  return next?.[1] ?? at.replace(/(?:\.html|\/)__data\.json$/, '').replace(/\.segments\/.*$/, '');
};
/** moleculer's actions; connect's mounts end at a dot too. */
const dotted: Read = (req) => decoded(req).replace(/\./g, '/');
/** CherryPy's handlers: every mark is an underscore, and `index` is the folder's own. */
const marked: Read = (req) => decoded(req).replace(/[!-.:-@[-`{-~]/g, '_');
const indexed: Read = (req) => decoded(req).replace(/\/index(?:\.[a-z]+)?$/, '');
const views: Read = (req) =>
  decoded(req)
    .replace(/\/@@/g, '/')
    .replace(/(?<=.)\/$/, '');
/** tRPC's batches: any of the names is enough. */
const lists = (req: IncomingMessage): string => {
  const at = decoded(req);
  const folder = at.slice(0, at.lastIndexOf('/') + 1);
  const names = at.slice(folder.length).split(',');
  return names.map((name) => folder + name).find((name) => isPaid(name)) ?? at;
};
/** Static files of lighttpd: what follows the name of one is its PATH_INFO. */
const files: Read = (req) => decoded(req).replace(/(\.(?:json|html|txt))\/.*$/, '$1');

const upper = (text: string): string => text.toUpperCase();
const lower = (text: string): string => text.toLowerCase();
/** Unicode simple lower case, letter by letter, as Go has it: the dotted capital I becomes a plain i. */
const simpleLower = (text: string): string => lower(text.replaceAll('\u0130', 'i'));
const compatible = (text: string): string => lower(text.normalize('NFKC'));

export const RAW: readonly UpstreamSpec[] = [
  raw('node:http, string match', target, (at) => isPaid(at) && !FREE_PATHS.some((free) => at.startsWith(free))),
  raw('node:http, before the query', beforeQuery),
  raw('node:http, decodeURIComponent', decoded),
  raw(
    'node:http, decodeURIComponent, then before ? and #',
    (req) => decodeURIComponent(target(req)).split(/[?#]/, 1)[0] ?? '',
  ),
  raw('node:http, new URL', url),
  raw('node:http, new URL with the Host', (req) => new URL(`http://${req.headers.host}${target(req)}`).pathname),
  raw('node:http, new URL and decodeURIComponent', (req) => decodeURIComponent(url(req))),
  raw('node:http, normalised file path', (req) => path.posix.normalize(decoded(req))),
  raw('node:http, decoded, before ?, normalised', (req) => path.posix.normalize(decoded(req).split('?', 1)[0] ?? '')),
  raw('node:http, segments without the empty ones', (req) => `/${decoded(req).split('/').filter(Boolean).join('/')}`),
  raw('node:http, parameters may be empty', decoded, emptySegments),
  raw('node:http, comparing lower case', decoded, ignoringCase(lower)),
  raw('node:http, comparing upper case', decoded, ignoringCase(upper)),
  raw('node:http, plus is a space', (req) => decodeURIComponent(beforeQuery(req).replaceAll('+', ' '))),
  raw('model: simple lower case of Unicode', decoded, ignoringCase(simpleLower)),
  raw('model: compatibility forms', decoded, ignoringCase(compatible)),
  raw('model: segments trimmed', trimmed),
  raw('model: servlet container', servlet),
  raw('model: Windows server', windows, ignoringCase(lower)),
  raw('model: format suffixes', suffixed),
  raw('model: path rewritten into a query', rewritten),
  raw('model: front controller with PATH_INFO', pathInfo),
  raw('model: scripts as endpoints', scripts),
  raw('model: headers that rewrite the URL', headers),
  raw('model: page data', pageData),
  raw('model: dots for slashes', dotted),
  raw('model: marks are underscores', marked),
  raw('model: index of a folder', indexed),
  raw('model: @@ before a view', views),
  raw('model: lists of procedures', lists),
  raw('model: files with PATH_INFO', files, (at) => isPaid(at) || at === '/v1/data.json'),
];
