// The rails of all networks as one: each call goes to the rail of the payment's network, and all of them ask the same
// facilitators.
import type { Way } from '../../domain/payment/way.ts';
import { problem } from '../../domain/problem.ts';
import { FAMILIES } from './families.ts';
import type { NetworkRail, Rail } from './rail.ts';
import { readEnvelope } from './x402/envelope.ts';
import { chooseWay, wayMismatch } from './x402/choose-way.ts';
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
  const served = FAMILIES.flatMap(({ payments }) =>
    payments === undefined ? [] : [{ ...payments, rail: payments.createRail({ ...deps, facilitators }) }],
  );
  const rails = served.map(({ rail }) => rail);
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
      const reading = readEnvelope(credential);
      if (!reading.ok) return problem('payment_malformed', reading.detail);
      const { envelope } = reading;
      const own = served.find(({ rail }) => rail.serves(envelope.network));
      const way = chooseWay(envelope, ways, own?.words);
      const isNamed = !('reason' in way);
      // Where there is one way, it takes no other kind, and its own rail says what is wrong.
      const isOfAnother =
        (ways.length > 1 || !isNamed) &&
        served.some(
          ({ rail, isPayment }) =>
            rail !== own?.rail && isPayment(envelope.payload) && ways.some(({ network }) => rail.serves(network)),
        );
      if (isOfAnother) return isNamed ? wayMismatch(`a payment of the kind of ${way.network}`) : way;
      const read = own?.rail.read(envelope, isNamed ? way : undefined);
      if (read !== undefined) return 'code' in read ? read : { ...read, way };
      return !isNamed && ways.length > 0
        ? way
        : problem('payment_malformed', 'The payment names a network or an asset that none is taken in.');
    },
    check: (presented, offer, nowMs) => railOf(presented.key).check(presented, offer, nowMs),
    verify: (presented, offer) => railOf(presented.key).verify(presented, offer),
    settle: (presented, offer, history, sending) => railOf(presented.key).settle(presented, offer, history, sending),
    firstVia: (presented, offer) => railOf(presented.key).firstVia(presented, offer),
    revision: () => rails.reduce((sum, { revision }) => sum + revision(), facilitators.revision()),
    isCallable: (way) =>
      facilitators.standing(deps.services(way)?.facilitators ?? []).some(({ open }) => open === undefined),
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
