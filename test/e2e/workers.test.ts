// Several workers behind one port, as real processes: who serves, what each of them knows, and what becomes of everything when
// one of them, or the process that started them, ends.
import { mkdirSync, readdirSync, readFileSync, statSync } from 'node:fs';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { createLocalJWKSet, jwtVerify, type JSONWebKeySet } from 'jose';
import { startGate } from '../support/gate.ts';
import { until } from '../support/paid-tollgate.ts';
import { startProcess, temporaryFolder, type TollgateProcess } from '../support/process.ts';
import { openRaw } from '../support/raw-client.ts';
import { startUpstream, type Upstream } from '../support/upstream.ts';

const files = temporaryFolder();
const SECRET = 'a-charge-secret-of-at-least-32-bytes';
const API_KEY = 'an-api-key-of-the-test';
const MONEY = [
  'receivers:',
  '  - { id: default, network: base-sepolia, pay_to_address: "0x1111111111111111111111111111111111111111", facilitators: ["http://127.0.0.1:1"], rpc_url: none }',
  'routes:',
  '  - { method: GET, route_pattern: "/paid/*", amount: "0.10" }',
];
let upstream: Upstream;
beforeAll(async () => {
  upstream = await startUpstream();
});
afterAll(async () => {
  await upstream.close();
  files.remove();
});

type Options = { readonly price?: string; readonly undeclared?: 'forward' | 'refuse'; readonly folder?: string };

const configured = (name: string, { price = '0.10', undeclared = 'forward', folder = name }: Options = {}): string =>
  files.write(
    `${name}.yaml`,
    [
      'workers: 2',
      `proxy: { listen: 127.0.0.1:0, upstream: "${upstream.url}", undeclared_methods: ${undeclared}, timeouts: { drain_delay: 3s, drain: 20s } }`,
      `registry: { listen: 127.0.0.1:0, store: "sqlite:${folder}/t.db", api_keys: [{ name: t, key: ${API_KEY} }] }`,
      'admin: { listen: 127.0.0.1:0 }',
      `charges: { secrets: ["\${CHARGE_SECRET}"] }`,
      'assertion: { audience: workers, on: all }',
      ...MONEY.map((line) => line.replace('0.10', price)),
    ].join('\n'),
  );

async function start(name: string, options?: Options, env: Record<string, string> = {}): Promise<TollgateProcess> {
  const tollgate = await startProcess({
    args: ['serve', '-c', configured(name, options)],
    env: { CHARGE_SECRET: SECRET, ...env },
    listeners: ['proxy', 'registry', 'admin'],
  });
  for (const worker of [1, 2])
    await tollgate.line(({ msg, number }) => msg === 'a worker is ready' && number === worker);
  return tollgate;
}

const livesOf = (tollgate: TollgateProcess, worker: number): readonly number[] =>
  tollgate.lines.flatMap(({ msg, number, pid }) =>
    msg === 'a worker is ready' && number === worker ? [Number(pid)] : [],
  );
const pidOf = (tollgate: TollgateProcess, worker: number): number => livesOf(tollgate, worker).at(-1) ?? 0;
const socketsIn = (folder: string): string[] =>
  readdirSync(path.join(files.folder, folder)).filter((name) => name.startsWith('workers-'));

function isGone(pid: number): boolean {
  try {
    return readFileSync(`/proc/${pid}/stat`, 'utf8').includes(') Z ');
  } catch {
    return true;
  }
}

