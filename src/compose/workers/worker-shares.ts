// The share of one worker in the limits of its process, rounded up: what all workers allow together is what the
// configuration says.
import type { Config, ProxyConfig } from '../../config/config.ts';
import type { Facilitator, ReceiverWay } from '../../domain/payment/offer.ts';

/** The configuration of one of `workers` workers. */
export function shareOf(config: Config, workers: number): Config {
  const share = (limit: number): number => Math.ceil(limit / workers);
  const shareOfFacilitator = (facilitator: Facilitator): Facilitator => {
    const { calls, waiting } = facilitator.limits;
    return { ...facilitator, limits: { calls: share(calls), waiting: share(waiting) } };
  };
  const shareOfWay = (way: ReceiverWay): ReceiverWay => ({
    ...way,
    facilitators: way.facilitators.map(shareOfFacilitator),
  });
  const { proxy, decision, front, receivers } = config;
  const shareOfFront = (section: ProxyConfig): ProxyConfig => ({
    ...section,
    limits: {
      ...section.limits,
      connections: share(section.limits.connections),
      inFlight: share(section.limits.inFlight),
      payments: share(section.limits.payments),
    },
  });
  return {
    ...config,
    receivers: receivers.map((receiver) => ({ ...receiver, ways: receiver.ways.map(shareOfWay) })),
    proxy: proxy && shareOfFront(proxy),
    front: front && shareOfFront(front),
    decision: decision?.map((section) => ({ ...section, front: shareOfFront(section.front) })),
  };
}
