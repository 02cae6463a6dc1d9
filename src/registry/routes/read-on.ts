// Reading on in a store that other processes write too, for those who ask for what is not known here. One reading runs
// at a time; all who ask while it runs share the next one. So made-up ids cost the store no more than one asker does.

/** Resolves once a reading that began after this call is over; rejects as that one does. */
export type ReadOn = () => Promise<void>;

export function createReadOn(read: () => Promise<void>): ReadOn {
  let running: Promise<void> | undefined;
  let next: Promise<void> | undefined;
  const start = (): Promise<void> => {
    next = undefined;
    running = read().finally(() => {
      running = undefined;
    });
    return running;
  };
  return () => {
    if (running === undefined) return start();
    // One that runs already may have looked before what its caller knows of was written.
    next ??= running.then(start, start);
    return next;
  };
}
