// What must hold of what a front is allowed: a payment pays for one execution, and for one more for each report that was believed,
// three at most; who was never allowed, or whose front was believed, is allowed again. It goes by what fronts were handed.
import { type Charge } from '../../../src/domain/payment/charge.ts';

export type AllowRules = {
  readonly allowed: (chargeId: string, request: number) => void;
  readonly executed: (chargeId: string, request: number) => void;
  readonly reported: (chargeId: string) => void;
  readonly refusedReport: (chargeId: string) => void;
  readonly denied: (charge: Charge) => void;
  /** `whole`: answers that clients got. `calm`: no process crashed, and no ledger failed. */
  readonly atRest: (charge: Charge, seen: { readonly whole: number; readonly calm: boolean }) => void;
};

type AllowRulesDeps = {
  readonly now: () => number;
  readonly find: (chargeId: string) => Charge | undefined;
  readonly isPaid: (charge: Charge | undefined) => boolean;
  readonly violated: (what: string) => void;
};

/** One line for each thing that happened: the request that was allowed, or a report that was believed. */
type Allows = {
  readonly lines: (number | 'report')[];
  readonly executed: Set<number>;
  /** The latest allow that was given to a request that was not allowed before, after its settlement, in milliseconds. */
  latestMs: number;
  refusedReports: number;
};

const ALLOW_AGAIN_MS = 600_000;
const REPORTED_FOR_MS = 24 * 3_600_000;
/** Between the moment in which something is decided and the one in which it arrives. */
const SLACK_MS = 60_000;
const MOST_REPORTS = 3;
/** An allow is given once and repeated eight times; a front that asks twice at once has two for the first. */
const MOST_FOR_ONE = 10;

export function createAllowRules({ now, find, isPaid, violated }: AllowRulesDeps): AllowRules {
  const all = new Map<string, Allows>();
  const of = (id: string): Allows => {
    const known = all.get(id) ?? { lines: [], executed: new Set<number>(), latestMs: 0, refusedReports: 0 };
    all.set(id, known);
    return known;
  };
  const reportsOf = ({ lines }: Allows): number => lines.filter((line) => line === 'report').length;
  /** Reports after which somebody was allowed again. */
  const usedOf = ({ lines }: Allows): number =>
    lines.filter((line, index) => line === 'report' && typeof lines[index + 1] === 'number').length;

  return {
    allowed: (id, request) => {
      const charge = find(id);
      if (!isPaid(charge)) violated(`${id} is allowed and ${charge?.state ?? 'unknown to the ledger'}`);
      const seen = of(id);
      if (!seen.lines.includes(request)) seen.latestMs = now() - (charge?.settledAt ?? now());
      seen.lines.push(request);
    },
    executed: (id, request) => {
      const { executed, lines } = of(id);
      if (!lines.includes(request)) violated(`the upstream ran for ${id} without an allow`);
      executed.add(request);
    },
    reported: (id) => void of(id).lines.push('report'),
    refusedReport: (id) => {
      const seen = of(id);
      if (typeof seen.lines.at(-1) === 'number') seen.refusedReports += 1;
    },
    denied: (charge) => {
      const { id, asker, asks, settledAt } = charge;
      if (asker === null || settledAt === null || asks.afterDeath > 0) return;
      const seen = of(id);
      const sinceMs = now() - settledAt;
      if (seen.lines.length === 0 && sinceMs < ALLOW_AGAIN_MS)
        violated(`${id} is settled since ${sinceMs} ms, was never allowed and is not`);
      const isReported = seen.lines.at(-1) === 'report';
      if (isReported && usedOf(seen) < MOST_REPORTS && asks.afterFailure < MOST_REPORTS && sinceMs < REPORTED_FOR_MS)
        violated(`${id} was reported as failed, and is not allowed again`);
    },
    atRest: ({ id, state, asks }, { whole, calm }) => {
      const seen = of(id);
      const allowed = new Set(seen.lines.filter((line) => line !== 'report'));
      const reports = reportsOf(seen);
      if (state === 'delivered' && allowed.size === 0) violated(`${id} is delivered and nobody was allowed`);
      if (seen.executed.size > Math.max(1, asks.all))
        violated(`the upstream ran ${seen.executed.size} times for ${id} and ${asks.all} asks`);
      if (usedOf(seen) > MOST_REPORTS && calm) violated(`${id} was allowed again after ${usedOf(seen)} reports`);
      if (!calm) return;
      const most = 1 + Math.min(MOST_REPORTS, reports);
      if (allowed.size > most) violated(`${id} was allowed to ${allowed.size} requests after ${reports} reports`);
      if (whole > most) violated(`${id} was delivered ${whole} times after ${reports} reports`);
      if (reports === 0 && allowed.size > 0 && state !== 'delivered') violated(`${id} was allowed and is ${state}`);
      if (reports === 0 && seen.latestMs > ALLOW_AGAIN_MS + SLACK_MS)
        violated(`${id} was allowed ${seen.latestMs} ms after its settlement`);
      if (seen.refusedReports > 0) violated(`${id} was handed over, reported as failed, and not believed`);
      for (const request of allowed) {
        const times = seen.lines.filter((line) => line === request).length;
        if (times > MOST_FOR_ONE) violated(`${id} was allowed ${times} times to request ${request}`);
      }
    },
  };
}
