// The journey of a question, top to bottom: peer, form, verdict, outcome. A proxy asks whether a request may pass, and forwards by
// itself what it asked about. So the target has to be in its canonical form, and what the proxy of this program would drop is
// refused. Nothing but a Permit becomes an allow.
import type { IncomingMessage, ServerResponse } from 'node:http';
import { hash } from 'node:crypto';
import {
  passPermit,
  verdictOf,
  type PaywallVerdict,
  type Permit,
  type RequestJudgement,
  type Rules,
} from '../../domain/decide.ts';
import { problem, type Problem } from '../../domain/problem.ts';
import type { Snapshot } from '../../domain/routing/snapshot.ts';
import type { TargetOptions } from '../../domain/routing/target.ts';
import type { Clock, Random, Schedule } from '../../host/clock.ts';
import { createTraceReader, type TraceReader } from '../../host/identifiers.ts';
import type { Log } from '../../host/log.ts';
import type { OwnResponse } from '../../host/respond.ts';
import type { ResponseWatcher } from '../../host/client-connection.ts';
import type { WriteBatch } from '../../host/write-batch.ts';
import { tooMany, tooManyOfClient, type Admission } from '../admission.ts';
import { headerValues } from '../caller.ts';
import { clientGroup } from '../client-group.ts';
import type { TakePlace } from '../client-semaphores.ts';
import { forwardedScheme, inspectInbound, isHost, isPreflight } from '../headers.ts';
import type { End, Outcome, ResponseOutcome, ResponseVerdict } from '../outcome.ts';
import type { Paywall } from '../paywall.ts';
import type { Ruling, Sell } from '../selling/way-to-pass.ts';
import { noteAnswer, notePrice, startRecord, type Telemetry } from '../telemetry.ts';
import type { RequestTracing } from '../tracing/tracing.ts';
import { createAllow, denialForm, type AllowFacts } from './answer-form.ts';
import { createHeaderReader, type AskedHeaders } from './asked-headers.ts';
import { AskedRequest } from './asked-request.ts';
import type { DecisionMetrics } from './decision-metrics.ts';
import { Deliberation } from './deliberation.ts';
import type { DialectRules } from './dialect-rules.ts';
import type { TakeReport } from './failure-report.ts';
import { createPeerCheck, type PeerCheck, type PeerRules } from './peer.ts';
import { readQuestion, type Question } from './question.ts';
import { readBody } from './question-body.ts';

export type DecisionOptions = {
  readonly rules: DialectRules;
  readonly peers: PeerRules;
  readonly pass: string;
  readonly pathPrefix: string;
  readonly answerWithinMs: number;
  readonly repeatWindowMs: number;
  /** Lower-cased. */
  readonly allowHeaders: ReadonlySet<string>;
  readonly publicUrl: string | undefined;
  readonly customerHeaderTrusted: boolean;
  readonly maxInFlight: number;
};

export type DecisionDeps = {
  readonly options: DecisionOptions;
  readonly rules: Rules<IncomingMessage>;
  readonly target: TargetOptions;
  readonly routes: { readonly snapshot: Snapshot | undefined };
  readonly sell: Sell;
  readonly placeOf: TakePlace | undefined;
  readonly admission: Admission;
  readonly paywall: Paywall;
  readonly takeReport: TakeReport | undefined;
  readonly telemetry: Telemetry;
  /** Set if requests are traced. */
  readonly tracing: RequestTracing | undefined;
  /** Whether the flag of a peer decides whether its request is traced. */
  readonly trustsFlag: (address: string | undefined) => boolean;
  readonly metrics: DecisionMetrics;
  readonly writeBatch: WriteBatch;
  readonly clock: Clock;
  readonly schedule: Schedule;
  readonly random: Random;
  readonly log: Log;
};

export type DecisionHandler = { readonly request: (req: IncomingMessage, res: ServerResponse) => ResponseWatcher };

/** Path at which a proxy reports that its upstream failed. */
const REPORT_PATH = '/failed';
const CHARGE_ID_HEADER = 'tollgate-charge-id';
/** Credential of a client that has bought a pass; the configurations of the proxies take it out before the upstream. */
const PASS = 'tollgate-pass';
const RETRY_SECONDS = 1;
/** Part of `answer_within` that is left for the answer itself. */
const ANSWER_MS = 250;
/** Time between two log lines about one kind of mistake of the operator. */
const TOLD_EVERY_MS = 60_000;

