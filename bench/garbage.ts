// `node bench/garbage.ts [--root CHECKOUT ...] [--path PATH] [--seconds S] [--rounds N] [--where]`: bytes that V8 allocates in
// Tollgate's main thread for a request at kept connections, from V8's own count. Garbage depends on no other program of the
// machine: rounds agree within a percent. `--where` names the functions that allocate them; sampling does not move the sum.
// Paths: /free (the default) costs nothing, /paid/x is answered 402.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import type { Allocated, Where } from './allocated.ts';
import type { ClosedJob, ClosedResult } from './closed.ts';
import { LOAD_CORE, NODE, startServer } from './process.ts';
import { build, programOf } from './program.ts';
import { runLoad } from './stage.ts';

const { values } = parseArgs({
  options: {
    root: { type: 'string', multiple: true, default: [path.resolve(import.meta.dirname, '..')] },
    path: { type: 'string', default: '/free' },
    seconds: { type: 'string', default: '3' },
    rounds: { type: 'string', default: '3' },
    where: { type: 'boolean', default: false },
  },
});
const CONNECTIONS = 16;
const SHOWN = 40;

const folder = mkdtempSync(path.join(tmpdir(), 'tollgate-bench-garbage-'));
const upstream = await startServer(
  { name: 'upstream', file: NODE, args: [path.join(import.meta.dirname, 'upstream.ts')], core: LOAD_CORE },
  ['upstream'],
);
try {
  for (const root of values.root) await measure(path.resolve(root));
} finally {
  await upstream.stop();
  rmSync(folder, { recursive: true, force: true });
}

async function measure(root: string): Promise<void> {
  build(root);
  const home = mkdtempSync(path.join(folder, 'tollgate-'));
  const config = path.join(home, 'tollgate.yaml');
  writeFileSync(config, configuration(upstream.port('upstream')));
  const preload = ['--import', path.join(import.meta.dirname, 'allocated.ts')];
  const env = values.where ? { ...process.env, ALLOCATED_WHERE: '1' } : process.env;
  const server = spawn(NODE, [...preload, ...programOf(root), 'serve', '-c', config], {
    env,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const port = Promise.withResolvers<number>();
  let heard: ((allocated: Allocated) => void) | undefined;
  createInterface({ input: server.stdout }).on('line', (line) => {
    if (!line.startsWith('{')) return;
    const said = JSON.parse(line) as Allocated | { msg: 'listening'; listener: string; port: number };
    if (said.msg === 'allocated') heard?.(said);
    else if (said.msg === 'listening' && said.listener === 'proxy') port.resolve(said.port);
  });
  const ask = (): Promise<Allocated> =>
    new Promise((resolve) => {
      heard = resolve;
      server.kill('SIGUSR2');
    });
  const job: ClosedJob = {
    port: await port.promise,
    method: 'GET',
    paths: [values.path],
    body: 'none',
    expect: { status: values.path === '/free' ? 200 : 402, bytes: 1 },
    connections: CONNECTIONS,
    seconds: Number(values.seconds),
    pid: server.pid ?? 0,
  };
  try {
    // Until the optimizing compiler has seen every function of a request.
    await runLoad<ClosedResult>('closed.ts', job);
    for (let round = 0; round < Number(values.rounds); round++) {
      await setTimeout(200);
      const before = await ask();
      const { requests, faults } = await runLoad<ClosedResult>('closed.ts', job);
      const after = await ask();
      const [fault] = faults;
      if (fault !== undefined) throw new Error(fault);
      const each = (after.bytes - before.bytes) / requests;
      console.log(`${path.basename(root)}: ${each.toFixed(0)} bytes a request (${requests} requests)`);
      if (after.where.length > 0) show(after.where, requests);
    }
  } finally {
    server.kill('SIGTERM');
    await once(server, 'exit');
  }
}

function show(where: readonly Where[], requests: number): void {
  for (const { name, bytes } of where.slice(0, SHOWN))
    console.log(`  ${(bytes / requests).toFixed(0).padStart(6)}  ${name}`);
}

function configuration(upstreamPort: number): string {
  return `proxy: { listen: 127.0.0.1:0, upstream: "http://127.0.0.1:${upstreamPort}", timeouts: { drain_delay: 0s, drain: 2s } }
registry: { listen: 127.0.0.1:0, store: sqlite:data/tollgate.db }
admin: { listen: 127.0.0.1:0 }
receivers: [{ id: default, network: base-sepolia, pay_to_address: "0x1111111111111111111111111111111111111111", rpc_url: none, facilitators: [http://127.0.0.1:9] }]
routes: [{ method: "*", route_pattern: "/paid/*", amount: "0.10" }]
log: { level: info, access: false }
`;
}
