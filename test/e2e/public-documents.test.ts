// `/openapi.json` and `/llms.txt` of real processes: who answers them, what they hold, how they are cached, and how they
// follow routes, configuration and the owner's document, in every shape.
import { readFileSync, renameSync } from 'node:fs';
import path from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { until } from '../support/paid-tollgate.ts';
import { startProcess, temporaryFolder, type TollgateProcess } from '../support/process.ts';
import { openRaw } from '../support/raw-client.ts';
import { startUpstream, type Upstream } from '../support/upstream.ts';

const API_KEY = 'an-api-key-of-the-test';
const CHARGES = 'charges: { secrets: ["a-charge-secret-of-at-least-32-bytes"] }';
const OPENAPI = `openapi: 3.0.3
info: { title: Weather, version: "4" }
paths:
  /weather/{city}: { get: { summary: The weather, responses: { "200": { description: OK } } } }
`;

const files = temporaryFolder();
const running: TollgateProcess[] = [];
let upstream: Upstream;
beforeAll(async () => {
  upstream = await startUpstream();
});
afterEach(async () => {
  await Promise.all(running.splice(0).map((each) => each.kill()));
});
afterAll(async () => {
  await upstream.close();
  files.remove();
});

type Wanted = {
  readonly routes?: readonly string[];
  readonly discovery?: string;
  readonly proxy?: string;
  readonly more?: readonly string[];
};

const ROUTES = [
  '  - { method: GET, route_pattern: "/weather/:city", amount: "0.10" }',
  '  - { method: GET, route_pattern: "/paused", amount: "0.10", status: paused }',
];
const RECEIVERS =
  'receivers: [{ id: default, network: base-sepolia, pay_to_address: "0x1111111111111111111111111111111111111111", facilitators: ["http://127.0.0.1:1"], rpc_url: none }]';

/** In the place of the file at once, so that nobody reads a half. */
function put(name: string, text: string): string {
  renameSync(files.write(`${name}~`, text), path.join(files.folder, name));
  return path.join(files.folder, name);
}

function allInOne(name: string, { routes = ROUTES, discovery, proxy = '', more = [] }: Wanted): string {
  return put(
    `${name}.yaml`,
    [
      `proxy: { listen: 127.0.0.1:0, upstream: "${upstream.url}", undeclared_methods: pay, timeouts: { drain_delay: 0s, drain: 5s }${proxy} }`,
      `registry: { listen: 127.0.0.1:0, store: "sqlite:${name}/t.db", api_keys: [{ name: t, key: ${API_KEY} }] }`,
      'admin: { listen: 127.0.0.1:0 }',
      CHARGES,
      RECEIVERS,
      `discovery: ${discovery ?? '{ openapi: openapi.yaml, contact: owner@example.com }'}`,
      ...more,
      ...(routes.length === 0 ? ['routes: []'] : ['routes:', ...routes]),
    ].join('\n'),
  );
}

async function serve(config: string, listeners = ['proxy', 'registry', 'admin']): Promise<TollgateProcess> {
  const tollgate = await startProcess({ args: ['serve', '-c', config], listeners });
  running.push(tollgate);
  return tollgate;
}

const get = (tollgate: TollgateProcess, target: string, init?: RequestInit): Promise<Response> =>
  fetch(tollgate.url('proxy') + target, init);

type Document = {
  readonly openapi: string;
  readonly info: { readonly title: string };
  readonly servers: readonly [{ readonly url: string }];
  readonly paths: Readonly<
    Record<
      string,
      Readonly<Record<string, { readonly 'x-payment-info': { readonly price: { readonly amount: string } } }>>
    >
  >;
};

