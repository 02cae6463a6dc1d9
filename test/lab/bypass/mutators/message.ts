// What can be changed about a request beside its path: method, authority, version, headers, framing, company. Most ask one
// question: does anything behind the proxy take another target, another method or another request out of these bytes?
import { bytesOf, draftOf, HOST, type Draft } from '../draft.ts';
import type { Rng } from '../../../support/random.ts';
import { BASES } from '../routes.ts';

export type MessageMutator = (draft: Draft, rng: Rng) => Draft;

const METHODS = [
  'HEAD',
  'OPTIONS',
  'POST',
  'PUT',
  'PATCH',
  'DELETE',
  'GET',
  'QUERY',
  'PROPFIND',
  'TRACE',
  'CONNECT',
  'PURGE',
  'M-SEARCH',
  'SOURCE',
  'get',
  'Get',
  'FOO',
  'GET\t',
  'G%45T',
  'SEARCH',
  'LINK',
  'REPORT',
] as const;

const VERSIONS = [
  ' HTTP/1.0',
  ' HTTP/1.1',
  '',
  ' HTTP/2.0',
  ' HTTP/1.2',
  ' HTTP/0.9',
  ' RTSP/1.0',
  ' http/1.1',
  ' HTTP/01.1',
  '  HTTP/1.1',
  ' HTTP/1.1 ',
  '\tHTTP/1.1',
  ' HTTP/3.0',
  ' x HTTP/1.1',
  ' ICE/1.0',
] as const;

const ABSOLUTE = [
  `http://${HOST}`,
  `HTTP://${HOST}`,
  'http://LOCALHOST',
  `http://${HOST}:80`,
  `http://${HOST}:`,
  'http://evil.example',
  `http://a@${HOST}`,
  `http://a:b@${HOST}`,
  `https://${HOST}`,
  `ftp://${HOST}`,
  'http:/',
  'http:',
  'http://',
  `//${HOST}`,
  `http://${HOST}\\`,
  `http://${HOST}?`,
  `http://${HOST}#`,
  'http:///',
  `ws://${HOST}`,
  `http://${HOST}/free/..`,
  `http://${HOST}//`,
  `http://${HOST};x`,
  `http://${HOST}%2f`,
  `http:\\\\${HOST}`,
  `http://${HOST}/%2e%2e`,
  `file://`,
  `javascript:`,
  `http://${HOST}.`,
  HOST,
  'http://[::1]',
  `http://${HOST}@evil.example`,
  `http://evil.example@${HOST}`,
  `http://${HOST} `,
] as const;

/** Header names that some server, framework or plugin takes a path from. */
const REWRITES = [
  'X-Original-URL',
  'X-Rewrite-URL',
  'X-Original-URI',
  'X-Forwarded-Uri',
  'X-Forwarded-Path',
  'X-Forwarded-Prefix',
  'X-Script-Name',
  'SCRIPT_NAME',
  'Script-Name',
  'PATH_INFO',
  'Path-Info',
  'REQUEST_URI',
  'Request-Uri',
  'X-Waws-Unencoded-Url',
  'X-Envoy-Original-Path',
  'X-Matched-Path',
  'X-Invoke-Path',
  'X-Middleware-Rewrite',
  'X-Proxy-Url',
  'Base-Url',
  'Destination',
  'X-Original_URL',
  'X.Original.URL',
  'X-HTTP-Path-Override',
  'X-Ingress-Path',
  ':path',
  'X-Forwarded-Host',
  'Forwarded',
  'X-Host',
  'X-Override-URL',
  'Client-Request-Uri',
  'Uri',
  'Url',
  'X-Url',
  'X-Path',
  'X-Uri',
  'X-Accel-Redirect',
  'X-Sendfile',
  'Location',
  'Referer',
  'X-Arr-Log-Id',
  'X-Now-Route-Matches',
  'X-MS-Original-URL',
  'X-Original-Path',
  'X-Rewrite-Uri',
  'X-Real-Url',
  'X-Path-Info',
  'X-Sendfile-Type',
  'X-Accel-Mapping',
] as const;

const OVERRIDES = [
  'X-HTTP-Method-Override',
  'X-HTTP-Method',
  'X-Method-Override',
  'X_HTTP_METHOD_OVERRIDE',
  'X-Http-Method_Override',
  'X-Original-Method',
  'X-Forwarded-Method',
  '_method',
] as const;

