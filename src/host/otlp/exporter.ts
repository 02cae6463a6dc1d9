// Exports spans in batches, beside whatever made them. A bounded queue stands between the two: when it is full, the newest
// span is dropped and counted. One batch is under way at a time; one that found nobody is tried again for a minute.
import { promisify } from 'node:util';
import { constants, gzip } from 'node:zlib';
import type { Schedule } from '../clock.ts';
import type { Log } from '../log.ts';
import type { SpanEnvelope } from './span.ts';

/** What became of a batch that was posted. */
export type PostResult =
  /** The collector has it; `rejected` spans of it were not taken. */
  | { readonly kind: 'taken'; readonly rejected: number }
  /** It may be posted again. `waitMs`: not before that, the collector says. */
  | { readonly kind: 'again'; readonly waitMs: number | undefined; readonly why: string }
  /** It would be refused again. */
  | { readonly kind: 'refused'; readonly why: string };

/** Posts one compressed batch; never rejects. An aborted one resolves with `again`. */
export type Post = (body: Uint8Array, signal: AbortSignal) => Promise<PostResult>;

type ExporterDeps = {
  readonly post: Post;
  readonly envelope: SpanEnvelope;
  readonly schedule: Schedule;
  readonly monotonic: () => number;
  /** A number from 0 up to 1. */
  readonly fraction: () => number;
  /** Counts spans: `exported`, `dropped` here, or `refused` by the collector. */
  readonly counted: (result: SpanResult, spans: number) => void;
  readonly log: Log;
  readonly limits?: Partial<ExporterLimits>;
};

export const SPAN_RESULTS = ['exported', 'dropped', 'refused'] as const;
export type SpanResult = (typeof SPAN_RESULTS)[number];

type ExporterLimits = {
  /** Spans that wait or are under way. */
  readonly queue: number;
  readonly batch: number;
  /** Longest wait of a span for others of its batch. */
  readonly lingerMs: number;
  readonly firstPauseMs: number;
  readonly longestPauseMs: number;
  /** Time for which one batch is tried. */
  readonly tryingMs: number;
  /** Longest rest that a collector may ask for. */
  readonly longestRestMs: number;
};

const LIMITS: ExporterLimits = {
  queue: 4096,
  batch: 512,
  lingerMs: 5_000,
  firstPauseMs: 1_000,
  longestPauseMs: 32_000,
  tryingMs: 60_000,
  longestRestMs: 3_600_000,
};

/** Longest addition to a pause, as a part of it: many processes must not come back in one moment. */
const JITTER = 0.1;

export type Exporter = {
  /** Takes the text of a finished span. */
  readonly add: (span: string) => void;
  /** Exports what is left for up to `withinMs`, then drops it. */
  readonly close: (withinMs: number) => Promise<void>;
};

const compress = promisify(gzip);
/** Spans repeat themselves: the fastest level makes them small, with half of the work of the usual one. */
const COMPRESSION = { level: constants.Z_BEST_SPEED };

