// Sums by route of many days that are over, kept for some minutes: a desk asks for the same ones every half minute, and they are most
// of what its question reads. What comes late for such a day is seen that much later.
import { LRUCache } from 'lru-cache';
import { STEP_MS, stepOf, type Span } from '../../domain/totals/steps.ts';
import type { RouteSums, TotalsStore } from '../../domain/totals/totals-store.ts';
import type { Clock } from '../../host/clock.ts';

type SumByRoute = TotalsStore['sumsByRoute'];

const KEPT_MS = 300_000;
/** Times of closed days that are kept; each holds a thousand routes at most. */
const MOST_KEPT = 4;
/** Fewer days are asked for again: they are read fast, and somebody may wait for what comes late. */
const LEAST_DAYS = 7;

export function keepClosedDays(
  sumsByRoute: SumByRoute,
  { now, monotonic }: Pick<Clock, 'now' | 'monotonic'>,
): SumByRoute {
  const kept = new LRUCache<string, Promise<RouteSums>>({
    ...{ max: MOST_KEPT, ttl: KEPT_MS, ttlResolution: 0, perf: { now: monotonic } },
  });
  const closed = (span: Span): Promise<RouteSums> => {
    const key = `${span.from} ${span.to}`;
    const known = kept.get(key);
    if (known !== undefined) return known;
    const asked = sumsByRoute({ spans: [span] });
    kept.set(key, asked);
    asked.catch(() => kept.delete(key));
    return asked;
  };
  return async ({ spans }) => {
    // The day that goes on is not over, and yesterday not in its first hour.
    const openFrom = stepOf(now() - STEP_MS.hour, 'day');
    const parts = spans.flatMap((span) => splitAt(span, openFrom));
    const over = parts.filter(({ step, from, to }) => step === 'day' && to <= openFrom && to - from >= LEAST_DAYS);
    const open = parts.filter((part) => !over.includes(part));
    const all = await Promise.all([sumsByRoute({ spans: open }), ...over.map(closed)]);
    return { requests: all.flatMap(({ requests }) => requests), money: all.flatMap(({ money }) => money) };
  };
}

function splitAt(span: Span, day: number): readonly Span[] {
  if (span.step !== 'day' || span.from >= day || span.to <= day) return [span];
  return [
    { ...span, to: day },
    { ...span, from: day },
  ];
}
