// Single flight: of one task, one run at a time. All who ask while it runs share the run after it. So clients that ask a
// registry for made-up ids cost its store no more than one client does.

/** Resolves once a run that began after this call is over; rejects as that run does. */
export type SingleFlight = () => Promise<void>;

export function createSingleFlight(run: () => Promise<void>): SingleFlight {
  let running: Promise<void> | undefined;
  let next: Promise<void> | undefined;
  const start = (): Promise<void> => {
    next = undefined;
    running = run().finally(() => {
      running = undefined;
    });
    return running;
  };
  return () => {
    if (running === undefined) return start();
    // The run that is under way may have looked before what this caller knows of was written.
    next ??= running.then(start, start);
    return next;
  };
}