export function createExporter(deps: ExporterDeps): Exporter {
  const { schedule, monotonic, counted } = deps;
  const limits = { ...LIMITS, ...deps.limits };
  const queue: string[] = [];
  const stopping = new AbortController();
  let cancelLinger: (() => void) | undefined;
  let running: Promise<void> | undefined;
  let isClosing = false;
  const rest = createRest(schedule, monotonic);
  const delivery = createDelivery(deps, limits, rest, stopping.signal);

  const linger = (): void => {
    cancelLinger ??= schedule(limits.lingerMs, begin);
  };
  const begin = (): void => {
    cancelLinger?.();
    cancelLinger = undefined;
    running ??= run().finally(() => {
      running = undefined;
      if (queue.length > 0 && !stopping.signal.aborted) linger();
    });
  };
  const run = async (): Promise<void> => {
    do {
      const batch = queue.slice(0, limits.batch);
      // The queue holds a batch until its end is known: no more memory than that is ever taken.
      if (await delivery(batch)) queue.splice(0, batch.length);
    } while (isDue());
  };
  const isDue = (): boolean => {
    if (stopping.signal.aborted || queue.length === 0) return false;
    return isClosing || queue.length >= limits.batch;
  };

  return {
    add: (span) => {
      if (queue.length >= limits.queue || stopping.signal.aborted) return counted('dropped', 1);
      queue.push(span);
      if (queue.length >= limits.batch || isClosing) begin();
      else if (running === undefined) linger();
    },
    close: async (withinMs) => {
      isClosing = true;
      rest.end();
      if (queue.length > 0) begin();
      const late = Promise.withResolvers<void>();
      const cancel = schedule(withinMs, late.resolve);
      await Promise.race([running, late.promise]);
      cancel();
      stopping.abort();
      rest.end();
      if (queue.length > 0) counted('dropped', queue.splice(0).length);
    },
  };
}

type Rest = {
  /** Waits for `ms`, or until `end`. */
  readonly wait: (ms: number) => Promise<void>;
  /** Ends the wait that is under way. */
  readonly end: () => void;
  /** Nothing is posted before `ms` from now. */
  readonly until: (ms: number) => void;
  /** Milliseconds that are left of it. */
  readonly left: () => number;
};

function createRest(schedule: Schedule, monotonic: () => number): Rest {
  let endsAt = 0;
  let wake = (): void => undefined;
  return {
    wait: (ms) =>
      new Promise((resolve) => {
        const cancel = schedule(ms, resolve);
        wake = () => {
          cancel();
          resolve();
        };
      }),
    end: () => {
      endsAt = 0;
      wake();
    },
    until: (ms) => {
      endsAt = Math.max(endsAt, monotonic() + ms);
    },
    left: () => Math.max(0, endsAt - monotonic()),
  };
}

/** Delivers one batch. Resolves with true when its end is known and counted, with false if the exporter stopped before. */
function createDelivery(
  { post, envelope, monotonic, fraction, counted, log }: ExporterDeps,
  limits: ExporterLimits,
  rest: Rest,
  stopping: AbortSignal,
): (batch: readonly string[]) => Promise<boolean> {
  let isAway = false;
  const told = (isAwayNow: boolean, why: string): void => {
    if (isAwayNow && !isAway) log.warn('spans are not exported', { why });
    if (!isAwayNow && isAway) log.info('spans are exported again');
    isAway = isAwayNow;
  };
  return async (batch) => {
    const body = await compress(envelope.before + batch.join(',') + envelope.after, COMPRESSION);
    const left = rest.left();
    if (left > 0) await rest.wait(left);
    const since = monotonic();
    for (let pauseMs = limits.firstPauseMs; !stopping.aborted; pauseMs = Math.min(2 * pauseMs, limits.longestPauseMs)) {
      const result = await post(body, stopping);
      if (stopping.aborted && result.kind === 'again') return false;
      told(result.kind !== 'taken', 'why' in result ? result.why : '');
      switch (result.kind) {
        case 'taken': {
          const rejected = Math.min(result.rejected, batch.length);
          if (rejected > 0) counted('refused', rejected);
          counted('exported', batch.length - rejected);
          return true;
        }
        case 'refused':
          counted('refused', batch.length);
          return true;
        case 'again': {
          if (result.waitMs !== undefined) rest.until(Math.min(result.waitMs, limits.longestRestMs));
          const drawn = Math.min(pauseMs * (1 + JITTER * fraction()), limits.longestPauseMs);
          const waitMs = result.waitMs === undefined ? drawn : rest.left();
          if (monotonic() - since + waitMs > limits.tryingMs) {
            counted('dropped', batch.length);
            return true;
          }
          await rest.wait(waitMs);
          break;
        }
        default:
          return result satisfies never;
      }
    }
    return false;
  };
}
