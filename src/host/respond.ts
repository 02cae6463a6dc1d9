// Writes a response of our own (never the upstream's) to a client: as one text if it can leave so (write-batch.ts), else with
// one writeHead and one end. Knows no domain word.
import type { ServerResponse } from 'node:http';
import { arePlain, linesOf, takesOneWrite, type WriteBatch } from './write-batch.ts';

export type OwnResponse = {
  readonly status: number;
  /** Flat name, value pairs. `Content-Length` is added here. */
  readonly headers: readonly string[];
  readonly body: string | Buffer;
  /** Length of `body` as UTF-8, if it is known; otherwise it is counted. */
  readonly bodyBytes?: number;
  /**
   * Lines of further headers as they go over the wire, each line ended: made of parts that cannot break a head, so they
   * are not checked.
   */
  readonly lines?: string | undefined;
};

/**
 * Sends `response`; `head` leaves the body out (HEAD) but keeps the length it would have had. `added`: further headers, flat
 * name, value pairs of plain characters. With `writeBatch` it leaves at the end of the turn.
 */
export function respond(
  res: ServerResponse,
  response: OwnResponse,
  head = false,
  added: readonly string[] = [],
  writeBatch?: WriteBatch,
): void {
  if (res.headersSent || res.destroyed) {
    res.destroy();
    return;
  }
  const bodyless = response.status === 204 || response.status === 304;
  const { status, body } = response;
  const length = response.bodyBytes ?? (typeof body === 'string' ? Buffer.byteLength(body) : body.length);
  const sent = head || bodyless ? '' : body;
  // ASCII goes out as it is; anything else has to be encoded.
  const encoding = typeof body === 'string' && length !== body.length ? 'utf8' : 'latin1';
  const framing = bodyless ? [] : ['Content-Length', `${length}`];
  if (writeBatch !== undefined && typeof sent === 'string' && encoding === 'latin1' && takesOneWrite(res)) {
    const own = response.lines ?? (arePlain(response.headers) ? linesOf(response.headers) : undefined);
    const rest = linesOf(added.concat(framing), writeBatch.date);
    if (own !== undefined && rest !== undefined) {
      writeBatch.oneWrite(res, status, own + rest, sent);
      return;
    }
  }
  res.writeHead(status, response.headers.concat(added, framing));
  if (writeBatch === undefined) res.end(sent, encoding);
  else writeBatch.end(res, sent, encoding);
}
