// Webhooks of a real process through kill -9 at every point of a charge's life, and in the middle of a delivery, to an endpoint
// that refuses, cuts and stalls: it sees for every charge of the ledger its states in order, at least once, and nothing else. What
// arrives is verified by the package of the specification.
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { CRASH_POINTS } from '../support/crash-point.ts';
import { createThings, payThroughKill, THINGS } from '../support/killed-thing.ts';
import { startPaidTollgate, until, type PaidTollgate } from '../support/paid-tollgate.ts';
import { eventsByCharge, eventsOfHistory } from '../support/told-charges.ts';
import { startWebhookReceiver, type Taken, type Verdict, type WebhookReceiver } from '../support/webhook-receiver.ts';

const SECRETS = [1, 2].map((each) => `whsec_${Buffer.alloc(32, each).toString('base64')}`);

let paid: PaidTollgate;
let receiver: WebhookReceiver;
let other: WebhookReceiver;
const verdicts: Verdict[] = [];
const verdictsOfOther: Verdict[] = [];
const things = createThings();

beforeAll(async () => {
  receiver = await startWebhookReceiver(SECRETS, () => verdicts.shift() ?? 'take');
  other = await startWebhookReceiver(SECRETS, () => verdictsOfOther.shift() ?? 'take');
  const endpoint = (id: string, url: string, rest: string): string =>
    `  - { id: ${id}, url: "${url}", secret: [${SECRETS.join(', ')}], allow_private: true, timeout: 2s${rest} }`;
  paid = await startPaidTollgate({
    routes: THINGS,
    handle: things.handle,
    more: [
      'webhooks:',
      endpoint('books', receiver.url, ', events: ["*", charge.claimed]'),
      endpoint('few', other.url, ', events: [charge.delivered, route.created]'),
    ].join('\n'),
  });
}, 180_000);

afterAll(async () => {
  await paid?.stop();
  receiver?.close();
  other?.close();
});

const ask = async (method: string, path: string): Promise<{ status: number; json: Record<string, unknown> }> => {
  const token = await paid.cli('token');
  const response = await fetch(`${paid.tollgate().url('registry')}${path}`, {
    method,
    headers: { authorization: `Bearer ${token}` },
  });
  return { status: response.status, json: (await response.json()) as Record<string, unknown> };
};

/** What an endpoint must have been told of a charge by its history in the ledger. */
async function toldOf(id: string): Promise<readonly string[]> {
  const { json } = await ask('GET', `/v1/billing/charges/${id}/history`);
  return eventsOfHistory(json['data'] as { state: string }[]);
}

describe.each(CRASH_POINTS)('killed %s', (stop) => {
  test('behaviour: a payment through kill -9 is told of, while the endpoint refuses, cuts and stalls', async () => {
    const target = `/thing/${stop}?POST`;
    things.hold();
    await paid.restart({ TOLLGATE_TEST_STOP_AT: stop });
    const credential = await paid.sign(await paid.quote(target, 'POST'));
    verdicts.push('refuse', 'cut', 'stall');
    await payThroughKill(paid, { stop, target, method: 'POST', credential }, () => paid.chain.mine(1));
  });
});

test('behaviour: killed in the middle of a delivery, the next process sends the same event again', async () => {
  const target = '/thing/later?POST';
  const credential = await paid.sign(await paid.quote(target, 'POST'));
  verdicts.splice(0, Infinity, ...Array.from({ length: 40 }, (): Verdict => 'stall'));
  const before = receiver.stalled.length;
  expect((await paid.pay(target, credential, { method: 'POST' })).status).toBe(200);
  await expect.poll(() => receiver.stalled.length, { timeout: 30_000 }).toBeGreaterThan(before);
  await paid.tollgate().kill();
  verdicts.splice(0);
  await paid.restart();
});

test('behaviour: for every charge of the ledger its states came in order, at least once, and nothing else came', async () => {
  // The word that an answer arrived may have died with its process.
  const charges = await paid.charges();
  expect(charges.map(({ status }) => ['settled', 'delivered'].includes(status))).toEqual(
    Array(CRASH_POINTS.length + 1).fill(true),
  );
  await until('every event was taken', async () => {
    const { json } = await ask('GET', '/v1/webhooks');
    return (json['data'] as { waiting: number }[]).every(({ waiting }) => waiting === 0);
  });
  const told = eventsByCharge(receiver.taken);
  expect([...told.keys()].toSorted()).toEqual(charges.map(({ id }) => id).toSorted());
  for (const charge of charges) {
    const events = told.get(charge.id) ?? [];
    const unknown = events.filter(({ type }) => type === 'charge.unknown');
    const moves = events.filter(({ type }) => type !== 'charge.unknown');
    expect([charge.id, moves.map(({ type }) => type)]).toEqual([charge.id, await toldOf(charge.id)]);
    expect(unknown.length).toBeLessThan(2);
    expect(events.map(({ data }) => data['sequence'])).toEqual(events.map((_, index) => index + 1));
    // The last event shows the charge as the ledger has it.
    const { sequence: _sequence, registry_id: registryId, ...last } = events.at(-1)?.data ?? {};
    if (charge.status === 'delivered') expect(last).toEqual(charge);
    else expect(last).toMatchObject({ id: charge.id, status: charge.status, transaction: charge['transaction'] });
    expect(registryId).toMatch(/^[0-9a-f-]{36}$/);
  }
  const few = eventsByCharge(other.taken);
  expect([...few.values()].map((events) => events.map(({ type }) => type))).toEqual(
    charges.filter(({ status }) => status === 'delivered').map(() => ['charge.delivered']),
  );
  expect([receiver.wrong, other.wrong]).toEqual([[], []]);
}, 120_000);