const NO_RECEIPT: readonly string[] = [];
/** End of a request whose allow was handed over: what becomes of it then is the proxy's. */
const HANDED_OVER: End = { kind: 'delivered', status: 200, upstreamMs: 0, kept: undefined };

/** Objects with which every question of a configuration is handled. */
type Handling = {
  readonly deps: DecisionDeps;
  readonly mayAsk: PeerCheck;
  readonly readTrace: TraceReader;
  readonly allow: (facts: AllowFacts) => OwnResponse;
  /** Reads the headers of a question, and of a report. */
  readonly readHeaders: (raw: readonly string[]) => AskedHeaders;
  readonly readReport: (raw: readonly string[]) => AskedHeaders;
  /** Payments that are being judged, by the question that asks. */
  readonly judging: Map<string, Deliberation>;
  /** Logs a mistake of the operator, once a minute. */
  readonly tell: (message: string, fields: Readonly<Record<string, unknown>>) => void;
};

export function createDecisionHandler(deps: DecisionDeps): DecisionHandler {
  const { options, telemetry, clock } = deps;
  const { secretHeader } = options.peers;
  const ours = [secretHeader, 'tollgate-request-id', PASS];
  const { ownPrefix } = options.rules;
  const readerBeside = (own: readonly string[]): Handling['readHeaders'] =>
    createHeaderReader(options.rules, secretHeader, { ownPrefix, ours: new Set(own), allowed: options.allowHeaders });
  const handling: Handling = {
    deps,
    mayAsk: createPeerCheck(options.peers),
    readTrace: createTraceReader(deps.random, clock.now),
    allow: createAllow({ rules: options.rules, pass: options.pass, secretHeader }),
    readHeaders: readerBeside(ours),
    readReport: readerBeside([...ours, CHARGE_ID_HEADER]),
    judging: new Map(),
    tell: createTeller(deps),
  };
  return {
    request: (req, res) => {
      telemetry.begin();
      const asked = new AskedRequest(req, res, startRecord(req, clock.monotonic(), 'decision'));
      asked.record.dialect = options.rules.dialect;
      try {
        journey(handling, asked);
      } catch (error) {
        fail(handling, asked, error);
      }
      return asked;
    },
  };
}

function journey(handling: Handling, asked: AskedRequest): void {
  const { deps, mayAsk } = handling;
  const { options, metrics } = deps;
  const { req, record } = asked;
  const { rules } = options;
  const isReport = rules.reports && (req.url ?? '').split('?', 1)[0] === REPORT_PATH;
  const { values, forged, override } = (isReport ? handling.readReport : handling.readHeaders)(req.rawHeaders);

  // 1 peer: nothing else that the request says counts before.
  if (!mayAsk(req.socket.remoteAddress, values.secret)) return refuseUntrusted(handling, asked);
  asked.isBelieved = true;
  const { headers } = req;
  const named = headers[rules.requestId];
  const given = handling.readTrace(named ?? headers['x-request-id'], headers.traceparent, headers.tracestate);
  // The proxy forwards by itself: it is told of no span of ours.
  const trace = deps.tracing?.begin(asked, given, deps.trustsFlag(req.socket.remoteAddress)) ?? given;
  record.requestId = trace.requestId;
  record.traceId = trace.traceId;

  // 2 form. A report that cannot be read is answered as one.
  const turnAway = (refusal: Problem): void =>
    isReport ? report(handling, asked, undefined) : refuse(handling, asked, refusal);
  if (deps.telemetry.inFlight() > options.maxInFlight) return turnAway(tooMany(options.maxInFlight));
  if (deps.placeOf !== undefined) {
    asked.release = deps.placeOf(req);
    if (asked.release === undefined) return turnAway(tooManyOfClient());
  }
  const malformed = inspectInbound(req);
  if (malformed !== undefined) return turnAway(malformed);
  if (forged !== undefined) return turnAway(headerRefused(handling, forged));
  const question = readQuestion(req, values, rules, options.pathPrefix);
  if ('code' in question) {
    metrics.refused('question_malformed');
    handling.tell('a proxy asks in a way that cannot be read: its configuration has a mistake', {
      ...{ dialect: rules.dialect, detail: question.detail },
    });
    return turnAway(question);
  }
  record.method = question.method;
  if (deps.tracing !== undefined) asked.publicOrigin = originOf(req, question, options.publicUrl);
  if (isReport) return report(handling, asked, question);
  // The proxy forwards it: an API that reads its URL together with the Host would read another path.
  if (question.host !== undefined && !isHost(question.host))
    return refuse(handling, asked, problem('request_malformed', 'The Host header does not name a host.'));

  // 3 verdict, once what there is of a body was dropped.
  let isRead = false;
  readBody(req, (body) => {
    isRead = true;
    if (asked.isAnswered) return;
    asked.stopTimer?.();
    try {
      if (body === 'whole') judge(handling, asked, { question, override });
      else if (body === 'too_large') refuse(handling, asked, problem('body_too_large', 'A question has no body.'));
      else leave(deps, asked);
    } catch (error) {
      fail(handling, asked, error);
    }
  });
  if (!isRead)
    watchTime(handling, asked, () => problem('request_timeout', 'The body of the question did not come in time.'));
}