describe('two workers', () => {
  let tollgate: TollgateProcess;
  beforeAll(async () => {
    tollgate = await start('two');
  });
  afterAll(() => tollgate?.kill());

  const status = async (target: string, method = 'GET'): Promise<number> =>
    (await fetch(`${tollgate.url('proxy')}${target}`, { method })).status;
  const price = async (): Promise<string> => {
    const { headers } = await fetch(`${tollgate.url('proxy')}/paid/a`);
    const text = Buffer.from(headers.get('payment-required') ?? '', 'base64').toString();
    return (JSON.parse(text) as { accepts: [{ amount: string }] }).accepts[0].amount;
  };
  /** What `look` says at eight connections at a time: both workers are among them. */
  const atAll = async <T>(look: () => Promise<T>): Promise<readonly T[]> => [
    ...new Set(await Promise.all(Array.from({ length: 8 }, look))),
  ];

  test('behaviour: two workers answer free requests and 402s, each about as many connections', async () => {
    const clients = await Promise.all(Array.from({ length: 40 }, () => openRaw(tollgate.port('proxy'))));
    onTestFinished(() => clients.forEach(({ close }) => close()));
    for (const client of clients) client.send('GET /free HTTP/1.1\r\nHost: h\r\n\r\n');
    const counts = await until('all are logged', async () => {
      const workers = tollgate.lines.flatMap(({ msg, worker }) => (msg === 'request' ? [Number(worker)] : []));
      return workers.length === 40 && [1, 2].map((worker) => workers.filter((each) => each === worker).length);
    });
    // A busy machine makes one of them slow to take some.
    expect(Math.min(...counts)).toBeGreaterThanOrEqual(10);
    expect(await atAll(() => status('/paid/a'))).toEqual([402]);
    const ready = await fetch(`${tollgate.url('admin')}/readyz?verbose`);
    expect([ready.status, await ready.text()]).toEqual([200, expect.stringContaining('all 2 workers are ready')]);
    const listening = tollgate.lines.filter(({ msg, listener }) => msg === 'listening' && listener === 'proxy');
    expect(listening).toHaveLength(1);
  });

  test('behaviour: the configuration of workers comes over a channel, their routes over a socket of their owner alone', () => {
    expect(socketsIn('two')).toEqual([`workers-${tollgate.pid}.sock`]);
    const socket = path.join(files.folder, 'two', `workers-${tollgate.pid}.sock`);
    expect(statSync(socket).mode & 0o777).toBe(0o600);
    for (const worker of [1, 2])
      for (const file of ['environ', 'cmdline'])
        expect(readFileSync(`/proc/${pidOf(tollgate, worker)}/${file}`, 'utf8')).not.toContain(SECRET);
  });

  test('behaviour: both workers sign for the upstream with the key that their owner publishes', async () => {
    const before = upstream.seen.length;
    expect(await atAll(() => status('/signed'))).toEqual([200]);
    const keys = await fetch(`${tollgate.url('admin')}/.well-known/jwks.json`);
    const set = createLocalJWKSet((await keys.json()) as JSONWebKeySet);
    for (const { headers } of upstream.seen.slice(before)) {
      const { payload } = await jwtVerify(String(headers['tollgate-assertion']), set, { audience: 'workers' });
      expect(payload).toMatchObject({ htm: 'GET', htu: '/signed', access: 'free' });
    }
    await until('both are in the log', async () => {
      const workers = tollgate.lines.flatMap(({ msg, worker, path: asked }) =>
        msg === 'request' && asked === '/signed' ? [worker] : [],
      );
      return new Set(workers).size === 2;
    });
  });

  test('behaviour: a route that is made at the registry is in force in both workers', async () => {
    expect(await atAll(() => status('/new'))).toEqual([200]);
    const made = await fetch(`${tollgate.url('registry')}/v1/protected-routes/routes/register`, {
      method: 'POST',
      headers: { authorization: `Bearer ${API_KEY}`, 'content-type': 'application/json' },
      body: JSON.stringify({
        ...{ name: 'new', method: 'GET', route_pattern: '/new', amount: '0.10', currency: 'USD' },
        receiver_config_id: 'default',
      }),
    });
    expect(made.status).toBe(201);
    await until('both ask for money', async () => {
      const seen = await atAll(() => status('/new'));
      return seen.length === 1 && seen[0] === 402;
    });
  });

  test('behaviour: a reload is in force in both workers and later ones, and signals to a worker change nothing', async () => {
    expect([await atAll(() => status('/paid/a', 'POST')), await atAll(price)]).toEqual([[200], ['100000']]);
    for (const worker of [1, 2])
      for (const signal of ['SIGHUP', 'SIGTERM', 'SIGINT'] as const) process.kill(pidOf(tollgate, worker), signal);
    configured('two', { undeclared: 'refuse', price: '0.20' });
    tollgate.signal('SIGHUP');
    await tollgate.line(({ msg }) => msg === 'configuration reloaded');
    await until('it is in force everywhere', async () => {
      const [posts, prices] = [await atAll(() => status('/paid/a', 'POST')), await atAll(price)];
      return posts.length === 1 && posts[0] === 405 && prices.length === 1 && prices[0] === '200000';
    });
    expect(livesOf(tollgate, 1)).toHaveLength(1);
    process.kill(pidOf(tollgate, 1), 'SIGKILL');
    await until('the dead one is replaced', async () => livesOf(tollgate, 1).length === 2);
    expect([await atAll(() => status('/paid/a', 'POST')), await atAll(price)]).toEqual([[405], ['200000']]);
  });

  test('behaviour: a drain of workers under load loses nothing and leaves nothing behind', async () => {
    const stopping = new AbortController();
    void tollgate.line(({ msg }) => msg === 'draining').then(() => stopping.abort());
    let answered = 0;
    const clients = Array.from({ length: 8 }, async () => {
      while (!stopping.signal.aborted) {
        expect(await status('/free')).toBe(200);
        answered++;
      }
    });
    await until('it is under load', async () => answered > 100);
    tollgate.signal('SIGTERM');
    await Promise.all(clients);
    expect(await tollgate.exited).toBe(0);
    const errors = tollgate.lines.filter(({ level }) => level === 'error');
    expect(errors.map(({ msg }) => msg)).toEqual(['a worker ended and is replaced']);
    expect(socketsIn('two')).toEqual([]);
    for (const worker of [1, 2]) expect(isGone(pidOf(tollgate, worker))).toBe(true);
  });
});

