// The journey of a request, top to bottom: form, verdict, admission, outcome. Everything is parsed once and here;
// what was matched is what is forwarded. A request that costs nothing meets no await before the upstream's socket.
// Whatever goes wrong here is answered with a Problem. Only a Permit leads past the paywall.
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import {
  passPermit,
  routesAbsent,
  verdictOf,
  type PaywallVerdict,
  type Rules,
  type PlannedSale,
} from '../domain/decide.ts';
import { problem, type Problem } from '../domain/problem.ts';
import type { Snapshot } from '../domain/routing/snapshot.ts';
import type { TargetOptions } from '../domain/routing/target.ts';
import type { Clock, Random } from '../host/clock.ts';
import type { ResponseWatcher } from '../host/client-connection.ts';
import { createTraceReader, type TraceReader } from '../host/identifiers.ts';
import type { Log } from '../host/log.ts';
import { responseOn } from '../host/server.ts';
import { tooMany, tooManyOfClient, type Admission } from './admission.ts';
import type { TakePlace } from './client-semaphores.ts';
import type { ExchangeContext } from './exchange-context.ts';
import { Exchange } from './exchange.ts';
import { inspectInbound, isPreflight } from './headers.ts';
import type { Outcome } from './outcome.ts';
import type { Paywall } from './paywall.ts';
import type { PublicDocumentsAnswer } from './public-documents.ts';
import type { Ruling, Sell } from './selling/way-to-pass.ts';
import { notePrice, type Telemetry } from './telemetry.ts';
import type { RequestTracing } from './tracing/tracing.ts';

type HandlerDeps = {
  readonly rules: Rules<IncomingMessage>;
  readonly target: TargetOptions;
  readonly maxInFlight: number;
  /** Routes in force; undefined until the first ones were loaded. */
  readonly routes: { readonly snapshot: Snapshot | undefined };
  /** Sells the requests of routes with a plan. */
  readonly sell: Sell;
  /** Answers for paths that no route covers; undefined: all of them are the upstream's. */
  readonly documents: PublicDocumentsAnswer | undefined;
  /** Admission of a request that costs something, before anything is done about it. */
  readonly admission: Admission;
  /** Set if the requests of one client are limited: a place for one, until it ends. */
  readonly placeOf: TakePlace | undefined;
  readonly paywall: Paywall;
  /** Context of the exchanges that are made here. */
  readonly context: ExchangeContext;
  /** Whether a peer may speak for others; undefined: none may. */
  readonly trusts: ((address: string | undefined) => boolean) | undefined;
  readonly telemetry: Telemetry;
  /** Set if requests are traced. */
  readonly tracing: RequestTracing | undefined;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
};

export type Handler = {
  readonly request: (req: IncomingMessage, res: ServerResponse) => ResponseWatcher;
  readonly upgrade: (req: IncomingMessage, socket: Socket, head: Buffer) => void;
};

/** Objects with which every request of a configuration is handled. */
type HandlerContext = { readonly deps: HandlerDeps; readonly readTrace: TraceReader };

export function createHandler(deps: HandlerDeps): Handler {
  const { context } = deps;
  const handling: HandlerContext = { deps, readTrace: createTraceReader(deps.random, deps.clock.now) };
  const serve = (exchange: Exchange): Exchange => {
    try {
      journey(handling, exchange);
    } catch (error) {
      fail(deps, exchange, error);
    }
    return exchange;
  };
  return {
    request: (req, res) => serve(new Exchange(context, req, res)),
    upgrade: (req, socket, head) => void serve(new Exchange(context, req, responseOn(req, socket), head)),
  };
}

