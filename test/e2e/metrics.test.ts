// What Prometheus reads: every name and label after traffic, in the shape that Prometheus wants, and no
// more series than configured however many routes and paths there are.
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { createTelemetry } from '../../src/gateway/telemetry.ts';
import { compileSnapshot } from '../../src/domain/routing/snapshot.ts';
import { FULL_FOLDING } from '../../src/domain/routing/profile.ts';
import { fromWire } from '../../src/domain/routing/route.ts';
import { createLog } from '../../src/host/log.ts';
import { createMetrics } from '../../src/host/metrics.ts';
import { startProcess, temporaryFolder, type TollgateProcess } from '../support/process.ts';
import { chargeGrants } from '../../src/registry/store/postgres/charge-grants.ts';
import { hasPostgres } from '../postgres/server.ts';
import { freshDatabase, sharedPostgres, stopSharedPostgres } from '../postgres/store.ts';
import { startUpstream, type Upstream } from '../support/upstream.ts';

/** Name, kind, labels. */
const GATEWAY = {
  requests_total: ['counter', 'outcome', 'code', 'route_id', 'listener'],
  request_duration_seconds: ['histogram', 'outcome', 'listener'],
  overhead_duration_seconds: ['histogram', 'outcome'],
  upstream_duration_seconds: ['histogram', 'code'],
  requests_in_flight: ['gauge'],
  payments_total: ['counter', 'route_id', 'result', 'network'],
  revenue_total: ['counter', 'route_id', 'currency', 'network'],
  facilitator_duration_seconds: ['histogram', 'operation', 'result', 'facilitator'],
  facilitator_open: ['gauge', 'facilitator', 'reason'],
  charges: ['gauge', 'state'],
  owed: ['gauge', 'currency', 'because'],
  owed_charges: ['gauge', 'because'],
  refunds_total: ['counter', 'currency'],
  settling_overdue_seconds: ['gauge'],
  would_charge_total: ['counter', 'route_id', 'currency'],
  observe_until_timestamp_seconds: ['gauge', 'plan'],
  customers_total: ['counter', 'customers', 'result'],
  asked_total: ['counter', 'route_id', 'result'],
  price_service_duration_seconds: ['histogram', 'result'],
  free_requests_total: ['counter', 'plan'],
  passes_sold_total: ['counter', 'plan', 'pass'],
  pass_uses_total: ['counter', 'plan', 'pass'],
  pass_drawn_total: ['counter', 'plan', 'currency'],
  meter_total: ['counter', 'result'],
  pass_outstanding: ['gauge', 'currency'],
  free_identities: ['gauge', 'plan'],
  routes: ['gauge', 'status'],
  route_info: ['gauge', 'route_id', 'route_pattern', 'method', 'amount', 'currency'],
  match_cache_requests_total: ['counter', 'result'],
  config_reloads_total: ['counter', 'result'],
  draining: ['gauge'],
  payments_possible: ['gauge'],
  build_info: ['gauge', 'version', 'node'],
  leases_lost_total: ['counter'],
  takeovers_total: ['counter'],
  store_bytes: ['gauge', 'file'],
  store_free_bytes: ['gauge'],
  store_volume_bytes: ['gauge'],
} as const;
const REGISTRY = {
  declared_routes_differing: ['gauge'],
  registry_requests_total: ['counter', 'endpoint', 'code'],
  registry_sign_ins_refused_total: ['counter', 'kind'],
  event_streams: ['gauge'],
  sidecars: ['gauge'],
  totals_lost_total: ['counter'],
  desk_sessions: ['gauge'],
  desk_sign_ins_total: ['counter', 'via', 'result'],
} as const;
/** Of a process that shares its store with others. */
const SHARED = {
  store_up: ['gauge'],
  store_connections: ['gauge', 'state'],
  store_duration_seconds: ['histogram', 'operation', 'result'],
  store_batch_calls: ['histogram'],
  store_waiting: ['gauge'],
} as const;
const SHARED_REGISTRY = { store_revision: ['gauge'] } as const;
/** Of a process with endpoints that events are sent to. */
const WEBHOOKS = {
  webhook_deliveries_total: ['counter', 'webhook_id', 'result'],
  webhook_waiting: ['gauge', 'webhook_id'],
  webhook_oldest_seconds: ['gauge', 'webhook_id'],
} as const;
/** Of a process that traces requests. */
const TRACING = { otlp_spans_total: ['counter', 'result'] } as const;
/** Where several processes serve the proxy: workers-told.test.ts. */
const WORKERS = { workers: ['gauge', 'state'], worker_restarts_total: ['counter', 'reason'] } as const;
const SYNC = { sync_total: ['counter', 'result'], sync_last_success_timestamp_seconds: ['gauge'] } as const;
/** Nobody pays for real here: paying.test.ts, books.test.ts and owed.test.ts see money counted. */
const WITHOUT_SERIES = new Set([
  'registry_requests_total',
  'registry_sign_ins_refused_total',
  'desk_sign_ins_total',
  'revenue_total',
  'owed',
  'refunds_total',
  'facilitator_open',
  'would_charge_total',
  'observe_until_timestamp_seconds',
  'webhook_deliveries_total',
  ...['customers_total', 'asked_total', 'free_requests_total', 'free_identities', 'price_service_duration_seconds'],
  ...['passes_sold_total', 'pass_uses_total', 'pass_drawn_total', 'pass_outstanding'],
]);

