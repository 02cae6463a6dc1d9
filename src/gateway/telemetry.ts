// Records how a request ends, and tells it: its record, one line in the log and a set of metrics. Labels never hold a
// path. A route's id appears after its first request, for the first `maxRoutes` routes. All others count as `other`, so
// that 100,000 routes do not make 100,000 series. Children are bound once per combination, not looked up per request.
import type { IncomingMessage } from 'node:http';
import type { Log } from '../host/log.ts';
import type { Metrics } from '../host/metrics.ts';
import type { PaywallVerdict } from '../domain/decide.ts';
import type { Snapshot } from '../domain/routing/snapshot.ts';
import { problem, type Problem } from '../domain/problem.ts';
import type { RequestOutcome } from '../domain/totals/request-counts.ts';
import { OVERHEAD_BOUNDS } from '../domain/totals/overhead.ts';
import type { End, GrantedOutcome, PaidOutcome, ResponseOutcome } from './outcome.ts';
import type { OpenCounts, Tally } from './totals/tally.ts';

/** Record of one request, filled in as it goes. Times are in milliseconds of the monotonic clock. */
export type RequestRecord = {
  readonly startedAt: number;
  readonly listener: 'proxy' | 'decision';
  method: string;
  requestId: string;
  traceId: string | undefined;
  path: string;
  /** Canonical path and query: what is forwarded, never logged. */
  target: string;
  routeId: string | undefined;
  /** The plan that sells it, if one does. */
  planId: string | undefined;
  outcome: RequestOutcome;
  status: number;
  /** The problem's code or the 402's reason, if there is one. */
  reason: string | undefined;
  chargeId: string | undefined;
  /** Customer, if known; before a payment was verified, customer and payer are what they say they are. */
  customerId: string | undefined;
  payer: string | undefined;
  amount: string | undefined;
  currency: string | undefined;
  upstreamMs: number | undefined;
  client: string | undefined;
  /** The dialect of a decision listener, and what was decided there. */
  dialect: string | undefined;
  decision: string | undefined;
  /** Whether the request was counted and logged: whatever comes after is not. */
  ended: boolean;
};

export function startRecord(
  req: IncomingMessage,
  startedAt: number,
  listener: RequestRecord['listener'] = 'proxy',
): RequestRecord {
  return {
    startedAt,
    listener,
    method: req.method ?? '',
    requestId: '',
    traceId: undefined,
    path: '',
    target: '',
    routeId: undefined,
    planId: undefined,
    outcome: 'free',
    status: 0,
    reason: undefined,
    chargeId: undefined,
    customerId: undefined,
    payer: undefined,
    amount: undefined,
    currency: undefined,
    upstreamMs: undefined,
    client: req.socket.remoteAddress,
    dialect: undefined,
    decision: undefined,
    ended: false,
  };
}

/** Writes a response of ours into `record`. `rawTarget`: the request's, which may have been refused before it had a path. */
export function noteAnswer(
  record: RequestRecord,
  { outcome, reason, chargeId, routeId, response }: ResponseOutcome,
  rawTarget: string,
): void {
  if (record.path === '') record.path = shownTarget(rawTarget);
  record.outcome = outcome;
  record.reason = reason;
  record.chargeId = chargeId;
  record.routeId ??= routeId;
  record.status = response.status;
}

type PricedVerdict = Extract<PaywallVerdict, { kind: 'demand' | 'verify' }>;

/** Writes who is asked for money, and for how much, into `record`. */
export function notePrice(record: RequestRecord, { offer, caller }: PricedVerdict): void {
  record.customerId = caller.customerId;
  if ('code' in offer) return;
  record.amount = offer.amount;
  record.currency = offer.route.currency;
}

const SHOWN_TARGET = 256;

/**
 * A raw target for the log: up to its query, visible ASCII, without a user's name and password, 256 characters at most.
 */
function shownTarget(target: string): string {
  const [path = ''] = target.split('?', 1);
  const shown = path
    .slice(0, 4 * SHOWN_TARGET)
    .replace(/^([A-Za-z][A-Za-z0-9+.-]*:)?\/\/[^/]*@/, '$1//')
    .replace(/[^\x21-\x7e]/g, (character) => `%${character.charCodeAt(0).toString(16).toUpperCase().padStart(2, '0')}`);
  return shown.length <= SHOWN_TARGET ? shown : shown.slice(0, SHOWN_TARGET).replace(/%[0-9A-Fa-f]?$/, '');
}

