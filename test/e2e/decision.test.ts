// Decision listeners from outside, in all dialects of one process: the question as it is read, and the answers that cost nothing.
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  ask,
  decidedOf,
  DIALECTS,
  questionOf,
  SECRET,
  send,
  type AskedQuestion,
  type Decided,
  type Dialect,
} from '../support/asker.ts';
import { startPaidTollgate, type PaidTollgate } from '../support/paid-tollgate.ts';
import { openRaw } from '../support/raw-client.ts';

let paid: PaidTollgate;
const NAMES = DIALECTS.map((_, index) => (index === 0 ? 'decision' : `decision[${index}]`));
/** A listener without a secret, which also reads paths in its own way. */
const OPEN = `decision[${DIALECTS.length}]`;
/** One that lets nobody ask. */
const CLOSED = `decision[${DIALECTS.length + 1}]`;

beforeAll(async () => {
  const common = `listen: 127.0.0.1:0, secret: ${SECRET}, cors_origins: ["https://app.example"]`;
  paid = await startPaidTollgate({
    routes: ['GET /paid/* 0.10', 'POST /paid/* 0.20', 'GET /kept/a 0.10'],
    more: [
      'decision:',
      ...DIALECTS.map(
        (dialect) => `  - { ${common}, dialect: ${dialect}, path_prefix: ${dialect === 'envoy' ? '/ask' : '""'} }`,
      ),
      '  - { listen: 127.0.0.1:0, dialect: nginx, double_slashes: keep, encoded_slashes: keep, allow_headers: [Forwarded] }',
      '  - { listen: 127.0.0.1:0, dialect: caddy, trusted_peers: [192.0.2.0/24] }',
    ].join('\n'),
    listeners: [...NAMES, OPEN, CLOSED],
  });
}, 180_000);
afterAll(() => paid?.stop());

const portOf = (dialect: Dialect): number => paid.tollgate().port(NAMES[DIALECTS.indexOf(dialect)] ?? '');
const asks = (dialect: Dialect, question: AskedQuestion): Promise<Decided> => ask(portOf(dialect), dialect, question);
const codeOf = ({ body }: Decided): unknown => (JSON.parse(body) as { code: unknown }).code;

