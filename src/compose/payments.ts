// The part that takes payments: the rail, what writes charges down, and the reconciler of charges without an end.
// Starts even if no facilitator answers: they are asked when a payment comes.
import type { Config, ProxyConfig } from '../config/config.ts';
import type { ChargeReports } from '../domain/payment/reports.ts';
import type { Ledger } from '../domain/payment/ledger.ts';
import { servicesInForce } from '../domain/payment/offer.ts';
import type { OwnResponses } from '../gateway/outcome.ts';
import { createLeases, LEASE_MS, type Leases } from '../gateway/pay/lease.ts';
import { createChargeLog, type ChargeLog } from '../gateway/pay/recorder.ts';
import { createReplays, createResponseMemory, type ResponseMemory } from '../gateway/pay/kept-responses.ts';
import { createSeenPayments, type SeenPayments } from '../gateway/pay/seen-payments.ts';
import { createPay, type PaymentHandler, type PayDeps, type PayOptions } from '../gateway/pay/pay.ts';
import { ownAuthorities } from '../gateway/pay/charged-responses.ts';
import { createSettleModes, enoughToServeFirst } from '../gateway/pay/settler.ts';
import type { SettleModes } from '../gateway/pay/payment.ts';
import { createTakeReport, type TakeReport } from '../gateway/decision/failure-report.ts';
import type { CreateRepeats } from '../gateway/pay/repeats.ts';
import { createRails, nameWay, type Rails } from '../gateway/rails/rails.ts';
import { createAuthorize } from '../gateway/rails/x402/auth.ts';
import { observeFacilitators } from '../gateway/rails/x402/facilitator-calls.ts';
import type { Rail } from '../gateway/rails/rail.ts';
import { createReconcile } from '../gateway/reconcile.ts';
import type { Tracing } from '../gateway/tracing/tracing.ts';
import { systemSchedule, type Clock, type Random } from '../host/clock.ts';
import { createTokens } from '../host/identifiers.ts';
import type { Log } from '../host/log.ts';
import type { Metrics } from '../host/metrics.ts';
import { exportCharges } from './charge-metrics.ts';
import { watchFacilitators, type FacilitatorState } from './facilitators.ts';
import type { PassesFor } from './pass-part.ts';
import type { Settings } from './settings.ts';

/** The ledger that payments are written into, and the rail that settles them. */
type PaymentPorts = { readonly ledger: Ledger; readonly rail: Rail };
export type PaymentsWrapper = (ports: PaymentPorts) => PaymentPorts;

type RailsDeps = {
  readonly settings: Settings;
  readonly log: Log;
  readonly clock: Clock;
  readonly random: Random;
  readonly metrics: Metrics;
  readonly tracing?: Tracing | undefined;
};

type PaymentsDeps = RailsDeps & {
  readonly ledger: Ledger;
  /** Reports; undefined if the ledger is in another process; else the charges are counted for the metrics. */
  readonly reports: ChargeReports | undefined;
  readonly rails: Rails;
  /** Names a route in metrics. */
  readonly routeLabel: (id: string) => string;
  readonly aroundPayments?: PaymentsWrapper | undefined;
  /** Memory for all responses that are kept; left out: these are the only ones. */
  readonly memory?: ResponseMemory;
  /** Makes what sells passes under a configuration; undefined: none are sold. */
  readonly passesFor?: PassesFor | undefined;
  /** Says that another process looks at charges without an end, and counts them. */
  readonly takesOnly?: boolean;
};

export type Payments = {
  /** Makes payments under a configuration. `decision`: for a listener that answers questions. */
  readonly payFor: (config: Config, decision?: DecisionPayments) => (answers: OwnResponses) => PaymentHandler;
  /** Takes reports of proxies under a configuration. */
  readonly takeReportFor: (config: Config) => TakeReport;
  readonly facilitators: FacilitatorState;
  readonly close: () => Promise<void>;
};

/** Part of a decision listener in payments. */
type DecisionPayments = { readonly front: ProxyConfig; readonly createRepeats: CreateRepeats };

const RECONCILE_EVERY_MS = { here: 1_000, elsewhere: 5_000 };
const COUNT_EVERY_MS = 5_000;

