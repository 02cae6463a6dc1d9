// Several workers behind one port, as real processes: who serves, what each of them knows, and what becomes of everything when
// one of them, or the process that started them, dies.
import { readdirSync, readFileSync, statSync } from 'node:fs';
import path from 'node:path';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { until } from '../support/paid-tollgate.ts';
import { startProcess, temporaryFolder, type TollgateProcess } from '../support/process.ts';
import { openRaw } from '../support/raw-client.ts';
import { startUpstream, type Upstream } from '../support/upstream.ts';

const files = temporaryFolder();
const SECRET = 'a-charge-secret-of-at-least-32-bytes';
let upstream: Upstream;
beforeAll(async () => {
  upstream = await startUpstream();
});
afterAll(async () => {
  await upstream.close();
  files.remove();
});

type Options = { readonly workers?: number; readonly price?: string; readonly drainDelay?: string };

const configured = (name: string, { workers = 2, price = '0.10', drainDelay = '0s' }: Options = {}): string =>
  files.write(
    `${name}.yaml`,
    [
      `workers: ${workers}`,
      `proxy: { listen: 127.0.0.1:0, upstream: "${upstream.url}", timeouts: { drain_delay: ${drainDelay}, drain: 10s } }`,
      `registry: { listen: 127.0.0.1:0, store: "sqlite:${name}/t.db" }`,
      'admin: { listen: 127.0.0.1:0 }',
      `charges: { secrets: ["\${CHARGE_SECRET}"] }`,
      'receivers:',
      '  - { id: default, network: base-sepolia, pay_to_address: "0x1111111111111111111111111111111111111111", facilitators: ["http://127.0.0.1:1"], rpc_url: none }',
      'routes:',
      `  - { method: GET, route_pattern: "/paid/*", amount: "${price}" }`,
    ].join('\n'),
  );

async function started(name: string, options?: Options, env: Record<string, string> = {}): Promise<TollgateProcess> {
  const process = await startProcess({
    args: ['serve', '-c', configured(name, options)],
    env: { CHARGE_SECRET: SECRET, ...env },
    listeners: ['proxy', 'registry', 'admin'],
  });
  onTestFinished(() => process.kill());
  await allReady(process, options?.workers ?? 2);
  return process;
}

async function allReady(tollgate: TollgateProcess, workers: number): Promise<void> {
  for (let worker = 1; worker <= workers; worker++)
    await tollgate.line(({ msg, number }) => msg === 'a worker is ready' && number === worker);
}

/** By number, as they were started last. */
function pidOf(tollgate: TollgateProcess, worker: number): number {
  const told = tollgate.lines.filter(({ msg, number }) => msg === 'a worker is ready' && number === worker);
  return Number(told.at(-1)?.['pid']);
}

const isGone = (pid: number): boolean => {
  try {
    return readFileSync(`/proc/${pid}/stat`, 'utf8').includes(') Z ');
  } catch {
    return true;
  }
};

test('behaviour: two workers answer free requests and 402s, each about as many connections', async () => {
  const tollgate = await started('even');
  const clients = await Promise.all(Array.from({ length: 40 }, () => openRaw(tollgate.port('proxy'))));
  onTestFinished(() => clients.forEach(({ close }) => close()));
  for (const client of clients) client.send('GET /free HTTP/1.1\r\nHost: h\r\n\r\n');
  const served = new Map<unknown, number>();
  await until('all are logged', async () => {
    served.clear();
    for (const { msg, worker } of tollgate.lines)
      if (msg === 'request') served.set(worker, (served.get(worker) ?? 0) + 1);
    return served.values().reduce((sum, count) => sum + count, 0) === 40;
  });
  expect(new Set(served.keys())).toEqual(new Set([1, 2]));
  expect(Math.abs((served.get(1) ?? 0) - (served.get(2) ?? 0))).toBeLessThanOrEqual(6);

  const paid = await fetch(`${tollgate.url('proxy')}/paid/a`);
  expect(paid.status).toBe(402);
  const ready = await fetch(`${tollgate.url('admin')}/readyz?verbose`);
  expect(ready.status).toBe(200);
  expect(await ready.text()).toContain('all 2 workers are ready');
  expect(tollgate.lines.filter(({ msg, listener }) => msg === 'listening' && listener === 'proxy')).toHaveLength(1);
});

test('behaviour: a worker has its configuration over its channel, and a socket that nobody else may use', async () => {
  const tollgate = await started('secrets');
  const folder = path.join(files.folder, 'secrets');
  const sockets = readdirSync(folder).filter((name) => name.startsWith('workers-'));
  expect(sockets).toEqual([`workers-${tollgate.pid}.sock`]);
  expect(statSync(path.join(folder, sockets[0] ?? '')).mode & 0o777).toBe(0o600);
  for (const worker of [1, 2]) {
    const pid = pidOf(tollgate, worker);
    expect(readFileSync(`/proc/${pid}/environ`, 'utf8')).not.toContain(SECRET);
    expect(readFileSync(`/proc/${pid}/cmdline`, 'utf8')).not.toContain(SECRET);
  }
  tollgate.signal('SIGTERM');
  expect(await tollgate.exited).toBe(0);
  expect(readdirSync(folder).filter((name) => name.startsWith('workers-'))).toEqual([]);
  for (const worker of [1, 2]) expect(isGone(pidOf(tollgate, worker))).toBe(true);
});

test('behaviour: when the primary is killed its workers end at once', async () => {
  const tollgate = await started('orphans');
  const pids = [pidOf(tollgate, 1), pidOf(tollgate, 2)];
  await tollgate.kill();
  await until('both are gone', async () => pids.every(isGone));
});