describe.each(DIALECTS)('%s', (dialect) => {
  test('behaviour: a free request is allowed with the target that was decided, and nothing that an answer could inherit', async () => {
    const free = await asks(dialect, { target: '/free/a?b=%20c' });
    expect(free).toMatchObject({ raw: 200, allows: true, body: '' });
    expect(free.header('tollgate-target')).toBe('/free/a?b=%20c');
    expect(free.header('content-length')).toBe('0');
    for (const name of ['cache-control', 'content-type', 'set-cookie', 'tollgate-charge-id', 'payment-response'])
      expect(free.header(name)).toBeUndefined();
    expect(free.header('x-accel-redirect')).toBe(dialect === 'nginx_accel' ? '@app' : undefined);
    const removed = free.header('x-envoy-auth-headers-to-remove');
    expect(removed === undefined).toBe(dialect !== 'envoy');
    if (removed !== undefined)
      for (const name of ['charge-id', 'route-id', 'payer', 'amount', 'currency', 'customer-id'])
        expect(removed).toContain(`tollgate-${name}`);
    for (const name of ['payment-signature', 'tollgate-pass', 'sign-in-with-x'])
      if (removed !== undefined) expect(removed.split(', ')).toContain(name);
  });

  test('behaviour: a pass is a credential of the client, and no header in our name; other spellings of it are', async () => {
    const headers = { 'tollgate-pass': 'pass_unknown' };
    expect(await asks(dialect, { target: '/free/a', headers })).toMatchObject({ allows: true });
    expect(await asks(dialect, { target: '/paid/q3', headers })).toMatchObject({ status: 402 });
    const spelled = await asks(dialect, { target: '/free/a', headers: { tollgate_pass: 'pass_unknown' } });
    expect([spelled.status, codeOf(spelled)]).toEqual([400, 'header_refused']);
  });

  test('behaviour: a request that costs something gets the 402 that the proxy would send', async () => {
    const [own, decided] = await Promise.all([
      fetch(paid.url('/paid/q3'), { headers: { origin: 'https://app.example' } }),
      asks(dialect, { target: '/paid/q3?x=1', headers: { origin: 'https://app.example' } }),
    ]);
    expect(decided).toMatchObject({ raw: dialect === 'nginx' ? 403 : 402, status: 402, allows: false });
    const shape = (text: string): unknown => {
      const { charge_id: id, ...body } = JSON.parse(text) as Record<string, unknown> & { charge_id: string };
      expect(id).toMatch(/^chg_/);
      return JSON.parse(JSON.stringify(body).replaceAll(id, 'ID').replaceAll(paid.url(''), 'https://api.example'));
    };
    expect(shape(decided.body)).toEqual(shape(await own.text()));
    const required = JSON.parse(Buffer.from(decided.header('payment-required') ?? '', 'base64').toString()) as {
      resource: { url: string };
    };
    expect(required.resource.url).toBe('https://api.example/paid/q3');
    expect(decided.header('tollgate-reason')).toBe('payment_required');
    expect(decided.header('access-control-allow-origin')).toBe('https://app.example');
    expect(decided.header('content-type')).toBe('application/json');
  });

  test.each([
    ['/free/%61', '/free/a'],
    ['/free//a', '/free/a'],
    ['//paid/q3', '/paid/q3'],
    ['/free/%2a%3b', '/free/%2A%3B'],
    ['/free/{a}', '/free/%7Ba%7D'],
  ])('refuses: %s, which is not its own canonical form, naming that form', async (target, canonical) => {
    const decided = await asks(dialect, { target });
    expect(decided).toMatchObject({ status: 400, allows: false });
    expect(JSON.parse(decided.body)).toMatchObject({ code: 'target_not_canonical', canonical });
  });

  test.each(['/paid/%2e%2e/free', '/free/%2f', '/free/..', '/free/%zz'])(
    'refuses: %s, which two routers read in two ways',
    async (target) => {
      expect(codeOf(await asks(dialect, { target }))).toBe('target_ambiguous');
    },
  );

  test.each([
    'Tollgate-Payer',
    'tollgate_charge_id',
    'Tollgate.Decision',
    'X-Rewrite-URL',
    'x_original_uri',
    'Forwarded',
    'X-Forwarded-Prefix',
    'X-Accel-Redirect',
    dialect === 'nginx' || dialect === 'nginx_accel' ? 'X-Forwarded-Uri' : 'X-Original-URI',
  ])('attack: a forged header %s is refused, not passed over', async (name) => {
    const own = name === 'X-Forwarded-Prefix' && ['caddy', 'traefik', 'haproxy'].includes(dialect);
    const decided = await asks(dialect, { target: '/free/a', headers: { [name]: 'x' } });
    if (own) expect(decided.allows).toBe(true);
    else expect(JSON.parse(decided.body)).toMatchObject({ code: 'header_refused', header: name.toLowerCase() });
  });

  test('attack: a header that overrides the method is refused where some route protects the path', async () => {
    const headers = { 'x-http-method-override': 'POST' };
    expect(codeOf(await asks(dialect, { target: '/paid/a', headers }))).toBe('header_refused');
    expect((await asks(dialect, { target: '/free/a', headers })).allows).toBe(true);
  });

  test('attack: a Host that is none is refused, because the API gets it too', async () => {
    const name = dialect === 'envoy' ? 'host' : 'x-forwarded-host';
    for (const host of ['a.example/paid/q3?', 'a.example?', 'a.example#', 'a@b.example', 'a.example, b', 'a b', '..'])
      expect(codeOf(await asks(dialect, { target: '/free/a', headers: { [name]: host } }))).toBe('request_malformed');
    expect((await asks(dialect, { target: '/free/a', headers: { [name]: '[::1]:80' } })).allows).toBe(true);
    if (dialect === 'envoy') return;
    expect((await asks(dialect, { target: '/free/a', headers: { [name]: '' } })).allows).toBe(true);
    const two = { [name]: `a.example\r\n${name}: a.example` };
    expect(codeOf(await asks(dialect, { target: '/free/a', headers: two }))).toBe('question_malformed');
  });

  test('refuses: methods that no listener lets in', async () => {
    for (const method of dialect === 'envoy' ? ['TRACE'] : ['TRACE', 'CONNECT', 'FOO', 'get'])
      expect(codeOf(await asks(dialect, { method, target: '/free/a' }))).toBe('method_unsupported');
  });

  test('refuses: a question without the secret, with another one or with two, before anything else', async () => {
    for (const secret of [undefined, 'another', `${SECRET}\r\ntollgate-secret: ${SECRET}`]) {
      const answer = await asks(dialect, {
        target: '//',
        headers: { 'tollgate-secret': secret, 'tollgate-payer': 'x' },
      });
      expect(answer).toMatchObject({ raw: 403, status: 403 });
      expect(answer.header('tollgate-status')).toBeUndefined();
      expect(codeOf(answer)).toBe('peer_untrusted');
    }
  });

  test('refuses: headers that are too large, in the form that the proxy hands on', async () => {
    const headers = Object.fromEntries(['a', 'b', 'c', 'd'].map((name) => [`x-${name}`, name.repeat(20_000)]));
    const decided = await asks(dialect, { target: '/free/a', headers });
    expect(decided).toMatchObject({ raw: dialect === 'nginx' ? 403 : 431, status: 431 });
    expect(codeOf(decided)).toBe('headers_too_large');
  });

  test('behaviour: a preflight for a paid path is answered where the proxy can hand that on', async () => {
    const headers = { origin: 'https://app.example', 'access-control-request-method': 'GET' };
    const decided = await asks(dialect, { method: 'OPTIONS', target: '/paid/a', headers });
    expect(decided.allows).toBe(false);
    if (dialect === 'traefik') expect(codeOf(decided)).toBe('preflight_unanswerable');
    else {
      expect(decided).toMatchObject({ raw: dialect === 'nginx' ? 403 : 204, status: 204 });
      expect(decided.header('access-control-allow-origin')).toBe('https://app.example');
    }
  });
});