export function startPayments(deps: PaymentsDeps): Payments {
  const { settings, reports, rails, routeLabel, log, clock, random, metrics, passesFor } = deps;
  const { memory = createResponseMemory() } = deps;
  const newId = createTokens(random, 16, 'hex');
  const ports = { ledger: deps.ledger, rail: rails };
  const { ledger, rail } = deps.aroundPayments?.(ports) ?? ports;
  const chargeLog = createChargeLog(metrics, log, routeLabel);
  const seenPayments = createSeenPayments();
  const modes = createSettleModes(clock.monotonic);
  const responses = { memory, replays: createReplays(systemSchedule, clock.monotonic) };
  const leases = createLeases({
    ledger,
    schedule: systemSchedule,
    newId,
    monotonic: clock.monotonic,
    leaseMs: LEASE_MS,
  });
  const { ranUnpaid } = modes;
  const reconcile = createReconcile({ rail, ledger, chargeLog, ranUnpaid, log, clock, random });
  const everyMs = reports === undefined ? RECONCILE_EVERY_MS.elsewhere : RECONCILE_EVERY_MS.here;
  const stopReconciling =
    deps.takesOnly === true ? undefined : repeat(everyMs, log, async () => void (await reconcile()));
  const stopCounting = reports === undefined ? undefined : countCharges(reports, metrics, log, clock.now);
  return {
    facilitators: watchFacilitators(() => settings.config, rails.standing, metrics),
    payFor: (next, decision) =>
      payWith(
        next,
        settings,
        { rail, ledger, seenPayments, chargeLog, modes, leases, responses, newId, log, clock, passesFor },
        decision,
      ),
    takeReportFor: ({ page: { support } }) => {
      const options = { services: servicesInForce(settings), nameOf: nameWay, support };
      return createTakeReport({ rail, ledger, chargeLog, options, newId, pause, log });
    },
    close: async () => {
      await stopReconciling?.();
      await stopCounting?.();
    },
  };
}

export function startRails({ settings, log, clock, random, metrics, tracing }: RailsDeps): Rails {
  const { fetch } = globalThis;
  return createRails({
    fetch: tracing?.facilitatorFetch(fetch) ?? fetch,
    chainFetch: tracing?.chainFetch(fetch),
    schedule: systemSchedule,
    clock,
    log,
    services: servicesInForce(settings),
    authorize: createAuthorize(clock, random),
    observe: observeFacilitators(metrics),
  });
}

type PayParts = {
  readonly log: Log;
  readonly clock: Clock;
  readonly rail: Rail;
  readonly ledger: Ledger;
  readonly seenPayments: SeenPayments;
  readonly chargeLog: ChargeLog;
  readonly modes: SettleModes;
  readonly leases: Leases;
  readonly newId: () => string;
  readonly responses: PayDeps['responses'];
  readonly passesFor: PassesFor | undefined;
};

function payWith(
  config: Config,
  running: Settings,
  { rail, ledger, seenPayments, chargeLog, modes, leases, responses, newId, log, clock, passesFor }: PayParts,
  decision: DecisionPayments | undefined,
): (answers: OwnResponses) => PaymentHandler {
  const { charges, proxy, page } = config;
  const front = decision?.front ?? proxy;
  if (front === undefined) throw new Error('only a proxy or a decision listener takes payments');
  const upstream = new URL(front.upstream.origin);
  const options: PayOptions = {
    keepResponseBytes: Math.min(charges.keepResponseBytes, ledger.answerLimitBytes),
    maxUnsettledPerPayer: charges.maxUnsettledPerPayer,
    ownAuthorities: ownAuthorities({ publicUrl: front.publicUrl, hosts: front.hosts, upstream }),
    enoughToServeFirstMs: enoughToServeFirst(front.timeouts.headersMs),
    leaseMs: LEASE_MS,
    services: servicesInForce(running),
    nameOf: nameWay,
    support: page.support,
  };
  return (answers) =>
    createPay({
      ...answers,
      ...{ rail, ledger, seenPayments, chargeLog, modes, leases },
      passes: passesFor?.(config, front, (refusal, origin) => answers.refuse(refusal, origin).response),
      // Nothing of the proxy is replayed by a decision.
      responses:
        decision === undefined ? responses : { ...responses, replays: createReplays(systemSchedule, clock.monotonic) },
      createRepeats: decision?.createRepeats,
      ...{ log, clock, newId, options, pause },
    });
}

/** Counts the charges for the metrics, every few seconds; what is returned ends it. */
export function countCharges(
  reports: ChargeReports,
  metrics: Metrics,
  log: Log,
  now: () => number,
): () => Promise<void> {
  return repeat(COUNT_EVERY_MS, log, exportCharges(reports, metrics, now));
}

/** Runs `task` every `everyMs`, never twice at a time; a failure is logged and the next turn comes. */
function repeat(everyMs: number, log: Log, task: () => Promise<void>): () => Promise<void> {
  let running = Promise.resolve();
  let cancel = (): void => undefined;
  let stopped = false;
  let failing = false;
  const turn = (): void => {
    running = task()
      .then(() => {
        failing = false;
      })
      .catch((error: unknown) => {
        // The line comes once per outage: the ledger's own log says the rest.
        if (!failing) log.warn('a background task failed, it goes on', { error });
        failing = true;
      })
      .then(() => {
        if (!stopped) cancel = systemSchedule(everyMs, turn);
      });
  };
  turn();
  return async () => {
    stopped = true;
    cancel();
    await running;
  };
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => {
    systemSchedule(ms, resolve);
  });
}
