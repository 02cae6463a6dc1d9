// How a request ends, and what is told of it: its record, one line in the log and a set of metrics. Labels never hold a
// path. A route's id appears after its first request, for the first `maxRoutes` routes. All others count as `other`, so
// that 100,000 routes do not make 100,000 series. Children are bound once per combination, not looked up per request.
import type { IncomingMessage } from 'node:http';
import type { Log } from '../host/log.ts';
import type { Metrics } from '../host/metrics.ts';
import type { Snapshot } from '../domain/routing/snapshot.ts';
import { problem, type Problem } from '../domain/problem.ts';
import type { UpstreamFault } from '../http/transport.ts';
import type { KeptResponse } from './pay/memory.ts';

/**
 * `paid`: an answer was given under a charge that took money; `released`: a claim was made and given back, or its client
 * left before there was one; `discovery`: a document of ours was answered.
 */
export type RequestOutcome = 'free' | 'paid' | 'released' | 'payment_required' | 'discovery' | 'refused' | 'error';

/** One request, filled in as it goes. Times in milliseconds of the monotonic clock. */
export type RequestRecord = {
  readonly startedAt: number;
  readonly method: string;
  requestId: string;
  traceId: string | undefined;
  path: string;
  /** Canonical path and query: what is forwarded, never logged. */
  target: string;
  routeId: string | undefined;
  outcome: RequestOutcome;
  status: number;
  /** The problem's code or the 402's reason, if there is one. */
  reason: string | undefined;
  chargeId: string | undefined;
  /** Where they are known: the customer's and the payer's word before a payment was verified. */
  customerId: string | undefined;
  payer: string | undefined;
  amount: string | undefined;
  currency: string | undefined;
  upstreamMs: number | undefined;
  client: string | undefined;
  /** Counted and logged: whatever comes after is not. */
  ended: boolean;
};

export function startRecord(req: IncomingMessage, startedAt: number): RequestRecord {
  return {
    startedAt,
    method: req.method ?? '',
    requestId: '',
    traceId: undefined,
    path: '',
    target: '',
    routeId: undefined,
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
    ended: false,
  };
}

export type Telemetry = {
  readonly begin: () => void;
  readonly inFlight: () => number;
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

/** `refused`: told of each request that was not let through. */
export function createTelemetry(
  metrics: Metrics,
  log: Log,
  current: {
    readonly snapshot: Snapshot | undefined;
    readonly cacheTotals: () => { readonly hits: number; readonly misses: number };
  },
  settings: TelemetrySettings,
  refused?: (record: RequestRecord, now: number) => void,
): Telemetry {
  const requests = metrics.counter('requests_total', 'Requests on the proxy port, by outcome.', [
    'outcome',
    'code',
    'route_id',
  ]);
  const durations = metrics.duration('request_duration_seconds', 'From the request to the last byte of its answer.', [
    'outcome',
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
    label,
    end: (record, now) => {
      if (record.ended) return;
      record.ended = true;
      inFlight--;
      const code = String(record.status);
      const totalMs = now - record.startedAt;
      requests(record.outcome, code, label(record.routeId))(1);
      durations(record.outcome)(totalMs / 1000);
      overheads(record.outcome)(Math.max(0, totalMs - (record.upstreamMs ?? 0)) / 1000);
      if (record.upstreamMs !== undefined) upstreams(code)(record.upstreamMs / 1000);
      if (isRefused(record.outcome)) refused?.(record, now);
      if (settings.config.log.access) logRequest(log, record, totalMs);
    },
  };
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

// How a forwarded exchange ends, and what that is in its record. It has one end, which its payment, the log and the
// metrics are told.

export type End =
  /** The last byte was handed to the client's socket without error; of a tunnel its 101. */
  | {
      readonly kind: 'delivered';
      readonly status: number;
      /** Until the response was there whole; the time for which it was held does not count. */
      readonly upstreamMs: number;
      /** The response, if it was kept: the receiver's to drop. */
      readonly kept: KeptResponse | undefined;
    }
  /** The client got a response of ours in place of the upstream's. */
  | { readonly kind: 'replaced'; readonly status: number; readonly upstreamMs: number }
  | ClientGone
  /** The client went away before anything was sent upstream. */
  | { readonly kind: 'not_sent' }
  /**
   * `headersSent` false: nothing was written, the client is told. True: its connection was destroyed. `status`: the
   * upstream's, if its head was there. `asked`, as below.
   */
  | ({
      readonly kind: 'failed';
      readonly headersSent: boolean;
      readonly status: number | undefined;
      readonly asked: boolean;
    } & UpstreamFault);

/** The client went away first. */
export type ClientGone = {
  readonly kind: 'client_gone';
  /** The upstream's, or of what replaced its response; undefined: there was none yet. */
  readonly status: number | undefined;
  readonly headSent: boolean;
  /** The upstream failed afterwards, while its response was read on. */
  readonly failed: boolean;
  /**
   * `broken_off`: it left in the middle of its upload, which no upstream can answer. `stalled`: it sent nothing of it for
   * too long; it got nothing yet, and is told so.
   */
  readonly upload: 'whole' | 'broken_off' | 'stalled';
  /** A byte of the request may have left for the upstream. */
  readonly asked: boolean;
  /** The response that it would have had, whole: the receiver's to drop. */
  readonly kept: KeptResponse | undefined;
};

/** The client closed the request first: never sent, it only names the case in logs and metrics. */
const CLIENT_CLOSED_REQUEST = 499;

const UPSTREAM_FAILED = {
  upstream_unreachable: 'The upstream could not be reached, or its answer could not be read.',
  upstream_timeout: 'The upstream did not answer in time.',
};

/**
 * Writes `end` into `record`. `tookMoney`: of a claimed charge. Returns what the client is still to be told, if it was told
 * nothing.
 */
export function noteEnd(record: RequestRecord, end: End, tookMoney: boolean | undefined): Problem | undefined {
  if (tookMoney !== undefined) record.outcome = paidOutcome(end, tookMoney);
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
