// What every scenario stands on: Tollgate as a process of its own on the server's core, in the all-in-one shape; its
// upstream, its facilitator and all load in other processes on the other core; a look at what is on its disk and in its
// memory. Whatever was started here is stopped here, by its id.
import { spawn, type ChildProcess } from 'node:child_process';
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { DatabaseSync } from 'node:sqlite';
import path from 'node:path';
import { ask } from '../../../bench/check.ts';
import type { PacedJob, PacedResult } from '../../../bench/paced.ts';
import {
  canPin,
  LOAD_CORE,
  NODE,
  readMemoryMb,
  SERVER_CORE,
  startServer,
  type Server,
} from '../../../bench/process.ts';
import { openUpstream, runLoad } from '../../../bench/stage.ts';
import { temporaryFolder } from '../../support/process.ts';
import type { RequestsJob, RequestsResult } from './load/requests.ts';
import type { Plan } from './plan.ts';

export const KEYS = { flood: 'endurance-key-of-the-flood', other: 'endurance-key-of-the-others' } as const;
const PAY_TO = `0x${'1'.repeat(40)}`;
export const ROOT = path.resolve(import.meta.dirname, '../../..');
const LOAD = path.join(import.meta.dirname, 'load');
const SAMPLE_MS = 200;
/** What Node takes by itself in the container of config/kubernetes, which has 512 MiB; more memory makes its collector lazier. */
const HEAP = '--max-old-space-size=256';

export type Conversation = {
  /** What the process says when it is asked: one line of JSON. The first answer comes by itself. */
  readonly ask: () => Promise<Record<string, unknown>>;
  readonly said: Promise<Record<string, unknown>>;
  readonly end: () => Promise<void>;
};

export type Stage = {
  readonly tollgate: Server;
  readonly upstream: Server;
  readonly facilitator: Server;
  readonly residentMb: () => number;
  /** The most since it was called last, by samples. */
  readonly mostMb: () => number;
  /** The most ever, by the kernel. */
  readonly peakMb: () => number;
  /** What the program's heap holds, by its own metrics. */
  readonly heapMb: () => Promise<number>;
  /** Begins to count; what is returned says which share of the time the server was ready to run and had no core. */
  readonly waiting: () => () => number;
  readonly stored: () => Stored;
  /** Connections that Tollgate has to its facilitator. */
  readonly callsOpen: () => number;
  /** Load of requests on the proxy's port or the registry's. */
  readonly requests: (
    listener: 'proxy' | 'registry',
    job: Omit<RequestsJob, 'port' | 'pid'>,
  ) => Promise<RequestsResult>;
  /** Free requests at a steady rate. */
  readonly free: (seconds: number) => Promise<PacedResult>;
  readonly talk: (program: string, args: readonly (string | number)[]) => Conversation;
  readonly stop: () => Promise<void>;
};

/** Rows by table; files of the data folder by name, with their sizes; when they were looked at, on a clock that never goes back. */
export type Stored = {
  readonly atMs: number;
  readonly rows: Readonly<Record<string, number>>;
  readonly files: Readonly<Record<string, number>>;
};

export async function openStage(plan: Plan): Promise<Stage> {
  const folder = temporaryFolder();
  const { upstream } = await openUpstream();
  const started: Server[] = [upstream];
  const end = async (): Promise<void> => {
    await Promise.all(started.map((server) => server.stop()));
    folder.remove();
  };
  try {
    const facilitator = await startServer(
      { name: 'facilitator', file: NODE, args: [path.join(LOAD, 'facilitator.ts')], core: LOAD_CORE },
      ['facilitator', 'control'],
    );
    started.push(facilitator);
    const file = folder.write('tollgate.yaml', configuration(plan, upstream, facilitator));
    const tollgate = await startServer(
      {
        name: 'Tollgate',
        file: NODE,
        args: [HEAP, path.join(ROOT, 'src/main.ts'), 'serve', '-c', file],
        core: SERVER_CORE,
      },
      ['proxy', 'registry', 'admin'],
    );
    started.unshift(tollgate);
    const { pid } = tollgate;
    const residentMb = (): number => readMemoryMb(pid).resident;
    let most = residentMb();
    const sampling = setInterval(() => {
      most = Math.max(most, residentMb());
    }, SAMPLE_MS);
    return {
      ...{ tollgate, upstream, facilitator, residentMb },
      mostMb: () => {
        const seen = Math.max(most, residentMb());
        most = residentMb();
        return seen;
      },
      heapMb: async () => {
        const { body } = await ask(tollgate.port('admin'), { method: 'GET', path: '/metrics' });
        return Number(/^nodejs_heap_size_used_bytes (\d+)/m.exec(body.toString())?.[1]) / 1024 ** 2;
      },
      waiting: () => {
        const [since, before] = [performance.now(), waitedMs(pid)];
        return () => (waitedMs(pid) - before) / (performance.now() - since);
      },
      peakMb: () => readMemoryMb(pid).peak,
      callsOpen: () => countConnections(facilitator.port('facilitator')),
      stored: () => lookAt(path.join(folder.folder, 'data')),
      requests: (listener, job) =>
        runLoad<RequestsResult>('../test/lab/endurance/load/requests.ts', {
          ...job,
          port: tollgate.port(listener),
          pid,
        }),
      free: (seconds) => {
        const requests = Array.from({ length: 50 }, (_, index) => ({ path: `/free/${index}`, status: 200 }));
        const job: PacedJob = {
          ...{ port: tollgate.port('proxy'), requests, pid, seconds },
          ...{ ratePerSecond: plan.freePerSecond, connections: 32, burstSeconds: Math.min(0.5, seconds / 2) },
        };
        return runLoad<PacedResult>('paced.ts', job);
      },
      talk,
      stop: async () => {
        clearInterval(sampling);
        await end();
      },
    };
  } catch (error) {
    await end();
    throw error;
  }
}

