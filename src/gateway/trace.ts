// The two identities that follow a request through every log: its request id and its W3C trace context. Both are taken
// from the client only if they have exactly the form they should have; anything else is replaced or dropped, so that
// no client can write into our logs or into the upstream's.
import { createTokens, type Random } from '../host/clock.ts';

export type Trace = {
  readonly requestId: string;
  /** `traceparent` for the upstream as the client sent it: a span of ours would never be exported. */
  readonly traceparent: string | undefined;
  readonly tracestate: string | undefined;
  readonly traceId: string | undefined;
};

/** Of a request that was not read yet. */
export const NO_TRACE: Trace = { requestId: '', traceparent: undefined, tracestate: undefined, traceId: undefined };

const REQUEST_ID = /^[A-Za-z0-9._-]{1,128}$/;
/** W3C Trace Context, section 3.2; of a later version what it begins with. */
const TRACEPARENT =
  /^(?:00-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}|(?!00|ff)[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}(?:-[\x21-\x7e]{0,200})?)$/;
const TRACESTATE = /^[\x20-\x7e]{1,512}$/;
const ZEROS = /^0+$/;

type Header = string | string[] | undefined;

export type TraceReader = (givenId: Header, givenParent: Header, givenState: Header) => Trace;

export function createTraceReader(random: Random): TraceReader {
  const newId = createTokens(random, 16, 'hex');
  return (givenId, givenParent, givenState) => {
    const requestId = typeof givenId === 'string' && REQUEST_ID.test(givenId) ? givenId : newId();
    const traceId = typeof givenParent === 'string' ? traceIdOf(givenParent) : undefined;
    if (typeof givenParent !== 'string' || traceId === undefined)
      return { requestId, traceparent: undefined, tracestate: undefined, traceId: undefined };
    return {
      requestId,
      traceparent: givenParent,
      tracestate: typeof givenState === 'string' && TRACESTATE.test(givenState) ? givenState : undefined,
      traceId,
    };
  };
}

function traceIdOf(parent: string): string | undefined {
  const found = TRACEPARENT.exec(parent);
  const traceId = found?.[1] ?? found?.[3];
  const spanId = found?.[2] ?? found?.[4];
  if (traceId === undefined || spanId === undefined || ZEROS.test(traceId) || ZEROS.test(spanId)) return undefined;
  return traceId;
}
