// Load without a pause on one contender, as every scenario of small requests uses it: a burst in which every answer is
// looked at, then the run whose CPU counts; afterwards the upstream's own count has to agree with what was answered. Also
// which peers that forward take part.
import { countFault, settledCount } from './check.ts';
import type { CannonJob, CannonResult } from './cannon.ts';
import type { ClosedJob, ClosedResult } from './closed.ts';
import { proxyPeers, type ProxyPeer } from './peers/peers.ts';
import { readCoreUs, SERVER_CORE, type Server } from './process.ts';
import type { Column, Skipped } from './report.ts';
import { peakMb, runLoad, type Contender, type Pool, type Stage } from './stage.ts';
import { HAS_WRK, runWrk } from './wrk.ts';

const CONNECTIONS = 64;
/** Different paths that a load asks for in turn: a busy API's working set. */
export const WORKING_SET = 200;

export const COLUMNS: readonly Column[] = [
  { key: 'cpuUs', title: 'CPU us/request', digits: 1 },
  { key: 'perSecond', title: 'requests/s', digits: 0 },
  { key: 'corePercent', title: 'core used %', digits: 0 },
  { key: 'othersPercent', title: 'core used by others %', digits: 0 },
  { key: 'peakMb', title: 'peak MB', digits: 0 },
];

export const LOADED_BY = HAS_WRK
  ? 'Loaded by wrk over 64 connections, after a burst of autocannon that looks at every answer.'
  : 'wrk is not installed: loaded by bench/closed.ts over 64 connections, after a burst of autocannon that looks at every answer.';

export type Load = {
  readonly method: 'GET' | 'POST';
  readonly paths: CannonJob['paths'];
  /** What is sent for each path; left out: the request itself. */
  readonly asked?: CannonJob['asked'];
  readonly status: number;
  /** How every body starts, and how long it is at least. */
  readonly start: string;
  readonly bytes: number;
  /** Whether every answer, or none, must have reached the upstream. */
  readonly reaches: 'every' | 'none';
};

/** One burst and one measured run. */
export async function shoot(
  { plan, witness, folder }: Stage,
  server: Server,
  port: number,
  seconds: number,
  { method, paths, asked = 'request', status, start, bytes, reaches }: Load,
): ReturnType<Contender['measure']> {
  const before = await settledCount(witness, server.pid);
  const same = { method, paths, asked, body: method === 'POST' ? 'small' : 'none', connections: CONNECTIONS } as const;
  const origin = `http://127.0.0.1:${port}`;
  const cannon: CannonJob = { ...same, origin, seconds: plan.burstSeconds, expect: { status, start } };
  const burst = await runLoad<CannonResult>('cannon.ts', cannon);
  const job: ClosedJob = { ...same, port, seconds, expect: { status, bytes }, pid: server.pid };
  const [busyBefore, startedAt] = [readCoreUs(SERVER_CORE), performance.now()];
  const run = HAS_WRK ? await runWrk(job, folder) : await runLoad<ClosedResult>('closed.ts', job);
  const busyUs = readCoreUs(SERVER_CORE) - busyBefore;
  const othersUs = Math.max(0, busyUs - run.cpuUs) / ((performance.now() - startedAt) / 1000);
  const reached = (await settledCount(witness, server.pid)) - before;
  const faults = [...burst.faults, ...run.faults];
  // Each of the two runs ends with requests under way, one on each connection.
  const surplus = countFault(
    reached,
    reaches === 'every' ? { answers: burst.answers + run.requests, underWay: 2 * CONNECTIONS } : undefined,
  );
  if (surplus !== undefined) faults.push(surplus);
  const { requests, seconds: took, cpuUs } = run;
  const round = {
    cpuUs: cpuUs / requests,
    perSecond: requests / took,
    corePercent: cpuUs / took / 10_000,
    othersPercent: othersUs / 10_000,
    peakMb: peakMb(server.pid),
  };
  return { round, faults };
}

/** Peers that forward: `loads` says for which scenarios one is there. */
export async function startProxyPeers(
  stage: Stage,
  pool: Pool,
  load: ProxyPeer['loads'][number],
): Promise<{ servers: { name: string; server: Server }[]; skipped: Skipped[] }> {
  const servers: { name: string; server: Server }[] = [];
  const skipped: Skipped[] = [];
  for (const { name, missing, loads, start } of proxyPeers()) {
    if (!loads.includes(load) || !stage.wants(name)) continue;
    if (missing !== undefined) {
      skipped.push({ name, reason: missing });
      continue;
    }
    stage.say(`starting ${name}`);
    try {
      servers.push({ name, server: await pool.keep(start(stage.upstream.port('upstream'), stage)) });
    } catch (error) {
      skipped.push({ name, reason: error instanceof Error ? error.message : 'it did not start', fault: true });
    }
  }
  return { servers, skipped };
}
