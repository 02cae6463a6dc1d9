// What belongs to one connection: Connection and what it names, Upgrade, Expect, requests that are sent at once, payments.
import { carries, CHUNKED, FREE, HIDDEN, HIDDEN_CHUNK, HOST, keeps, lacks, PAID, POST, wire } from './wire-case.ts';
import type { Seen, WireCase } from './wire-case.ts';

const has =
  (...names: readonly string[]) =>
  (seen: Seen): string | undefined =>
    names.find((name) => !seen.headers.some(([key]) => key.toLowerCase() === name));

const CONNECTION: readonly WireCase[] = [
  wire(
    'Connection that names headers of ours',
    `${FREE}Connection: keep-alive, x-forwarded-for, x-forwarded-host, x-forwarded-proto, x-request-id, tollgate-charge-id\r\n\r\n`,
    '200',
    {
      wrong: has('x-forwarded-for', 'x-forwarded-host', 'x-forwarded-proto', 'x-request-id'),
    },
  ),
  wire('Connection that names Host', `${FREE}Connection: host\r\n\r\n`, '200', {
    wrong: keeps('host', 'api.example.com'),
  }),
  wire(
    'Connection that names the length',
    `${POST}Connection: content-length\r\nContent-Length: 5\r\n\r\nhello`,
    '200',
    {
      wrong: carries('POST', 'hello'),
    },
  ),
  wire(
    'Connection that names the coding',
    `${POST}Connection: transfer-encoding\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n`,
    '200',
    {
      wrong: carries('POST', 'hello'),
    },
  ),
  wire(
    'Connection that names what the client sends',
    `${FREE}X-A: b\r\nConnection: close, X-A , x-B\r\nx-b: c\r\nX-C: d\r\n\r\n`,
    '200!',
    {
      wrong: (seen) => lacks('x-a', 'x-b')(seen) ?? has('x-c')(seen),
    },
  ),
  wire(
    'Connection on three lines',
    `${FREE}Connection: x-a\r\nX-A: b\r\nConnection: x-b\r\nX-B: b\r\nconnection: x-c\r\nX-C: b\r\n\r\n`,
    '200',
    {
      wrong: lacks('x-a', 'x-b', 'x-c'),
    },
  ),
  wire('Connection of commas', `${FREE}Connection: ,,, ,\r\n\r\n`, '200'),
  wire('Connection of bytes from 0x80', `${FREE}Connection: \xe9\r\n\r\n`, '200'),
  wire(
    'Connection of a thousand names',
    `${FREE}Connection: ${Array.from({ length: 1000 }, (_, i) => `x-${i}`).join(',')}\r\nX-7: b\r\n\r\n`,
    '200',
    {
      wrong: lacks('x-7'),
    },
  ),
  wire(
    'Connection that names the payment',
    `${PAID}Connection: close, payment-signature\r\nPAYMENT-SIGNATURE: not/base64!\r\n\r\n`,
    '402|400!',
  ),
  wire('Connection: close, and a request behind it', `${FREE}Connection: close\r\n\r\n${HIDDEN}`, '200!', {
    behindEnd: true,
  }),
  wire('Connection: close twice', `${FREE}Connection: close\r\nConnection: close\r\n\r\n`, '200!'),
  wire('close and keep-alive', `${FREE}Connection: close, keep-alive\r\n\r\n`, '200!'),
  ...[
    'Keep-Alive: 300',
    'Proxy-Connection: keep-alive',
    'Proxy-Authorization: Basic eA==',
    'TE: trailers',
    'TE: trailers, chunked',
    'TE: gzip\r\nConnection: TE',
    'Trailer: X-A',
    'HTTP2-Settings: AAMA',
    'Proxy-Authenticate: Basic',
  ].map((line) =>
    wire(`the hop-by-hop ${line.split('\r\n')[0]}`, `${FREE}${line}\r\n\r\n`, '200', {
      wrong: lacks(
        'keep-alive',
        'proxy-connection',
        'proxy-authorization',
        'te',
        'trailer',
        'http2-settings',
        'proxy-authenticate',
      ),
    }),
  ),
];

const KEY = 'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n';
const WEBSOCKET = 'Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n';
const plain = lacks('upgrade', 'http2-settings');

