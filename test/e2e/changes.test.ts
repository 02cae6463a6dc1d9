// Changes of routes on their way to sidecars, with real processes: what a change of one price among 100,000 routes costs in
// bytes, and a sidecar that goes from one registry replica on PostgreSQL to another.
import { mkdirSync } from 'node:fs';
import path from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { parsePattern } from '../../src/domain/routing/pattern.ts';
import { createRandom } from '../../src/host/clock.ts';
import { createApiKey } from '../../src/registry/auth/api-keys.ts';
import { mintToken } from '../../src/registry/auth/dashboard-tokens.ts';
import { openStore } from '../../src/registry/store/sqlite/store.ts';
import { makeRoutes } from '../../bench/routes.ts';
import { openEvents } from '../registry/kit.ts';
import { hasPostgres } from '../postgres/server.ts';
import { freshDatabase, openTestStore, stopSharedPostgres } from '../postgres/store.ts';
import { startCountingPipe, type CountingPipe } from '../../bench/counting-pipe.ts';
import { startProcess, temporaryFolder, type TollgateProcess } from '../support/process.ts';
import { until } from '../support/paid-tollgate.ts';
import { startUpstream } from '../support/upstream.ts';

const KEY = 'the-api-key-of-the-sidecar';
const JWT_SECRET = 'a secret of thirty-two bytes, or more';
const SECRETS = 'charges: { secrets: [a secret of more than thirty-two bytes] }';
const ADMIN = 'admin: { listen: 127.0.0.1:0 }';
const FEED = '/v1/protected-routes/routes';
const MANY = 100_000;
const KIB = 1024;

const files = temporaryFolder();
const running: TollgateProcess[] = [];
const pipes: CountingPipe[] = [];
const upstream = await startUpstream();

afterAll(async () => {
  await Promise.all(running.map((one) => one.kill()));
  for (const pipe of pipes) await pipe.close();
  await upstream.close();
  await stopSharedPostgres();
  files.remove();
});

async function launch(name: string, lines: readonly string[], listeners: readonly string[]): Promise<TollgateProcess> {
  const file = files.write(`${name}.yaml`, lines.join('\n'));
  const started = await startProcess({ args: ['serve', '-c', file], listeners });
  running.push(started);
  return started;
}

const startRegistry = (name: string, store: string, port = 0): Promise<TollgateProcess> =>
  launch(
    name,
    [
      `registry: { listen: 127.0.0.1:${port}, store: "${store}", jwt: { secret: "${JWT_SECRET}" }, api_keys: [{ name: s, key: ${KEY}, scopes: [sdk, ledger] }] }`,
      ...[ADMIN, SECRETS],
    ],
    ['registry', 'admin'],
  );

const startSidecar = (name: string, registryPort: number): Promise<TollgateProcess> =>
  launch(
    name,
    [
      `proxy: { listen: 127.0.0.1:0, upstream: ${upstream.url}, timeouts: { drain_delay: 0s } }`,
      `sync: { registry_url: http://127.0.0.1:${registryPort}, api_key: ${KEY}, snapshot_file: ${name}/routes.json }`,
      ...[ADMIN, SECRETS],
      `receivers: [{ id: default, network: base-sepolia, rpc_url: none, pay_to_address: "0x1111111111111111111111111111111111111111", facilitators: [http://127.0.0.1:1] }]`,
    ],
    ['proxy', 'admin'],
  );

