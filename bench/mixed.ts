// Load at the fixed rate, half of it free and half of it 402s, for scenarios in which something else happens meanwhile: what
// counts is that none of it fails, and the longest that any of it waited.
import { PACED_CONNECTIONS, RATE } from './latency.ts';
import type { PacedJob, PacedResult } from './paced.ts';
import type { Column } from './report.ts';
import { freePaths, paidPaths } from './routes.ts';
import { runLoad, type Stage } from './stage.ts';
import type { Tollgate } from './tollgate.ts';

export type MixedRound = {
  readonly failed: number;
  /** From when a request was due. */
  readonly maxMs: number;
  /** The most by which the load itself was late: part of `maxMs` that is not the server's. */
  readonly ownMaxMs: number;
  readonly p99Us: number;
  readonly cpuUs: number;
};

export const MIXED_COLUMNS: readonly Column[] = [
  { key: 'failed', title: 'failed', digits: 0 },
  { key: 'maxMs', title: 'longest pause ms', digits: 1 },
  { key: 'ownMaxMs', title: 'the load itself late ms', digits: 1 },
  { key: 'p99Us', title: 'p99 us', digits: 0 },
  { key: 'cpuUs', title: 'CPU us/request', digits: 1 },
];

export async function runMixed(
  { plan }: Stage,
  tollgate: Tollgate,
  routes: number,
): Promise<MixedRound & { readonly faults: readonly string[] }> {
  const free = freePaths(routes, 50).map((path) => ({ path, status: 200 }));
  const paid = paidPaths(routes, 50).map((path) => ({ path, status: 402 }));
  const job: PacedJob = {
    port: tollgate.port('proxy'),
    requests: free.flatMap((request, index) => [request, paid[index % paid.length] ?? request]),
    ratePerSecond: RATE,
    connections: PACED_CONNECTIONS,
    burstSeconds: plan.burstSeconds,
    seconds: plan.seconds,
    pid: tollgate.pid,
  };
  const { faults, requests, cpuUs, maxMs, ownMaxMs, p99Us } = await runLoad<PacedResult>('paced.ts', job);
  return { failed: faults.length, maxMs, ownMaxMs, p99Us, cpuUs: cpuUs / requests, faults };
}
