// The rails of all networks as one: each call goes to the rail of the payment's network, and all of them ask the same
// facilitators.
import type { Way } from '../../domain/payment/way.ts';
import { problem } from '../../domain/problem.ts';
import { FAMILIES } from './families.ts';
import type { NetworkRail, Rail } from './rail.ts';
import { readEnvelope } from './x402/envelope.ts';
import { createFacilitators, type FacilitatorDeps, type Facilitators } from './x402/facilitators.ts';

export type RailsDeps = FacilitatorDeps;
/** With what facilitators were like lately, whichever rail asked them. */
export type Rails = Rail &
  Pick<Facilitators, 'standing'> &
  Pick<NetworkRail, 'revision' | 'watch'> & {
    /** Undefined: no rail serves this network. */
    readonly for: (network: string) => NetworkRail | undefined;
  };

export function createRails(deps: RailsDeps): Rails {
  const facilitators = createFacilitators(deps);
  const rails = FAMILIES.flatMap(({ payments }) => payments?.createRail({ ...deps, facilitators }) ?? []);
  const find = (network: string): NetworkRail | undefined => rails.find(({ serves }) => serves(network));
  const railOf = ({ network }: Pick<Way, 'network'>): NetworkRail => {
    const rail = find(network);
    if (rail === undefined) throw new TypeError('a payment of a network that no rail serves');
    return rail;
  };

  return {
    for: find,
    standing: facilitators.standing,
    requirement: (offer, quote, version) => railOf(offer.way).requirement(offer, quote, version),
    read: (credential, ways) => {
      const read = readEnvelope(credential);
      if (!read.ok) return problem('payment_malformed', read.detail);
      // A network that none serves is refused by the rail of what is offered, which says what it takes.
      const rail = find(read.envelope.network) ?? (ways[0] && find(ways[0].network)) ?? rails[0];
      return rail === undefined
        ? problem('payment_malformed', 'No payment is taken here.')
        : rail.read(read.envelope, ways);
    },
    check: (presented, offer, nowMs) => railOf(presented.key).check(presented, offer, nowMs),
    verify: (presented, offer) => railOf(presented.key).verify(presented, offer),
    settle: (presented, offer, history, sending) => railOf(presented.key).settle(presented, offer, history, sending),
    firstVia: (presented, offer) => railOf(presented.key).firstVia(presented, offer),
    revision: () => rails.reduce((sum, { revision }) => sum + revision(), 0),
    watch: (ways) => {
      const stops = rails.map(({ serves, watch }) => watch(() => ways().filter(({ network }) => serves(network))));
      return () => stops.forEach((stop) => stop());
    },
    receiptHeader: (version, receipt) => railOf(receipt).receiptHeader(version, receipt),
    look: async (charge, asker) =>
      find(charge.payment.network)?.look(charge, asker) ?? {
        kind: 'unavailable',
        detail: 'no rail serves this network',
      },
  };
}
