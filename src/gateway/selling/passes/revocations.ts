// Revocations of passes, as this process knows them: read from the ledger every few seconds, because a pass by seconds is let in
// without asking anybody. If the ledger is away, what was known stays.
import { MOST_REVOKED, type PassLedger } from '../../../domain/selling/pass-store.ts';
import type { Clock, Schedule } from '../../../host/clock.ts';

type RevocationsDeps = {
  readonly ledger: Pick<PassLedger, 'revoked'>;
  /** Whether there may be passes: without them nobody is asked. */
  readonly isWanted: () => boolean;
  readonly clock: Pick<Clock, 'now'>;
  readonly schedule: Schedule;
};

export type Revocations = { readonly has: (passId: string) => boolean; readonly close: () => void };

/** Half of the time within which a revocation has to be known. */
const EVERY_MS = 4_000;
/** Clocks may differ by this, and writes may become visible in another order. */
const OVERLAP_MS = 60_000;

export function startRevocations({ ledger, isWanted, clock, schedule }: RevocationsDeps): Revocations {
  /** Ends of revoked passes, by id. */
  const revoked = new Map<string, number>();
  let newest = 0;
  let stopped = false;
  let cancel: () => void = () => undefined;

  const read = async (): Promise<void> => {
    let after = Math.max(0, newest - OVERLAP_MS);
    for (;;) {
      const page = await ledger.revoked(after, MOST_REVOKED);
      for (const { id, revokedAt, endsAt } of page) {
        revoked.set(id, endsAt);
        newest = Math.max(newest, revokedAt);
      }
      const last = page.at(-1);
      if (page.length < MOST_REVOKED || last === undefined) break;
      // Those of one moment may stand on both sides of a page.
      after = Math.max(after, last.revokedAt - 1);
      if (page[0]?.revokedAt === last.revokedAt) after = last.revokedAt;
    }
    for (const [id, endsAt] of revoked) if (endsAt <= clock.now()) revoked.delete(id);
  };
  const turn = async (): Promise<void> => {
    if (isWanted()) await read().catch(() => undefined);
    if (!stopped) cancel = schedule(EVERY_MS, () => void turn());
  };
  cancel = schedule(0, () => void turn());
  return {
    has: (passId) => revoked.has(passId),
    close: () => {
      stopped = true;
      cancel();
    },
  };
}
