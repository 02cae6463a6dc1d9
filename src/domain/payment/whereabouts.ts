// Says where a payer's money is, as far as the charge tells: whether it was taken, and until when the very same request
// brings the answer without another charge. Problems, `why` and lists of charges all say it from here.
import type { Charge, ChargeState } from './charge.ts';
import type { ListedCharge } from './reports.ts';
import { fetchableUntil, owedBecauseOf } from './claim-policy.ts';

/** Answers to whether money was taken. `unknown`: it may have been, and what became of it is being found out. */
export const CHARGED = [true, false, 'unknown'] as const;
export type ChargeAnswer = (typeof CHARGED)[number];

const BY_STATE: Readonly<Record<ChargeState, ChargeAnswer>> = {
  claimed: false,
  settling: 'unknown',
  settled: true,
  delivered: true,
  released: false,
  failed: false,
};

export function chargedOf({ state }: Pick<Charge, 'state'>): ChargeAnswer {
  return BY_STATE[state];
}

/** Members that a list adds to a charge. */
export function standingOf(charge: Charge, now: number): Pick<ListedCharge, 'owed' | 'retryUntil'> {
  return { owed: owedBecauseOf(charge, now) ?? null, retryUntil: retryUntil(charge, now) };
}

/** Time until which a retry brings the answer, milliseconds since the epoch; null if it brings none. */
export function retryUntil(charge: Charge, now: number): number | null {
  const until = charge.state === 'settled' ? fetchableUntil(charge) : 0;
  return until > now ? until : null;
}
