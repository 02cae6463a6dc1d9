// What goes on when something is away, row by row, with real processes: what is away is killed, stopped in its tracks, replaced or broken
// while traffic flows. Whatever happens free routes go on, unpaid requests get their 402, and nothing reaches the upstream
// unpaid: the upstream itself counts.
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { createServer, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest';
import { freePort } from '../support/free-port.ts';
import { startProcess, temporaryFolder, type TollgateProcess } from '../support/process.ts';
import { startUpstream, type Upstream } from '../support/upstream.ts';

const KEY = 'the-api-key-of-the-sidecar';
const files = temporaryFolder();
const running = new Set<TollgateProcess>();
const closers: (() => Promise<void>)[] = [];
let upstream: Upstream;

beforeAll(async () => {
  upstream = await startUpstream();
});
afterEach(() => {
  expect(upstream.seen.filter(({ url }) => url.startsWith('/paid'))).toEqual([]);
});
afterAll(async () => {
  await Promise.all([...running].map((one) => one.kill()));
  for (const close of closers) await close();
  await upstream?.close();
  files.remove();
});

async function launch(file: string, listeners: readonly string[]): Promise<TollgateProcess> {
  const started = await startProcess({ args: ['serve', '-c', file], listeners });
  running.add(started);
  return started;
}

async function end(process: TollgateProcess): Promise<void> {
  running.delete(process);
  await process.kill();
}

const RECEIVERS = `receivers: [{ id: default, network: base-sepolia, rpc_url: none, pay_to_address: "0x1111111111111111111111111111111111111111", facilitators: [http://127.0.0.1:1] }]`;
const SECRETS = 'charges: { secrets: [a secret of more than thirty-two bytes] }';

function registryFile(name: string, port: number): string {
  return files.write(
    `${name}.yaml`,
    [
      `registry: { listen: 127.0.0.1:${port}, store: "sqlite:${name}/tollgate.db", jwt: { secret: "a secret of thirty-two bytes, or more" }, api_keys: [{ name: s, key: ${KEY}, scopes: [sdk, ledger] }] }`,
      'admin: { listen: 127.0.0.1:0 }',
      SECRETS,
    ].join('\n'),
  );
}

type SidecarOptions = {
  readonly name: string;
  readonly registry: number;
  readonly pollInterval?: string;
  readonly emptyAfter?: string;
  readonly sync?: string;
  readonly to?: string;
  /** A ledger of its own: the registry keeps none, or is away from the start. */
  readonly store?: true;
  /** How long the upstream may take; what is not about that leaves it the time that a busy machine takes. */
  readonly headers?: string;
};

function sidecarFile({
  name,
  registry,
  pollInterval = '200ms',
  emptyAfter = '3s',
  sync = '',
  to = upstream.url,
  store,
  headers = '30s',
}: SidecarOptions): string {
  return files.write(
    `${name}.yaml`,
    [
      `proxy: { listen: 127.0.0.1:0, upstream: ${to}, timeouts: { drain_delay: 0s, headers: ${headers} } }`,
      `sync: { registry_url: http://127.0.0.1:${registry}, api_key: ${KEY}, poll_interval: ${pollInterval}, snapshot_file: ${name}/routes.json, empty_after: ${emptyAfter}, ${sync} }`,
      'admin: { listen: 127.0.0.1:0 }',
      store === undefined ? SECRETS : SECRETS.replace(' }', `, store: "sqlite:${name}/charges.db" }`),
      RECEIVERS,
    ].join('\n'),
  );
}

const startSidecar = (options: SidecarOptions): Promise<TollgateProcess> =>
  launch(sidecarFile(options), ['proxy', 'admin']);

const register = (port: number, route_pattern: string, amount = '0.10'): Promise<Response> =>
  fetch(`http://127.0.0.1:${port}/v1/protected-routes/routes/register`, {
    method: 'POST',
    headers: { authorization: `Bearer ${KEY}`, 'content-type': 'application/json' },
    body: JSON.stringify({ route_pattern, method: 'GET', amount }),
  });

async function statusOf(
  sidecar: TollgateProcess,
  target: string,
  headers: Record<string, string> = {},
): Promise<number> {
  const response = await fetch(`${sidecar.url('proxy')}${target}`, { headers });
  await response.arrayBuffer();
  return response.status;
}

async function priceOf(sidecar: TollgateProcess, target: string): Promise<string> {
  const response = await fetch(`${sidecar.url('proxy')}${target}`);
  const body = (await response.json()) as { amount?: string };
  return response.status === 402 ? (body.amount ?? '') : String(response.status);
}

type Ready = { readonly status: number; readonly detail: string; readonly failing: readonly string[] };

/** What /readyz says, with the words of its check `name`. */
async function readiness(of: TollgateProcess, name = 'routes'): Promise<Ready> {
  const response = await fetch(`${of.url('admin')}/readyz?verbose`);
  const { checks } = (await response.json()) as { checks: { name: string; ok: boolean; detail: string }[] };
  return {
    status: response.status,
    detail: checks.find((check) => check.name === name)?.detail ?? '',
    failing: checks.filter(({ ok }) => !ok).map((check) => check.name),
  };
}

async function metric(of: TollgateProcess, series: string): Promise<number> {
  const text = await (await fetch(`${of.url('admin')}/metrics`)).text();
  const line = text.split('\n').find((candidate) => candidate.startsWith(`${series} `));
  return line === undefined ? 0 : Number(line.slice(series.length));
}

/** A sidecar asks ever more seldom while its registry starts, which a busy machine makes long. */
const until = (check: () => Promise<void> | void): Promise<void> => vi.waitFor(check, { interval: 20 });

/** Free and unpaid requests without a pause while `run` runs; every one of them has to be answered as ever. */
async function underTraffic(sidecar: TollgateProcess, run: () => Promise<void>): Promise<void> {
  const traffic = { on: true };
  const seen = new Map<string, number>();
  const client = async (target: string): Promise<void> => {
    while (traffic.on) {
      const status = await statusOf(sidecar, target).catch((error: unknown) => String(error));
      const key = `${target} ${status}`;
      seen.set(key, (seen.get(key) ?? 0) + 1);
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
  };
  const clients = [client('/free'), client('/paid/a')];
  try {
    await run();
    // And for a moment after it.
    const before = seen.get('/free 200') ?? 0;
    await until(() => expect(seen.get('/free 200')).toBeGreaterThan(before + 3));
  } finally {
    traffic.on = false;
    await Promise.all(clients);
  }
  expect([...seen.keys()].toSorted()).toEqual(['/free 200', '/paid/a 402']);
}

/** A credential that says everything it has to; whether it is good nobody can be asked here. */
async function credentialFor(sidecar: TollgateProcess, target: string): Promise<string> {
  const header = (await fetch(`${sidecar.url('proxy')}${target}`)).headers.get('payment-required') ?? '';
  const { accepts, resource } = JSON.parse(Buffer.from(header, 'base64').toString()) as {
    accepts: Record<string, unknown>[];
    resource: unknown;
  };
  const accepted = accepts[0] ?? {};
  const seconds = Math.floor(Date.now() / 1000);
  const authorization = {
    from: `0x${'2'.repeat(40)}`,
    to: accepted['payTo'],
    value: accepted['amount'],
    validAfter: '0',
    validBefore: String(seconds + 200),
    nonce: `0x${'3'.repeat(64)}`,
  };
  return Buffer.from(
    JSON.stringify({
      x402Version: 2,
      resource,
      accepted,
      payload: { signature: `0x${'4'.repeat(130)}`, authorization },
    }),
  ).toString('base64');
}

describe('the registry goes away later', () => {
  let port: number;
  let config: string;
  let registry: TollgateProcess;
  let sidecar: TollgateProcess;
  const folder = path.join(files.folder, 'registry');
  const restart = async (): Promise<void> => {
    registry = await launch(config, ['registry', 'admin']);
  };

  beforeAll(async () => {
    port = await freePort();
    config = registryFile('registry', port);
    await restart();
    await register(port, '/paid/*');
    sidecar = await launch(sidecarFile({ name: 'sidecar', registry: port, sync: 'listen: 127.0.0.1:0' }), [
      'proxy',
      'sync',
      'admin',
    ]);
    await until(async () => expect(await priceOf(sidecar, '/paid/a')).toBe('0.10'));
  });

  test('behaviour: with the registry there, what costs is demanded, what is free flows, and readiness says how old the routes are', async () => {
    expect(await statusOf(sidecar, '/free')).toBe(200);
    expect(await readiness(sidecar)).toMatchObject({
      status: 200,
      detail: expect.stringMatching(/^1 routes at revision 1, confirmed \d s ago$/) as string,
    });
    expect(await metric(sidecar, 'tollgate_sync_total{result="updated"}')).toBe(1);
    expect(await metric(sidecar, 'tollgate_sync_last_success_timestamp_seconds')).toBeGreaterThan(
      Date.now() / 1000 - 60,
    );
  });

  const askBeside = async (target: string, key = KEY): Promise<[number, unknown]> => {
    const response = await fetch(`${sidecar.url('sync')}/v1/protected-routes/${target}`, {
      headers: { authorization: `Bearer ${key}` },
    });
    return [response.status, await response.json()];
  };

  test('behaviour: when the registry is killed the last good routes go on, unpaid is 402, paid is 503; back again, they are in step', async () => {
    await underTraffic(sidecar, async () => {
      await end(registry);
      await until(async () =>
        expect((await readiness(sidecar)).detail).toMatch(
          /at revision 1, confirmed \d+ s ago; the registry could not be reached \(ECONNREFUSED\)$/,
        ),
      );
      expect((await readiness(sidecar)).status).toBe(200);
      expect(await metric(sidecar, 'tollgate_sync_total{result="unavailable"}')).toBeGreaterThan(0);
      expect(await askBeside('routes')).toMatchObject([200, [{ route_pattern: '/paid/*' }]]);
      expect(await askBeside('match?path=/paid/a&method=GET')).toMatchObject([200, { payment_required: true }]);
      expect(await askBeside('routes', 'another-key-of-somebody')).toMatchObject([
        503,
        { code: 'registry_unavailable' },
      ]);
      const credential = await credentialFor(sidecar, '/paid/a');
      expect(await statusOf(sidecar, '/paid/a', { 'payment-signature': credential })).toBe(503);
      await restart();
      expect((await register(port, '/paid/after-restart', '0.21')).status).toBe(201);
      await until(async () => expect(await priceOf(sidecar, '/paid/after-restart')).toBe('0.21'));
    });
    expect((await readiness(sidecar)).detail).not.toMatch(/;/);
    expect(await askBeside('routes', 'another-key-of-somebody')).toMatchObject([401, { code: 'credentials_invalid' }]);
  });

  test('behaviour: a registry stopped in its tracks, which accepts and never answers, is as one that is killed', async () => {
    await underTraffic(sidecar, async () => {
      registry.signal('SIGSTOP');
      await until(async () =>
        expect((await readiness(sidecar)).detail).toMatch(/; the registry did not answer in time$/),
      );
      registry.signal('SIGCONT');
      expect((await register(port, '/paid/after-stop', '0.22')).status).toBe(201);
      await until(async () => expect(await priceOf(sidecar, '/paid/after-stop')).toBe('0.22'));
    });
  });

  test('attack: a registry restored from an older backup is held back, named, and taken when it goes on saying so', async () => {
    await end(registry);
    const backup = readdirSync(folder).filter((name) => name.startsWith('tollgate.db'));
    for (const name of backup) copyFileSync(path.join(folder, name), path.join(files.folder, `backup-${name}`));
    await restart();
    expect((await register(port, '/paid/newest', '0.23')).status).toBe(201);
    await until(async () => expect(await priceOf(sidecar, '/paid/newest')).toBe('0.23'));
    await underTraffic(sidecar, async () => {
      await end(registry);
      rmSync(folder, { recursive: true });
      mkdirSync(folder);
      for (const name of backup) copyFileSync(path.join(files.folder, `backup-${name}`), path.join(folder, name));
      await restart();
      await until(async () =>
        expect((await readiness(sidecar)).detail).toMatch(
          /; held back: the registry is at revision 3, the routes in force are at 4/,
        ),
      );
      expect(await priceOf(sidecar, '/paid/newest')).toBe('0.23');
      expect(sidecar.lines.some(({ level, msg }) => level === 'error' && msg.startsWith('route set held back'))).toBe(
        true,
      );
      expect(await metric(sidecar, 'tollgate_sync_total{result="held"}')).toBeGreaterThan(0);
      await until(async () =>
        expect((await readiness(sidecar)).detail).toMatch(/^3 routes at revision 3, confirmed \d+ s ago$/),
      );
    });
  });

  test('attack: an empty registry of another name in its place is held back, and nothing becomes free meanwhile', async () => {
    await underTraffic(sidecar, async () => {
      await end(registry);
      rmSync(folder, { recursive: true });
      await restart();
      await until(async () =>
        expect((await readiness(sidecar)).detail).toMatch(
          /; held back: the registry calls itself \S+, the routes in force are of \S+/,
        ),
      );
      expect((await readiness(sidecar)).status).toBe(200);
      // What was meant: the routes are put back before anybody believed that there are none.
      expect((await register(port, '/paid/*', '0.75')).status).toBe(201);
      await until(async () => expect(await priceOf(sidecar, '/paid/a')).toBe('0.75'));
    });
  });

  test('behaviour: with events a change takes effect within a second, however seldom the registry is polled', async () => {
    const slow = await startSidecar({ name: 'patient', registry: port, pollInterval: '1h' });
    await until(async () => expect(await priceOf(slow, '/paid/a')).toBe('0.75'));
    // The poll that the opened stream made is over as well.
    await until(async () =>
      expect(
        (await metric(slow, 'tollgate_sync_total{result="unchanged"}')) +
          (await metric(slow, 'tollgate_sync_total{result="updated"}')),
      ).toBeGreaterThanOrEqual(2),
    );
    const took: number[] = [];
    for (const price of ['1.01', '1.02', '1.03']) {
      const target = `/paid/at-${price}`;
      expect((await register(port, target, price)).status).toBe(201);
      const since = performance.now();
      await until(async () => expect(await priceOf(slow, target)).toBe(price));
      took.push(performance.now() - since);
    }
    // The others a busy machine may have held up.
    expect(Math.min(...took)).toBeLessThan(1000);
    await end(slow);
  });
});

describe('the registry is away at the start', () => {
  test('behaviour: without a snapshot a sidecar is 503 and not ready until the first sync, whoever starts first', async () => {
    const port = await freePort();
    const sidecar = await startSidecar({ name: 'first', registry: port });
    expect([await statusOf(sidecar, '/paid/a'), await statusOf(sidecar, '/free')]).toEqual([503, 503]);
    const refusal = await fetch(`${sidecar.url('proxy')}/paid/a`);
    expect(refusal.headers.get('retry-after')).toBe('1');
    expect(await refusal.json()).toMatchObject({ code: 'routes_absent' });
    await until(async () =>
      expect(await readiness(sidecar)).toMatchObject({
        status: 503,
        // Its facilitator is away as well, which makes nobody unready.
        failing: expect.arrayContaining(['routes', 'payments', 'services']) as string[],
        detail: expect.stringContaining('no routes were loaded yet; the registry could not') as string,
      }),
    );
    const registry = await launch(registryFile('late', port), ['registry', 'admin']);
    await register(port, '/paid/*');
    // It may know the registry before the route, which is free until then.
    await until(async () =>
      expect(await readiness(sidecar)).toMatchObject({
        status: 200,
        detail: expect.stringMatching(/^1 routes /) as string,
      }),
    );
    expect([await statusOf(sidecar, '/paid/a'), await statusOf(sidecar, '/free')]).toEqual([402, 200]);
    await end(sidecar);
    await end(registry);
  });

  test('behaviour: when_absent forward lets everything pass until the first sync, says so, and then no more', async () => {
    const port = await freePort();
    const sidecar = await startSidecar({ name: 'open', registry: port, sync: 'when_absent: forward', store: true });
    expect([await statusOf(sidecar, '/would-cost'), await statusOf(sidecar, '/free')]).toEqual([200, 200]);
    expect(await statusOf(sidecar, '/a/..%2fb')).toBe(400);
    expect(await readiness(sidecar)).toMatchObject({
      status: 200,
      detail: expect.stringContaining('everything is forwarded free') as string,
    });
    const registry = await launch(registryFile('open-late', port), ['registry', 'admin']);
    await register(port, '/would-cost');
    await until(async () =>
      expect([await statusOf(sidecar, '/would-cost'), await statusOf(sidecar, '/free')]).toEqual([402, 200]),
    );
    await end(sidecar);
    await end(registry);
  });

  test('behaviour: with a snapshot a sidecar serves at once, unless that is changed, too old or of another registry', async () => {
    const port = await freePort();
    const registry = await launch(registryFile('kept', port), ['registry', 'admin']);
    await register(port, '/paid/*', '0.40');
    const options = { name: 'kept-sidecar', registry: port, store: true } as const;
    const first = await startSidecar(options);
    const snapshot = path.join(files.folder, 'kept-sidecar/routes.json');
    await until(() => expect(existsSync(snapshot)).toBe(true));
    expect(statSync(snapshot).mode & 0o777).toBe(0o600);
    await end(first);
    await end(registry);

    const again = await startSidecar(options);
    expect([await priceOf(again, '/paid/a'), await statusOf(again, '/free')]).toEqual(['0.40', 200]);
    await until(async () =>
      expect(await readiness(again)).toMatchObject({
        status: 200,
        detail: expect.stringMatching(
          /^1 routes at revision 1, from the snapshot file, confirmed \d+ s ago; the registry could not/,
        ) as string,
      }),
    );
    await end(again);

    const whole = readFileSync(snapshot);
    const refused: [string, Partial<SidecarOptions>, Buffer][] = [
      ['signature does not verify', {}, Buffer.from(whole.toString().replace('"0.40"', '"0.01"'))],
      ['older than sync.snapshot_max_age', { sync: 'snapshot_max_age: 1ms' }, whole],
      ['it is of another registry', { registry: port === 1024 ? 1025 : 1024 }, whole],
    ];
    await Promise.all(
      refused.map(async ([reason, rest, bytes], index) => {
        const name = `refused-${index}`;
        const file = sidecarFile({ ...options, ...rest, name });
        mkdirSync(path.join(files.folder, name));
        writeFileSync(path.join(files.folder, name, 'routes.json'), bytes);
        const sidecar = await launch(file, ['proxy', 'admin']);
        expect([reason, await priceOf(sidecar, '/paid/a'), await priceOf(sidecar, '/free')]).toEqual([
          reason,
          '503',
          '503',
        ]);
        expect((await readiness(sidecar)).status).toBe(503);
        const line = await sidecar.line(({ msg }) => msg === 'the snapshot file is not used');
        expect(line['reason']).toContain(reason);
        await end(sidecar);
      }),
    );
  });
});

describe('a registry that serves no more than the interface', () => {
  const ROUTE = { id: '3f0b3d0e-3b55-4d4f-9a0e-6c2f5f1c7a11', route_pattern: '/paid/*', method: 'GET', amount: '0.10' };
  let answer: RequestListener;
  let server: Server;
  let sidecar: TollgateProcess;
  const bare =
    (body: string): RequestListener =>
    (_req, res) =>
      void res.setHeader('content-type', 'application/json').end(body);

  beforeAll(async () => {
    answer = bare(JSON.stringify([ROUTE]));
    server = createServer((req, res) => {
      if (req.url === '/v1/protected-routes/routes') answer(req, res);
      else res.writeHead(404).end();
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    closers.push(async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    });
    sidecar = await startSidecar({
      name: 'bare',
      registry: (server.address() as AddressInfo).port,
      emptyAfter: '1s',
      store: true,
    });
    await until(async () => expect(await priceOf(sidecar, '/paid/a')).toBe('0.10'));
  });

  test('behaviour: a registry without events is enough: a change takes effect within one poll interval', async () => {
    const took: number[] = [];
    for (const amount of ['0.40', '0.30', '0.20']) {
      answer = bare(JSON.stringify([{ ...ROUTE, amount }]));
      const since = performance.now();
      await until(async () => expect(await priceOf(sidecar, '/paid/a')).toBe(amount));
      took.push(performance.now() - since);
    }
    // The others a busy machine may have held up.
    expect(Math.min(...took)).toBeLessThan(200 + 800);
    expect((await readiness(sidecar)).detail).toMatch(/^1 routes, confirmed \d+ s ago$/);
  });

  test.each<[string, string, RegExp]>([
    ['garbage', '<html>502 Bad Gateway</html>', /; it is not a JSON array$/],
    ['half an answer', '[{"id":', /; the JSON array is cut off$/],
    [
      'one bad route among good ones',
      JSON.stringify([
        { ...ROUTE, amount: '9.99' },
        { ...ROUTE, id: ROUTE.id.replace('3', '4'), route_pattern: '/x/**' },
      ]),
      /; route 4f0b\S+: /,
    ],
    [
      'a route that costs nothing',
      JSON.stringify([{ ...ROUTE, amount: '0' }]),
      /; route 3f0b\S+: the amount is not a price$/,
    ],
  ])('refuses: %s as a set of routes, whole; the last good set stays', async (_what, body, said) => {
    const before = await metric(sidecar, 'tollgate_sync_total{result="invalid"}');
    await underTraffic(sidecar, async () => {
      answer = bare(body);
      await until(async () => expect((await readiness(sidecar)).detail).toMatch(said));
      await until(async () =>
        expect(await metric(sidecar, 'tollgate_sync_total{result="invalid"}')).toBeGreaterThan(before + 1),
      );
    });
    expect(await priceOf(sidecar, '/paid/a')).toBe('0.20');
    expect((await readiness(sidecar)).status).toBe(200);
    answer = bare(JSON.stringify([{ ...ROUTE, amount: '0.20' }]));
    await until(async () => expect((await readiness(sidecar)).detail).not.toMatch(/;/));
  });

  test('attack: a registry that is emptied is held back, named, and taken only after empty_after of saying so', async () => {
    const since = performance.now();
    answer = bare('[]');
    await until(async () =>
      expect((await readiness(sidecar)).detail).toMatch(
        /; held back: the registry has no routes any more, 1 are in force$/,
      ),
    );
    expect(await priceOf(sidecar, '/paid/a')).toBe('0.20');
    // From here on /paid is asked for with a name of its own: once it is taken, it is free.
    await until(async () => expect((await readiness(sidecar)).detail).toMatch(/^0 routes, confirmed/));
    expect(performance.now() - since).toBeGreaterThan(1000);
    expect(await statusOf(sidecar, '/now-free')).toBe(200);
    answer = bare(JSON.stringify([ROUTE]));
    await until(async () => expect((await readiness(sidecar)).detail).toMatch(/^1 routes/));
  });
});

describe('the upstream and the store', () => {
  test('behaviour: an upstream that is away is 502, one that does not answer 504; what costs is still demanded', async () => {
    const port = await freePort();
    const registry = await launch(registryFile('behind', port), ['registry', 'admin']);
    await register(port, '/paid/*');
    const silent = await startUpstream((req) => void req.resume());
    const [away, stuck] = await Promise.all([
      startSidecar({ name: 'away', registry: port, to: 'http://127.0.0.1:1' }),
      startSidecar({ name: 'stuck', registry: port, to: silent.url, headers: '500ms' }),
    ]);
    for (const sidecar of [away, stuck]) await until(async () => expect(await statusOf(sidecar, '/paid/a')).toBe(402));
    expect([await statusOf(away, '/free'), await statusOf(stuck, '/free')]).toEqual([502, 504]);
    expect([await statusOf(away, '/paid/a'), await statusOf(stuck, '/paid/a')]).toEqual([402, 402]);
    expect(silent.seen.map(({ url }) => url)).toEqual(['/free']);
    for (const one of [away, stuck, registry]) await end(one);
    await silent.close();
  });

  test('behaviour: a store that cannot be used stops writing, paying and readiness; free requests and 402s go on', async () => {
    const config = files.write(
      'all.yaml',
      [
        `proxy: { listen: 127.0.0.1:0, upstream: ${upstream.url}, timeouts: { drain_delay: 0s } }`,
        `registry: { listen: 127.0.0.1:0, store: sqlite:all/tollgate.db, api_keys: [{ name: s, key: ${KEY} }] }`,
        'admin: { listen: 127.0.0.1:0 }',
        RECEIVERS,
        'routes: [{ route_pattern: "/paid/*", method: GET, amount: "0.10" }]',
      ].join('\n'),
    );
    const all = await launch(config, ['proxy', 'registry', 'admin']);
    const credential = await credentialFor(all, '/paid/a');
    expect((await readiness(all, 'store')).status).toBe(200);
    await underTraffic(all, async () => {
      const folder = path.join(files.folder, 'all');
      for (const name of readdirSync(folder).filter((each) => each.startsWith('tollgate.db')))
        writeFileSync(path.join(folder, name), Buffer.alloc(statSync(path.join(folder, name)).size, 0xff));
      await until(async () =>
        expect(await readiness(all, 'store')).toMatchObject({
          status: 503,
          failing: expect.arrayContaining(['store']) as string[],
        }),
      );
      expect((await register(all.port('registry'), '/paid/more')).status).toBe(503);
      expect(await statusOf(all, '/paid/a', { 'payment-signature': credential })).toBe(503);
    });
    await end(all);
  });
});
