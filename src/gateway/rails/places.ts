// A number of places and a bounded queue for them, so that a service which stalls holds no more than these: whoever finds
// no place in the queue is told at once, and whoever runs out of time while waiting leaves it.

/** Gives the place back; calling it again does nothing. */
export type Release = () => void;

export type Places = {
  /** A place, now or once one is free; undefined where the queue is full or `signal` ends the wait. */
  readonly take: (signal: AbortSignal) => Promise<Release | undefined>;
};

export function createPlaces(places: number, queue: number): Places {
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

  return {
    take: async (signal) => {
      if (signal.aborted) return undefined;
      if (free > 0) {
        free--;
        return occupy();
      }
      if (waiting.size >= queue) return undefined;
      return new Promise((resolve) => {
        const leave = (): void => {
          waiting.delete(enter);
          resolve(undefined);
        };
        const enter = (release: Release): void => {
          signal.removeEventListener('abort', leave);
          resolve(release);
        };
        waiting.add(enter);
        signal.addEventListener('abort', leave, { once: true });
      });
    },
  };
}
