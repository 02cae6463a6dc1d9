// Sums of what really happened: requests of every outcome through Tollgate as a process, with a real chain, and what overview,
// series and top routes say of them ten seconds later, after an orderly stop and after kill -9.
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startPaidTollgate, until, type PaidTollgate } from '../support/paid-tollgate.ts';
import { startProcess, temporaryFolder, type TollgateProcess } from '../support/process.ts';
import { isPooled } from '../postgres/pooler.ts';
import { hasPostgres } from '../postgres/server.ts';
import { freshDatabase, stopSharedPostgres } from '../postgres/store.ts';

const SECRET = 'a-secret-of-the-test-of-at-least-32-bytes';
const [LEDGER_KEY, SDK_KEY] = ['a-ledger-key-of-the-test', 'an-sdk-key-of-the-test'];
const PRICE = 100_000n;

type Counts = Record<string, number>;
type Overview = {
  readonly requests: Counts;
  readonly revenue: readonly { readonly currency: string; readonly amount: string }[];
  readonly sync: Counts;
  readonly overhead_ms: { readonly p50: number; readonly p99: number } | null;
};

const KEYS = `jwt: { secret: ${SECRET} }, api_keys: [{ name: l, key: ${LEDGER_KEY}, scopes: [sdk, ledger] }, { name: s, key: ${SDK_KEY}, scopes: [sdk] }]`;
const SHAPES = [
  {
    name: 'an all-in-one with sidecars',
    registry: async () => `store: sqlite:data/tollgate.db, ${KEYS}`,
    more: '',
    sidecars: true,
  },
  {
    name: 'two workers',
    registry: async () => `store: sqlite:data/tollgate.db, ${KEYS}`,
    more: 'workers: 2',
    sidecars: false,
  },
  ...(hasPostgres
    ? [
        {
          name: 'an all-in-one on PostgreSQL',
          registry: async () =>
            `store: { url: "${await freshDatabase()}", timeout: 30s, pooler: ${isPooled} }, ${KEYS}`,
          ...{ more: '', sidecars: false },
        },
      ]
    : []),
];

afterAll(stopSharedPostgres);

