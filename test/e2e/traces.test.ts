// Traces of real requests, as a collector gets them: processes as people start them, a real chain and facilitator. Spans of
// a free, an unpaid and a paid request, of a sidecar with workers whose ledger is a registry's, what goes upstream, what
// never leaves the house, and a collector that is away while requests go on.
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import {
  ask as question,
  questionOf,
  SECRET as ASKER_SECRET,
  send,
  type AskedQuestion,
  type Decided,
} from '../support/asker.ts';
import { startCollector, type Collector, type SeenSpan } from '../support/collector.ts';
import { PAY_TO, startPaidTollgate, until, type PaidTollgate } from '../support/paid-tollgate.ts';
import { startProcess, temporaryFolder, type TollgateProcess } from '../support/process.ts';
import { readTerms } from '../support/made-up-payment.ts';

const KEY = 'a-key-of-both-scopes-of-the-traces-test';
const SECRET = 'a-secret-of-the-test-of-traces-of-32-bytes';
const QUERY = 'a-word-of-the-query';
const CUSTOMER = 'a-customer-of-the-test';
const TOKEN = 'a-token-for-the-collector';
const PARENT = '00f067aa0ba902b7';

const files = temporaryFolder();
const others: TollgateProcess[] = [];
const credentials: string[] = [];
let collector: Collector;
let paid: PaidTollgate;

const otlp = (more = '', to = collector): string =>
  `otlp: { endpoint: ${to.url}, sample: 1, headers: { Authorization: "Bearer ${TOKEN}" }, attributes: { deployment.environment.name: test }${more} }`;

beforeAll(async () => {
  collector = await startCollector();
  paid = await startPaidTollgate({
    routes: ['* /paid/* 0.10', 'POST /first 0.10 upfront'],
    registry: `store: sqlite:data/tollgate.db, api_keys: [{ name: a, key: ${KEY}, scopes: [sdk, ledger] }]`,
    more: [
      `charges: { secrets: [${SECRET}] }`,
      `decision: [{ listen: 127.0.0.1:0, secret: ${ASKER_SECRET}, dialect: caddy }, { listen: 127.0.0.1:0, secret: ${ASKER_SECRET}, dialect: nginx }]`,
      otlp(),
    ].join('\n'),
    listeners: ['decision', 'decision[1]'],
    handle: (req, res) => {
      req.resume();
      const [path = ''] = (req.url ?? '').split('?', 1);
      res.statusCode = path.endsWith('/fails') ? 500 : 200;
      if (path.endsWith('/breaks')) res.destroy();
      else res.end('an answer');
    },
  });
}, 180_000);
afterAll(async () => {
  for (const each of others) await each.kill();
  await paid?.stop();
  await collector?.leave();
  files.remove();
});

const server = (path: string) => (span: SeenSpan) => span.kind === 'server' && span.attributes['url.path'] === path;
const childrenOf = ({ spanId }: SeenSpan): readonly SeenSpan[] =>
  collector.spans.filter(({ parentSpanId }) => parentSpanId === spanId);
const namesOf = (spans: readonly SeenSpan[]): readonly string[] => spans.map(({ name }) => name).toSorted();

async function payFor(base: string, target: string, method = 'GET'): Promise<Response> {
  const quote = await fetch(base + target, { method });
  await quote.arrayBuffer();
  const terms = readTerms(quote.headers.get('payment-required') ?? '');
  const credential = await paid.sign(terms as unknown as Parameters<PaidTollgate['sign']>[0]);
  credentials.push(credential);
  const headers = { 'payment-signature': credential, 'x-customer-id': CUSTOMER };
  const response = await fetch(base + target, { method, headers });
  await response.arrayBuffer();
  return response;
}

