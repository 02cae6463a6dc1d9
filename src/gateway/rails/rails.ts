// The rails of all networks as one: each call goes to the rail of the payment's network. A chain family is a folder beside
// this file and an entry in the list.
import { problem } from '../../domain/problem.ts';
import { createEvmRail, type EvmRailDeps } from './evm/rail.ts';
import type { NetworkRail, Rail } from './rail.ts';
import { readEnvelope } from './x402/envelope.ts';
import type { Facilitators } from './x402/facilitators.ts';

export type RailsDeps = EvmRailDeps;
/** With what facilitators were like lately, whichever rail asked them. */
export type Rails = Rail & Pick<Facilitators, 'standing'>;

export function createRails(deps: RailsDeps): Rails {
  const evm = createEvmRail(deps);
  const rails: readonly NetworkRail[] = [evm];
  const find = (network: string): NetworkRail | undefined => rails.find(({ serves }) => serves(network));
  const railOf = (network: string): NetworkRail => {
    const rail = find(network);
    if (rail === undefined) throw new TypeError('a payment of a network that no rail serves');
    return rail;
  };

  return {
    read: (credential, offer) => {
      const read = readEnvelope(credential);
      if (!read.ok) return problem('payment_malformed', read.detail);
      // A network that none serves is refused by the first, which says what it takes.
      return (find(read.envelope.network) ?? evm).read(read.envelope, offer);
    },
    check: (presented, offer, nowMs) => railOf(presented.key.network).check(presented, offer, nowMs),
    verify: (presented, offer) => railOf(presented.key.network).verify(presented, offer),
    settle: (presented, offer, history, sending) =>
      railOf(presented.key.network).settle(presented, offer, history, sending),
    firstVia: (offer) => railOf(offer.receiver.caip2).firstVia(offer),
    receiptHeader: (version, receipt) => railOf(receipt.network).receiptHeader(version, receipt),
    standing: evm.standing,
    look: async (charge, asker) =>
      find(charge.payment.network)?.look(charge, asker) ?? {
        kind: 'unavailable',
        detail: 'no rail serves this network',
      },
  };
}
