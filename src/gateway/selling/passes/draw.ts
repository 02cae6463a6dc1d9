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
  /** Takes the use, or `amount` of what was reserved. `unavailable`: the ledger does not answer; it is given back by and by. */
  readonly take: (amount?: bigint) => Promise<DrawResult | 'unavailable'>;
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
  const end = (): void => {
    isOver = true;
    lease.stop();
  };
  return {
    end,
    take: async (amount) => {
      if (isOver) return { kind: 'lost' };
      const change: DrawChange = { ...name, kind: 'take', amount: amount ?? null };
      const result = await twice(deps, change);
      end();
      if (result === 'unavailable') sayUntilHeard(deps, { ...name, kind: 'give_back', because: 'not_charged' });
      return result;
    },
    giveBack: (because) => {
      if (isOver) return;
      end();
      sayUntilHeard(deps, { ...name, kind: 'give_back', because });
    },
  };
}

/** Why a use was none whose response no status line began. */
export function whyUnused(end: End): GiveBackReason {
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

/** Makes a change until the ledger has answered it; the lease decides if it never does. */
export function sayUntilHeard(deps: DrawDeps, change: DrawChange, tries = 0): void {
  deps.ledger.change(change).catch((error: unknown) => {
    const pauseMs = PAUSES_MS[tries];
    const { passId, useId } = change;
    if (pauseMs !== undefined) deps.schedule(pauseMs, () => sayUntilHeard(deps, change, tries + 1));
    else deps.log.warn('a use of a pass could not be given back', { pass_id: passId, use_id: useId, error });
  });
}