test('behaviour: when the primary is killed its workers end at once, and the next start removes their socket', async () => {
  // A path that no socket can have: it stands in a temporary folder.
  const folder = 'a-long-name-of-a-folder/'.repeat(4);
  mkdirSync(path.join(files.folder, folder), { recursive: true });
  const temporary = path.join(files.folder, 'tmp');
  mkdirSync(temporary);
  const places = (): string[] => readdirSync(temporary, { recursive: true, encoding: 'utf8' }).toSorted();
  const first = await start('long', { folder }, { TMPDIR: temporary });
  onTestFinished(() => first.kill());
  expect((await fetch(`${first.url('proxy')}/paid/a`)).status).toBe(402);
  const [own = ''] = places();
  expect(places()).toEqual([own, path.join(own, `workers-${first.pid}.sock`)]);
  expect(statSync(path.join(temporary, own)).mode & 0o777).toBe(0o700);
  expect(statSync(path.join(temporary, own, `workers-${first.pid}.sock`)).mode & 0o777).toBe(0o600);
  const pids = [pidOf(first, 1), pidOf(first, 2)];
  await first.kill();
  await until('both are gone', async () => pids.every(isGone));

  const second = await start('long', { folder }, { TMPDIR: temporary });
  onTestFinished(() => second.kill());
  expect(places().filter((name) => name.endsWith('.sock'))).toHaveLength(1);
  expect(places()).not.toContain(own);
});