test('behaviour: a free request is a SERVER span and below it the call of the upstream, which is told of it', async () => {
  const target = `/free/thing?q=${QUERY}`;
  const response = await fetch(paid.url(target), { headers: { 'user-agent': 'a-client/1' } });
  expect(await response.text()).toBe('an answer');
  const span = await collector.span(server('/free/thing'));
  const { port } = new URL(paid.url('/'));
  expect(span).toMatchObject({ name: 'GET', parentSpanId: undefined, hasRemoteParent: false, isError: false });
  expect(span.attributes).toEqual({
    'http.request.method': 'GET',
    'url.path': '/free/thing',
    'url.scheme': 'http',
    'server.address': '127.0.0.1',
    'server.port': BigInt(port),
    'client.address': '127.0.0.1',
    'network.protocol.version': '1.1',
    'user_agent.original': 'a-client/1',
    'http.response.status_code': 200n,
    'tollgate.outcome': 'free',
    'tollgate.overhead_ms': expect.any(Number),
  });
  const [call, ...more] = await until('its call', async () => childrenOf(span).length > 0 && childrenOf(span));
  expect(more).toEqual([]);
  expect(call).toMatchObject({ kind: 'client', name: 'GET upstream', traceId: span.traceId, isError: false });
  expect(call?.attributes).toEqual({
    'http.request.method': 'GET',
    'url.full': `${paid.upstream.url}/free/thing`,
    'server.address': '127.0.0.1',
    'server.port': BigInt(paid.upstream.port),
    'network.protocol.version': '1.1',
    'http.response.status_code': 200n,
  });
  const seen = paid.upstream.seen.find(({ url }) => url === target);
  expect(seen?.headers['traceparent']).toBe(`00-${span.traceId}-${call?.spanId}-01`);
  expect(seen?.headers['tracestate']).toBeUndefined();
  expect(span.startMs).toBeLessThanOrEqual(call?.startMs ?? 0);
  expect(span.endMs).toBeGreaterThanOrEqual(call?.endMs ?? Infinity);
  const line = await paid.tollgate().line(({ msg, path }) => msg === 'request' && path === '/free/thing');
  expect(line['trace_id']).toBe(span.traceId);
  expect(collector.resource()).toMatchObject({ 'service.name': 'tollgate', 'deployment.environment.name': 'test' });
  expect(collector.requests[0]).toMatchObject({
    url: '/v1/traces',
    headers: { authorization: `Bearer ${TOKEN}`, 'content-encoding': 'gzip', 'content-type': 'application/json' },
  });
});

test('behaviour: a paid request shows verify, claim and settle, its charge and its price', async () => {
  expect((await payFor(paid.url(''), '/paid/report')).status).toBe(200);
  const unpaid = await collector.span(
    (each) => server('/paid/report')(each) && each.attributes['tollgate.outcome'] === 'payment_required',
  );
  expect(unpaid).toMatchObject({ name: 'GET /paid/*', isError: false });
  expect(unpaid.attributes).toMatchObject({ 'http.response.status_code': 402n, 'tollgate.reason': 'payment_required' });
  expect(childrenOf(unpaid)).toEqual([]);
  const span = await collector.span(
    (each) => server('/paid/report')(each) && each.attributes['tollgate.outcome'] === 'paid',
  );
  const [charge] = await paid.charges();
  expect(span).toMatchObject({ name: 'GET /paid/*', isError: false });
  expect(span.attributes).toMatchObject({
    'http.route': '/paid/*',
    'http.response.status_code': 200n,
    'tollgate.charge_id': charge?.id,
    'tollgate.route_id': charge?.['route_id'],
    'tollgate.amount': '0.10',
    'tollgate.currency': 'USD',
    'tollgate.network': 'eip155:84532',
  });
  const calls = await until('its calls', async () => childrenOf(span).length >= 4 && childrenOf(span));
  expect(namesOf(calls)).toEqual(['GET upstream', 'POST settle', 'POST verify', 'claim']);
  const claim = calls.find(({ name }) => name === 'claim');
  expect(claim).toMatchObject({ kind: 'internal', attributes: {}, isError: false });
  const verify = calls.find(({ name }) => name === 'POST verify');
  expect(verify).toMatchObject({ kind: 'client', isError: false });
  expect(verify?.attributes).toMatchObject({
    'url.full': `${paid.facilitator.url}/verify`,
    'http.response.status_code': 200n,
  });
  // What is nobody else's affair is not told to a facilitator.
  for (const { headers } of paid.facilitator.calls) expect(headers['traceparent']).toBeUndefined();
});

