// The proxy that serves its requests in this process, with what takes its payments: in a process of its own or as one of
// several workers.
import type { AttentionFinding } from '../domain/attention/attention.ts';
import type { Discovery } from '../domain/discovery/listing.ts';
import type { Ledger } from '../domain/payment/ledger.ts';
import type { CounterChanger } from '../domain/selling/counter.ts';
import type { PassLedger } from '../domain/selling/pass-store.ts';
import type { ChargeReports } from '../domain/payment/reports.ts';
import type { FacilitatorHealths } from '../domain/payment/service-health.ts';
import type { PublicationInForce } from '../gateway/public-documents.ts';
import { createResponseMemory } from '../gateway/pay/kept-responses.ts';
import { createRefusals, rememberRefusals } from '../gateway/refusals.ts';
import type { CurrentSnapshot } from '../gateway/routes/current-snapshot.ts';
import { createTelemetry } from '../gateway/telemetry.ts';
import type { SaleCount } from '../domain/totals/sale-counts.ts';
import type { Tally } from '../gateway/totals/tally.ts';
import type { Tracing } from '../gateway/tracing/tracing.ts';
import type { Check } from '../host/admin.ts';
import type { Clock, Random } from '../host/clock.ts';
import type { Log } from '../host/log.ts';
import type { Metrics } from '../host/metrics.ts';
import type { Closers } from './closers.ts';
import { healthsOf } from './facilitators.ts';
import { startPayments, startRails, type Payments, type PaymentsWrapper } from './payments.ts';
import type { OwnFront } from './front.ts';
import { startProxy, type PageWrapper } from './proxy.ts';
import { startSelling } from './selling-part.ts';
import type { Settings } from './settings.ts';
import type { RefusalFinder } from './why.ts';

/** Ledger and reports that charges are written to. */
type ChargeBooks = {
  /** Ledger; undefined if nothing can write a charge down: then no payment is taken. */
  readonly ledger: Ledger | undefined;
  /** Reports; undefined if the ledger is in another process. */
  readonly reports: ChargeReports | undefined;
  /** Counters beside the charges; undefined if nothing can keep them. */
  readonly counters: CounterChanger | undefined;
  /** Books of passes; undefined if nothing can keep them. */
  readonly passes: PassLedger | undefined;
  /** Says that another process looks after charges without an end. */
  readonly takesOnly?: boolean;
};

/** Publicity of paid routes: in each 402 and to facilitators, and at the origin. */
type Publicity = { readonly listed: Discovery | undefined; readonly published: PublicationInForce };

/** Wrappers that the program that starts a Tollgate puts around parts of it: no configuration can. */
export type PartWrappers = {
  /** Put around the ledger and the rail. */
  readonly aroundPayments?: PaymentsWrapper | undefined;
  /** Put around the books of passes. */
  readonly aroundPasses?: ((passes: PassLedger) => PassLedger) | undefined;
  /** Put around the page for people. */
  readonly aroundPage?: PageWrapper | undefined;
};

export type ServedProxyDeps = PartWrappers & {
  readonly settings: Settings;
  readonly current: CurrentSnapshot;
  readonly metrics: Metrics;
  readonly closers: Closers;
  /** Where requests are counted. */
  readonly tally: Tally;
  /** Tracing, if requests are traced. */
  readonly tracing?: Tracing | undefined;
  readonly log: Log;
  readonly clock: Clock;
  readonly random: Random;
};

type ServedProxy = {
  readonly front: OwnFront;
  readonly checks: readonly Check[];
  /** What needs somebody. */
  readonly findings: () => readonly AttentionFinding[];
  /** Whether somebody can be asked to settle a payment, as far as is known. */
  readonly isCallable: () => boolean;
  readonly findRefusals: RefusalFinder;
  /** Health of the facilitators of all receivers, by the calls of this process. */
  readonly healths: () => FacilitatorHealths;
};

