// A price service of the owner's: asked for what a request costs, believed within its bounds alone, and asked as seldom as it can
// be. Whatever it does, nothing that it says lets a request pass.
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { makeUpPayment, readTerms } from '../support/made-up-payment.ts';
import { codeOf, seriesOf, startPlans, type Answer, type PlanKit } from './kit.ts';

type Say = (req: IncomingMessage, res: ServerResponse, body: string) => void;

const asked: Record<string, unknown>[] = [];
let say: Say;
const service = createServer((req, res) => {
  let text = '';
  req.setEncoding('utf8').on('data', (chunk: string) => (text += chunk));
  req.on('end', () => {
    asked.push(JSON.parse(text) as Record<string, unknown>);
    say(req, res, text);
  });
});
const answer =
  (body: unknown, status = 200): Say =>
  (_req, res) => {
    res.writeHead(status, { 'content-type': 'application/json' });
    res.end(typeof body === 'string' ? body : JSON.stringify(body));
  };

let plans: string;
let kit: PlanKit;
beforeAll(async () => {
  await new Promise<void>((resolve) => {
    service.listen(0, '127.0.0.1', resolve);
  });
  const { port } = service.address() as AddressInfo;
  const asks = (path: string, more: string): string =>
    `price: { service: { url: "http://127.0.0.1:${port}/${path}", min: "0.01", max: "5.00", inputs: [query.*, header.x-model, param.kind], ${more} } }`;
  plans = `selling:
  plans:
    - { id: p, ${asks('p', 'headers: { X-Secret: of-the-service }, timeout: 2s')} }
    - { id: fresh, ${asks('fresh', 'cache: 0s, timeout: 10s')} }
    - { id: late, ${asks('late', 'timeout: 500ms')} }
    - { id: lenient, ${asks('lenient', 'timeout: 2s, when_away: route')} }
${['zero', 'million', 'nonsense', 'redirect', 'huge', 'broken', 'gone'].map((id) => `    - { id: ${id}, ${asks(id, 'timeout: 2s')} }`).join('\n')}
routes:
  - { method: GET, route_pattern: "/p/:kind", amount: "0.10", plan_id: p }
  - { method: GET, route_pattern: /whole, amount: "3.00", plan_id: fresh }
${['fresh', 'late', 'lenient', 'zero', 'million', 'nonsense', 'redirect', 'huge', 'broken', 'gone'].map((id) => `  - { method: GET, route_pattern: "/${id}", amount: "0.10", plan_id: ${id} }`).join('\n')}
`;
  kit = await startPlans(plans);
});
beforeEach(() => {
  asked.length = 0;
  say = answer({ amount: '0.12' });
});
afterAll(async () => {
  await kit.close();
  service.closeAllConnections();
  await new Promise((resolve) => service.close(resolve));
});

const amountOf = ({ body }: Answer): unknown => (JSON.parse(body) as { amount?: unknown }).amount;

test('behaviour: the service is told what the plan names of a request, and says its price', async () => {
  say = (req, res, body) => {
    expect(req.headers['x-secret']).toBe('of-the-service');
    expect([req.method, req.headers['content-type']]).toEqual(['POST', 'application/json']);
    answer({ amount: '0.37', ttl: 60, description: 'A large one' })(req, res, body);
  };
  const got = await kit.ask('/p/video?size=large&n=2', { headers: { 'x-model': 'opus', 'x-other': 'no' } });
  expect([got.status, amountOf(got), (JSON.parse(got.body) as { description: string }).description]).toEqual([
    ...[402, '0.37', 'A large one'],
  ]);
  expect(asked).toEqual([
    {
      ...{ route_id: expect.any(String), route_pattern: '/p/:kind', method: 'GET', path: '/p/video' },
      ...{ query: { size: 'large', n: '2' }, headers: { 'x-model': 'opus' }, params: { kind: 'video' } },
      ...{ length: null, customer_id: null, amount: '0.10', currency: 'USD' },
    },
  ]);
});

test('behaviour: equal requests share one call, and its answer is kept as long as the shorter of cache and ttl', async () => {
  say = (req, res, body) => void setImmediate(() => answer({ amount: '0.20', ttl: 20 })(req, res, body));
  const all = await Promise.all(Array.from({ length: 50 }, () => kit.ask('/p/a?x=1')));
  expect([new Set(all.map(amountOf)), asked.length]).toEqual([new Set(['0.20']), 1]);
  kit.pass(10_000);
  expect([amountOf(await kit.ask('/p/a?x=1')), asked.length]).toEqual(['0.20', 1]);
  kit.pass(10_001);
  say = answer({ amount: '0.30', ttl: 3600 });
  expect([amountOf(await kit.ask('/p/a?x=1')), asked.length]).toEqual(['0.30', 2]);
  kit.pass(30_001);
  expect([amountOf(await kit.ask('/p/a?x=1')), asked.length]).toEqual(['0.30', 3]);
});

test('behaviour: a payment by its quote costs what was quoted, and the service is not asked again', async () => {
  say = answer({ amount: '0.20' });
  const quoted = await kit.ask('/fresh?x=1');
  const payment = makeUpPayment(readTerms(String(quoted.headers['payment-required'])), kit.now());
  say = answer({ amount: '4.00' });
  asked.length = 0;
  const paid = await kit.ask('/fresh?x=1', { headers: { 'payment-signature': payment } });
  expect([paid.status, kit.told()['tollgate-amount'], asked.length]).toEqual([200, '0.20', 0]);
  const dear = await kit.ask('/fresh?x=2', {
    headers: { 'payment-signature': makeUpPayment(readTerms(String(quoted.headers['payment-required'])), kit.now()) },
  });
  expect([dear.status, amountOf(dear), dear.headers['tollgate-reason']]).toEqual([
    ...[402, '4', 'quote_mismatch: it was made for a request that asks for something else'],
  ]);
});