/** The prices that it tells, once they are `accepted`. */
async function told(
  tollgate: TollgateProcess,
  what: string,
  accepts: (prices: readonly string[]) => boolean = () => true,
): Promise<readonly string[]> {
  return until(what, async () => {
    const response = await get(tollgate, '/openapi.json');
    const text = await response.text();
    if (response.status === 503) {
      expect(JSON.parse(text)).toMatchObject({ code: 'routes_absent' });
      return undefined;
    }
    expect(response.status).toBe(200);
    const { paths } = JSON.parse(text) as Document;
    const prices = Object.entries(paths).flatMap(([name, methods]) =>
      Object.entries(methods).map(
        ([method, operation]) => `${method} ${name} ${operation['x-payment-info'].price.amount}`,
      ),
    );
    return accepts(prices) ? prices : undefined;
  });
}

describe('all in one', () => {
  test('behaviour: both public documents are answered here, for any query, and never reach the upstream', async () => {
    put('openapi.yaml', OPENAPI);
    const tollgate = await serve(allInOne('one', {}));
    expect(await told(tollgate, 'what is sold')).toEqual(['get /weather/{city} 0.10']);
    const before = upstream.seen.length;
    const response = await get(tollgate, '/openapi.json?x=1');
    expect([...response.headers].filter(([name]) => name !== 'date' && name !== 'x-request-id')).toEqual(
      expect.arrayContaining([
        ['access-control-allow-origin', '*'],
        ['cache-control', 'public, max-age=300'],
        ['content-type', 'application/json'],
        ['etag', expect.stringMatching(/^"[\x21\x23-\x7e]+"$/)],
      ]),
    );
    const document = (await response.json()) as Document;
    expect([document.openapi, document.info.title, document.servers[0].url]).toEqual([
      '3.0.3',
      'Weather',
      tollgate.url('proxy'),
    ]);
    const text = await get(tollgate, '/llms.txt');
    expect([text.status, text.headers.get('content-type')]).toEqual([200, 'text/plain; charset=utf-8']);
    expect(await text.text()).toContain(
      `](${tollgate.url('proxy')}/weather/{city}): GET /weather/{city}, 0.10 USD per request`,
    );
    expect(upstream.seen.length).toBe(before);
    const metrics = await (await fetch(`${tollgate.url('admin')}/metrics`)).text();
    expect(metrics).toMatch(
      /tollgate_requests_total\{outcome="discovery",code="200",route_id="",listener="proxy"\} \d+/,
    );
  });

  test('behaviour: HEAD of a public document has the same head, a known copy is 304, other methods are the upstream', async () => {
    put('openapi.yaml', OPENAPI);
    const tollgate = await serve(allInOne('cached', {}));
    await told(tollgate, 'what is sold');
    for (const target of ['/openapi.json', '/llms.txt']) {
      const whole = await get(tollgate, target);
      const length = (await whole.arrayBuffer()).byteLength;
      const head = await get(tollgate, target, { method: 'HEAD' });
      expect([head.status, head.headers.get('content-length'), await head.text()]).toEqual([200, `${length}`, '']);
      const tag = whole.headers.get('etag') ?? '';
      for (const known of [tag, `W/${tag}`, `"other", ${tag}`, '*']) {
        const again = await get(tollgate, target, { headers: { 'if-none-match': known } });
        expect([again.status, again.headers.get('etag'), await again.text()]).toEqual([304, tag, '']);
        expect(again.headers.get('access-control-allow-origin')).toBe('*');
      }
      expect((await get(tollgate, target, { headers: { 'if-none-match': '"other"' } })).status).toBe(200);
      const posted = await get(tollgate, target, { method: 'POST', body: '{}' });
      expect(await posted.json()).toMatchObject({ upstream: true });
    }
    expect(await (await get(tollgate, '/openapi.json/x')).json()).toMatchObject({ upstream: true });
  });

  test('behaviour: a public document is written for the origin by which it is asked for, and public_url wins', async () => {
    put('openapi.yaml', OPENAPI);
    const open = await serve(allInOne('origins', {}));
    await told(open, 'what is sold');
    const serverOf = async (tollgate: TollgateProcess, host: string): Promise<string> => {
      const raw = await openRaw(tollgate.port('proxy'));
      raw.send(`GET /openapi.json HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`);
      const { servers } = JSON.parse((await raw.answer()).body.toString()) as Document;
      return servers[0].url;
    };
    const hosts = ['a.example', 'b.example:81', 'c.example', 'd.example', 'e.example', 'a.example'];
    for (const host of hosts) expect(await serverOf(open, host)).toBe(`http://${host}`);
    const named = await serve(allInOne('named', { proxy: ', public_url: https://api.example.com' }));
    await told(named, 'what is sold');
    expect(await serverOf(named, 'a.example')).toBe('https://api.example.com');
  });

  test('behaviour: changed routes, descriptions and settings are told as they come into force', async () => {
    put('openapi.yaml', OPENAPI);
    const tollgate = await serve(allInOne('changing', {}));
    await told(tollgate, 'what is sold');
    const first = (await get(tollgate, '/openapi.json')).headers.get('etag');
    const register = (body: object): Promise<Response> =>
      fetch(`${tollgate.url('registry')}/v1/protected-routes/routes/register`, {
        method: 'POST',
        headers: { authorization: `Bearer ${API_KEY}`, 'content-type': 'application/json' },
        body: JSON.stringify(body),
      });
    await register({ route_pattern: '/more', method: 'GET', amount: '0.30', currency: 'USD' });
    const prices = await told(tollgate, 'the new route', (all) => all.length === 2);
    expect(prices).toEqual(['get /weather/{city} 0.10', 'get /more 0.30']);
    expect((await get(tollgate, '/openapi.json')).headers.get('etag')).not.toBe(first);
    put('openapi.yaml', OPENAPI.replace('The weather', 'The new weather'));
    await until('the new description', async () =>
      (await (await get(tollgate, '/llms.txt')).text()).includes('The new weather'),
    );
    allInOne('changing', { discovery: '{ exclude: ["/weather/*"], title: Excluding }' });
    await told(tollgate, 'the exclusion', (all) => all.join() === 'get /more 0.30');
    allInOne('changing', { discovery: '{ serve: false }' });
    await until(
      'the upstream answers',
      async () => 'upstream' in ((await (await get(tollgate, '/openapi.json')).json()) as object),
    );
  });

  test("behaviour: the owner's own text is served, and followed when it changes", async () => {
    put('llms.txt', '# Mine\n');
    const tollgate = await serve(allInOne('own-text', { discovery: '{ llms_file: llms.txt }' }));
    await told(tollgate, 'what is sold');
    const read = async (): Promise<string> => (await get(tollgate, '/llms.txt')).text();
    expect(await read()).toBe('# Mine\n');
    put('llms.txt', '# Grüße\n');
    await until('the new text', async () => (await read()) === '# Grüße\n');
    expect((await get(tollgate, '/llms.txt')).headers.get('content-length')).toBe('10');
  });

  test('behaviour: a route that covers the path of a public document wins, active or paused, and the start says so', async () => {
    const routes = [
      '  - { method: GET, route_pattern: "/openapi.json", amount: "0.10" }',
      '  - { method: GET, route_pattern: "/llms.txt", amount: "0.10", status: paused }',
    ];
    const tollgate = await serve(allInOne('winning', { routes, discovery: '{}' }));
    const warned = await tollgate.line(({ msg }) => msg.startsWith('GET /llms.txt belongs to'));
    expect(warned).toMatchObject({ level: 'warn' });
    expect(tollgate.lines.map(({ msg }) => msg)).toContain(
      'GET /openapi.json belongs to the route GET /openapi.json, so what is sold is not told there; take the route away from that path',
    );
    expect((await get(tollgate, '/openapi.json')).status).toBe(402);
    expect(await (await get(tollgate, '/llms.txt')).json()).toMatchObject({ upstream: true });
  });

  test('behaviour: without a discovery section no public document is answered here', async () => {
    const file = allInOne('without', { discovery: '{}' });
    const text = readFileSync(file, 'utf8').replace('discovery: {}', '');
    const tollgate = await serve(put('without.yaml', text));
    for (const target of ['/openapi.json', '/llms.txt'])
      expect(await (await get(tollgate, target)).json()).toMatchObject({ upstream: true });
  });

  test('behaviour: the start says what is public and what is left out and why', async () => {
    const tollgate = await serve(
      allInOne('said', { discovery: '{}', routes: [...ROUTES, '  - { route_pattern: "/files/*", amount: "0.10" }'] }),
    );
    const line = await tollgate.line(({ msg }) => msg === 'what is sold is told to everybody');
    expect(line).toMatchObject({ level: 'info', at: '/openapi.json, /llms.txt', operations: 1, left_out: 2 });
    await tollgate.line(({ msg }) => msg.startsWith('left out of /openapi.json (a wildcard without an operation'));
  });
});