function journey(handling: HandlerContext, exchange: Exchange): void {
  const { deps, readTrace } = handling;
  const { paywall, maxInFlight } = deps;
  const { req, record } = exchange;
  const { headers } = req;
  const given = readTrace(headers['x-request-id'], headers.traceparent, headers.tracestate);
  exchange.trusted = deps.trusts?.(req.socket.remoteAddress) ?? false;
  const trace = deps.tracing === undefined ? given : deps.tracing.begin(exchange, given, exchange.trusted);
  exchange.trace = trace;
  record.requestId = trace.requestId;
  record.traceId = trace.traceId;

  // 1 form: what Node's parser accepts and a paywall must not.
  if (deps.telemetry.inFlight() > maxInFlight) return refuse(deps, exchange, tooMany(maxInFlight));
  if (deps.placeOf !== undefined) {
    exchange.release = deps.placeOf(req);
    if (exchange.release === undefined) return refuse(deps, exchange, tooManyOfClient());
  }
  const malformed = inspectInbound(req);
  if (malformed !== undefined) return refuse(deps, exchange, malformed);
  const method = req.method ?? '';
  if (method === 'OPTIONS' && req.url === '*') return exchange.respond(paywall.serverOptions());

  // 2 verdict: pure; the caller's headers are read only if the request costs something.
  const preflight = isPreflight(method, headers);
  const facts = { method, target: req.url ?? '', host: headers.host, preflight, request: req };
  const judgement = verdictOf(deps.rules, deps.target, deps.routes.snapshot, facts);
  if ('code' in judgement) return refuse(deps, exchange, judgement);
  const { path, target, match, verdict } = judgement;
  record.path = path;
  record.target = target;
  exchange.protectedPath = match.kind !== 'none';

  if (match.kind === 'none' && deps.documents !== undefined) {
    const told = deps.documents(exchange);
    if (told === 'not_ready') return refuse(deps, exchange, routesAbsent());
    if (told !== undefined) return exchange.respond(told);
  }

  // 3 outcome: the way upstream is open, or a plan says what opens it, or the paywall does.
  if (verdict.kind === 'pass') return exchange.forward(passPermit(verdict));
  exchange.nowMs = deps.clock.now();
  if (verdict.kind === 'sell') sell(deps, exchange, verdict);
  else admit(deps, exchange, verdict);
}

/** A plan may let the request pass; else the paywall performs what is left. Waits only if the plan has to ask somebody. */
function sell(deps: HandlerDeps, exchange: Exchange, sale: PlannedSale): void {
  exchange.record.planId = sale.plan.id;
  const ruling = deps.sell(sale, exchange);
  if (ruling instanceof Promise)
    ruling.then((ruled) => follow(deps, exchange, ruled)).catch((error: unknown) => fail(deps, exchange, error));
  else follow(deps, exchange, ruling);
}

function follow(deps: HandlerDeps, exchange: Exchange, ruling: Ruling): void {
  if (ruling.kind === 'granted') exchange.forward(ruling.permit, ruling.granted);
  else if (ruling.kind === 'answered') exchange.respond(ruling.outcome);
  else admit(deps, exchange, ruling.verdict);
}

/** 4 admission, and an answer of ours, or the Permit without which nothing goes upstream. Waits only for a payment. */
function admit(deps: HandlerDeps, exchange: Exchange, verdict: PaywallVerdict): void {
  const { req, record } = exchange;
  if (verdict.kind === 'demand' || verdict.kind === 'verify') notePrice(record, verdict);
  const admitted = deps.admission.admit(verdict, req);
  if (typeof admitted === 'object') return refuse(deps, exchange, admitted);
  const outcome = deps.paywall.perform(verdict, exchange);
  if (outcome instanceof Promise) {
    outcome
      .then((taken) => {
        if (taken.kind === 'response' && taken.refusedBy === 'facilitator') deps.admission.refused(req);
        proceed(exchange, taken);
      })
      .catch((error: unknown) => fail(deps, exchange, error))
      .finally(admitted);
  } else {
    admitted?.();
    proceed(exchange, outcome);
  }
}

/** 5 forward. */
function proceed(exchange: Exchange, outcome: Outcome): void {
  if (outcome.kind === 'response') exchange.respond(outcome);
  else if (outcome.kind === 'gone') exchange.giveUp(outcome.routeId);
  else if (outcome.kind === 'granted') exchange.forward(outcome.permit, outcome.granted);
  else exchange.forward(outcome.permit, outcome.paid);
}

function refuse({ paywall }: HandlerDeps, exchange: Exchange, refusal: Problem): void {
  exchange.respond(paywall.refuse(refusal, exchange.origin));
}

/** A defect of ours, not of the request. Whatever it was, it did not end in a Permit. */
function fail(deps: HandlerDeps, exchange: Exchange, error: unknown): void {
  deps.log.error('request failed', { request_id: exchange.record.requestId, error });
  refuse(deps, exchange, problem('internal', 'Something went wrong here; the request was not forwarded.'));
}