const UPGRADES: readonly WireCase[] = [
  wire('a handshake on a protected path', `${PAID}${WEBSOCKET}${KEY}\r\n`, '402!'),
  wire('a handshake on a protected path, and a request behind it', `${PAID}${WEBSOCKET}${KEY}\r\n${HIDDEN}`, '402!'),
  wire(
    'a handshake on a protected path, and frames behind it',
    `${PAID}${WEBSOCKET}${KEY}\r\n\x81\x85\x37\xfa\x21\x3d\x7f\x9f\x4d\x51\x58`,
    '402!',
  ),
  wire('a handshake on a free path', `${FREE}${WEBSOCKET}${KEY}\r\n`, '101', {
    open: true,
    wrong: keeps('upgrade', 'websocket'),
  }),
  // What follows a handshake goes through the tunnel once there is one, and to nobody as a request.
  wire('a handshake on a free path, and a request behind it', `${FREE}${WEBSOCKET}${KEY}\r\n${HIDDEN}`, '101', {
    open: true,
  }),
  wire('a handshake without a key', `${FREE}${WEBSOCKET}\r\n`, '101|200|400|426', { open: true, upstream: 1 }),
  wire(
    'a handshake without a version',
    `${FREE}Connection: Upgrade\r\nUpgrade: websocket\r\n${KEY}\r\n`,
    '101|200|400|426',
    { open: true, upstream: 1 },
  ),
  wire('a handshake with two keys', `${FREE}${WEBSOCKET}${KEY}${KEY}\r\n`, '101|200|400', { open: true, upstream: 1 }),
  wire(
    'a handshake with a length',
    `${PAID}${WEBSOCKET}${KEY}Content-Length: ${HIDDEN.length}\r\n\r\n${HIDDEN}`,
    '402|400!',
  ),
  wire(
    'a handshake with a length on a free path',
    `${FREE}${WEBSOCKET}${KEY}Content-Length: ${HIDDEN.length}\r\n\r\n${HIDDEN}`,
    '200!',
    {
      wrong: (seen) => plain(seen) ?? carries('GET', HIDDEN)(seen),
    },
  ),
  wire(
    'a handshake with a length of 0, and a request',
    `${FREE}${WEBSOCKET}${KEY}Content-Length: 0\r\n\r\n${HIDDEN}`,
    '200!',
    { wrong: plain, behindEnd: true },
  ),
  wire(
    'a handshake with chunks',
    `${FREE}${WEBSOCKET}${KEY}Transfer-Encoding: chunked\r\n\r\n${HIDDEN_CHUNK}`,
    '200!',
    {
      wrong: (seen) => plain(seen) ?? carries('GET', HIDDEN)(seen),
    },
  ),
  wire(
    'a handshake with a length and a coding',
    `${FREE}${WEBSOCKET}${KEY}Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n${HIDDEN_CHUNK}`,
    '400!',
  ),
  wire('a handshake with two Hosts', `${FREE}Host: evil.example\r\n${WEBSOCKET}${KEY}\r\n`, '400!'),
  wire('a handshake without a Host', `GET /free/@@@@@@@@ HTTP/1.1\r\n${WEBSOCKET}${KEY}\r\n`, '400!'),
  wire('a handshake that expects', `${FREE}${WEBSOCKET}${KEY}Expect: 100-continue\r\n\r\n`, '101|200|417|400', {
    open: true,
    upstream: 1,
    wrong: lacks('expect'),
  }),
  wire('a handshake of HTTP/1.0', `GET /free/@@@@@@@@ HTTP/1.0\r\n${HOST}${WEBSOCKET}${KEY}\r\n`, '200!', {
    wrong: plain,
  }),
  wire('a handshake by POST', `${POST}${WEBSOCKET}${KEY}Content-Length: 0\r\n\r\n`, '200!', { wrong: plain }),
  wire('Upgrade without Connection', `${FREE}Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n${KEY}\r\n`, '200', {
    wrong: plain,
  }),
  wire('Connection: Upgrade without Upgrade', `${FREE}Connection: Upgrade\r\n\r\n`, '200', { wrong: plain }),
  ...[
    'h2c',
    'websocket, h2c',
    'h2c, websocket',
    'TLS/1.0',
    'websocket/13',
    'websockets',
    '"websocket"',
    'HTTP/2.0',
  ].map((value) =>
    wire(
      `Upgrade: ${value}`,
      `${FREE}Connection: Upgrade, HTTP2-Settings\r\nUpgrade: ${value}\r\nHTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA\r\n\r\n`,
      '200!',
      { wrong: plain },
    ),
  ),
  wire('Upgrade on two lines', `${FREE}Connection: Upgrade\r\nUpgrade: websocket\r\nUpgrade: h2c\r\n\r\n`, '200|101', {
    upstream: 1,
    open: true,
  }),
  wire(
    'h2c with a body that holds a request',
    `${POST}Connection: Upgrade\r\nUpgrade: h2c\r\nContent-Length: ${HIDDEN.length}\r\n\r\n${HIDDEN}`,
    '200!',
    {
      wrong: (seen) => plain(seen) ?? carries('POST', HIDDEN)(seen),
    },
  ),
  wire(
    'h2c with a preface behind it',
    `${FREE}Connection: Upgrade\r\nUpgrade: h2c\r\n\r\nPRI * HTTP/2.0\r\n\r\nSM\r\n\r\n`,
    '200!',
    { wrong: plain, behindEnd: true },
  ),
  wire(
    'a handshake behind a request',
    `${FREE}\r\n${PAID}Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n`,
    '200 402!',
  ),
];

