// Refusals of a listener itself, before any handler sees the request. The owner of the listener says in what words. Every
// refusal closes the connection.
import { http } from './node-http.ts';
import type { OwnResponse } from './respond.ts';

export type RefusalKind =
  | 'malformed'
  | 'targetAmbiguous'
  | 'hostMissing'
  | 'timeout'
  | 'targetTooLong'
  | 'expectationFailed'
  | 'headersTooLarge'
  | 'internal'
  | 'methodUnsupported'
  | 'versionUnsupported';
export type Refusals = Readonly<Record<RefusalKind, OwnResponse & { readonly body: string }>>;

/** An error of Node's parser: what was read last, and how much of that was parsed. */
export type ParserError = NodeJS.ErrnoException & {
  readonly rawPacket?: Buffer;
  readonly bytesParsed?: number;
  readonly reason?: string;
};

/** The refusal that an error of the parser means. */
export function refusalOf(error: ParserError): RefusalKind {
  switch (error.code ?? '') {
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return 'timeout';
    case 'HPE_HEADER_OVERFLOW':
      return endsInRequestLine(error) ? 'targetTooLong' : 'headersTooLarge';
    case 'HPE_INVALID_URL':
      return 'targetAmbiguous';
    case 'HPE_INVALID_METHOD':
      // The parser knows a fixed list; what is no request at all, such as TLS, ends here too.
      return REQUEST_LINE.test(lineOf(error)) ? 'methodUnsupported' : 'malformed';
    case 'HPE_INVALID_VERSION':
      // The same code stands for what is no version, or has something behind it.
      return error.reason === 'Invalid HTTP version' ? 'versionUnsupported' : 'malformed';
    default:
      return 'malformed';
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

/** The answer with `Connection: close`. */
export function closing(refusal: OwnResponse): OwnResponse {
  return { ...refusal, headers: [...refusal.headers, 'Connection', 'close'] };
}

/** The whole answer, for a socket that has no response object. */
export function bytesOf(refusal: Refusals[RefusalKind]): string {
  const { status, headers } = closing(refusal);
  let text = `HTTP/1.1 ${status} ${http.STATUS_CODES[status]}\r\n`;
  for (let i = 0; i + 1 < headers.length; i += 2) text += `${headers[i]}: ${headers[i + 1]}\r\n`;
  return `${text}Content-Length: ${Buffer.byteLength(refusal.body)}\r\n\r\n${refusal.body}`;
}
