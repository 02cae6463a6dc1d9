// Writes an answer of our own (never the upstream's) to a client: one writeHead, one end. Knows no domain word.
import type { ServerResponse } from 'node:http';

export type Answer = {
  readonly status: number;
  /** Flat name, value pairs. `Content-Length` is added here. */
  readonly headers: readonly string[];
  readonly body: string | Buffer;
};

/** Sends `answer`; `head` leaves the body out (HEAD) but keeps the length it would have had. */
export function respond(res: ServerResponse, answer: Answer, head = false): void {
  if (res.headersSent || res.destroyed) {
    res.destroy();
    return;
  }
  const bodyless = answer.status === 204 || answer.status === 304;
  const length = typeof answer.body === 'string' ? Buffer.byteLength(answer.body) : answer.body.length;
  res.writeHead(answer.status, bodyless ? [...answer.headers] : [...answer.headers, 'Content-Length', String(length)]);
  if (head || bodyless) res.end();
  else res.end(answer.body);
}
