// Every alert that is shipped, in every shape that is shipped: real processes over a real chain see everything that an alert
// is about, and then export every series that its expression names, with the labels that it selects and sums up by. An
// alert on a series that a shape does not export would stay silent there for ever. The queries of the dashboard are asked
// too: of what all shapes together export, and where it is installed of a Prometheus that scrapes them.
import { writeFileSync } from 'node:fs';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { keepSecret } from '../support/canaries.ts';
import { startChain, USDC, type Chain } from '../support/chain/chain.ts';
import { startFacilitator } from '../support/chain/facilitator.ts';
import type { TestFacilitator } from '../support/facilitator-server.ts';
import { createPayer, type Payer } from '../support/chain/payer.ts';
import { readTerms } from '../support/made-up-payment.ts';
import { until } from '../support/paid-tollgate.ts';
import { startProcess, temporaryFolder, type TollgateProcess } from '../support/process.ts';
import { hasPrometheus, startPrometheus } from '../support/prometheus.ts';
import { startUpstream, type Upstream } from '../support/upstream.ts';
import { hasPostgres } from '../postgres/server.ts';
import { freshDatabase, stopSharedPostgres } from '../postgres/store.ts';
import { findSilence, promtool, type Series } from '../deploy/alerts-fire.ts';
import { ALERTS, keptLabelsOf, selectorsOf, type Matcher } from '../deploy/alerts.ts';
import { QUERIES, readQuery } from '../deploy/grafana.ts';

const KNOWN = [
  'all-in-one',
  'all-in-one of two workers',
  'registry',
  'sidecar',
  'sidecar with a store',
  'registry on PostgreSQL',
] as const;
type Shape = (typeof KNOWN)[number];
const SHAPES = KNOWN.filter((shape) => hasPostgres || shape !== 'registry on PostgreSQL');
const EVERY: readonly Shape[] = SHAPES;
/** With a proxy listener. */
const PROXY: readonly Shape[] = ['all-in-one', 'all-in-one of two workers', 'sidecar', 'sidecar with a store'];
const WORKERS: readonly Shape[] = ['all-in-one of two workers'];
/** With a registry elsewhere. */
const SIDECAR: readonly Shape[] = ['sidecar', 'sidecar with a store'];
/** With a store of charges on its own disk; what a sidecar without one does is seen in its registry. */
const DISK: readonly Shape[] = ['all-in-one', 'all-in-one of two workers', 'registry', 'sidecar with a store'];
/** Others may share it. */
const SHARED: readonly Shape[] = ['registry on PostgreSQL'];
const STORE: readonly Shape[] = [...DISK, ...SHARED];

/** Where each alert applies. */
const APPLIES: Readonly<Record<string, readonly Shape[]>> = {
  TollgateDown: EVERY,
  TollgateErrors: PROXY,
  TollgateUpstreamFailing: PROXY,
  TollgateNeverSynced: SIDECAR,
  TollgateRoutesStale: SIDECAR,
  TollgateRouteSetRefused: SIDECAR,
  TollgatePaymentsUnavailable: PROXY,
  TollgatePaymentsImpossible: EVERY,
  TollgateStoreAway: SHARED,
  TollgateWebhooksWaiting: STORE,
  TollgateStoreVolumeFull: DISK,
  TollgateFacilitatorSlow: PROXY,
  TollgateSettlementUnknown: PROXY,
  TollgateSettlementOverdue: STORE,
  TollgateOwed: STORE,
  TollgatePaidNotDelivered: PROXY,
  TollgateReplays: PROXY,
  TollgateDecisionsRefused: PROXY,
  TollgateDecisionsUndelivered: PROXY,
  TollgatePlanObservesLong: PROXY,
  TollgateAskLetsAllPass: PROXY,
  TollgateCustomersUnavailable: PROXY,
  TollgatePriceUnavailable: PROXY,
  TollgateMeterUnread: PROXY,
  TollgateRevenueStopped: PROXY,
  TollgateConfigReloadFailed: EVERY,
  TollgateWorkerEnded: WORKERS,
  TollgateDrainingLong: EVERY,
  TollgateOverheadHigh: PROXY,
  TollgateEventLoopLate: EVERY,
  TollgateNearItsLimit: PROXY,
};