/** `override`: a header that may not be there if the path is protected. */
function judge(
  handling: Handling,
  asked: AskedRequest,
  { question, override }: { question: Question; override: string | undefined },
): void {
  const { deps } = handling;
  const { routes } = deps;
  const { req } = asked;
  const { method, target } = question;
  const preflight = isPreflight(method, req.headers);
  const facts = { method, target, host: undefined, preflight, request: req };
  const judgement = verdictOf(deps.rules, deps.target, routes.snapshot, facts);
  if ('code' in judgement) return refuse(handling, asked, judgement);
  asked.record.path = judgement.path;
  asked.record.target = judgement.target;
  if (judgement.target !== target) return refuseTarget(handling, asked, judgement.target);
  if (judgement.match.kind !== 'none' && override !== undefined)
    return refuse(handling, asked, headerRefused(handling, override));
  decide(handling, asked, question, judgement);
}

function decide(
  handling: Handling,
  asked: AskedRequest,
  question: Question,
  { path, target, verdict }: RequestJudgement,
): void {
  const { deps } = handling;
  const { options, clock } = deps;
  const { req, record } = asked;
  if (verdict.kind === 'pass') {
    const permit = passPermit(verdict);
    record.routeId = permit.route?.id;
    allow(handling, asked, { target, permit, receipt: NO_RECEIPT });
    return;
  }
  const { method, requestId } = question;
  const asker = {
    dialect: options.rules.dialect,
    // A 402 is kept for nobody.
    askSha256: requestId === undefined || verdict.kind === 'demand' ? null : hash('sha256', requestId),
    repeatWindowMs: options.repeatWindowMs,
  };
  const facts = {
    requestId: record.requestId,
    method,
    path,
    target,
    publicOrigin: originOf(req, question, options.publicUrl),
    origin: req.headers.origin,
    nowMs: clock.now(),
    customerTrusted: options.customerHeaderTrusted,
    asker,
  };
  const deliberation = new Deliberation(facts, asked);
  deps.tracing?.include(deliberation, asked);
  if (verdict.kind !== 'sell') return admit(handling, deliberation, asked, verdict);
  record.planId = verdict.plan.id;
  // A plan may let the request pass; else the paywall performs what is left.
  const follow = (ruling: Ruling): void => {
    if (ruling.kind === 'judged' && asked.isGone) leaveOthers(handling, deliberation);
    else if (ruling.kind === 'judged') admit(handling, deliberation, asked, ruling.verdict);
    else if (ruling.kind === 'answered') conclude(handling, deliberation, ruling.outcome);
    else grant(handling, deliberation, ruling);
  };
  const ruling = deps.sell(verdict, deliberation);
  if (!(ruling instanceof Promise)) return follow(ruling);
  watchTime(handling, asked, unpriced);
  ruling.then(follow).catch((error: unknown) => fail(handling, asked, error));
}

/** Allows everybody who asked what a plan lets pass, or gives it back if nobody waits for it any more. */
function grant(handling: Handling, deliberation: Deliberation, granted: GrantedRuling): void {
  void handOverGranted(handling, deliberation, granted).catch(failAll(handling, deliberation));
}

type GrantedRuling = Pick<Extract<Ruling, { kind: 'granted' }>, 'permit' | 'granted'>;