/** What a registry alone has to tell only after a sale or a sign-in. */
const ALONE_WITHOUT_SERIES = new Set([
  ...['owed', 'refunds_total', 'desk_sign_ins_total', 'free_identities', 'pass_outstanding'],
]);

/** What a process without a proxy listener has no use for. */
const PROXY_ONLY: ReadonlySet<string> = new Set([
  ...['requests_total', 'request_duration_seconds', 'overhead_duration_seconds', 'upstream_duration_seconds'],
  ...['requests_in_flight', 'payments_total', 'revenue_total', 'facilitator_duration_seconds', 'facilitator_open'],
  ...['routes', 'route_info', 'match_cache_requests_total'],
  ...['would_charge_total', 'observe_until_timestamp_seconds', 'customers_total', 'asked_total'],
  ...['free_requests_total', 'price_service_duration_seconds'],
  ...['passes_sold_total', 'pass_uses_total', 'pass_drawn_total', 'meter_total'],
]);

type Wanted = Readonly<Record<string, readonly [string, ...string[]]>>;
const without = (all: Wanted, names: ReadonlySet<string>): Wanted =>
  Object.fromEntries(Object.entries(all).filter(([name]) => !names.has(name)));

type Family = {
  readonly kind: string;
  readonly help: string;
  readonly series: { readonly labels: readonly string[]; readonly line: string }[];
};

/** Reads the text format; throws where a sample belongs to no family. */
function read(text: string): Map<string, Family> {
  const families = new Map<string, Family>();
  const help = new Map<string, string>();
  for (const line of text.split('\n').filter((each) => each !== '')) {
    const [, what, about, rest = ''] = /^# (HELP|TYPE) (\S+) (.*)$/.exec(line) ?? [];
    if (what === 'HELP') help.set(about ?? '', rest);
    else if (what === 'TYPE') families.set(about ?? '', { kind: rest, help: help.get(about ?? '') ?? '', series: [] });
    if (what !== undefined) continue;
    const [, name = '', inner = ''] = /^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? \S+$/.exec(line) ?? [];
    const family = families.get(name) ?? families.get(name.replace(/_(bucket|sum|count)$/, ''));
    if (family === undefined) throw new Error(`a sample without TYPE: ${line}`);
    const labels = [...inner.matchAll(/([a-zA-Z_][a-zA-Z0-9_]*)="(?:[^"\\]|\\.)*"/g)].map((match) => match[1] ?? '');
    family.series.push({ labels: labels.filter((label) => label !== 'le'), line });
  }
  return families;
}

/** Tollgate's own, without the prefix. */
const ownOf = (families: Map<string, Family>): string[] =>
  [...families.keys()].flatMap((name) => (name.startsWith('tollgate_') ? [name.slice(9)] : [])).toSorted();

/** What `promtool check metrics` would say about names of ours, for machines that have none. */
function lint(families: Map<string, Family>): string[] {
  const ours = [...families].filter(([name]) => name.startsWith('tollgate_'));
  return ours.flatMap(([name, { kind, help, series }]) => [
    ...(help === '' ? [`${name}: no help`] : []),
    ...((kind === 'counter') === name.endsWith('_total') ? [] : [`${name}: a ${kind}`]),
    ...(/[A-Z:]|_(milliseconds|ms|minutes|hours|kilobytes|mb|percent|count|sum|bucket|gauge|histogram)(_|$)/.test(name)
      ? [`${name}: its name`]
      : []),
    ...(kind === 'histogram' && !/_(seconds|calls)$/.test(name) ? [`${name}: no unit`] : []),
    ...series.flatMap(({ labels }) =>
      labels.filter((label) => !/^[a-z_]+$/.test(label)).map((label) => `${name}: label ${label}`),
    ),
  ]);
}

