// Which requests are traced, and as what part of which trace. A trusted peer's flag decides; for all others the share that
// is configured, on the trace id. A stranger's trace id is hashed with a key first: else a client could choose ids that
// are always traced, and fill the collector.
import { hash } from 'node:crypto';
import type { Random } from '../../host/clock.ts';
import { createTokens, type Trace } from '../../host/identifiers.ts';

/** Identity of a traced request. */
export type TraceIdentity = {
  readonly traceId: string;
  /** Span of the caller; undefined: the trace begins here. */
  readonly parentId: string | undefined;
  readonly traceState: string | undefined;
};

type SamplerOptions = {
  /** Share of the requests that are traced, 0 to 1. */
  readonly sample: number;
  /** Secret of all processes that should trace the same traces. */
  readonly key: string;
  readonly random: Random;
};

/** Decides about a request; undefined: it is not traced. `trusted`: its peer may speak for others. */
export type Sampler = (trace: Trace, trusted: boolean) => TraceIdentity | undefined;

/** Places of a traceparent's fields (W3C Trace Context, section 3.2); a later version has them at the same places. */
const PARENT = { start: 36, end: 52 } as const;
const FLAGS = { start: 53, end: 55 } as const;
const SAMPLED = 0x1;
/** Hex digits of an id that are compared: as many bits as a number holds exactly. */
const COMPARED = 12;
const RANGE = 16 ** COMPARED;

export function createSampler({ sample, key, random }: SamplerOptions): Sampler {
  const newTraceId = createTokens(random, 16, 'hex');
  const isIn = (hex: string): boolean => Number.parseInt(hex.slice(-COMPARED), 16) < sample * RANGE;
  return ({ traceparent, tracestate, traceId }, trusted) => {
    if (traceparent === undefined || traceId === undefined) {
      if (sample === 0) return undefined;
      const id = newTraceId();
      return isIn(id) ? { traceId: id, parentId: undefined, traceState: undefined } : undefined;
    }
    const isSampled = trusted
      ? (Number.parseInt(traceparent.slice(FLAGS.start, FLAGS.end), 16) & SAMPLED) !== 0
      : isIn(hash('sha256', key + traceId));
    if (!isSampled) return undefined;
    return { traceId, parentId: traceparent.slice(PARENT.start, PARENT.end), traceState: tracestate };
  };
}
