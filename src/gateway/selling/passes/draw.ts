// One draw on a pass, from its reservation to its end: its lease is renewed meanwhile, and what the ledger did not answer is said
// again until it does. Whoever takes it waits until that is durable: the client hears of its answer only then.
import { LedgerUnavailable } from '../../../domain/payment/ledger.ts';
import type { DrawChange, DrawResult } from '../../../domain/selling/pass-book.ts';
import type { PassLedger } from '../../../domain/selling/pass-store.ts';
import type { Schedule } from '../../../host/clock.ts';
import type { Log } from '../../../host/log.ts';
import type { End } from '../../outcome.ts';
import type { Lease } from '../../pay/lease.ts';

export type GiveBackReason = Extract<DrawChange, { kind: 'give_back' }>['because'];

export type Draw = {
  /**
   * Takes the use, or `amount` of what was reserved. `unavailable`: the ledger does not answer; it is given back by and by, so
   * the answer goes to nobody.
   */
  readonly take: (amount?: bigint) => Promise<DrawResult | 'unavailable'>;
  /** Takes the use of an answer that goes out whatever the ledger says: it is told until it answers. */
  readonly takeAnyway: (amount?: bigint) => Promise<DrawResult | 'unavailable'>;
  /** Gives the use back; nobody waits for it. */
  readonly giveBack: (because: GiveBackReason) => void;
  /** Nothing more becomes of it: it was drawn before. */
  readonly end: () => void;
};

export type DrawDeps = {
  readonly ledger: Pick<PassLedger, 'change'>;
  readonly schedule: Schedule;
  readonly log: Log;
};

const PAUSES_MS = [100, 500, 2_000, 10_000, 30_000];

export function createDraw(
  { passId, useId, owner }: Pick<DrawChange, 'passId' | 'useId' | 'owner'>,
  lease: Pick<Lease, 'stop'>,
  deps: DrawDeps,
): Draw {
  const name = { passId, useId, owner };
  let isOver = false;
  const take = async (
    amount: bigint | undefined,
    ifUnheard: (taking: DrawChange) => DrawChange,
  ): Promise<DrawResult | 'unavailable'> => {
    if (isOver) return { kind: 'lost' };
    const change: DrawChange = { ...name, kind: 'take', amount: amount ?? null };
    const result = await twice(deps, change);
    isOver = true;
    if (result === 'unavailable') sayUntilHeard(deps, ifUnheard(change), lease);
    else lease.stop();
    return result;
  };
  return {
    end: () => {
      isOver = true;
      lease.stop();
    },
    take: (amount) => take(amount, () => ({ ...name, kind: 'give_back', because: 'unheard' })),
    takeAnyway: (amount) => take(amount, (taking) => taking),
    giveBack: (because) => {
      if (isOver) return;
      isOver = true;
      sayUntilHeard(deps, { ...name, kind: 'give_back', because }, lease);
    },
  };
}

/** Why a use was none whose response no status line began. */
export function whyUnused(end: End): Exclude<GiveBackReason, 'unheard'> {
  switch (end.kind) {
    case 'not_sent':
      return 'unasked';
    case 'client_gone':
      return end.asked ? 'left' : 'unasked';
    case 'failed':
      return end.asked ? 'not_charged' : 'unasked';
    case 'delivered':
    case 'replaced':
      return 'not_charged';
    default:
      return end satisfies never;
  }
}

/** Makes a change, tried twice: the second time the ledger recognises the first. */
async function twice({ ledger, log }: DrawDeps, change: DrawChange): Promise<DrawResult | 'unavailable'> {
  for (let tries = 0; ; tries++) {
    try {
      return await ledger.change(change);
    } catch (error) {
      if (!(error instanceof LedgerUnavailable)) throw error;
      if (tries === 0) continue;
      log.error('the ledger is unavailable', { pass_id: change.passId, use_id: change.useId, error });
      return 'unavailable';
    }
  }
}

/** Makes a change until the ledger has answered it; the lease, which is kept for as long, decides if it never does. */
export function sayUntilHeard(deps: DrawDeps, change: DrawChange, lease: Pick<Lease, 'stop'>, tries = 0): void {
  deps.ledger.change(change).then(lease.stop, (error: unknown) => {
    const pauseMs = PAUSES_MS[tries];
    if (pauseMs !== undefined) {
      deps.schedule(pauseMs, () => sayUntilHeard(deps, change, lease, tries + 1));
      return;
    }
    lease.stop();
    const { passId, useId } = change;
    deps.log.warn('what became of a use of a pass could not be written', { pass_id: passId, use_id: useId, error });
  });
}