const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736';
const asks = (asked: AskedQuestion, dialect: 'caddy' | 'nginx' = 'caddy'): Promise<Decided> =>
  question(paid.tollgate().port(dialect === 'caddy' ? 'decision' : 'decision[1]'), dialect, asked);
const credentialFor = async (target: string): Promise<string> => {
  const credential = await paid.sign(await paid.quote(target));
  credentials.push(credential);
  return credential;
};
const answered = (path: string, status: bigint) => (span: SeenSpan) =>
  server(path)(span) && span.attributes['http.response.status_code'] === status;

// Side by side: each waits for a batch.
describe.concurrent('questions of a proxy', () => {
  test('behaviour: a question is a SERVER span of the request that it asks about, in the trace that it names', async () => {
    const target = `/free/question?q=${QUERY}`;
    const traceparent = `00-${TRACE}-${PARENT}-01`;
    const headers = { traceparent, tracestate: 'vendor=1', 'user-agent': 'a-client/2' };
    const allowed = await asks({ method: 'POST', target, requestId: 'q-1', headers });
    expect(allowed.allows).toBe(true);
    // The proxy forwards by itself: it hands on what it got.
    expect(allowed.names.map((name) => name.toLowerCase())).not.toContain('traceparent');
    // A trace begins here where the proxy names none.
    expect((await asks({ target: '/free/begun', requestId: 'q-2' })).allows).toBe(true);
    const span = await collector.span(server('/free/question'));
    expect(span).toMatchObject({ name: 'POST', traceId: TRACE, parentSpanId: PARENT, hasRemoteParent: true });
    expect(span).toMatchObject({ kind: 'server', isError: false });
    expect(span.attributes).toEqual({
      'http.request.method': 'POST',
      'url.path': '/free/question',
      'url.scheme': 'https',
      'server.address': 'api.example',
      'server.port': 443n,
      'client.address': '203.0.113.9',
      'network.protocol.version': '1.1',
      'user_agent.original': 'a-client/2',
      'http.response.status_code': 200n,
      'tollgate.outcome': 'free',
      'tollgate.dialect': 'caddy',
      'tollgate.decision': 'allow',
      'tollgate.overhead_ms': expect.any(Number),
    });
    const line = await paid.tollgate().line(({ msg, path }) => msg === 'request' && path === '/free/question');
    expect(line['trace_id']).toBe(TRACE);
    const begun = await collector.span(server('/free/begun'));
    expect([begun.parentSpanId, begun.hasRemoteParent]).toEqual([undefined, false]);
    expect(childrenOf(begun)).toEqual([]);
  });

  test('behaviour: a question that pays shows verify, claim and settle once, also if it is asked twice, and its report is one of the charge', async () => {
    const target = '/paid/asked';
    expect((await asks({ target, requestId: 'q-3' }, 'nginx')).status).toBe(402);
    const headers = { 'payment-signature': await credentialFor(target), 'x-customer-id': CUSTOMER };
    const both = await Promise.all([0, 1].map(() => asks({ target, requestId: 'q-4', headers })));
    expect(both.map(({ allows }) => allows)).toEqual([true, true]);
    const chargeId = both[0]?.header('tollgate-charge-id') ?? '';
    const told = await until('it is delivered', async () => {
      const report = { target, path: '/failed', headers: { 'tollgate-charge-id': chargeId } };
      const decided = await asks(report);
      return decided.body.includes('upstream_failed') && decided;
    });
    expect(told.raw).toBe(502);
    const isMine = ({ kind, attributes }: SeenSpan): boolean =>
      kind === 'server' && attributes['tollgate.charge_id'] === chargeId && attributes['tollgate.decision'] === 'allow';
    const spans = await until('both questions', async () => {
      const found = collector.spans.filter(isMine);
      return found.length === 2 && found;
    });
    for (const span of spans)
      expect(span.attributes).toMatchObject({
        ...{
          'tollgate.outcome': 'paid',
          'tollgate.amount': '0.10',
          'tollgate.currency': 'USD',
          'http.route': '/paid/*',
        },
      });
    const calls = await until('their calls', async () => {
      const found = spans.flatMap(childrenOf);
      return found.length >= 3 && found;
    });
    expect(namesOf(calls)).toEqual(['POST settle', 'POST verify', 'claim']);
    expect(new Set(calls.map(({ parentSpanId }) => parentSpanId)).size).toBe(1);
    const payer = spans.find(({ spanId }) => spanId === calls[0]?.parentSpanId);
    expect(payer?.attributes['tollgate.network']).toBe('eip155:84532');

    const demand = await collector.span(
      (span) => answered(target, 402n)(span) && span.attributes['tollgate.dialect'] === 'nginx',
    );
    expect(demand).toMatchObject({ name: 'GET /paid/*', isError: false });
    expect(demand.attributes).toMatchObject({
      ...{ 'tollgate.decision': 'pay', 'tollgate.reason': 'payment_required' },
    });
    const report = await collector.span(
      ({ attributes }) =>
        attributes['tollgate.decision'] === 'report' && attributes['tollgate.reason'] === 'upstream_failed',
    );
    expect(report).toMatchObject({ name: 'GET /paid/*', kind: 'server', isError: true });
    expect(report.attributes).toMatchObject({ 'tollgate.charge_id': chargeId, 'error.type': 'upstream_failed' });
  });

  test('refuses: a span for a peer that may not ask; a question that cannot be read has one without a path', async () => {
    const untrustedTrace = TRACE.replace('4b', 'aa');
    const untrusted = {
      traceparent: `00-${untrustedTrace}-${PARENT}-01`,
      'tollgate-secret': 'not the secret',
    };
    expect((await asks({ target: '/free/untrusted', headers: untrusted })).raw).toBe(403);
    const double = questionOf('caddy', { target: '/free/double' }).replace(
      '\r\n\r\n',
      '\r\nX-Forwarded-Uri: /b\r\n\r\n',
    );
    expect((await send(paid.tollgate().port('decision'), double)).status).toBe(400);
    const malformed = await collector.span(({ attributes }) => attributes['tollgate.reason'] === 'question_malformed');
    expect(malformed).toMatchObject({ name: 'GET', kind: 'server', isError: false });
    expect(malformed.attributes).not.toHaveProperty('url.path');
    expect(collector.spans.filter(({ traceId }) => traceId === untrustedTrace)).toEqual([]);
  });
});

