// The all-in-one shape as its users meet it: a real process in front of a real upstream, asked over HTTP. What the proxy,
// the `match` command and the registry's /match say about one path has to be the same.
import { execFile } from 'node:child_process';
import { readFileSync, statSync } from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { MATCHES } from '../cases/matches.ts';
import { SPELLINGS_OF_EXPORT, TARGETS } from '../cases/targets.ts';
import { programBuild } from '../support/build.ts';
import { startProcess, temporaryFolder, type TollgateProcess } from '../support/process.ts';
import { startUpstream, type Upstream } from '../support/upstream.ts';
import { headerOf, openRaw, type RawAnswer } from '../support/raw-client.ts';

const ROOT = path.resolve(import.meta.dirname, '../..');
const run = promisify(execFile);
const files = temporaryFolder();
let upstream: Upstream;
let tollgate: TollgateProcess;
let config: string;
let token: string;

async function cli(...args: string[]): Promise<{ code: number; stdout: string }> {
  try {
    const { stdout } = await run(path.join(ROOT, 'node_modules/.bin/node'), [
      programBuild().main,
      ...args,
      '-c',
      config,
    ]);
    return { code: 0, stdout };
  } catch (error) {
    const failed = error as { code: number; stdout: string };
    return { code: failed.code, stdout: failed.stdout };
  }
}

const dashboard = (method: string, where: string, body?: unknown): Promise<Response> =>
  fetch(`${tollgate.url('registry')}/v1/billing/protected-routes${where}`, {
    method,
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });

async function create(rule: string, rest: Record<string, unknown> = {}): Promise<{ id: string }> {
  const [method, route_pattern, amount = '0.10'] = rule.split(' ');
  const response = await dashboard('POST', '', { method, route_pattern, amount, ...rest });
  expect(response.status).toBe(201);
  return (await response.json()) as { id: string };
}

const get = (where: string, init: RequestInit = {}): Promise<Response> =>
  fetch(`${tollgate.url('proxy')}${where}`, { redirect: 'manual', ...init });

/** One request as bytes, on a connection of its own. */
async function ask(requestLine: string): Promise<RawAnswer> {
  const client = await openRaw(tollgate.port('proxy'));
  client.send(`${requestLine}\r\nHost: localhost\r\nConnection: close\r\n\r\n`);
  const answer = await client.answer();
  client.close();
  return answer;
}

beforeAll(async () => {
  upstream = await startUpstream();
  config = files.write(
    'tollgate.yaml',
    `
proxy: { listen: 127.0.0.1:0, upstream: ${upstream.url}, public_url: https://api.example.com, cors_origins: [https://app.example.com], timeouts: { drain_delay: 0s } }
registry: { listen: 127.0.0.1:0, store: sqlite:data/tollgate.db }
admin: { listen: 127.0.0.1:0 }
receivers:
  - { id: default, network: base-sepolia, rpc_url: none, pay_to_address: "0x1111111111111111111111111111111111111111", facilitators: [http://127.0.0.1:1] }
routes:
  - { route_pattern: /configured/*, method: GET, amount: "0.30", description: Configured }
`,
  );
  tollgate = await startProcess({ args: ['serve', '-c', config], listeners: ['proxy', 'registry', 'admin'] });
  token = (await cli('token')).stdout.trim();
});

afterAll(async () => {
  await tollgate?.kill();
  await upstream?.close();
  files.remove();
});

describe('a fresh start', () => {
  test('behaviour: a first start makes its secrets in the data folder, for its owner only, and says how to read them, not what they are', () => {
    const secrets = readFileSync(path.join(files.folder, 'data/secrets.json'), 'utf8');
    expect(statSync(path.join(files.folder, 'data/secrets.json')).mode & 0o777).toBe(0o600);
    const log = JSON.stringify(tollgate.lines) + tollgate.stderr();
    const values = secrets.match(/[A-Za-z0-9_+/=-]{32,}/g) ?? [];
    expect(values.length).toBeGreaterThan(0);
    for (const value of values) expect(log).not.toContain(value);
    expect(log).toContain('tollgate token');
  });

  test('behaviour: a fresh start is alive and ready, and says why', async () => {
    expect((await fetch(`${tollgate.url('admin')}/livez`)).status).toBe(200);
    const ready = await fetch(`${tollgate.url('admin')}/readyz?verbose`);
    expect([ready.status, ((await ready.json()) as { status: string }).status]).toEqual([200, 'ready']);
    expect((await cli('healthcheck', '--url', `${tollgate.url('admin')}/readyz`)).code).toBe(0);
  });
});

