// The shipped configurations on the real proxies that this machine has, with a real chain behind: unmodified clients pay through them,
// and no spelling of a target, a header or a method gets anything for nothing.
import { hash } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { connect, type OutgoingHttpHeaders } from 'node:http2';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { startTap, type DecisionTap } from '../lab/bypass/decision-tap.ts';
import { SECRET, send } from '../support/asker.ts';
import { forgedThatArrive } from '../support/forged-headers.ts';
import { startPaidTollgate, until, type PaidTollgate } from '../support/paid-tollgate.ts';
import { temporaryFolder } from '../support/process.ts';
import { headerOf, openRaw, type RawAnswer } from '../support/raw-client.ts';
import { isInstalled, PROGRAMS, SHIPPED, startShippedProxy, type RunningProxy } from '../support/shipped-proxy.ts';

const INSTALLED = PROGRAMS.filter(isInstalled);
const DIALECTS = [...new Set(PROGRAMS.map(({ dialect }) => dialect))];
const nameOf = (dialect: string): string => {
  const index = DIALECTS.indexOf(dialect);
  return index === 0 ? 'decision' : `decision[${index}]`;
};
const files = temporaryFolder();
/** The key of a customer who need not pay. */
const KEY = 'key-of-a-partner-0001';
/** What an allow tells the client; all else of ours is for the API, but what the proxy itself reads. */
const FOR_CLIENT = [
  'payment-response',
  'x-payment-response',
  'tollgate-free-left',
  'tollgate-pass',
  'tollgate-pass-left',
];
const FOR_PROXY = new Set(['tollgate-decision', 'tollgate-target']);
const CACHES = ['cache-control', 'cdn-cache-control', 'surrogate-control'];
let paid: PaidTollgate;
/** Paths under which the API dies. */
let isDead: RegExp | undefined;

beforeAll(async () => {
  if (INSTALLED.length === 0) return;
  paid = await startPaidTollgate({
    routes: ['GET /paid/* 0.10', 'POST /paid/* 0.10'],
    handle: (req, res) => {
      if (isDead?.test(req.url ?? '') === true) {
        req.socket.destroy();
        return;
      }
      req.resume();
      res.writeHead(200, {
        ...{ 'payment-response': 'forged', 'payment-required': 'forged', 'x-payment-response': 'forged' },
        ...{ 'tollgate-pass': 'forged', 'tollgate-free-left': 'forged' },
        ...Object.fromEntries(CACHES.map((name) => [name, 'public, max-age=60'])),
      });
      res.end(`${req.method} ${req.url}`);
    },
    proxy: 'undeclared_methods: pay, customer_header_trusted: true',
    more: [
      'selling:',
      '  plans: [{ id: default, customers: [partners], free: { requests: 1000, window: month, by: customer } }]',
      `  customers: [{ id: partners, header: X-Api-Key, keys_file: ${files.write('keys.txt', `${hash('sha256', KEY)} acme\n`)} }]`,
      'decision:',
      ...DIALECTS.map(
        (dialect) =>
          `  - { listen: 127.0.0.1:0, secret: ${SECRET}, dialect: ${dialect}, undeclared_methods: pay, customer_header_trusted: true }`,
      ),
    ].join('\n'),
    listeners: DIALECTS.map(nameOf),
  });
  paid.upstream.server.on('upgrade', (_req, socket) => {
    socket.end(
      'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n',
    );
  });
}, 180_000);
afterAll(async () => {
  await paid?.stop();
  files.remove();
});

/** Everything that some router reads in a target. */
function readings(target: string): string[] {
  const decode = (text: string): string => {
    try {
      return decodeURIComponent(text);
    } catch {
      return text;
    }
  };
  const asUrl = (text: string): string => {
    try {
      return new URL(text, 'http://a').pathname;
    } catch {
      return text;
    }
  };
  const plain = target.split('#', 1)[0]?.split('?', 1)[0] ?? '';
  const all = [plain, decode(plain), asUrl(plain), decode(asUrl(plain)), asUrl(decode(plain)), asUrl(`http:${plain}`)];
  return all.flatMap((each) => [each, each.replace(/\/\/+/g, '/'), each.replace(/[;].*?(?=\/|$)/g, '')]);
}