const SECRET = 'a-secret-of-the-test-of-alerts-32-bytes';
const KEY = 'a-key-of-both-scopes-of-the-alerts-test';
/** A plan that charges nobody yet. */
const OBSERVED = `{ id: watched, observe: { until: "${new Date(Date.now() + 86_400_000).toISOString()}" } }`;
/** A plan of passes alone, which a process that has its store to itself can draw on. */
const BUNDLED = '{ id: bundle, single: false, passes: [{ id: five, amount: "0.05", uses: 5 }] }';
/** Customers whose keys nobody serves. */
const STAFF =
  '{ id: staff, header: Authorization, jwt: { issuer: "https://id.example.com", audience: api, jwks_url: "http://127.0.0.1:9/jwks" } }';
/** Customers whom the API knows itself. */
const MINE = '{ id: mine, header: Authorization, ask: { statuses: [401] } }';
const MADE_UP_TOKEN = [{ alg: 'RS256', kid: 'a' }, { sub: 'a', exp: 4_102_444_800 }, 'signature']
  .map((part) => Buffer.from(JSON.stringify(part)).toString('base64url'))
  .join('.');
const files = temporaryFolder();
const closers: (() => unknown)[] = [];
const scraped = new Map<Shape, string>();
/** Host and port of each shape's metrics. */
const targets: string[] = [];
let chain: Chain;
let facilitator: TestFacilitator;
let upstream: Upstream;
let payer: Payer;

type Started = { readonly tollgate: TollgateProcess; readonly file: string; readonly text: string };

async function start(name: string, lines: readonly string[], listeners: readonly string[]): Promise<Started> {
  const text = [...lines, 'admin: { listen: 127.0.0.1:0 }'].join('\n').replaceAll('NAME', name);
  const file = files.write(`${name}.yaml`, text);
  const tollgate = await startProcess({ args: ['serve', '-c', file], listeners: [...listeners, 'admin'] });
  closers.push(tollgate.kill);
  return { tollgate, file, text };
}

async function startShapes(): Promise<Readonly<Record<Shape, Started>>> {
  const service = `{ url: "${upstream.url}/price", min: "0.01", max: "1.00", timeout: 3s, cache: 30s, inputs: [query.n], when_away: refuse }`;
  const priced = `{ id: priced, price: { service: ${service} } }`;
  const pays = [
    `proxy: { listen: 127.0.0.1:0, upstream: ${upstream.url} }`,
    'decision: { listen: 127.0.0.1:0, dialect: nginx }',
    `selling: { plans: [${OBSERVED}, ${BUNDLED}, { id: staffed, customers: [staff] }, { id: asked, customers: [mine] }, ${priced}], customers: [${STAFF}, ${MINE}] }`,
    `receivers: [{ id: default, network: base-sepolia, pay_to_address: "0x${'1'.repeat(40)}", facilitators: [{ url: ${facilitator.url}, timeouts: { verify: 3s, settle: 3s } }], rpc_url: ${chain.rpcUrl} }]`,
  ];
  const staffed = '{ route_pattern: "/staff", method: GET, amount: "0.01", plan_id: staffed }';
  const sold = ['asked', 'priced', 'watched', 'bundle'].map((id) =>
    staffed.replace('/staff', `/${id}`).replace('staffed', id),
  );
  const routes = `routes: [{ route_pattern: "/paid/*", method: "*", amount: "0.01" }, ${[staffed, ...sold].join(', ')}]`;
  const store = `store: "sqlite:${files.folder}/NAME/tollgate.db", jwt: { secret: ${SECRET} }`;
  const keys = `api_keys: [{ name: a, key: ${KEY}, scopes: [sdk, ledger] }]`;
  const listens = `registry: { listen: 127.0.0.1:0, ${store}, ${keys} }`;
  const hooks = `webhooks: [{ id: books, url: "https://hooks.invalid/in", secret: whsec_${Buffer.alloc(32).toString('base64')} }]`;
  const allInOne = await start(
    'all-in-one',
    [...pays, listens, routes, hooks, 'otlp: { sample: 0 }'],
    ['proxy', 'registry'],
  );
  const several = await start('several', [...pays, listens, routes, hooks, 'workers: 2'], ['proxy', 'registry']);
  const registry = await start('registry', [listens, routes, hooks], ['registry']);
  const sync = `sync: { registry_url: ${registry.tollgate.url('registry')}, api_key: ${KEY}, poll_interval: 1s, snapshot_file: "${files.folder}/NAME.json" }`;
  const sidecar = await start('sidecar', [...pays, sync, `charges: { secrets: [${SECRET}] }`], ['proxy']);
  const own = `charges: { secrets: [${SECRET}], store: "sqlite:${files.folder}/own/charges.db" }`;
  const storing = await start('storing', [...pays, sync, own, hooks], ['proxy']);
  const sharing = async (): Promise<Started> => {
    const postgres = listens.replace(/"sqlite:[^"]*"/, `"${await freshDatabase()}"`);
    return start('shared', [postgres, routes, hooks], ['registry']);
  };
  const shared = hasPostgres ? await sharing() : registry;
  return {
    'all-in-one': allInOne,
    'all-in-one of two workers': several,
    registry,
    sidecar,
    'sidecar with a store': storing,
    'registry on PostgreSQL': shared,
  };
}

