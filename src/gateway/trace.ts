// The two identities that follow a request through every log: its request id and its W3C trace context. Both are taken
// from the client only where they have exactly the form they should have; anything else is replaced or dropped, so that
// nobody can write into our logs or into the upstream's.
import { createTokens, type Random } from '../host/clock.ts';

export type Trace = {
  readonly requestId: string;
  /** `traceparent` for the upstream, or undefined where the client sent none. */
  readonly traceparent: string | undefined;
  readonly tracestate: string | undefined;
  readonly traceId: string | undefined;
};

/** Of a request that was not read yet. */
export const NO_TRACE: Trace = { requestId: '', traceparent: undefined, tracestate: undefined, traceId: undefined };

const REQUEST_ID = /^[A-Za-z0-9._-]{1,128}$/;
const TRACEPARENT = /^00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})$/;
const TRACESTATE = /^[\x20-\x7e]{1,512}$/;
const ZEROS = /^0+$/;

type Header = string | string[] | undefined;

export type TraceReader = (givenId: Header, givenParent: Header, givenState: Header) => Trace;

/** The client's trace id is kept and the parent id replaced by one of ours (W3C Trace Context, section 3.4). */
export function createTraceReader(random: Random): TraceReader {
  const newId = createTokens(random, 16, 'hex');
  const newParent = createTokens(random, 8, 'hex');
  return (givenId, givenParent, givenState) => readTrace(givenId, givenParent, givenState, newId, newParent);
}

function readTrace(
  givenId: Header,
  givenParent: Header,
  givenState: Header,
  newId: () => string,
  newParent: () => string,
): Trace {
  const requestId = typeof givenId === 'string' && REQUEST_ID.test(givenId) ? givenId : newId();
  const parent = typeof givenParent === 'string' ? TRACEPARENT.exec(givenParent) : null;
  const traceId = parent?.[1];
  if (traceId === undefined || ZEROS.test(traceId) || ZEROS.test(parent?.[2] ?? '0')) {
    return { requestId, traceparent: undefined, tracestate: undefined, traceId: undefined };
  }
  return {
    requestId,
    traceparent: `00-${traceId}-${newParent()}-${parent?.[3] ?? '00'}`,
    tracestate: typeof givenState === 'string' && TRACESTATE.test(givenState) ? givenState : undefined,
    traceId,
  };
}
