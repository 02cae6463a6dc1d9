// `node bench/workers.ts [--seconds S] [--rounds N] [--workers N ...] [--beside C]`: free GETs and 402s with one process and with several
// workers, each in turn on all cores, the memory of each further worker, and how soon a new route is in force in all of them. Nothing is pinned: the load and the upstream
// share the cores with what is measured, so that on two cores the rate says little and CPU per request much. Paid requests:
// `node bench/paid.ts --workers N`. `--beside C`: nothing but the changes, while C connections ask for free GETs without a pause.
// Every answer's status is looked at.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { Agent, get } from 'node:http';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import type { ClosedJob, ClosedResult } from './closed.ts';
import { NODE, readFamily, readThreadsUs, runToEnd, startServer, type Server } from './process.ts';
import { build, programOf } from './program.ts';
import { formatSpread, percentile, spread } from './report.ts';
import { UPSTREAM_BODY } from './upstream-answers.ts';

const { values } = parseArgs({
  options: {
    seconds: { type: 'string', default: '4' },
    rounds: { type: 'string', default: '5' },
    workers: { type: 'string', multiple: true, default: ['1', '2'] },
    beside: { type: 'string' },
  },
});
const ROOT = path.resolve(import.meta.dirname, '..');
const CONNECTIONS = 64;
const CHANGES = 100;
/** Longer than the changes take. */
const BESIDE_SECONDS = 30;
/** Kept connections: more than there are workers, which have as many of them each. */
const PROBES = 8;
const API_KEY = 'an-api-key-of-the-bench';

type Entrant = { readonly name: string; readonly server: Server; readonly processes: readonly number[] };
type Round = { readonly perSecond: number; readonly cpuUs: number };

const folder = mkdtempSync(path.join(tmpdir(), 'tollgate-bench-workers-'));
const started: Server[] = [];
try {
  await main();
} finally {
  for (const server of started.reverse()) await server.stop();
  rmSync(folder, { recursive: true, force: true });
}

async function main(): Promise<void> {
  build(ROOT);
  const services = await start('services', ['bench/paid-services.ts'], ['facilitator', 'upstream']);
  const entrants: Entrant[] = [];
  for (const workers of values.workers) entrants.push(await enter(Number(workers), services));
  for (const { name, processes } of entrants) console.log(`${name}: PSS in MB ${processes.map(pssMb).join(', ')}`);
  const rows = new Map<string, Round[]>();
  for (let round = -1; values.beside === undefined && round < Number(values.rounds); round++) {
    for (const target of ['/free', '/paid/x']) {
      for (const entrant of round % 2 === 0 ? entrants : entrants.toReversed()) {
        const measured = await shoot(entrant, target);
        const name = `${target === '/free' ? 'free GET' : '402'}, ${entrant.name}`;
        // The first one is for the engine's compilers.
        if (round >= 0) rows.set(name, [...(rows.get(name) ?? []), measured]);
      }
    }
  }
  console.log('| request | requests/s (min-max) | CPU us/request, all processes |');
  console.log('|---|---:|---:|');
  for (const [name, rounds] of rows) {
    const of = (key: keyof Round): string => formatSpread(spread(rounds.map((round) => round[key])), 0);
    console.log(`| ${name} | ${of('perSecond')} | ${of('cpuUs')} |`);
  }
  for (const { name, processes } of entrants) console.log(`${name}: PSS in MB ${processes.map(pssMb).join(', ')}`);
  for (const entrant of entrants) {
    const load =
      values.beside === undefined ? undefined : shoot(entrant, '/free', Number(values.beside), BESIDE_SECONDS);
    const took = await change(entrant);
    await load;
    const [p50, p99] = [50, 99].map((wanted) => percentile(took, wanted).toFixed(0));
    console.log(
      `${entrant.name}: a new route is in force everywhere p50 ${p50} ms, p99 ${p99} ms after it was answered`,
    );
  }
}

