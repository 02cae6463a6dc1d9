// A hundred sidecars of one registry: `node bench/sidecars.ts [--sidecars 100] [--processes 4] [--routes 10000] [--changes 50]`.
// Some are Tollgate as it is, the others follow with its own sync in one process (crowd.ts). Measured: their first start, how
// long a changed price takes until it is in force everywhere, and what a registry meets that was killed and comes back.
import { spawn, type ChildProcess } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { mintToken } from '../src/registry/auth/dashboard-tokens.ts';
import type { CrowdLine } from './crowd.ts';
import { startCountingPipe, type CountingPipe } from './counting-pipe.ts';
import { LOAD_CORE, NODE, runToEnd, SERVER_CORE, startServer, type Server } from './process.ts';
import { makeRoute, paidPath } from './routes.ts';

export type SidecarsPlan = {
  readonly sidecars: number;
  /** Of them, as processes of their own. */
  readonly processes: number;
  readonly routes: number;
  readonly changes: number;
  /** How long the registry is away. */
  readonly awayMs: number;
  /** How long it is looked at after that. */
  readonly backMs: number;
};

export type SidecarsReport = {
  /** Until each had its routes. */
  readonly startMs: number;
  readonly start: Traffic;
  /** Of each sidecar and change, from when the change was sent; sorted. */
  readonly effectMs: readonly number[];
  readonly changes: Traffic;
  readonly back: Traffic;
  /** From when it listened again until a change that was made then was in force everywhere. */
  readonly backEffectMs: number;
};

/** What went through the registry: answers by endpoint and status, and all bytes that it sent. */
export type Traffic = {
  readonly wholeSets: number;
  readonly refusedSets: number;
  readonly requests: number;
  readonly bytes: number;
};

const ROOT = path.resolve(import.meta.dirname, '..');
const MAIN = path.join(ROOT, 'src/main.ts');
const KEY = 'bench-key-0123456789';
const JWT_SECRET = 'bench-jwt-0123456789-0123456789-0123';
const CHARGES = 'charges: { secrets: [bench-secret-0123456789-0123456789] }';
const ADMIN = 'admin: { listen: 127.0.0.1:0 }';
const BETWEEN_CHANGES_MS = 200;
const POLL_MS = 10;
const LOST_MS = 120_000;

export async function runSidecars(plan: SidecarsPlan): Promise<SidecarsReport> {
  const folder = mkdtempSync(path.join(tmpdir(), 'tollgate-sidecars-'));
  const closers: (() => Promise<void> | void)[] = [() => rmSync(folder, { recursive: true, force: true })];
  try {
    return await run(plan, folder, (close) => void closers.unshift(close));
  } finally {
    for (const close of closers) await close();
  }
}

async function run(
  { sidecars, processes, routes, changes, awayMs, backMs }: SidecarsPlan,
  folder: string,
  atEnd: (close: () => Promise<void> | void) => void,
): Promise<SidecarsReport> {
  let registry = await startRegistry(folder, routes);
  atEnd(() => registry.stop());
  const pipe = await startCountingPipe(registry.port('registry'));
  atEnd(pipe.close);
  const counter = countTraffic(() => registry, pipe);

  const startedAt = performance.now();
  const crowd = startCrowd(pipe.port, sidecars - processes);
  atEnd(crowd.stop);
  const real = await Promise.all(
    Array.from({ length: processes }, (_, index) => startSidecar(folder, `sidecar-${index}`, pipe.port)),
  );
  for (const { stop } of real) atEnd(stop);
  // The store was filled up to this revision.
  let revision = routes;
  const everywhere = async (amount: string | undefined): Promise<number[]> => {
    const inCrowd = crowd.reached(revision);
    const inReal = real.map((sidecar) => untilPrice(sidecar, amount));
    return (await Promise.all([inCrowd, ...inReal])).flat();
  };
  await everywhere(undefined);
  const startMs = performance.now() - startedAt;

  const effectMs: number[] = [];
  const change = async (amount: string): Promise<number[]> => {
    revision++;
    const sentAt = now();
    const all = everywhere(amount);
    await changePrice(registry, amount);
    return (await all).map((at) => at - sentAt);
  };
  // Its stream told each of them something: none is still busy with its start.
  await change('0.5');
  const start = await counter.next();
  for (let index = 1; index <= changes; index++) {
    effectMs.push(...(await change(`${index}.5`)));
    await setTimeout(BETWEEN_CHANGES_MS);
  }
  const changed = await counter.next();

  process.kill(registry.pid, 'SIGKILL');
  await registry.stop();
  await setTimeout(awayMs);
  registry = await startRegistry(folder, routes);
  counter.anew();
  pipe.leadTo(registry.port('registry'));
  const backAt = performance.now();
  await change('1000.5');
  const backEffectMs = performance.now() - backAt;
  await setTimeout(Math.max(0, backMs - backEffectMs));
  const back = await counter.next();
  return { startMs, start, effectMs: effectMs.toSorted((a, b) => a - b), changes: changed, back, backEffectMs };
}