const HOSTS = [
  '',
  'localhost:80',
  'LOCALHOST',
  'localhost/v1/export',
  'localhost/v1/export?',
  'localhost/v1/export#',
  'localhost?',
  'localhost#',
  'localhost\\v1\\export',
  'a@localhost',
  'localhost, evil',
  'localhost ',
  '[::1]',
  '[::1]/v1/export?',
  'localhost:99999',
  'localhost:8x',
  'evil.example',
  'localhost%2fv1',
  'localhost;x',
  '.',
  '..',
  '../v1/export?',
  'x/..',
  'local\thost',
  'localhost:80/v1/export?',
  '\xff',
  'localhost%3f',
  '*',
  'localhost:/v1/export?',
] as const;

function withHeaders(draft: Draft, ...more: readonly (readonly [string, string])[]): Draft {
  return { ...draft, headers: [...draft.headers, ...more] };
}

function setHeader(draft: Draft, name: string, value: string): Draft {
  const others = draft.headers.filter(([known]) => known.toLowerCase() !== name.toLowerCase());
  return { ...draft, headers: [...others, [name, value]] };
}

/** A whole request for something protected, to be hidden in another one. */
function embedded(rng: Rng): string {
  const { method, path } = rng.pick(BASES);
  return bytesOf(draftOf(method, path)).toString('latin1');
}

function chunked(body: string, rng: Rng): string {
  const size = body.length.toString(16);
  const extension = rng.pick(['', '', ';x=y', ' ', ';\n', ';x="\r\n"']);
  return `${size}${extension}\r\n${body}\r\n0\r\n${rng.pick(['', '', 'X-Trailer: x\r\n', 'Host: x\r\n'])}\r\n`;
}

const elsewhere = (draft: Draft, rng: Rng): Draft => ({
  ...draft,
  method: rng.chance(0.7) ? 'GET' : draft.method,
  target: rng.pick(['/free/x', '/', '/free/', '/v1/reports/open', '/v1/status']),
});

