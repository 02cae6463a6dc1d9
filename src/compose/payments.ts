// The part that takes payments: the rail, what writes charges down, and the reconciler that takes on what did not end.
// Starts whatever becomes of the facilitators: they are asked when somebody pays.
import type { Config } from '../config/config.ts';
import { CHARGE_STATES } from '../domain/charge.ts';
import type { Ledger, Reports } from '../domain/ledger.ts';
import type { Answers } from '../gateway/collect.ts';
import { createChargeLog, type ChargeLog } from '../gateway/pay/charge-log.ts';
import { createMet, type Met } from '../gateway/pay/met.ts';
import { createPay, type Pay } from '../gateway/pay/pay.ts';
import { LEASE_MS } from '../gateway/pay/payment.ts';
import { createSettleModes, type SettleModes } from '../gateway/pay/serve.ts';
import { createX402Rail } from '../gateway/rails/x402.ts';
import type { Rail } from '../gateway/rails/rail.ts';
import { createReconcile } from '../gateway/reconcile.ts';
import { createTokens, systemSchedule, type Clock, type Random } from '../host/clock.ts';
import type { Log } from '../host/log.ts';
import type { Metrics } from '../host/metrics.ts';
import { receiversById } from './part.ts';
import { createTestStop } from './stop-point.ts';

export type PaymentsDeps = {
  readonly log: Log;
  readonly clock: Clock;
  readonly random: Random;
  readonly metrics: Metrics;
};

export type Payments = {
  readonly payFor: (config: Config) => (answers: Answers) => Pay;
  readonly close: () => Promise<void>;
};

const RECONCILE_EVERY_MS = { here: 1_000, elsewhere: 5_000 };
const RETRY_MS = 2_000;
const COUNT_EVERY_MS = 5_000;

/** `reports` where the ledger is in this process: then the charges are counted for the metrics. */
export function startPayments(
  config: () => Config,
  givenLedger: Ledger,
  reports: Reports | undefined,
  routeLabel: (id: string) => string,
  deps: PaymentsDeps,
): Payments {
  const { log, clock, random, metrics } = deps;
  const testStop = createTestStop(process.env, log);
  const ledger = testStop?.ledger(givenLedger) ?? givenLedger;
  const plainRail = createRail(deps);
  const rail = testStop?.rail(plainRail) ?? plainRail;
  const leaseMs = testStop?.leaseMs ?? LEASE_MS;
  const chargeLog = createChargeLog(metrics, log, routeLabel);
  const met = createMet();
  const modes = createSettleModes(clock.now);
  const stopReconciling = repeat(
    reports === undefined ? RECONCILE_EVERY_MS.elsewhere : RECONCILE_EVERY_MS.here,
    log,
    async () => {
      await createReconcile({ rail, ledger, receivers: receiversById(config()), chargeLog, log, clock, random })();
    },
  );
  const stopCounting = reports === undefined ? undefined : countCharges(reports, metrics, log);
  return {
    payFor: (next) => payWith(next, { rail, ledger, met, chargeLog, modes, leaseMs, ...deps }),
    close: async () => {
      await stopReconciling();
      await stopCounting?.();
    },
  };
}

export function createRail({ log, clock, metrics }: Pick<PaymentsDeps, 'log' | 'clock' | 'metrics'>): Rail {
  const calls = metrics.duration('facilitator_duration_seconds', 'Calls to facilitators, by their end.', [
    'operation',
    'result',
  ]);
  return createX402Rail({
    fetch: globalThis.fetch,
    schedule: systemSchedule,
    clock,
    log,
    observe: (operation, result, durationMs) => calls(operation, result)(durationMs / 1000),
  });
}

type PayParts = PaymentsDeps & {
  readonly rail: Rail;
  readonly ledger: Ledger;
  readonly met: Met;
  readonly chargeLog: ChargeLog;
  readonly modes: SettleModes;
  readonly leaseMs: number;
};

function payWith(
  { charges }: Config,
  { rail, ledger, met, chargeLog, modes, leaseMs, log, clock, random }: PayParts,
): (answers: Answers) => Pay {
  const options = {
    keepResponseBytes: Math.min(charges.keepResponseBytes, ledger.answerLimitBytes),
    maxUnsettledPerPayer: charges.maxUnsettledPerPayer,
    leaseMs,
    retryMs: RETRY_MS,
  };
  const newId = createTokens(random, 16, 'hex');
  return (answers) =>
    createPay(
      { ...answers, rail, ledger, met, chargeLog, log, clock, newId, options, schedule: systemSchedule, pause },
      modes,
    );
}

function countCharges(reports: Reports, metrics: Metrics, log: Log): () => Promise<void> {
  let counts: Awaited<ReturnType<Reports['countByState']>> | undefined;
  metrics.observed('gauge', 'charges', 'Charges in the ledger, by state.', ['state'], (set) => {
    for (const state of CHARGE_STATES) if (counts !== undefined) set({ state }, counts[state]);
  });
  return repeat(COUNT_EVERY_MS, log, async () => {
    counts = await reports.countByState();
  });
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
        // Once per outage: the ledger's own log says the rest.
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
