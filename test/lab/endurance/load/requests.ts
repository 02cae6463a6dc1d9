// A number of requests of one kind, from a process of its own: `node load/requests.ts JOB` prints a RequestsResult. Every
// connection sends one request at a time; with a rate, requests leave no faster than that. Counts what came back, and
// refusals that should say when to come back and do not.
import { connect, type Socket } from 'node:net';
import { setTimeout } from 'node:timers/promises';
import { percentile } from '../../../../bench/report.ts';
import { readCpuUs } from '../../../../bench/process.ts';
import { makeRequest, type Kind } from './kinds.ts';

export type RequestsJob = {
  readonly port: number;
  readonly kind: Kind;
  readonly connections: number;
  readonly count: number;
  /** 0: as fast as answers come. */
  readonly perSecond: number;
  /** Whose CPU counts. */
  readonly pid: number;
};

export type RequestsResult = {
  readonly answers: number;
  /** By status, and by code where the answer is a problem: `402`, `429 too_many_challenges`. */
  readonly statuses: Readonly<Record<string, number>>;
  /** Connections that broke under a request. */
  readonly broken: number;
  /** 429 and 503 without Retry-After. */
  readonly withoutRetry: number;
  readonly seconds: number;
  readonly cpuUsEach: number;
  readonly p99Ms: number;
  readonly maxMs: number;
};

type Answer = { readonly status: number; readonly code: string; readonly retry: boolean; readonly close: boolean };
type Line = { readonly ask: (bytes: Buffer) => Promise<Answer | undefined>; readonly end: () => void };

const job: RequestsJob = JSON.parse(process.argv[2] ?? '{}');
const make = makeRequest(job.kind, job.port);
const statuses = new Map<string, number>();
const times: number[] = [];
let [broken, withoutRetry, started] = [0, 0, 0];
const cpuBefore = readCpuUs(job.pid);
const since = performance.now();
await Promise.all(Array.from({ length: job.connections }, work));
const seconds = (performance.now() - since) / 1000;
times.sort((a, b) => a - b);
const result: RequestsResult = {
  answers: times.length,
  statuses: Object.fromEntries([...statuses].sort(([a], [b]) => (a < b ? -1 : 1))),
  broken,
  withoutRetry,
  seconds,
  cpuUsEach: (readCpuUs(job.pid) - cpuBefore) / Math.max(1, times.length),
  p99Ms: percentile(times, 99),
  maxMs: times.at(-1) ?? 0,
};
process.stdout.write(`${JSON.stringify(result)}\n`);

async function work(): Promise<void> {
  let line: Line | undefined;
  for (let index = started++; index < job.count; index = started++) {
    if (job.perSecond > 0) {
      const early = since + (index * 1000) / job.perSecond - performance.now();
      if (early > 1) await setTimeout(early);
    }
    line ??= await dial();
    const bytes = make(index);
    const sentAt = performance.now();
    const answer = await line.ask(bytes);
    if (answer === undefined) {
      broken++;
      line = undefined;
      continue;
    }
    times.push(performance.now() - sentAt);
    const name = answer.code === '' ? String(answer.status) : `${answer.status} ${answer.code}`;
    statuses.set(name, (statuses.get(name) ?? 0) + 1);
    if ((answer.status === 429 || answer.status === 503) && !answer.retry) withoutRetry++;
    if (answer.close) {
      line.end();
      line = undefined;
    }
  }
  line?.end();
}

function dial(): Promise<Line> {
  return new Promise((resolve, reject) => {
    const socket: Socket = connect({ port: job.port, host: '127.0.0.1', noDelay: true }, () => resolve(line));
    let pending: Buffer = Buffer.alloc(0);
    let waiting: ((answer: Answer | undefined) => void) | undefined;
    const tell = (answer: Answer | undefined): void => {
      const told = waiting;
      waiting = undefined;
      told?.(answer);
    };
    const line: Line = {
      ask: (bytes) =>
        new Promise((answered) => {
          if (socket.destroyed) return answered(undefined);
          waiting = answered;
          socket.write(bytes);
        }),
      end: () => void socket.destroy(),
    };
    socket.on('data', (chunk: Buffer) => {
      pending = pending.length === 0 ? chunk : Buffer.concat([pending, chunk]);
      const answer = readAnswer(pending);
      if (answer === undefined) return;
      pending = Buffer.alloc(0);
      tell(answer);
    });
    socket.on('error', reject);
    socket.on('close', () => tell(undefined));
  });
}

/** One whole answer with a Content-Length; undefined while it is not there. */
function readAnswer(data: Buffer): Answer | undefined {
  const end = data.indexOf('\r\n\r\n');
  if (end < 0) return undefined;
  const head = data.toString('latin1', 0, end).toLowerCase();
  const length = Number(/\r\ncontent-length: *(\d+)/.exec(head)?.[1] ?? 0);
  if (data.length < end + 4 + length) return undefined;
  const problem = head.includes('application/problem+json');
  return {
    status: Number(head.slice(9, 12)),
    code: problem ? (/"code":"(\w+)"/.exec(data.toString('latin1', end + 4))?.[1] ?? '?') : '',
    retry: head.includes('\r\nretry-after: '),
    close: head.includes('\r\nconnection: close'),
  };
}
