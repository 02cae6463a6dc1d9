// The journey of a request, top to bottom: target, route, caller, verdict, outcome. Everything is parsed once and here;
// what was matched is what is forwarded. A request that costs nothing meets no await before the upstream's socket.
// Whatever goes wrong in here is answered with a Problem: there is no way past `collect` but a Permit.
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { decide, type Policy, type Rules, type Verdict } from '../domain/decide.ts';
import type { Offer } from '../domain/offer.ts';
import { problem, type Problem } from '../domain/problem.ts';
import type { Route } from '../domain/route.ts';
import type { Snapshot } from '../domain/snapshot.ts';
import { refuseAmbiguous, splitTarget, type TargetOptions } from '../domain/target.ts';
import type { Clock, Random } from '../host/clock.ts';
import type { Log } from '../host/log.ts';
import type { Admission } from './admission.ts';
import { readCaller } from './caller.ts';
import type { TakePlace } from './client-places.ts';
import type { Collector } from './collect.ts';
import type { Client, Exchange, Exchanges } from './exchange.ts';
import type { ForwardOrder } from './forward-order.ts';
import { inspectInbound } from './headers.ts';
import { createOrder, type OrderContext } from './order.ts';
import { publicOrigin } from './peer.ts';
import type { Outcome, PaidOutcome, RequestFacts } from './outcome.ts';
import type { Permit } from './permit.ts';
import type { RequestRecord, Telemetry } from './telemetry.ts';
import { createTraceReader, type TraceReader } from './trace.ts';

export type HandlerOptions = {
  readonly target: TargetOptions;
  readonly policy: Policy;
  readonly publicUrl: string | undefined;
  readonly upstream: URL;
  readonly hostHeader: 'preserve' | 'upstream';
  /** Lower-cased name of the header that carries the customer id. */
  readonly customerHeader: string;
  /** A proxy in front authenticates the customer header. */
  readonly customerHeaderTrusted: boolean;
  readonly passPaymentHeaders: boolean;
  readonly maxInFlight: number;
};

export type HandlerDeps = {
  readonly options: HandlerOptions;
  readonly snapshot: () => Snapshot | undefined;
  readonly offer: (route: Route) => Offer | Problem;
  /** Asked if a request costs something, before anything is done about it. */
  readonly admission: Admission;
  /** Set if the requests of one client are limited: a place for one, until it ends. */
  readonly placeOf: TakePlace | undefined;
  readonly collector: Collector;
  readonly exchanges: Exchanges;
  /** Sends upstream: the request, or the handshake of a WebSocket. */
  readonly forward: (exchange: Exchange, order: ForwardOrder) => void;
  readonly trusts: (address: string | undefined) => boolean;
  readonly telemetry: Telemetry;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
};

export type Handler = {
  readonly request: (req: IncomingMessage, res: ServerResponse) => void;
  readonly upgrade: (req: IncomingMessage, socket: Socket, head: Buffer) => void;
};

/** When to come back after a passing fault on our side, in seconds. */
const RETRY_SECONDS = 1;

/** What every request of a configuration is handled with. */
type Handling = {
  readonly deps: HandlerDeps;
  readonly rules: Rules<IncomingMessage>;
  readonly orders: OrderContext;
  readonly readTrace: TraceReader;
};

export function createHandler(deps: HandlerDeps): Handler {
  const { options, exchanges } = deps;
  const { upstream, publicUrl, passPaymentHeaders } = options;
  // A URL works it out whenever it is asked.
  const host = options.hostHeader === 'preserve' ? undefined : upstream.host;
  const handling: Handling = {
    deps,
    rules: {
      policy: options.policy,
      caller: (req) => readCaller(req.rawHeaders, options.customerHeader),
      offer: deps.offer,
    },
    orders: { exchanges, upstream, host, publicUrl, passPaymentHeaders },
    readTrace: createTraceReader(deps.random),
  };
  const serve = (req: IncomingMessage, client: Client): void => {
    const exchange = exchanges.begin(req, client);
    try {
      journey(handling, exchange);
    } catch (error) {
      fail(deps, exchange, error);
    }
  };
  return {
    request: (req, res) => serve(req, { kind: 'response', res }),
    upgrade: (req, socket, head) => serve(req, { kind: 'socket', socket, head }),
  };
}