const EXPECT: readonly WireCase[] = [
  wire(
    'Expect on a protected path',
    `POST /v1/export HTTP/1.1\r\n${HOST}Content-Length: 5\r\nExpect: 100-continue\r\n\r\n`,
    '402!',
    { open: true },
  ),
  wire(
    'Expect on a protected path, with chunks',
    `POST /v1/export HTTP/1.1\r\n${HOST}Transfer-Encoding: chunked\r\nExpect: 100-continue\r\n\r\n`,
    '402!',
    { open: true },
  ),
  wire(
    'Expect on a protected path, and a request for a body',
    `POST /v1/export HTTP/1.1\r\n${HOST}Content-Length: ${HIDDEN.length}\r\nExpect: 100-continue\r\n\r\n${HIDDEN}`,
    '402!',
  ),
  wire(
    'Expect on a free path, and a forged header',
    `${POST}Content-Length: 5\r\nExpect: 100-continue\r\nTollgate-Charge-Id: forged\r\n\r\nhello`,
    '100 200',
    {
      wrong: (seen) =>
        lacks('expect', 'tollgate-charge-id')(seen) ?? has('x-request-id')(seen) ?? carries('POST', 'hello')(seen),
    },
  ),
  wire('Expect in capitals', `${POST}Content-Length: 5\r\nExpect: 100-CONTINUE\r\n\r\nhello`, '100 200', {
    wrong: lacks('expect'),
  }),
  wire(
    'Expect with chunks',
    `${POST}Transfer-Encoding: chunked\r\nExpect: 100-continue\r\n\r\n5\r\nhello\r\n0\r\n\r\n`,
    '100 200',
    { wrong: carries('POST', 'hello') },
  ),
  wire('Expect without a body', `${FREE}Expect: 100-continue\r\n\r\n`, '100 200', { wrong: lacks('expect') }),
  wire(
    'Expect on HTTP/1.0',
    `POST /free/@@@@@@@@ HTTP/1.0\r\n${HOST}Content-Length: 5\r\nExpect: 100-continue\r\n\r\nhello`,
    '200!',
    { wrong: lacks('expect') },
  ),
  wire('an unknown expectation', `${FREE}Expect: foo\r\n\r\n`, '417!'),
  wire(
    'an unknown expectation and a body',
    `${POST}Expect: foo\r\nContent-Length: ${HIDDEN.length}\r\n\r\n${HIDDEN}`,
    '417!',
  ),
  wire('an unknown expectation beside the known one', `${FREE}Expect: foo, 100-continue\r\n\r\n`, '417!'),
  wire('two expectations', `${FREE}Expect: 100-continue\r\nExpect: foo\r\n\r\n`, '417!'),
  wire('an empty expectation', `${FREE}Expect:\r\n\r\n`, '417!'),
];

