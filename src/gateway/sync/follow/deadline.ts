// Ends a call to the registry that takes too long: an AbortSignal that fires when the caller's does, or when the
// deadline was not extended in time. A side that accepts connections and then says nothing must cost no more than this.
// Each read is raced against the signal here and not left to `fetch`, which holds the signal weakly. After a garbage
// collection an abort would not reach a body that is being read (test/gateway/sync/follow/registry-source.test.ts).
import type { Schedule } from '../../../host/clock.ts';

export type Deadline = {
  readonly signal: AbortSignal;
  /** Starts the time anew: something arrived. */
  readonly extend: (ms: number) => void;
  /** Time is up now, whatever arrives. */
  readonly expire: () => void;
  /** Resolves as `waiting` does, or rejects when the signal fires first. */
  readonly race: <T>(waiting: Promise<T>) => Promise<T>;
  /** The chunks of `body`; each of them extends the deadline by `ms`. Throws when the signal fires; lets go of `body`. */
  readonly read: (body: ReadableStream<Uint8Array>, ms: number) => AsyncGenerator<Uint8Array, void, undefined>;
  /** Whether it was time that ran out. */
  readonly passed: () => boolean;
  /** Ends the deadline: nothing is waited for any more. */
  readonly clear: () => void;
};

export function createDeadline(outer: AbortSignal, ms: number, schedule: Schedule): Deadline {
  const controller = new AbortController();
  const onOuter = (): void => controller.abort(outer.reason);
  let passed = false;
  let cancel = (): void => undefined;
  const extend = (next: number): void => {
    cancel();
    if (!passed) cancel = schedule(next, expire);
  };
  const expire = (): void => {
    cancel();
    passed = true;
    controller.abort(new Error('nothing arrived in time'));
  };
  if (outer.aborted) onOuter();
  else outer.addEventListener('abort', onOuter, { once: true });
  extend(ms);

  const { signal } = controller;
  const race = <T>(waiting: Promise<T>): Promise<T> =>
    new Promise((resolve, reject) => {
      const onAbort = (): void => reject(asError(signal.reason));
      if (signal.aborted) onAbort();
      else signal.addEventListener('abort', onAbort, { once: true });
      waiting.then(resolve, reject).finally(() => signal.removeEventListener('abort', onAbort));
    });

  async function* read(body: ReadableStream<Uint8Array>, gapMs: number): AsyncGenerator<Uint8Array, void, undefined> {
    const reader = body.getReader();
    try {
      extend(gapMs);
      for (;;) {
        const { done, value } = await race(reader.read());
        if (done) return;
        extend(gapMs);
        yield value;
      }
    } finally {
      // Ends the connection if the body is not whole. It is not waited for: it may be as stuck as the body was.
      reader.cancel().catch(() => undefined);
    }
  }

  return {
    signal,
    extend,
    expire,
    race,
    read,
    passed: () => passed,
    clear: () => {
      cancel();
      outer.removeEventListener('abort', onOuter);
    },
  };
}

function asError(reason: unknown): Error {
  return reason instanceof Error ? reason : new Error('stopped');
}
