// What hostile clients put on the wire, and what has to come of it: data only. All of it
// is unpaid. `/free/...` costs nothing, `/v1/export` costs something with any method. run-wire-cases.ts runs the table
// against whatever stands behind a port.
import { headerOf } from '../support/raw-client.ts';
import type { SeenRequest } from '../support/raw-upstream.ts';

export type WireCase = {
  /** Number in threats.md section 3.4, and a letter. */
  readonly id: string;
  readonly name: string;
  /** latin1. */
  readonly send: string;
  /** The statuses that each answer may have, in order; no more answers may come. */
  readonly answers: readonly (readonly number[])[];
  /** How many whole requests the upstream sees: neither more nor fewer. */
  readonly upstream: number;
  /** The body breaks off: the upstream may see the beginning of the request, and must never see its end. */
  readonly broken?: boolean;
  /** The server closes the connection by itself. */
  readonly closes?: boolean;
  /** What is wrong with the (last) request that the upstream saw, or nothing. */
  readonly wrong?: (seen: SeenRequest) => string | undefined;
};

const HOST = 'Host: api.example.com\r\n';
const FREE = `GET /free/a HTTP/1.1\r\n${HOST}`;
const PAID = `GET /v1/export HTTP/1.1\r\n${HOST}`;
const POST = `POST /free/a HTTP/1.1\r\n${HOST}`;
const HIDDEN = `GET /v1/export HTTP/1.1\r\n${HOST}\r\n`;
const HIDDEN_CHUNK = `${HIDDEN.length.toString(16)}\r\n${HIDDEN}\r\n0\r\n\r\n`;

const refused = (id: string, name: string, send: string, ...statuses: number[]): WireCase => ({
  id,
  name,
  send,
  answers: [statuses],
  upstream: 0,
  closes: true,
});

const broken = (id: string, name: string, body: string): WireCase => ({
  ...refused(id, name, `${POST}Transfer-Encoding: chunked\r\n\r\n${body}`, 400),
  broken: true,
});

const keeps = (name: string, value: string | undefined) => (seen: SeenRequest) =>
  headerOf(seen, name) === value ? undefined : `${name} is ${headerOf(seen, name)}`;

const carries = (method: string, body: string) => (seen: SeenRequest) =>
  seen.method === method && seen.body.toString('latin1') === body
    ? undefined
    : `${seen.method} with ${JSON.stringify(seen.body.toString('latin1'))}`;