describe('a request', () => {
  test('behaviour: a request that nothing protects passes as it is, with an id', async () => {
    const response = await get('/free/a?b=c');
    expect([response.status, await response.json()]).toEqual([
      200,
      { upstream: true, method: 'GET', url: '/free/a?b=c' },
    ]);
    expect(response.headers.get('x-request-id')).toMatch(/^[A-Za-z0-9._-]+$/);
    expect(upstream.seen.at(-1)?.headers['x-request-id']).toBe(response.headers.get('x-request-id'));
  });

  test('behaviour: a request that costs is answered with the interface’s 402, and never reaches the upstream', async () => {
    const before = upstream.seen.length;
    const response = await get('/configured/report?x=1');
    const body = (await response.json()) as Record<string, unknown>;
    expect(response.status).toBe(402);
    expect(response.headers.get('content-type')).toBe('application/json');
    expect(response.headers.get('cache-control')).toBe('no-store');
    expect(body).toEqual({
      error: 'Payment Required',
      charge_id: expect.stringMatching(/^chg_[A-Za-z0-9_-]{1,124}$/),
      amount: '0.30',
      currency: 'USD',
      description: 'Configured',
      x402_requirements: {
        rail_config: {
          scheme: 'exact',
          network: 'base-sepolia',
          asset: '0x036CbD53842c5426634e7929541eC2318f3dCF7e',
          pay_to_address: '0x1111111111111111111111111111111111111111',
          max_timeout_seconds: 300,
        },
        amount: '0.30',
        currency: 'USD',
        external_ref: body['charge_id'],
      },
    });
    const header = JSON.parse(Buffer.from(response.headers.get('payment-required') ?? '', 'base64').toString());
    expect(header).toMatchObject({
      x402Version: 2,
      resource: { url: 'https://api.example.com/configured/report' },
      accepts: [{ network: 'eip155:84532', amount: '300000', extra: { external_ref: body['charge_id'] } }],
    });
    expect(upstream.seen.length).toBe(before);
  });

  test('behaviour: HEAD costs like GET and has no body', async () => {
    const response = await get('/configured/report', { method: 'HEAD' });
    expect([response.status, await response.text()]).toEqual([402, '']);
    expect(response.headers.get('payment-required')).not.toBeNull();
  });

  test('behaviour: two answers never share a charge id', async () => {
    const ids = await Promise.all(
      Array.from(
        { length: 20 },
        async () => ((await (await get('/configured/x')).json()) as { charge_id: string }).charge_id,
      ),
    );
    expect(new Set(ids).size).toBe(20);
  });

  test('behaviour: a browser of a configured origin may read the 402, and its preflight is answered here', async () => {
    const before = upstream.seen.length;
    const origin = 'https://app.example.com';
    const demanded = await get('/configured/x', { headers: { origin } });
    expect(demanded.headers.get('access-control-allow-origin')).toBe(origin);
    expect(demanded.headers.get('access-control-expose-headers')).toContain('PAYMENT-REQUIRED');
    const preflight = await get('/configured/x', {
      method: 'OPTIONS',
      headers: { origin, 'access-control-request-method': 'GET' },
    });
    expect([preflight.status, preflight.headers.get('access-control-allow-origin')]).toEqual([204, origin]);
    expect(preflight.headers.get('access-control-allow-headers')).toContain('PAYMENT-SIGNATURE');
    const foreign = await get('/configured/x', { headers: { origin: 'https://evil.example' } });
    expect(foreign.headers.get('access-control-allow-origin')).toBeNull();
    expect(upstream.seen.length).toBe(before);
  });

  test('refuses: a target that is ambiguous, too long or not supported, as a problem that says so', async () => {
    const before = upstream.seen.length;
    for (const [request, status, code] of [
      ['GET /free/%2e%2e/configured/x HTTP/1.1', 400, 'target_ambiguous'],
      [`GET /${'a'.repeat(8192)} HTTP/1.1`, 414, 'target_too_long'],
      ['TRACE /free HTTP/1.1', 501, 'method_unsupported'],
      ['FOO /free HTTP/1.1', 501, 'method_unsupported'],
      ['get /free HTTP/1.1', 501, 'method_unsupported'],
      ['GET /fr\u0001ee HTTP/1.1', 400, 'target_ambiguous'],
      ['GET /fr\tee HTTP/1.1', 400, 'target_ambiguous'],
      ['GET /free HTTP/2.0', 505, 'http_version_unsupported'],
      ['GET /free HTTP/1.2', 505, 'http_version_unsupported'],
      ['GET /free HTTP/3.0', 505, 'http_version_unsupported'],
      ['GET /free HTTP/1.x', 400, 'request_malformed'],
      ['GET api.example.com:80 HTTP/1.1', 400, 'target_ambiguous'],
      ['GET http://evil.example/free HTTP/1.1', 400, 'target_ambiguous'],
    ] as const) {
      const answer = await ask(request);
      expect([request.slice(0, 40), answer.status, JSON.parse(answer.body.toString()).code]).toEqual([
        request.slice(0, 40),
        status,
        code,
      ]);
      expect(headerOf(answer, 'content-type')).toBe('application/problem+json');
    }
    expect(upstream.seen.length).toBe(before);
  });
});

