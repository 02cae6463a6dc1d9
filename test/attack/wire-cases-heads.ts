// Request lines, header lines and hosts that two readers could read in two ways.
import { FREE, HIDDEN, HOST, lacks, PAID, POST, wire } from './wire-case.ts';
import type { WireCase } from './wire-case.ts';

const LINES: readonly WireCase[] = [
  wire('a line end in front', `\r\n${FREE}\r\n`, '200'),
  wire('many line ends in front', `${'\r\n'.repeat(20)}${FREE}\r\n`, '200'),
  wire('a line end behind a body', `${POST}Content-Length: 5\r\n\r\nhello\r\n${FREE}\r\n`, '200 200'),
  wire('a space in front', ` ${FREE}\r\n`, '400|501!'),
  wire('a tab in front', `\t${FREE}\r\n`, '400|501!'),
  wire('a NUL in front', `\0${FREE}\r\n`, '400|501!'),
  wire('a byte order mark in front', `\xef\xbb\xbf${FREE}\r\n`, '400|501!'),
  wire('TLS', '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03'.padEnd(200, 'x'), '400|501!'),
  wire('a PROXY line in front', `PROXY TCP4 6.6.6.6 127.0.0.1 1 2\r\n${HIDDEN}`, '400|501!'),
  wire('tabs between the parts', `GET\t/free/@@@@@@@@\tHTTP/1.1\r\n${HOST}\r\n`, '400|501!'),
  wire('no space before the target', `GET/free/@@@@@@@@ HTTP/1.1\r\n${HOST}\r\n`, '400|501!'),
  wire('a space behind the version', `GET /free/@@@@@@@@ HTTP/1.1 \r\n${HOST}\r\n`, '400!'),
  wire('a word behind the version', `GET /free/@@@@@@@@ HTTP/1.1 x\r\n${HOST}\r\n`, '400!'),
  wire('two targets', `GET /free/@@@@@@@@ /v1/export HTTP/1.1\r\n${HOST}\r\n`, '400!'),
  wire('two versions', `GET /free/@@@@@@@@ HTTP/1.1 HTTP/1.1\r\n${HOST}\r\n`, '400!'),
  wire('a request line that ends without CR', `GET /free/@@@@@@@@ HTTP/1.1\n${HOST}\r\n`, '400!'),
  wire('a request line that ends without LF', `GET /free/@@@@@@@@ HTTP/1.1\r${HOST}\r\n`, '400!'),
  wire('nothing but LF', 'GET /v1/export HTTP/1.1\nHost: api.example.com\n\n', '400!'),
  wire('HTTP/0.9', 'GET /v1/export\r\n\r\n', '505|400!'),
  wire('HTTP/0.9 on a free path', 'GET /free/@@@@@@@@\r\n\r\n', '505|400!'),
  wire('HTTP/0.9 written out', `GET /v1/export HTTP/0.9\r\n${HOST}\r\n`, '505!'),
  wire('HTTP/2.0', `GET /v1/export HTTP/2.0\r\n${HOST}\r\n`, '505!'),
  wire('HTTP/2.0 on a free path', `GET /free/@@@@@@@@ HTTP/2.0\r\n${HOST}\r\n`, '505!'),
  ...[
    'HTTP/1.2',
    'HTTP/3.0',
    'HTTP/1',
    'HTTP/1.10',
    'HTTP/01.1',
    'HTTP/1.1.1',
    'HTTP/1,1',
    'HTTP/-1.1',
    'HTTP/',
    'HTTPS/1.1',
    'http/1.1',
    'Http/1.1',
    'HTTP /1.1',
    'FTP/1.1',
    'x',
  ].map((version) => wire(`the version ${version}`, `GET /free/@@@@@@@@ ${version}\r\n${HOST}\r\n`, '505|400!')),
  // Node's parser does not say that this was RTSP: it is handled as the HTTP/1.0 request that it would be.
  wire('RTSP', `GET /v1/export RTSP/1.0\r\n${HOST}\r\n`, '505|402|400!'),
  wire('a method of RTSP', `DESCRIBE /v1/export RTSP/1.0\r\n${HOST}\r\n`, '505|501|400!'),
  wire('ICE', `SOURCE /v1/export ICE/1.0\r\n${HOST}\r\n`, '505|501|400!'),
  wire('the preface of HTTP/2', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', '400|505!'),
  wire('the preface of HTTP/2 and a request', `PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n${HIDDEN}`, '400|505!'),
  wire('CONNECT to a host', `CONNECT api.example.com:443 HTTP/1.1\r\n${HOST}\r\n`, '501!'),
  wire('CONNECT to a path', `CONNECT /v1/export HTTP/1.1\r\n${HOST}\r\n`, '400|501!'),
  wire('CONNECT and a request behind it', `CONNECT api.example.com:443 HTTP/1.1\r\n${HOST}\r\n${HIDDEN}`, '501!'),
  wire('TRACE', `TRACE /free/@@@@@@@@ HTTP/1.1\r\n${HOST}\r\n`, '501'),
  wire('TRACE with a body', `TRACE /free/@@@@@@@@ HTTP/1.1\r\n${HOST}Content-Length: 5\r\n\r\nhello`, '501|400?'),
  ...['PROPFIND', 'QUERY', 'PURGE', 'SEARCH', 'LINK', 'M-SEARCH', 'REPORT'].map((method) =>
    wire(`the method ${method}`, `${method} /free/@@@@@@@@ HTTP/1.1\r\n${HOST}\r\n`, '501'),
  ),
  ...['FOO', 'TRACK', 'get', 'Get', 'GETS', 'G'.repeat(40)].map((method) =>
    wire(`the method ${method}`, `${method} /v1/export HTTP/1.1\r\n${HOST}\r\n`, '501|400!'),
  ),
  ...['GE T', 'GET\0', 'G\xcbT', 'GET(', 'G"T'].map((method) =>
    wire(`the method ${JSON.stringify(method)}`, `${method} /v1/export HTTP/1.1\r\n${HOST}\r\n`, '400|501!'),
  ),
  ...[
    'free/a',
    '.',
    '?x',
    'a:b',
    '\\free',
    '/free/\xe9',
    '/free/@@@@@@@@\x7f',
    '/free/@@@@@@@@\0',
    '/free/@@@@@@@@ b',
  ].map((target) =>
    wire(`the target ${JSON.stringify(target)}`, `GET ${target} HTTP/1.1\r\n${HOST}\r\n`, '400', { open: true }),
  ),
  ...['/v1/export#', '/v1/export?', '/v1/export?x=/free/', '/v1//export', '/V1/Export', '/v1/export/'].map((target) =>
    wire(`the target ${target}`, `GET ${target} HTTP/1.1\r\n${HOST}\r\n`, '402|400'),
  ),
  wire('* with GET', `GET * HTTP/1.1\r\n${HOST}\r\n`, '400'),
  wire('OPTIONS *', `OPTIONS * HTTP/1.1\r\n${HOST}\r\n`, '200|204|400', { upstream: 0 }),
  wire('an absolute target of the same host', `GET http://api.example.com/v1/export HTTP/1.1\r\n${HOST}\r\n`, '402'),
  wire(
    'an absolute free target of the same host',
    `GET http://api.example.com/free/@@@@@@@@ HTTP/1.1\r\n${HOST}\r\n`,
    '200',
  ),
  wire('an absolute target in capitals', `GET HTTP://API.EXAMPLE.COM/v1/export HTTP/1.1\r\n${HOST}\r\n`, '402'),
  ...[
    'http://evil.example/free/@@@@@@@@',
    'http://a@api.example.com/free/@@@@@@@@',
    'ftp://api.example.com/free/@@@@@@@@',
    'http:///free/@@@@@@@@',
    'http://api.example.com:81/free/@@@@@@@@',
    'ws://api.example.com/free/@@@@@@@@',
    'javascript://api.example.com/free/@@@@@@@@',
  ].map((target) => wire(`the absolute target ${target}`, `GET ${target} HTTP/1.1\r\n${HOST}\r\n`, '400|421?')),
  wire('a target one byte over the limit', `GET /free/@@@@@@@@${'a'.repeat(8179)} HTTP/1.1\r\n${HOST}\r\n`, '414'),
  wire('a target at the limit', `GET /free/@@@@@@@@${'a'.repeat(8178)} HTTP/1.1\r\n${HOST}\r\n`, '200', {
    wrong: ({ target }) => (target.length === 8192 ? undefined : target),
  }),
  wire(
    'a target longer than all headers may be',
    `GET /free/${'a'.repeat(40_000)} HTTP/1.1\r\n${HOST}\r\n`,
    '414|431!',
  ),
  wire('more headers than the limit', `${FREE}X-A: ${'a'.repeat(40_000)}\r\n\r\n`, '431!'),
];

/** Well-formed lines around a line that is not. */
const badLine = (name: string, line: string): WireCase =>
  wire(name, `${FREE}X-A: b\r\n${line}\r\nX-B: c\r\n\r\n`, '400!');

/** So many that a parser might drop what comes after them: refused, far below the limit in bytes. */
const MANY = 'a:\r\n'.repeat(1200);

const HEADERS: readonly WireCase[] = [
  badLine('a NUL in a value', 'X-C: b\0c'),
  badLine('a bare CR in a value', 'X-C: b\rX-D: c'),
  badLine('a bare LF in a value', 'X-C: b\nX-D: c'),
  badLine('a DEL in a value', 'X-C: b\x7f'),
  badLine('a vertical tab in a value', 'X-C: b\x0bc'),
  badLine('a form feed in a value', 'X-C: b\x0cc'),
  badLine('an escape in a value', 'X-C: \x1b[31m'),
  badLine('a backspace in a value', 'X-C: b\x08'),
  badLine('no colon', 'X-C'),
  badLine('nothing but a colon', ':'),
  badLine('an empty name', ': b'),
  badLine('a space before a name', ' X-C: b'),
  badLine('a tab before a name', '\tX-C: b'),
  badLine('a space before the colon', 'X-C : b'),
  badLine('a tab before the colon', 'X-C\t: b'),
  badLine('a space in a name', 'X C: b'),
  badLine('a NUL in a name', 'X\0C: b'),
  badLine('a byte from 0x80 in a name', 'X-\xe9: b'),
  badLine('a bracket in a name', 'X(C): b'),
  badLine('a quote in a name', '"X-C": b'),
  badLine('a slash in a name', 'X/C: b'),
  badLine('an at sign in a name', 'X@C: b'),
  badLine('a comma in a name', 'X,C: b'),
  badLine('a semicolon in a name', 'X;C: b'),
  badLine('a bracket at the start of a name', '[X-C]: b'),
  badLine('a request line among the headers', 'GET /v1/export HTTP/1.1'),
  badLine('a folded header', 'X-C: b\r\n c'),
  badLine('a header folded by a tab', 'X-C: b\r\n\tc'),
  wire('a first header that is folded', `GET /free/@@@@@@@@ HTTP/1.1\r\n ${HOST}\r\n`, '400!'),
  wire('a header that ends without CR', `${FREE}X-A: b\nX-B: c\r\n\r\n`, '400!'),
  wire('an empty line without CR', `${FREE}X-A: b\r\n\n${HIDDEN}`, '400!'),
  wire('an empty line without LF', `${FREE}X-A: b\r\n\r${HIDDEN}`, '400!'),
  wire('a value of nothing', `${FREE}X-A:\r\n\r\n`, '200'),
  wire('a value of white space', `${FREE}X-A: \t \r\n\r\n`, '200'),
  wire('a value with a tab and bytes from 0x80', `${FREE}X-A: b\tc\xff\r\n\r\n`, '200', {
    wrong: (seen) =>
      seen.headers.some(([name, value]) => name === 'X-A' && value === 'b\tc\xff') ? undefined : 'changed',
  }),
  wire('names that CGI reads as others', `${FREE}X_Forwarded_For: 6.6.6.6\r\nX.Real.IP: 6.6.6.6\r\n\r\n`, '200', {
    wrong: lacks('x_forwarded_for', 'x.real.ip'),
  }),
  wire('a header called __proto__', `${FREE}__proto__: x\r\nconstructor: y\r\nprototype: z\r\n\r\n`, '200', {
    wrong: lacks('__proto__'),
  }),
  wire('four hundred headers', `${FREE}${'X-A: b\r\n'.repeat(400)}\r\n`, '200', {
    wrong: (seen) => (seen.headers.filter(([name]) => name === 'X-A').length === 400 ? undefined : 'some are gone'),
  }),
  wire('a length behind many headers', `${POST}${MANY}Content-Length: 5\r\n\r\nhello`, '431!'),
  wire('a second Host behind many headers', `${FREE}${MANY}Host: evil.example\r\n\r\n`, '431!'),
  wire(
    'a foreign coding behind many headers',
    `${POST}${MANY}Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n`,
    '431!',
  ),
  wire(
    'two payments around many headers',
    `${PAID}PAYMENT-SIGNATURE: YWFh\r\n${MANY}PAYMENT-SIGNATURE: YmJi\r\n\r\n`,
    '431!',
  ),
];

const host = (name: string, lines: string, expected = '400'): WireCase =>
  wire(`a Host that is ${name}`, `GET /free/@@@@@@@@ HTTP/1.1\r\n${lines}\r\n`, expected);

const HOSTS: readonly WireCase[] = [
  wire('no Host', 'GET /free/@@@@@@@@ HTTP/1.1\r\nX-A: b\r\n\r\n', '400!'),
  wire('no header at all', 'GET /free/@@@@@@@@ HTTP/1.1\r\n\r\n', '400!'),
  wire('no Host on HTTP/1.0', 'GET /free/@@@@@@@@ HTTP/1.0\r\n\r\n', '200!'),
  wire('two Hosts', `${FREE}Host: evil.example\r\n\r\n`, '400'),
  wire('two equal Hosts', `${FREE}${HOST}\r\n`, '400'),
  wire('two Hosts on HTTP/1.0', `GET /free/@@@@@@@@ HTTP/1.0\r\n${HOST}Host: evil.example\r\n\r\n`, '400!'),
  wire('two Hosts around a thousand bytes', `${FREE}X-A: ${'a'.repeat(1000)}\r\nhOST: evil.example\r\n\r\n`, '400'),
  host('empty', 'Host:\r\n'),
  host('white space', 'Host:  \t\r\n'),
  host('a list', 'Host: a, b\r\n'),
  host('two words', 'Host: a b\r\n'),
  host('a tab between two words', 'Host: a\tb\r\n'),
  host('a path', 'Host: a/b\r\n'),
  host('a user', 'Host: a@b\r\n'),
  host('a query', 'Host: a?b\r\n'),
  host('a fragment', 'Host: a#b\r\n'),
  host('a backslash', 'Host: a\\b\r\n'),
  host('a URL', 'Host: http://a\r\n'),
  host('a port of letters', 'Host: a:b\r\n'),
  host('a port of six digits', 'Host: a:123456\r\n'),
  host('two ports', 'Host: a:1:2\r\n'),
  host('a bracket without its other', 'Host: [::1\r\n'),
  host('escaped', 'Host: a%00b\r\n'),
  host('letters outside ASCII', 'Host: \xe4.example\r\n'),
  host('a quote', 'Host: "a"\r\n'),
  host('longer than names are', `Host: ${'a'.repeat(300)}\r\n`),
  host('an address with a port', 'Host: [::1]:8080\r\n', '200'),
  host('a name with a port', 'Host: api.example.com:8080\r\n', '200'),
  wire('a Host with a space before its colon', 'GET /free/@@@@@@@@ HTTP/1.1\r\nHost : a\r\n\r\n', '400!'),
  wire(
    'hosts that are named elsewhere',
    `${FREE}X-Forwarded-Host: evil.example\r\nX-Host: evil.example\r\nForwarded: host=evil.example\r\n\r\n`,
    '200',
    {
      wrong: (seen) => (seen.headers.some(([, value]) => value.includes('evil')) ? 'one of them crossed' : undefined),
    },
  ),
];

export const HEAD_CASES: readonly WireCase[] = [...LINES, ...HEADERS, ...HOSTS];