test('behaviour: an answer of 5xx is an error on both spans, and a settlement that nobody answered is looked up on the chain', async () => {
  expect((await payFor(paid.url(''), '/first', 'POST')).status).toBe(200);
  expect((await fetch(paid.url('/free/fails'))).status).toBe(500);
  expect((await fetch(paid.url('/free/breaks'))).status).toBe(502);
  paid.facilitator.fault('settle', { kind: 'drop_after' }, 1);
  expect((await payFor(paid.url(''), '/paid/lost', 'POST')).status).toBe(503);
  const again = await paid.pay('/paid/lost', credentials.at(-1) ?? '', { method: 'POST' });
  await again.arrayBuffer();

  for (const [path, error] of [
    ['/free/fails', '500'],
    ['/free/breaks', 'upstream_unreachable'],
  ] as const) {
    const span = await collector.span(server(path));
    expect([span.isError, span.attributes['error.type']]).toEqual([true, error]);
    const [call] = await until('its call', async () => childrenOf(span).length > 0 && childrenOf(span));
    expect([call?.isError, call?.attributes['error.type']]).toEqual([true, error]);
  }
  const isLost = (span: SeenSpan): boolean => span.attributes['http.response.status_code'] === 503n;
  const lost = await collector.span((span) => server('/paid/lost')(span) && isLost(span));
  expect(lost).toMatchObject({ name: 'POST /paid/*', isError: true });
  const settle = await until('its settle', async () => childrenOf(lost).find(({ name }) => name === 'POST settle'));
  expect([settle.isError, settle.attributes['error.type']]).toEqual([
    true,
    expect.stringMatching(/^[A-Z_]+$|^failed$/),
  ]);
  const chain = await collector.span(({ name }) => name === 'POST chain');
  expect(chain).toMatchObject({ kind: 'client', isError: false });
  expect(chain.attributes['url.full']).toBe(`${paid.chain.rpcUrl.replace(/\/$/, '')}/`);
});

