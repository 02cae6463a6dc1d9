// The API is away for a moment while its payers pay, over a real chain: nobody is charged for a request that cannot be sent,
// and what was charged before stays fetchable, however often the client repeats.
import type { RequestListener, Server } from 'node:http';
import { createServer as createTcpServer, type Server as TcpServer } from 'node:net';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { startPaidTollgate, until, type PaidTollgate } from '../support/paid-tollgate.ts';

const PRICE = 100_000n;
let paid: PaidTollgate;
/** What the upstream does with its next requests, the oldest first; then it answers. */
const conducts: RequestListener[] = [];

beforeAll(async () => {
  paid = await startPaidTollgate({
    routes: ['POST /orders 0.10', 'GET /report 0.10'],
    more: 'page: { support: "mailto:help@example.com" }',
    handle: (req, res) => {
      const conduct = conducts.shift();
      if (conduct !== undefined) return conduct(req, res);
      req.resume();
      res.end(`done for ${String(req.headers['tollgate-charge-id'])}`);
    },
  });
}, 180_000);
beforeEach(() => void conducts.splice(0));
afterAll(() => paid?.stop());

type Body = { readonly [member: string]: unknown };
type Told = { readonly status: number; readonly retryAfter: number; readonly receipt: boolean; readonly body: Body };

async function ask(credential: string, target = '/orders', method = 'POST'): Promise<Told> {
  const response = await paid.pay(target, credential, { method });
  const text = await response.text();
  return {
    status: response.status,
    retryAfter: Number(response.headers.get('retry-after')),
    receipt: response.headers.has('payment-response'),
    body: response.headers.get('content-type') === 'application/problem+json' ? (JSON.parse(text) as Body) : { text },
  };
}

const sign = async (target = '/orders', method = 'POST'): Promise<string> =>
  paid.sign(await paid.quote(target, method));

/** Takes the upstream away; what is returned brings it back at the same port. */
async function away(): Promise<() => Promise<void>> {
  const { server, port } = paid.upstream;
  await new Promise<void>((resolve) => {
    server.close(() => resolve());
    server.closeAllConnections();
  });
  return () => listenAt(server, port);
}

function listenAt(server: Server | TcpServer, port: number): Promise<void> {
  return new Promise((resolve) => void server.listen(port, '127.0.0.1', () => resolve()));
}

const destroys: RequestListener = (req) => void req.socket.destroy();

test('attack: a POST repeated without pauses while the upstream refuses connections is charged and answered once', async () => {
  const before = await paid.earned();
  const credential = await sign();
  const comeBack = await away();
  for (let i = 0; i < 25; i++) {
    const { status, body, receipt, retryAfter } = await ask(credential);
    expect([status, body['code'], body['charged'], receipt]).toEqual([502, 'upstream_unreachable', false, false]);
    expect(body['charge_id']).toMatch(/^chg_/);
    expect(retryAfter).toBeGreaterThan(0);
  }
  expect(await paid.earned()).toBe(before);
  await comeBack();
  const served = await ask(credential);
  expect([served.status, served.receipt]).toEqual([200, true]);
  expect((await paid.earned()) - before).toBe(PRICE);
  const [charge] = await until('the delivery is written', async () => {
    const charges = await paid.charges();
    return charges[0]?.status === 'delivered' && charges;
  });
  expect(charge).toMatchObject({ charged: true, owed: null, asked: 1 });
});

test('attack: something in front of the upstream that accepts and closes at once is no upstream', async () => {
  const before = await paid.earned();
  const credential = await sign();
  const comeBack = await away();
  const closer = createTcpServer((socket) => socket.destroy());
  await listenAt(closer, paid.upstream.port);
  for (let i = 0; i < 5; i++) expect(await ask(credential)).toMatchObject({ status: 502, body: { charged: false } });
  await new Promise((resolve) => closer.close(resolve));
  expect(await paid.earned()).toBe(before);
  await comeBack();
  expect((await ask(credential)).status).toBe(200);
  expect((await paid.earned()) - before).toBe(PRICE);
});

test('behaviour: an upstream that dies over the request leaves its payer a receipt, and is left alone, also after a restart', async () => {
  const before = await paid.earned();
  const credential = await sign();
  conducts.push(destroys, destroys);
  const asked = paid.upstream.seen.length;
  const first = await ask(credential);
  expect(first).toMatchObject({ status: 502, receipt: true, retryAfter: 2, body: { charged: true } });
  expect(Date.parse(String(first.body['retry_until'])) - Date.now()).toBeGreaterThan(23 * 3_600_000);
  expect(first.body['detail']).toMatch(/0\.10 USDC on base-sepolia was charged/);
  expect(await ask(credential)).toMatchObject({ status: 502, receipt: true, body: { charged: true } });
  expect(paid.upstream.seen.length).toBe(asked + 1);
  const second = await until('the upstream is asked again', async () => {
    const told = await ask(credential);
    return paid.upstream.seen.length > asked + 1 && told;
  });
  expect(second).toMatchObject({ status: 502, retryAfter: 10, body: { charged: true } });
  await paid.restart();
  const restarted = await ask(credential);
  expect(restarted).toMatchObject({ status: 502, receipt: true, body: { charged: true } });
  expect(restarted.retryAfter).toBeGreaterThan(1);
  expect((await paid.charges())[0]).toMatchObject({ asked: 2, charged: true, failed_status: 502, owed: null });
  expect(paid.upstream.seen.length).toBe(asked + 2);
  const served = await until('the answer comes', async () => {
    const told = await ask(credential);
    return told.status === 200 && told;
  });
  expect(served.receipt).toBe(true);
  expect((await paid.earned()) - before).toBe(PRICE);
}, 60_000);

test('behaviour: a kept connection that the upstream closes while the payment is settled is replaced by a new one', async () => {
  // One is kept from now on.
  expect((await ask(await sign())).status).toBe(200);
  const credential = await sign();
  const closed = Promise.withResolvers<void>();
  paid.facilitator.fault('settle', { kind: 'wait', until: closed.promise });
  const settling = paid.facilitator.next('settle');
  const asking = ask(credential);
  await settling;
  // What Node takes for idle is what no request is on.
  paid.upstream.server.closeIdleConnections();
  closed.resolve();
  expect(await asking).toMatchObject({ status: 200, receipt: true });
});

test('behaviour: a GET whose upstream is away is not charged, says so, and may be sent again as it is', async () => {
  const before = await paid.earned();
  const credential = await sign('/report', 'GET');
  const comeBack = await away();
  for (let i = 0; i < 15; i++) {
    const told = await ask(credential, '/report', 'GET');
    expect(told).toMatchObject({ status: 502, receipt: false, body: { charged: false, code: 'upstream_unreachable' } });
  }
  await comeBack();
  expect((await ask(credential, '/report', 'GET')).status).toBe(200);
  expect((await paid.earned()) - before).toBe(PRICE);
});
