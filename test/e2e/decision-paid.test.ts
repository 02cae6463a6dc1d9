// Money at decision listeners: a real chain and facilitator, real bytes of a proxy that asks, repeats, dies and reports.
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ask, questionOf, SECRET, send, type AskedQuestion, type Decided, type Dialect } from '../support/asker.ts';
import { USDC } from '../support/chain/chain.ts';
import { startPaidTollgate, until, type ChargeSeen, type PaidTollgate } from '../support/paid-tollgate.ts';
import { headerOf, openRaw } from '../support/raw-client.ts';
import type { TollgateProcess } from '../support/process.ts';

let paid: PaidTollgate;
let paths = 0;

/** Only what has to be late asks here: a busy machine takes its time for what is not. */
const HASTY = 'decision[3]';
const settings = `listen: 127.0.0.1:0, secret: ${SECRET}`;
beforeAll(async () => {
  paid = await startPaidTollgate({
    routes: ['* /thing/* 0.10'],
    settle: '20s',
    more: [
      'decision:',
      `  - { ${settings}, dialect: caddy, repeat_window: 60s, customer_header_trusted: true }`,
      `  - { ${settings}, dialect: nginx }`,
      `  - { ${settings}, dialect: envoy, repeat_window: 0s }`,
      `  - { ${settings}, dialect: caddy, answer_within: 2s }`,
    ].join('\n'),
    listeners: ['decision', 'decision[1]', 'decision[2]', HASTY],
  });
}, 180_000);
afterAll(() => paid?.stop());

const LISTENERS: Readonly<Record<string, string>> = { caddy: 'decision', nginx: 'decision[1]', envoy: 'decision[2]' };
const portOf = (dialect: Dialect, tollgate: TollgateProcess = paid.tollgate()): number =>
  tollgate.port(LISTENERS[dialect] ?? '');
const thing = (): string => `/thing/${(paths += 1)}`;
const payFor = async (target: string, method = 'GET'): Promise<string> => paid.sign(await paid.quote(target, method));
const prefixed = (dialect: Dialect, question: AskedQuestion): AskedQuestion =>
  dialect === 'envoy' ? { ...question, path: '' } : question;
const asks = (dialect: Dialect, question: AskedQuestion, credential?: string): Promise<Decided> => {
  const payment = credential === undefined ? {} : { 'payment-signature': credential };
  return ask(
    portOf(dialect),
    dialect,
    prefixed(dialect, { ...question, headers: { ...payment, ...question.headers } }),
  );
};
const problemOf = ({ body }: Decided): Record<string, unknown> => JSON.parse(body) as Record<string, unknown>;
const receiptOf = (decided: Decided): Record<string, unknown> =>
  JSON.parse(Buffer.from(decided.header('payment-response') ?? '', 'base64').toString()) as Record<string, unknown>;
const chargeAt = async (path: string): Promise<ChargeSeen | undefined> =>
  (await paid.charges()).find((charge) => charge['path'] === path);
const becomes = (path: string, status: string): Promise<ChargeSeen> =>
  until(`the charge of ${path} is ${status}`, async () => {
    const charge = await chargeAt(path);
    return charge?.status === status ? charge : undefined;
  });
const scraped = async (name: string): Promise<number> => {
  const text = await (await fetch(`${paid.tollgate().url('admin')}/metrics`)).text();
  const line = text.split('\n').find((each) => each.startsWith(`tollgate_${name} `));
  return Number(line?.split(' ').at(-1) ?? 0);
};

