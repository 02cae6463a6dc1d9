// Says to the ledger, from time to time, that a charge is still being worked on. Where that fails nothing is done: the
// lease runs out, somebody else takes the charge over, and every later step of ours is refused by the ledger.
import type { Ledger } from '../../domain/ledger.ts';
import type { Actor } from '../../domain/transition.ts';
import type { Schedule } from '../../host/clock.ts';

export type Lease = { readonly stop: () => void };

export function keepLease(
  { ledger, schedule }: { readonly ledger: Ledger; readonly schedule: Schedule },
  id: string,
  actor: Actor,
  leaseMs: number,
): Lease {
  let cancel = (): void => undefined;
  const renewLater = (): void => {
    cancel = schedule(leaseMs / 3, () => {
      ledger.advance(id, { kind: 'lease_renewed', leaseMs }, actor).catch(() => undefined);
      renewLater();
    });
  };
  renewLater();
  return { stop: () => cancel() };
}
