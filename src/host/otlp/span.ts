// A finished span, and its text in OTLP's JSON (opentelemetry-proto 1, `trace.proto`): ids in hex, times as nanoseconds in
// decimal strings, integers as strings. A span becomes text when it ends, so that a batch is put together without a long
// stop of the event loop.

/** Value of an attribute: a bigint is written as an integer, a number as a floating point number. */
export type AttributeValue = string | bigint | number;
export type Attribute = readonly [name: string, value: AttributeValue];

export type FinishedSpan = {
  /** 32 hex digits. */
  readonly traceId: string;
  /** 16 hex digits. */
  readonly spanId: string;
  /** Span that this one is part of; undefined: it begins its trace. */
  readonly parentId: string | undefined;
  /** The parent came with a request from elsewhere. */
  readonly hasRemoteParent: boolean;
  /** Value of `tracestate`, if one came. */
  readonly traceState: string | undefined;
  readonly name: string;
  readonly kind: keyof typeof KINDS;
  /** Milliseconds since the epoch, with a fraction. */
  readonly startMs: number;
  readonly endMs: number;
  readonly isError: boolean;
  readonly attributes: readonly Attribute[];
};

const KINDS = { internal: 1, server: 2, client: 3 } as const;
const STATUS_ERROR = 2;
/** W3C's flag `sampled`, and OTLP's marks that say whether the parent is remote. */
const FLAGS = { sampled: 0x1, knowsRemote: 0x100, isRemote: 0x200 } as const;
/** Characters of one attribute at most: a target or a user agent may be as long as a client likes. */
const LONGEST = 1024;
const NANOSECONDS = 1_000_000;

export function writeSpan(span: FinishedSpan): string {
  const { traceId, spanId, parentId, traceState, hasRemoteParent } = span;
  return JSON.stringify({
    traceId,
    spanId,
    traceState,
    parentSpanId: parentId,
    flags: FLAGS.sampled | FLAGS.knowsRemote | (hasRemoteParent ? FLAGS.isRemote : 0),
    name: span.name,
    kind: KINDS[span.kind],
    startTimeUnixNano: nanoseconds(span.startMs),
    endTimeUnixNano: nanoseconds(Math.max(span.startMs, span.endMs)),
    attributes: span.attributes.map(writeAttribute),
    status: span.isError ? { code: STATUS_ERROR } : {},
  });
}

/** What a batch is sent in: `before`, the spans with commas between them, `after`. */
export type SpanEnvelope = { readonly before: string; readonly after: string };

/** Writes the envelope of one process. `scope` names the program that made the spans. */
export function writeEnvelope(
  resource: readonly Attribute[],
  scope: { readonly name: string; readonly version: string },
): SpanEnvelope {
  const about = JSON.stringify({ attributes: resource.map(writeAttribute) });
  return {
    before: `{"resourceSpans":[{"resource":${about},"scopeSpans":[{"scope":${JSON.stringify(scope)},"spans":[`,
    after: ']}]}]}',
  };
}

function writeAttribute([key, value]: Attribute): object {
  if (typeof value === 'bigint') return { key, value: { intValue: value.toString() } };
  if (typeof value === 'number') return { key, value: { doubleValue: value } };
  return { key, value: { stringValue: value.slice(0, LONGEST) } };
}

/** A float has too few digits for nanoseconds since the epoch. */
function nanoseconds(ms: number): string {
  const whole = Math.floor(ms);
  return (BigInt(whole) * BigInt(NANOSECONDS) + BigInt(Math.round((ms - whole) * NANOSECONDS))).toString();
}
