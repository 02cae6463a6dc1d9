// Tracing of a process: what it puts around the parts that a request meets. It is made only if `otlp` is configured; without
// it none of these wrappers exists. A request that is not sampled passes them with one look-up each.
import type { Ledger } from '../../domain/payment/ledger.ts';
import type { Clock, Random } from '../../host/clock.ts';
import { createTokens, type Trace } from '../../host/identifiers.ts';
import type { JsonCall } from '../../http/json-call.ts';
import type { Transport } from '../../http/transport.ts';
import type { RequestFacts } from '../outcome.ts';
import type { PaymentHandler } from '../pay/pay.ts';
import type { Rail } from '../rails/rail.ts';
import type { Fetch } from '../rails/service-call.ts';
import type { Telemetry } from '../telemetry.ts';
import { createCallScope } from './call-scope.ts';
import { RequestSpan, type ListenerFacts, type SpanDeps, type TracedRequest } from './request-span.ts';
import { createSampler } from './trace-identity.ts';
import { traceFetch, traceLedgerCalls } from './traced-calls.ts';
import { traceLedger, tracePay, traceRail } from './traced-payments.ts';
import { traceTransport } from './traced-transport.ts';

/** Begins the traces of the requests of one listener. */
export type RequestTracing = {
  /** Decides about a request; returns what the upstream is told. `trusted`: its peer may speak for others. */
  readonly begin: (request: TracedRequest, trace: Trace, trusted: boolean) => Trace;
  /** Counts what is paid for `facts` among the calls of `request`. */
  readonly include: (facts: RequestFacts, request: TracedRequest) => void;
  /** Runs `task` on the account of `request`. */
  readonly within: <T>(request: TracedRequest, task: () => T) => T;
};

export type Tracing = {
  readonly requests: (facts: ListenerFacts) => RequestTracing;
  readonly telemetry: (telemetry: Telemetry) => Telemetry;
  readonly transport: (transport: Transport, upstream: URL) => Transport;
  readonly pay: (pay: PaymentHandler) => PaymentHandler;
  readonly ledger: (ledger: Ledger) => Ledger;
  readonly rail: (rail: Rail) => Rail;
  /** Calls of facilitators. */
  readonly facilitatorFetch: (fetch: Fetch) => Fetch;
  /** Calls of nodes. */
  readonly chainFetch: (fetch: Fetch) => Fetch;
  /** Calls of a registry that keeps the charges. */
  readonly ledgerCalls: (call: JsonCall, registry: URL) => JsonCall;
};

type TracingOptions = Pick<SpanDeps, 'add' | 'patternOf'> & {
  readonly sample: number;
  /** Secret of all processes that should trace the same traces. */
  readonly key: string;
  readonly clock: Clock;
  readonly random: Random;
};

export function createTracing({ sample, key, clock, random, add, patternOf }: TracingOptions): Tracing {
  const sampler = createSampler({ sample, key, random });
  const deps = {
    add,
    patternOf,
    now: clock.now,
    monotonic: clock.monotonic,
    newSpanId: createTokens(random, 8, 'hex'),
  };
  const scope = createCallScope();
  // By the request and by its record: those who end a request know no more than that.
  const spans = new WeakMap<object, RequestSpan>();
  const spanOf = (about: object): RequestSpan | undefined => spans.get(about);
  return {
    requests: (facts) => ({
      begin: (request, trace, trusted) => {
        const identity = sampler(trace, trusted);
        if (identity === undefined) return trace;
        const span = new RequestSpan(deps, identity, facts, request);
        spans.set(request, span);
        spans.set(request.record, span);
        const { traceId, upstreamId } = span;
        const { requestId, tracestate } = trace;
        return { requestId, traceparent: `00-${traceId}-${upstreamId}-01`, tracestate, traceId };
      },
      include: (facts, request) => {
        const span = spanOf(request);
        if (span !== undefined) spans.set(facts, span);
      },
      within: (request, task) => scope.run(spanOf(request), task),
    }),
    telemetry: (telemetry) => ({
      ...telemetry,
      end: (record, now) => {
        telemetry.end(record, now);
        spanOf(record)?.end(now);
      },
    }),
    transport: (transport, upstream) => traceTransport(transport, upstream, spanOf),
    pay: (pay) => tracePay(pay, scope, spanOf),
    ledger: (ledger) => traceLedger(ledger, scope),
    rail: (rail) => traceRail(rail, scope),
    facilitatorFetch: (fetch) => traceFetch(fetch, scope, (pathname) => pathname.slice(pathname.lastIndexOf('/') + 1)),
    chainFetch: (fetch) => traceFetch(fetch, scope, () => 'chain'),
    ledgerCalls: (call, registry) => traceLedgerCalls(call, scope, registry),
  };
}