test('behaviour: the flag of a trusted caller decides, everything else goes upstream as it came', async () => {
  const trusting = files.write(
    'trusting.yaml',
    [
      `proxy: { listen: 127.0.0.1:0, upstream: ${paid.upstream.url}, trusted_proxies: [127.0.0.1], timeouts: { drain_delay: 0s } }`,
      'registry: { listen: 127.0.0.1:0, store: "sqlite:trusting/tollgate.db" }',
      'decision: { listen: 127.0.0.1:0, dialect: caddy }',
      'admin: { listen: 127.0.0.1:0 }',
      otlp().replace('sample: 1', 'sample: 0'),
    ].join('\n'),
  );
  const tollgate = await startProcess({
    args: ['serve', '-c', trusting],
    listeners: ['proxy', 'admin', 'decision'],
  });
  others.push(tollgate);
  const ask = async (path: string, headers: Record<string, string>): Promise<Record<string, unknown>> => {
    await (await fetch(tollgate.url('proxy') + path, { headers })).arrayBuffer();
    return paid.upstream.seen.find(({ url }) => url === path)?.headers ?? {};
  };
  const traceId = '4bf92f3577b34da6a3ce929d0e0e4736';
  const flagged = await ask('/trusted/flagged', {
    traceparent: `00-${traceId}-${PARENT}-01`,
    tracestate: 'vendor=1',
    'x-forwarded-for': '198.51.100.7, 203.0.113.9',
    'x-forwarded-proto': 'https',
    'x-forwarded-host': 'api.example.com',
  });
  const unflagged = `00-${traceId}-${PARENT}-00`;
  expect(await ask('/trusted/unflagged', { traceparent: unflagged, tracestate: 'vendor=2' })).toMatchObject({
    ...{ traceparent: unflagged, tracestate: 'vendor=2' },
  });
  expect(await ask('/trusted/none', {})).not.toHaveProperty('traceparent');
  // A question is traced as a request of the proxy is.
  for (const flag of ['00', '01']) {
    const headers = { traceparent: `00-${traceId}-${PARENT}-${flag}`, 'tollgate-secret': undefined };
    expect((await question(tollgate.port('decision'), 'caddy', { target: `/asked/${flag}`, headers })).allows).toBe(
      true,
    );
  }
  tollgate.signal('SIGTERM');
  expect(await tollgate.exited).toBe(0);
  const spans = collector.spans.filter(({ attributes }) => String(attributes['url.path']).startsWith('/trusted'));
  expect(spans.length).toBe(1);
  const [span] = spans;
  expect(span).toMatchObject({ traceId, parentSpanId: PARENT, hasRemoteParent: true });
  expect(span?.attributes).toMatchObject({
    ...{ 'client.address': '203.0.113.9', 'url.scheme': 'https' },
    ...{ 'server.address': 'api.example.com', 'server.port': 443n },
  });
  const asked = collector.spans.filter(({ attributes }) => String(attributes['url.path']).startsWith('/asked/'));
  expect(asked.map(({ attributes }) => attributes['url.path'])).toEqual(['/asked/01']);
  expect(asked[0]).toMatchObject({ traceId, parentSpanId: PARENT });
  expect(flagged['traceparent']).toMatch(new RegExp(`^00-${traceId}-(?!${PARENT})[0-9a-f]{16}-01$`));
  expect(flagged['tracestate']).toBe('vendor=1');
});