describe('money at a decision', () => {
  test.each(['caddy', 'nginx', 'envoy'] as const)(
    'behaviour: a payment at %s is settled before the allow, which carries the facts for the upstream and the receipt',
    async (dialect) => {
      const before = await paid.earned();
      const target = thing();
      const credential = await payFor(target);
      const allowed = await asks(
        dialect,
        { target, requestId: `id-${target}`, headers: { 'x-customer-id': 'c1' } },
        credential,
      );
      expect(allowed).toMatchObject({ raw: 200, allows: true });
      expect(await paid.earned()).toBe(before + 100_000n);
      expect(allowed.header('tollgate-charge-id')).toMatch(/^chg_/);
      expect(allowed.header('tollgate-amount')).toBe('0.10');
      expect(allowed.header('tollgate-payer')?.toLowerCase()).toBe(paid.payer.address.toLowerCase());
      expect(allowed.header('tollgate-customer-id')).toBe(dialect === 'caddy' ? 'c1' : undefined);
      expect(receiptOf(allowed)).toMatchObject({ success: true, amount: '100000' });
      if (dialect === 'envoy') expect(allowed.header('x-envoy-auth-headers-to-remove')).not.toContain('tollgate-payer');
      expect(await becomes(target, 'delivered')).toMatchObject({ settle: 'before_forward', asker: dialect });
    },
  );

  test('behaviour: the same request gets the allow again, eight times, and everybody else is told that it was paid', async () => {
    const target = thing();
    const credential = await payFor(target);
    const first = await asks('caddy', { target, requestId: 'same' }, credential);
    expect(first.allows).toBe(true);
    await becomes(target, 'delivered');
    const earned = await paid.earned();
    for (let again = 0; again < 8; again++) {
      const repeated = await asks('caddy', { target, requestId: 'same' }, credential);
      expect(repeated.allows).toBe(true);
      expect(repeated.header('tollgate-charge-id')).toBe(first.header('tollgate-charge-id'));
      expect(receiptOf(repeated)).toEqual(receiptOf(first));
    }
    for (const requestId of ['same', 'other', undefined]) {
      const late = await asks('caddy', { target, ...(requestId === undefined ? {} : { requestId }) }, credential);
      expect(late).toMatchObject({ status: 409, allows: false });
      expect(problemOf(late)).toMatchObject({ code: 'already_paid', charged: true });
      expect(receiptOf(late)).toEqual(receiptOf(first));
    }
    expect(await paid.earned()).toBe(earned);
    expect(await scraped('decision_repeats_total{kind="same_request"}')).toBeGreaterThanOrEqual(8);
  });

  test('attack: a window of nothing, another dialect, the proxy and v1 give no allow a second time', async () => {
    const target = thing();
    const credential = await payFor(target);
    expect((await asks('envoy', { target, requestId: 'r1' }, credential)).allows).toBe(true);
    await becomes(target, 'delivered');
    for (const dialect of ['envoy', 'caddy', 'nginx'] as const) {
      const decided = await asks(dialect, { target, requestId: 'r1' }, credential);
      expect(decided).toMatchObject({ status: 409, allows: false });
      expect(problemOf(decided)).toMatchObject({ code: 'already_paid' });
    }
    const proxied = await paid.pay(target, credential);
    expect([proxied.status, ((await proxied.json()) as { code: string }).code]).toEqual([409, 'already_paid']);
    expect(paid.upstream.seen).toHaveLength(0);
  });

  test('attack: what the proxy delivered is no allow, and what it could not deliver is none either', async () => {
    const target = thing();
    const credential = await payFor(target);
    expect((await paid.pay(target, credential)).status).toBe(200);
    await becomes(target, 'delivered');
    const decided = await asks('caddy', { target, requestId: 'r2' }, credential);
    expect(decided).toMatchObject({ status: 409, allows: false });
    expect(problemOf(decided)['code']).toBe('already_paid');
  });

  test('attack: fifty questions at once buy one allow for one id, and nothing for the others', async () => {
    const target = thing();
    const credential = await payFor(target, 'POST');
    const before = await paid.earned();
    const ids = Array.from({ length: 50 }, (_, index) => (index % 2 === 0 ? 'one' : `other-${index}`));
    const all = await Promise.all(
      ids.map((requestId) => asks('caddy', { method: 'POST', target, requestId }, credential)),
    );
    expect(await paid.earned()).toBe(before + 100_000n);
    const winners = new Set(ids.filter((_, index) => all[index]?.allows === true));
    expect(winners.size).toBe(1);
    for (const each of all) if (!each.allows) expect(each.status).toBe(409);
    await becomes(target, 'delivered');
  });

  test('behaviour: questions of one request join the one that is being decided', async () => {
    const target = thing();
    const credential = await payFor(target);
    const held = Promise.withResolvers<void>();
    const settling = paid.facilitator.next('settle');
    paid.facilitator.fault('settle', { kind: 'wait', until: held.promise });
    const joined = await scraped('decision_repeats_total{kind="joined"}');
    const first = asks('nginx', { target, requestId: 'joined' }, credential);
    await settling;
    const others = [0, 1].map(() => asks('nginx', { target, requestId: 'joined' }, credential));
    const stranger = await asks('nginx', { target, requestId: 'stranger' }, credential);
    expect(problemOf(stranger)).toMatchObject({ code: 'payment_in_use' });
    await until('two have joined', async () => (await scraped('decision_repeats_total{kind="joined"}')) === joined + 2);
    held.resolve();
    for (const each of await Promise.all([first, ...others])) expect(each.allows).toBe(true);
  });

  test('behaviour: a proxy that dies before its allow left gets it again, without a second charge', async () => {
    const target = thing();
    const credential = await payFor(target);
    const held = Promise.withResolvers<void>();
    const settling = paid.facilitator.next('settle');
    paid.facilitator.fault('settle', { kind: 'wait', until: held.promise });
    const client = await openRaw(portOf('nginx'));
    client.send(questionOf('nginx', { target, requestId: 'dead', headers: { 'payment-signature': credential } }));
    await settling;
    client.close();
    held.resolve();
    await becomes(target, 'settled');
    const earned = await paid.earned();
    const again = await asks('nginx', { target, requestId: 'another-request' }, credential);
    expect(again.allows).toBe(true);
    expect(await paid.earned()).toBe(earned);
    await becomes(target, 'delivered');
    expect(await scraped('decision_repeats_total{kind="undelivered"}')).toBeGreaterThanOrEqual(1);
  });

  test('behaviour: a settlement that takes longer than answer_within is answered 503, goes on, and is allowed then', async () => {
    const target = thing();
    const credential = await payFor(target);
    const held = Promise.withResolvers<void>();
    paid.facilitator.fault('settle', { kind: 'wait', until: held.promise });
    const started = performance.now();
    const late = await ask(paid.tollgate().port(HASTY), 'caddy', {
      target,
      requestId: 'late',
      headers: { 'payment-signature': credential },
    });
    // A facilitator may take 15 s.
    expect(performance.now() - started).toBeLessThan(12_000);
    expect(late.status).toBe(503);
    expect(problemOf(late)).toMatchObject({ code: 'settlement_unknown', charged: 'unknown' });
    expect(problemOf(late)['charge_id']).toMatch(/^chg_/);
    held.resolve();
    await becomes(target, 'settled');
    expect((await asks('caddy', { target, requestId: 'later' }, credential)).allows).toBe(true);
  });

  test('behaviour: a v1 payment is allowed once, and never again', async () => {
    const target = thing();
    const { payTo } = await paid.quote(target);
    const payload = await paid.payer.authorize({ to: payTo, value: 100_000n, asset: USDC });
    const written = { x402Version: 1, scheme: 'exact', network: 'base-sepolia', payload };
    const credential = Buffer.from(JSON.stringify(written)).toString('base64');
    const v1 = { headers: { 'x-payment': credential }, target, requestId: 'v1' };
    const first = await asks('caddy', v1);
    expect(first.allows).toBe(true);
    expect(first.header('x-payment-response')).toBeDefined();
    await becomes(target, 'delivered');
    expect(problemOf(await asks('caddy', v1))).toMatchObject({ code: 'already_paid' });
  });
});