/** What the upstream answers is never seen, and counts as an answer. One use is taken, however many asked. */
async function handOverGranted(
  handling: Handling,
  deliberation: Deliberation,
  { permit, granted }: GrantedRuling,
): Promise<void> {
  if (deliberation.left()) {
    granted.done({ kind: 'not_sent' });
    return leaveOthers(handling, deliberation);
  }
  // From here on a use may be taken: nobody is told that nothing was.
  for (const asked of deliberation.asked) asked.stopTimer?.();
  const verdict = await granted.beforeResponse({ status: 200, headers: [] });
  if (verdict.kind === 'again') throw new Error('a question cannot be sent again');
  for (const { record } of deliberation.waiting()) {
    record.routeId = permit.route?.id;
    record.customerId = granted.customerId;
    if (verdict.kind === 'stream') continue;
    // What it would have passed by could not be taken.
    record.outcome = 'error';
    record.decision = 'refuse';
  }
  granted.done(await answerAll(handling, deliberation, permit, verdict));
}

/** Performs the verdict on a request that costs something. Waits only for a payment. */
function admit(handling: Handling, deliberation: Deliberation, asked: AskedRequest, verdict: PaywallVerdict): void {
  const { deps, judging } = handling;
  const { options, paywall, admission } = deps;
  const { req, record } = asked;
  if (verdict.kind === 'answer_preflight' && !options.rules.answersPreflight)
    return refuse(handling, asked, unanswerable());
  if (verdict.kind === 'demand' || verdict.kind === 'verify') notePrice(record, verdict);
  const { askSha256, dialect } = deliberation.asker;
  const name =
    verdict.kind === 'verify' && askSha256 !== null
      ? `${askSha256} ${deliberation.method} ${deliberation.target} ${verdict.credential.version} ${verdict.credential.value} ${verdict.inputs ?? ''}`
      : undefined;
  const running = name === undefined ? undefined : judging.get(name);
  if (running !== undefined) {
    deps.metrics.repeated('joined');
    running.asked.push(asked);
    return watchPayment(handling, asked, running);
  }
  const admitted = admission.admit(verdict, req);
  if (typeof admitted === 'object') return refuse(handling, asked, admitted);
  const outcome = paywall.perform(verdict, deliberation);
  if (!(outcome instanceof Promise)) {
    admitted?.();
    return conclude(handling, deliberation, outcome);
  }
  if (verdict.kind === 'verify' && askSha256 === null)
    handling.tell('a proxy pays without naming a request id: a question that it repeats is refused', { dialect });
  if (name !== undefined) judging.set(name, deliberation);
  watchPayment(handling, asked, deliberation);
  outcome
    .then((taken) => {
      if (name !== undefined) judging.delete(name);
      if (taken.kind === 'response' && taken.refusedBy === 'facilitator') admission.refused(req);
      conclude(handling, deliberation, taken);
    })
    .catch((error: unknown) => {
      if (name !== undefined) judging.delete(name);
      failAll(handling, deliberation)(error);
    })
    .finally(admitted);
}

/** Answers everybody who asked. A charge is delivered once one of them was handed its allow whole. */
function conclude(handling: Handling, deliberation: Deliberation, outcome: Outcome): void {
  const waiting = deliberation.waiting();
  switch (outcome.kind) {
    case 'response':
      for (const asked of waiting) respondWith(handling, asked, outcome);
      leaveOthers(handling, deliberation);
      return;
    case 'gone':
      leaveOthers(handling, deliberation);
      return;
    case 'granted':
      return grant(handling, deliberation, outcome);
    case 'forward':
      void handOver(handling, deliberation, outcome).catch(failAll(handling, deliberation));
      return;
    default:
      outcome satisfies never;
  }
}

async function handOver(
  handling: Handling,
  deliberation: Deliberation,
  { permit, paid }: Extract<Outcome, { kind: 'forward' }>,
): Promise<void> {
  const verdict = await paid.beforeResponse({ status: 200, headers: [] });
  const { id, price } = paid.grant;
  for (const { record } of verdict.kind === 'stream' ? deliberation.waiting() : []) {
    record.routeId = permit.route?.id;
    record.outcome = 'paid';
    record.chargeId = id;
    record.amount = price.amount;
    record.currency = price.currency;
  }
  paid.done(await answerAll(handling, deliberation, permit, verdict));
}

