// Passes by uses and credit as their payers use them: bought as anything is, drawn on exactly, and given back where nothing was
// charged for.
import type { RequestListener } from 'node:http';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { buyPass, leftOf, present as presentPass, tokenOf, type Bought } from './bought-passes.ts';
import { codeOf, seriesOf, startPlans, type Answer, type Ask, type PlanKit } from './kit.ts';

const PLANS = [
  'selling:',
  '  plans:',
  '    - { id: api, passes: [{ id: ten, amount: "0.50", uses: 10 }, { id: three, amount: "0.20", uses: 3, scope: route }] }',
  '    - { id: other, passes: [{ id: ten, amount: "0.60", uses: 10 }, { id: money, amount: "0.90", credit: "0.90" }] }',
  '    - { id: priced, settle: before_response, passes: [{ id: ten, amount: "0.50", uses: 10 }], price: { units: { of: query.n, amount: "0.01", max: 9, missing: 1 } } }',
].join('\n');
const ROUTES = [
  'routes:',
  '  - { method: GET, route_pattern: "/a", amount: "0.10", plan_id: api }',
  '  - { method: POST, route_pattern: "/a", amount: "0.10", plan_id: api }',
  '  - { method: GET, route_pattern: "/b", amount: "0.10", plan_id: api }',
  '  - { method: GET, route_pattern: "/other", amount: "0.25", plan_id: other }',
  '  - { method: POST, route_pattern: "/priced", amount: "0.10", plan_id: priced }',
].join('\n');
const SECRETS = 'charges: { secrets: ["first-secret-of-the-passes-of-32-bytes"] }';

let kit: PlanKit;
/** What the upstream saw of each request. */
const seen: { readonly url: string; readonly use: unknown; readonly pass: unknown; readonly key: unknown }[] = [];
let held: (() => void)[] = [];
beforeAll(async () => {
  const handle: RequestListener = (req, res) => {
    const { url = '', headers } = req;
    seen.push({
      ...{ url, use: headers['tollgate-use-id'], pass: headers['tollgate-pass'], key: headers['idempotency-key'] },
    });
    if (url.includes('fails')) res.statusCode = 500;
    if (url.includes('missing')) res.statusCode = 404;
    if (url.includes('slow')) held.push(() => res.end('slow'));
    else res.end(`served ${url}`);
  };
  kit = await startPlans([PLANS, SECRETS, ROUTES].join('\n'), { handle });
});
afterAll(() => kit?.close());

const buy = (target: string, pass: string, ask?: Ask): Promise<Bought> => buyPass(kit, target, pass, ask);
const reasonOf = ({ headers }: Answer): unknown => headers['tollgate-reason'];
const present = (target: string, token: string, more?: Ask): Promise<Answer> => presentPass(kit, target, token, more);

test('behaviour: a pass by uses counts the request that bought it, then each one that would have been charged, and ends', async () => {
  const { answer } = await buy('/a', 'three');
  expect(answer).toMatchObject({ status: 200, body: 'served /a' });
  expect(leftOf(answer)).toBe('2');
  const token = tokenOf(answer);
  seen.length = 0;
  // What a payment would not be charged for is given back.
  for (const target of ['/a?fails', '/a?missing']) expect(leftOf(await present(target, token))).toBe('2');
  expect(leftOf(await present('/a?one', token))).toBe('1');
  const last = await present('/a?two', token);
  expect(last).toMatchObject({ status: 200, body: 'served /a?two' });
  expect([leftOf(last), tokenOf(last)]).toEqual(['0', token]);
  // Each is a use of its own, and the pass itself goes to nobody.
  expect(new Set(seen.map(({ use }) => use)).size).toBe(4);
  for (const { use, pass } of seen) expect([String(use), pass]).toEqual([expect.stringMatching(/^use_/), undefined]);
  const over = await present('/a', token);
  expect([over.status, reasonOf(over)]).toEqual([402, 'pass_used_up']);
  expect(seen).toHaveLength(4);
});