/** What promtool complains about, the runtime's own metrics included; undefined where it is not installed. */
function promtool(text: string): string[] | undefined {
  try {
    execFileSync('promtool', ['check', 'metrics'], { input: text, stdio: ['pipe', 'pipe', 'pipe'] });
    return [];
  } catch (error) {
    const { code, stderr, stdout } = error as { code?: string; stderr?: Buffer; stdout?: Buffer };
    if (code === 'ENOENT') return undefined;
    return `${stderr?.toString() ?? ''}${stdout?.toString() ?? ''}`.split('\n');
  }
}

const files = temporaryFolder();
const running: TollgateProcess[] = [];
const closers: (() => unknown)[] = [];
let upstream: Upstream;

beforeAll(async () => {
  upstream = await startUpstream();
});
afterAll(async () => {
  await Promise.all(running.map((tollgate) => tollgate.kill()));
  for (const close of closers) await close();
  await stopSharedPostgres();
  await upstream.close();
  files.remove();
});

const RECEIVERS = `receivers: [{ id: default, network: base-sepolia, rpc_url: none, pay_to_address: "0x${'1'.repeat(40)}", facilitators: [http://127.0.0.1:1] }]`;
const MAX_ROUTES = 3;

async function start(name: string, lines: readonly string[]): Promise<TollgateProcess> {
  const file = files.write(
    `${name}.yaml`,
    [
      `proxy: { listen: 127.0.0.1:0, upstream: ${upstream.url} }`,
      'admin: { listen: 127.0.0.1:0 }',
      RECEIVERS,
      ...lines,
    ].join('\n'),
  );
  const tollgate = await startProcess({ args: ['serve', '-c', file] });
  running.push(tollgate);
  return tollgate;
}

async function scrape(
  tollgate: TollgateProcess,
): Promise<{ readonly text: string; readonly families: Map<string, Family> }> {
  const response = await fetch(`${tollgate.url('admin')}/metrics`);
  expect(response.headers.get('content-type')).toMatch(/^text\/plain; version=0\.0\.4/);
  const text = await response.text();
  return { text, families: read(text) };
}

/** A credential that is well-formed, for the terms of a 402, by nobody. */
async function credentialFor(url: string): Promise<string> {
  const response = await fetch(url);
  await response.arrayBuffer();
  const { accepts } = JSON.parse(Buffer.from(response.headers.get('payment-required') ?? '', 'base64').toString());
  const authorization = {
    from: `0x${'2'.repeat(40)}`,
    to: accepts[0].payTo,
    value: accepts[0].amount,
    validAfter: '0',
    validBefore: String(Math.floor(Date.now() / 1000) + 250),
    nonce: `0x${'3'.repeat(64)}`,
  };
  const payload = { signature: `0x${'4'.repeat(128)}1b`, authorization };
  return Buffer.from(JSON.stringify({ x402Version: 2, accepted: accepts[0], payload })).toString('base64');
}

async function traffic(tollgate: TollgateProcess): Promise<void> {
  const ask = async (target: string, headers: Record<string, string> = {}): Promise<number> => {
    const response = await fetch(tollgate.url('proxy') + target, { headers });
    await response.arrayBuffer();
    return response.status;
  };
  for (let i = 0; i < 50; i++) expect(await ask(`/free/unique-${i}`)).toBe(200);
  for (let i = 0; i < 6; i++) expect(await ask(`/paid${i}/unique-${i}`)).toBe(402);
  expect(await ask('/free/%2e%2e/x%2fy')).toBe(400);
  const credential = await credentialFor(`${tollgate.url('proxy')}/paid0/unique`);
  expect(await ask('/paid0/unique', { 'payment-signature': credential })).toBeGreaterThanOrEqual(400);
  tollgate.signal('SIGHUP');
  await tollgate.line(({ msg }) => msg === 'configuration reloaded');
  await vi
    .waitFor(
      async () => expect((await scrape(tollgate)).families.get('tollgate_charges')?.series.length).toBeGreaterThan(0),
      { timeout: 30_000 },
    )
    .catch(() => undefined);
}

