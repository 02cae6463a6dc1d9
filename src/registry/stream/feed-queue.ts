// Large route sets on their way to their readers, a few at a time. Otherwise a hundred sidecars that come back together
// would share the speed that one of them needs. Further readers wait a while and are then asked to come back. Small
// sets always go: applications ask for them at their start.
import { problem, type Problem } from '../../domain/problem.ts';
import type { Random, Schedule } from '../../host/clock.ts';

export type WholeSets = {
  /** Resolves with what is to be called when the set of this size is sent, or with the refusal. */
  readonly take: (bytes: number) => Promise<Release | Problem>;
};
type Release = () => void;

type WholeSetLimits = {
  /** Sets above are counted. */
  readonly largeBytes: number;
  readonly atOnce: number;
  readonly waitMs: number;
  /** A reader that has not taken it by then no longer keeps others waiting. */
  readonly sentMs: number;
};

export const WHOLE_SETS: WholeSetLimits = { largeBytes: 1024 * 1024, atOnce: 8, waitMs: 10_000, sentMs: 120_000 };
const MAX_RETRY_SECONDS = 10;

export function createWholeSets(schedule: Schedule, random: Random, limits: WholeSetLimits = WHOLE_SETS): WholeSets {
  const waiting = new Set<(release: Release) => void>();
  let sending = 0;

  const start = (): Release => {
    sending++;
    let cancel = (): void => undefined;
    let over = false;
    const release = (): void => {
      if (over) return;
      over = true;
      cancel();
      sending--;
      const [next] = waiting;
      next?.(start());
    };
    cancel = schedule(limits.sentMs, release);
    return release;
  };

  return {
    take: async (bytes) => {
      if (bytes <= limits.largeBytes) return () => undefined;
      if (sending < limits.atOnce) return start();
      return new Promise((resolve) => {
        const next = (release: Release): void => {
          cancel();
          waiting.delete(next);
          resolve(release);
        };
        const cancel = schedule(limits.waitMs, () => {
          waiting.delete(next);
          const retryAfter = 1 + ((random(1)[0] ?? 0) % MAX_RETRY_SECONDS);
          resolve(
            problem('registry_unavailable', 'As many whole sets as may be sent at a time are being sent.', {
              retryAfter,
            }),
          );
        });
        waiting.add(next);
      });
    },
  };
}
