// A question that a proxy asks again for one request of its client, under the same request id: nginx does for each internal redirect
// (try_files to a named location, index, error_page). What it takes of a pass or of a counter is taken once. Envoy asks once, and may
// be configured so that its clients choose the id, so each of its questions is one of its own.
import { hash } from 'node:crypto';
import type { RequestFacts } from '../outcome.ts';

/** Name by which a question is known again (SHA-256, lower-case hex); undefined: it is no question, or is answered once. */
export function nameOfQuestion({
  asker,
  method,
  target,
}: Pick<RequestFacts, 'asker' | 'method' | 'target'>): string | undefined {
  if (asker === undefined || asker.dialect === 'envoy') return undefined;
  if (asker.askSha256 === null || asker.repeatWindowMs === 0) return undefined;
  return hash('sha256', `${asker.dialect} ${asker.askSha256} ${method} ${target}`);
}
