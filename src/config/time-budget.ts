// A time budget for work that may never end, as an expression that backtracks. Work that is late is broken off in the
// middle, in this thread: V8 looks for that in loops and in expressions alike. Work that is slow again and again gets less
// and less time, so that many slow pieces cost the others nothing.
import { createContext, Script } from 'node:vm';

type TimeBudget = {
  /** Time for one piece of work, while there is enough left. */
  readonly eachMs: number;
  /** Time for all pieces together that were broken off. */
  readonly lateMs: number;
  /** Time for one piece of work, after that. */
  readonly leastMs: number;
};

/** Runs `work` and returns what it does; undefined: it was late, or threw. */
type TimeLimiter = <T>(work: () => T) => { readonly value: T } | undefined;

export function createBounded({ eachMs, lateMs, leastMs }: TimeBudget): TimeLimiter {
  const global: { work: () => void } = { work: () => undefined };
  const context = createContext(global);
  const script = new Script('work()');
  let left = lateMs;
  return (work) => {
    let done: { readonly value: ReturnType<typeof work> } | undefined;
    global.work = () => {
      done = { value: work() };
    };
    const since = performance.now();
    try {
      script.runInContext(context, { timeout: Math.max(leastMs, Math.min(eachMs, Math.floor(left))) });
    } catch {
      left -= performance.now() - since;
    }
    return done;
  };
}