const HOSTILE = [
  ...[
    '//paid/x',
    '///paid/x',
    '/free/../paid/x',
    '/free/%2e%2e/paid/x',
    '/free/..%2fpaid/x',
    '/%70aid/x',
    '/paid%2fx',
    '/paid%2Fx',
  ],
  ...[
    '/./paid/x',
    '/paid/./x',
    '/paid/x#y',
    '/paid/x?y',
    '/paid//x',
    '/PAID/x',
    '/paid;a=b/x',
    '/paid/x/',
    '/paid\\x',
    '/%2fpaid/x',
  ],
  ...[
    '/free/%252e%252e/paid/x',
    '/free/..;/paid/x',
    '/paid%00/x',
    '/paid/%c0%ae',
    '/free?/../paid/x',
    '/free#/../paid/x',
    '//free/paid/x',
  ],
  ...[
    '/free//../paid/x',
    '/paid/%78',
    '/paid%3bx/y',
    '/free/%5c..%5cpaid/x',
    '/free/.%2e/paid/x',
    'http://other/paid/x',
    '/paid',
    '/paid/',
  ],
  ...[
    'http://127.0.0.1/paid/x',
    'http://a?x=/paid/x',
    '*',
    '/free/a?b=/../paid/x',
    '/{paid}/x',
    '/paid/[x]',
    '/paid/|x',
    '/paıd/x',
  ],
];

/** Whether some router takes it for what is paid for. */
function isDear({ url }: { readonly url: string }): boolean {
  return readings(url).some((each) => /^\/+paid(\/|$)/i.test(each));
}

/** Asks on an HTTP/2 connection of its own; undefined: it, or its stream, was ended without an answer. */
function askOverHttp2(
  port: number,
  headers: OutgoingHttpHeaders,
): Promise<{ readonly status: number; readonly body: string } | undefined> {
  return new Promise((resolve) => {
    const client = connect(`http://127.0.0.1:${port}`);
    client.on('error', () => resolve(undefined));
    const stream = client.request(headers);
    let status = 0;
    let body = '';
    stream.setEncoding('utf8');
    stream.on('response', (head) => (status = Number(head[':status'])));
    stream.on('data', (text: string) => (body += text));
    stream.on('error', () => resolve(undefined));
    stream.on('close', () => {
      resolve(status === 0 ? undefined : { status, body });
      client.close();
    });
    stream.end();
  });
}

/** The headers of ours in an answer of the decision listener. */
function ours(head: string): ReadonlyMap<string, string> {
  const lines = head.split('\n').slice(1);
  const all = lines.map((line): [string, string] => {
    const colon = line.indexOf(':');
    return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()];
  });
  return new Map(all.filter(([name]) => name.startsWith('tollgate-') || FOR_CLIENT.includes(name)));
}

/** Asks while the API ends each connection without an answer. */
async function withDeadApi<T>(ask: () => Promise<T>, paths = /^/): Promise<T> {
  isDead = paths;
  try {
    return await ask();
  } finally {
    isDead = undefined;
  }
}

/** Reports of failed upstreams that were taken. */
async function reports(): Promise<number> {
  const text = await (await fetch(`${paid.tollgate().url('admin')}/metrics`)).text();
  return Number(/^tollgate_decision_reports_total\{result="accepted"\} (\d+)/m.exec(text)?.[1] ?? 0);
}