describe('the dashboard', () => {
  test('behaviour: a price changed, a pause and a deletion in the dashboard are live at once', async () => {
    const { id } = await create('GET /live/price 0.10');
    const price = async (): Promise<unknown> => {
      const response = await get('/live/price');
      return response.status === 402 ? ((await response.json()) as { amount: string }).amount : response.status;
    };
    expect(await price()).toBe('0.10');
    expect((await dashboard('PATCH', `/${id}`, { amount: '0.25' })).status).toBe(200);
    expect(await price()).toBe('0.25');
    await dashboard('PATCH', `/${id}`, { status: 'paused' });
    expect(await price()).toBe(200);
    await dashboard('PATCH', `/${id}`, { status: 'active' });
    expect(await price()).toBe('0.25');
    expect((await dashboard('DELETE', `/${id}`)).status).toBe(204);
    expect(await price()).toBe(200);
  });

  test('refuses: a route that cannot be priced here', async () => {
    const wanted = { method: 'GET', route_pattern: '/unpriced', amount: '0.10', receiver_config_id: 'elsewhere' };
    const response = await dashboard('POST', '', wanted);
    expect([response.status, ((await response.json()) as { code: string }).code]).toEqual([422, 'invalid']);
  });

  test('refuses: a presented credential while payments cannot be taken, never let through', async () => {
    await create('GET /paid/thing 0.10');
    const before = upstream.seen.length;
    const credential = Buffer.from('{}').toString('base64');
    const statuses = await Promise.all([
      get('/paid/thing', { headers: { 'payment-signature': credential } }),
      get('/paid/thing', { headers: { 'payment-signature': 'not base64!' } }),
      get('/paid/thing', { headers: { 'x-payment': credential } }),
    ]);
    for (const response of statuses) expect(response.status).toBeGreaterThanOrEqual(400);
    expect(statuses[1]?.status).toBe(400);
    expect([statuses[2]?.status, statuses[2]?.headers.get('tollgate-reason')]).toEqual([
      402,
      'x402_version_unsupported: x402 version 2 is wanted, in the header PAYMENT-SIGNATURE',
    ]);
    expect(upstream.seen.length).toBe(before);
  });

  test('behaviour: a route closed to anonymous callers asks for a customer id', async () => {
    await create('GET /known/customers 0.10', { allow_anonymous: false });
    const anonymous = await get('/known/customers');
    expect([anonymous.status, ((await anonymous.json()) as { code: string }).code]).toEqual([400, 'customer_required']);
    expect((await get('/known/customers', { headers: { 'x-customer-id': 'c-1' } })).status).toBe(402);
  });
});

