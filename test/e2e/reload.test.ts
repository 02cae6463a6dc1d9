// Changing the configuration of a running Tollgate: by SIGHUP, and by changing the file as editors and Kubernetes do. What
// is taken on is seen from outside, what waits for a restart is named, and nobody who is being served notices.
import { mkdirSync, renameSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { Agent, request } from 'node:http';
import path from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest';
import { startProcess, temporaryFolder, type LogLine, type TollgateProcess } from '../support/process.ts';
import { startUpstream, type Upstream } from '../support/upstream.ts';

const SECRET = 'a-charge-secret-of-at-least-32-bytes';
const OTHER_SECRET = 'another-charge-secret-of-32-bytes-and-more';
const KEY = 'an-api-key-of-the-test';
const PAY_TO = { one: `0x${'1'.repeat(40)}`, two: `0x${'2'.repeat(40)}` };

const files = temporaryFolder();
const running: TollgateProcess[] = [];
let one: Upstream;
let two: Upstream;
/** Answers of the second upstream are held while this is set. */
let hold: Promise<void> | undefined;

beforeAll(async () => {
  const named = (name: string) =>
    startUpstream((req, res) => {
      req.resume();
      void Promise.resolve(hold).then(() => res.end(name));
    });
  [one, two] = await Promise.all([named('one'), named('two')]);
});
afterEach(() => {
  hold = undefined;
});
afterAll(async () => {
  await Promise.all(running.map((tollgate) => tollgate.kill()));
  await one.close();
  await two.close();
  files.remove();
});

type Parts = {
  readonly upstream?: string;
  readonly proxy?: string;
  readonly registry?: string;
  readonly payTo?: string;
  /** Its ways, in place of the one. */
  readonly accepts?: string;
  readonly secrets?: string;
  readonly routes?: string;
  readonly more?: string;
};

const wayTo = (address: string): string => `network: base-sepolia, rpc_url: none, pay_to_address: "${address}"`;

/** A configuration of which a test names the parts that it is about. */
function written(parts: Parts = {}): string {
  return [
    `proxy: { listen: 127.0.0.1:0, upstream: "${parts.upstream ?? one.url}"${parts.proxy ?? ''} }`,
    `registry: { listen: 127.0.0.1:0, store: "sqlite:\${DATA}/tollgate.db", api_keys: [{ name: s, key: ${KEY}, scopes: [sdk] }]${parts.registry ?? ''} }`,
    'admin: { listen: 127.0.0.1:0 }',
    `charges: { secrets: ${parts.secrets ?? `[${SECRET}]`} }`,
    `receivers: [{ id: default, ${parts.accepts ?? wayTo(parts.payTo ?? PAY_TO.one)}, facilitators: [http://127.0.0.1:1] }]`,
    `routes: ${parts.routes ?? '[{ route_pattern: "/paid/*", method: GET, amount: "0.10" }]'}`,
    parts.more ?? '',
  ].join('\n');
}

async function start(file: string): Promise<TollgateProcess> {
  const tollgate = await startProcess({
    args: ['serve', '-c', file],
    // A store of its own for each file.
    env: { DATA: `${file}.data` },
    listeners: ['proxy', 'registry', 'admin'],
  });
  running.push(tollgate);
  return tollgate;
}

/** Runs `change` and resolves with the first line after it that says `msg`. */
async function after(tollgate: TollgateProcess, change: () => void, msg: string): Promise<LogLine> {
  const mark = tollgate.lines.length;
  change();
  return vi.waitFor(
    () => {
      const line = tollgate.lines.slice(mark).find((seen) => seen.msg === msg);
      if (line === undefined) throw new Error(`no "${msg}" in ${JSON.stringify(tollgate.lines.slice(mark))}`);
      return line;
    },
    { timeout: 30_000, interval: 10 },
  );
}

const TAKEN = 'configuration reloaded';
const FAILED = 'the configuration was not reloaded';

/** A Tollgate with a file of its own, and `reload` for what the file says next. */
async function staged(name: string, parts: Parts = {}) {
  const file = files.write(`${name}.yaml`, written(parts));
  const tollgate = await start(file);
  const get = (target: string, init: RequestInit = {}): Promise<Response> =>
    fetch(tollgate.url('proxy') + target, init);
  return {
    tollgate,
    file,
    get,
    /** Status of a request, its body read. */
    status: async (target: string, init: RequestInit = {}): Promise<number> => {
      const response = await get(target, init);
      await response.arrayBuffer();
      return response.status;
    },
    reload: (next: Parts, msg = TAKEN) => {
      // Renamed over, so that the watch never sees a half; SIGHUP says it now, and the watch finds the same once more.
      writeFileSync(`${file}~`, written(next));
      return after(
        tollgate,
        () => {
          renameSync(`${file}~`, file);
          tollgate.signal('SIGHUP');
        },
        msg,
      );
    },
    reloads: async (result: string): Promise<number> => {
      const text = await (await fetch(`${tollgate.url('admin')}/metrics`)).text();
      return Number(
        new RegExp(`^tollgate_config_reloads_total\\{result="${result}"\\} (\\d+)$`, 'm').exec(text)?.[1] ?? 0,
      );
    },
  };
}

/** The same process for tests that only change its file, beginning with the parts that nobody named. */
async function shared(): Promise<Awaited<ReturnType<typeof staged>>> {
  common ??= staged('shared');
  const stage = await common;
  await stage.reload({});
  return stage;
}
let common: ReturnType<typeof staged> | undefined;

async function demanded(response: Response): Promise<{
  readonly payTo: string;
  readonly url: string;
  readonly chargeId: Buffer;
  readonly body: Record<string, unknown>;
}> {
  const header = JSON.parse(Buffer.from(response.headers.get('payment-required') ?? '', 'base64').toString());
  const body = (await response.json()) as Record<string, unknown>;
  return {
    payTo: header.accepts[0].payTo,
    url: header.resource.url,
    chargeId: Buffer.from(String(body['charge_id']).slice(4), 'base64url'),
    body,
  };
}

describe('SIGHUP', () => {
  test('behaviour: a reload takes on upstream, receivers, terms, profile, methods, limits, time-outs, origins, secrets and routes', async () => {
    const { tollgate, get, status, reload, reloads } = await staged('everything');
    expect(await (await get('/free')).text()).toBe('one');
    const before = await demanded(await get('/paid/a'));
    expect(before.payTo).toBe(PAY_TO.one);
    expect([await status('/PAID/a'), await status('/paid/a', { method: 'POST' }), await status('/new/a')]).toEqual([
      402, 200, 200,
    ]);

    const changed = {
      upstream: two.url,
      payTo: PAY_TO.two,
      secrets: `[${OTHER_SECRET}, ${SECRET}]`,
      proxy:
        ', upstream_profile: go, undeclared_methods: pay, public_url: "https://new.example", cors_origins: ["https://app.example"], methods: [REPORT], customer_header: X-Who, limits: { target: 100 }',
      routes:
        '[{ route_pattern: "/paid/*", method: GET, amount: "0.10" }, { route_pattern: "/new/*", amount: "0.20" }, { route_pattern: "/known", amount: "0.20", allow_anonymous: false }]',
      more: 'x402: { v1: true }',
    };
    const line = await reload(changed);
    expect(line.level).toBe('info');
    expect(await (await get('/free')).text()).toBe('two');
    const next = await demanded(await get('/paid/a', { headers: { origin: 'https://app.example' } }));
    expect([next.payTo, next.url, next.body['x402Version']]).toEqual([PAY_TO.two, 'https://new.example/paid/a', 1]);
    // The key that signs is named in the charge id.
    expect(next.chargeId[1]).not.toBe(before.chargeId[1]);
    expect([await status('/PAID/a'), await status('/paid/a', { method: 'POST' }), await status('/new/a')]).toEqual([
      200, 402, 402,
    ]);
    expect(
      (await get('/paid/a', { headers: { origin: 'https://app.example' } })).headers.get('access-control-allow-origin'),
    ).toBe('https://app.example');
    expect([await status(`/${'a'.repeat(99)}`), await status(`/${'a'.repeat(100)}`)]).toEqual([200, 414]);
    expect(await status('/free', { method: 'REPORT' })).toBe(200);
    expect([await status('/known'), await status('/known', { headers: { 'x-who': 'c' } })]).toEqual([400, 402]);
    // At the end: the answers above may take longer on a busy machine.
    await reload({ ...changed, proxy: `${changed.proxy}, timeouts: { headers: 1s }` });
    hold = new Promise(() => undefined);
    expect(await status('/slow')).toBe(504);
    expect(await reloads('success')).toBeGreaterThanOrEqual(1);
    expect(await reloads('failure')).toBe(0);
    await tollgate.line(({ msg }) => msg === 'changed settings wait for a restart');
    const waiting = tollgate.lines.filter(({ msg }) => msg === 'changed settings wait for a restart');
    // Said once: the watch sees that this file was read already.
    expect(waiting.map(({ settings }) => settings)).toEqual([['proxy.timeouts.headers (towards clients)']]);
  });

  test('behaviour: a reload takes on keys, tokens and origins of the registry', async () => {
    const jwt = (secret: string): string => `, jwt: { secret: "${secret}", issuer: tollgate, audience: dashboard }`;
    const { tollgate } = await staged('keys', { registry: jwt(SECRET) });
    const ask = async (key: string): Promise<number> => {
      const url = `${tollgate.url('registry')}/v1/protected-routes/match?method=GET&path=/`;
      return (await fetch(url, { headers: { authorization: `Bearer ${key}` } })).status;
    };
    const token = await signToken(SECRET);
    const list = async (bearer: string): Promise<number> =>
      (
        await fetch(`${tollgate.url('registry')}/v1/billing/protected-routes`, {
          headers: { authorization: `Bearer ${bearer}` },
        })
      ).status;
    expect([await ask(KEY), await list(token)]).toEqual([200, 200]);
    const changed = written({ registry: `${jwt(OTHER_SECRET)}, cors_origins: ["https://dash.example"]` }).replace(
      KEY,
      `${KEY}-2`,
    );
    writeFileSync(path.join(files.folder, 'keys.yaml'), changed);
    await after(tollgate, () => tollgate.signal('SIGHUP'), TAKEN);
    expect([await ask(KEY), await ask(`${KEY}-2`)]).toEqual([401, 200]);
    expect([await list(token), await list(await signToken(OTHER_SECRET))]).toEqual([401, 200]);
    const health = await fetch(`${tollgate.url('registry')}/v1/health`, {
      headers: { origin: 'https://dash.example' },
    });
    expect(health.headers.get('access-control-allow-origin')).toBe('https://dash.example');
  });

  test('behaviour: a reload takes on the log’s level and whether requests are logged', async () => {
    const { tollgate, status, reload } = await staged('log', { more: 'log: { access: false }' });
    await status('/unlogged');
    await reload({ more: 'log: { access: true }' });
    await status('/logged');
    await tollgate.line(({ path: logged }) => logged === '/logged');
    // Nothing of level info is written after this one.
    await reload({ more: 'log: { level: warn }' });
    await status('/silent');
    await reload({ more: 'log: { level: info }\nnonsense: 1' }, FAILED);
    const paths = new Set(tollgate.lines.map(({ path: logged }) => logged));
    expect([paths.has('/unlogged'), paths.has('/logged'), paths.has('/silent')]).toEqual([false, true, false]);
  });

  test('behaviour: a route whose price changed in the file costs that, one that is gone from it is free, and both are said', async () => {
    const { tollgate, get, status, reload } = await staged('routes');
    const route = (pattern: string, amount: string): string =>
      `{ route_pattern: "${pattern}", method: GET, amount: "${amount}" }`;
    await reload({ routes: `[${route('/paid/*', '0.10')}, ${route('/priced', '0.30')}, ${route('/gone', '0.30')}]` });
    expect(await status('/gone')).toBe(402);
    await reload({ routes: `[${route('/paid/*', '0.10')}, ${route('/priced', '0.40')}]` });
    expect(((await (await get('/priced')).json()) as { amount: string }).amount).toBe('0.40');
    expect(await status('/gone')).toBe(200);
    expect(await tollgate.line(({ msg }) => msg === 'declared route applied')).toMatchObject({
      route_pattern: '/priced',
      before: { amount: '0.30' },
      after: { amount: '0.40' },
    });
    expect(await tollgate.line(({ msg }) => msg === 'declared route deleted')).toMatchObject({
      route_pattern: '/gone',
      before: { amount: '0.30' },
    });
  });

  test('behaviour: a reload names the ways that its 402s will have no room for', async () => {
    const { reload, tollgate } = await staged('ways');
    const ways = Array.from({ length: 8 }, (_, n) => `{ ${wayTo(`0x${String(n + 1).repeat(40)}`)} }`);
    await reload({ accepts: `accepts: [${ways.join(', ')}]` });
    const said = /^the route GET \/paid\/\* at 0\.10 USD does not show base-sepolia USDC/;
    expect(await tollgate.line(({ msg }) => said.test(msg))).toMatchObject({ level: 'warn' });
  });

  test('behaviour: a reload leaves what a dashboard changed, which readiness, a metric and check name', async () => {
    const { tollgate, get, status, reload } = await staged('differing', {
      registry: `, jwt: { secret: "${SECRET}", issuer: tollgate, audience: dashboard }`,
    });
    const url = `${tollgate.url('registry')}/v1/billing/protected-routes`;
    const headers = { authorization: `Bearer ${await signToken(SECRET)}`, 'content-type': 'application/json' };
    const differing = async (): Promise<string | undefined> =>
      /^tollgate_declared_routes_differing (\d+)$/m.exec(
        await (await fetch(`${tollgate.url('admin')}/metrics`)).text(),
      )?.[1];
    expect(await differing()).toBe('0');
    const { data } = (await (await fetch(url, { headers })).json()) as { data: { id: string }[] };
    await fetch(`${url}/${data[0]?.id}`, { method: 'PATCH', headers, body: '{"amount":"0.25"}' });
    await reload({
      upstream: two.url,
      registry: `, jwt: { secret: "${SECRET}", issuer: tollgate, audience: dashboard }`,
    });
    expect(((await (await get('/paid/a')).json()) as { amount: string }).amount).toBe('0.25');
    expect(await status('/free')).toBe(200);
    expect(await differing()).toBe('1');
    const ready = await fetch(`${tollgate.url('admin')}/readyz?verbose`);
    expect([ready.status, await ready.text()]).toEqual([
      200,
      expect.stringContaining('GET /paid/*: amount is \\"0.25\\" in the store, \\"0.10\\" in the file'),
    ]);
  });

  test('attack: a file without its routes does not make the API free: the reload is held back, a start applies it', async () => {
    const { tollgate, file, status, reload, reloads } = await staged('swept');
    const line = await reload({ upstream: two.url, routes: '[]' }, FAILED);
    expect(line['problem']).toMatch(/the new file deletes every declared route \(1\); if that is meant, restart/);
    expect([await status('/paid/a'), await reloads('failure')]).toEqual([402, 1]);
    await tollgate.kill();
    const again = await start(file);
    expect((await fetch(`${again.url('proxy')}/paid/a`)).status).toBe(200);
    expect(await again.line(({ msg }) => msg.startsWith('this start deletes every declared route'))).toMatchObject({
      level: 'warn',
    });
  });

  test('attack: a file that is being written is not read before it rests', async () => {
    const { tollgate, file, status } = await staged('halves');
    const whole = written({ upstream: two.url, routes: '[{ route_pattern: "/paid/*", method: GET, amount: "0.90" }]' });
    const mark = tollgate.lines.length;
    const writes: number[] = [];
    // Every cut of it that is a whole configuration is one that nobody meant.
    for (let part = 1; part <= 8; part++) {
      writeFileSync(file, whole.slice(0, Math.ceil((whole.length * part) / 8)));
      writes.push(statSync(file).ctimeMs);
      tollgate.signal('SIGHUP');
      await new Promise((resolve) => {
        setTimeout(resolve, 250);
      });
    }
    const ends = (): LogLine[] => tollgate.lines.slice(mark).filter(({ msg }) => msg === TAKEN || msg === FAILED);
    const wholeSince = writes.at(-1) ?? 0;
    await vi.waitFor(() =>
      expect(ends().some(({ msg, ts }) => msg === TAKEN && Date.parse(String(ts)) > wholeSince)).toBe(true),
    );
    // It rested for a second before it was read, which is once unless a busy machine held up its writer for as long.
    const rests = ends().map(({ ts }) => {
      const read = Date.parse(String(ts));
      return read - Math.max(...writes.filter((written) => written <= read));
    });
    expect(Math.min(...rests)).toBeGreaterThanOrEqual(1000);
    expect(ends().at(-1)?.msg).toBe(TAKEN);
    expect(await status('/paid/a')).toBe(402);
  });

  test('behaviour: a reload names what only a restart changes and leaves its value, and takes on the rest', async () => {
    const { tollgate, get } = await shared();
    const changed: Parts = {
      upstream: two.url,
      proxy: ', limits: { headers: 16384, connections: 5 }, timeouts: { headers: 9s, idle: 8s }',
      more: 'workers: auto',
    };
    const file = path.join(files.folder, 'shared.yaml');
    const text = written(changed)
      .replace('admin: { listen: 127.0.0.1:0 }', 'admin: { listen: 127.0.0.1:1 }')
      .replace('tollgate.db"', 'other.db", limits: { routes: 7 }');
    writeFileSync(`${file}~`, text);
    renameSync(`${file}~`, file);
    const line = await after(tollgate, () => tollgate.signal('SIGHUP'), 'changed settings wait for a restart');
    expect(line).toMatchObject({
      level: 'warn',
      settings: [
        'proxy.limits.headers',
        'proxy.limits.connections',
        'proxy.timeouts.headers (towards clients)',
        'proxy.timeouts.idle (towards clients)',
        'registry.store',
        'registry.limits',
        'admin.listen',
        'workers',
      ],
    });
    expect(await (await get('/free')).text()).toBe('two');
    expect((await get('/paid/a')).status).toBe(402);
  });

  test('refuses: a reload of a file with mistakes, whole: each is logged with its place, and everything goes on as it was', async () => {
    const { tollgate, file, get, reload, reloads } = await shared();
    const lines = written({ upstream: two.url, payTo: PAY_TO.two, more: 'metrics: { max_routes: many }\nlogg: {}' });
    writeFileSync(`${file}~`, lines);
    await after(
      tollgate,
      () => {
        renameSync(`${file}~`, file);
        tollgate.signal('SIGHUP');
      },
      FAILED,
    );
    await vi.waitFor(() => expect(tollgate.lines.filter(({ msg }) => msg === FAILED).length).toBeGreaterThanOrEqual(2));
    const problems = tollgate.lines.filter(({ msg }) => msg === FAILED).map(({ problem }) => String(problem));
    expect(problems[0]).toMatch(/shared\.yaml:7:\d+ metrics\.max_routes: /);
    expect(problems[1]).toMatch(/shared\.yaml:8:1 logg: is not known here; did you mean log\?/);
    expect(await reloads('failure')).toBeGreaterThanOrEqual(1);
    expect(await (await get('/free')).text()).toBe('one');
    expect((await demanded(await get('/paid/a'))).payTo).toBe(PAY_TO.one);
    await reload({ upstream: two.url });
    expect(await (await get('/free')).text()).toBe('two');
  });

  test('refuses: a reload of sections that make another shape', async () => {
    const { tollgate, file, get, reloads } = await shared();
    const registry = written({ payTo: PAY_TO.two }).split('\n').slice(1, 4).join('\n');
    writeFileSync(`${file}~`, registry);
    const line = await after(
      tollgate,
      () => {
        renameSync(`${file}~`, file);
        tollgate.signal('SIGHUP');
      },
      FAILED,
    );
    expect(line['problem']).toContain('all-in-one runs, registry is configured; restart');
    expect(await reloads('failure')).toBeGreaterThanOrEqual(1);
    expect((await demanded(await get('/paid/a'))).payTo).toBe(PAY_TO.one);
  });
});

describe('who is being served', () => {
  test('behaviour: a request in flight during a reload ends under the configuration it began with', async () => {
    const { get, reload } = await staged('inflight', { upstream: two.url });
    const released = Promise.withResolvers<void>();
    hold = released.promise;
    const seen = two.seen.length;
    const waiting = get('/free/slow');
    await vi.waitFor(() => expect(two.seen.length).toBe(seen + 1));
    await reload({ upstream: one.url, proxy: ', timeouts: { headers: 1s }' });
    hold = undefined;
    expect(await (await get('/free')).text()).toBe('one');
    released.resolve();
    expect(await (await waiting).text()).toBe('two');
  });

  test('behaviour: under load no request fails while the configuration changes ten times', async () => {
    const { tollgate, reload, reloads } = await shared();
    const agent = new Agent({ keepAlive: true, maxSockets: 16 });
    const port = tollgate.port('proxy');
    const outcomes = new Map<string, number>();
    const going = new AbortController();
    const client = async (target: string): Promise<void> => {
      while (!going.signal.aborted) {
        const outcome = await ask(agent, port, target);
        outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1);
      }
    };
    const clients = Array.from({ length: 16 }, (_, index) => client(index % 2 === 0 ? '/free/a' : '/paid/a'));
    for (let round = 0; round < 5; round++) {
      await reload({
        upstream: two.url,
        payTo: PAY_TO.two,
        proxy: ', upstream_profile: go',
        more: 'log: { access: false }',
      });
      await reload({ more: 'log: { access: false }' });
    }
    going.abort();
    await Promise.all(clients);
    agent.destroy();
    expect(await reloads('success')).toBeGreaterThanOrEqual(10);
    expect([...outcomes.keys()].sort()).toEqual(['200 one', '200 two', '402']);
    for (const count of outcomes.values()) expect(count).toBeGreaterThan(10);
  });
});