function journey(handling: Handling, exchange: Exchange): void {
  const { deps, rules, readTrace } = handling;
  const { options, collector, exchanges } = deps;
  const { req, record } = exchange;
  const { headers } = req;
  const trace = readTrace(headers['x-request-id'], headers.traceparent, headers.tracestate);
  exchange.trace = trace;
  record.requestId = trace.requestId;
  record.traceId = trace.traceId;

  // 1 target: parsed once; nothing later looks at req.url.
  if (deps.telemetry.inFlight() > options.maxInFlight) return refuse(deps, exchange, tooMany(options.maxInFlight));
  if (deps.placeOf !== undefined) {
    exchange.release = deps.placeOf(req);
    if (exchange.release === undefined) return refuse(deps, exchange, tooManyOfClient());
  }
  const malformed = inspectInbound(req);
  if (malformed !== undefined) return refuse(deps, exchange, malformed);
  const method = req.method ?? '';
  if (method === 'OPTIONS' && req.url === '*') return exchanges.answer(exchange, collector.serverOptions());
  const target = splitTarget({ method, target: req.url ?? '', host: headers.host }, options.target);
  if ('code' in target) return refuse(deps, exchange, target);

  // 2 route: a pointer read and one look-up.
  const snapshot = deps.snapshot();
  if (snapshot === undefined) return refuse(deps, exchange, routesAbsent());
  const resolution = snapshot.resolve(method, target.rawPath);
  if (!resolution.ok) return refuse(deps, exchange, refuseAmbiguous(resolution.reason));
  const { path, match } = resolution;
  record.path = path;
  record.target = path + target.query;
  exchange.protectedPath = match.kind !== 'none';
  exchange.trusted = deps.trusts(req.socket.remoteAddress);

  // 3 verdict: pure; the caller's headers are read only if the request costs something.
  const preflight =
    method === 'OPTIONS' && headers.origin !== undefined && headers['access-control-request-method'] !== undefined;
  const verdict = decide(rules, { match, method, preflight, request: req });
  if (verdict.kind === 'pass') return forward(handling, exchange, collector.pass(verdict), undefined);
  if (verdict.kind === 'demand' || verdict.kind === 'verify') notePrice(record, verdict);
  const admitted = deps.admission.admit(verdict, req);
  if (typeof admitted === 'object') return refuse(deps, exchange, admitted);

  // 4 outcome: an answer of ours, or the Permit without which nothing goes upstream. Waits only for a payment.
  const outcome = collector.perform(verdict, requestFacts(deps, exchange));
  if (outcome instanceof Promise) {
    outcome
      .then((taken) => {
        if (taken.kind === 'answer' && taken.refusedBy === 'facilitator') deps.admission.refused(req);
        proceed(handling, exchange, taken);
      })
      .catch((error: unknown) => fail(deps, exchange, error))
      .finally(admitted);
  } else {
    admitted?.();
    proceed(handling, exchange, outcome);
  }
}

function proceed(handling: Handling, exchange: Exchange, outcome: Outcome): void {
  const { exchanges } = handling.deps;
  if (outcome.kind === 'answer') exchanges.answer(exchange, outcome);
  else if (outcome.kind === 'gone') {
    exchange.record.routeId = outcome.routeId;
    exchange.record.outcome = 'released';
    exchanges.finish(exchange, { kind: 'not_sent' });
  } else forward(handling, exchange, outcome.permit, outcome.paid);
}

/** 5 forward. */
function forward({ deps, orders }: Handling, exchange: Exchange, permit: Permit, paid: PaidOutcome | undefined): void {
  const { req, record } = exchange;
  record.routeId = permit.route?.id;
  if (paid !== undefined) {
    record.chargeId = paid.charge.id;
    record.amount = paid.charge.price.amount;
    record.currency = paid.charge.price.currency;
  }
  const order = createOrder(exchange, permit, paid, orders);
  // Nothing is sent for a client that left while its payment was taken.
  if (req.socket.destroyed) order.done({ kind: 'not_sent' });
  else deps.forward(exchange, order);
}

function refuse({ collector, exchanges }: HandlerDeps, exchange: Exchange, refusal: Problem): void {
  exchanges.answer(exchange, collector.refuse(refusal, exchange.req.headers.origin));
}

/** A defect of ours, not of the request. Whatever it was, it did not end in a Permit. */
function fail(deps: HandlerDeps, exchange: Exchange, error: unknown): void {
  deps.log.error('request failed', { request_id: exchange.record.requestId, error });
  refuse(deps, exchange, problem('internal', 'Something went wrong here; the request was not forwarded.'));
}

function requestFacts({ options, clock }: HandlerDeps, { req, record, trusted }: Exchange): RequestFacts {
  const { method } = record;
  return {
    requestId: record.requestId,
    method,
    path: record.path,
    target: record.target,
    publicOrigin: publicOrigin(req, options.publicUrl, trusted),
    origin: req.headers.origin,
    nowMs: clock.now(),
    conditionalWrite: isConditionalWrite(method, req.headers),
    left: () => req.socket.destroyed,
    customerTrusted: trusted || options.customerHeaderTrusted,
    notePayer: (payer) => {
      record.payer = payer;
    },
  };
}

function notePrice(record: RequestRecord, { offer, caller }: Extract<Verdict, { kind: 'demand' | 'verify' }>): void {
  record.customerId = caller.customerId;
  if ('code' in offer) return;
  record.amount = offer.route.amount;
  record.currency = offer.route.currency;
}

function isConditionalWrite(method: string, headers: IncomingMessage['headers']): boolean {
  if (method === 'GET' || method === 'HEAD') return false;
  return headers['if-match'] !== undefined || headers['if-unmodified-since'] !== undefined;
}

function tooMany(limit: number): Problem {
  return problem('too_many_requests_in_flight', `More than ${limit} requests are in flight; try again.`, {
    retryAfter: RETRY_SECONDS,
  });
}

function tooManyOfClient(): Problem {
  return problem('too_many_requests_in_flight', 'Too many requests of this client are in flight; try again.', {
    retryAfter: RETRY_SECONDS,
  });
}

function routesAbsent(): Problem {
  return problem('routes_absent', 'The protected routes are not loaded yet; try again.', { retryAfter: RETRY_SECONDS });
}