describe('proxy, /match and the match command agree', () => {
  test('behaviour: the proxy, /match and the match command agree on the spellings of one path, and on what is refused', async () => {
    await create('GET /v1/export 0.10');
    const key = (await cli('keys', 'create', '--name', 'agree', '--scope', 'sdk')).stdout.trim();
    const askMatch = async (
      asked: string,
    ): Promise<{ matched: boolean; payment_required: boolean; ambiguous?: true }> => {
      const query = new URLSearchParams({ method: 'GET', path: asked });
      const response = await fetch(`${tollgate.url('registry')}/v1/protected-routes/match?${query}`, {
        headers: { authorization: `Bearer ${key}` },
      });
      expect(response.status).toBe(200);
      return (await response.json()) as Awaited<ReturnType<typeof askMatch>>;
    };
    // What a request line can carry at all; the rest never reaches a proxy.
    const asked = [...SPELLINGS_OF_EXPORT, ...TARGETS.map(({ raw }) => raw)].filter(
      (raw) => /^\/[\x21-\x7e]*$/.test(raw) && !raw.includes('?'),
    );
    for (const raw of asked) {
      const proxied = await ask(`GET ${raw} HTTP/1.1`);
      const answer = await askMatch(raw);
      const expected = proxied.status === 400 ? 'refused' : proxied.status === 402 ? 'pays' : 'free';
      expect([raw, answer.ambiguous ? 'refused' : answer.payment_required ? 'pays' : 'free']).toEqual([raw, expected]);
    }
    const commanded = await cli('match', 'GET', '/V1/%65xport', '--json');
    expect([commanded.code, JSON.parse(commanded.stdout)]).toMatchObject([
      0,
      { matched: true, payment_required: true },
    ]);
    expect((await cli('match', 'GET', '/free')).code).toBe(1);
  });

  test('behaviour: the proxy, /match and the match command agree on the rules of precedence', async () => {
    for (const [index, { rules, asks }] of MATCHES.entries()) {
      const under = `/agree${index}`;
      const made = await Promise.all(
        rules.map((rule) => {
          const [method, pattern = '', amount] = rule.split(' ');
          return create([method, under + pattern, amount ?? '0.10'].join(' '));
        }),
      );
      for (const [request, wins] of asks) {
        const [method = '', asked = ''] = request.split(' ');
        // The formats of the root are names of the root alone, and here every case has a folder of its own.
        if (/^\/(?:\.[a-z0-9]+|_root\.data)$/.test(asked)) continue;
        const { status, headers } = await get(below(under, asked), { method });
        const id =
          status === 402
            ? made.at(rules.findIndex((rule) => rule === wins || rule.startsWith(`${wins} `)))?.id
            : undefined;
        expect([request, status]).toEqual([request, ['free', 'undeclared'].includes(wins) ? 200 : 402]);
        if (id !== undefined) {
          const demanded = JSON.parse(Buffer.from(headers.get('payment-required') ?? '', 'base64').toString());
          const charge = Buffer.from(demanded.accepts[0].extra.external_ref.slice(4), 'base64url');
          expect([request, charge.toString('hex', 2, 18)]).toEqual([request, id.replaceAll('-', '')]);
        }
      }
    }
  });
});

