// Free requests over two workers and a sidecar on one ledger, as processes of their own: all together they give what there is.
import { afterAll, expect, test } from 'vitest';
import { startProcess, temporaryFolder, type TollgateProcess } from '../support/process.ts';
import { startUpstream } from '../support/upstream.ts';

const files = temporaryFolder();
const running: TollgateProcess[] = [];
afterAll(async () => {
  await Promise.all(running.map((each) => each.kill()));
  files.remove();
});

const SECRET = 'a-secret-of-shared-counters-of-32-bytes';
const KEY = 'a-key-of-shared-counters-1';
const FREE = 20;

test('behaviour: two workers and a sidecar on one ledger give a client no more free requests than there are', async () => {
  const upstream = await startUpstream();
  const common = [
    `receivers: [{ id: default, network: base-sepolia, rpc_url: none, pay_to_address: "0x${'1'.repeat(40)}", facilitators: [http://127.0.0.1:1] }]`,
    `charges: { secrets: [${SECRET}] }`,
    `selling: { plans: [{ id: default, free: { requests: ${FREE}, window: month } }] }`,
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
      ...[proxy, 'workers: 2', 'routes: [{ route_pattern: "/paid/*", method: GET, amount: "0.10" }]'],
      `registry: { listen: 127.0.0.1:0, store: sqlite:shared/tollgate.db, api_keys: [{ name: s, key: ${KEY}, scopes: [sdk, ledger] }] }`,
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
  const statusOf = async (url: string): Promise<number> => {
    const answer = await fetch(`${url}/paid/a`, { headers: { connection: 'close' } });
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
  await upstream.close();
}, 60_000);