describe('the question', () => {
  const NGINX: Dialect = 'nginx';

  test.each([
    ['no target', { 'x-original-uri': undefined }],
    ['an empty target', { 'x-original-uri': '' }],
    ['an absolute target', { 'x-original-uri': 'http://api.example/paid/a' }],
    ['two targets', { 'x-original-uri': '/free/a\r\nx-original-uri: /free/a' }],
    ['no method', { 'x-original-method': undefined }],
    ['two methods', { 'x-original-method': 'GET\r\nX-Original-Method: GET' }],
    ['a URL with another target', { 'x-original-url': 'http://api.example/free/b' }],
    [
      'the Host of ingress-nginx that ends a URL',
      { 'x-original-uri': undefined, 'x-original-url': 'http://a.example?/paid/x' },
    ],
    ['a URL with a user', { 'x-original-uri': undefined, 'x-original-url': 'http://a@b.example/free/a' }],
    ['two request ids', { 'tollgate-request-id': 'a\r\ntollgate-request-id: a' }],
    ['a request id with a space', { 'tollgate-request-id': 'a b' }],
  ])('refuses: %s', async (_, headers) => {
    const decided = await asks(NGINX, { target: '/free/a', headers });
    expect(decided).toMatchObject({ status: 400, allows: false });
    expect(codeOf(decided)).toBe('question_malformed');
  });

  test('behaviour: X-Original-URL stands in for a target that is not named, and may stand beside it', async () => {
    const url = 'https://api.example:8443/free/a?b';
    const alone = await asks(NGINX, { target: '', headers: { 'x-original-uri': undefined, 'x-original-url': url } });
    expect(alone.header('tollgate-target')).toBe('/free/a?b');
    expect((await asks(NGINX, { target: '/free/a?b', headers: { 'x-original-url': url } })).allows).toBe(true);
  });

  test('behaviour: settings of its own widen what is canonical, but a leading // never is', async () => {
    const port = paid.tollgate().port(OPEN);
    const free = (target: string, headers = {}): Promise<Decided> =>
      ask(port, NGINX, { target, headers: { 'tollgate-secret': undefined, ...headers } });
    expect((await free('/free//a%2Fb')).allows).toBe(true);
    expect(codeOf(await free('//free/a'))).toBe('target_not_canonical');
    expect((await free('/free/a', { Forwarded: 'for=a' })).allows).toBe(true);
    expect((await free('/kept//a')).status).toBe(402);
  });

  test('attack: who is no trusted peer gets no decision', async () => {
    const decided = await ask(paid.tollgate().port(CLOSED), 'caddy', { target: '/free/a' });
    expect(codeOf(decided)).toBe('peer_untrusted');
  });

  test('behaviour: HTTP/1.0 is answered, and a kept connection answers many questions in turn', async () => {
    const bytes = questionOf(NGINX, { target: '/free/a' });
    const client = await openRaw(portOf(NGINX));
    client.send(bytes + bytes + questionOf(NGINX, { target: '/paid/a' }));
    expect(decidedOf(NGINX, await client.answer()).allows).toBe(true);
    expect(decidedOf(NGINX, await client.answer()).allows).toBe(true);
    expect(decidedOf(NGINX, await client.answer()).status).toBe(402);
    client.send(bytes.replace('HTTP/1.1', 'HTTP/1.0'));
    expect(decidedOf(NGINX, await client.answer()).allows).toBe(true);
    await client.closed;
  });

  test('behaviour: a body is dropped, no 100 and no 101 is ever sent, and a large body is refused', async () => {
    const port = portOf('caddy');
    const free = questionOf('caddy', { target: '/free/a' }).replace(/\r\n\r\n$/, '\r\n');
    const lengthless = await send(port, `${free}content-length: 3\r\n\r\n`);
    expect(decidedOf('caddy', lengthless).allows).toBe(true);
    const upgraded = await send(port, `${free}connection: upgrade\r\nupgrade: websocket\r\n\r\n`);
    expect(decidedOf('caddy', upgraded).allows).toBe(true);
    const expected = await send(port, `${free}expect: 100-continue\r\ncontent-length: 3\r\n\r\n`);
    expect(decidedOf('caddy', expected).allows).toBe(true);
    expect((await send(port, `${free}content-length: 65537\r\n\r\n`)).status).toBe(413);
    const chunk = `1000\r\n${'x'.repeat(0x1000)}\r\n`;
    expect((await send(port, `${free}transfer-encoding: chunked\r\n\r\n${chunk.repeat(17)}`)).status).toBe(413);
    const small = await send(port, `${free}transfer-encoding: chunked\r\n\r\n${chunk}0\r\n\r\n`);
    expect(decidedOf('caddy', small).allows).toBe(true);
  });

  test('behaviour: nothing of the registry and nothing of an operator is served', async () => {
    for (const path of ['/v1/health', '/metrics', '/openapi.json', '/livez'])
      expect(
        (await send(portOf('caddy'), `GET ${path} HTTP/1.1\r\nhost: a\r\ntollgate-secret: ${SECRET}\r\n\r\n`)).status,
      ).toBe(400);
  });

  test('behaviour: metrics and log tell decisions apart from requests, and hold no target but the canonical one', async () => {
    const { lines } = paid.tollgate();
    await asks('caddy', { target: '/free/told?secret=1' });
    await asks('caddy', { target: '/free//not%61told' });
    const scraped = await (await fetch(`${paid.tollgate().url('admin')}/metrics`)).text();
    expect(scraped).toMatch(/tollgate_requests_total\{outcome="free",code="200",route_id="",listener="decision"\} \d/);
    expect(scraped).toMatch(/tollgate_decision_refused_total\{reason="target_not_canonical"\} [1-9]/);
    expect(scraped).toMatch(/tollgate_decision_refused_total\{reason="peer_untrusted"\} [1-9]/);
    await asks('caddy', { target: '/free/named', headers: { 'x-forwarded-for': '198.51.100.7' } });
    const requests = (): typeof lines => lines.filter(({ msg, dialect }) => msg === 'request' && dialect === 'caddy');
    await expect
      .poll(() => requests().find(({ path }) => path === '/free/named'))
      .toMatchObject({ client_ip: '198.51.100.7' });
    const told = requests();
    expect(told.find(({ path }) => path === '/free/told')).toMatchObject({ decision: 'allow', status: 200 });
    expect(JSON.stringify(told)).not.toContain('not%61told');
    expect(lines.filter(({ msg }) => msg.startsWith('a proxy asks in a way'))).not.toHaveLength(0);
  });
});
