// Identifiers: random ones, and those that follow a request through every log, its request id and its W3C trace context.
// A client's are taken only in exactly their form. Anything else is replaced or dropped, so that no client writes into
// our logs or the upstream's.
import type { Random } from './clock.ts';

/** The two identities that follow a request through every log: its request id and its W3C trace context. */
export type Trace = {
  readonly requestId: string;
  /** Value of `traceparent` for the upstream, as the client sent it: a span of ours would never be exported. */
  readonly traceparent: string | undefined;
  readonly tracestate: string | undefined;
  readonly traceId: string | undefined;
};

/** Trace of a request that was not read yet. */
export const NO_TRACE: Trace = { requestId: '', traceparent: undefined, tracestate: undefined, traceId: undefined };

const REQUEST_ID = /^[A-Za-z0-9._-]{1,128}$/;
/** W3C Trace Context, section 3.2; of a later version what it begins with. */
const TRACEPARENT =
  /^(?:00-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}|(?!00|ff)[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}(?:-[\x21-\x7e]{0,200})?)$/;
const TRACESTATE = /^[\x20-\x7e]{1,512}$/;
const ZEROS = /^0+$/;

type Header = string | string[] | undefined;

export type TraceReader = (givenId: Header, givenParent: Header, givenState: Header) => Trace;

/** Makes a reader of the identities that a client gave its request; a request without a right id gets a new one. */
export function createTraceReader(random: Random, now: () => number): TraceReader {
  const newId = createRequestIds(random, now);
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

/**
 * Request ids: 12 hexadecimal digits of the time in milliseconds, and ten random bytes. A store's index of them grows at its end.
 * Random ones alone would each change another page of it, and every paid request would write that page.
 */
function createRequestIds(random: Random, now: () => number): () => string {
  const newTail = createTokens(random, 10, 'hex');
  let at = -1;
  let head = '';
  return () => {
    const ms = now();
    if (ms !== at) {
      at = ms;
      head = Math.max(0, Math.trunc(ms)).toString(16).padStart(12, '0');
    }
    return head + newTail();
  };
}

function traceIdOf(parent: string): string | undefined {
  const found = TRACEPARENT.exec(parent);
  const traceId = found?.[1] ?? found?.[3];
  const spanId = found?.[2] ?? found?.[4];
  if (traceId === undefined || spanId === undefined || ZEROS.test(traceId) || ZEROS.test(spanId)) return undefined;
  return traceId;
}

/**
 * Random identifiers of `size` bytes each as text, a page of them drawn and written out at once. For `base64url` a
 * multiple of 3 bytes: else the last one of a page would be a single character.
 */
export function createTokens(random: Random, size: number, encoding: 'hex' | 'base64url'): () => string {
  const length = encoding === 'hex' ? size * 2 : (size / 3) * 4;
  if (!Number.isInteger(length)) throw new RangeError(`${size} bytes have no length of their own in ${encoding}`);
  let page = '';
  let at = 0;
  return () => {
    if (at >= page.length) {
      page = random(size * TOKENS_PER_PAGE).toString(encoding);
      at = 0;
    }
    at += length;
    return page.slice(at - length, at);
  };
}

const TOKENS_PER_PAGE = 64;

/** Makes a random identifier of RFC 9562, version 4. */
export function makeUuid(random: Random): string {
  const bytes = Uint8Array.from(random(16));
  bytes[6] = ((bytes[6] ?? 0) & 0x0f) | 0x40;
  bytes[8] = ((bytes[8] ?? 0) & 0x3f) | 0x80;
  const hex = Buffer.from(bytes).toString('hex');
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`;
}