export type Telemetry = {
  readonly begin: () => void;
  readonly inFlight: () => number;
  /** Whether each request gets a line in the log. */
  readonly logsRequests: () => boolean;
  readonly end: (record: RequestRecord, now: number) => void;
  /** A route's id as a label value: itself for the first `maxRoutes` that were hit, then `other`. */
  readonly label: (routeId: string | undefined) => string;
};

/** The configuration in force: read whenever it is needed. */
type TelemetrySettings = {
  readonly config: {
    readonly metrics: { readonly maxRoutes: number };
    readonly log: { readonly access: boolean };
  };
};

/** What is told of each request beside log and metrics. */
type TelemetryHearers = {
  /** Told of each request that was not let through. */
  readonly refused?: (record: RequestRecord, now: number) => void;
  /** Counts that the store of sums is given. */
  readonly tally?: Tally;
};

/** Makes telemetry. */
export function createTelemetry(
  metrics: Metrics,
  log: Log,
  current: {
    readonly snapshot: Snapshot | undefined;
    readonly cacheTotals: () => { readonly hits: number; readonly misses: number };
  },
  settings: TelemetrySettings,
  { refused, tally }: TelemetryHearers = {},
): Telemetry {
  const requests = metrics.counter('requests_total', 'Requests of clients and questions of proxies, by outcome.', [
    'outcome',
    'code',
    'route_id',
    'listener',
  ]);
  const durations = metrics.duration('request_duration_seconds', 'From the request to the last byte of its answer.', [
    'outcome',
    'listener',
  ]);
  const overheads = metrics.duration(
    'overhead_duration_seconds',
    'The part of a request that the upstream did not take.',
    ['outcome'],
  );
  const upstreams = metrics.duration(
    'upstream_duration_seconds',
    'From forwarding to the end of the upstream answer.',
    ['code'],
  );
  let inFlight = 0;
  const hit = new Set<string>();

  metrics.observed('gauge', 'requests_in_flight', 'Requests being served.', [], (set) => set({}, inFlight));
  metrics.observed('counter', 'match_cache_requests_total', 'Look-ups in the route cache.', ['result'], (set) => {
    const { hits, misses } = current.cacheTotals();
    set({ result: 'hit' }, hits);
    set({ result: 'miss' }, misses);
  });
  metrics.observed('gauge', 'routes', 'Protected routes in force.', ['status'], (set) => {
    const counts = current.snapshot?.counts ?? { active: 0, paused: 0 };
    for (const [status, count] of Object.entries(counts)) set({ status }, count);
  });
  metrics.observed(
    'gauge',
    'route_info',
    'Routes hit since start: joins a route_id with what it stands for.',
    ['route_id', 'route_pattern', 'method', 'amount', 'currency'],
    (set) => {
      for (const id of hit) {
        const route = current.snapshot?.matcher.get(id);
        if (route === undefined) continue;
        const { pattern, method, amount, currency } = route;
        set({ route_id: id, route_pattern: pattern, method, amount, currency }, 1);
      }
    },
  );

  const label = (routeId: string | undefined): string => {
    if (routeId === undefined) return '';
    if (hit.has(routeId)) return routeId;
    if (hit.size >= settings.config.metrics.maxRoutes) return 'other';
    hit.add(routeId);
    return routeId;
  };

  return {
    begin: () => void inFlight++,
    inFlight: () => inFlight,
    logsRequests: () => settings.config.log.access,
    label,
    end: (record, now) => {
      if (record.ended) return;
      record.ended = true;
      inFlight--;
      const code = String(record.status);
      const totalMs = now - record.startedAt;
      requests(record.outcome, code, label(record.routeId), record.listener)(1);
      durations(record.outcome, record.listener)(totalMs / 1000);
      const overheadSeconds = Math.max(0, totalMs - (record.upstreamMs ?? 0)) / 1000;
      overheads(record.outcome)(overheadSeconds);
      if (tally !== undefined) count(tally.open, record, overheadSeconds);
      if (record.upstreamMs !== undefined) upstreams(code)(record.upstreamMs / 1000);
      if (isRefused(record.outcome)) refused?.(record, now);
      if (settings.config.log.access) logRequest(log, record, totalMs);
    },
  };
}

