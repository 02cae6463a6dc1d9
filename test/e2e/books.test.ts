// The books: whatever became of a payment, the log, the metrics, the summary, the ledger and the chain say the same sum, to
// the last unit, and every settlement is told once. One process, one real chain, every kind of end.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createPayer } from '../support/chain/payer.ts';
import { startPaidTollgate, until, type ChargeSeen, type PaidTollgate } from '../support/paid-tollgate.ts';
import type { LogLine } from '../support/process.ts';

let paid: PaidTollgate;
let failing = new Set<string>();
let waiting = new Map<string, () => void>();

beforeAll(async () => {
  paid = await startPaidTollgate({
    routes: ['GET /report/* 0.07', 'POST /orders 0.123456', 'GET /missing 0.10', 'GET /slow 0.10'],
    handle: (req, res) => {
      req.resume();
      const { url = '' } = req;
      if (failing.delete(url)) res.writeHead(500).end('broken');
      else if (url === '/missing') res.writeHead(404).end('nothing here');
      else if (url === '/slow') waiting.set(url, () => res.end('late'));
      else res.end('the answer');
    },
  });
}, 180_000);
afterAll(() => paid?.stop());

const find = async (id: string, state: string): Promise<ChargeSeen> =>
  until(
    `charge ${id.slice(-8)} is ${state}`,
    async () => (await paid.charges()).find((charge) => charge.id === id && charge.status === state),
    15_000,
  );
const ids = new WeakMap<Response, string>();
let requests = 0;
/** Sends `credential` with a request id of its own. */
const send = async (target: string, credential: string, init: RequestInit = {}): Promise<Response> => {
  const id = (init.headers as Record<string, string> | undefined)?.['x-request-id'] ?? `books-${++requests}`;
  const headers = { ...(init.headers as Record<string, string>), 'x-request-id': id };
  const response = await paid.pay(target, credential, { ...init, headers });
  ids.set(response, id);
  return response;
};
const pay = async (
  target: string,
  init: RequestInit = {},
  by = paid.payer,
): Promise<{ response: Response; credential: string }> => {
  const credential = await paid.sign(await paid.quote(target, init.method ?? 'GET'), by);
  return { response: await send(target, credential, init), credential };
};
const idOf = async (response: Response): Promise<string> =>
  ((await response.json()) as { charge_id: string }).charge_id;
const refusal = (errorReason: string) => ({
  kind: 'answer' as const,
  body: { success: false, errorReason, transaction: '', network: 'eip155:84532' },
});

/** Sums of a metric's lines, as exact decimals of six digits. */
function readMetric(text: string, name: string, label = ''): bigint {
  const lines = text.split('\n').filter((line) => line.startsWith(`tollgate_${name}{`) && line.includes(label));
  return lines.reduce((sum, line) => {
    const [, whole = '', fraction = ''] = /\} (\d+)(?:\.(\d{1,6}))?$/.exec(line) ?? [];
    expect(whole).not.toBe('');
    return sum + BigInt(whole + fraction.padEnd(6, '0'));
  }, 0n);
}
const metrics = async (): Promise<string> => (await fetch(`${paid.tollgate().url('admin')}/metrics`)).text();
const requestLine = (requestId: string | undefined): Promise<LogLine> =>
  until(`the line of request ${requestId}`, async () =>
    paid.tollgate().lines.find((line) => line.msg === 'request' && line['request_id'] === requestId),
  );
const outcomeOf = async (response: Response): Promise<unknown> => (await requestLine(ids.get(response)))['outcome'];