async function startRegistry(folder: string, routes: number): Promise<Server> {
  const data = path.join(folder, 'registry');
  const file = path.join(folder, 'registry.yaml');
  const store = path.join(data, 'tollgate.db');
  if (mkdirSync(data, { recursive: true }) !== undefined) {
    const args = [path.join(import.meta.dirname, 'seed.ts'), ROOT, store, String(routes)];
    await runToEnd({ name: 'filling a store', file: NODE, args, core: LOAD_CORE });
    writeFileSync(
      file,
      [
        `registry: { listen: 127.0.0.1:0, store: "sqlite:${store}", jwt: { secret: ${JWT_SECRET} }, api_keys: [{ name: s, key: ${KEY}, scopes: [sdk, ledger] }] }`,
        ...[ADMIN, CHARGES],
      ].join('\n'),
    );
  }
  return serve('the registry', file, SERVER_CORE, ['registry', 'admin']);
}

async function startSidecar(folder: string, name: string, registryPort: number): Promise<Server> {
  const file = path.join(folder, `${name}.yaml`);
  writeFileSync(
    file,
    [
      'proxy: { listen: 127.0.0.1:0, upstream: "http://127.0.0.1:9", timeouts: { drain_delay: 0s, drain: 1s } }',
      `sync: { registry_url: "http://127.0.0.1:${registryPort}", api_key: ${KEY}, snapshot_file: ${name}/routes.json }`,
      'receivers: [{ id: default, network: base-sepolia, rpc_url: none, pay_to_address: "0x1111111111111111111111111111111111111111", facilitators: ["http://127.0.0.1:9"] }]',
      ...[ADMIN, CHARGES, 'log: { access: false }'],
    ].join('\n'),
  );
  return serve(name, file, LOAD_CORE, ['proxy', 'admin']);
}

function serve(name: string, file: string, core: number, listeners: readonly string[]): Promise<Server> {
  return startServer({ name, file: NODE, args: [MAIN, 'serve', '-c', file], core }, listeners);
}

type Crowd = {
  /** When each of them had this revision. */
  readonly reached: (revision: number) => Promise<readonly number[]>;
  readonly stop: () => Promise<void>;
};

function startCrowd(registryPort: number, count: number): Crowd {
  const args = [path.join(import.meta.dirname, 'crowd.ts'), `http://127.0.0.1:${registryPort}`, KEY, String(count)];
  const child: ChildProcess = spawn(NODE, args, { stdio: ['ignore', 'pipe', 'ignore'] });
  const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  const known = new Map<number, PromiseWithResolvers<readonly number[]>>();
  const of = (revision: number): PromiseWithResolvers<readonly number[]> => {
    const one = known.get(revision) ?? Promise.withResolvers<readonly number[]>();
    known.set(revision, one);
    return one;
  };
  if (child.stdout === null) throw new Error('the crowd has no standard output');
  createInterface({ input: child.stdout }).on('line', (line) => {
    const { revision, at } = JSON.parse(line) as CrowdLine;
    of(revision).resolve(at);
  });
  return {
    reached: (revision) => (count === 0 ? Promise.resolve([]) : of(revision).promise),
    stop: async () => {
      child.kill('SIGKILL');
      await ended;
    },
  };
}

/** When the proxy asks for `amount` for the first route; for any if it is undefined. */
async function untilPrice(sidecar: Server, amount: string | undefined): Promise<number> {
  const end = performance.now() + LOST_MS;
  while (performance.now() < end) {
    const response = await fetch(`http://127.0.0.1:${sidecar.port('proxy')}${paidPath(0, 0)}`);
    const body: unknown = await response.json();
    const found = typeof body === 'object' && body !== null && 'amount' in body ? body.amount : undefined;
    if (found !== undefined && (amount === undefined || found === amount)) return now();
    await setTimeout(POLL_MS);
  }
  throw new Error(`a sidecar does not ask for ${amount ?? 'anything'}`);
}

