// The header Idempotency-Key: requests with the same one are one use of a pass.
import { hash } from 'node:crypto';
import { problem, type Problem } from '../../../domain/problem.ts';
import type { DrawKey } from '../../../domain/selling/pass-book.ts';
import { headerValues } from '../../caller.ts';
import type { RequestFacts } from '../../outcome.ts';

const KEY = /^[\x21-\x7e]{1,128}$/;

/** The key of a request; null: it has none. A problem: it cannot be read. */
export function readKey(
  rawHeaders: readonly string[],
  { method, target }: Pick<RequestFacts, 'method' | 'target'>,
): DrawKey | Problem | null {
  const [value, ...others] = headerValues(rawHeaders, 'idempotency-key');
  if (value === undefined) return null;
  if (others.length > 0 || !KEY.test(value))
    return problem('request_malformed', 'Idempotency-Key is sent once, with 1 to 128 visible ASCII characters.');
  return { sha256: hash('sha256', value), method, targetSha256: hash('sha256', target) };
}