function expectContract(families: Map<string, Family>, wanted: Wanted, withoutSeries: ReadonlySet<string>): void {
  for (const [name, [kind, ...labels]] of Object.entries(wanted)) {
    const family = families.get(`tollgate_${name}`);
    expect([name, family?.kind]).toEqual([name, kind]);
    if (withoutSeries.has(name)) continue;
    expect([name, family?.series.length ?? 0]).not.toEqual([name, 0]);
    for (const series of family?.series ?? [])
      expect([name, series.labels.toSorted()]).toEqual([name, labels.toSorted()]);
  }
}

const routesOf = (count: number) =>
  Array.from({ length: count }, (_, index) => ({
    id: `00000000-0000-4000-8000-${String(index).padStart(12, '0')}`,
    route_pattern: `/paid${index}/*`,
    method: 'GET',
    amount: '0.10',
    currency: 'USD',
    name: null,
    description: null,
    status: 'active' as const,
    allow_anonymous: true,
    source: null,
    receiver_config_id: null,
    plan_id: null,
    created_at: '2026-01-01T00:00:00Z',
    updated_at: '2026-01-01T00:00:00Z',
  }));

test('behaviour: config/README.md names every metric, and none that there is not', () => {
  const readme = readFileSync(path.join(import.meta.dirname, '../../config/README.md'), 'utf8');
  const [table = ''] = readme.slice(readme.indexOf('| metric (prefix `tollgate_`)')).split('\n\n', 1);
  const cells = table
    .split('\n')
    .slice(2)
    .map((row) => row.split('|')[1] ?? '');
  const named = cells.flatMap((cell) => [...cell.matchAll(/`([a-z_]+)/g)].map(([, name = '']) => name));
  expect(named.toSorted()).toEqual(
    Object.keys({
      ...GATEWAY,
      ...REGISTRY,
      ...SYNC,
      ...SHARED,
      ...SHARED_REGISTRY,
      ...WORKERS,
      ...TRACING,
      ...WEBHOOKS,
    }).toSorted(),
  );
});

describe('all-in-one', () => {
  test('behaviour: an all-in-one has every metric with its labels, none of a sidecar’s, and nothing that promtool dislikes', async () => {
    const routes = routesOf(6).map(
      ({ route_pattern }) => `{ route_pattern: "${route_pattern}", method: GET, amount: "0.10" }`,
    );
    const tollgate = await start('all', [
      'registry: { listen: 127.0.0.1:0, store: sqlite:all/tollgate.db }',
      `routes: [${routes.join(', ')}]`,
      `metrics: { max_routes: ${MAX_ROUTES} }`,
      'otlp: { sample: 0 }',
      `webhooks: [{ id: books, url: "https://hooks.invalid/in", secret: whsec_${Buffer.alloc(32).toString('base64')} }]`,
    ]);
    await traffic(tollgate);
    const { text, families } = await scrape(tollgate);
    const wanted = { ...GATEWAY, ...REGISTRY, ...TRACING, ...WEBHOOKS };
    expectContract(families, wanted, WITHOUT_SERIES);
    expect([...families.keys()].filter((name) => name.includes('_sync_'))).toEqual([]);
    expect(ownOf(families)).toEqual(Object.keys(wanted).toSorted());
    expect(lint(families)).toEqual([]);
    expect(promtool(text) ?? []).toEqual([]);
    expect(text).not.toMatch(/unique|2e2e/);

    const ids = new Set([...text.matchAll(/route_id="([^"]*)"/g)].map((match) => match[1]));
    expect([ids.size, ids.has('other'), ids.has('')]).toEqual([MAX_ROUTES + 2, true, true]);
    expect(text).toMatch(
      /^tollgate_requests_total\{outcome="payment_required",code="402",route_id="other",listener="proxy"\} 3$/m,
    );
    expect(text).toMatch(/^tollgate_routes\{status="active"\} 6$/m);
    expect(text).toMatch(/^tollgate_requests_total\{outcome="refused",code="400",route_id="",listener="proxy"\} 1$/m);
  });
});

describe('sidecar', () => {
  test('behaviour: the metrics of a sidecar add what it knows of its registry', async () => {
    const registry = createServer((_req, res) => {
      res.setHeader('content-type', 'application/json');
      res.end(JSON.stringify(routesOf(6)));
    });
    await new Promise<void>((resolve) => registry.listen(0, '127.0.0.1', resolve));
    closers.push(
      () => new Promise((resolve) => registry.close(resolve)),
      () => registry.closeAllConnections(),
    );
    closers.reverse();
    const { port } = registry.address() as AddressInfo;
    const tollgate = await start('side', [
      `sync: { registry_url: "http://127.0.0.1:${port}", api_key: an-api-key-of-the-test, poll_interval: 1s }`,
      'charges: { secrets: [a-charge-secret-of-at-least-32-bytes], store: "sqlite:side/charges.db" }',
      `metrics: { max_routes: ${MAX_ROUTES} }`,
    ]);
    await vi.waitFor(async () => expect((await fetch(`${tollgate.url('admin')}/readyz`)).status).toBe(200), {
      timeout: 30_000,
    });
    await traffic(tollgate);
    const { text, families } = await scrape(tollgate);
    expectContract(families, { ...GATEWAY, ...SYNC }, WITHOUT_SERIES);
    expect(ownOf(families)).toEqual(Object.keys({ ...GATEWAY, ...SYNC }).toSorted());
    expect(lint(families)).toEqual([]);
    expect(promtool(text) ?? []).toEqual([]);
    const since = Number(/^tollgate_sync_last_success_timestamp_seconds (\S+)$/m.exec(text)?.[1]);
    expect(Math.abs(Date.now() / 1000 - since)).toBeLessThan(60);
  });
});

describe('a registry alone', () => {
  test('behaviour: a registry alone has the metrics of a store and a registry, and none of requests that it does not serve', async () => {
    const file = files.write(
      'alone.yaml',
      'registry: { listen: 127.0.0.1:0, store: sqlite:alone/tollgate.db }\nadmin: { listen: 127.0.0.1:0 }\n',
    );
    const tollgate = await startProcess({ args: ['serve', '-c', file], listeners: ['registry', 'admin'] });
    running.push(tollgate);
    await (await fetch(`${tollgate.url('registry')}/v1/billing/charges`)).arrayBuffer();
    tollgate.signal('SIGHUP');
    await tollgate.line(({ msg }) => msg === 'configuration reloaded');
    await vi.waitFor(
      async () => expect((await scrape(tollgate)).families.get('tollgate_charges')?.series.length).toBeGreaterThan(0),
      { timeout: 30_000 },
    );
    const { text, families } = await scrape(tollgate);
    const wanted = { ...without(GATEWAY, PROXY_ONLY), ...REGISTRY };
    expectContract(families, wanted, ALONE_WITHOUT_SERIES);
    expect(ownOf(families)).toEqual(Object.keys(wanted).toSorted());
    expect(lint(families)).toEqual([]);
    expect(promtool(text) ?? []).toEqual([]);
  });
});

describe('100,000 routes and 100,000 paths', () => {
  test('behaviour: 100,000 routes and 100,000 paths make no more series than max_routes and a constant', async () => {
    const metrics = createMetrics();
    const routes = routesOf(100_000).map(fromWire);
    const snapshot = compileSnapshot(
      { registryId: 'r', revision: 1, routes },
      { encodedSlashes: 'refuse', doubleSlashes: 'merge', folding: FULL_FOLDING },
    );
    const log = createLog('error', () => undefined, Date.now);
    const maxRoutes = 1000;
    const telemetry = createTelemetry(
      metrics,
      log,
      { snapshot, cacheTotals: () => snapshot.cache },
      { config: { metrics: { maxRoutes }, log: { access: false } } },
    );
    const series = async (): Promise<number> =>
      [...read(await metrics.text()).entries()]
        .filter(([name]) => name.startsWith('tollgate_'))
        .reduce((sum, [, family]) => sum + family.series.length, 0);
    const serve = (index: number): void => {
      telemetry.begin();
      telemetry.end(
        {
          startedAt: 0,
          listener: 'proxy',
          method: 'GET',
          requestId: `r${index}`,
          traceId: undefined,
          path: `/paid${index}/${index}`,
          target: `/paid${index}/${index}?q=${index}`,
          routeId: routes[index]?.id,
          planId: undefined,
          outcome: 'payment_required',
          status: 402,
          reason: undefined,
          customerId: undefined,
          payer: undefined,
          amount: undefined,
          currency: undefined,
          chargeId: `chg_${index}`,
          upstreamMs: undefined,
          client: undefined,
          dialect: undefined,
          decision: undefined,
          ended: false,
        },
        1,
      );
    };
    serve(0);
    const one = await series();
    for (let index = 1; index < maxRoutes; index++) serve(index);
    const full = await series();
    // requests_total and route_info, one each for each route.
    expect(full - one).toBe(2 * (maxRoutes - 1));
    for (let index = maxRoutes; index < routes.length; index++) serve(index);
    // `other`, once.
    expect((await series()) - full).toBe(1);
    expect(await metrics.text()).toContain(
      `tollgate_requests_total{outcome="payment_required",code="402",route_id="other",listener="proxy"} ${100_000 - maxRoutes}\n`,
    );
  });
});

describe.skipIf(!hasPostgres)('on a store that several share', () => {
  const SECRET = 'a-secret-of-the-test-of-at-least-32-bytes';
  const ON_DISK = new Set(['store_bytes', 'store_free_bytes', 'store_volume_bytes']);
  const valueOf = async (tollgate: TollgateProcess, series: string): Promise<number> =>
    Number(
      (await scrape(tollgate)).text
        .split('\n')
        .find((line) => line.startsWith(`tollgate_${series} `))
        ?.split(' ')[1],
    );

  test('behaviour: a registry and a sidecar say whether a shared store is there, and which connections and routes they have', async () => {
    const store = await freshDatabase();
    const file = files.write(
      'shared.yaml',
      [
        `registry: { listen: 127.0.0.1:0, store: "${store}", jwt: { secret: ${SECRET} }, api_keys: [{ name: a, key: an-api-key-of-the-test, scopes: [sdk] }] }`,
        'admin: { listen: 127.0.0.1:0 }',
        'routes: [{ route_pattern: /a, amount: "1" }, { route_pattern: /b, amount: "1" }]\n',
      ].join('\n'),
    );
    const registry = await startProcess({ args: ['serve', '-c', file], listeners: ['registry', 'admin'] });
    running.push(registry);
    // With the rights that `migrate --grants` prints, and no others.
    const server = await sharedPostgres();
    await server.query('CREATE ROLE sidecar LOGIN');
    const grants = chargeGrants('tollgate', 'sidecar').join('\n');
    await server.query(grants, new URL(store).pathname.slice(1));
    const sidecar = await start('sharing', [
      'workers: 2',
      `sync: { registry_url: "${registry.url('registry')}", api_key: an-api-key-of-the-test, poll_interval: 1s, snapshot_file: sharing.json }`,
      `charges: { secrets: [${SECRET}], store: { url: "${store.replace('tollgate@', 'sidecar@')}", connections: 3, timeout: 2s } }`,
    ]);
    for (const each of [registry, sidecar])
      await vi.waitFor(async () => expect(await valueOf(each, 'store_up')).toBe(1), { timeout: 30_000 });
    await vi.waitFor(async () => expect(await valueOf(registry, 'charges{state="settled"}')).toBe(0), {
      timeout: 30_000,
    });
    const { text, families } = await scrape(registry);
    const wanted = { ...without(GATEWAY, PROXY_ONLY), ...REGISTRY, ...SHARED, ...SHARED_REGISTRY };
    expectContract(families, wanted, new Set([...WITHOUT_SERIES, ...ON_DISK, 'config_reloads_total']));
    expect(ownOf(families)).toEqual(Object.keys(wanted).toSorted());
    expect(lint(families)).toEqual([]);
    expect(promtool(text) ?? []).toEqual([]);
    expect(await valueOf(registry, 'store_revision')).toBe(2);
    // Two for charges, one for reports, one for routes; those that were needed so far.
    expect(await valueOf(registry, 'store_connections{state="open"}')).toBeGreaterThanOrEqual(2);
    expect(await valueOf(registry, 'store_connections{state="open"}')).toBeLessThanOrEqual(4);
    const several = (await scrape(sidecar)).families;
    expect(ownOf(several)).toEqual(Object.keys({ ...GATEWAY, ...SYNC, ...SHARED, ...WORKERS }).toSorted());
    expectContract(several, WORKERS, new Set());
    expect(lint(several)).toEqual([]);

    await server.stop('SIGKILL');
    for (const each of [registry, sidecar]) {
      await vi.waitFor(async () => expect(await valueOf(each, 'store_up')).toBe(0), { timeout: 20_000 });
      // What workers have is told within a second.
      await vi.waitFor(async () => expect(await valueOf(each, 'store_connections{state="open"}')).toBe(0), {
        timeout: 20_000,
      });
      // Others would go with it.
      expect((await fetch(`${each.url('admin')}/readyz`)).status).toBe(200);
    }
    await server.start();
    for (const each of [registry, sidecar])
      await vi.waitFor(async () => expect(await valueOf(each, 'store_up')).toBe(1), { timeout: 20_000 });
  }, 90_000);
});
