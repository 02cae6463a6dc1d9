// What is told of several workers as of one process: metrics, refusals, log lines; also when one of them is killed.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { COMMANDS } from '../../src/cli/commands.ts';
import { runCommandLine } from '../../src/cli/dispatch.ts';
import { fakeIo } from '../cli/support.ts';
import { until } from '../support/paid-tollgate.ts';
import { startProcess, temporaryFolder, type LogLine, type TollgateProcess } from '../support/process.ts';
import { openRaw } from '../support/raw-client.ts';
import { startUpstream, type Upstream } from '../support/upstream.ts';

const MAX_ROUTES = 2;
const ROUTES = 5;
const CLIENTS = 12;

const files = temporaryFolder();
let upstream: Upstream;
let tollgate: TollgateProcess;
let config: string;
beforeAll(async () => {
  upstream = await startUpstream();
  const routes = Array.from({ length: ROUTES }, (_, at) => `{ route_pattern: "/paid${at}/*", amount: "0.10" }`);
  config = files.write(
    'tollgate.yaml',
    [
      'workers: 2',
      `proxy: { listen: 127.0.0.1:0, upstream: "${upstream.url}" }`,
      'registry: { listen: 127.0.0.1:0, store: "sqlite:data/t.db", jwt: { secret: a-secret-of-the-told-test-32-bytes } }',
      'admin: { listen: 127.0.0.1:0 }',
      `receivers: [{ id: default, network: base-sepolia, rpc_url: none, pay_to_address: "0x${'1'.repeat(40)}", facilitators: [http://127.0.0.1:1] }]`,
      `routes: [${routes.join(', ')}]`,
      `metrics: { max_routes: ${MAX_ROUTES} }`,
    ].join('\n'),
  );
  tollgate = await startProcess({ args: ['serve', '-c', config], listeners: ['proxy', 'registry', 'admin'] });
  for (const worker of [1, 2]) await tollgate.line(isReady(worker));
}, 120_000);
afterAll(async () => {
  await tollgate?.kill();
  await upstream.close();
  files.remove();
});

const isReady = (worker: number) => (line: LogLine) => line.msg === 'a worker is ready' && line['number'] === worker;

/** Each over a connection of its own, all at a time: the workers share them. Resolves with the statuses. */
async function ask(requests: readonly { readonly target: string; readonly id: string }[]): Promise<number[]> {
  const clients = await Promise.all(requests.map(() => openRaw(tollgate.port('proxy'))));
  try {
    return await Promise.all(
      clients.map(async (client, at) => {
        const { target = '', id = '' } = requests[at] ?? {};
        client.send(`GET ${target} HTTP/1.1\r\nHost: h\r\nX-Request-Id: ${id}\r\n\r\n`);
        return (await client.answer()).status;
      }),
    );
  } finally {
    for (const client of clients) client.close();
  }
}

const some = (name: string, target: (at: number) => string): { readonly target: string; readonly id: string }[] =>
  Array.from({ length: CLIENTS }, (_, at) => ({ target: target(at), id: `${name}-${at}` }));

async function metrics(): Promise<string> {
  return (await fetch(`${tollgate.url('admin')}/metrics`)).text();
}

