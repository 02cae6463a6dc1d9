// Reports of a proxy: a request that it was allowed got no usable answer. Its charge is settled and not delivered from then on, so
// that the same credential is allowed again. The answer becomes the client's: it says where the money is, and is never an allow.
import { hash } from 'node:crypto';
import { receiptOf, CHARGE_ID, type Charge } from '../../domain/payment/charge.ts';
import { LedgerUnavailable, type Ledger } from '../../domain/payment/ledger.ts';
import type { ReportedRequest } from '../../domain/payment/transition.ts';
import { problem, type Problem } from '../../domain/problem.ts';
import type { Log } from '../../host/log.ts';
import type { ChargeLog } from '../pay/recorder.ts';
import { stateMoney, type StatementDeps } from '../pay/statement.ts';

export type ReportDeps = StatementDeps & {
  readonly ledger: Pick<Ledger, 'advance' | 'now'>;
  readonly chargeLog: Pick<ChargeLog, 'changed'>;
  readonly newId: () => string;
  /** Waits. */
  readonly pause: (ms: number) => Promise<void>;
  readonly log: Log;
};

/** A report as the proxy makes it. */
export type FailureReport = Omit<ReportedRequest, 'targetSha256'> & {
  readonly chargeId: string;
  readonly target: string;
};

export type ReportEnd = {
  readonly isAccepted: boolean;
  readonly charge: Charge | undefined;
  readonly problem: Problem;
};

/** Takes reports. Undefined of a report: it names no charge. */
export type TakeReport = (report: FailureReport | undefined) => Promise<ReportEnd>;

const AGAIN_SECONDS = 1;
/**
 * Pauses between looks at an allow that is being written as handed over: an upstream that refuses connections is reported
 * within a millisecond.
 */
const PAUSES_MS = [10, 20, 50, 100, 200, 500, 1_000];

export function createTakeReport(deps: ReportDeps): TakeReport {
  return async (report) => {
    const charge = report === undefined ? undefined : await reopen(deps, report);
    if (charge === undefined) return { isAccepted: false, charge, problem: unreachable() };
    const presented = { version: charge.x402Version };
    const failed = problem('upstream_failed', 'The upstream gave no usable answer.');
    const stated = stateMoney(deps, { presented }, charge, receiptOf(charge) === undefined ? 'unknown' : true, failed);
    return { isAccepted: true, charge, problem: { ...stated, retryAfter: AGAIN_SECONDS } };
  };
}

/** The charge as it is after the report; undefined: nothing may be reported about it. */
async function reopen(
  { ledger, chargeLog, newId, pause, log }: ReportDeps,
  { chargeId, dialect, method, target }: FailureReport,
): Promise<Charge | undefined> {
  if (!CHARGE_ID.test(chargeId)) return undefined;
  const request = { dialect, method, targetSha256: hash('sha256', target) };
  try {
    for (const pauseMs of [...PAUSES_MS, undefined]) {
      const changeId = newId();
      const told = await ledger.advance(chargeId, { kind: 'failure_reported', request }, { owner: changeId, changeId });
      if (told.kind === 'ok') {
        chargeLog.changed(told.charge, 'failure_reported');
        return told.charge;
      }
      const { charge } = told;
      if (charge === undefined) return undefined;
      // A report that is repeated changes nothing.
      if (wasReported(charge, request)) return charge;
      if (pauseMs === undefined || !isHandedOver(charge, request, ledger.now())) return undefined;
      await pause(pauseMs);
    }
    return undefined;
  } catch (error) {
    if (!(error instanceof LedgerUnavailable)) throw error;
    log.error('the ledger is unavailable', { charge_id: chargeId, error });
    return undefined;
  }
}

function wasReported(charge: Charge, report: ReportedRequest): boolean {
  const { state, undelivered, owner } = charge;
  return isMeant(charge, report) && state === 'settled' && undelivered === 'upstream_failed' && owner === null;
}

/** Whether a request hands its allow over, or has just done so. */
function isHandedOver(charge: Charge, report: ReportedRequest, now: number): boolean {
  const { state, owner, leaseUntil } = charge;
  return isMeant(charge, report) && state === 'settled' && owner !== null && leaseUntil > now;
}

function isMeant({ asker, request }: Charge, { dialect, method, targetSha256 }: ReportedRequest): boolean {
  return asker === dialect && request.method === method && request.targetSha256 === targetSha256;
}

function unreachable(): Problem {
  return problem('upstream_unreachable', 'The upstream could not be reached, or gave no usable answer.');
}
