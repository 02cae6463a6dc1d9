// A number of places and a bounded queue for them, so that a service which stalls holds no more than these: whoever finds
// no place in the queue is told at once, and whoever runs out of time while waiting leaves it.
import type { Deadline } from './deadline.ts';

/** Gives the place back; calling it again does nothing. */
export type Release = () => void;

export type Places = {
  /** A place: at once where one is free, else once there is; undefined where the queue is full or the time is over. */
  readonly take: (deadline: Deadline) => Release | undefined | Promise<Release | undefined>;
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
    take: (deadline) => {
      if (deadline.isOver()) return undefined;
      if (free > 0) {
        free--;
        return occupy();
      }
      if (waiting.size >= queue) return undefined;
      return new Promise((resolve) => {
        const enter = (release: Release): void => {
          deadline.whenOver(undefined);
          resolve(release);
        };
        waiting.add(enter);
        deadline.whenOver(() => {
          waiting.delete(enter);
          resolve(undefined);
        });
      });
    },
  };
}