describe.each(INSTALLED)('$name with the shipped configuration', (program) => {
  let proxy: RunningProxy;
  let tap: DecisionTap;
  beforeAll(async () => {
    tap = await startTap(paid.tollgate().port(nameOf(program.dialect)));
    proxy = await startShippedProxy(program, `${files.write(program.name.replace(' ', '-'), '')}.d`, {
      ...{ upstream: paid.upstream.port, decision: tap.port, secret: SECRET },
    });
  }, 60_000);
  afterAll(async () => {
    await proxy?.close();
    await tap?.close();
  });
  const seen = (): (typeof paid.upstream.seen)[number] | undefined => paid.upstream.seen.at(-1);

  test('behaviour: a free request passes as it is, without anything of ours', async () => {
    const answer = await fetch(`${proxy.url}/free/a%20b?c=%2Fd`, { method: 'POST', body: 'upload' });
    expect([answer.status, await answer.text()]).toEqual([200, 'POST /free/a%20b?c=%2Fd']);
    for (const name of [...FOR_CLIENT, 'payment-required']) expect(answer.headers.get(name), name).toBeNull();
    for (const name of CACHES) expect(answer.headers.get(name), name).toBe('public, max-age=60');
    for (const name of Object.keys(seen()?.headers ?? {}))
      expect(name).not.toMatch(/^tollgate|^x-original|^x-forwarded-(uri|method)/);
    expect(answer.headers.get('vary') ?? '').not.toMatch(/tollgate/i);
  });

  // Apache is asked to forward requests here, and no upgrades.
  test.runIf(program.program !== 'apache2')(
    'behaviour: a WebSocket is opened where it is free or paid, with the receipt on the 101, and else is a 402',
    async () => {
      const target = `/paid/socket-${program.dialect}`;
      const payment = `PAYMENT-SIGNATURE: ${await paid.sign(await paid.quote(target))}\r\n`;
      const open = async (path: string, more = ''): Promise<RawAnswer> => {
        const client = await openRaw(proxy.port);
        const upgrade = 'Connection: keep-alive, Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n';
        client.send(
          `GET ${path} HTTP/1.1\r\nHost: a\r\n${upgrade}Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n${more}\r\n`,
        );
        const answer = await client.answer();
        client.close();
        return answer;
      };
      expect((await open('/free/socket')).status).toBe(101);
      expect((await open(target)).status).toBe(402);
      const opened = await open(target, payment);
      expect([opened.status, headerOf(opened, 'payment-response')]).toEqual([
        101,
        expect.stringMatching(/^[\w+/=-]+$/),
      ]);
    },
  );

  test.runIf(program.dialect === 'nginx')(
    'behaviour: a request that nginx asks about twice, for try_files to a named location, is counted once',
    async () => {
      const folder = `${files.write('try-files', '')}.d`;
      const redirecting = await startShippedProxy(program, folder, {
        ...{ upstream: paid.upstream.port, decision: tap.port, secret: SECRET },
        edit: (text) => text.replace('location / {', 'location / { try_files /none @app; }\n    location @app {'),
      });
      try {
        for (const left of ['999', '998']) {
          const answer = await fetch(`${redirecting.url}/paid/tried`, { headers: { 'X-Customer-Id': 'redirected' } });
          expect([answer.status, await answer.text()]).toEqual([200, 'GET /paid/tried']);
          expect(answer.headers.get('tollgate-free-left')).toMatch(new RegExp(`^${left};`));
        }
      } finally {
        await redirecting.close();
      }
    },
  );

  test('behaviour: an unpaid request gets the 402 whole, and nothing reaches the API', async () => {
    const before = paid.upstream.seen.length;
    const answer = await fetch(`${proxy.url}/paid/q3`);
    expect(answer.status).toBe(402);
    expect(answer.headers.get('content-type')).toBe('application/json');
    expect(answer.headers.get('payment-required')).not.toBeNull();
    expect(await answer.json()).toMatchObject({ error: 'Payment Required', amount: '0.10', currency: 'USD' });
    expect((await fetch(`${proxy.url}/paid/q3`, { method: 'HEAD' })).status).toBe(402);
    expect(paid.upstream.seen).toHaveLength(before);
  });

  test('behaviour: an unmodified client pays, and gets the answer with the receipt, which no cache may keep', async () => {
    const earned = await paid.earned();
    for (const method of ['GET', 'POST']) {
      const answer = await paid.payer.fetch(`${proxy.url}/paid/${program.dialect}?m=${method}`, { method });
      expect([answer.status, await answer.text()]).toEqual([200, `${method} /paid/${program.dialect}?m=${method}`]);
      const receipt = JSON.parse(
        Buffer.from(answer.headers.get('payment-response') ?? '', 'base64').toString(),
      ) as object;
      expect(receipt).toMatchObject({ success: true });
      expect(answer.headers.get('cache-control')).toBe('private, no-store');
      const headers: Readonly<Record<string, unknown>> = seen()?.headers ?? {};
      expect(headers['tollgate-charge-id']).toMatch(/^chg_/);
      expect(String(headers['tollgate-payer']).toLowerCase()).toBe(paid.payer.address.toLowerCase());
      expect([headers['payment-signature'], headers['tollgate-secret'], headers['tollgate-request-id']]).toEqual([
        undefined,
        undefined,
        undefined,
      ]);
    }
    expect(await paid.earned()).toBe(earned + 200_000n);
  });

  test('behaviour: every header of an allow reaches the API or the client, whoever is let through and why', async () => {
    const target = `/paid/told-${program.dialect}`;
    const customer = { 'x-customer-id': 'cust-1' };
    const payment = { 'payment-signature': await paid.sign(await paid.quote(target)) };
    const told = new Set<string>();
    for (const [access, headers] of Object.entries({
      paid: { ...customer, ...payment },
      free: customer,
      customer: { 'x-api-key': KEY },
    })) {
      const before = tap.allows.length;
      const answer = await fetch(proxy.url + target, { headers });
      expect([access, answer.status, await answer.text()]).toEqual([access, 200, `GET ${target}`]);
      expect(tap.allows).toHaveLength(before + 1);
      const arrived: Readonly<Record<string, unknown>> = seen()?.headers ?? {};
      expect(arrived['tollgate-access']).toBe(access);
      const said = ours(tap.allows.at(-1) ?? '');
      for (const [name, value] of said) {
        told.add(name);
        const got = FOR_CLIENT.includes(name) ? answer.headers.get(name) : arrived[name];
        if (!FOR_PROXY.has(name)) expect([name, got]).toEqual([name, value]);
      }
      for (const name of Object.keys(arrived).filter((each) => each.startsWith('tollgate')))
        expect([...said.keys()]).toContain(name);
      for (const name of FOR_CLIENT)
        if (!said.has(name)) expect([name, answer.headers.get(name)]).toEqual([name, null]);
      expect(CACHES.map((name) => answer.headers.get(name))).toEqual(['private, no-store', null, null]);
    }
    for (const name of ['charge-id', 'route-id', 'payer', 'amount', 'currency', 'network', 'customer-id', 'free-left'])
      expect(told).toContain(`tollgate-${name}`);
  });

  // Apache drops a request without an answer, and so without a report, if the API dies under it on a connection that had others before.
  test.runIf(program.program === 'apache2')(
    'behaviour: a 402 and what was paid for each end their connection, so that a request that pays is the first of its own',
    async () => {
      const credential = await paid.sign(await paid.quote('/paid/alone'));
      for (const [payment, status] of [
        ['', 402],
        [`PAYMENT-SIGNATURE: ${credential}\r\n`, 200],
      ] as const) {
        const client = await openRaw(proxy.port);
        client.send('GET /free/a HTTP/1.1\r\nHost: a\r\n\r\n');
        expect((await client.answer()).status).toBe(200);
        client.send(`GET /paid/alone HTTP/1.1\r\nHost: a\r\n${payment}\r\n`);
        expect((await client.answer()).status).toBe(status);
        await client.closed;
      }
    },
  );

  test('attack: a payment that was used is answered 409 with its receipt', async () => {
    const target = `/paid/replay-${program.dialect}`;
    const credential = await paid.sign(await paid.quote(target));
    const pay = (): Promise<Response> => fetch(proxy.url + target, { headers: { 'payment-signature': credential } });
    expect((await pay()).status).toBe(200);
    const before = paid.upstream.seen.length;
    const again = await pay();
    expect([again.status, ((await again.json()) as { code: string }).code]).toEqual([409, 'already_paid']);
    expect(again.headers.get('payment-response')).not.toBeNull();
    expect(paid.upstream.seen).toHaveLength(before);
  });

  test('attack: no spelling of a target, on any method, reaches what is paid for without a payment', async () => {
    const before = paid.upstream.seen.length;
    for (const target of HOSTILE)
      for (const method of ['GET', 'POST', 'HEAD', 'PUT', 'FOO']) {
        const client = await openRaw(proxy.port);
        client.send(
          Buffer.from(
            `${method} ${target} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 0\r\nConnection: close\r\n\r\n`,
          ),
        );
        await client.closed;
      }
    const unpaid = paid.upstream.seen.slice(before);
    expect(unpaid.length).toBeGreaterThan(0);
    expect(unpaid.filter(isDear).map(({ method, url }) => `${method} ${url}`)).toEqual([]);
  });

  test.runIf(program.overHttp2 !== undefined)(
    'attack: over HTTP/2 no spelling of a target or of a host reaches what is paid for without a payment, and a payer does',
    async () => {
      const { overHttp2: edit = String } = program;
      const spoken = await startShippedProxy(program, `${files.write(`h2-${program.name.replace(' ', '-')}`, '')}.d`, {
        ...{ upstream: paid.upstream.port, decision: tap.port, secret: SECRET, edit },
      });
      try {
        const before = paid.upstream.seen.length;
        const hosts = [{ ':authority': 'a' }, { host: 'a' }, { ':authority': 'a', host: 'b' }];
        for (const target of [...HOSTILE, '/free /paid/x', '/free\t/paid/x', ''])
          for (const method of ['GET', 'POST'])
            for (const host of hosts)
              await askOverHttp2(spoken.port, { ':method': method, ':path': target, ':scheme': 'http', ...host });
        const unpaid = paid.upstream.seen.slice(before);
        expect(unpaid.length).toBeGreaterThan(0);
        expect(unpaid.filter(isDear).map(({ method, url }) => `${method} ${url}`)).toEqual([]);

        const target = `/paid/h2-${program.name.replace(' ', '-')}`;
        const head = { ':method': 'GET', ':path': target, ':scheme': 'http', ':authority': 'a' };
        expect(await askOverHttp2(spoken.port, head)).toMatchObject({ status: 402 });
        const signed = { ...head, 'payment-signature': await paid.sign(await paid.quote(target)) };
        expect(await askOverHttp2(spoken.port, signed)).toEqual({ status: 200, body: `GET ${target}` });
        expect(await askOverHttp2(spoken.port, signed)).toMatchObject({ status: 409 });
      } finally {
        await spoken.close();
      }
    },
    60_000,
  );

  test('attack: headers in our name and credentials of payers are refused, or never reach the API', async () => {
    const names = [
      ...['Tollgate-Pass', 'SIGN-IN-WITH-X', 'PAYMENT-SIGNATURE', 'X-PAYMENT'],
      ...['Tollgate-Payer', 'tollgate_charge_id', 'Tollgate.Amount', 'Tollgate-Secret', 'Tollgate-Request-Id'],
      ...[
        'X-Original-URI',
        'X-Forwarded-Uri',
        'X-Rewrite-URL',
        'X_Original.URL',
        'X-Envoy-Original-Path',
        'Script-Name',
      ],
      ...['Tollgate-Access', 'Tollgate-Customer-Id', 'Tollgate-Charge-Id', 'Tollgate-Network', 'Tollgate-Use-Id'],
      ...['Uri', 'Url', 'Method', 'Prefix', 'Path', 'Path-Info', 'Query'].map((name) => `X-Forwarded-${name}`),
      ...['Path', 'Path-Info', 'Query', 'Host', 'Method'].map((name) => `X-Original-${name}`),
      ...['Forwarded', 'X-Host', 'X_Host', 'X-Now-Route-Matches', 'X.Now.Route.Matches', 'X_Forwarded_Prefix'],
    ];
    expect(await forgedThatArrive(proxy.port, paid.upstream, names)).toEqual([]);
  });

  test('behaviour: an API that dies under a paid request is reported, and its payer asks again without paying', async () => {
    const earned = await paid.earned();
    const reported = await reports();
    for (const method of ['GET', 'POST']) {
      const target = `/paid/dead-${program.dialect}?by=${method}`;
      const credential = await paid.sign(await paid.quote(target, method));
      const head = `${method} ${target} HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n`;
      const pay = async (): Promise<RawAnswer> => {
        const client = await openRaw(proxy.port);
        // A connection that had others before, as those of a client have.
        if (program.program !== 'apache2') {
          client.send('GET /free/a HTTP/1.1\r\nHost: a\r\n\r\n');
          await client.answer();
        }
        client.send(`${head}PAYMENT-SIGNATURE: ${credential}\r\n\r\n`);
        const answer = await client.answer();
        client.close();
        return answer;
      };
      const failed = await withDeadApi(pay, /^\/paid/);
      expect([failed.status, headerOf(failed, 'retry-after')]).toEqual([502, '1']);
      expect(headerOf(failed, 'payment-response')).toMatch(/^[\w+/=-]+$/);
      expect(JSON.parse(failed.body.toString())).toMatchObject({ code: 'upstream_failed', charged: true });
      const served = await until('it is served', async () => {
        const answer = await pay();
        return answer.status === 200 ? answer : undefined;
      });
      expect(served.body.toString()).toBe(`${method} ${target}`);
    }
    expect(await paid.earned()).toBe(earned + 200_000n);
    expect(await reports()).toBe(reported + 2);
    const free = await withDeadApi(() => send(proxy.port, 'GET /free/dead HTTP/1.1\r\nHost: a\r\n\r\n'));
    expect(free.status).toBe(502);
    expect(await reports()).toBe(reported + 2);
  });
});

