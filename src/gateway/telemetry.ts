// Counts and logs what happened to a request, from one record, when it is over. Labels never hold a path; a route's id
// appears once the route was hit and only for the first `maxRoutes` of them, then `other`, so that 100,000 routes do
// not make 100,000 series. Children are bound once per combination, not looked up per request.
import type { IncomingMessage } from 'node:http';
import type { Log } from '../host/log.ts';
import type { Metrics } from '../host/metrics.ts';
import type { Snapshot } from '../domain/snapshot.ts';

/**
 * `paid`: an answer was given under a charge that took money; `released`: a claim was made and given back, or its client
 * left before there was one.
 */
export type RequestOutcome = 'free' | 'paid' | 'released' | 'payment_required' | 'refused' | 'error';

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
export type TelemetrySettings = {
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
