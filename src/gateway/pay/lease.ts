// Says to the ledger, from time to time, that a charge is still being worked on. Where that fails nothing is done: the
// lease runs out, somebody else takes the charge over, and every later step of ours is refused by the ledger.
import type { Ledger } from '../../domain/ledger.ts';
import type { Actor } from '../../domain/transition.ts';

export type Lease = { readonly stop: () => void };

export function keepLease(ledger: Ledger, id: string, actor: Actor, leaseMs: number): Lease {
  const timer = setInterval(() => {
    ledger.advance(id, { kind: 'lease_renewed', leaseMs }, actor).catch(() => undefined);
  }, leaseMs / 3);
  timer.unref();
  return { stop: () => clearInterval(timer) };
}