export const WIRE_CASES: readonly WireCase[] = [
  refused(
    '1',
    'Content-Length, then Transfer-Encoding',
    `${POST}Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n${HIDDEN_CHUNK}`,
    400,
  ),
  refused(
    '2',
    'Transfer-Encoding, then Content-Length',
    `${POST}Transfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n${HIDDEN_CHUNK}`,
    400,
  ),
  refused('3a', 'two lengths that differ', `${POST}Content-Length: 0\r\nContent-Length: 5\r\n\r\nhello`, 400),
  refused('3b', 'two lengths that are equal', `${POST}Content-Length: 5\r\nContent-Length: 5\r\n\r\nhello`, 400),
  refused('3c', 'a list of lengths', `${POST}Content-Length: 5, 5\r\n\r\nhello`, 400),
  refused('3d', 'a signed length', `${POST}Content-Length: +5\r\n\r\nhello`, 400),
  refused('3e', 'a hexadecimal length', `${POST}Content-Length: 0x5\r\n\r\nhello`, 400),
  refused('3f', 'an empty length', `${POST}Content-Length:\r\n\r\nhello`, 400),
  {
    id: '3g',
    name: 'a length with a leading zero',
    send: `${POST}Content-Length: 05\r\n\r\nhello`,
    answers: [[400]],
    upstream: 0,
  },
  refused('4a', 'an unknown coding', `${POST}Transfer-Encoding: xchunked\r\n\r\n${HIDDEN_CHUNK}`, 400, 501),
  refused('4b', 'identity', `${POST}Transfer-Encoding: identity\r\n\r\n${HIDDEN_CHUNK}`, 400, 501),
  refused(
    '4c',
    'chunked before the last coding',
    `${POST}Transfer-Encoding: chunked, gzip\r\n\r\n${HIDDEN_CHUNK}`,
    400,
    501,
  ),
  refused(
    '4d',
    'chunked twice',
    `${POST}Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n${HIDDEN_CHUNK}`,
    400,
    501,
  ),
  refused(
    '4e',
    'a coding with a vertical tab',
    `${POST}Transfer-Encoding: \x0bchunked\r\n\r\n${HIDDEN_CHUNK}`,
    400,
    501,
  ),
  {
    id: '5',
    name: 'a coding before chunked',
    send: `${POST}Transfer-Encoding: gzip, chunked\r\n\r\n${HIDDEN_CHUNK}`,
    answers: [[501]],
    upstream: 0,
  },
  refused(
    '6',
    'a coding on HTTP/1.0',
    `POST /free/a HTTP/1.0\r\n${HOST}Transfer-Encoding: chunked\r\n\r\n${HIDDEN_CHUNK}`,
    400,
  ),
  {
    id: '7',
    name: 'Transfer_Encoding with an underscore',
    send: `${POST}Transfer_Encoding: chunked\r\nContent-Length: 5\r\n\r\nhello`,
    answers: [[200]],
    upstream: 1,
    wrong: (seen) => keeps('Transfer_Encoding', undefined)(seen) ?? carries('POST', 'hello')(seen),
  },
  refused('8a', 'a space before the colon', `${POST}Transfer-Encoding : chunked\r\n\r\n${HIDDEN_CHUNK}`, 400),
  refused('8b', 'a folded header', `${POST}X-A: b\r\n Transfer-Encoding: chunked\r\n\r\n${HIDDEN_CHUNK}`, 400),
  refused('8c', 'a NUL in a value', `${FREE}X-A: b\x00c\r\n\r\n`, 400),
  refused('8d', 'a bare CR in a value', `${FREE}X-A: b\rX-B: c\r\n\r\n`, 400),
  refused('8e', 'a bare LF after a header', `${FREE}X-A: b\nX-B: c\r\n\r\n`, 400),
  refused('8f', 'a header without a colon', `${FREE}X-A\r\n\r\n`, 400),
  refused('8g', 'a space before a header name', `${FREE} X-A: b\r\n\r\n`, 400),
  {
    id: '9',
    name: 'a chunk extension',
    send: `${POST}Transfer-Encoding: chunked\r\n\r\n5;x=y\r\nhello\r\n0\r\n\r\n`,
    answers: [[200]],
    upstream: 1,
    wrong: carries('POST', 'hello'),
  },
  broken('10', 'a bare LF in a chunk extension', '5;\nhello\r\n0\r\n\r\n'),
  broken('11a', 'a chunk size with 0x', '0x5\r\nhello\r\n0\r\n\r\n'),
  broken('11b', 'a signed chunk size', '+5\r\nhello\r\n0\r\n\r\n'),
  broken('11c', 'a chunk size that overflows', '10000000000000005\r\nhello\r\n0\r\n\r\n'),
  broken('11d', 'a chunk longer than it says', '5\r\nhello world\r\n0\r\n\r\n'),
  {
    id: '12a',
    name: 'a trailer that speaks in our name',
    send: `${POST}Transfer-Encoding: chunked\r\nTrailer: Tollgate-Charge-Id\r\n\r\n5\r\nhello\r\n0\r\nTollgate-Charge-Id: forged\r\n\r\n`,
    answers: [[200]],
    upstream: 1,
    wrong: (seen) => (seen.head.includes('forged') ? 'the trailer crossed' : carries('POST', 'hello')(seen)),
  },
  broken('12b', 'a length in the trailers', '0\r\nContent-Length: 5\r\n\r\n'),
  {
    id: '13',
    name: 'a chunked DELETE that holds a request',
    send: `DELETE /free/a HTTP/1.1\r\n${HOST}Transfer-Encoding: chunked\r\n\r\n${HIDDEN_CHUNK}`,
    answers: [[200]],
    upstream: 1,
    wrong: carries('DELETE', HIDDEN),
  },
  {
    id: '14',
    name: 'a chunked OPTIONS that holds a request',
    send: `OPTIONS /free/a HTTP/1.1\r\n${HOST}Transfer-Encoding: chunked\r\n\r\n${HIDDEN_CHUNK}`,
    answers: [[200]],
    upstream: 1,
    wrong: carries('OPTIONS', HIDDEN),
  },
  {
    id: '15',
    name: 'a GET whose body is a request',
    send: `${FREE}Content-Length: ${HIDDEN.length}\r\n\r\n${HIDDEN}`,
    answers: [[200]],
    upstream: 1,
    wrong: carries('GET', HIDDEN),
  },
  {
    id: '16a',
    name: 'free and protected in one packet',
    send: `${FREE}\r\n${PAID}\r\n`,
    answers: [[200], [402]],
    upstream: 1,
  },
  {
    id: '16b',
    name: 'protected and free in one packet',
    send: `${PAID}\r\n${FREE}\r\n`,
    answers: [[402], [200]],
    upstream: 1,
  },
  {
    id: '16c',
    name: 'free and then garbage',
    send: `${FREE}\r\nGET  HTTP/9\r\n\r\n`,
    answers: [[200], [400]],
    upstream: 1,
    closes: true,
  },
  {
    id: '17',
    name: 'Connection that names headers of ours',
    send: `${FREE}Connection: keep-alive, x-forwarded-for, x-request-id, tollgate-charge-id\r\n\r\n`,
    answers: [[200]],
    upstream: 1,
    wrong: (seen) =>
      headerOf(seen, 'x-forwarded-for') === undefined || headerOf(seen, 'x-request-id') === undefined
        ? 'a header of ours is gone'
        : undefined,
  },
  {
    id: '18',
    name: 'Connection that names the payment',
    send: `${PAID}Connection: close, payment-signature\r\nPAYMENT-SIGNATURE: not/base64!\r\n\r\n`,
    answers: [[402, 400]],
    upstream: 0,
    closes: true,
  },
  {
    id: '19a',
    name: 'a WebSocket handshake on a protected path',
    send: `${PAID}Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n`,
    answers: [[402]],
    upstream: 0,
    closes: true,
  },
  {
    id: '19b',
    name: 'a handshake behind a request that is being answered',
    send: `${FREE}\r\n${PAID}Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n`,
    answers: [[200], [402]],
    upstream: 1,
  },
  {
    id: '20',
    name: 'an offer of h2c',
    send: `${FREE}Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA\r\n\r\n`,
    answers: [[200]],
    upstream: 1,
    wrong: (seen) => (/^(upgrade|http2-settings|connection):/im.test(seen.head) ? seen.head : undefined),
  },
  {
    id: '21a',
    name: 'a handshake with a body that holds a request',
    send: `${PAID}Connection: Upgrade\r\nUpgrade: websocket\r\nContent-Length: ${HIDDEN.length}\r\n\r\n${HIDDEN}`,
    answers: [[402, 400]],
    upstream: 0,
  },
  {
    id: '21b',
    name: 'the same on a free path',
    send: `${FREE}Connection: Upgrade\r\nUpgrade: websocket\r\nContent-Length: ${HIDDEN.length}\r\n\r\n${HIDDEN}`,
    answers: [[200]],
    upstream: 1,
    wrong: (seen) => keeps('upgrade', undefined)(seen) ?? carries('GET', HIDDEN)(seen),
  },
  {
    id: '22',
    name: 'Expect on a protected path',
    send: `POST /v1/export HTTP/1.1\r\n${HOST}Content-Length: 5\r\nExpect: 100-continue\r\n\r\n`,
    answers: [[402]],
    upstream: 0,
    closes: true,
  },
  {
    id: '23',
    name: 'Expect on a free path, and a forged header',
    send: `${POST}Content-Length: 5\r\nExpect: 100-continue\r\nTollgate-Charge-Id: forged\r\n\r\nhello`,
    answers: [[100], [200]],
    upstream: 1,
    wrong: (seen) =>
      seen.head.includes('forged') ||
      headerOf(seen, 'expect') !== undefined ||
      headerOf(seen, 'x-request-id') === undefined
        ? seen.head
        : carries('POST', 'hello')(seen),
  },
  refused('24a', 'an unknown expectation', `${FREE}Expect: foo\r\n\r\n`, 417),
  refused('24b', 'an unknown expectation beside the known one', `${FREE}Expect: foo, 100-continue\r\n\r\n`, 417),
  refused('25a', 'HTTP/0.9', 'GET /v1/export\r\n\r\n', 505, 400),
  refused('25b', 'HTTP/2.0', `GET /v1/export HTTP/2.0\r\n${HOST}\r\n`, 505),
  // Node's parser does not say that this was RTSP: it is handled as the HTTP/1.0 request that it would be.
  refused('25c', 'RTSP', `GET /v1/export RTSP/1.0\r\n${HOST}\r\n`, 505, 402),
  refused('25d', 'ICE', `SOURCE /v1/export ICE/1.0\r\n${HOST}\r\n`, 505, 501),
  refused('25e', 'HTTP/1.2', `GET /v1/export HTTP/1.2\r\n${HOST}\r\n`, 505, 400),
  refused('26', 'the preface of HTTP/2', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', 400, 505),
  { id: '27a', name: 'two Hosts', send: `${FREE}Host: evil.example\r\n\r\n`, answers: [[400]], upstream: 0 },
  { id: '27b', name: 'an empty Host', send: 'GET /free/a HTTP/1.1\r\nHost:\r\n\r\n', answers: [[400]], upstream: 0 },
  {
    id: '27c',
    name: 'a Host with a path',
    send: 'GET /free/a HTTP/1.1\r\nHost: a/b\r\n\r\n',
    answers: [[400]],
    upstream: 0,
  },
  {
    id: '27d',
    name: 'a Host with a user',
    send: 'GET /free/a HTTP/1.1\r\nHost: a@b\r\n\r\n',
    answers: [[400]],
    upstream: 0,
  },
  {
    id: '27e',
    name: 'no Host',
    send: 'GET /free/a HTTP/1.1\r\nX-A: b\r\n\r\n',
    answers: [[400]],
    upstream: 0,
    closes: true,
  },
  {
    id: '28a',
    name: 'an absolute target of the same host',
    send: `GET http://api.example.com/v1/export HTTP/1.1\r\n${HOST}\r\n`,
    answers: [[402]],
    upstream: 0,
  },
  {
    id: '28b',
    name: 'an absolute target of another host',
    send: `GET http://evil.example/free/a HTTP/1.1\r\n${HOST}\r\n`,
    answers: [[400, 421]],
    upstream: 0,
  },
  refused('29a', 'CONNECT', `CONNECT api.example.com:443 HTTP/1.1\r\n${HOST}\r\n`, 501),
  { id: '29b', name: 'TRACE', send: `TRACE /free/a HTTP/1.1\r\n${HOST}\r\n`, answers: [[501]], upstream: 0 },
  refused('30', 'more headers than the limit', `${FREE}X-A: ${'a'.repeat(40_000)}\r\n\r\n`, 431),
  {
    id: '31a',
    name: 'a target one byte over the limit',
    send: `GET /free/${'a'.repeat(8187)} HTTP/1.1\r\n${HOST}\r\n`,
    answers: [[414]],
    upstream: 0,
  },
  refused(
    '31b',
    'a target longer than all headers may be',
    `GET /free/${'a'.repeat(40_000)} HTTP/1.1\r\n${HOST}\r\n`,
    414,
    431,
  ),
  {
    id: '32',
    name: 'two payments',
    send: `${PAID}PAYMENT-SIGNATURE: YWFh\r\nPAYMENT-SIGNATURE: YmJi\r\n\r\n`,
    answers: [[400, 402]],
    upstream: 0,
  },
];
