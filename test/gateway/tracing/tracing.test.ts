// The wrappers that trace a proxy, around parts that the test plays: whose call a span is, how long it lasts, and what of it
// is told.
import type { IncomingMessage } from 'node:http';
import { expect, test } from 'vitest';
import { LedgerUnavailable, type Ledger } from '../../../src/domain/payment/ledger.ts';
import type { PaidOutcome, RequestFacts } from '../../../src/gateway/outcome.ts';
import type { PaymentHandler } from '../../../src/gateway/pay/pay.ts';
import type { RequestRecord, Telemetry } from '../../../src/gateway/telemetry.ts';
import { createTracing } from '../../../src/gateway/tracing/tracing.ts';
import { createRandom } from '../../../src/host/clock.ts';
import { NO_TRACE } from '../../../src/host/identifiers.ts';

type SeenSpan = {
  readonly name: string;
  readonly kind: number;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly status: { readonly code?: number };
  readonly attributes: readonly { readonly key: string; readonly value: Readonly<Record<string, string | number>> }[];
};

const NODE = 'https://somebody:password@node.example.com/v3/0123456789abcdef/rpc?key=secret';

/** A proxy that is traced, with the parts that a payment uses. */
function bed() {
  let now = 1000;
  const texts: string[] = [];
  const tracing = createTracing({
    ...{ sample: 1, key: 'a key', random: createRandom() },
    clock: { now: () => 1_764_000_000_000 + now, monotonic: () => now },
    add: (text) => void texts.push(text),
    patternOf: (id) => (id === 'known' ? '/paid/*' : undefined),
  });
  const telemetry = tracing.telemetry({ end: () => undefined } as unknown as Telemetry);
  const proxy = tracing.requests({ methods: new Set(['GET']), clientOf: () => '127.0.0.1' });
  const spans = (): readonly SeenSpan[] => texts.map((text) => JSON.parse(text) as SeenSpan);
  return {
    ...{ tracing, spans },
    pass: (ms: number) => void (now += ms),
    text: () => texts.join('\n'),
    /** The span called `name`. */
    span: (name: string) => {
      const found = spans().find((each) => each.name === name);
      if (found === undefined) throw new Error(`no span ${name} in ${texts.join('\n')}`);
      return {
        ...found,
        said: Object.fromEntries(found.attributes.map(({ key, value }) => [key, Object.values(value)[0]])),
      };
    },
    /** A request that is under way; untraced, it never began. */
    request: (given: Partial<RequestRecord> = {}, isTraced = true) => {
      const record = {
        startedAt: now,
        method: 'GET',
        path: '/p',
        status: 200,
        outcome: 'free',
        ...given,
      } as RequestRecord;
      const req = { headers: {}, httpVersion: '1.1' } as IncomingMessage;
      const facts = { req, record, publicOrigin: 'http://api.example.com' };
      if (isTraced) proxy.begin(facts, NO_TRACE, false);
      return { facts: facts as unknown as RequestFacts, end: () => telemetry.end(record, now) };
    },
  };
}

/** Runs `task` as the payment of `facts`. */
const payAs = async (
  { tracing }: ReturnType<typeof bed>,
  facts: RequestFacts,
  task: () => Promise<unknown>,
  more: Partial<PaidOutcome> = {},
): Promise<PaidOutcome> => {
  const pay = tracing.pay((async () => {
    await task();
    return { kind: 'paid', ...more };
  }) as unknown as PaymentHandler);
  return (await pay({} as never, facts)) as PaidOutcome;
};

test('behaviour: the span of a call ends with the last byte of its answer, and holds no key, user or query', async () => {
  const all = bed();
  let body: ReadableStreamDefaultController<Uint8Array> | undefined;
  const fetch = all.tracing.chainFetch(
    async () => new Response(new ReadableStream({ start: (controller) => void (body = controller) }), { status: 200 }),
  );
  const { facts, end } = all.request();
  let text: Promise<string> | undefined;
  await payAs(all, facts, async () => {
    text = (await fetch(NODE, { method: 'POST' })).text();
  });
  expect(all.spans()).toEqual([]);
  body?.enqueue(new TextEncoder().encode('an answer'));
  body?.close();
  expect(await text).toBe('an answer');
  const { said, kind, status } = all.span('POST chain');
  expect([kind, status]).toEqual([3, {}]);
  expect(said).toEqual({
    'http.request.method': 'POST',
    'url.full': 'https://node.example.com/v3/REDACTED/rpc',
    'server.address': 'node.example.com',
    'server.port': '443',
    'http.response.status_code': '200',
  });
  end();
  expect(all.text()).not.toMatch(/password|0123456789abcdef|secret/);
});

