// Ready means: could take a payment. Real processes on a disk that is really full (a limit of the kernel on what the process
// may write), whose data folder is really gone, and before registries whose key may and may not.
import { execFileSync, spawnSync } from 'node:child_process';
import { rmSync, statSync } from 'node:fs';
import path from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { until } from '../support/paid-tollgate.ts';
import { startProcess, temporaryFolder, type TollgateProcess } from '../support/process.ts';
import { startUpstream, type Upstream } from '../support/upstream.ts';

const files = temporaryFolder();
const running: TollgateProcess[] = [];
let upstream: Upstream;
let made = 0;

beforeAll(async () => {
  upstream = await startUpstream();
});
afterEach(async () => {
  await Promise.all(running.splice(0).map((tollgate) => tollgate.kill()));
});
afterAll(async () => {
  await upstream.close();
  files.remove();
});

const SECRET = 'a-secret-of-the-readiness-test-32-bytes';
const KEYS = { both: 'a-key-of-both-scopes-1', sdk: 'a-key-of-the-scope-sdk-1' };
const RECEIVERS = `receivers: [{ id: default, network: base-sepolia, pay_to_address: "0x${'1'.repeat(40)}", facilitators: [http://127.0.0.1:1], rpc_url: none }]`;

type Started = { readonly tollgate: TollgateProcess; readonly folder: string };

async function start(lines: readonly string[], listeners: readonly string[]): Promise<Started> {
  const folder = path.join(files.folder, `d${made++}`);
  const text = lines.map((line) => line.replaceAll('FOLDER', folder)).join('\n');
  const file = files.write(`t${made}.yaml`, `${text}\nadmin: { listen: 127.0.0.1:0 }\n`);
  const tollgate = await startProcess({ args: ['serve', '-c', file], listeners: [...listeners, 'admin'] });
  running.push(tollgate);
  return { tollgate, folder };
}

const proxy = (): string => `proxy: { listen: 127.0.0.1:0, upstream: ${upstream.url} }`;
const registry = (): string =>
  `registry: { listen: 127.0.0.1:0, store: "sqlite:FOLDER/tollgate.db", jwt: { secret: ${SECRET} }, api_keys: [{ name: a, key: ${KEYS.both}, scopes: [sdk, ledger] }, { name: b, key: ${KEYS.sdk}, scopes: [sdk] }] }`;
const allInOne = (): Promise<Started> => start([proxy(), registry(), RECEIVERS], ['proxy', 'registry']);
const registryAlone = (): Promise<Started> => start([registry()], ['registry']);
const sidecar = (of: TollgateProcess, key: string, charges = ''): Promise<Started> =>
  start(
    [
      proxy(),
      `sync: { registry_url: ${of.url('registry')}, api_key: ${key}, snapshot_file: "FOLDER/routes.json", poll_interval: 1s }`,
      `charges: { secrets: [${SECRET}]${charges} }`,
      RECEIVERS,
    ],
    ['proxy'],
  );

type Ready = {
  readonly status: number;
  readonly checks: Readonly<Record<string, { readonly ok: boolean; readonly detail: string }>>;
};

async function ready({ tollgate }: Started): Promise<Ready> {
  const response = await fetch(`${tollgate.url('admin')}/readyz?verbose`);
  const { checks } = (await response.json()) as { checks: { name: string; ok: boolean; detail: string }[] };
  return { status: response.status, checks: Object.fromEntries(checks.map(({ name, ...rest }) => [name, rest])) };
}

const becomes = (started: Started, status: number): Promise<Ready> =>
  until(`ready says ${status}`, async () => {
    const seen = await ready(started);
    return seen.status === status && seen;
  });

async function possible({ tollgate }: Started): Promise<string | undefined> {
  const text = await (await fetch(`${tollgate.url('admin')}/metrics`)).text();
  return /^tollgate_payments_possible (\d)$/m.exec(text)?.[1];
}

const limited = spawnSync('prlimit', ['--version']).status === 0;

/** From now on nothing of the process may grow a file; undefined lifts it. The hard limit stays, so that it can be lifted. */
function limitFiles({ tollgate }: Started, bytes: number | undefined): void {
  execFileSync('prlimit', ['--pid', String(tollgate.pid), `--fsize=${bytes ?? 'unlimited'}:unlimited`]);
}

const SHAPES: [string, () => Promise<Started>, string][] = [
  ['all-in-one', allInOne, 'tollgate.db'],
  ['a registry', registryAlone, 'tollgate.db'],
  [
    'a sidecar with a store of its own',
    async () => sidecar((await registryAlone()).tollgate, KEYS.sdk, ', store: "sqlite:FOLDER/charges.db"'),
    'charges.db',
  ],
];

