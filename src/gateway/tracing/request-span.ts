// The spans of one traced request: its own, of kind SERVER, and below it one for each call that is made on its account.
// Attributes are those of OpenTelemetry's stable conventions for HTTP, and a few of ours. Never a query, a credential, a
// payer or a customer id: what is written here leaves the house.
import type { IncomingMessage } from 'node:http';
import { writeSpan, type Attribute, type FinishedSpan } from '../../host/otlp/span.ts';
import type { RequestRecord } from '../telemetry.ts';
import type { TraceIdentity } from './trace-identity.ts';

/** A request as its span sees it. */
export type TracedRequest = {
  readonly req: IncomingMessage;
  readonly record: RequestRecord;
  /** Scheme and authority that clients use; empty if they cannot be known. */
  readonly publicOrigin: string;
};

export type SpanDeps = {
  /** Takes the text of a finished span. */
  readonly add: (span: string) => void;
  readonly newSpanId: () => string;
  readonly now: () => number;
  readonly monotonic: () => number;
  /** Pattern of a route; undefined: there is none with this id any more. */
  readonly patternOf: (routeId: string) => string | undefined;
};

/** What the listener in force knows of a request. */
export type ListenerFacts = {
  readonly methods: ReadonlySet<string>;
  /** Address of the client, behind trusted proxies the one that they name. */
  readonly clientOf: (req: IncomingMessage) => string;
};

/** A call that is under way. */
export type CallSpan = {
  readonly spanId: string;
  /** Ends the span, once. `error`: what kept it from an answer, in one word. */
  readonly end: (result: { readonly status?: number | undefined; readonly error?: string | undefined }) => void;
};

type CallStart = Pick<FinishedSpan, 'kind' | 'name' | 'attributes'> & {
  readonly parentId?: string;
  readonly spanId?: string;
};

/** Time after its end in which a request may still begin a call, such as the one that writes that it was delivered. */
const LATE_MS = 10_000;
const UNKNOWN_METHOD = '_OTHER';
const FIRST_ERROR = 400;
const FIRST_SERVER_ERROR = 500;

/** A class, because sockets and timers may hold it for long: its end lets go of the request. */
export class RequestSpan {
  readonly traceId: string;
  readonly spanId: string;
  /** Span of the call to the upstream, which the upstream is told before the call begins. */
  readonly upstreamId: string;
  /** Network that the payment is on, once it is known. */
  network: string | undefined;
  private readonly deps: SpanDeps;
  private readonly identity: TraceIdentity;
  private readonly facts: ListenerFacts;
  private request: TracedRequest | undefined;
  /** Difference between the time and the monotonic clock. */
  private readonly offsetMs: number;
  private endedAt = Infinity;
  private readonly open = new Set<() => void>();

  constructor(deps: SpanDeps, identity: TraceIdentity, facts: ListenerFacts, request: TracedRequest) {
    this.deps = deps;
    this.identity = identity;
    this.facts = facts;
    this.request = request;
    this.traceId = identity.traceId;
    this.spanId = deps.newSpanId();
    this.upstreamId = deps.newSpanId();
    this.offsetMs = deps.now() - deps.monotonic();
  }

  /** Begins a span below this one; undefined: the request is long over, and somebody else's work runs in its name. */
  begin({
    kind,
    name,
    attributes,
    parentId = this.spanId,
    spanId = this.deps.newSpanId(),
  }: CallStart): CallSpan | undefined {
    const { deps, traceId, offsetMs } = this;
    const startedAt = deps.monotonic();
    if (startedAt - this.endedAt > LATE_MS) return undefined;
    let isOver = false;
    const end: CallSpan['end'] = ({ status, error }) => {
      if (isOver) return;
      isOver = true;
      const fault = error ?? (status !== undefined && status >= FIRST_ERROR ? String(status) : undefined);
      const all = [...attributes];
      if (status !== undefined) all.push(['http.response.status_code', BigInt(status)]);
      if (fault !== undefined) all.push(['error.type', fault]);
      const times = { startMs: offsetMs + startedAt, endMs: offsetMs + deps.monotonic() };
      const isError = fault !== undefined;
      const trace = { traceId, spanId, parentId, hasRemoteParent: false, traceState: this.identity.traceState };
      deps.add(writeSpan({ ...trace, ...times, kind, name, isError, attributes: all }));
    };
    return { spanId, end };
  }