describe('reports of a failed upstream', () => {
  const reports = (dialect: Dialect, target: string, headers: Record<string, string | undefined>, method = 'GET') =>
    ask(portOf(dialect), dialect, { target, method, path: '/failed', headers });

  test('behaviour: what was reported is allowed again three times, then it is owed', async () => {
    const target = thing();
    const credential = await payFor(target, 'POST');
    const allowed = await asks('nginx', { method: 'POST', target, requestId: 'f0' }, credential);
    const chargeId = allowed.header('tollgate-charge-id');
    const earned = await paid.earned();
    for (let failure = 1; failure <= 4; failure++) {
      await becomes(target, 'delivered');
      const report = await reports('nginx', target, { 'tollgate-charge-id': chargeId }, 'POST');
      expect(report).toMatchObject({ raw: 502, status: 502 });
      expect(report.header('tollgate-status')).toBeUndefined();
      expect(problemOf(report)).toMatchObject({ code: 'upstream_failed', charge_id: chargeId, charged: true });
      expect(report.header('retry-after')).toBe('1');
      expect(receiptOf(report)).toMatchObject({ success: true });
      const again = await asks('nginx', { method: 'POST', target, requestId: `f${failure}` }, credential);
      if (failure < 4) expect(again.allows).toBe(true);
      else expect(problemOf(again)).toMatchObject({ code: 'already_paid', owed: true });
    }
    expect(await paid.earned()).toBe(earned);
    expect(await chargeAt(target)).toMatchObject({ status: 'settled', owed: 'upstream' });
    expect(await scraped('decision_reports_total{result="accepted"}')).toBeGreaterThanOrEqual(4);
  });

  test('attack: a report of another charge, target, method or dialect, without secret, or twice changes nothing', async () => {
    const target = thing();
    const credential = await payFor(target);
    const allowed = await asks('nginx', { target, requestId: 'g0' }, credential);
    const chargeId = allowed.header('tollgate-charge-id') ?? '';
    await becomes(target, 'delivered');
    const refused = [
      await reports('nginx', `${target}x`, { 'tollgate-charge-id': chargeId }),
      await reports('nginx', target, { 'tollgate-charge-id': chargeId }, 'POST'),
      await reports('caddy', target, { 'tollgate-charge-id': chargeId }),
      await reports('nginx', target, { 'tollgate-charge-id': 'chg_other' }),
      await reports('nginx', target, {}),
      await reports('nginx', target, { 'tollgate-charge-id': chargeId, 'x-rewrite-url': '/' }),
      await reports('nginx', target, { 'tollgate-charge-id': chargeId, 'x-forwarded-host': 'a.example', host: 'a, b' }),
      await reports('nginx', target, { 'tollgate-charge-id': `${chargeId}\r\ntollgate-charge-id: ${chargeId}` }),
    ];
    for (const each of refused) expect([each.raw, problemOf(each)['code']]).toEqual([502, 'upstream_unreachable']);
    const unsigned = await reports('nginx', target, { 'tollgate-charge-id': chargeId, 'tollgate-secret': undefined });
    expect(unsigned.raw).toBe(403);
    expect((await chargeAt(target))?.status).toBe('delivered');
    const plain = await send(
      portOf('nginx'),
      questionOf('nginx', { target, headers: { 'tollgate-charge-id': chargeId } }),
    );
    expect(plain.status).toBe(403);
  });
});

