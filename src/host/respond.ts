// Writes an answer of our own (never the upstream's) to a client: one writeHead, one end. Knows no domain word.
import type { ServerResponse } from 'node:http';

export type Answer = {
  readonly status: number;
  /** Flat name, value pairs. `Content-Length` is added here. */
  readonly headers: readonly string[];
  readonly body: string | Buffer;
};

/**
 * Sends `answer`; `head` leaves the body out (HEAD) but keeps the length it would have had. `added`: further headers, flat
 * name, value pairs.
 */
export function respond(res: ServerResponse, answer: Answer, head = false, added: readonly string[] = []): void {
  if (res.headersSent || res.destroyed) {
    res.destroy();
    return;
  }
  const bodyless = answer.status === 204 || answer.status === 304;
  const { status, body } = answer;
  const length = typeof body === 'string' ? Buffer.byteLength(body) : body.length;
  const headers = bodyless ? answer.headers.concat(added) : answer.headers.concat(added, 'Content-Length', `${length}`);
  res.writeHead(status, headers);
  if (head || bodyless) res.end();
  else if (typeof body !== 'string') res.end(body);
  // ASCII goes out as it is; anything else has to be encoded.
  else res.end(body, length === body.length ? 'latin1' : 'utf8');
}
