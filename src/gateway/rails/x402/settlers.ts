// Who may be asked to settle a payment, and in which order. Who verified a payment is remembered by this process only: what a
// restart has to know stands in the charge.
import { createHash } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import type { RailOffer, Way } from '../../../domain/payment/way.ts';
import type { Facilitator } from '../../../domain/receiver.ts';
import type { Presented } from '../rail.ts';

/** `who_verified`: only the facilitator that verified a payment may settle it, where it is known which one did. */
export type SettleOrder = { readonly settles: 'in_order' | 'who_verified' };

/** Payments of which it is kept who verified them. */
const VERIFIERS = 10_000;

export type Settlers = {
  readonly verified: (presented: Presented, by: Facilitator) => void;
  readonly mayBeAsked: (presented: Presented, offer: RailOffer, via: string | undefined) => readonly Facilitator[];
};

export function createSettlers(
  facilitatorsOf: (way: Way) => readonly Facilitator[],
  settles: SettleOrder['settles'],
): Settlers {
  const verifiers = new LRUCache<string, string>({ max: VERIFIERS });
  return {
    verified: (presented, by) => void verifiers.set(presented.key.unique, nameOf(by)),
    mayBeAsked: (presented, { way }, via) => {
      const facilitators = facilitatorsOf(way);
      if (settles === 'in_order') return inOrder(facilitators, via);
      const only = via ?? verifiers.get(presented.key.unique);
      return facilitators.filter((each) => only === undefined || nameOf(each) === only);
    },
  };
}

/** Who was asked first before is asked first: no other may remember that attempt. */
function inOrder(facilitators: readonly Facilitator[], via: string | undefined): readonly Facilitator[] {
  if (via === undefined) return facilitators;
  const asked = facilitators.filter((facilitator) => nameOf(facilitator) === via);
  return [...asked, ...facilitators.filter((facilitator) => !asked.includes(facilitator))];
}

/** Stands for a facilitator in a ledger row: its URL may hold a secret. */
export function nameOf({ url, account }: Facilitator): string {
  const name = account === undefined ? url : `${url} ${account}`;
  return createHash('sha256').update(name).digest('hex').slice(0, 16);
}