test('behaviour: an answer of 4 KiB counts, with a description as long as that leaves room for, and one byte more does not', async () => {
  const answerOf = (bytes: number): string => {
    const around = JSON.stringify({ amount: '0.20', description: '' });
    return JSON.stringify({ amount: '0.20', description: 'x'.repeat(bytes - around.length) });
  };
  say = answer(answerOf(4096));
  const full = await kit.ask('/fresh?x=4096');
  expect([full.status, amountOf(full)]).toEqual([402, '0.20']);
  expect((JSON.parse(full.body) as { description: string }).description).toMatch(/^x+/);
  say = answer(answerOf(4097));
  expect(codeOf(await kit.ask('/fresh?x=4097'))).toBe('price_unavailable');
});

test("behaviour: a request that costs what its route says is asked for the route's amount as it is written", async () => {
  say = answer({ amount: '3' });
  expect(amountOf(await kit.ask('/whole?x=1'))).toBe('3.00');
  const paid = await kit.pay('/whole?x=1');
  expect([paid.status, kit.told()['tollgate-amount']]).toEqual([200, '3.00']);
});

const REDIRECTED: Say = (_req, res) => {
  res.writeHead(307, { location: '/p' });
  res.end('{"amount":"0.01"}');
};
test.each<[string, Say, string]>([
  ['zero', answer({ amount: '0' }), 'out_of_bounds'],
  ['zero', answer({ amount: '0.009999' }), 'out_of_bounds'],
  ['million', answer({ amount: '1000000' }), 'out_of_bounds'],
  ['nonsense', answer('price'), 'nonsense'],
  ['nonsense', answer({ amount: 0.12 }), 'nonsense'],
  ['nonsense', answer({ amount: '-1' }), 'nonsense'],
  ['nonsense', answer({ amount: '1e-1' }), 'nonsense'],
  ['nonsense', answer({ amount: '0.12', ttl: -1 }), 'nonsense'],
  ['nonsense', answer([]), 'nonsense'],
  ['redirect', REDIRECTED, 'nonsense'],
  ['huge', answer(`{"amount":"0.12","description":"${'x'.repeat(4096)}"}`), 'nonsense'],
  ['broken', answer({ amount: '0.12' }, 500), 'away'],
  ['gone', (req) => req.socket.destroy(), 'away'],
  ['late', () => undefined, 'late'],
])('attack: a price service that says %s is not believed: 503, and after a while', async (id, badly, why) => {
  say = badly;
  const served = kit.upstream.seen.length;
  const got = await kit.ask(`/${id}?x=${asked.length}`);
  expect([got.status, codeOf(got), Number(got.headers['retry-after']) > 0]).toEqual([503, 'price_unavailable', true]);
  expect([kit.upstream.seen.length, asked.length]).toEqual([served, 1]);
  const told = kit.lines.findLast(({ msg }) => msg === 'a price service said no price');
  expect([told?.['why'], JSON.stringify(told)]).toEqual([why, expect.not.stringContaining('of-the-service')]);
  expect(
    Number(seriesOf(await kit.metrics(), 'tollgate_price_service_duration_seconds_count', { result: why })),
  ).toBeGreaterThan(0);
});

test('behaviour: while it cannot say, a plan may ask for the price of the route', async () => {
  say = answer('nothing');
  const got = await kit.ask('/lenient?x=1');
  expect([got.status, amountOf(got)]).toEqual([402, '0.10']);
});

test('behaviour: a service that fails five times in a row is left alone, and tried again a second later', async () => {
  kit.hold();
  say = answer({ amount: '0.12' }, 503);
  for (let i = 0; i < 8; i++) expect((await kit.ask(`/broken?y=${i}`)).status).toBe(503);
  expect(asked.length).toBeLessThanOrEqual(5);
  say = answer({ amount: '0.12' });
  asked.length = 0;
  expect((await kit.ask('/broken?y=again')).status).toBe(503);
  expect(asked.length).toBe(0);
  kit.pass(2001);
  expect([(await kit.ask('/broken?y=again')).status, asked.length]).toEqual([402, 1]);
  kit.release();
});

test('attack: a flood of different requests waits in a line that ends, and no more than 64 questions run at once', async () => {
  const held: (() => void)[] = [];
  let most = 0;
  say = (req, res, body) => {
    held.push(() => answer({ amount: '0.12' })(req, res, body));
    most = Math.max(most, held.length);
    if (asked.length === 64) for (const go of held.splice(0)) go();
    else if (asked.length > 64) for (const go of held.splice(0)) go();
  };
  const all = await Promise.all(Array.from({ length: 400 }, (_, i) => kit.ask(`/fresh?flood=${i}`)));
  const statuses = all.map(({ status }) => status);
  expect(most).toBeLessThanOrEqual(64);
  expect(statuses.filter((each) => each === 402).length).toBeGreaterThanOrEqual(64);
  expect(statuses.every((each) => each === 402 || each === 503)).toBe(true);
});
