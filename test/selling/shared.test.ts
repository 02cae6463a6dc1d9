// Free requests over two workers and a sidecar on one ledger, as processes of their own: all together they give what there is, and
// what plans did is counted in one place.
import { afterAll, expect, test } from 'vitest';
import { createHash } from 'node:crypto';
import { mintToken } from '../../src/registry/auth/dashboard-tokens.ts';
import { startProcess, temporaryFolder, type TollgateProcess } from '../support/process.ts';
import { startUpstream } from '../support/upstream.ts';

const files = temporaryFolder();
const running: TollgateProcess[] = [];
afterAll(async () => {
  await Promise.all(running.map((each) => each.kill()));
  files.remove();
});

const UNTIL = new Date(Date.now() + 86_400_000).toISOString();
const SECRET = 'a-secret-of-shared-counters-of-32-bytes';
const KEY = 'a-key-of-shared-counters-1';
const FREE = 20;
const JWT_SECRET = 'a-secret-of-dashboard-tokens-32-bytes';
const PARTNER = 'a-key-of-a-partner-0001';
const keysFile = files.write('keys.txt', `${createHash('sha256').update(PARTNER).digest('hex')} acme\n`);

test('behaviour: two workers and a sidecar on one ledger give a client no more free requests than there are', async () => {
  const upstream = await startUpstream();
  const common = [
    `receivers: [{ id: default, network: base-sepolia, rpc_url: none, pay_to_address: "0x${'1'.repeat(40)}", facilitators: [http://127.0.0.1:1] }]`,
    `charges: { secrets: [${SECRET}] }`,
    'selling:',
    `  plans: [{ id: default, customers: [partners], free: { requests: ${FREE}, window: month } }, { id: dry, observe: { until: "${UNTIL}" } }]`,
    `  customers: [{ id: partners, header: X-Api-Key, keys_file: ${keysFile} }]`,
    'admin: { listen: 127.0.0.1:0 }',
  ];
  const start = async (
    name: string,
    lines: readonly string[],
    listeners: readonly string[],
  ): Promise<TollgateProcess> => {
    const file = files.write(`${name}.yaml`, [...lines, ...common].join('\n'));
    const started = await startProcess({ args: ['serve', '-c', file], listeners: [...listeners, 'admin'] });
    running.push(started);
    return started;
  };
  const proxy = `proxy: { listen: 127.0.0.1:0, upstream: ${upstream.url}, timeouts: { drain_delay: 0s } }`;
  const own = await start(
    'own',
    [
      ...[
        proxy,
        'workers: 2',
        'routes: [{ route_pattern: "/paid/*", method: GET, amount: "0.10" }, { route_pattern: /dry, method: GET, amount: "0.125", plan_id: dry }]',
      ],
      `registry: { listen: 127.0.0.1:0, store: sqlite:shared/tollgate.db, api_keys: [{ name: s, key: ${KEY}, scopes: [sdk, ledger] }], jwt: { secret: ${JWT_SECRET} } }`,
    ],
    ['proxy', 'registry'],
  );
  const sidecar = await start(
    'sidecar',
    [
      proxy,
      `sync: { registry_url: ${own.url('registry')}, api_key: ${KEY}, snapshot_file: "${files.folder}/routes.json" }`,
    ],
    ['proxy'],
  );
  const statusOf = async (url: string, path = '/paid/a', headers: Record<string, string> = {}): Promise<number> => {
    const answer = await fetch(`${url}${path}`, { headers: { connection: 'close', ...headers } });
    await answer.arrayBuffer();
    return answer.status;
  };
  await expect.poll(() => statusOf(sidecar.url('proxy')), { timeout: 30_000 }).not.toBe(503);
  const used = upstream.seen.length;
  const statuses = await Promise.all(
    Array.from({ length: 3 * FREE }, (_, n) => statusOf((n % 2 === 0 ? own : sidecar).url('proxy'))),
  );
  expect(statuses.filter((status) => status === 200)).toHaveLength(FREE - used);
  expect(statuses.filter((status) => status === 402)).toHaveLength(2 * FREE + used);
  expect(upstream.seen).toHaveLength(FREE);
  expect(upstream.seen.every(({ headers }) => headers['tollgate-access'] === 'free')).toBe(true);
  // What all of them counted is in the sums ten seconds later.
  for (const { url } of [own, sidecar])
    for (const [path, key] of [
      ['/dry', ''],
      ['/paid/a', PARTNER],
      ['/paid/a', 'made-up-key-of-nobody-1'],
    ] as const)
      await statusOf(url('proxy'), path, key === '' ? {} : { 'X-Api-Key': key });
  const terms = { issuer: 'tollgate', audience: 'dashboard', ttlSeconds: 600, now: Date.now() };
  const authorization = `Bearer ${await mintToken(JWT_SECRET, terms)}`;
  type Plan = { id: string; requests: Record<string, number>; would_charge: unknown[] };
  type Listed = { data: Plan[]; customers: { requests: Record<string, number>; names: unknown[] }[] };
  const listed = async (): Promise<unknown> => {
    const answer = await fetch(`${own.url('registry')}/v1/billing/plans`, { headers: { authorization } });
    const { data, customers } = (await answer.json()) as Listed;
    const [free, dry] = [data.find(({ id }) => id === 'default'), data.find(({ id }) => id === 'dry')];
    const [partners] = customers;
    return [
      [free?.requests['quota'], free?.requests['customer'], dry?.requests['observed'], dry?.would_charge],
      [partners?.requests['known'], partners?.requests['unknown'], partners?.names],
    ];
  };
  await expect.poll(listed, { timeout: 30_000 }).toEqual([
    [FREE, 2, 2, [{ currency: 'USD', amount: '0.25', requests: 2 }]],
    [2, 2, [{ name: 'acme', requests: 2 }]],
  ]);
  await upstream.close();
}, 60_000);