/** The series of counters and histograms, which never become less. */
function counted(text: string): Map<string, number> {
  const kinds = new Map([...text.matchAll(/^# TYPE (\S+) (\S+)$/gm)].map(([, name = '', kind = '']) => [name, kind]));
  const series = new Map<string, number>();
  for (const [, name = '', labels = '', value = ''] of text.matchAll(/^([a-z]\w*)(\{.*\})? (\S+)$/gm)) {
    const kind = kinds.get(name) ?? kinds.get(name.replace(/_(bucket|sum|count)$/, ''));
    if (kind === 'counter' || kind === 'histogram') series.set(name + labels, Number(value));
  }
  return series;
}

const requestsIn = (text: string): number =>
  [...counted(text)].reduce((sum, [name, value]) => sum + (name.startsWith('tollgate_requests_total{') ? value : 0), 0);

const whoServed = (name: string): Set<unknown> =>
  new Set(
    tollgate.lines
      .filter(({ msg, request_id: id }) => msg === 'request' && String(id).startsWith(`${name}-`))
      .map(({ worker }) => worker),
  );

let asked = 0;
async function askAndCount(name: string, target: (at: number) => string): Promise<number[]> {
  const statuses = await ask(some(name, target));
  asked += statuses.length;
  await until('all are counted', async () => requestsIn(await metrics()) === asked, 60_000);
  return statuses;
}

test('behaviour: one /metrics counts what all workers served, also what one had served that is killed', async () => {
  const free = await askAndCount('free', () => '/free');
  expect(free).toEqual(free.map(() => 200));
  const paid = await askAndCount('paid', (at) => `/paid${at % ROUTES}/x`);
  expect(paid).toEqual(paid.map(() => 402));
  await until('both workers served some', async () => whoServed('free').size === 2 && whoServed('paid').size === 2);

  const backwards: string[] = [];
  const over = new AbortController();
  const watch = async (): Promise<void> => {
    let last = counted(await metrics());
    while (!over.signal.aborted) {
      const now = counted(await metrics());
      for (const [name, value] of last)
        if (!((now.get(name) ?? 0) >= value)) backwards.push(`${name}: ${value}, then ${now.get(name)}`);
      last = now;
    }
  };
  const watched = watch();
  const { pid } = await tollgate.line(isReady(1));
  process.kill(Number(pid), 'SIGKILL');
  await tollgate.line(({ msg, number }) => msg === 'a worker ended and is replaced' && number === 1);
  await until(
    'its successor is ready',
    async () =>
      tollgate.lines.filter(isReady(1)).length === 2 && (await metrics()).includes('workers{state="ready"} 2'),
    60_000,
  );
  await askAndCount('again', (at) => (at % 2 === 0 ? '/free' : `/paid${at % ROUTES}/x`));
  over.abort();
  await watched;
  expect(backwards).toEqual([]);

  const text = await metrics();
  expect(text).toMatch(/^tollgate_worker_restarts_total\{reason="signal"\} 1$/m);
  expect(text).toMatch(/^tollgate_worker_restarts_total\{reason="stalled"\} 0$/m);
  expect(text).toMatch(/^tollgate_requests_total\{outcome="free",code="200",route_id="",listener="proxy"\} 18$/m);
  expect(text).toMatch(/^tollgate_build_info\{.*\} 1$/m);
  expect(text).toMatch(/^tollgate_routes\{status="active"\} 5$/m);
  expect(text).not.toContain('tollgate_sync_');
  const ids = [...new Set([...text.matchAll(/route_id="([^"]*)"/g)].map((match) => match[1]))];
  expect(ids.filter((id) => id !== 'other' && id !== '')).toHaveLength(MAX_ROUTES);
  expect([...text.matchAll(/^tollgate_route_info\{/gm)]).toHaveLength(MAX_ROUTES);
}, 120_000);

test('behaviour: why knows a refusal at once, whichever worker it was', async () => {
  const requests = some('why', (at) => `/paid${at % ROUTES}/why`);
  await ask(requests);
  for (const { id, target } of requests) {
    const io = fakeIo({ folder: '/nowhere' });
    expect([id, await runCommandLine(['why', id, '-c', config], COMMANDS, io)]).toEqual([id, 0]);
    expect(io.stdout()).toContain(`GET ${target}\n  because: no payment was presented (payment_required)`);
  }
  const io = fakeIo({ folder: '/nowhere' });
  await runCommandLine(['token', '-c', config], COMMANDS, io);
  const url = `${tollgate.url('registry')}/v1/billing/why/why-1`;
  const response = await fetch(url, { headers: { authorization: `Bearer ${io.stdout().trim()}` } });
  expect(await response.json()).toMatchObject({ refusals: [{ request_id: 'why-1' }], refusals_elsewhere: false });
  await until('both workers are in the log', async () => whoServed('why').size === 2);
}, 60_000);

test('behaviour: every log line of a worker is JSON, names its process, and is cut before it is over 4,000 bytes', async () => {
  const path = `/${'long'.repeat(1500)}`;
  await ask(some('long', () => path));
  const lines = await until('all are logged', async () => {
    const found = tollgate.lines.filter(({ request_id: id }) => String(id).startsWith('long-'));
    return found.length === CLIENTS && found;
  });
  for (const line of lines) {
    expect(line['path']).toBe(`${path.slice(0, 2048)}…`);
    expect(line).toMatchObject({ status: 200, outcome: 'free' });
  }
  for (const line of tollgate.lines) {
    expect([0, 1, 2]).toContain(line['worker']);
    expect(Buffer.byteLength(`${JSON.stringify(line)}\n`)).toBeLessThanOrEqual(4000);
  }
}, 60_000);