export async function serveFront(
  { ledger, reports, counters, passes: given, takesOnly = false }: ChargeBooks,
  { listed, published }: Publicity,
  deps: ServedProxyDeps,
): Promise<ServedProxy> {
  const { settings, current, metrics, closers, tally, tracing, log, clock, random, aroundPage } = deps;
  const refusals = createRefusals();
  const untraced = createTelemetry(metrics, log, current, settings, {
    refused: rememberRefusals(refusals, clock),
    tally,
  });
  const telemetry = tracing === undefined ? untraced : tracing.telemetry(untraced);
  const rails = startRails(deps);
  const routeLabel = telemetry.label;
  const aroundPayments = tracing === undefined ? deps.aroundPayments : traceAround(tracing, deps.aroundPayments);
  const countSale = (count: SaleCount): void => tally.open.sales.add(count);
  const memory = createResponseMemory();
  const passes = given && (deps.aroundPasses?.(given) ?? given);
  const saleDeps = { metrics, log, clock, random, routeLabel, countSale, counters, passes, memory };
  const selling = startSelling({ ...saleDeps, config: () => settings.config });
  const { sellFor, passesFor, close: stopSelling } = selling;
  closers.addFirst(async () => stopSelling());
  const payments =
    ledger &&
    startPayments({ ...deps, aroundPayments, ledger, reports, takesOnly, rails, routeLabel, passesFor, memory });
  if (payments !== undefined) closers.addFirst(payments.close);
  const stopWatching = rails.watch(() => settings.config.receivers.flatMap(({ ways }) => ways.map(({ way }) => way)));
  closers.addFirst(async () => stopWatching());
  const payFor = payments && tracePaying(payments.payFor, tracing);
  const { config } = settings;
  const drawsPasses = passes !== undefined;
  const common = { current, telemetry, rails, sellFor, drawsPasses, log, clock, random };
  const proxy =
    config.proxy && startProxy(config, config.proxy, listed, { ...common, tracing, payFor, published, aroundPage });
  // The module is loaded only in a process that needs it.
  const decisions =
    config.decision &&
    (await import('./decision.ts')).startDecisions(config, listed, {
      ...{ ...common, tracing, metrics },
      payments: payments && { payFor: tracePaying(payments.payFor, tracing), takeReportFor: payments.takeReportFor },
    });
  return {
    front: {
      listeners: [
        ...(proxy === undefined ? [] : [['proxy', proxy.listener] as const]),
        ...(decisions?.listeners ?? []),
      ],
      prepare: (next, discovery) => {
        const putProxyInForce = next.proxy && proxy?.prepare(next, next.proxy, discovery);
        const putDecisionsInForce = decisions?.prepare(next, discovery);
        return () => {
          putProxyInForce?.();
          putDecisionsInForce?.();
        };
      },
      trial: (origin) => {
        const trial = proxy?.trial ?? decisions?.trial;
        if (trial === undefined) throw new Error('neither a proxy nor a decision listener is served here');
        return trial(origin);
      },
      close: () => proxy?.close(),
    },
    checks: payments === undefined ? [] : [payments.facilitators.check],
    findings: payments?.facilitators.findings ?? ((): readonly AttentionFinding[] => []),
    isCallable: payments?.facilitators.isCallable ?? (() => true),
    healths: () => healthsOf(settings.config, rails.healthOf),
    findRefusals: async (id) => (await import('./why.ts')).findRefusals(refusals, id),
  };
}

/** Traces what is paid through `payFor`. */
function tracePaying(payFor: Payments['payFor'], tracing: Tracing | undefined): Payments['payFor'] {
  if (tracing === undefined) return payFor;
  return (config, decision) => (answers) => tracing.pay(payFor(config, decision)(answers));
}

/** Traces ledger and rail, whatever else stands around them. */
function traceAround(tracing: Tracing, around: PaymentsWrapper | undefined): PaymentsWrapper {
  return (ports) => {
    const { ledger, rail } = around?.(ports) ?? ports;
    return { ledger: tracing.ledger(ledger), rail: tracing.rail(rail) };
  };
}
