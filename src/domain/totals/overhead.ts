// The time that Tollgate itself took for a request, counted in buckets. Counts of buckets add up over processes and minutes,
// percentiles do not: so the buckets are kept, and a percentile is read from their sum.

/** Upper bounds of the buckets in seconds, ascending: those of the metric `overhead_duration_seconds`. */
export const OVERHEAD_BOUNDS: readonly number[] = [
  0.00005, 0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60,
];

/** Number of buckets: one for each bound, and one for what is longer than all of them. */
export const OVERHEAD_BUCKETS = OVERHEAD_BOUNDS.length + 1;

export function noOverhead(): number[] {
  return Array.from({ length: OVERHEAD_BUCKETS }, () => 0);
}

/**
 * The time in milliseconds that the share `quantile` of all requests stayed within, interpolated inside its bucket; null
 * without requests. What is longer than the last bound counts as the last bound.
 */
export function percentileMs(buckets: readonly number[], quantile: number): number | null {
  const all = buckets.reduce((sum, requests) => sum + requests, 0);
  if (all === 0) return null;
  const wanted = quantile * all;
  let below = 0;
  for (const [bucket, requests] of buckets.entries()) {
    const upper = OVERHEAD_BOUNDS[bucket];
    if (upper === undefined) break;
    if (requests > 0 && below + requests >= wanted) {
      const lower = bucket === 0 ? 0 : (OVERHEAD_BOUNDS[bucket - 1] ?? 0);
      return inMs(lower + ((upper - lower) * (wanted - below)) / requests);
    }
    below += requests;
  }
  return inMs(OVERHEAD_BOUNDS.at(-1) ?? 0);
}

/** Milliseconds to the microsecond. */
function inMs(seconds: number): number {
  return Math.round(seconds * 1e6) / 1e3;
}