test('behaviour: workers of a sidecar trace what they serve, and the calls of a ledger elsewhere', async () => {
  const text = [
    `proxy: { listen: 127.0.0.1:0, upstream: ${paid.upstream.url}, timeouts: { drain_delay: 0s } }`,
    `sync: { registry_url: ${paid.tollgate().url('registry')}, api_key: ${KEY}, snapshot_file: "${files.folder}/s.json" }`,
    'admin: { listen: 127.0.0.1:0 }',
    `charges: { secrets: [${SECRET}] }`,
    `receivers: [{ id: default, network: base-sepolia, pay_to_address: "${PAY_TO}", facilitators: [${paid.facilitator.url}], rpc_url: ${paid.chain.rpcUrl} }]`,
    'workers: 2',
    `decision: { listen: 127.0.0.1:0, secret: ${ASKER_SECRET}, dialect: caddy }`,
    otlp(', service_name: a-sidecar'),
  ].join('\n');
  const sidecar = await startProcess({
    args: ['serve', '-c', files.write('sidecar.yaml', text)],
    listeners: ['proxy', 'admin', 'decision'],
  });
  others.push(sidecar);
  await until('it is ready', async () => {
    const response = await fetch(`${sidecar.url('admin')}/readyz`);
    await response.arrayBuffer();
    return response.status === 200;
  });
  expect((await payFor(sidecar.url('proxy'), '/paid/elsewhere')).status).toBe(200);
  await until('its charge is delivered', async () =>
    (await paid.charges()).some(({ status, path }) => status === 'delivered' && path === '/paid/elsewhere'),
  );
  const target = '/paid/told-elsewhere';
  const payment = { 'payment-signature': await credentialFor(target) };
  const decision = sidecar.port('decision');
  const allowed = await question(decision, 'caddy', { target, requestId: 'q-5', headers: payment });
  expect(allowed.allows).toBe(true);
  const about = { 'tollgate-charge-id': allowed.header('tollgate-charge-id') };
  await until('the report is taken', async () => {
    const { body } = await question(decision, 'caddy', { target, path: '/failed', headers: about });
    return body.includes('upstream_failed');
  });
  sidecar.signal('SIGTERM');
  expect(await sidecar.exited).toBe(0);
  expect(collector.text()).toContain('a-sidecar');
  const span = await collector.span(
    (each) => server('/paid/elsewhere')(each) && each.attributes['tollgate.outcome'] === 'paid',
  );
  const claim = childrenOf(span).find(({ name }) => name === 'claim');
  const [insert] = claim === undefined ? [] : childrenOf(claim);
  expect(insert).toMatchObject({ kind: 'client', name: 'POST ledger', isError: false });
  expect(insert?.attributes).toMatchObject({
    'url.full': `${paid.tollgate().url('registry')}/v1/ledger/claims`,
    'http.response.status_code': 200n,
  });
  expect(namesOf(childrenOf(span))).toEqual(
    expect.arrayContaining(['GET upstream', 'PATCH ledger', 'POST settle', 'POST verify', 'claim']),
  );
  const report = await collector.span(
    ({ attributes }) =>
      attributes['tollgate.decision'] === 'report' &&
      attributes['tollgate.reason'] === 'upstream_failed' &&
      attributes['tollgate.charge_id'] === about['tollgate-charge-id'],
  );
  expect(namesOf(childrenOf(report))).toContain('PATCH ledger');
});

