// Settlements that do not end well, over a real chain: nobody is charged after being sent away, what was paid is served as
// soon as its payer asks again, and no settlement is sent but for a request that waits for it.
import type { RequestListener } from 'node:http';
import { connect } from 'node:net';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { caughtUp, startPaidTollgate, until, type ChargeSeen, type PaidTollgate } from '../support/paid-tollgate.ts';

const PRICE = 100_000n;
/** On a busy machine too, and well within the lease of 10 s, which nothing may wait for. */
const AT_ONCE_MS = 8_000;
let paid: PaidTollgate;
let holding: (() => void) | undefined;
let holds = false;

const routes = ['* /thing/* 0.10', 'GET /other 0.10'];
const handle: RequestListener = (req, res) => {
  req.resume();
  if (!holds) res.end(`thing of ${req.url ?? ''}`);
  else {
    res.write('half of ');
    holding = () => res.end('it');
  }
};

beforeAll(async () => {
  paid = await startPaidTollgate({ routes, handle, settle: '20s' });
}, 180_000);
afterAll(() => paid?.stop());
afterEach(async () => {
  paid.facilitator.clearFaults();
  await paid.facilitator.comeBack();
  holds = false;
});

type Told = {
  readonly code: string;
  readonly detail: string;
  readonly charge_id: string;
  readonly retry_until: string;
};

const tell = async (response: Response): Promise<[number, Told]> => [response.status, (await response.json()) as Told];
const settleCalls = (): number => paid.facilitator.calls.filter(({ operation }) => operation === 'settle').length;
const stateOf = async (id: string): Promise<ChargeSeen | undefined> =>
  (await paid.charges()).find((charge) => charge.id === id);
/** Longer than the first looks of the reconciler. */
const lookedAt = (): Promise<void> =>
  new Promise((resolve) => {
    setTimeout(resolve, 4_500);
  });

/** First payments that came to nothing, and what each of them may not do by itself. */
const ENDS = [
  {
    what: 'a 401 to settle',
    operation: 'settle',
    fault: { kind: 'answer', status: 401, body: { error: 'no key' } },
    code: 'facilitator_unavailable',
  },
  {
    what: 'a 429 to settle',
    operation: 'settle',
    fault: { kind: 'answer', status: 429, body: 'slow down' },
    code: 'facilitator_unavailable',
  },
  {
    what: 'a facilitator that is gone after it verified',
    operation: 'verify',
    fault: { kind: 'leave_after' },
    code: 'facilitator_unavailable',
  },
  { what: 'an unknown end', operation: 'settle', fault: { kind: 'drop_before' }, code: 'settlement_unknown' },
] as const;

test('behaviour: a charge that failed before the money moved waits for its payer to ask again, who is served and charged once', async () => {
  const before = { earned: await paid.earned(), calls: settleCalls() };
  let calls = before.calls;
  const failed = [];
  for (const method of ['GET', 'POST'])
    for (const { what, operation, fault, code } of ENDS) {
      const target = `/thing/${method}`;
      const credential = await paid.sign(await paid.quote(target, method));
      paid.facilitator.fault(operation, fault, 1);
      const [status, body] = await tell(await paid.pay(target, credential, { method }));
      expect([method, what, status, body.code]).toEqual([method, what, 503, code]);
      if (code === 'facilitator_unavailable') expect(body.detail).toContain('nothing was charged');
      else {
        const until_ = Date.parse(body.retry_until) / 1000;
        expect(until_).toBeGreaterThan(Date.now() / 1000 + 250);
        expect(until_).toBeLessThan(Date.now() / 1000 + 1_000);
      }
      paid.facilitator.clearFaults();
      await paid.facilitator.comeBack();
      if (operation === 'settle') calls++;
      failed.push({ method, target, what, credential, code, id: body.charge_id });
    }
  await lookedAt();
  expect([await paid.earned(), settleCalls()]).toEqual([before.earned, calls]);
  let { earned } = before;
  for (const { method, target, what, credential, code, id } of failed) {
    if (code === 'facilitator_unavailable')
      expect([method, what, (await stateOf(id))?.status]).toEqual([method, what, 'released']);
    const again = await paid.pay(target, credential, { method });
    expect([method, what, again.status, await again.text()]).toEqual([method, what, 200, `thing of ${target}`]);
    earned += PRICE;
    calls++;
    expect([method, what, await paid.earned(), settleCalls()]).toEqual([method, what, earned, calls]);
  }
});

