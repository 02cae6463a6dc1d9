// The share of one worker in the limits of its process, rounded up: what all workers allow together is what the
// configuration says.
import type { Config } from '../../config/config.ts';
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
  const { proxy, receivers } = config;
  return {
    ...config,
    receivers: receivers.map((receiver) => ({ ...receiver, ways: receiver.ways.map(shareOfWay) })),
    proxy: proxy && {
      ...proxy,
      limits: {
        ...proxy.limits,
        connections: share(proxy.limits.connections),
        inFlight: share(proxy.limits.inFlight),
        payments: share(proxy.limits.payments),
      },
    },
  };
}