describe.each(SHAPES)('$name', ({ registry, more, sidecars }) => {
  let paid: PaidTollgate;
  let token = '';
  const files = temporaryFolder();
  const others: TollgateProcess[] = [];
  const expected: Counts = {
    ...{ free: 0, paid: 0, payment_required: 0, refused: 0, error: 0, released: 0, discovery: 0 },
    ...{ observed: 0, customer: 0, pass: 0, quota: 0 },
  };
  let settled = 0n;

  beforeAll(async () => {
    paid = await startPaidTollgate({
      routes: ['GET /paid 0.10', 'GET /missing 0.10', 'GET /other 0.10'],
      registry: await registry(),
      more: `${more}\ncharges: { secrets: [${SECRET}] }`,
      handle: (req, res) => {
        req.resume();
        if (req.url === '/missing') res.writeHead(404).end('nothing here');
        else if (req.url === '/broken') res.destroy();
        else res.end('an answer');
      },
    });
    token = await paid.cli('token');
  }, 180_000);
  afterAll(async () => {
    for (const each of others) await each.kill();
    files.remove();
    await paid?.stop();
  });

  const ask = async <T>(path: string): Promise<T> => {
    const headers = { authorization: `Bearer ${token}` };
    const response = await fetch(`${paid.tollgate().url('registry')}/v1/billing/${path}`, { headers });
    expect([path, response.status]).toEqual([path, 200]);
    return (await response.json()) as T;
  };
  const count = (outcome: string, requests = 1): void => void (expected[outcome] = (expected[outcome] ?? 0) + requests);
  const get = async (url: string, status: number): Promise<void> => {
    const response = await fetch(url);
    await response.arrayBuffer();
    expect([url, response.status]).toEqual([url, status]);
  };
  const pay = async (target: string, status: number): Promise<void> => {
    const credential = await paid.sign(await paid.quote(target));
    count('payment_required');
    const response = await paid.pay(target, credential);
    await response.arrayBuffer();
    expect([target, response.status]).toEqual([target, status]);
  };
  const payForIt = async (target: string): Promise<void> => {
    await pay(target, 200);
    count('paid');
    settled += PRICE;
  };
  const whenCounted = (outcomes: Counts): Promise<Overview> =>
    until(`the overview has ${JSON.stringify(outcomes)}`, async () => {
      const overview = await ask<Overview>('overview');
      const has = Object.entries(outcomes).every(([name, requests]) => overview.requests[name] === requests);
      return has ? overview : undefined;
    }).catch(async (error: unknown) => {
      throw new Error(`it has ${JSON.stringify((await ask<Overview>('overview')).requests)}`, { cause: error });
    });
  const revenueOf = ({ revenue }: Overview): string =>
    revenue.find(({ currency }) => currency === 'USD')?.amount ?? '0';
  const inUsd = (units: bigint): string => (Number(units) / 1e6).toFixed(2);

  test('behaviour: every request is counted under its outcome, and all answers say the same', async () => {
    for (let n = 0; n < 7; n++) await get(paid.url('/free'), 200);
    count('free', 7);
    for (let n = 0; n < 3; n++) await get(paid.url('/other'), 402);
    count('payment_required', 3);
    await payForIt('/paid');
    await payForIt('/paid');
    await payForIt('/other');
    await pay('/missing', 404);
    count('released');
    await get(paid.url('/a%2fb'), 400);
    count('refused');
    await get(paid.url('/broken'), 502);
    count('error');

    const overview = await whenCounted(expected);
    expect([overview.requests, revenueOf(overview)]).toEqual([expected, inUsd(settled)]);
    expect(await paid.earned()).toBe(settled);
    expect(overview.overhead_ms?.p50).toBeGreaterThan(0);
    for (const step of ['minute', 'hour', 'day']) {
      const from = step === 'minute' ? `&from=${new Date(Date.now() - 3_600_000).toISOString()}` : '';
      const series = await ask<{ requests: Record<string, number[]>; revenue: { amounts: string[] }[] }>(
        `series?step=${step}${from}`,
      );
      const sums = Object.entries(series.requests).map(([name, column]) => [name, column.reduce((a, b) => a + b, 0)]);
      expect(Object.fromEntries(sums)).toEqual(expected);
      const amounts = series.revenue.flatMap((each) => each.amounts).map(Number);
      expect(amounts.reduce((a, b) => a + b, 0).toFixed(2)).toBe(inUsd(settled));
    }
    type Top = {
      route: { route_pattern: string };
      requests: Counts;
      revenue: { amount: string }[];
      conversion: number;
    };
    const { data } = await ask<{ data: Top[] }>('top-routes?by=revenue&currency=USD');
    const seen = data.map(({ route, requests, revenue, conversion }) => [
      ...[route.route_pattern, requests['paid'], requests['payment_required'], requests['released']],
      ...[revenue[0]?.amount, conversion],
    ]);
    expect(seen).toEqual([
      ['/paid', 2, 2, 0, '0.20', 1],
      ['/other', 1, 4, 0, '0.10', 0.25],
      ['/missing', 0, 1, 1, '0', 0],
    ]);
  }, 90_000);

  test.skipIf(!sidecars)(
    'behaviour: a sidecar hands its counts over; one whose key lacks the scope counts for itself, and says so',
    async () => {
      const start = async (name: string, key: string): Promise<TollgateProcess> => {
        const url = paid.tollgate().url('registry');
        const text = [
          `proxy: { listen: 127.0.0.1:0, upstream: ${paid.upstream.url}, timeouts: { drain_delay: 0s, drain: 5s } }`,
          `sync: { registry_url: "${url}", api_key: ${key}, snapshot_file: ${name}/routes.json, poll_interval: 1s }`,
          `admin: { listen: 127.0.0.1:0 }\ncharges: { secrets: [${SECRET}] }\n`,
        ].join('\n');
        const sidecar = await startProcess({
          args: ['serve', '-c', files.write(`${name}.yaml`, text)],
          cwd: files.folder,
        });
        others.push(sidecar);
        // It listens before it has routes, and a request until then would count as refused.
        await sidecar.line(({ msg }) => msg === 'routes synced');
        return sidecar;
      };
      const [counting, alone] = [await start('counting', LEDGER_KEY), await start('alone', SDK_KEY)];
      await get(`${counting.url('proxy')}/free`, 200);
      count('free');
      await get(`${alone.url('proxy')}/free`, 200);
      await alone.line(({ level, msg }) => level === 'warn' && msg.includes('counts for itself alone'));
      expect((await whenCounted(expected)).sync).toEqual({ sidecars: 2, stale: 0, uncounted: 1, lost: 0 });
      // What it has not handed over yet is handed over at its stop.
      await get(`${counting.url('proxy')}/free`, 200);
      count('free');
      counting.signal('SIGTERM');
      expect(await counting.exited).toBe(0);
      alone.signal('SIGTERM');
      await alone.exited;
      expect((await ask<Overview>('overview')).requests).toEqual(expected);
    },
    90_000,
  );

  test('behaviour: an orderly stop loses no count; kill -9 loses counts of ten seconds, and no money', async () => {
    for (let n = 0; n < 4; n++) await get(paid.url('/free'), 200);
    count('free', 4);
    const ended = paid.tollgate();
    ended.signal('SIGTERM');
    expect(await ended.exited).toBe(0);
    await paid.restart();
    expect((await ask<Overview>('overview')).requests).toEqual(expected);

    const before = { ...expected };
    await payForIt('/paid');
    await get(paid.url('/free'), 200);
    await paid.restart();
    const overview = await ask<Overview>('overview');
    expect(revenueOf(overview)).toBe(inUsd(settled));
    expect(await paid.earned()).toBe(settled);
    for (const [outcome, requests] of Object.entries(before)) {
      expect(overview.requests[outcome]).toBeGreaterThanOrEqual(requests);
      expect(overview.requests[outcome]).toBeLessThanOrEqual((expected[outcome] ?? 0) + 1);
    }
  }, 90_000);
});