test('behaviour: routes that are made, changed and deleted are told of, as they are shown', async () => {
  const token = await paid.cli('token');
  const send = async (method: string, path: string, body?: unknown): Promise<Response> =>
    fetch(`${paid.tollgate().url('registry')}/v1/billing/protected-routes${path}`, {
      ...{ method, body: body === undefined ? null : JSON.stringify(body) },
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    });
  const made = (await (await send('POST', '', { route_pattern: '/told', method: 'GET', amount: '1' })).json()) as {
    id: string;
  };
  const changed = (await (await send('PATCH', `/${made.id}`, { amount: '2' })).json()) as object;
  await send('PATCH', `/${made.id}`, {});
  await send('DELETE', `/${made.id}`);
  const own = (all: readonly Taken[]): readonly Taken[] => all.filter(({ data }) => data['id'] === made.id);
  await expect.poll(() => own(receiver.taken).length, { timeout: 30_000 }).toBe(3);
  expect(own(receiver.taken).map(({ type, data }) => [type, data])).toEqual([
    ['route.created', made],
    ['route.updated', changed],
    ['route.deleted', changed],
  ]);
  await expect.poll(() => own(other.taken).map(({ type }) => type), { timeout: 30_000 }).toEqual(['route.created']);
});

test('behaviour: an operator lists, tests, disables by 410, enables and sends again, by HTTP and by command', async () => {
  const events = async (status = ''): Promise<Record<string, unknown>[]> =>
    (await ask('GET', `/v1/webhooks/few/deliveries${status}`)).json['data'] as Record<string, unknown>[];
  const statusOf = async (): Promise<unknown> =>
    ((await ask('GET', '/v1/webhooks')).json['data'] as Record<string, unknown>[]).find(({ id }) => id === 'few')?.[
      'status'
    ];
  expect((await ask('GET', '/v1/webhooks')).json['data']).toMatchObject([
    { id: 'books', host: new URL(receiver.url).host, events: ['*', 'charge.claimed'], waiting: 0 },
    { id: 'few', host: new URL(other.url).host, events: ['charge.delivered', 'route.created'], waiting: 0 },
  ]);
  const tested = await ask('POST', '/v1/webhooks/few/test');
  expect(tested.status).toBe(202);
  await expect
    .poll(() => other.taken.some(({ id, type }) => id === tested.json['event_id'] && type === 'test'))
    .toBe(true);
  const byCommand = await paid.cli('webhooks', 'test', 'few');
  await expect.poll(() => other.taken.some(({ id }) => id === byCommand), { timeout: 30_000 }).toBe(true);

  expect((await ask('POST', `/v1/webhooks/few/deliveries/${byCommand}/retry`)).status).toBe(202);
  await expect.poll(() => other.taken.filter(({ id }) => id === byCommand).length, { timeout: 30_000 }).toBe(2);
  await expect.poll(async () => (await events('?status=waiting')).length, { timeout: 30_000 }).toBe(0);
  const [last] = await events('?status=taken&limit=1');
  expect(last).toMatchObject({
    event_id: byCommand,
    type: 'test',
    subject: null,
    status: 'taken',
    next_attempt_at: null,
  });
  expect(last?.['attempts']).toMatchObject([{ status: 204 }, { status: 204 }]);
  verdictsOfOther.push('gone');
  await ask('POST', '/v1/webhooks/few/test');
  await expect.poll(statusOf, { timeout: 30_000 }).toBe('disabled');
  expect((await ask('POST', '/v1/webhooks/few/enable')).status).toBe(202);
  await expect.poll(async () => (await events('?status=waiting')).length, { timeout: 30_000 }).toBe(0);
  expect(await statusOf()).toBe('ok');
  for (const path of ['test', 'enable', `deliveries/${byCommand}/retry`])
    expect((await ask('POST', `/v1/webhooks/nobody/${path}`)).json['code']).toBe('webhook_unknown');
  expect((await ask('POST', `/v1/webhooks/few/deliveries/evt_${'0'.repeat(32)}/retry`)).json['code']).toBe('not_found');
  const rows = JSON.parse(await paid.cli('webhooks', 'list', '--json')) as Record<string, unknown>[];
  expect(rows.map(({ id, status }) => [id, status])).toEqual([
    ['books', 'ok'],
    ['few', 'ok'],
  ]);
  const metrics = await (await fetch(`${paid.tollgate().url('admin')}/metrics`)).text();
  expect(metrics).toMatch(/tollgate_webhook_deliveries_total\{webhook_id="few",result="taken"\} [1-9]/);
  expect(metrics).toContain('tollgate_webhook_waiting{webhook_id="few"} 0');
  expect(metrics).toContain('tollgate_webhook_oldest_seconds{webhook_id="books"} 0');
  const said = JSON.stringify(paid.tollgate().lines);
  expect([said.includes('whsec_'), said.includes('token=1')]).toEqual([false, false]);
});
