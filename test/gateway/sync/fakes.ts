// Time that tests move, timers on it, and a source that answers what a test puts into it.
import { createLog, type LogFields } from '../../../src/host/log.ts';
import type { Clock, Random, Schedule } from '../../../src/host/clock.ts';
import type {
  FetchResult,
  FoundSet,
  OpenedEvents,
  RouteSource,
  SetRequest,
} from '../../../src/gateway/sync/follow/route-source.ts';
import { route } from '../../cases/routes.ts';

export type FakeTime = Clock & {
  readonly schedule: Schedule;
  /** Runs what is due within `ms`, in order, letting promises settle in between. */
  readonly advance: (ms: number) => Promise<void>;
  /** Milliseconds until each timer that waits, soonest first. */
  readonly waits: () => readonly number[];
};

export function fakeTime(startMs = 1_800_000_000_000): FakeTime {
  let elapsed = 0;
  const timers = new Set<{ readonly at: number; readonly run: () => void }>();
  const soonest = () => [...timers].toSorted((a, b) => a.at - b.at);
  return {
    now: () => startMs + elapsed,
    monotonic: () => elapsed,
    schedule: (ms, run) => {
      const timer = { at: elapsed + ms, run };
      timers.add(timer);
      return () => void timers.delete(timer);
    },
    advance: async (ms) => {
      const end = elapsed + ms;
      for (;;) {
        await settle();
        const due = soonest().find(({ at }) => at <= end);
        if (due === undefined) break;
        timers.delete(due);
        elapsed = Math.max(elapsed, due.at);
        due.run();
      }
      elapsed = end;
      await settle();
    },
    waits: () => soonest().map(({ at }) => at - elapsed),
  };
}

/** Lets everything that is only waiting for promises go on. */
export function settle(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(() => setImmediate(resolve));
  });
}

/** Jitter of nothing (0) up to all (1, left out). */
export function steadyRandom(fraction: number): Random {
  return (size) => {
    const bytes = Buffer.alloc(size);
    if (size >= 4) bytes.writeUInt32BE(Math.floor(fraction * 2 ** 32), 0);
    return bytes;
  };
}

export function collectLog(): {
  readonly log: ReturnType<typeof createLog>;
  readonly lines: (LogFields & { level: string; msg: string })[];
} {
  const lines: (LogFields & { level: string; msg: string })[] = [];
  const log = createLog(
    'debug',
    (line) => void lines.push(JSON.parse(line) as (typeof lines)[number]),
    () => 0,
  );
  return { log, lines };
}

export type FakeSource = RouteSource & {
  /** What each poll asked with, oldest first, and for. */
  readonly asked: (FoundSet | undefined)[];
  readonly wants: SetRequest['want'][];
  /** The answer to every poll from now on; a promise holds the poll up. */
  answer: FetchResult | Promise<FetchResult>;
  /** How the next streams open; the last one goes for all that follow. */
  streams: OpenedEvents[];
  /** The revision that each stream was asked to go on from. */
  readonly streamIds: number[];
};

export function fakeSource(answer: FetchResult): FakeSource {
  const source: FakeSource = {
    asked: [],
    wants: [],
    answer,
    streams: [{ kind: 'not_offered' }],
    streamIds: [],
    fetchSet: async ({ known, want }) => {
      source.asked.push(known);
      source.wants.push(want);
      return source.answer;
    },
    openEvents: async ({ revision }) => {
      source.streamIds.push(revision);
      const next = source.streams.length > 1 ? source.streams.shift() : source.streams[0];
      return next ?? { kind: 'not_offered' };
    },
  };
  return source;
}

/** A set of `rules` at `revision` of `registryId`. */
export function found(
  registryId: string | undefined,
  revision: number | undefined,
  rules: readonly string[],
): Extract<FetchResult, { kind: 'set' }> {
  const digest = `${registryId} ${revision} ${rules.join()}`;
  return {
    kind: 'set',
    set: { registryId, revision, etag: `"${revision}"`, digest, routes: rules.map((rule) => route(rule)) },
  };
}

export const AWAY: FetchResult = {
  kind: 'unavailable',
  reason: 'the registry could not be reached (ECONNREFUSED)',
  retryAfterMs: undefined,
};

/** A stream that stays open: `send` puts bytes into it, `end` ends it. */
export function fakeStream(): {
  readonly opened: OpenedEvents;
  readonly send: (text: string) => void;
  readonly end: () => void;
} {
  const queue: (Uint8Array | undefined)[] = [];
  let wake = (): void => undefined;
  async function* chunks(): AsyncGenerator<Uint8Array, void, undefined> {
    for (;;) {
      if (queue.length === 0) await new Promise<void>((resolve) => (wake = resolve));
      const next = queue.shift();
      if (next === undefined) return;
      yield next;
    }
  }
  const put = (bytes: Uint8Array | undefined): void => {
    queue.push(bytes);
    wake();
  };
  return {
    opened: { kind: 'open', chunks: chunks() },
    send: (text) => put(Buffer.from(text)),
    end: () => put(undefined),
  };
}