test('attack: a pass by uses is no good on another route or plan, and ten requests on the last use are one', async () => {
  const { answer } = await buy('/a', 'three');
  const token = tokenOf(answer);
  for (const target of ['/b', '/other']) {
    const refused = await present(target, token);
    expect([target, refused.status, reasonOf(refused)]).toEqual([target, 402, 'pass_scope']);
  }
  expect(leftOf(await present('/a', token))).toBe('1');
  held = [];
  const answers: Answer[] = [];
  const all = Array.from({ length: 10 }, async (_, n) => void answers.push(await present(`/a?slow=${n}`, token)));
  // The others are told at once that it is in use.
  await expect.poll(() => answers.length).toBe(9);
  for (const end of held) end();
  await Promise.all(all);
  expect(answers.filter(({ status }) => status === 200)).toHaveLength(1);
  for (const refused of answers.filter(({ status }) => status !== 200)) {
    expect([refused.status, codeOf(refused), refused.headers['retry-after']]).toEqual([409, 'pass_in_use', '1']);
  }
  expect(held).toHaveLength(1);
});

test('behaviour: requests with one Idempotency-Key are one use, with one id, and the upstream is asked three times again', async () => {
  const { answer } = await buy('/a', 'ten');
  const token = tokenOf(answer);
  const ask = { method: 'POST', headers: { 'idempotency-key': 'order-1' } };
  seen.length = 0;
  for (let times = 1; times <= 4; times++) {
    expect(leftOf(await present('/a', token, ask))).toBe('8');
    // Until then it is the same answer again.
    kit.pass(60_000);
  }
  expect(new Set(seen.map(({ use }) => use)).size).toBe(1);
  expect(seen).toHaveLength(4);
  const fifth = await present('/a', token, ask);
  expect([fifth.status, codeOf(fifth)]).toEqual([409, 'idempotency_conflict']);
  const another = await present('/a?x', token, ask);
  expect([another.status, codeOf(another)]).toEqual([409, 'idempotency_conflict']);
  const unreadable = await present('/a', token, { method: 'POST', headers: { 'idempotency-key': 'x'.repeat(129) } });
  expect([unreadable.status, codeOf(unreadable)]).toEqual([400, 'request_malformed']);
  expect(seen).toHaveLength(4);
});

test('behaviour: a pass by credit is drawn on by the price of each request, and a POST that buys one has had its use', async () => {
  const { answer, credential } = await buy('/other', 'money');
  expect(leftOf(answer)).toBe('0.65 USD');
  expect(leftOf(await present('/other', tokenOf(answer)))).toBe('0.40 USD');
  // The payment that bought it is as good as its token.
  const again = await kit.ask('/other', { headers: { 'payment-signature': credential } });
  expect([again.status, leftOf(again)]).toEqual([200, '0.15 USD']);
  const dear = await present('/other', tokenOf(answer));
  expect([dear.status, reasonOf(dear)]).toEqual([402, 'pass_used_up']);
  const posted = await buy('/a', 'ten', { method: 'POST' });
  expect([posted.answer.status, leftOf(posted.answer)]).toEqual([200, '9']);
  expect(leftOf(await present('/b', tokenOf(posted.answer)))).toBe('8');
  // An upstream that fails after the settlement: the pass stands, and the request was no use of it.
  const failed = await buy('/a?fails', 'ten', { method: 'POST' });
  expect([failed.answer.status, leftOf(failed.answer)]).toEqual([500, '10']);
  await expect.poll(async () => leftOf(await present('/b?missing', tokenOf(failed.answer)))).toBe('10');
  expect(seriesOf(await kit.metrics(), 'tollgate_pass_drawn_total', { plan: 'other', currency: 'USD' })).toBe('0.75');
});

test('behaviour: a use is a use whatever the request costs, and given back where not charged, also if its price cannot be told', async () => {
  const { answer } = await buy('/priced', 'ten', { method: 'POST' });
  const lefts: unknown[] = [];
  for (const query of ['n=1', 'n=9', 'n=1&n=9', 'n=10', 'missing&n=1', 'missing&n=1&n=9'])
    lefts.push(leftOf(await present(`/priced?${query}`, tokenOf(answer), { method: 'POST' })));
  expect(lefts).toEqual(['8', '7', '6', '5', '5', '5']);
});

test('attack: of two hundred draws no two have one use id, and none has one that can be guessed', async () => {
  const token = tokenOf((await buy('/other', 'money')).answer);
  seen.length = 0;
  for (let n = 0; n < 200; n++) await present('/other?fails', token);
  const ids = seen.map(({ use }) => String(use));
  expect(new Set(ids).size).toBe(200);
  for (const id of ids) expect(id).toMatch(/^use_[A-Za-z0-9_-]{24}$/);
});