/** Everything that an alert about requests or payments counts, once. `draws`: passes by uses are good here. */
async function live({ tollgate }: Started, draws: boolean): Promise<void> {
  const url = (target: string): string => tollgate.url('proxy') + target;
  const ask = async (target: string, init: RequestInit = {}): Promise<number> => {
    const response = await fetch(url(target), init);
    await response.arrayBuffer();
    return response.status;
  };
  const sign = async (target: string, method = 'GET'): Promise<RequestInit> => {
    const quote = await fetch(url(target), { method });
    await quote.arrayBuffer();
    const accepted = readTerms(quote.headers.get('payment-required') ?? '');
    const payload = await payer.authorize({ to: accepted.payTo, value: BigInt(accepted.amount), asset: USDC });
    const credential = Buffer.from(JSON.stringify({ x402Version: 2, accepted, payload })).toString('base64');
    return { method, headers: { 'payment-signature': credential } };
  };
  await until('a paid route is there', async () => (await ask('/paid/here')) === 402);
  expect([await ask('/free'), await ask('/fails'), await ask('/breaks')]).toEqual([200, 500, 502]);
  const paid = await sign('/paid/here');
  expect(await ask('/paid/here', paid)).toBe(200);
  // What was paid with it is another page.
  expect(await ask('/paid/elsewhere', paid)).toBe(402);
  expect(await ask('/paid/fails', await sign('/paid/fails', 'POST'))).toBe(500);
  facilitator.fault('verify', { kind: 'drop_before' }, 1);
  expect(await ask('/paid/here', await sign('/paid/here'))).toBe(503);
  facilitator.fault('settle', { kind: 'drop_after' }, 1);
  expect(await ask('/paid/here', await sign('/paid/here'))).toBe(503);
  facilitator.clearFaults();
  expect(await ask('/staff', { headers: { authorization: `Bearer ${MADE_UP_TOKEN}` } })).toBe(503);
  expect(await ask('/asked', { headers: { authorization: 'Bearer a-session-of-the-api' } })).toBe(200);
  expect([await ask('/priced?n=1'), await ask('/priced?n=2')]).toEqual([402, 503]);
  expect(await ask('/watched')).toBe(200);
  if (!draws) return;
  const bought = await fetch(url('/bundle'), await sign('/bundle'));
  await bought.arrayBuffer();
  const pass = bought.headers.get('tollgate-pass') ?? '';
  keepSecret('a token of a pass', pass);
  expect([bought.status, await ask('/bundle', { headers: { 'tollgate-pass': pass } })]).toEqual([200, 200]);
}

function reload({ tollgate, file }: Started, text: string): void {
  writeFileSync(file, text);
  tollgate.signal('SIGHUP');
}

/** Its metrics, once there is a series for every one of `series`. */
const becomes = ({ tollgate }: Started, series: readonly RegExp[]): Promise<string> =>
  until(`the metrics show ${series.join(', ')}`, async () => {
    const text = await (await fetch(`${tollgate.url('admin')}/metrics`)).text();
    return series.every((each) => each.test(text)) && text;
  });