test('behaviour: requests do not wait for a collector that is away, slow or busy, and what it misses is counted', async () => {
  // What the other processes still send must not get the answers that are meant for this one.
  const own = await startCollector();
  onTestFinished(own.leave);
  const text = [
    `proxy: { listen: 127.0.0.1:0, upstream: ${paid.upstream.url}, timeouts: { drain_delay: 0s } }`,
    'registry: { listen: 127.0.0.1:0, store: "sqlite:away/tollgate.db" }',
    'admin: { listen: 127.0.0.1:0 }',
    otlp('', own),
  ].join('\n');
  const tollgate = await startProcess({
    args: ['serve', '-c', files.write('away.yaml', text)],
    listeners: ['proxy', 'admin'],
  });
  others.push(tollgate);
  const counts = async (): Promise<Record<string, number>> => {
    const metrics = await (await fetch(`${tollgate.url('admin')}/metrics`)).text();
    return Object.fromEntries(
      [...metrics.matchAll(/^tollgate_otlp_spans_total\{result="(\w+)"\} (\d+)$/gm)].map(([, result, count]) => [
        result,
        Number(count),
      ]),
    );
  };
  const ask = async (times: number): Promise<void> => {
    for (let done = 0; done < times; done += 64) {
      const all = Array.from({ length: Math.min(64, times - done) }, async () => {
        const response = await fetch(`${tollgate.url('proxy')}/away`);
        await response.arrayBuffer();
        expect(response.status).toBe(200);
      });
      await Promise.all(all);
    }
  };
  const isAway = ({ attributes }: SeenSpan): boolean =>
    String(attributes['url.path'] ?? attributes['url.full']).endsWith('/away');
  const ended = async (): Promise<number> => Object.values(await counts()).reduce((sum, each) => sum + each, 0);
  expect(await counts()).toEqual({ exported: 0, dropped: 0, refused: 0 });
  // 512 spans, two a request, leave at once.
  own.answer({ status: 400 });
  await ask(256);
  await expect.poll(ended).toBe(512);
  const { refused = 0 } = await counts();
  expect(refused).toBeGreaterThan(0);
  const before = own.requests.length;
  own.answer({ status: 429, headers: { 'retry-after': '1' } });
  await ask(256);
  await expect.poll(ended).toBe(1024);
  expect(await counts()).toEqual({ exported: 1024 - refused, dropped: 0, refused });
  expect(own.requests.length).toBeGreaterThan(before + 1);
  await own.leave();
  // 5,120 spans: 4,096 wait.
  await ask(2560);
  await expect.poll(counts).toEqual({ exported: 1024 - refused, dropped: 1024, refused });
  await tollgate.line(({ msg }) => msg === 'spans are not exported');
  await own.comeBack();
  await tollgate.line(({ msg }) => msg === 'spans are exported again');
  await expect.poll(ended).toBe(1024 + 5120);
  expect(own.spans.filter(isAway).length).toBe(1024 - refused + 4096);
}, 180_000);

test('behaviour: a stop gives a collector that says nothing 2 s', async () => {
  // What the other processes still send must not get the answers that are meant for this one.
  const own = await startCollector();
  onTestFinished(own.leave);
  const text = [
    `proxy: { listen: 127.0.0.1:0, upstream: ${paid.upstream.url}, timeouts: { drain_delay: 0s } }`,
    'registry: { listen: 127.0.0.1:0, store: "sqlite:held/tollgate.db" }',
    'admin: { listen: 127.0.0.1:0 }',
    otlp('', own),
  ].join('\n');
  const tollgate = await startProcess({
    args: ['serve', '-c', files.write('held.yaml', text)],
    listeners: ['proxy', 'admin'],
  });
  others.push(tollgate);
  // Whether its batch leaves before the stop or at it.
  own.answer('hold', 'hold');
  expect((await fetch(`${tollgate.url('proxy')}/held`)).status).toBe(200);
  const since = performance.now();
  tollgate.signal('SIGTERM');
  expect(await tollgate.exited).toBe(0);
  expect(performance.now() - since).toBeGreaterThan(1900);
  expect(own.spans.some(server('/held'))).toBe(false);
});

test('attack: nothing that a collector gets holds a query, a credential, a payer or a customer', () => {
  expect(collector.faults).toEqual([]);
  const text = collector.text().toLowerCase();
  expect(text).toContain('/paid/report');
  const secrets = [QUERY, CUSTOMER, KEY, SECRET, TOKEN, paid.payer.address];
  for (const secret of secrets) expect(text).not.toContain(secret.toLowerCase());
  for (const credential of credentials) {
    const { payload } = JSON.parse(Buffer.from(credential, 'base64').toString()) as {
      payload: { signature: string; authorization: { nonce: string } };
    };
    for (const part of [credential.slice(0, 64), payload.signature, payload.authorization.nonce])
      expect(text).not.toContain(part.toLowerCase());
  }
});
