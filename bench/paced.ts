// Load at a fixed rate, in a process of its own: `node bench/paced.ts JOB` prints a PacedResult. Requests leave when the
// schedule says so, whether or not earlier ones were answered, and waiting for a free connection counts: a server that
// stalls cannot slow its own measurement down (coordinated omission). autocannon's rate cannot serve for that: version 9
// sends each connection's share of a second at once and then waits for the next second.
import { connect, type Socket } from 'node:net';
import { setTimeout } from 'node:timers/promises';
import { readCpuUs } from './process.ts';
import { percentile } from './report.ts';
import { readStatus, type Reader } from './wire.ts';

export type PacedJob = {
  readonly port: number;
  /** Taken in turn. */
  readonly requests: readonly { readonly path: string; readonly status: number }[];
  readonly ratePerSecond: number;
  readonly connections: number;
  readonly burstSeconds: number;
  readonly seconds: number;
  readonly pid: number;
};

export type PacedResult = {
  readonly answers: number;
  readonly requests: number;
  readonly cpuUs: number;
  /** From the moment a request would have been written, had a connection been free: without this process's own lateness. */
  readonly p50Us: number;
  /** From the moment it was due. */
  readonly p99Us: number;
  readonly maxMs: number;
  /** The most by which this process itself was late: part of `maxMs` that is not the server's. */
  readonly ownMaxMs: number;
  readonly faults: readonly string[];
};

type Order = { readonly index: number; readonly dueAt: number; readonly issuedAt: number };
type Line = Reader & { readonly socket: Socket; order: Order | undefined };
type Run = { answers: number; service: number[]; total: number[]; ownMaxMs: number; failed: Map<string, number> };

/** How long answers may take that are still out when the time is up. */
const PATIENCE_MS = 5000;

const job: PacedJob = JSON.parse(process.argv[2] ?? '{}');
const heads = job.requests.map(({ path }) =>
  Buffer.from(`GET ${path} HTTP/1.1\r\nHost: 127.0.0.1:${job.port}\r\nConnection: keep-alive\r\n\r\n`),
);
const burst = await pace(job.burstSeconds);
const before = readCpuUs(job.pid);
const run = await pace(job.seconds);
const cpuUs = readCpuUs(job.pid) - before;
const service = run.service.sort((a, b) => a - b);
const total = run.total.sort((a, b) => a - b);
const result: PacedResult = {
  answers: burst.answers + run.answers,
  requests: run.answers,
  cpuUs,
  p50Us: percentile(service, 50) * 1000,
  p99Us: percentile(total, 99) * 1000,
  maxMs: total.at(-1) ?? 0,
  ownMaxMs: run.ownMaxMs,
  faults: [...burst.failed, ...run.failed].map(([what, count]) => `${count} times: ${what}`),
};
process.stdout.write(`${JSON.stringify(result)}\n`);

async function pace(seconds: number): Promise<Run> {
  const state: Run = { answers: 0, service: [], total: [], ownMaxMs: 0, failed: new Map() };
  const idle: Line[] = [];
  const waiting: Order[] = [];
  const open = new Set<Line>();
  let closing = false;
  const fail = (what: string): void => void state.failed.set(what, (state.failed.get(what) ?? 0) + 1);

  const send = (line: Line, order: Order): void => {
    line.order = order;
    line.socket.write(heads[order.index % heads.length] ?? Buffer.alloc(0));
  };
  const free = (line: Line): void => {
    const next = waiting.shift();
    if (next === undefined) idle.push(line);
    else send(line, next);
  };
  const answered = (line: Line, status: number): void => {
    const { order } = line;
    if (order === undefined) return fail('an answer that nobody asked for');
    const expected = job.requests[order.index % job.requests.length]?.status;
    if (status !== expected) fail(`${status} instead of ${expected}`);
    const now = performance.now();
    state.answers++;
    state.service.push(now - order.issuedAt);
    state.total.push(now - order.dueAt);
    line.order = undefined;
    free(line);
  };
  const dial = (): Promise<void> =>
    new Promise((resolve, reject) => {
      const socket = connect({ port: job.port, host: '127.0.0.1', noDelay: true }, () => {
        free(line);
        resolve();
      });
      const line: Line = { socket, order: undefined, pending: undefined };
      open.add(line);
      socket.on('data', (chunk: Buffer) => {
        const status = readStatus(line, chunk);
        if (status !== undefined) answered(line, status);
      });
      socket.on('error', reject);
      socket.on('close', () => {
        open.delete(line);
        if (closing) return;
        fail(line.order === undefined ? 'an idle connection was closed' : 'a connection broke under a request');
        const at = idle.indexOf(line);
        if (at >= 0) idle.splice(at, 1);
        dial().catch(() => fail('a connection was refused'));
      });
    });

  await Promise.all(Array.from({ length: job.connections }, dial));
  const perMs = job.ratePerSecond / 1000;
  const last = Math.floor(seconds * job.ratePerSecond);
  const startedAt = performance.now();
  let wokenAt = startedAt;
  for (let index = 0; index < last;) {
    const now = performance.now();
    state.ownMaxMs = Math.max(state.ownMaxMs, now - wokenAt - 1);
    for (const due = Math.min(last, Math.floor((now - startedAt) * perMs)); index < due; index++) {
      const order = { index, dueAt: startedAt + (index + 1) / perMs, issuedAt: performance.now() };
      const line = idle.pop();
      if (line === undefined) waiting.push(order);
      else send(line, order);
    }
    wokenAt = performance.now();
    await setTimeout(1);
  }
  const until = performance.now() + PATIENCE_MS;
  while (outstanding(open, waiting) > 0 && performance.now() < until) await setTimeout(1);
  const lost = outstanding(open, waiting);
  if (lost > 0) state.failed.set('a request was not answered', lost);
  closing = true;
  for (const line of open) line.socket.destroy();
  return state;
}

function outstanding(lines: ReadonlySet<Line>, waiting: readonly Order[]): number {
  return waiting.length + [...lines].filter(({ order }) => order !== undefined).length;
}
