// The change of a charge that a look at its chain proves. A look that proves nothing may still have searched, and the
// next one goes on from there.
import { FIRST_LOOK_MS, type ChargeEvent } from '../../domain/payment/transition.ts';
import type { Look } from '../rails/rail.ts';

/** The end that a look proves; undefined: none yet. */
export function endOf(seen: Look): Extract<ChargeEvent, { kind: 'settled' | 'failed' }> | undefined {
  if (seen.kind === 'proven') return { kind: 'settled', proof: seen.proof, leaseMs: 0 };
  return seen.kind === 'impossible' ? { kind: 'failed', by: 'chain', reason: seen.reason } : undefined;
}

/** The search of a look without an end; undefined if nothing was searched. */
export function searchOf(seen: Look): ChargeEvent | undefined {
  if (seen.kind !== 'open' || seen.search === null) return undefined;
  const reason = seen.used ? 'payment_used' : 'payment_unused';
  return { kind: 'looked', at: 'end', search: seen.search, lookInMs: FIRST_LOOK_MS, reason };
}
