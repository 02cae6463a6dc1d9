// The body of a question, which means nothing. A length that is announced is believed: a proxy may send it without the body, and
// must not be waited for. A body of unknown length is read and dropped up to a limit.
import type { IncomingMessage } from 'node:http';

const MOST_BYTES = 64 * 1024;

/** Calls `done` once: at once if there is nothing to wait for; `broken`: the request will not become whole. */
export function readBody(req: IncomingMessage, done: (body: 'whole' | 'too_large' | 'broken') => void): void {
  const { headers } = req;
  if (Number(headers['content-length'] ?? 0) > MOST_BYTES) return done('too_large');
  // A client that waits for a 100 never gets one.
  if (headers['transfer-encoding'] === undefined || headers.expect !== undefined) return done('whole');
  let bytes = 0;
  let over = false;
  const finish = (body: 'whole' | 'too_large' | 'broken'): void => {
    if (over) return;
    over = true;
    done(body);
  };
  req.on('data', (chunk: Buffer) => {
    bytes += chunk.length;
    if (bytes > MOST_BYTES) finish('too_large');
  });
  req.on('end', () => finish('whole'));
  req.on('close', () => finish('broken'));
}