function count(
  { all, overhead, routes, add, sales }: OpenCounts,
  { outcome, routeId, planId }: RequestRecord,
  seconds: number,
): void {
  all[outcome] += 1;
  let bucket = 0;
  while (bucket < OVERHEAD_BOUNDS.length && seconds > (OVERHEAD_BOUNDS[bucket] ?? 0)) bucket++;
  overhead[bucket] = (overhead[bucket] ?? 0) + 1;
  if (routeId !== undefined) (routes.get(routeId) ?? add(routeId))[outcome] += 1;
  if (planId !== undefined)
    sales.add({ kind: 'plan', subject: planId, detail: outcome, scale: 0, requests: 1, amount: '0' });
}

function isRefused(outcome: RequestOutcome): boolean {
  return outcome === 'payment_required' || outcome === 'refused' || outcome === 'error';
}

function logRequest(log: Log, record: RequestRecord, totalMs: number): void {
  log.info('request', {
    request_id: record.requestId,
    trace_id: record.traceId,
    method: record.method,
    path: record.path,
    status: record.status,
    outcome: record.outcome,
    dialect: record.dialect,
    decision: record.decision,
    reason: record.reason,
    route_id: record.routeId,
    charge_id: record.chargeId,
    customer_id: record.customerId,
    payer: record.payer,
    amount: record.amount,
    currency: record.currency,
    duration_ms: round(totalMs),
    upstream_ms: record.upstreamMs === undefined ? undefined : round(record.upstreamMs),
    client_ip: record.client,
  });
}

function round(ms: number): number {
  return Math.round(ms * 1000) / 1000;
}

/** The client closed the request first: never sent, it only names the case in logs and metrics. */
const CLIENT_CLOSED_REQUEST = 499;

const UPSTREAM_FAILED = {
  upstream_unreachable: 'The upstream could not be reached, or its answer could not be read.',
  upstream_timeout: 'The upstream did not answer in time.',
};

/**
 * Writes `end` into `record`. `outcome`: of a request that costs something. Returns what the client is still to be told, if
 * it was told nothing.
 */
export function noteEnd(record: RequestRecord, end: End, outcome: RequestOutcome | undefined): Problem | undefined {
  if (outcome !== undefined) record.outcome = outcome;
  switch (end.kind) {
    case 'delivered':
    case 'replaced':
      record.status = end.status;
      record.upstreamMs = end.upstreamMs;
      return undefined;
    case 'client_gone':
      if (end.upload === 'stalled')
        return problem('request_timeout', 'Nothing of the request body arrived for too long.');
      record.status = end.status ?? CLIENT_CLOSED_REQUEST;
      record.reason = 'client_gone';
      return undefined;
    case 'not_sent':
      record.status = CLIENT_CLOSED_REQUEST;
      record.reason = 'client_gone';
      return undefined;
    case 'failed':
      if (!end.headersSent) return problem(end.code, UPSTREAM_FAILED[end.code]);
      record.outcome = 'error';
      record.reason = end.code;
      return undefined;
    default:
      return end satisfies never;
  }
}

/** The outcome of a request with a claimed charge. A failure that its client is told is an error anyway. */
function paidOutcome(end: End, tookMoney: boolean): RequestOutcome {
  switch (end.kind) {
    case 'replaced':
      return end.status === 402 ? 'payment_required' : 'error';
    case 'delivered':
      return tookMoney ? 'paid' : 'released';
    case 'client_gone':
      return !tookMoney ? 'released' : end.headSent ? 'paid' : 'error';
    case 'not_sent':
      return tookMoney ? 'error' : 'released';
    case 'failed':
      return 'error';
    default:
      return end satisfies never;
  }
}

/** The outcome of a request that was forwarded under a payment or a plan. */
export function outcomeOf(end: End, charged: PaidOutcome | GrantedOutcome): RequestOutcome {
  return charged.kind === 'paid' ? paidOutcome(end, charged.tookMoney()) : grantedOutcome(end, charged.access);
}

const GRANTED_OUTCOMES = { observed: 'observed', customer: 'customer', pass: 'pass', free: 'quota' } as const;

/** The outcome of a request that a plan let pass. */
function grantedOutcome(end: End, access: GrantedOutcome['access']): RequestOutcome {
  switch (end.kind) {
    case 'replaced':
      return end.status === 402 ? 'payment_required' : 'error';
    case 'delivered':
    case 'client_gone':
      return GRANTED_OUTCOMES[access];
    case 'not_sent':
      return 'released';
    case 'failed':
      return 'error';
    default:
      return end satisfies never;
  }
}