/** Answers everybody who waits, by what was said of the response. Resolves with the end: whole once one allow was. */
async function answerAll(
  handling: Handling,
  deliberation: Deliberation,
  permit: Permit,
  verdict: ResponseVerdict,
): Promise<End> {
  const handed = deliberation.waiting().map((asked) => {
    if (verdict.kind === 'replace') {
      respondPlainly(handling, asked, verdict.response);
      return Promise.resolve(false);
    }
    allow(handling, asked, { target: deliberation.target, permit, receipt: verdict.headers });
    return asked.isHandedOver();
  });
  leaveOthers(handling, deliberation);
  // The first one decides at once: the others may take long.
  return (await anyOf(handed)) ? HANDED_OVER : { kind: 'not_sent' };
}

/** Resolves with true as soon as one of `all` does. */
function anyOf(all: readonly Promise<boolean>[]): Promise<boolean> {
  return Promise.any(all.map(async (each) => (await each) || Promise.reject(new Error('not whole')))).then(
    () => true,
    () => false,
  );
}

function allow(handling: Handling, asked: AskedRequest, facts: AllowFacts): void {
  const { deps } = handling;
  const { record } = asked;
  record.status = 200;
  record.decision = 'allow';
  asked.answer(handling.allow(facts), [], deps.writeBatch);
  end(deps, asked);
}

function respondWith(handling: Handling, asked: AskedRequest, outcome: ResponseOutcome): void {
  const { record } = asked;
  // Only the canonical path is logged, which a refused target does not have.
  noteAnswer(record, outcome, '');
  record.decision ??=
    outcome.outcome === 'payment_required' ? 'pay' : outcome.reason === 'preflight' ? 'preflight' : 'refuse';
  respondPlainly(handling, asked, outcome.response);
}

function respondPlainly({ deps }: Handling, asked: AskedRequest, response: OwnResponse): void {
  const { record } = asked;
  record.status = response.status;
  asked.answer(denialForm(response, deps.options.rules), ['X-Request-Id', record.requestId], deps.writeBatch);
  end(deps, asked);
}

function refuse(handling: Handling, asked: AskedRequest, refusal: Problem): void {
  respondWith(handling, asked, handling.deps.paywall.refuse(refusal, asked.req.headers.origin));
}

function refuseUntrusted(handling: Handling, asked: AskedRequest): void {
  const { deps } = handling;
  const { record, req } = asked;
  deps.metrics.refused('peer_untrusted');
  handling.tell('a peer that is not trusted asked for a decision', {
    ...{ dialect: deps.options.rules.dialect, peer: req.socket.remoteAddress },
  });
  const refusal = problem('peer_untrusted', 'This peer may not ask for decisions here.');
  const outcome = deps.paywall.refuse(refusal, undefined);
  noteAnswer(record, outcome, '');
  record.decision = 'refuse';
  asked.answer(outcome.response, [], deps.writeBatch);
  end(deps, asked);
}

function headerRefused({ deps }: Handling, name: string): Problem {
  deps.metrics.refused('header_refused');
  const detail = `The header ${name} is refused here: take it out of the request.`;
  return problem('header_refused', detail, { members: { header: name } });
}

function refuseTarget(handling: Handling, asked: AskedRequest, canonical: string): void {
  handling.deps.metrics.refused('target_not_canonical');
  const detail = 'The request target is not in its canonical form: send it as `canonical` has it.';
  refuse(handling, asked, problem('target_not_canonical', detail, { members: { canonical } }));
}

/** A report is answered with a problem as it is, in whatever dialect: it becomes the client's answer. */
function report(handling: Handling, asked: AskedRequest, question: Question | undefined): void {
  const { deps } = handling;
  const { options, takeReport, paywall } = deps;
  const { req, record } = asked;
  const ids = headerValues(req.rawHeaders, CHARGE_ID_HEADER);
  const [chargeId] = ids;
  const isReadable = options.peers.secret !== undefined && question !== undefined && ids.length === 1;
  const told =
    isReadable && chargeId !== undefined
      ? { chargeId, dialect: options.rules.dialect, method: question.method, target: question.target }
      : undefined;
  const respondReport = (refusal: Problem, routeId: string | undefined): void => {
    const outcome = paywall.refuse(refusal, req.headers.origin, routeId);
    noteAnswer(record, outcome, '');
    record.decision = 'report';
    asked.answer(outcome.response, ['X-Request-Id', record.requestId], deps.writeBatch);
    end(deps, asked);
  };
  const lost = problem('upstream_unreachable', 'The upstream could not be reached, or gave no usable answer.');
  if (takeReport === undefined) return respondReport(lost, undefined);
  const { tracing } = deps;
  (tracing === undefined ? takeReport(told) : tracing.within(asked, () => takeReport(told)))
    .then(({ isAccepted, charge, problem: stated }) => {
      deps.metrics.reported(isAccepted ? 'accepted' : 'refused');
      if (charge !== undefined) record.chargeId = charge.id;
      respondReport(stated, charge?.route.id);
    })
    .catch((error: unknown) => {
      deps.log.error('a report failed', { request_id: record.requestId, error });
      respondReport(lost, undefined);
    });
}