describe.each(SHAPES)('%s', { timeout: 60_000 }, (_shape, launch, file) => {
  test.skipIf(!limited)('behaviour: a server whose disk is full is not ready until that is over', async () => {
    const started = await launch();
    expect((await becomes(started, 200)).checks['store']).toEqual({ ok: true, detail: 'the store takes writes' });
    expect(await possible(started)).toBe('1');
    limitFiles(started, 0);
    const full = await becomes(started, 503);
    expect(full.checks['store']?.detail).toMatch(/^the store does not take writes: \S/);
    expect(await possible(started)).toBe('0');
    limitFiles(started, undefined);
    await becomes(started, 200);
    expect(await possible(started)).toBe('1');
    const told = started.tollgate.lines.map(({ msg }) => msg).filter((msg) => msg.startsWith('the store takes'));
    expect([told.at(0), told.at(-1)]).toEqual(['the store takes no writes', 'the store takes writes again']);
  });

  test('behaviour: a server is not ready once its data folder is gone', async () => {
    const started = await launch();
    await becomes(started, 200);
    rmSync(started.folder, { recursive: true });
    const gone = await becomes(started, 503);
    expect(gone.checks['store']?.detail).toMatch(/taken away or replaced|is gone/);
  });

  test('behaviour: a server that is often asked whether it is ready writes once in five seconds', async () => {
    const started = await launch();
    await becomes(started, 200);
    const wal = path.join(started.folder, `${file}-wal`);
    const before = statSync(wal).size;
    for (let i = 0; i < 100; i++) expect((await ready(started)).status).toBe(200);
    // A page and its header, twice where the five seconds ended meanwhile.
    expect(statSync(wal).size - before).toBeLessThanOrEqual(2 * (4096 + 24));
  });
});

describe('a sidecar whose registry keeps the charges', { timeout: 60_000 }, () => {
  test('behaviour: a sidecar is not ready with a key that lacks the scope ledger, which it names', async () => {
    const { tollgate } = await registryAlone();
    const without = await sidecar(tollgate, KEYS.sdk);
    await until('routes', async () => (await ready(without)).checks['routes']?.ok);
    const { status, checks } = await ready(without);
    expect(status).toBe(503);
    expect(checks['payments']?.detail).toContain('the key lacks the scope ledger');
    expect(await possible(without)).toBe('0');
    const plain = await fetch(`${without.tollgate.url('admin')}/readyz`);
    expect([plain.status, await plain.text()]).toEqual([503, 'not ready: payments\n']);
  });

  test('behaviour: a sidecar that worked once stays ready, whatever the ledger says later, and says so', async () => {
    const there = await registryAlone();
    const started = await sidecar(there.tollgate, KEYS.both);
    expect((await becomes(started, 200)).checks['payments']?.ok).toBe(true);
    expect(await possible(started)).toBe('1');
    await there.tollgate.kill();
    const away = await until('payments are named', async () => {
      const seen = await ready(started);
      return seen.checks['payments']?.ok === false && seen;
    });
    expect(away.status).toBe(200);
    expect(await possible(started)).toBe('0');
    const told = await started.tollgate.line(({ msg }) =>
      msg.startsWith('the ledger of the registry takes no payments'),
    );
    expect(told.level).toBe('error');
  });
});

describe('a registry by itself', { timeout: 60_000 }, () => {
  test('behaviour: a registry alone counts its requests, refused sign-ins, streams, sidecars, charges and bytes', async () => {
    const there = await registryAlone();
    const beside = await sidecar(there.tollgate, KEYS.both);
    await becomes(beside, 200);
    const routes = `${there.tollgate.url('registry')}/v1/protected-routes/routes`;
    await (await fetch(routes)).arrayBuffer();
    await (await fetch(`${there.tollgate.url('registry')}/nowhere`)).arrayBuffer();
    const wanted = [
      /^tollgate_registry_requests_total\{endpoint="getRouteSet",code="200"\} [1-9]/m,
      /^tollgate_registry_requests_total\{endpoint="getRouteSet",code="401"\} 1$/m,
      /^tollgate_registry_requests_total\{endpoint="none",code="404"\} 1$/m,
      /^tollgate_registry_sign_ins_refused_total\{kind="api_key"\} 1$/m,
      /^tollgate_event_streams 1$/m,
      /^tollgate_sidecars 1$/m,
      /^tollgate_store_bytes\{file="tollgate.db"\} [1-9]/m,
      /^tollgate_store_free_bytes [1-9]/m,
      /^tollgate_store_volume_bytes [1-9]/m,
      /^tollgate_charges\{state="settling"\} 0$/m,
      /^tollgate_payments_possible 1$/m,
    ];
    await until('every series is there', async () => {
      const text = await (await fetch(`${there.tollgate.url('admin')}/metrics`)).text();
      return wanted.every((line) => line.test(text));
    });
  });
});