/** New routes, one after the other: how long after its answer each was in force at connections to every process. */
async function change({ server }: Entrant): Promise<number[]> {
  const took: number[] = [];
  const agents = Array.from({ length: PROBES }, () => new Agent({ keepAlive: true, maxSockets: 1 }));
  const statusOf = (agent: Agent, target: string): Promise<number> =>
    new Promise((resolve, reject) => {
      get({ port: server.port('proxy'), path: target, agent }, (res) => {
        res.resume().on('end', () => resolve(res.statusCode ?? 0));
      }).on('error', reject);
    });
  await Promise.all(agents.map((agent) => statusOf(agent, '/free')));
  for (let made = 0; made < CHANGES; made++) {
    const target = `/new/${made}`;
    const { ok } = await fetch(`http://127.0.0.1:${server.port('registry')}/v1/protected-routes/routes/register`, {
      method: 'POST',
      headers: { authorization: `Bearer ${API_KEY}`, 'content-type': 'application/json' },
      body: JSON.stringify({
        ...{ name: 'new', method: 'GET', route_pattern: target, amount: '0.01', currency: 'USD' },
        receiver_config_id: 'default',
      }),
    });
    if (!ok) throw new Error('a route was not registered');
    const since = performance.now();
    while ((await Promise.all(agents.map((agent) => statusOf(agent, target)))).some((status) => status !== 402));
    took.push(performance.now() - since);
  }
  for (const agent of agents) agent.destroy();
  return took.toSorted((a, b) => a - b);
}

async function enter(workers: number, services: Server): Promise<Entrant> {
  const home = mkdtempSync(path.join(folder, 'tollgate-'));
  const config = path.join(home, 'tollgate.yaml');
  writeFileSync(config, configuration(workers, services));
  const server = await start('Tollgate', [...programOf(ROOT), 'serve', '-c', config], ['proxy', 'registry', 'admin']);
  while ((await fetch(`http://127.0.0.1:${server.port('admin')}/readyz`)).status !== 200) await setTimeout(50);
  // Until the memory of the start is given back.
  await setTimeout(2_000);
  return { name: `workers: ${workers}`, server, processes: readFamily(server.pid) };
}

async function shoot(
  { server, processes, name }: Entrant,
  target: string,
  connections = CONNECTIONS,
  seconds = Number(values.seconds),
): Promise<Round> {
  const isFree = target === '/free';
  const job: ClosedJob = {
    ...{ port: server.port('proxy'), pid: server.pid, method: 'GET', paths: [target], body: 'none' },
    expect: { status: isFree ? 200 : 402, bytes: isFree ? UPSTREAM_BODY.length : 100 },
    ...{ connections, seconds },
  };
  const cpuUs = (): number => processes.reduce((sum, pid) => sum + readThreadsUs(pid).all, 0);
  const before = cpuUs();
  const args = [path.join(import.meta.dirname, 'closed.ts'), JSON.stringify(job)];
  const result: ClosedResult = JSON.parse(await runToEnd({ name: 'load', file: NODE, args, core: undefined }));
  if (result.faults.length > 0) throw new Error(`${name}: ${result.faults.join('; ')}`);
  return { perSecond: result.requests / result.seconds, cpuUs: (cpuUs() - before) / result.requests };
}

async function start(name: string, args: string[], listeners: string[]): Promise<Server> {
  const server = await startServer({ name, file: NODE, args, core: undefined, folder: ROOT }, listeners);
  started.push(server);
  return server;
}

/** Of a process, its part of what it shares. */
function pssMb(pid: number): string {
  const kilobytes = /^Pss:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8'))?.[1];
  return (Number(kilobytes) / 1024).toFixed(0);
}

function configuration(workers: number, services: Server): string {
  return `
workers: ${workers}
proxy: { listen: 127.0.0.1:0, upstream: "http://127.0.0.1:${services.port('upstream')}", timeouts: { drain_delay: 0s } }
registry: { listen: 127.0.0.1:0, store: sqlite:data/tollgate.db, api_keys: [{ name: bench, key: ${API_KEY} }] }
admin: { listen: 127.0.0.1:0 }
log: { level: info, access: false }
receivers:
  - { id: default, network: base-sepolia, pay_to_address: "0x1111111111111111111111111111111111111111", rpc_url: none, facilitators: ["http://127.0.0.1:${services.port('facilitator')}"] }
routes:
  - { method: GET, route_pattern: /paid/*, amount: "0.01" }
`;
}
