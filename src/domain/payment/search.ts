// Searches of a chain for a payment, and which of two has come further. Several requests and processes may look for one
// payment at the same time. What an older look found must never take the place of what a further one found, so a ledger
// keeps the further one. What else a search holds is its rail's own affair.
import type { Search } from './charge.ts';

const NUMBER = /^\d{1,20}$/;

/** `found` unless `kept` has come further: in a later round, or in the same round to a later place. */
export function furtherSearch(kept: Search | null, found: Search | null | undefined): Search | null {
  if (kept === null || found === null || found === undefined) return found ?? kept;
  const rounds = numberIn(found, 'round') - numberIn(kept, 'round');
  if (rounds !== 0n) return rounds > 0n ? found : kept;
  return numberIn(found, 'next') >= numberIn(kept, 'next') ? found : kept;
}

/** 0 if a search of an older version does not say. */
function numberIn(search: Search, name: 'round' | 'next'): bigint {
  const value = search[name] ?? '';
  return NUMBER.test(value) ? BigInt(value) : 0n;
}