async function changePrice(registry: Server, amount: string): Promise<void> {
  const claims = { issuer: 'tollgate', audience: 'dashboard', ttlSeconds: 60, now: Date.now() };
  const url = `http://127.0.0.1:${registry.port('registry')}/v1/billing/protected-routes/${makeRoute(0).id}`;
  const response = await fetch(url, {
    method: 'PATCH',
    headers: { authorization: `Bearer ${await mintToken(JWT_SECRET, claims)}`, 'content-type': 'application/json' },
    body: JSON.stringify({ amount }),
  });
  if (response.status !== 200) throw new Error(`a changed price was answered ${response.status}`);
}

/** `next`: since the last call of it, or of `anew`, which is for a process that has counted nothing yet. */
function countTraffic(registry: () => Server, pipe: CountingPipe): { next: () => Promise<Traffic>; anew: () => void } {
  let before = { wholeSets: 0, refusedSets: 0, requests: 0, bytes: 0 };
  return {
    next: async () => {
      const text = await (await fetch(`http://127.0.0.1:${registry().port('admin')}/metrics`)).text();
      const counts = [...text.matchAll(/^tollgate_registry_requests_total\{endpoint="(\w+)",code="(\d+)"\} (\d+)/gm)];
      const sum = (wanted: (endpoint: string, code: string) => boolean): number =>
        counts.reduce((all, [, endpoint = '', code = '', n]) => all + (wanted(endpoint, code) ? Number(n) : 0), 0);
      const after = {
        wholeSets: sum((endpoint, code) => endpoint === 'getRouteSet' && code === '200'),
        refusedSets: sum((endpoint, code) => endpoint === 'getRouteSet' && code === '503'),
        requests: sum((endpoint) => endpoint !== 'patchRoute'),
        bytes: pipe.received(),
      };
      const traffic = {
        wholeSets: after.wholeSets - before.wholeSets,
        refusedSets: after.refusedSets - before.refusedSets,
        requests: after.requests - before.requests,
        bytes: after.bytes - before.bytes,
      };
      before = after;
      return traffic;
    },
    anew: () => (before = { wholeSets: 0, refusedSets: 0, requests: 0, bytes: pipe.received() }),
  };
}

function now(): number {
  return performance.timeOrigin + performance.now();
}

if (import.meta.main) {
  const { values } = parseArgs({
    options: {
      sidecars: { type: 'string', default: '100' },
      processes: { type: 'string', default: '4' },
      routes: { type: 'string', default: '10000' },
      changes: { type: 'string', default: '50' },
    },
  });
  const plan = {
    ...{ sidecars: Number(values.sidecars), processes: Number(values.processes) },
    ...{ routes: Number(values.routes), changes: Number(values.changes), awayMs: 5_000, backMs: 10_000 },
  };
  const { startMs, start, effectMs, changes, back, backEffectMs } = await runSidecars(plan);
  const at = (share: number): string => `${effectMs[Math.ceil(effectMs.length * share) - 1]?.toFixed(0)} ms`;
  const say = (what: string, { wholeSets, refusedSets, requests, bytes }: Traffic): void =>
    console.log(
      `${what}: ${requests} requests, ${wholeSets} whole sets, ${refusedSets} refused, ${(bytes / 1024).toFixed(0)} KiB`,
    );
  console.log(`${plan.sidecars} sidecars (${plan.processes} processes), ${plan.routes} routes`);
  console.log(`first start: all have their routes after ${(startMs / 1000).toFixed(1)} s`);
  say('  it took', start);
  console.log(`a changed price in force: p50 ${at(0.5)}, p99 ${at(0.99)}, max ${at(1)} (${plan.changes} changes)`);
  say('  they took', changes);
  say(`killed, away for 5 s, back: in its first ten seconds`, back);
  console.log(`  a change made then is in force everywhere after ${(backEffectMs / 1000).toFixed(1)} s`);
  const late = (effectMs.at(-1) ?? Infinity) > 1000;
  if (late) console.error('a change took more than a second');
  if (back.wholeSets > 0) console.error('whole sets were sent to sidecars that had one');
  process.exitCode = late || back.wholeSets > 0 ? 1 : 0;
}