test('behaviour: workers of a sidecar answer before its registry does, and it is ready once each of them has its routes', async () => {
  const registry = await startProcess({
    args: [
      'serve',
      '-c',
      files.write(
        'registry.yaml',
        [
          `registry: { listen: 127.0.0.1:0, store: "sqlite:registry/t.db", api_keys: [{ name: t, key: ${API_KEY}, scopes: [sdk, ledger] }] }`,
          'admin: { listen: 127.0.0.1:0 }',
          ...MONEY,
        ].join('\n'),
      ),
    ],
    listeners: ['registry', 'admin'],
  });
  onTestFinished(() => registry.kill());
  const gate = await startGate(() => [registry.port('registry')]);
  onTestFinished(() => gate.close());
  await gate.shut();
  // The clock of a worker stands still: it asks for routes again if it is told to, and by itself never.
  const preload = files.write(
    'still.cjs',
    [
      "if (process.argv[1]?.includes('worker-process')) {",
      '  performance.now = () => 0;',
      '  const { setTimeout } = globalThis;',
      '  globalThis.setTimeout = (run, ms, ...more) => setTimeout(run, ms < 500 ? ms : 2 ** 31 - 1, ...more);',
      '}',
    ].join('\n'),
  );
  const sidecar = await startProcess({
    args: [
      'serve',
      '-c',
      files.write(
        'sidecar.yaml',
        [
          'workers: 2',
          `proxy: { listen: 127.0.0.1:0, upstream: "${upstream.url}", timeouts: { drain_delay: 0s, drain: 1s } }`,
          `sync: { registry_url: "http://127.0.0.1:${gate.port}", api_key: ${API_KEY}, poll_interval: 100ms, snapshot_file: sidecar/routes.json }`,
          'admin: { listen: 127.0.0.1:0 }',
          `charges: { secrets: [${SECRET}] }`,
          ...MONEY.slice(0, 2),
        ].join('\n'),
      ),
    ],
    env: { NODE_OPTIONS: `--require ${preload}` },
  });
  onTestFinished(() => sidecar.kill());
  for (const worker of [1, 2])
    await sidecar.line(({ msg, number }) => msg === 'a worker is ready' && number === worker);
  const seen = async (): Promise<readonly number[]> => [
    ...new Set(
      await Promise.all(Array.from({ length: 8 }, async () => (await fetch(`${sidecar.url('proxy')}/paid/a`)).status)),
    ),
  ];
  expect(await seen()).toEqual([503]);
  const ready = async (): Promise<{ readonly status: number; readonly details: ReadonlyMap<string, string> }> => {
    const response = await fetch(`${sidecar.url('admin')}/readyz?verbose`);
    const { checks } = (await response.json()) as { checks: { name: string; detail: string }[] };
    return { status: response.status, details: new Map(checks.map(({ name, detail }) => [name, detail])) };
  };
  const second = pidOf(sidecar, 2);
  process.kill(second, 'SIGSTOP');
  onTestFinished(() => void (isGone(second) || process.kill(second, 'SIGCONT')));
  await gate.open();
  const halfway = await until('the first one has them', async () => {
    const { status, details } = await ready();
    const isThere = details.get('routes')?.startsWith('1 routes') && !details.get('workers')?.includes('1,');
    return isThere && [status, details.get('workers')];
  });
  expect(halfway).toEqual([503, 'not ready: 2']);
  process.kill(second, 'SIGCONT');
  await until('all is ready', async () => (await ready()).status === 200);
  expect(await seen()).toEqual([402]);
});

test('refuses: a start whose second worker cannot start, and leaves nothing behind', async () => {
  const preload = files.write(
    'preload.cjs',
    "if (process.argv[1]?.includes('worker-process') && process.argv[2] === '2') process.exit(3);",
  );
  const tollgate = await startProcess({
    args: ['serve', '-c', configured('unstartable')],
    env: { CHARGE_SECRET: SECRET, NODE_OPTIONS: `--require ${preload}` },
    listeners: [],
  });
  onTestFinished(() => tollgate.kill());
  expect(await tollgate.exited).toBe(69);
  expect(tollgate.stderr()).toContain('worker 2 could not start: it ended before it was ready (exit code 3)');
  expect(socketsIn('unstartable')).toEqual([]);
});
