// What a listener itself refuses, before any handler sees the request: a fixed list, as RFC 9457 bodies with the codes of
// the catalogue in domain/problem (test/gateway/server.test.ts holds the two together). Every one closes the connection.
import { http } from './node-http.ts';
import type { Answer } from './respond.ts';

export type ListenerRefusal = {
  readonly status: number;
  readonly code: string;
  readonly title: string;
  readonly detail: string;
};

export const REFUSALS = {
  malformed: {
    status: 400,
    code: 'request_malformed',
    title: 'Malformed request',
    detail: 'The request is not well-formed HTTP/1.1.',
  },
  targetAmbiguous: {
    status: 400,
    code: 'target_ambiguous',
    title: 'Ambiguous request target',
    detail: 'The request target holds a control character, a space or a byte outside ASCII; percent-encode it.',
  },
  hostMissing: {
    status: 400,
    code: 'request_malformed',
    title: 'Malformed request',
    detail: 'An HTTP/1.1 request needs a Host header.',
  },
  timeout: {
    status: 408,
    code: 'request_timeout',
    title: 'Request took too long to arrive',
    detail: 'The request headers did not arrive in time.',
  },
  targetTooLong: {
    status: 414,
    code: 'target_too_long',
    title: 'Request target too long',
    detail: 'The request target is longer than this server reads.',
  },
  expectationFailed: {
    status: 417,
    code: 'expectation_failed',
    title: 'Expectation failed',
    detail: 'The only expectation this server knows is 100-continue.',
  },
  headersTooLarge: {
    status: 431,
    code: 'headers_too_large',
    title: 'Request header fields too large',
    detail: 'The request headers are larger than this server reads.',
  },
  internal: {
    status: 500,
    code: 'internal',
    title: 'Internal error',
    detail: 'The request could not be handled; the log says why.',
  },
  methodUnsupported: {
    status: 501,
    code: 'method_unsupported',
    title: 'Method not supported',
    detail: 'This server does not support the request method.',
  },
} as const satisfies Record<string, ListenerRefusal>;

/** An error of Node's parser: what was read last, and how much of that was parsed. */
export type ParserError = NodeJS.ErrnoException & { readonly rawPacket?: Buffer; readonly bytesParsed?: number };

export function refusalOf(error: ParserError): ListenerRefusal {
  switch (error.code ?? '') {
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return REFUSALS.timeout;
    case 'HPE_HEADER_OVERFLOW':
      return endsInRequestLine(error) ? REFUSALS.targetTooLong : REFUSALS.headersTooLarge;
    case 'HPE_INVALID_URL':
      return REFUSALS.targetAmbiguous;
    case 'HPE_INVALID_METHOD':
      // The parser knows a fixed list; what is no request at all, such as TLS, ends here too.
      return REQUEST_LINE.test(lineOf(error)) ? REFUSALS.methodUnsupported : REFUSALS.malformed;
    default:
      return REFUSALS.malformed;
  }
}

const REQUEST_LINE = /^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,32} [\x21-\x7e]+ HTTP\/1\.[01]\r\n/;

/** The line that the parser stopped in, and what follows. */
function lineOf({ rawPacket, bytesParsed = 0 }: ParserError): string {
  if (rawPacket === undefined) return '';
  const start = bytesParsed === 0 ? 0 : rawPacket.lastIndexOf(0x0a, bytesParsed - 1) + 1;
  return rawPacket.toString('latin1', start, start + 1024);
}

function endsInRequestLine({ rawPacket, bytesParsed }: ParserError): boolean {
  if (rawPacket === undefined || !/^[A-Z]+ /.test(rawPacket.toString('latin1', 0, 32))) return false;
  return !rawPacket.subarray(0, bytesParsed).includes(0x0a);
}

export function answerOf(refusal: ListenerRefusal): Answer {
  const headers = ['Content-Type', 'application/problem+json', 'Cache-Control', 'no-store', 'Connection', 'close'];
  return { status: refusal.status, headers, body: bodyOf(refusal) };
}

/** The whole answer, for a socket that has no response object. */
export function bytesOf(refusal: ListenerRefusal): string {
  const { status, headers } = answerOf(refusal);
  const body = bodyOf(refusal);
  let text = `HTTP/1.1 ${status} ${http.STATUS_CODES[status]}\r\n`;
  for (let i = 0; i + 1 < headers.length; i += 2) text += `${headers[i]}: ${headers[i + 1]}\r\n`;
  return `${text}Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`;
}

function bodyOf({ status, code, title, detail }: ListenerRefusal): string {
  return JSON.stringify({ type: `/problems/${code}`, title, status, detail, code });
}