describe('in other shapes', () => {
  test('behaviour: a sidecar tells the routes of its registry, and 503 before it knows them', async () => {
    const registry = await serve(
      put(
        'registry.yaml',
        [
          `registry: { listen: 127.0.0.1:0, store: "sqlite:registry/t.db", api_keys: [{ name: t, key: ${API_KEY} }] }`,
          'admin: { listen: 127.0.0.1:0 }',
          CHARGES,
          'routes:',
          ...ROUTES,
        ].join('\n'),
      ),
      ['registry', 'admin'],
    );
    const sidecar = (name: string, url: string): string =>
      put(
        `${name}.yaml`,
        [
          `proxy: { listen: 127.0.0.1:0, upstream: "${upstream.url}" }`,
          `sync: { registry_url: "${url}", api_key: ${API_KEY}, snapshot_file: ${name}.json, poll_interval: 1s }`,
          'admin: { listen: 127.0.0.1:0 }',
          CHARGES,
          RECEIVERS,
          'discovery: {}',
        ].join('\n'),
      );
    const tollgate = await serve(sidecar('sidecar', registry.url('registry')), ['proxy', 'admin']);
    expect(await told(tollgate, 'what is sold')).toEqual(['get /weather/{city} 0.10']);
    const alone = await serve(sidecar('alone', 'http://127.0.0.1:1'), ['proxy', 'admin']);
    const response = await get(alone, '/openapi.json');
    expect([response.status, response.headers.get('retry-after'), await response.json()]).toMatchObject([
      503,
      '1',
      { code: 'routes_absent' },
    ]);
  });

  test('behaviour: every worker tells the same public documents, before and after a change', async () => {
    put('openapi.yaml', OPENAPI);
    const tollgate = await serve(allInOne('workers', { more: ['workers: 2'] }));
    for (const worker of [1, 2])
      await tollgate.line(({ msg, number }) => msg === 'a worker is ready' && number === worker);
    const everywhere = (what: string, price: string): Promise<true> =>
      until(what, async () => {
        const answers = await Promise.all(
          Array.from({ length: 12 }, async () => {
            const raw = await openRaw(tollgate.port('proxy'));
            raw.send('GET /openapi.json HTTP/1.1\r\nHost: a.example\r\nConnection: close\r\n\r\n');
            return (await raw.answer()).body.toString();
          }),
        );
        return answers.every((text) => text.includes(`"amount":"${price}"`)) && (true as const);
      });
    await everywhere('the first price', '0.10');
    allInOne('workers', { more: ['workers: 2'], routes: [(ROUTES[0] ?? '').replace('0.10', '0.70')] });
    await everywhere('the second price', '0.70');
    const metrics = await until('the metrics of the workers', async () => {
      const text = await (await fetch(`${tollgate.url('admin')}/metrics`)).text();
      return text.includes('outcome="discovery"') && text;
    });
    expect(metrics).toMatch(/tollgate_requests_total\{[^}]*outcome="discovery"/);
  });
});