/** The limits of the product are those of its defaults but where a scenario needs one that can be reached. */
function configuration(plan: Plan, upstream: Server, facilitator: Server): string {
  const routes = ['/paid/*', '/priced/:id', '/a/b/c/*'].map(
    (pattern, index) => `{ route_pattern: "${pattern}", method: "*", amount: "0.0${index + 1}" }`,
  );
  const keys = Object.entries(KEYS).map(([name, key]) => `{ name: ${name}, key: ${key}, scopes: [sdk] }`);
  const { registry } = plan;
  return [
    `proxy: { listen: 127.0.0.1:0, upstream: "http://127.0.0.1:${upstream.port('upstream')}", timeouts: { headers: ${plan.headersMs}ms, drain_delay: 0s, drain: 2s } }`,
    `registry: { listen: 127.0.0.1:0, store: sqlite:data/tollgate.db, api_keys: [${keys.join(', ')}],`,
    `  limits: { routes: ${registry.routes}, registrations_per_minute: ${registry.registrationsPerMinute}, event_streams_per_key: ${registry.streamsPerKey} } }`,
    'admin: { listen: 127.0.0.1:0 }',
    `receivers: [{ id: default, network: base-sepolia, rpc_url: none, pay_to_address: "${PAY_TO}", facilitators: [{ url: "http://127.0.0.1:${facilitator.port('facilitator')}", timeouts: { verify: 2s } }] }]`,
    `routes: [${routes.join(', ')}]`,
    'log: { access: false }',
  ].join('\n');
}

/** How long a process's main thread has been ready to run without running. */
function waitedMs(pid: number): number {
  return Number(readFileSync(`/proc/${pid}/schedstat`, 'utf8').split(' ')[1]) / 1e6;
}

/** Established connections to `port`, as the kernel lists them for whoever opened them. */
function countConnections(port: number): number {
  const suffix = `:${port.toString(16).toUpperCase().padStart(4, '0')}`;
  const lines = readFileSync('/proc/net/tcp', 'utf8').split('\n');
  return lines.filter((line) => {
    const [, , remote = '', state] = line.trim().split(/\s+/);
    return remote.endsWith(suffix) && state === '01';
  }).length;
}

function lookAt(folder: string): Stored {
  const files = readdirSync(folder).map((name): [string, number] => [name, statSync(path.join(folder, name)).size]);
  const database = new DatabaseSync(path.join(folder, 'tollgate.db'), { readOnly: true });
  try {
    const tables = database.prepare("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name").all();
    const rows = tables.map(({ name }): [string, number] => {
      const counted = database.prepare(`SELECT count(*) AS n FROM "${String(name)}"`).get();
      return [String(name), Number(counted?.['n'])];
    });
    return { atMs: performance.now(), rows: Object.fromEntries(rows), files: Object.fromEntries(files) };
  } finally {
    database.close();
  }
}

/** A load program that goes on until it is told to end. */
function talk(program: string, args: readonly (string | number)[]): Conversation {
  const file = path.resolve(LOAD, program);
  const pinned = canPin() ? ['taskset', '-c', String(LOAD_CORE)] : [];
  const [first = NODE, ...rest] = [...pinned, NODE, file, ...args.map(String)];
  const child: ChildProcess = spawn(first, rest, { stdio: ['pipe', 'pipe', 'inherit'] });
  const waiting: PromiseWithResolvers<Record<string, unknown>>[] = [];
  const next = (): Promise<Record<string, unknown>> => {
    const answer = Promise.withResolvers<Record<string, unknown>>();
    waiting.push(answer);
    return answer.promise;
  };
  const ended = new Promise<void>((resolve) => {
    child.once('exit', () => {
      for (const { reject } of waiting.splice(0)) reject(new Error(`${program} ended before it answered`));
      resolve();
    });
  });
  const said = next();
  if (child.stdout !== null) {
    createInterface({ input: child.stdout }).on('line', (line) => waiting.shift()?.resolve(readLine(line)));
  }
  return {
    said,
    ask: () => {
      const answer = next();
      child.stdin?.write('?');
      return answer;
    },
    end: async () => {
      child.stdin?.end();
      await ended;
    },
  };
}

/** JSON, or `open 12` as the clients say that the other tests have. */
function readLine(line: string): Record<string, unknown> {
  return line.startsWith('{') ? (JSON.parse(line) as Record<string, unknown>) : { open: Number(line.split(' ')[1]) };
}
