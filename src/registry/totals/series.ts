// GET /v1/billing/series: requests, revenue and added latency step by step, in columns of one length for a chart.
import type { z } from 'zod';
import { problem, type Problem } from '../../domain/problem.ts';
import { REQUEST_OUTCOMES } from '../../domain/totals/request-counts.ts';
import {
  ceilTo,
  floorTo,
  keptSince,
  STEP_MS,
  stepOf,
  TOTALS_STEPS,
  type RetentionStarts,
  type TimeRange,
  type TotalsStep,
} from '../../domain/totals/steps.ts';
import type { MoneySum, StepSums } from '../../domain/totals/totals-store.ts';
import { readSidecarReport } from '../../domain/totals/totals-wire.ts';
import { fail, jsonResponse, type EndpointCall, type EndpointOutcome } from '../http/endpoint.ts';
import type { Services } from '../http/services.ts';
import { percentilesOf, requestsOf, revenueOf } from './added-up.ts';
import { askedRange, iso } from './asked-range.ts';
import type { TotalsBook } from './totals-book.ts';
import type { seriesQuery } from './totals-schemas.ts';
import { withTotals } from './with-totals.ts';

type SeriesQuery = z.output<typeof seriesQuery>;

const MOST_POINTS = 1000;

export function showSeries(
  { query }: EndpointCall<unknown, SeriesQuery>,
  services: Services,
): Promise<EndpointOutcome> {
  return withTotals(services, async (totals) => {
    const now = services.clock.now();
    const asked = askedRange(query, now);
    if ('code' in asked) return fail(asked);
    const step = chooseStep(query, asked, keptSince(now, totals.hoursKeptMs()));
    if (typeof step !== 'string') return fail(step);
    const [fromMs, toMs] = [floorTo(asked.fromMs, step), ceilTo(asked.toMs, step)];
    const span = { step, from: stepOf(fromMs, step), to: stepOf(toMs, step) };
    const { route_id: routeId, currency, network } = query;
    const sums = await totals.sums({ spans: [span], routeId, currency, network });
    const starts = Array.from({ length: span.to - span.from }, (_, at) => span.from + at);
    return jsonResponse(200, {
      ...{ from: iso(fromMs), to: iso(toMs), step },
      times: starts.map((start) => iso(start * STEP_MS[step])),
      requests: network === undefined ? requestColumns(sums, starts) : { paid: chargeColumn(sums, starts) },
      revenue: revenueColumns(sums, starts, currency),
      overhead_ms: overheadColumns(sums, starts),
      complete_until: iso(Math.min(toMs, await completeUntil(totals, now))),
    });
  });
}

/** `auto`: the finest that a chart still shows well. */
const SHOWN_MS: Readonly<Record<TotalsStep, number>> = {
  minute: 6 * STEP_MS.hour,
  hour: 14 * STEP_MS.day,
  day: Infinity,
};

function chooseStep(
  { step, route_id: routeId }: SeriesQuery,
  range: TimeRange,
  kept: RetentionStarts,
): TotalsStep | Problem {
  const points = (each: TotalsStep): number => stepOf(ceilTo(range.toMs, each), each) - stepOf(range.fromMs, each);
  const isKept = (each: TotalsStep): boolean => {
    if (each === 'minute') return routeId === undefined && range.fromMs >= kept.minuteMs;
    return each === 'day' || range.fromMs >= kept.hourMs;
  };
  const fits = (each: TotalsStep): boolean => points(each) <= MOST_POINTS;
  if (step === 'auto') {
    const length = range.toMs - range.fromMs;
    const chosen = TOTALS_STEPS.find((each) => isKept(each) && length <= SHOWN_MS[each] && fits(each));
    return chosen ?? tooMany('day', points('day'), undefined);
  }
  const coarser = TOTALS_STEPS.slice(TOTALS_STEPS.indexOf(step) + 1).find((each) => isKept(each) && fits(each));
  if (!fits(step)) return tooMany(step, points(step), coarser);
  if (step === 'minute' && !isKept(step)) {
    const why = routeId === undefined ? 'are kept for 48 hours' : 'are of all routes together';
    return problem('malformed', `Minutes ${why}; ask for step=${coarser ?? 'day'}.`);
  }
  return step;
}

function tooMany(step: TotalsStep, points: number, coarser: TotalsStep | undefined): Problem {
  const instead = coarser === undefined ? 'a shorter time' : `step=${coarser}`;
  return problem(
    'malformed',
    `These are ${points} points of step=${step}, more than ${MOST_POINTS}; ask for ${instead}.`,
  );
}

function requestColumns({ requests }: StepSums, starts: readonly number[]): Record<string, number[]> {
  const byStart = Map.groupBy(requests, ({ start }) => start);
  const counted = starts.map((start) => requestsOf(byStart.get(start) ?? []));
  return Object.fromEntries(REQUEST_OUTCOMES.map((outcome) => [outcome, counted.map((counts) => counts[outcome])]));
}

/** Charges that were settled: of one network requests are not known. */
function chargeColumn({ money }: StepSums, starts: readonly number[]): number[] {
  const byStart = Map.groupBy(money, ({ start }) => start);
  return starts.map((start) => (byStart.get(start) ?? []).reduce((sum, { charges }) => sum + charges, 0));
}

function revenueColumns(
  { money }: StepSums,
  starts: readonly number[],
  only: string | undefined,
): { currency: string; amounts: string[] }[] {
  const byCurrency = Map.groupBy(money, ({ currency }) => currency);
  const currencies = only === undefined ? [...byCurrency.keys()].toSorted() : [only];
  return currencies.map((currency) => {
    const byStart = Map.groupBy(byCurrency.get(currency) ?? [], ({ start }: MoneySum) => start);
    return { currency, amounts: starts.map((start) => revenueOf(byStart.get(start) ?? []).text(currency)) };
  });
}

function overheadColumns(
  { overhead }: StepSums,
  starts: readonly number[],
): { p50: (number | null)[]; p99: (number | null)[] } | null {
  if (overhead.length === 0) return null;
  const byStart = Map.groupBy(overhead, ({ start }) => start);
  const columns = starts.map((start) => percentilesOf(byStart.get(start) ?? []));
  return { p50: columns.map(({ p50 }) => p50), p99: columns.map(({ p99 }) => p99) };
}

/** Time after which a process that said nothing has nothing to say. */
const LIVE_MS = 5 * STEP_MS.minute;
/** Processes hand over what they counted at least this often. */
const EVERY_MS = 10_000;

/** The moment up to which every process that is known to live has handed its counts over. */
async function completeUntil({ sources, countedUntil }: TotalsBook, now: number): Promise<number> {
  const own = countedUntil();
  const others = (await sources()).flatMap(({ lastAt, status }) => {
    if (lastAt < now - LIVE_MS) return [];
    // A sidecar tells every time; a replica tells only what it counted.
    const said = readSidecarReport(status);
    if (said === undefined) return [own === undefined ? now - EVERY_MS : now];
    return said.ending ? [] : [lastAt];
  });
  return Math.min(own ?? now, ...others);
}
