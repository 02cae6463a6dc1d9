// The schedule of polls. Jitter keeps sidecars that lost one registry together from coming back to it together.
// Back-off leaves a registry in trouble alone for longer each time. Pure: `chance` is a number from 0 to 1, 1 left out.

/** Longest wait between two tries, unless the interval itself is longer. */
const LONGEST_WAIT_MS = 120_000;
/** First wait between two tries while there is no set yet. */
const FIRST_WAIT_MS = 1_000;
/** Change events of one moment make one poll; a registry that sends them all the time keeps us busy a third of it. */
const EVENT_WAIT_MS = 20;
const EVENT_WAIT_SHARE = 2;

/** Jitter only shortens: a change takes effect within one interval. */
export function pollWaitMs(
  { pollIntervalMs, failures, hasRoutes }: { pollIntervalMs: number; failures: number; hasRoutes: boolean },
  chance: number,
): number {
  if (failures === 0) return Math.round(pollIntervalMs * (0.8 + chance * 0.2));
  const first = hasRoutes ? pollIntervalMs : Math.min(FIRST_WAIT_MS, pollIntervalMs);
  return backOffMs(failures, first, Math.max(LONGEST_WAIT_MS, pollIntervalMs), chance);
}

/** Milliseconds to wait after an event. `ms` is what the last poll took; `endedMs` how long ago it ended. */
export function eventWaitMs({ ms, endedMs }: { readonly ms: number; readonly endedMs: number }): number {
  return Math.max(EVENT_WAIT_MS, ms * EVENT_WAIT_SHARE - endedMs);
}

/** Twice as far at each failure, from half of it to the whole. */
export function backOffMs(failures: number, firstMs: number, longestMs: number, chance: number): number {
  const wholeMs = Math.min(longestMs, firstMs * 2 ** Math.min(failures - 1, 30));
  return Math.round(wholeMs * (0.5 + chance * 0.5));
}