describe.each(['GET', 'POST'])('a %s', (method) => {
  const target = `/thing/${method}`;
  const sign = async (): Promise<string> => paid.sign(await paid.quote(target, method));
  const pay = (credential: string): Promise<Response> => paid.pay(target, credential, { method });

  test('behaviour: money that moved behind a lost answer is found at once by its payer, whatever has changed since', async () => {
    const credential = await sign();
    const before = { earned: await paid.earned(), calls: settleCalls() };
    paid.facilitator.fault('settle', { kind: 'drop_after' }, 1);
    expect((await tell(await pay(credential)))[1].code).toBe('settlement_unknown');
    await paid.chain.mine(1);
    paid.facilitator.fault('verify', { kind: 'drop_before' }, 100);
    const since = Date.now();
    const again = await pay(credential);
    expect([again.status, await again.text()]).toEqual([200, `thing of ${target}`]);
    expect(Date.now() - since).toBeLessThan(AT_ONCE_MS);
    expect([(await paid.earned()) - before.earned, settleCalls()]).toEqual([PRICE, before.calls + 1]);
  });

  test('behaviour: a client that leaves while its payment is verified is not charged, and nothing is claimed', async () => {
    const credential = await sign();
    const before = { earned: await paid.earned(), calls: settleCalls(), rows: (await paid.charges()).length };
    const asked = paid.upstream.seen.length;
    let verify = (): void => undefined;
    paid.facilitator.fault('verify', { kind: 'wait', until: new Promise<void>((resolve) => (verify = resolve)) }, 1);
    const verifying = paid.facilitator.next('verify');
    const socket = connect(paid.tollgate().port('proxy'), '127.0.0.1', () => {
      socket.write(
        `${method} ${target} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\nPAYMENT-SIGNATURE: ${credential}\r\n\r\n`,
      );
    });
    socket.on('error', () => undefined);
    await verifying;
    socket.resetAndDestroy();
    await caughtUp(`${paid.tollgate().url('admin')}/metrics`);
    verify();
    await paid
      .tollgate()
      .line(
        (line) =>
          line.msg === 'request' &&
          line['method'] === method &&
          line['status'] === 499 &&
          line['reason'] === 'client_gone',
      );
    expect([await paid.earned(), settleCalls(), (await paid.charges()).length, paid.upstream.seen.length]).toEqual([
      before.earned,
      before.calls,
      before.rows,
      asked,
    ]);
  });
});

test('behaviour: a settlement that takes longer than a lease ends well, once', async () => {
  const credential = await paid.sign(await paid.quote('/thing/slow', 'POST'));
  const before = { earned: await paid.earned(), calls: settleCalls() };
  const { promise: until, resolve: settle } = Promise.withResolvers<void>();
  paid.facilitator.fault('settle', { kind: 'wait', until }, 1);
  const settling = paid.facilitator.next('settle');
  const first = paid.pay('/thing/slow', credential, { method: 'POST' });
  await settling;
  // All the time, also past the 10 s of a lease.
  for (const since = Date.now(); Date.now() - since < 11_500;) {
    expect((await paid.pay('/thing/slow', credential, { method: 'POST' })).status).toBe(409);
    await new Promise((resolve) => {
      setTimeout(resolve, 500);
    });
  }
  settle();
  expect((await first).status).toBe(200);
  expect([(await paid.earned()) - before.earned, settleCalls()]).toEqual([PRICE, before.calls + 1]);
}, 180_000);

test('behaviour: a paid GET whose process dies again and again in the middle of its answer is served in the end', async () => {
  const credential = await paid.sign(await paid.quote('/thing/dies'));
  const before = await paid.earned();
  for (let deaths = 0; deaths < 3; deaths++) {
    holds = true;
    const response = await until(
      'it is served',
      async () => {
        const answer = await paid.pay('/thing/dies', credential);
        return answer.status === 200 ? answer : undefined;
      },
      45_000,
    );
    const body = response.text().then(
      () => 'whole',
      () => 'broken',
    );
    await until('half of it is there', async () => holding !== undefined);
    await paid.restart();
    expect(await body).toBe('broken');
    holding = undefined;
  }
  holds = false;
  const since = Date.now();
  const last = await paid.pay('/thing/dies', credential);
  expect([last.status, await last.text()]).toEqual([200, 'thing of /thing/dies']);
  expect(Date.now() - since).toBeLessThan(AT_ONCE_MS);
  expect((await paid.earned()) - before).toBe(PRICE);
}, 600_000);

test('behaviour: the ledger and the chain agree to the last unit', async () => {
  const settled = (await paid.charges()).filter(({ status }) => ['settled', 'delivered'].includes(status));
  expect(settled.reduce((sum, { amount_atomic: amount }) => sum + BigInt(amount), 0n)).toBe(await paid.earned());
});

test.each(['GET', 'POST'])(
  'behaviour: a %s whose process died before the settlement was sent ends without a chain to read: its payer settles it',
  async (method) => {
    const blind = await startPaidTollgate({ routes, handle, rpcUrl: 'none' });
    try {
      await blind.restart({ TOLLGATE_TEST_STOP_AT: 'after_settle_started' });
      const credential = await blind.sign(await blind.quote('/thing/blind', method));
      void blind.pay('/thing/blind', credential, { method }).catch(() => undefined);
      await blind.tollgate().line(({ msg }) => msg === 'stopped for a test');
      await blind.restart();
      const since = Date.now();
      const again = await blind.pay('/thing/blind', credential, { method });
      expect([again.status, await again.text()]).toEqual([200, 'thing of /thing/blind']);
      expect(Date.now() - since).toBeLessThan(AT_ONCE_MS);
      expect(await blind.earned()).toBe(PRICE);
    } finally {
      await blind.stop();
    }
  },
  600_000,
);