const PIPELINED: readonly WireCase[] = [
  wire('free and protected in one packet', `${FREE}\r\n${PAID}\r\n`, '200 402'),
  wire('protected and free in one packet', `${PAID}\r\n${FREE}\r\n`, '402 200'),
  wire(
    'ten free and ten protected',
    `${FREE}\r\n${PAID}\r\n`.repeat(10),
    Array.from({ length: 10 }, () => '200 402').join(' '),
  ),
  wire(
    'bodies and requests by turns',
    `${POST}Content-Length: 5\r\n\r\nhello${CHUNKED}5\r\nhello\r\n0\r\n\r\n${PAID}\r\n${FREE}\r\n`,
    '200 200 402 200',
  ),
  wire(
    'a protected body that holds a request, then a free one',
    `POST /v1/export HTTP/1.1\r\n${HOST}Content-Length: ${HIDDEN.length}\r\n\r\n${HIDDEN}${FREE}\r\n`,
    '402 200',
  ),
  wire('free and then garbage', `${FREE}\r\nGET  HTTP/9\r\n\r\n`, '200 400!'),
  wire(
    'free, then a length and a coding',
    `${FREE}\r\n${POST}Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n${HIDDEN_CHUNK}`,
    '200 400!',
  ),
  wire(
    'protected, then a length and a coding',
    `${PAID}\r\n${POST}Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n${HIDDEN_CHUNK}`,
    '402 400!',
  ),
  wire('free, then a NUL', `${FREE}\r\n\0`, '200 400!'),
  wire('free, then TLS', `${FREE}\r\n\x16\x03\x01\x02\x00\x01`, '200 400!'),
  wire('free, then half a request', `${FREE}\r\nGET /v1/expo`, '200', { open: true }),
  wire(
    'Expect, its body and a request',
    `${POST}Content-Length: 5\r\nExpect: 100-continue\r\n\r\nhello${HIDDEN}`,
    '100 200 402',
  ),
];

const PAYMENTS: readonly WireCase[] = [
  wire('two payments', `${PAID}PAYMENT-SIGNATURE: YWFh\r\nPAYMENT-SIGNATURE: YmJi\r\n\r\n`, '400|402?'),
  wire(
    'two payments in different case',
    `${PAID}Payment-Signature: YWFh\r\npayment-signature: YWFh\r\n\r\n`,
    '400|402?',
  ),
  wire('a payment of each version', `${PAID}PAYMENT-SIGNATURE: YWFh\r\nX-PAYMENT: YmJi\r\n\r\n`, '400|402?'),
  wire('a list of payments', `${PAID}PAYMENT-SIGNATURE: YWFh, YmJi\r\n\r\n`, '400|402?'),
  wire('an empty payment', `${PAID}PAYMENT-SIGNATURE:\r\n\r\n`, '400|402?'),
  wire('a payment that is no base64', `${PAID}PAYMENT-SIGNATURE: {}\r\n\r\n`, '400|402?'),
  wire('a payment that is folded', `${PAID}PAYMENT-SIGNATURE: YW\r\n Fh\r\n\r\n`, '400!'),
  wire('a payment with an underscore', `${PAID}PAYMENT_SIGNATURE: YWFh\r\n\r\n`, '402'),
  wire(
    'a payment as a trailer',
    `${PAID}Transfer-Encoding: chunked\r\nTrailer: PAYMENT-SIGNATURE\r\n\r\n0\r\nPAYMENT-SIGNATURE: YWFh\r\n\r\n`,
    '402?',
  ),
  wire(
    'a payment longer than all headers may be',
    `${PAID}PAYMENT-SIGNATURE: ${'YWFh'.repeat(10_000)}\r\n\r\n`,
    '431!',
  ),
  wire(
    'payments on a free path',
    `${FREE}PAYMENT-SIGNATURE: YWFh\r\nX-PAYMENT: YmJi\r\nPAYMENT_SIGNATURE: YWFh\r\n\r\n`,
    '200',
    {
      wrong: lacks('payment-signature', 'x-payment', 'payment_signature'),
    },
  ),
  wire(
    'receipts and charges that a client made up',
    `${FREE}PAYMENT-RESPONSE: e30=\r\nX-PAYMENT-RESPONSE: e30=\r\nTollgate-Charge-Id: chg_1\r\n\r\n`,
    '200',
    {
      wrong: lacks('payment-response', 'x-payment-response', 'tollgate-charge-id'),
    },
  ),
  wire(
    'a charge that a client made up, on a protected path',
    `${PAID}Tollgate-Charge-Id: chg_1\r\nTollgate-Payer: 0x1\r\n\r\n`,
    '402',
  ),
];

export const HOP_CASES: readonly WireCase[] = [...CONNECTION, ...UPGRADES, ...EXPECT, ...PIPELINED, ...PAYMENTS];