async function dashboard(registry: TollgateProcess, method: string, target: string, body?: object): Promise<Response> {
  const claims = { issuer: 'tollgate', audience: 'dashboard', ttlSeconds: 600, now: Date.now() };
  const response = await fetch(`${registry.url('registry')}/v1/billing/protected-routes${target}`, {
    method,
    headers: {
      authorization: `Bearer ${await mintToken(JWT_SECRET, claims)}`,
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  expect([method, response.status]).toEqual([method, method === 'POST' ? 201 : 200]);
  return response;
}

/** What a 402 asks for; nothing, while the sidecar has no routes yet or an earlier set, in which `target` is free. */
async function priceOf(sidecar: TollgateProcess, target: string): Promise<string | undefined> {
  const response = await fetch(`${sidecar.url('proxy')}${target}`);
  const text = await response.text();
  return response.status === 402 ? (JSON.parse(text) as { amount?: string }).amount : undefined;
}

async function metric(of: TollgateProcess, series: string): Promise<number> {
  const text = await (await fetch(`${of.url('admin')}/metrics`)).text();
  const line = text.split('\n').find((each) => each.startsWith(`${series} `));
  return Number(line?.slice(series.length + 1) ?? 0);
}

/** Sets that left as a whole. */
const wholeSets = (registry: TollgateProcess): Promise<number> =>
  metric(registry, 'tollgate_registry_requests_total{endpoint="getRouteSet",code="200"}');

async function revisionAt(sidecar: TollgateProcess): Promise<number> {
  const response = await fetch(`${sidecar.url('admin')}/readyz?verbose`);
  return Number(/at revision (\d+)/.exec(await response.text())?.[1]);
}

async function seed(file: string, count: number): Promise<void> {
  mkdirSync(path.dirname(file), { recursive: true });
  const store = openStore(file, { random: createRandom() });
  const writes = makeRoutes(count).map((route) => {
    const parsed = parsePattern(route.pattern);
    if (!parsed.ok) throw new Error(parsed.reason);
    const made = { ...route, writtenBy: 'config', declared: null } as const;
    return { kind: 'insert', route: made, key: parsed.pattern.key } as const;
  });
  await store.routes.write(writes, { maxRoutes: Infinity });
  store.close();
}

test(`behaviour: a price changed among ${MANY} routes costs a kilobyte, and so does a registry that comes back`, async () => {
  await seed(path.join(files.folder, 'many/tollgate.db'), MANY - 1);
  let registry = await startRegistry('many', 'sqlite:many/tollgate.db');
  const pipe = await startCountingPipe(registry.port('registry'));
  pipes.push(pipe);
  const sidecar = await startSidecar('of-many', pipe.port);
  const target = '/r/changed';
  const made = await dashboard(registry, 'POST', '', { route_pattern: target, method: 'GET', amount: '0.10' });
  const { id } = (await made.json()) as { id: string };
  await until('the sidecar has all routes', async () => (await priceOf(sidecar, target)) === '0.10');
  const whole = pipe.received();
  const sets = await wholeSets(registry);
  expect(whole).toBeGreaterThan(1024 * KIB);

  // Each of them, with what the heartbeats and polls beside it say.
  for (const amount of ['0.20', '0.30', '0.40']) {
    await dashboard(registry, 'PATCH', `/${id}`, { amount });
    await until('the change is in force', async () => (await priceOf(sidecar, target)) === amount);
  }
  expect(pipe.received() - whole).toBeLessThan(64 * KIB);
  expect(await wholeSets(registry)).toBe(sets);

  const before = pipe.received();
  await registry.kill();
  registry = await startRegistry('many', 'sqlite:many/tollgate.db');
  pipe.leadTo(registry.port('registry'));
  await dashboard(registry, 'PATCH', `/${id}`, { amount: '0.50' });
  await until('what was changed meanwhile is in force', async () => (await priceOf(sidecar, target)) === '0.50');
  await until('the set is proven', async () => (await metric(sidecar, 'tollgate_sync_total{result="unchanged"}')) > 1);
  expect(pipe.received() - before).toBeLessThan(64 * KIB);
  expect(await wholeSets(registry)).toBe(0);
}, 180_000);

describe.skipIf(!hasPostgres)('two registry replicas over PostgreSQL', () => {
  test('behaviour: a sidecar goes from one replica to the other: each change in force, the revision never lower, no whole set', async () => {
    const url = await freshDatabase();
    const one = await startRegistry('one', url);
    const other = await startRegistry('other', url);
    const pipe = await startCountingPipe(one.port('registry'));
    pipes.push(pipe);
    const made = await dashboard(one, 'POST', '', { route_pattern: '/a', method: 'GET', amount: '0.1' });
    const { id } = (await made.json()) as { id: string };
    const sidecar = await startSidecar('between', pipe.port);
    await until('the sidecar has the routes', async () => (await priceOf(sidecar, '/a')) === '0.1');
    const sets = await wholeSets(one);
    const took: number[] = [];
    let revision = 0;
    const replicas = [one, other];
    for (let step = 1; step <= 4; step++) {
      const [at, by] = [replicas[step % 2], replicas[Math.floor(step / 2) % 2]];
      if (at === undefined || by === undefined) throw new Error('no replica');
      const opened = pipe.opened();
      pipe.leadTo(at.port('registry'));
      await until('the sidecar is there again', async () => pipe.opened() > opened);
      const amount = `${step}.5`;
      await dashboard(by, 'PATCH', `/${id}`, { amount });
      const changedAt = performance.now();
      await until('the change is in force', async () => (await priceOf(sidecar, '/a')) === amount);
      took.push(performance.now() - changedAt);
      const now = await revisionAt(sidecar);
      expect(now).toBeGreaterThan(revision);
      revision = now;
    }
    expect((await wholeSets(one)) + (await wholeSets(other))).toBe(sets);
    expect(await metric(sidecar, 'tollgate_sync_total{result="held"}')).toBe(0);
    // The others a busy machine may have held up.
    expect(Math.min(...took)).toBeLessThan(1000);
  }, 180_000);

  test('behaviour: a replica names no older revision to who has a newer one, and ends a stream whose key the other revoked', async () => {
    const url = await freshDatabase();
    const one = await startRegistry('first', url);
    const other = await startRegistry('second', url);
    const headers = { authorization: `Bearer ${KEY}` };
    for (let index = 0; index < 20; index++) {
      await dashboard(one, 'POST', '', { route_pattern: `/r/${index}`, method: 'GET', amount: '1' });
      // Asked at once, before the other can have heard of it.
      const revision = String(index + 1);
      const asked = await fetch(`${other.url('registry')}${FEED}`, {
        headers: { ...headers, 'tollgate-revision': revision },
      });
      await asked.arrayBuffer();
      expect(Number(asked.headers.get('tollgate-revision'))).toBe(index + 1);
    }
    const store = await openTestStore(url);
    const took: number[] = [];
    for (let index = 0; index < 5; index++) {
      const by = { random: createRandom(), now: Date.now };
      const { key, stored } = await createApiKey(store.apiKeys, { name: 'k', scopes: ['sdk'] }, by);
      const stream = await until('the key is known', async () => {
        const opened = await openEvents(other.port('registry'), { Authorization: `Bearer ${key}` });
        return opened.status === 200 && opened;
      });
      await store.apiKeys.revoke(stored.id, new Date().toISOString());
      const revokedAt = performance.now();
      await stream.closed;
      took.push(performance.now() - revokedAt);
    }
    await store.close();
    expect(Math.min(...took)).toBeLessThan(1000);
  }, 180_000);
});
