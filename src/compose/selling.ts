// The part that sells by plans: what its ways to pass share for the life of a process, and the ways themselves, made anew
// for each configuration.
import type { Config, ProxyConfig } from '../config/config.ts';
import { ownAuthorities } from '../gateway/pay/charged-responses.ts';
import { createObservation } from '../gateway/selling/observation.ts';
import { createSaleMetrics } from '../gateway/selling/sale-metrics.ts';
import { createSelling, type SellingDeps } from '../gateway/selling/selling.ts';
import type { Sell } from '../gateway/selling/way-to-pass.ts';
import { createWouldCharge } from '../gateway/selling/would-charge.ts';
import type { Log } from '../host/log.ts';
import type { Metrics } from '../host/metrics.ts';

/** The proxy's own rules, as far as selling needs them. */
export type ProxyRules = Pick<SellingDeps, 'rules' | 'offerFor'>;

/** Makes what sells under a configuration. */
export type SellFor = (config: Config, proxy: ProxyConfig, rules: ProxyRules) => Sell;

type SellingPartDeps = {
  readonly metrics: Metrics;
  readonly log: Log;
  /** Names a route in metrics. */
  readonly routeLabel: (id: string) => string;
};

export function startSelling({ metrics: all, log, routeLabel }: SellingPartDeps): SellFor {
  const metrics = createSaleMetrics(all, routeLabel);
  return ({ selling: { plans } }, { publicUrl, hosts, upstream }, { rules, offerFor }) => {
    const own = ownAuthorities({ publicUrl, hosts, upstream: new URL(upstream.origin) });
    const wouldCharge = createWouldCharge(own);
    const observe = createObservation({ offerFor, wouldCharge, metrics, log });
    return createSelling({
      ...{ plans, rules, offerFor },
      waysOf: (plan) => ({
        beforePayment: plan.observe === undefined ? [] : [observe],
        afterPayment: [],
      }),
    });
  };
}
