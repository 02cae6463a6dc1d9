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

/** Hears what the ledger answered. */
export type HearResult = (result: DrawResult) => void;

export type Draw = {
  /**
   * Takes the use, or `amount` of what was reserved. `unavailable`: the ledger does not answer; it is given back by and by, so
   * the answer goes to nobody.
   */
  readonly take: (amount?: bigint) => Promise<DrawResult | 'unavailable'>;
  /**
   * Takes the use of an answer that goes out whatever the ledger says: it is told until it answers. Resolves once it did, or was
   * asked twice. `heard`: its answer, if it ever gives one.
   */
  readonly takeAnyway: (amount: bigint | undefined, heard: HearResult) => Promise<void>;
  /** Takes `amount` of what was reserved, because the response is over: nobody waits for it. `heard` as above. */
  readonly takeAfterwards: (amount: bigint, heard: HearResult) => void;
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
const LONGEST_PAUSE_MS = 30_000;
/** Tries to take what was delivered. The service is the payer's by then, so it is tried longer than any other change. */
const TRIES_TO_TAKE = 120;

export function createDraw(
  { passId, useId, owner }: Pick<DrawChange, 'passId' | 'useId' | 'owner'>,
  lease: Pick<Lease, 'stop'>,
  deps: DrawDeps,
): Draw {
  const name = { passId, useId, owner };
  let isOver = false;
  const over = (): boolean => {
    const was = isOver;
    isOver = true;
    return was;
  };
  const taking = (amount: bigint | undefined): DrawChange => ({ ...name, kind: 'take', amount: amount ?? null });
  return {
    end: () => {
      isOver = true;
      lease.stop();
    },
    take: async (amount) => {
      if (over()) return { kind: 'lost' };
      const result = await twice(deps, taking(amount));
      if (result === 'unavailable') sayUntilHeard(deps, { ...name, kind: 'give_back', because: 'unheard' }, { lease });
      else lease.stop();
      return result;
    },
    takeAnyway: async (amount, heard) => {
      if (over()) return;
      const result = await twice(deps, taking(amount));
      if (result === 'unavailable') return sayUntilHeard(deps, taking(amount), { lease, heard });
      lease.stop();
      heard(result);
    },
    takeAfterwards: (amount, heard) => {
      if (!over()) sayUntilHeard(deps, taking(amount), { lease, heard });
    },
    giveBack: (because) => {
      if (!over()) sayUntilHeard(deps, { ...name, kind: 'give_back', because }, { lease });
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

type Waiting = {
  /** Kept until the ledger has answered; it decides if that never happens. */
  readonly lease: Pick<Lease, 'stop'>;
  readonly heard?: HearResult;
};

/** Makes a change until the ledger has answered it. */
export function sayUntilHeard(deps: DrawDeps, change: DrawChange, { lease, heard }: Waiting): void {
  const { ledger, schedule, log } = deps;
  const most = change.kind === 'take' ? TRIES_TO_TAKE : PAUSES_MS.length;
  const say = (tries: number): void => {
    ledger.change(change).then(
      (result) => {
        lease.stop();
        heard?.(result);
      },
      (error: unknown) => {
        if (tries < most) {
          schedule(PAUSES_MS[tries] ?? LONGEST_PAUSE_MS, () => say(tries + 1));
          return;
        }
        lease.stop();
        const { passId, useId, kind } = change;
        const about = { pass_id: passId, use_id: useId, wanted: kind, error };
        log.warn('what became of a use of a pass could not be written', about);
      },
    );
  };
  say(0);
}
