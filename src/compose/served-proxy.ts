// The proxy that serves its requests in this process, with what takes its payments: in a process of its own or as one of
// several workers.
import type { Discovery } from '../domain/discovery/listing.ts';
import type { Ledger } from '../domain/payment/ledger.ts';
import type { ChargeReports } from '../domain/payment/reports.ts';
import type { PublicationInForce } from '../gateway/public-documents.ts';
import { createRefusals, rememberRefusals } from '../gateway/refusals.ts';
import type { CurrentSnapshot } from '../gateway/routes/current-snapshot.ts';
import { createTelemetry } from '../gateway/telemetry.ts';
import type { Tally } from '../gateway/totals/tally.ts';
import type { Check } from '../host/admin.ts';
import type { Clock, Random } from '../host/clock.ts';
import type { Log } from '../host/log.ts';
import type { Metrics } from '../host/metrics.ts';
import type { Closers } from './closers.ts';
import { startPayments, startRails, type PaymentsWrapper } from './payments.ts';
import type { OwnFront } from './front.ts';
import { startProxy, type PageWrapper } from './proxy.ts';
import type { Settings } from './settings.ts';
import type { RefusalFinder } from './why.ts';

/** Ledger and reports that charges are written to. */
type ChargeBooks = {
  /** Ledger; undefined if nothing can write a charge down: then no payment is taken. */
  readonly ledger: Ledger | undefined;
  /** Reports; undefined if the ledger is in another process. */
  readonly reports: ChargeReports | undefined;
  /** Says that another process looks after charges without an end. */
  readonly takesOnly?: boolean;
};

/** Publicity of paid routes: in each 402 and to facilitators, and at the origin. */
type Publicity = { readonly listed: Discovery | undefined; readonly published: PublicationInForce };

/** Wrappers that the program that starts a Tollgate puts around parts of it: no configuration can. */
export type PartWrappers = {
  /** Put around the ledger and the rail. */
  readonly aroundPayments?: PaymentsWrapper | undefined;
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
  readonly log: Log;
  readonly clock: Clock;
  readonly random: Random;
};

type ServedProxy = {
  readonly front: OwnFront;
  readonly checks: readonly Check[];
  /** Whether somebody can be asked to settle a payment, as far as is known. */
  readonly isCallable: () => boolean;
  readonly findRefusals: RefusalFinder;
};

export async function serveFront(
  { ledger, reports, takesOnly = false }: ChargeBooks,
  { listed, published }: Publicity,
  deps: ServedProxyDeps,
): Promise<ServedProxy> {
  const { settings, current, metrics, closers, tally, log, clock, random, aroundPage } = deps;
  const refusals = createRefusals();
  const telemetry = createTelemetry(metrics, log, current, settings, {
    refused: rememberRefusals(refusals, clock),
    tally,
  });
  const rails = startRails(deps);
  const routeLabel = telemetry.label;
  const payments = ledger && startPayments({ ...deps, ledger, reports, takesOnly, rails, routeLabel });
  if (payments !== undefined) closers.addFirst(payments.close);
  const stopWatching = rails.watch(() => settings.config.receivers.flatMap(({ ways }) => ways.map(({ way }) => way)));
  closers.addFirst(async () => stopWatching());
  const payFor = payments?.payFor;
  const { config } = settings;
  const common = { current, telemetry, rails, log, clock, random };
  const proxy = config.proxy && startProxy(config, config.proxy, listed, { ...common, payFor, published, aroundPage });
  // The module is loaded only in a process that needs it.
  const decisions =
    config.decision && (await import('./decision.ts')).startDecisions(config, listed, { ...common, metrics, payments });
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
      trial: () => proxy?.trial(),
      close: () => proxy?.close(),
    },
    checks: payments === undefined ? [] : [payments.facilitators.check],
    isCallable: payments?.facilitators.isCallable ?? (() => true),
    findRefusals: async (id) => (await import('./why.ts')).findRefusals(refusals, id),
  };
}
