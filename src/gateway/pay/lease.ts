// Renews the leases of a process, every few seconds and in one call for all of its charges. By monotonic time: a clock
// that is set changes nothing. If a renewal fails nothing is done: the lease runs out, another request takes the charge
// over, and every later step of ours is refused by the ledger.
import { ownerOf } from '../../domain/charge.ts';
import { MAX_RENEWED, type Ledger } from '../../domain/payment/ledger.ts';
import type { Schedule } from '../../host/clock.ts';

export type Lease = { readonly stop: () => void };

export type Leases = {
  /** A new name for one request of this run. */
  readonly newOwner: () => string;
  /** Renews the lease of a charge of this run until it is stopped. */
  readonly keep: (chargeId: string) => Lease;
};

export type LeaseOptions = {
  readonly ledger: Pick<Ledger, 'renew' | 'run'>;
  readonly schedule: Schedule;
  readonly newId: () => string;
  readonly leaseMs: number;
};

export const LEASE_MS = 10_000;
/** Of a lease's length: two renewals may be lost. */
const RENEWALS = 10 / 3;

export function createLeases({ ledger, schedule, newId, leaseMs }: LeaseOptions): Leases {
  const { run } = ledger;
  /** How many requests work on a charge: one, but for the moment in which it changes hands within this process. */
  const kept = new Map<string, { requests: number; renew: boolean }>();
  let running = false;

  const renewLater = (): void => {
    running = kept.size > 0;
    if (running) schedule(leaseMs / RENEWALS, renew);
  };
  const renew = (): void => {
    const ids = [...kept].flatMap(([id, each]) => (each.renew ? [id] : []));
    // What was taken since the last turn has most of its lease left.
    for (const each of kept.values()) each.renew = true;
    for (let from = 0; from < ids.length; from += MAX_RENEWED) {
      ledger.renew(run, ids.slice(from, from + MAX_RENEWED), leaseMs).catch(() => undefined);
    }
    renewLater();
  };

  return {
    newOwner: () => ownerOf(run, newId()),
    keep: (chargeId) => {
      const each = kept.get(chargeId) ?? { requests: 0, renew: false };
      each.requests += 1;
      kept.set(chargeId, each);
      if (!running) renewLater();
      let stopped = false;
      return {
        stop: () => {
          if (stopped) return;
          stopped = true;
          each.requests -= 1;
          if (each.requests === 0) kept.delete(chargeId);
        },
      };
    },
  };
}