describe('a file that changes', () => {
  test('behaviour: an editor’s rename over the file, and writing into it, are followed without any signal', async () => {
    const { tollgate, file, get } = await staged('editor');
    writeFileSync(`${file}.new`, written({ upstream: two.url }));
    await after(tollgate, () => renameSync(`${file}.new`, file), TAKEN);
    expect(await (await get('/free')).text()).toBe('two');
    await after(tollgate, () => writeFileSync(file, written()), TAKEN);
    expect(await (await get('/free')).text()).toBe('one');
    await after(tollgate, () => writeFileSync(file, 'proxy: { upstream: '), FAILED);
    expect(await (await get('/free')).text()).toBe('one');
    await after(tollgate, () => writeFileSync(file, written({ upstream: two.url })), TAKEN);
    expect(await (await get('/free')).text()).toBe('two');
  });

  test('behaviour: the symlink swap of a Kubernetes ConfigMap, and of a Secret that it names, is followed', async () => {
    const mounted = (name: string) => {
      const folder = path.join(files.folder, name);
      mkdirSync(folder);
      let version = 0;
      return {
        folder,
        publish: (key: string, text: string): void => {
          const old = `..v${version++}`;
          mkdirSync(path.join(folder, `..v${version}`));
          writeFileSync(path.join(folder, `..v${version}`, key), text);
          symlinkSync(`..v${version}`, path.join(folder, '..data_tmp'));
          renameSync(path.join(folder, '..data_tmp'), path.join(folder, '..data'));
          if (version === 1) symlinkSync(`..data/${key}`, path.join(folder, key));
          rmSync(path.join(folder, old), { recursive: true, force: true });
        },
      };
    };
    const [config, secret] = [mounted('configmap'), mounted('secret')];
    const text = (upstream: string): string =>
      written({ upstream }).replace(
        /^charges:.*$/m,
        `charges: { secrets_file: "${path.join(secret.folder, 'charges')}" }`,
      );
    secret.publish('charges', SECRET);
    config.publish('tollgate.yaml', text(one.url));
    const tollgate = await start(path.join(config.folder, 'tollgate.yaml'));
    const get = (target: string): Promise<Response> => fetch(tollgate.url('proxy') + target);
    const keyOf = async (): Promise<number | undefined> => (await demanded(await get('/paid/a'))).chargeId[1];
    const before = await keyOf();
    for (const to of [two, one]) {
      await after(tollgate, () => config.publish('tollgate.yaml', text(to.url)), TAKEN);
      expect(await (await get('/free')).text()).toBe(to === two ? 'two' : 'one');
    }
    expect(await keyOf()).toBe(before);
    await after(tollgate, () => secret.publish('charges', `${OTHER_SECRET}\n${SECRET}\n`), TAKEN);
    expect(await keyOf()).not.toBe(before);
  });
});

function ask(agent: Agent, port: number, target: string): Promise<string> {
  return new Promise((resolve) => {
    request({ agent, port, host: '127.0.0.1', path: target }, (res) => {
      let body = '';
      res.setEncoding('utf8').on('data', (text: string) => (body += text));
      res.on('end', () => resolve(res.statusCode === 200 ? `200 ${body}` : String(res.statusCode)));
      res.on('error', () => resolve('broken'));
    })
      .on('error', (error) => resolve(error.message))
      .end();
  });
}

async function signToken(secret: string): Promise<string> {
  const { SignJWT } = await import('jose');
  return new SignJWT({})
    .setProtectedHeader({ alg: 'HS256' })
    .setIssuer('tollgate')
    .setAudience('dashboard')
    .setSubject('tester')
    .setExpirationTime('5m')
    .sign(Buffer.from(secret));
}