describe('what is seen from outside', () => {
  test('behaviour: metrics count by outcome and route, and labels never hold a path', async () => {
    await get('/free/some-unique-path');
    await get('/configured/some-other-unique-path');
    const text = await (await fetch(`${tollgate.url('admin')}/metrics`)).text();
    expect(text).toMatch(/tollgate_requests_total\{outcome="free",code="200",route_id="",listener="proxy"\} \d+/);
    expect(text).toMatch(
      /tollgate_requests_total\{outcome="payment_required",code="402",route_id="[0-9a-f-]{36}",listener="proxy"\} \d+/,
    );
    expect(text).toMatch(
      /tollgate_route_info\{route_id="[0-9a-f-]{36}",route_pattern="\/configured\/\*",method="GET",amount="0.30",currency="USD"\} 1/,
    );
    expect(text).toMatch(/tollgate_build_info\{version="[^"]+",node="v\d+\.\d+\.\d+"\} 1/);
    expect(text).not.toContain('unique-path');
  });

  test('behaviour: a request is one JSON line, with its ids and without its query, credentials or keys', async () => {
    const traceId = '4bf92f3577b34da6a3ce929d0e0e4736';
    await get('/free/logged?secret=canary-query', {
      headers: {
        authorization: 'Bearer canary-authorization',
        'payment-signature': 'Y2FuYXJ5',
        'x-request-id': 'my-request',
        traceparent: `00-${traceId}-00f067aa0ba902b7-01`,
      },
    });
    const line = await tollgate.line(({ path: logged }) => logged === '/free/logged');
    expect(line).toMatchObject({
      msg: 'request',
      request_id: 'my-request',
      trace_id: traceId,
      method: 'GET',
      status: 200,
      outcome: 'free',
    });
    expect(upstream.seen.at(-1)?.headers['traceparent']).toBe(`00-${traceId}-00f067aa0ba902b7-01`);
    expect(JSON.stringify(tollgate.lines)).not.toMatch(/canary|Y2FuYXJ5/);
  });

  test.each([
    ['00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01', 'a=1,b=2', true],
    ['cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-09-later', 'a=1', true],
    ['ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01', 'a=1', false],
    ['00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-later', 'a=1', false],
    ['00-00000000000000000000000000000000-00f067aa0ba902b7-01', 'a=1', false],
    ['00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01', 'a=1', false],
    ['forged', 'a=1', false],
  ])('behaviour: the trace context %s goes on unchanged, or not at all', async (traceparent, tracestate, taken) => {
    await get('/free/traced', { headers: { traceparent, tracestate } });
    const headers = upstream.seen.at(-1)?.headers;
    expect([headers?.['traceparent'], headers?.['tracestate']]).toEqual(
      taken ? [traceparent, tracestate] : [undefined, undefined],
    );
  });

  test.each([
    ['GET', '/free/%2e%2e/configured/x?secret=canary-query', '/free/%2e%2e/configured/x'],
    ['GET', `/${'a'.repeat(300)}/%2e%2e/x`, `/${'a'.repeat(255)}`],
    ['GET', 'http://user:canary-password@evil.example/free', 'http://evil.example/free'],
    ['TRACE', '/free/traced', '/free/traced'],
  ])('behaviour: a refused %s %s is logged with what it asked for', async (method, target, shown) => {
    const id = `refused-${Buffer.from(shown).toString('hex').slice(0, 60)}`;
    await ask(`${method} ${target} HTTP/1.1\r\nX-Request-Id: ${id}`);
    const line = await tollgate.line(({ request_id: logged }) => logged === id);
    expect(line).toMatchObject({ msg: 'request', outcome: 'refused', path: shown });
    expect(JSON.stringify(line)).not.toContain('canary');
  });

  test('behaviour: routes and keys survive kill -9', async () => {
    const { id } = await create('GET /survives 0.77');
    await tollgate.kill();
    tollgate = await startProcess({ args: ['serve', '-c', config], listeners: ['proxy', 'registry', 'admin'] });
    expect((await dashboard('GET', `/${id}`)).status).toBe(200);
    expect(((await (await get('/survives')).json()) as { amount: string }).amount).toBe('0.77');
  });

  test('behaviour: SIGTERM ends a server with 0', async () => {
    tollgate.signal('SIGTERM');
    expect(await tollgate.exited).toBe(0);
  });
});

/** `path` below `under`; the names of scripts at its beginning stay there, as servers that run them have it. */
function below(under: string, path: string): string {
  const scripts = /^(?:\/\w+\.(?:php|cgi)(?=\/))*/.exec(path)?.[0] ?? '';
  return scripts + under + path.slice(scripts.length);
}
