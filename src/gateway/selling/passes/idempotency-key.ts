// What makes requests one use of a pass: the same Idempotency-Key of a client, or the same request of a proxy that asks again.
import { hash } from 'node:crypto';
import { problem, type Problem } from '../../../domain/problem.ts';
import { REPEATS } from '../../../domain/payment/claim-policy.ts';
import type { AskedKey, DrawKey } from '../../../domain/selling/pass-book.ts';
import { headerValues } from '../../caller.ts';
import type { RequestFacts } from '../../outcome.ts';
import { nameOfQuestion } from '../repeated-question.ts';

const KEY = /^[\x21-\x7e]{1,128}$/;

/** The Idempotency-Key of a request; null: it has none. A problem: it cannot be read. */
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

/** The key under which a request draws: its own, else that of the question; null: it draws by itself. */
export function readDrawKey(
  rawHeaders: readonly string[],
  facts: Pick<RequestFacts, 'method' | 'target' | 'asker'>,
): AskedKey | Problem | null {
  const own = readKey(rawHeaders, facts);
  const name = own === null ? nameOfQuestion(facts) : undefined;
  if (name === undefined) return own;
  const { method, target, asker } = facts;
  const stands = { forMs: asker?.repeatWindowMs, asks: 1 + REPEATS };
  return { sha256: name, method, targetSha256: hash('sha256', target), ...stands };
}