describe('the shipped configurations', () => {
  const shipped = [
    'nginx.conf',
    'nginx-accel.conf',
    'Caddyfile',
    'traefik.yaml',
    'envoy.yaml',
    'haproxy.cfg',
    'apache.conf',
  ];

  test.each(shipped)('behaviour: %s says first what it protects and what not', (file) => {
    const all = PROGRAMS.find(({ files: [main] }) => main === file)?.files ?? [file];
    const text = all.map((each) => readFileSync(path.join(SHIPPED, each), 'utf8')).join('\n');
    const comment = text
      .split('\n')
      .filter((line, index, all) => line.startsWith('#') && all.slice(0, index).every((each) => each.startsWith('#')));
    expect(comment.join(' ')).toMatch(/Protected: .*Not protected/s);
    expect(text).toContain('127.0.0.1:3000'.replace(':3000', file === 'envoy.yaml' ? ', port_value: 3000' : ':3000'));
    expect(text.toLowerCase()).toContain('no-store');
  });

  test('behaviour: those for Traefik and Envoy are YAML, fail closed, and hand all facts on', () => {
    const traefik = JSON.stringify(parse(readFileSync(path.join(SHIPPED, 'traefik.yaml'), 'utf8')));
    for (const name of ['Charge-Id', 'Route-Id', 'Payer', 'Amount', 'Currency', 'Customer-Id'])
      expect(traefik).toContain(`Tollgate-${name}`);
    expect(traefik).toContain('"trustForwardHeader":false');
    const envoy = JSON.stringify(parse(readFileSync(path.join(SHIPPED, 'envoy.yaml'), 'utf8')));
    expect(envoy).toContain('"failure_mode_allow":false');
    expect(envoy).toContain('"status_on_error":{"code":"ServiceUnavailable"}');
    expect(existsSync(path.join(SHIPPED, 'apache.lua'))).toBe(true);
  });
});
