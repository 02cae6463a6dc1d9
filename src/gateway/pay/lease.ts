// Renews the leases of a process, every few seconds and in one call for all of its charges. Time is monotonic: a clock that
// is set changes nothing. If a renewal fails, nothing is done. The lease runs out, another request takes the charge over,
// and the ledger refuses every later step of ours. What no ledger sees is asked here: a request forwards and answers only
// what it still holds, also if its process stood still in between.
import { MAX_RENEWED, ownerOf, type Ledger } from '../../domain/payment/ledger.ts';
import type { Schedule } from '../../host/clock.ts';

export type Lease = {
  readonly stop: () => void;
  /** Whether no other request has taken the charge over. Known at once for half of a lease, then the ledger is asked. */
  readonly holds: () => boolean | Promise<boolean>;
};

export type Leases = {
  /** A new name for one request of this run. */
  readonly newOwner: () => string;
  /**
   * Renews the lease of a charge of this run until it is stopped. `since`: when it was asked for, in monotonic time. The request
   * that had it before holds it no more.
   */
  readonly keep: (chargeId: string, since: number) => Lease;
};

type LeaseOptions = {
  readonly ledger: Pick<Ledger, 'renew' | 'run'>;
  readonly schedule: Schedule;
  readonly newId: () => string;
  readonly monotonic: () => number;
  readonly leaseMs: number;
};

export const LEASE_MS = 10_000;
/** Renewals within the length of a lease: two of them may be lost. */
const RENEWALS = 10 / 3;

/**
 * Charge that this process leases. `since` is the time from which it is ours for a lease at least; `holder` is the
 * request that asked for it last, at `askedAt`.
 */
type LeasedCharge = { requests: number; renew: boolean; since: number; holder: Lease | undefined; askedAt: number };

export function createLeases({ ledger, schedule, newId, monotonic, leaseMs }: LeaseOptions): Leases {
  const { run } = ledger;
  /** Charges by id. One request works on each; two for the moment in which it changes hands within this process. */
  const kept = new Map<string, LeasedCharge>();
  let running = false;

  const renewLater = (): void => {
    running = kept.size > 0;
    if (running) schedule(leaseMs / RENEWALS, renew);
  };
  /** The charges among `ids` that are still ours; undefined if that is not known. */
  const renewAll = async (ids: readonly string[]): Promise<ReadonlySet<string> | undefined> => {
    const since = monotonic();
    const ours = await ledger.renew(run, ids, leaseMs).catch(() => undefined);
    for (const id of ours ?? []) {
      const each = kept.get(id);
      if (each !== undefined) each.since = Math.max(each.since, since);
    }
    return ours && new Set(ours);
  };
  const renew = (): void => {
    const ids = [...kept].flatMap(([id, each]) => (each.renew ? [id] : []));
    // A charge that was taken since the last turn has most of its lease left.
    for (const each of kept.values()) each.renew = true;
    for (let from = 0; from < ids.length; from += MAX_RENEWED) void renewAll(ids.slice(from, from + MAX_RENEWED));
    renewLater();
  };
  const isOurs = async (id: string, each: LeasedCharge): Promise<boolean> =>
    (await renewAll([id]))?.has(id) ?? monotonic() - each.since < leaseMs;

  return {
    newOwner: () => ownerOf(run, newId()),
    keep: (chargeId, since) => {
      const each = kept.get(chargeId) ?? { requests: 0, renew: false, since, holder: undefined, askedAt: since };
      each.requests += 1;
      each.since = Math.max(each.since, since);
      kept.set(chargeId, each);
      if (!running) renewLater();
      let stopped = false;
      const lease: Lease = {
        stop: () => {
          if (stopped) return;
          stopped = true;
          each.requests -= 1;
          if (each.requests === 0) kept.delete(chargeId);
        },
        holds: () => {
          if (each.holder !== lease) return false;
          if (monotonic() - each.since < leaseMs / 2) return true;
          return isOurs(chargeId, each).then((ours) => ours && each.holder === lease);
        },
      };
      // Two requests may have been answered while this process stood still: the one that asked later has the lease.
      if (each.holder === undefined || since >= each.askedAt) {
        each.holder = lease;
        each.askedAt = since;
      }
      return lease;
    },
  };
}