beforeAll(async () => {
  chain = await startChain();
  closers.push(chain.stop);
  facilitator = await startFacilitator({ rpcUrl: chain.rpcUrl });
  closers.push(facilitator.close);
  upstream = await startUpstream((req, res) => {
    if (req.url === '/breaks') {
      req.socket.destroy();
      return;
    }
    if (req.url === '/price') {
      void text(req).then((asked) => res.end(asked.includes('"n":"1"') ? '{"amount":"0.10"}' : 'nonsense'));
      return;
    }
    req.resume();
    res.statusCode = req.url?.endsWith('/fails') === true ? 500 : 200;
    res.end('here');
  });
  closers.push(upstream.close);
  payer = await createPayer(chain);
  const shapes = await startShapes();
  targets.push(...SHAPES.map((shape) => new URL(shapes[shape].tollgate.url('admin')).host));
  for (const shape of PROXY) await live(shapes[shape], shape === 'all-in-one');
  const { registry } = shapes;
  reload(registry, registry.text.replace(KEY, 'another-key-of-the-alerts-test'));
  for (const shape of SIDECAR) await becomes(shapes[shape], [/^tollgate_sync_total\{result="unauthorized"\}/m]);
  for (const shape of SHAPES) reload(shapes[shape], 'proxy: nonsense');
  for (const shape of SHAPES) {
    // Charges are counted every five seconds.
    const counted = STORE.includes(shape) ? [/^tollgate_owed_charges\{/m] : [];
    // The end of what `live` does; workers tell of it within a second.
    const lived = PROXY.includes(shape) ? [/^tollgate_payments_total\{.*result="unknown"/m] : [];
    const failed = /^tollgate_config_reloads_total\{result="failure"\}/m;
    const text = await becomes(shapes[shape], [failed, ...counted, ...lived]);
    scraped.set(shape, text);
  }
}, 600_000);
afterAll(async () => {
  for (const close of closers.toReversed()) await close();
  await stopSharedPostgres();
  files.remove();
});

/** What Prometheus has after a scrape of `text`. */
function seriesOf(text: string): Series[] {
  const added = { job: 'tollgate', instance: 'one' };
  const found = [...text.matchAll(/^([a-z]\w*)(?:\{(.*)\})? \S+$/gm)].map(([, name = '', inner = '']) => ({
    name,
    labels: {
      ...Object.fromEntries(
        [...inner.matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)].map(([, label, value]) => [label, value]),
      ),
      ...added,
    },
  }));
  return [...found, { name: 'up', labels: added }];
}

function matches({ labels }: Series, { label, operator, value }: Matcher): boolean {
  const own = labels[label] ?? '';
  switch (operator) {
    case '=':
      return own === value;
    case '!=':
      return own !== value;
    case '=~':
      return new RegExp(`^(?:${value})$`).test(own);
    default:
      throw new Error(`no alert uses ${operator} so far`);
  }
}

/** What `expr` names and `series` does not have. */
function findMissing(expr: string, series: readonly Series[]): string[] {
  const kept = keptLabelsOf(expr);
  return selectorsOf(expr).flatMap(({ name, matchers }) => {
    const fit = series.filter((each) => each.name === name && matchers.every((matcher) => matches(each, matcher)));
    const wanted = `${name}{${matchers.map(({ label, operator, value }) => `${label}${operator}"${value}"`).join(',')}}`;
    if (fit.length === 0) return [wanted];
    const lacking = kept.filter((label) => fit.some(({ labels }) => labels[label] === undefined));
    return lacking.map((label) => `the label ${label} of ${wanted}`);
  });
}

test('behaviour: the table names every alert', () => {
  expect(Object.keys(APPLIES)).toEqual(ALERTS.map(({ alert }) => alert));
});

describe.each(SHAPES)('%s', (shape) => {
  test.each(ALERTS.filter(({ alert }) => APPLIES[alert]?.includes(shape)))(
    'behaviour: the metrics that $alert names are exported',
    ({ expr }) => {
      const series = seriesOf(scraped.get(shape) ?? '');
      expect(findMissing(expr, series)).toEqual([]);
      // The check sees each of them missing.
      for (const { name, matchers } of selectorsOf(expr)) {
        const without = series.filter(
          (each) => each.name !== name || !matchers.every((matcher) => matches(each, matcher)),
        );
        expect(findMissing(expr, without).join()).toContain(name);
      }
    },
  );

  test.skipIf(!promtool)(
    'behaviour: each alert of this shape fires over its series (skipped where promtool is not installed)',
    { timeout: 60_000 },
    () => {
      const series = seriesOf(scraped.get(shape) ?? '');
      const alerts = ALERTS.filter(({ alert }) => APPLIES[alert]?.includes(shape));
      expect(findSilence(alerts, series, files.folder)).toBe(undefined);
    },
  );

  test.each(ALERTS.filter(({ alert }) => APPLIES[alert]?.includes(shape) === false))(
    'behaviour: an alert of another shape, $alert, finds no series here',
    ({ expr }) => {
      expect(findMissing(expr, seriesOf(scraped.get(shape) ?? ''))).not.toEqual([]);
    },
  );
});

describe('the dashboard for Grafana', () => {
  /** Metrics of one shape that this machine cannot start. */
  const isAbsent = (metric: string): boolean =>
    !hasPostgres && /^tollgate_store_(up|connections|waiting|duration_seconds_\w+)$/.test(metric);
  const queries = QUERIES.filter(({ expr }) => !readQuery(expr).selectors.some(({ metric }) => isAbsent(metric)));
  /** Where nobody is owed money or was given any back, and facilitators are not left alone, there is nothing to see. */
  const EMPTY: ReadonlySet<string> = new Set(['tollgate_owed', 'tollgate_refunds_total', 'tollgate_facilitator_open']);

  test('behaviour: every metric that a query names is exported by a live process, with the labels that it names', () => {
    const texts = [...scraped.values()];
    const series = texts.flatMap(seriesOf);
    for (const { of, expr } of queries) {
      const { selectors, kept } = readQuery(expr);
      for (const { metric, labels } of selectors) {
        const fit = series.filter(({ name }) => name === metric);
        const named = `${of}: ${metric}`;
        if (EMPTY.has(metric))
          expect(
            texts.some((text) => text.includes(`# TYPE ${metric} `)),
            named,
          ).toBe(true);
        else expect([named, fit.length]).not.toEqual([named, 0]);
        for (const label of labels) for (const each of fit) expect(each.labels, named).toHaveProperty(label);
      }
      const carried = new Set(
        selectors
          .flatMap(({ metric }) => series.filter(({ name }) => name === metric))
          .flatMap((each) => Object.keys(each.labels)),
      );
      if (!selectors.some(({ metric }) => EMPTY.has(metric)))
        for (const label of kept) expect(carried, of).toContain(label);
    }
  });

  test.skipIf(!hasPrometheus)(
    'behaviour: a Prometheus that scrapes live processes answers every query (skipped where it is not installed)',
    async () => {
      const prometheus = await startPrometheus(targets);
      try {
        // A rate needs two scrapes.
        const scrapes = `min(count_over_time(up{job="tollgate"}[1m])) >= 3 and count(up{job="tollgate"} == 1) == ${targets.length}`;
        await until('each was scraped three times', async () => (await prometheus.ask(scrapes)) === 1);
        for (const { of, expr } of queries) {
          const answer = await prometheus.ask(expr);
          const isEmpty = readQuery(expr).selectors.some(({ metric }) => EMPTY.has(metric)) || of === 'annotation';
          expect([of, expr, answer]).toEqual([of, expr, isEmpty ? expect.any(Number) : expect.not.toBeOneOf([0])]);
          expect([of, expr, typeof answer]).toEqual([of, expr, 'number']);
        }
        for (const { alert, expr } of ALERTS)
          expect([alert, typeof (await prometheus.ask(expr))]).toEqual([alert, 'number']);
        expect(await prometheus.ask('rate(tollgate_requests_total)')).toMatch(/expected type range vector/);
      } finally {
        await prometheus.stop();
      }
    },
  );
});