describe('the end of a process', () => {
  test('behaviour: after SIGTERM questions in flight are answered, idle proxies are let go, and nothing is charged twice', async () => {
    const tollgate = paid.tollgate();
    const target = thing();
    const credential = await payFor(target);
    const earned = await paid.earned();
    const held = Promise.withResolvers<void>();
    const settling = paid.facilitator.next('settle');
    paid.facilitator.fault('settle', { kind: 'wait', until: held.promise });
    const [asking, joining, idle] = await Promise.all([1, 2, 3].map(() => openRaw(portOf('nginx'))));
    const question = questionOf('nginx', { target, requestId: 'last', headers: { 'payment-signature': credential } });
    idle?.send(questionOf('nginx', { target: '/free' }));
    expect((await idle?.answer())?.status).toBe(200);
    asking?.send(question);
    await settling;
    joining?.send(question);
    await until('the second question is in flight', async () => {
      const text = await (await fetch(`${tollgate.url('admin')}/metrics`)).text();
      return /^tollgate_decision_repeats_total\{kind="joined"\} [1-9]/m.test(text) ? true : undefined;
    });
    tollgate.signal('SIGTERM');
    await tollgate.line(({ msg }) => msg === 'draining');
    await idle?.closed;
    held.resolve();
    for (const client of [asking, joining]) {
      const answer = await client?.answer();
      expect([answer?.status, answer && headerOf(answer, 'tollgate-decision')]).toEqual([200, 'allow']);
      expect(answer && headerOf(answer, 'connection')).toBe('close');
    }
    expect(await tollgate.exited).toBe(0);
    await paid.restart();
    expect((await chargeAt(target))?.status).toBe('delivered');
    expect((await asks('nginx', { target, requestId: 'last' }, credential)).allows).toBe(true);
    expect((await asks('nginx', { target, requestId: 'next' }, credential)).status).toBe(409);
    expect((await paid.earned()) - earned).toBe(100_000n);
  });
});