test.each([
  [
    'a refused connection',
    new TypeError('fetch failed', { cause: Object.assign(new Error('x'), { code: 'ECONNREFUSED' }) }),
    'ECONNREFUSED',
  ],
  ['a call that took too long', new DOMException('x', 'TimeoutError'), 'timeout'],
  ['anything else', new Error('words of somebody else'), 'failed'],
])('behaviour: %s is one word of ours', async (_name, error, word) => {
  const all = bed();
  const fetch = all.tracing.facilitatorFetch(() => Promise.reject(error));
  await payAs(all, all.request().facts, () =>
    fetch('http://f.example.com/x402/verify', { method: 'POST' }).catch(() => undefined),
  );
  const { said, status } = all.span('POST verify');
  expect([status, said['error.type'], said['url.full']]).toEqual([
    { code: 2 },
    word,
    'http://f.example.com/x402/verify',
  ]);
});

test('behaviour: a claim has a span, what it asks stands below it, and one that the ledger cannot take is an error', async () => {
  const all = bed();
  const call = all.tracing.ledgerCalls(
    async () => ({ kind: 'response', status: 503, dateMs: undefined, json: {} }),
    new URL('http://registry.example.com:8403'),
  );
  const ledger = all.tracing.ledger({
    claim: async () => {
      await call({ method: 'POST', target: '/v1/ledger/claims?payer=0xabc', headers: [], withinMs: 1 });
      throw new LedgerUnavailable('away');
    },
  } as unknown as Ledger);
  await payAs(all, all.request().facts, () => ledger.claim({} as never, {} as never).catch(() => undefined));
  const claim = all.span('claim');
  expect([claim.kind, claim.status, claim.said]).toEqual([1, { code: 2 }, { 'error.type': 'ledger_unavailable' }]);
  const asked = all.span('POST ledger');
  expect([asked.parentSpanId, asked.status]).toEqual([claim.spanId, { code: 2 }]);
  expect(asked.said).toMatchObject({
    'url.full': 'http://registry.example.com:8403/v1/ledger/claims',
    'error.type': '503',
  });
});

test('attack: what an untraced payment does is not told in the name of the traced request whose socket tells of it', async () => {
  const all = bed();
  const fetch = all.tracing.facilitatorFetch(async () => new Response(null, { status: 200 }));
  const settle = async (): Promise<never> => (await fetch('http://f.example.com/settle', { method: 'POST' })) as never;
  const untraced = await payAs(all, all.request({}, false).facts, settle, {
    beforeResponse: settle,
    done: () => void settle(),
  });
  const traced = all.request();
  await payAs(all, traced.facts, async () => {
    await untraced.beforeResponse({ status: 200, headers: [] });
    untraced.done({ kind: 'not_sent' });
  });
  traced.end();
  expect(all.spans().map(({ name }) => name)).toEqual(['GET']);
  const own = await payAs(all, all.request().facts, settle, { beforeResponse: settle });
  await own.beforeResponse({ status: 200, headers: [] });
  expect(all.spans().map(({ name }) => name)).toEqual(['GET', 'POST settle', 'POST settle']);
});

test('behaviour: a request may begin a call for 10 s after its end, and a timer of its no more later', async () => {
  const all = bed();
  const fetch = all.tracing.chainFetch(async () => new Response(null, { status: 200 }));
  const { facts, end } = all.request();
  const later = await payAs(all, facts, async () => undefined, {
    done: () => void fetch('http://n.example.com/', { method: 'POST' }),
  });
  end();
  all.pass(10_000);
  later.done({ kind: 'not_sent' });
  await expect.poll(() => all.spans().length).toBe(2);
  all.pass(1);
  later.done({ kind: 'not_sent' });
  await new Promise(setImmediate);
  expect(all.spans().length).toBe(2);
});

test.each([
  [{ method: 'GET', routeId: 'known' }, 'GET /paid/*', 'GET'],
  [{ method: 'GET', routeId: 'gone' }, 'GET', 'GET'],
  [{ method: 'BREW' }, 'HTTP', '_OTHER'],
  [{ method: 'BREW', routeId: 'known' }, 'HTTP /paid/*', '_OTHER'],
])('behaviour: the span of %o is called %s', (given, name, method) => {
  const all = bed();
  all.request(given).end();
  expect(all.span(name).said['http.request.method']).toBe(method);
});

test.each([
  [402, 'payment_required', {}, undefined],
  [404, undefined, {}, undefined],
  [499, 'client_gone', {}, undefined],
  [502, 'upstream_unreachable', { code: 2 }, 'upstream_unreachable'],
  [500, undefined, { code: 2 }, '500'],
  [0, 'upstream_timeout', { code: 2 }, 'upstream_timeout'],
])(
  'behaviour: an answer of %i for %s is an error on a SERVER span only from 500 on, or if it broke off',
  (status, reason, wanted, error) => {
    const all = bed();
    const { end } = all.request({ status, reason });
    all.pass(7);
    end();
    end();
    expect(all.spans().length).toBe(1);
    const { said, status: seen } = all.span('GET');
    expect([seen, said['error.type'], said['tollgate.overhead_ms']]).toEqual([wanted, error, 7]);
    expect(said['http.response.status_code']).toBe(status === 0 ? undefined : String(status));
  },
);