/** Answers once the time for it is over, with what `state` says then. It runs from the arrival of the question. */
function watchTime(handling: Handling, asked: AskedRequest, state: () => Problem | ResponseOutcome): void {
  const { schedule, options, clock } = handling.deps;
  const passedMs = clock.monotonic() - asked.record.startedAt;
  asked.stopTimer?.();
  asked.stopTimer = schedule(Math.max(0, options.answerWithinMs - ANSWER_MS - passedMs), () => {
    if (asked.isGone) return;
    const said = state();
    if ('code' in said) refuse(handling, asked, said);
    else respondWith(handling, asked, said);
  });
}

function watchPayment(handling: Handling, asked: AskedRequest, deliberation: Deliberation): void {
  watchTime(handling, asked, () => deliberation.stateCharge?.() ?? late());
}

/** Ends the records of those that went away. */
function leaveOthers({ deps }: Handling, { asked }: Deliberation): void {
  for (const each of asked) {
    each.stopTimer?.();
    if (!each.isAnswered) leave(deps, each);
  }
}

/** Ends the record of one that went away. */
function leave(deps: DecisionDeps, asked: AskedRequest): void {
  const { record } = asked;
  record.status = 499;
  record.outcome = 'released';
  record.reason = 'client_gone';
  end(deps, asked);
}

function end({ telemetry, clock, options }: DecisionDeps, asked: AskedRequest): void {
  asked.release?.();
  asked.release = undefined;
  if (asked.isBelieved && telemetry.logsRequests()) asked.record.client = clientGroup(asked.req, options.peers.trusts);
  telemetry.end(asked.record, clock.monotonic());
}

/** A defect of ours. Whatever it was, it did not end in a Permit. */
function fail(handling: Handling, asked: AskedRequest, error: unknown): void {
  handling.deps.log.error('a decision failed', { request_id: asked.record.requestId, error });
  if (asked.isAnswered) asked.req.socket.destroy();
  else refuse(handling, asked, problem('internal', 'Something went wrong here; the request may not pass.'));
}

function failAll(handling: Handling, deliberation: Deliberation): (error: unknown) => void {
  return (error) => {
    for (const asked of deliberation.waiting()) fail(handling, asked, error);
  };
}

/** Scheme and authority that the client used, as the proxy says. */
function originOf({ headers }: IncomingMessage, { host }: Question, publicUrl: string | undefined): string {
  if (publicUrl !== undefined) return publicUrl;
  return `${forwardedScheme(headers)}://${host ?? headers.host ?? 'localhost'}`;
}

function createTeller({ log, clock }: Pick<DecisionDeps, 'log' | 'clock'>): Handling['tell'] {
  const toldAt = new Map<string, number>();
  return (message, fields) => {
    const now = clock.monotonic();
    if (now - (toldAt.get(message) ?? -Infinity) < TOLD_EVERY_MS) return;
    toldAt.set(message, now);
    log.warn(message, fields);
  };
}

function late(): Problem {
  const detail = 'The payment could not be judged in time, and nothing was charged by this request. Send it again.';
  return problem('facilitator_unavailable', detail, { retryAfter: RETRY_SECONDS });
}

function unpriced(): Problem {
  const detail =
    'Whether this request may pass was not found out in time, and nothing was charged by it. Send it again.';
  return problem('price_unavailable', detail, { retryAfter: RETRY_SECONDS });
}

function unanswerable(): Problem {
  const detail =
    'The proxy in front cannot hand on the answer to a CORS preflight: its own headers middleware has to answer it.';
  return problem('preflight_unanswerable', detail);
}
