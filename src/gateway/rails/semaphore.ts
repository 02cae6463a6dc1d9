// A semaphore with a bounded queue, so that a service that stalls holds no more calls than these. `wait` fails at once
// if the queue is full. A caller that runs out of time leaves the queue.

/** Gives the place back; calling it again does nothing. */
export type Release = () => void;

export type Semaphore = {
  /** A free place. */
  readonly take: () => Release | undefined;
  /** The next place that becomes free; undefined if the queue is full or `signal` fires first. */
  readonly wait: (signal?: AbortSignal) => Promise<Release | undefined>;
};

export function createSemaphore(places: number, queue: number): Semaphore {
  let free = places;
  const waiting = new Set<(release: Release) => void>();

  const occupy = (): Release => {
    let held = true;
    return () => {
      if (!held) return;
      held = false;
      const [next] = waiting;
      if (next === undefined) {
        free++;
        return;
      }
      waiting.delete(next);
      next(occupy());
    };
  };

  const take = (): Release | undefined => {
    if (free === 0) return undefined;
    free--;
    return occupy();
  };

  return {
    take,
    wait: (signal) => {
      if (signal?.aborted === true) return Promise.resolve(undefined);
      const now = take();
      if (now !== undefined || waiting.size >= queue) return Promise.resolve(now);
      return new Promise((resolve) => {
        const leave = (): void => {
          waiting.delete(enter);
          resolve(undefined);
        };
        const enter = (release: Release): void => {
          signal?.removeEventListener('abort', leave);
          resolve(release);
        };
        waiting.add(enter);
        signal?.addEventListener('abort', leave, { once: true });
      });
    },
  };
}