test('behaviour: every kind of end of a charge is counted, and the sum is one everywhere', async () => {
  const outcomes: Record<string, unknown> = {};
  // 3 x 0.07 is 0.21.
  for (const n of [1, 2, 3]) {
    const { response } = await pay(`/report/${n}`);
    expect([response.status, await response.text()]).toEqual([200, 'the answer']);
    outcomes['a paid GET'] = await outcomeOf(response);
  }
  const { response: posted } = await pay('/orders', { method: 'POST', body: 'x', headers: { 'x-customer-id': 'c-1' } });
  expect(posted.status).toBe(200);
  outcomes['a paid POST'] = await outcomeOf(posted);
  expect(await requestLine(ids.get(posted))).toMatchObject({
    customer_id: 'c-1',
    payer: paid.payer.address.toLowerCase(),
    amount: '0.123456',
    currency: 'USD',
  });

  const poor = await createPayer(paid.chain, 1n);
  const { response: refused } = await pay('/report/poor', {}, poor);
  expect(refused.status).toBe(402);
  outcomes['refused'] = await outcomeOf(refused);

  const { response: missing } = await pay('/missing');
  expect(missing.status).toBe(404);
  outcomes['a 404 of the upstream'] = await outcomeOf(missing);

  failing.add('/report/broken');
  const { response: broken } = await pay('/report/broken');
  expect(broken.status).toBe(500);
  outcomes['a 500 before settling'] = await outcomeOf(broken);

  failing.add('/orders');
  const { response: unlucky, credential: again } = await pay('/orders', { method: 'POST', body: 'x' });
  expect(unlucky.status).toBe(500);
  outcomes['a 500 after settling'] = await outcomeOf(unlucky);
  const fetched = await until('the answer is fetched again', async () => {
    const response = await send('/orders', again, { method: 'POST', body: 'x' });
    return response.status === 200 ? response : undefined;
  });
  outcomes['fetched again'] = await outcomeOf(fetched);

  const leaving = new AbortController();
  const left = pay('/slow', { signal: leaving.signal, headers: { 'x-request-id': 'left-early' } }).catch(
    () => undefined,
  );
  await until('the upstream was asked', async () => waiting.has('/slow'));
  leaving.abort();
  await left;
  outcomes['a client that left'] = (await requestLine('left-early'))['outcome'];

  paid.facilitator.fault('settle', { kind: 'drop_after' });
  const { response: unknown, credential: proven } = await pay('/report/unknown');
  expect(unknown.status).toBe(503);
  outcomes['unknown'] = await outcomeOf(unknown);
  await find(await idOf(unknown), 'settled');
  const served = await until('what the chain proves is served', async () => {
    const response = await send('/report/unknown', proven);
    return response.status === 200 ? response : undefined;
  });
  outcomes['proven by the chain'] = await outcomeOf(served);

  paid.facilitator.fault('settle', { kind: 'answer', status: 401, body: { error: 'who are you' } });
  const { response: away } = await pay('/orders', { method: 'POST', body: 'x' });
  expect(away.status).toBe(503);
  outcomes['not carried out'] = await outcomeOf(away);
  await find(await idOf(away), 'released');

  paid.facilitator.fault('settle', refusal('insufficient_funds'));
  const { response: late } = await pay('/report/late');
  expect(late.status).toBe(402);
  outcomes['refused at settling'] = await outcomeOf(late);

  paid.facilitator.fault('settle', { kind: 'drop_before' }, 100);
  const { response: lost, credential: cancelled } = await pay('/orders', { method: 'POST', body: 'x' });
  expect(lost.status).toBe(503);
  const { payload } = JSON.parse(Buffer.from(cancelled, 'base64').toString()) as {
    payload: { authorization: { nonce: string } };
  };
  await paid.payer.cancel(payload.authorization.nonce);
  await find(await idOf(lost), 'failed');
  paid.facilitator.clearFaults();

  expect(outcomes).toEqual({
    'a paid GET': 'paid',
    'a paid POST': 'paid',
    refused: 'payment_required',
    'a 404 of the upstream': 'released',
    'a 500 before settling': 'released',
    'a 500 after settling': 'paid',
    'fetched again': 'paid',
    'a client that left': 'released',
    unknown: 'error',
    'proven by the chain': 'paid',
    'not carried out': 'error',
    'refused at settling': 'payment_required',
  });

  const earned = 4n * 70_000n + 2n * 123_456n;
  expect(await paid.earned()).toBe(earned);
  const charges = await until('every charge has its end', async () => {
    const all = await paid.charges();
    return all.every(({ status }) => ['delivered', 'released', 'failed'].includes(status)) ? all : undefined;
  });
  const settled = charges.filter(({ status }) => status === 'delivered');
  expect(settled.reduce((sum, { amount_atomic }) => sum + BigInt(amount_atomic), 0n)).toBe(earned);

  const told = paid.tollgate().lines.filter(({ msg }) => msg === 'charge settled');
  expect(told.map((line) => String(line['charge_id'])).toSorted()).toEqual(settled.map(({ id }) => id).toSorted());
  expect(told.reduce((sum, line) => sum + BigInt(String(line['amount_atomic'])), 0n)).toBe(earned);
  for (const line of told) expect(line['request_id']).toMatch(/./);

  const text = await metrics();
  expect(readMetric(text, 'revenue_total')).toBe(earned);
  expect(text).toMatch(/^tollgate_revenue_total\{route_id="[^"]+",currency="USD",network="eip155:84532"\} 0\.28$/m);
  expect(readMetric(text, 'payments_total', 'result="settled"')).toBe(BigInt(settled.length) * 1_000_000n);

  const token = await paid.cli('token');
  const summary = await fetch(`${paid.tollgate().url('registry')}/v1/billing/summary?bucket=total`, {
    headers: { authorization: `Bearer ${token}` },
  });
  const { data } = (await summary.json()) as { data: { amount_atomic: string; charges: number }[] };
  expect(data.reduce((sum, { amount_atomic }) => sum + BigInt(amount_atomic), 0n)).toBe(earned);
  expect(data.reduce((sum, { charges: count }) => sum + count, 0)).toBe(settled.length);
}, 180_000);
