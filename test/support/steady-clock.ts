// A clock for short time-outs on a machine under load. A process that was not run for a while finds its timers due before
// it has read what came meanwhile: by this clock hardly any time has gone by.

/** Makes a monotonic clock that goes on by at most `stepMs` from one look to the next. */
export function steadyClock(stepMs: number): () => number {
  let seen = performance.now();
  let now = 0;
  return () => {
    const last = seen;
    seen = performance.now();
    now += Math.min(stepMs, seen - last);
    return now;
  };
}

/** The clock of a pool of connections: it looks eight times in its shortest time-out, so that this takes 16 looks at least. */
export function steadyPoolClock(timeouts: Readonly<Record<string, number | undefined>>): () => number {
  return steadyClock(Math.min(...Object.values(timeouts).flatMap((ms) => ms ?? [])) / 16);
}