  /** Begins a span that ends with the request at the latest: what the client left alone is not waited for. */
  beginWithin(start: CallStart): CallSpan | undefined {
    const span = this.begin(start);
    if (span !== undefined) this.open.add(() => span.end({}));
    return span;
  }

  /** Ends the request's own span. `at` is monotonic. */
  end(at: number): void {
    const { deps, identity, request, offsetMs, traceId, spanId } = this;
    if (request === undefined) return;
    this.request = undefined;
    this.endedAt = at;
    for (const cutOff of this.open) cutOff();
    const { record } = request;
    const method = this.facts.methods.has(record.method) ? record.method : undefined;
    const pattern = record.routeId === undefined ? undefined : deps.patternOf(record.routeId);
    const name = pattern === undefined ? (method ?? 'HTTP') : `${method ?? 'HTTP'} ${pattern}`;
    const isError = record.status >= FIRST_SERVER_ERROR || record.status === 0;
    deps.add(
      writeSpan({
        ...{ traceId, spanId, parentId: identity.parentId, hasRemoteParent: identity.parentId !== undefined },
        ...{ traceState: identity.traceState, name, kind: 'server', isError },
        ...{ startMs: offsetMs + record.startedAt, endMs: offsetMs + at },
        attributes: [
          ['http.request.method', method ?? UNKNOWN_METHOD],
          ...aboutRequest(request, this.facts.clientOf(request.req)),
          ...given('http.route', pattern),
          ...aboutEnd(record, isError),
          ...aboutPayment(record, this.network),
          ['tollgate.overhead_ms', Math.max(0, at - record.startedAt - (record.upstreamMs ?? 0))],
        ],
      }),
    );
  }
}

function aboutRequest({ req, record, publicOrigin }: TracedRequest, client: string): Attribute[] {
  const origin = URL.canParse(publicOrigin) ? new URL(publicOrigin) : undefined;
  return [
    // A question that could not be read has none.
    ...given('url.path', record.path === '' ? undefined : record.path),
    ['url.scheme', origin?.protocol.slice(0, -1) ?? 'http'],
    ...(origin === undefined ? [] : aboutServer(origin)),
    ['client.address', client],
    ['network.protocol.version', req.httpVersion],
    ...given('user_agent.original', req.headers['user-agent']),
  ];
}

function aboutEnd({ status, reason }: RequestRecord, isError: boolean): Attribute[] {
  return [
    ...(status === 0 ? [] : [['http.response.status_code', BigInt(status)] as const]),
    ...(isError ? [['error.type', reason ?? String(status)] as const] : []),
  ];
}

function aboutPayment(record: RequestRecord, network: string | undefined): Attribute[] {
  return [
    ['tollgate.outcome', record.outcome],
    ...given('tollgate.route_id', record.routeId),
    ...given('tollgate.charge_id', record.chargeId),
    ...given('tollgate.amount', record.amount),
    ...given('tollgate.currency', record.currency),
    ...given('tollgate.network', network),
    ...given('tollgate.reason', record.reason),
    ...given('tollgate.dialect', record.dialect),
    ...given('tollgate.decision', record.decision),
  ];
}

function given(name: string, value: string | undefined): Attribute[] {
  return value === undefined ? [] : [[name, value]];
}

/** Attributes of a call over HTTP. `url` is complete, and `path` takes the place of its path. */
export function aboutCall(method: string, url: URL, path: string): Attribute[] {
  return [['http.request.method', method], ['url.full', url.origin + path], ...aboutServer(url)];
}

const DEFAULT_PORTS: Readonly<Record<string, bigint>> = { 'http:': 80n, 'https:': 443n };

function aboutServer({ protocol, hostname, port }: URL): Attribute[] {
  return [
    ['server.address', hostname.replace(/^\[|\]$/g, '')],
    ['server.port', port === '' ? (DEFAULT_PORTS[protocol] ?? 0n) : BigInt(port)],
  ];
}
