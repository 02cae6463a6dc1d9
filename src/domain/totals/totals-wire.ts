// Counts of requests between a sidecar and its registry, as JSON. Both ends go by these schemas; a count that is left out is 0.
import { z } from 'zod';
import { ATTENTION_CODES } from '../attention/attention.ts';
import { OVERHEAD_BUCKETS } from './overhead.ts';
import { noRequests, REQUEST_OUTCOMES, type RequestCounts, type RequestOutcome } from './request-counts.ts';
import { SALE_KINDS } from './sale-counts.ts';
import type { CountedRow, TotalsBatch } from './totals-store.ts';

/** Rows of one batch at most. */
export const BATCH_ROWS = 500;
/** Requests in one row at most: far more than a process serves in an hour. */
const MOST_REQUESTS = 1e12;

const requests = z.int().min(0).max(MOST_REQUESTS);
const counts = z.partialRecord(z.enum(REQUEST_OUTCOMES), requests);
const startsAt = z.iso.datetime();

/** What a sidecar says of itself. */
const sidecarStatus = z.object({
  /** Its machine's name. */
  name: z.string().max(255),
  version: z.string().max(64),
  /** When it started. */
  since: z.iso.datetime(),
  /** The revision of the routes in force; null if there are none, or they have none. */
  revision: z.int().min(0).nullable(),
  ready: z.boolean(),
  /** Why it is not ready, or what it should be looked after for. */
  reasons: z.array(z.string().max(500)).max(20),
  /** This is its last word: it stops. */
  ending: z.boolean(),
  /** What needs somebody there. */
  attention: z
    .array(
      z.object({
        code: z.enum(ATTENTION_CODES),
        severity: z.enum(['page', 'ticket']),
        subject: z.string().max(255),
        detail: z.string().max(1_000),
        count: z.int().min(1),
      }),
    )
    .max(20)
    .optional(),
});
export type SidecarStatus = z.infer<typeof sidecarStatus>;

/** What a sidecar said of itself, as its registry keeps it: with the address that it said it from. */
const sidecarReport = sidecarStatus.extend({ address: z.string().max(64).nullable().default(null) });
export type SidecarReport = z.infer<typeof sidecarReport>;

const countedRow = z.union([
  z.object({
    step: z.literal('minute'),
    start: startsAt,
    requests: counts,
    /** Requests in each bucket of the time that the sidecar took for them, those of `overhead_duration_seconds`. */
    overhead: z.array(requests).length(OVERHEAD_BUCKETS),
  }),
  z.object({ step: z.literal('hour'), start: startsAt, route_id: z.string().min(1).max(64), requests: counts }),
  /** What a plan did in an hour. */
  z.object({
    step: z.literal('sale'),
    start: startsAt,
    kind: z.enum(SALE_KINDS),
    /** A plan, or an entry of customers. */
    subject: z.string().min(1).max(64),
    /** An outcome, a currency, a result, or a customer's name; empty: all customers who have no count of their own. */
    detail: z.string().max(64),
    requests,
    /** Money that a dry run would have asked for, in units of 10^-scale. */
    amount: z.string().regex(/^(0|[1-9]\d{0,59})$/, 'an integer'),
    scale: z.int().min(0).max(18),
  }),
]);

export const totalsBatch = z.object({
  /** Names one life of the sidecar: what it sends as `Tollgate-Instance`. */
  source: z.string().regex(/^[A-Za-z0-9_-]{8,64}$/, '8 to 64 of A-Z, a-z, 0-9, _ and -'),
  /** 1, 2, ... of this source. */
  seq: z.int().min(1),
  rows: z.array(countedRow).max(BATCH_ROWS),
  status: sidecarStatus.optional(),
});
type TotalsBatchWire = z.infer<typeof totalsBatch>;

/** `address`: where the sidecar said it, which its own word cannot change. */
export function batchFromWire({ source, seq, rows, status }: TotalsBatchWire, address: string | null): TotalsBatch {
  const report = status && ({ ...status, address } satisfies SidecarReport);
  return { source, seq, rows: rows.map(rowFromWire), status: report && JSON.stringify(report) };
}

export function batchToWire({ source, seq, rows, status }: TotalsBatch): TotalsBatchWire {
  return {
    ...{ source, seq, rows: rows.map(rowToWire) },
    ...(status === undefined ? {} : { status: sidecarStatus.parse(JSON.parse(status)) }),
  };
}

/** What a sidecar said of itself; undefined if it said nothing that is understood here. */
export function readSidecarReport(json: string | null): SidecarReport | undefined {
  return json === null ? undefined : sidecarReport.safeParse(JSON.parse(json)).data;
}

function rowFromWire(row: TotalsBatchWire['rows'][number]): CountedRow {
  const startMs = Date.parse(row.start);
  if (row.step === 'sale') {
    const { step, start: _, ...sale } = row;
    return { step, startMs, sale };
  }
  const counted: RequestCounts = { ...noRequests(), ...row.requests };
  return row.step === 'minute'
    ? { step: 'minute', startMs, requests: counted, overhead: row.overhead }
    : { step: 'hour', startMs, routeId: row.route_id, requests: counted };
}

function rowToWire(row: CountedRow): TotalsBatchWire['rows'][number] {
  const start = new Date(row.startMs).toISOString();
  if (row.step === 'sale') return { step: 'sale', start, ...row.sale };
  const some = REQUEST_OUTCOMES.flatMap((name): [RequestOutcome, number][] =>
    row.requests[name] === 0 ? [] : [[name, row.requests[name]]],
  );
  const counted: Partial<RequestCounts> = Object.fromEntries(some);
  return row.step === 'minute'
    ? { step: 'minute', start, requests: counted, overhead: [...row.overhead] }
    : { step: 'hour', start, route_id: row.routeId, requests: counted };
}