export const MESSAGE_MUTATORS: Readonly<Record<string, MessageMutator>> = {
  'another method': (draft, rng) => ({ ...draft, method: rng.pick(METHODS) }),
  'a preflight': (draft) =>
    withHeaders(
      { ...draft, method: 'OPTIONS' },
      ['Origin', 'https://app.example.com'],
      ['Access-Control-Request-Method', 'GET'],
    ),
  'another version': (draft, rng) => ({ ...draft, version: rng.pick(VERSIONS) }),
  'an absolute target': (draft, rng) => ({ ...draft, target: rng.pick(ABSOLUTE) + draft.target }),
  'bytes around the target': (draft, rng) => ({
    ...draft,
    target: rng.pick([' ', '\t', '  ', '\x00', '\r', '\n', '\x0b']) + draft.target + rng.pick(['', ' ', '\t', '\r']),
  }),
  'another Host': (draft, rng) => setHeader(draft, 'Host', rng.pick(HOSTS)),
  'two Hosts': (draft, rng) => withHeaders(draft, ['Host', rng.pick(HOSTS)]),
  'no Host': (draft) => ({ ...draft, headers: draft.headers.filter(([name]) => name !== 'Host') }),
  'a path in a header': (draft, rng) => withHeaders(elsewhere(draft, rng), [rng.pick(REWRITES), draft.target]),
  'a stripped prefix in a header': (draft, rng) =>
    withHeaders({ ...draft, target: `/free${draft.target}` }, [rng.pick(REWRITES), '/free']),
  'a method in a header': (draft, rng) =>
    withHeaders({ ...draft, method: rng.pick(['POST', 'PUT', 'HEAD', 'OPTIONS']) }, [
      rng.pick(OVERRIDES),
      draft.method,
    ]),
  'a method in a form': (draft, rng) => {
    const body = `_method=${rng.pick([draft.method, draft.method.toLowerCase()])}`;
    return {
      ...withHeaders(
        { ...draft, method: 'POST' },
        ['Content-Type', 'application/x-www-form-urlencoded'],
        ['Content-Length', String(body.length)],
      ),
      body,
    };
  },
  'an upgrade': (draft, rng) =>
    withHeaders(
      setHeader(draft, 'Connection', rng.pick(['Upgrade', 'upgrade, close', 'close, Upgrade, HTTP2-Settings'])),
      ['Upgrade', rng.pick(['websocket', 'h2c', 'TLS/1.0', 'WebSocket', 'foo'])],
      ['Sec-WebSocket-Key', 'dGhlIHNhbXBsZSBub25jZQ=='],
      ['Sec-WebSocket-Version', '13'],
      ['HTTP2-Settings', 'AAMAAABkAAQAAP__'],
    ),
  'an upgrade with a request behind it': (draft, rng) => {
    const after = embedded(rng);
    return {
      ...withHeaders(
        setHeader(elsewhere(draft, rng), 'Connection', 'Upgrade'),
        ['Upgrade', rng.pick(['websocket', 'h2c'])],
        ['Content-Length', rng.pick(['0', String(after.length)])],
      ),
      after,
    };
  },
  'an Expect': (draft, rng) =>
    withHeaders(draft, ['Expect', rng.pick(['100-continue', '100-Continue', 'foo', '100-continue, x', ''])]),
  'another Connection': (draft, rng) =>
    setHeader(
      draft,
      'Connection',
      rng.pick([
        'close, Host',
        'close, Content-Length',
        'close, Transfer-Encoding',
        'close, Tollgate-Charge-Id',
        'close, X-Original-URL',
        'Close',
        'close, close',
        '',
        'keep-alive',
        'close, te, trailer',
      ]),
    ),
  'a body with a request in it': (draft, rng) => {
    const body = embedded(rng);
    return {
      ...withHeaders({ ...elsewhere(draft, rng), method: rng.pick(['GET', 'POST', 'DELETE', 'PUT', 'OPTIONS']) }, [
        'Content-Length',
        String(body.length),
      ]),
      body,
    };
  },
  'a chunked body with a request in it': (draft, rng) => ({
    ...withHeaders({ ...elsewhere(draft, rng), method: rng.pick(['GET', 'POST', 'DELETE', 'OPTIONS', 'HEAD']) }, [
      'Transfer-Encoding',
      rng.pick(['chunked', 'Chunked', 'chunked ', 'gzip, chunked', 'chunked, identity', 'xchunked', '\tchunked']),
    ]),
    body: chunked(embedded(rng), rng),
  }),
  'two framings': (draft, rng) => {
    const after = embedded(rng);
    const lengths: [string, string][] = rng.pick([
      [
        ['Content-Length', '0'],
        ['Content-Length', String(after.length)],
      ],
      [
        ['Content-Length', '5'],
        ['Transfer-Encoding', 'chunked'],
      ],
      [
        ['Transfer-Encoding', 'chunked'],
        ['Content-Length', String(after.length + 5)],
      ],
      [['Content-Length', '+0']],
      [['Content-Length', '0 ']],
      [['Content-Length', '0, 0']],
      [['Content_Length', String(after.length)]],
      [
        ['Transfer_Encoding', 'chunked'],
        ['Content-Length', '5'],
      ],
      [['Content-Length', '-1']],
      [['Content-Length', '0x0']],
    ]);
    return {
      ...withHeaders(
        { ...elsewhere(draft, rng), method: 'POST', version: rng.pick([' HTTP/1.1', ' HTTP/1.0']) },
        ...lengths,
      ),
      body: '0\r\n\r\n',
      after,
    };
  },
  'a request before it': (draft, rng) => ({
    ...draft,
    before: rng.pick([
      '\r\n',
      '\r\n\r\n',
      `GET /free/first HTTP/1.1\r\nHost: ${HOST}\r\n\r\n`,
      `HEAD /free/first HTTP/1.1\r\nHost: ${HOST}\r\n\r\n`,
      `POST /free/first HTTP/1.1\r\nHost: ${HOST}\r\nContent-Length: 3\r\n\r\nabc`,
      'GET /free/old\r\n',
      '\n',
      'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n',
    ]),
  }),
  'a request after it': (draft, rng) => ({
    ...setHeader(elsewhere(draft, rng), 'Connection', 'keep-alive'),
    after: embedded(rng),
  }),
  'odd header lines': (draft, rng) =>
    withHeaders(
      draft,
      rng.pick<readonly [string, string]>([
        [' X-Folded', 'x'],
        ['X-A', 'b\r\n folded'],
        ['X-A ', 'b'],
        ['X-A', 'b\nX-Original-URL: /v1/export'],
        ['', 'empty name'],
        ['X-A', 'b\r\n\r\nGET /v1/export HTTP/1.1\r\nHost: localhost\r\n\r\n'],
        ['X-A', '\x00'],
        ['Host ', 'localhost'],
      ]),
    ),
  'something that looks like a payment': (draft, rng) =>
    withHeaders(draft, [
      rng.pick(['PAYMENT-SIGNATURE', 'X-PAYMENT', 'Payment-Signature', 'Tollgate-Charge-Id', 'Tollgate_Charge_Id']),
      rng.pick(['e30=', 'x', '', 'chg_0', 'eyJ4NDAyVmVyc2lvbiI6Mn0=']),
    ]),
  'a customer': (draft) =>
    withHeaders(draft, ['X-Customer-Id', 'somebody'], ['X-Forwarded-For', '127.0.0.1'], ['X-Forwarded-Proto', 'https']),
  'other writes': (draft, rng) => ({ ...draft, writes: rng.pick(['pieces', 'pieces', 'bytes']) }),
};
