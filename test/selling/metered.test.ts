// Metered requests as their payers and owners see them: a pass by credit is bought, each request reserves its price, and what its
// response says is taken. Whatever becomes of a response, the books hold what was told, and nobody pays twice or for nothing.
import { request, type ClientRequest, type RequestListener } from 'node:http';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { makeUpPayment } from '../support/made-up-payment.ts';
import { leftOf, offersOf, present as presentPass, tokenOf, type Entry } from './bought-passes.ts';
import { codeOf, seriesOf, startPlans, type Answer, type Ask, type PlanKit } from './kit.ts';

const passes = 'passes: [{ id: top-up, amount: "0.90", credit: "0.90" }]';
const usage = 'from: usage, usage: usage.total_tokens, unit: "0.000001"';
const METERS = {
  header: 'from: header',
  trailer: 'from: trailer',
  usage,
  'header-zero': 'from: header, missing: zero',
  'usage-zero': `${usage}, missing: zero`,
};
const PLANS = [
  'selling:',
  '  plans:',
  ...Object.entries(METERS).map(([id, meter]) => `    - { id: ${id}, single: false, meter: { ${meter} }, ${passes} }`),
  `    - { id: priced, single: false, meter: { from: header }, ${passes}, price: { units: { of: query.n, amount: "0.10", max: 100, missing: 0 } } }`,
  `    - { id: trial, observe: { until: "${new Date(Date.now() + 86_400_000).toISOString()}" }, single: false, meter: { ${usage} }, ${passes} }`,
].join('\n');
const ROUTES = [
  'routes:',
  ...[...Object.keys(METERS), 'priced', 'trial'].flatMap((id) =>
    ['GET', 'POST'].map(
      (method) => `  - { method: ${method}, route_pattern: "/${id}", amount: "0.10", plan_id: ${id} }`,
    ),
  ),
].join('\n');
/** A router that reads letters as one would run the second for /wide/One. */
const NEIGHBOURS = `  - { method: GET, route_pattern: "/wide/:id", amount: "0.10", plan_id: usage }
  - { method: GET, route_pattern: "/wide/one", amount: "0.01" }`;
const TEXT = [PLANS, ROUTES, NEIGHBOURS, 'charges: { secrets: ["first-secret-of-the-meters-of-32-bytes"] }'].join('\n');
/** The unit of the books of credit. */
const CREDIT_UNITS = 10n ** 18n;

let kit: PlanKit;
/** Goes on with responses that were begun. */
let held: (() => void)[] = [];

/** The API: says what its query tells it to. */
const handle: RequestListener = (req, res) => {
  const { searchParams: asked } = new URL(req.url ?? '', 'http://h');
  const [amount, trailer, tokens, status] = ['amount', 'trailer', 'tokens', 'status'].map((name) => asked.get(name));
  req.resume();
  if (status) res.statusCode = Number(status);
  for (const said of amount?.split(' ') ?? []) res.appendHeader('Tollgate-Charge-Amount', said);
  const usageText = JSON.stringify({ text: '"usage":{"total_tokens":0}', usage: { total_tokens: Number(tokens) } });
  const end = (): void => {
    if (asked.has('dies')) return void res.destroy();
    if (tokens && asked.has('events')) res.write(`data: ${usageText}\n\ndata: [DONE]\n\n`);
    if (trailer) res.addTrailers([['Tollgate-Charge-Amount', trailer]]);
    res.end(tokens && !asked.has('events') ? usageText : '');
  };
  if (asked.has('late')) return void held.push(end);
  res.setHeader('content-type', asked.has('events') ? 'text/event-stream' : 'application/json');
  if (!asked.has('events') && !asked.has('held') && !asked.has('dies') && !trailer) return end();
  if (trailer) res.setHeader('Trailer', 'Tollgate-Charge-Amount');
  res.write(tokens && !asked.has('events') ? ' ' : 'data: {"text":"begun"}\n\n', () => {
    if (asked.has('held')) held.push(end);
    else end();
  });
};

beforeAll(async () => {
  kit = await startPlans(TEXT, { handle });
});
afterAll(() => kit?.close());
beforeEach(() => (held = []));

const offers = (target: string, ask?: Ask): Promise<readonly Entry[]> => offersOf(kit, target, ask);
async function buy(target: string, ask: Ask = {}): Promise<Answer & { readonly credential: string }> {
  const [entry] = await offers(target, ask);
  if (entry === undefined) throw new Error('nothing is offered');
  const credential = makeUpPayment(entry, kit.now());
  const answer = await kit.ask(target, { ...ask, headers: { ...ask.headers, 'payment-signature': credential } });
  return { ...answer, credential };
}
const present = (target: string, token: string, more?: Ask): Promise<Answer> => presentPass(kit, target, token, more);
/** What is left by the word of a response that is not charged. */
const left = async (plan: string, token: string): Promise<unknown> =>
  leftOf(await present(`/${plan}?status=404`, token));

type Books = { readonly drawn: bigint; readonly reserved: bigint; readonly taken: bigint; readonly uses: number };
/** The books of a pass, and the sum of its draws, as they stand in the file. */
function booksOf(token: string): Books {
  const bytes = Buffer.from(token.slice('pass_'.length), 'base64url');
  const id = `pass_${bytes.subarray(14, -16).toString('base64url')}`;
  const store = new DatabaseSync(join(kit.folder, 'tollgate.db'), { readOnly: true });
  const book = store.prepare('SELECT drawn, reserved, uses FROM passes WHERE id = ?').get(id);
  const draws = store.prepare("SELECT amount FROM pass_draws WHERE pass_id = ? AND state = 'taken'").all(id);
  store.close();
  if (book === undefined) throw new Error(`${id} is not in the store`);
  const taken = draws.reduce((sum, { amount }) => sum + BigInt(String(amount)), 0n);
  const { drawn, reserved, uses } = book;
  return { drawn: BigInt(String(drawn)), reserved: BigInt(String(reserved)), taken, uses: Number(uses) };
}
const money = (millionths: number): bigint => (BigInt(millionths) * CREDIT_UNITS) / 1_000_000n;
/** Waits until nothing of a pass is reserved, and tells what was taken of it. */
async function settled(token: string): Promise<Books> {
  await expect.poll(() => booksOf(token).reserved).toBe(0n);
  const books = booksOf(token);
  expect(books.taken).toBe(books.drawn);
  return books;
}

const open: ClientRequest[] = [];
afterEach(() => {
  for (const each of open.splice(0)) each.destroy();
});
/** Sends a request, and resolves when something of its body is there. */
function begin(target: string, headers: Readonly<Record<string, string>>): Promise<ClientRequest> {
  return new Promise((resolve, reject) => {
    const client = request(`${kit.urlOf('proxy')}${target}`, { headers, agent: false }, (res) => {
      res.once('data', () => resolve(client)).on('error', () => undefined);
    });
    open.push(client);
    client.on('error', reject).end();
  });
}

describe('what a response says is taken, and no more', () => {
  // What the response says, what the request takes in millionths, and whether the head says so.
  const SAID = [
    ['header', 'amount=0.0123', 12_300, '0.0123'],
    ['header', 'amount=0', 0, '0'],
    ['header', 'amount=7', 100_000, 'more than the price'],
    ['header', 'amount=0.01%200.01', 100_000, 'twice'],
    ['header', 'amount=0.0000001', 100_000, 'finer than the asset'],
    ['header', 'amount=-1', 100_000, 'no amount'],
    ['header', '', 100_000, 'nothing'],
    ['header-zero', '', 0, 'nothing'],
    ['trailer', 'trailer=0.04', 40_000, '0.04'],
    ['trailer', 'amount=0.04', 100_000, 'nothing in a trailer'],
    ['usage', 'tokens=1234', 1_234, 'a number in JSON'],
    ['usage', 'tokens=900&events', 900, 'a number in a stream of events'],
    ['usage', 'tokens=100001', 100_000, 'more than the price'],
    ['usage', 'events', 100_000, 'nothing'],
    ['usage-zero', 'events', 0, 'nothing'],
  ] as const;

  test.each(['GET', 'POST'])(
    'behaviour: by header, trailer, JSON and events, also to the %s that buys',
    async (method) => {
      for (const plan of Object.keys(METERS)) {
        let token = '';
        let sum = 0;
        for (const [of, query, millionths, about] of SAID.filter(([each]) => each === plan)) {
          const target = `/${of}?${query}`;
          const answer = token === '' ? await buy(target, { method }) : await present(target, token, { method });
          token = tokenOf(answer);
          expect([target, about, answer.status]).toEqual([target, about, 200]);
          expect(JSON.stringify(answer.headers)).not.toMatch(/charge-amount/i);
          sum += millionths;
          expect([target, about, (await settled(token)).drawn]).toEqual([target, about, money(sum)]);
          // The head says what is left: for certain, or if the whole price is taken.
          const most = plan.startsWith('header') ? sum : sum - millionths + 100_000;
          expect([target, leftOf(answer)]).toEqual([target, leftText(900_000 - most)]);
          expect([target, await left(plan, token)]).toEqual([target, leftText(900_000 - sum)]);
        }
        expect(booksOf(token).uses).toBe(SAID.filter(([each]) => each === plan).length);
      }
    },
  );

  const leftText = (millionths: number): string => {
    const [whole, fraction = ''] = (millionths / 1_000_000).toFixed(6).split('.');
    return `${whole}.${fraction.replace(/0+$/, '').padEnd(2, '0')} USD`;
  };

  test('behaviour: the API is asked for a body that can be read, and told nothing of the meter', async () => {
    const headers = { 'accept-encoding': 'gzip', range: 'bytes=0-1', 'tollgate-charge-amount': '0' };
    const { credential } = await buy('/usage?tokens=5', { headers });
    for (const [name] of Object.entries(headers)) expect([name, kit.told()[name]]).toEqual([name, undefined]);
    // The payment that bought the pass is as good as its token, and metered as well.
    const again = await kit.ask('/usage?tokens=7', { headers: { 'payment-signature': credential } });
    expect((await settled(tokenOf(again))).drawn).toBe(money(12));
  });

  test('behaviour: what is not charged takes nothing, and a purchase that fails afterwards leaves the pass whole', async () => {
    const failed = await buy('/usage?status=500&tokens=9', { method: 'POST' });
    const token = tokenOf(failed);
    expect([failed.status, leftOf(failed)]).toEqual([500, '0.90 USD']);
    for (const target of ['/usage?status=404&tokens=9', '/usage?status=503&tokens=9'])
      expect(leftOf(await present(target, token))).toBe('0.90 USD');
    expect(await settled(token)).toMatchObject({ drawn: 0n, uses: 0 });
    // A response that is not charged sells nothing.
    const none = await buy('/usage?status=404&tokens=9');
    expect([none.status, none.headers['tollgate-pass']]).toEqual([404, undefined]);
  });

  test('behaviour: metrics and warnings say what was metered, over and missing, and what uses came to', async () => {
    const counted = async (result: string): Promise<number> =>
      Number(seriesOf(await kit.metrics(), 'tollgate_meter_total', { result }));
    const before = [await counted('metered'), await counted('over'), await counted('missing')];
    const drawn = async (): Promise<string> =>
      String(seriesOf(await kit.metrics(), 'tollgate_pass_drawn_total', { plan: 'priced' }));
    const target = '/priced?n=1&amount=';
    const token = tokenOf(await buy(`${target}0.02`));
    for (const amount of ['0.03', '5', 'x']) await present(target + amount, token);
    expect([await counted('metered'), await counted('over'), await counted('missing')]).toEqual(
      before.map((each, index) => each + (index === 0 ? 2 : 1)),
    );
    // The price of one unit is 0.20: all of it is taken twice.
    expect(await drawn()).toBe('0.45');
    const warned = kit.lines.filter(({ plan }) => plan === 'priced').map(({ msg }) => msg);
    expect(warned).toEqual([
      'a response costs more than its price, which was taken',
      'a response did not say what it costs',
    ]);
  });
});

test('behaviour: a dry run counts what the meter would have taken, and asks the API for nothing that its client would notice', async () => {
  const headers = { 'accept-encoding': 'gzip', range: 'bytes=0-1', 'if-none-match': '"a"' };
  for (const query of ['tokens=1234', 'tokens=6&events', 'tokens=9&status=404', 'events'])
    expect((await kit.ask(`/trial?${query}`, { headers })).headers['tollgate-pass']).toBe(undefined);
  expect(kit.told()).toMatchObject({ range: 'bytes=0-1', 'if-none-match': '"a"', 'tollgate-access': 'observed' });
  expect(kit.told()['accept-encoding']).toBe(undefined);
  const lines = (): unknown => kit.lines.filter(({ msg }) => msg === 'would have asked').map(({ amount }) => amount);
  await expect.poll(lines).toEqual(['0.001234', '0.000006', '0.10', '0.10']);
  expect(seriesOf(await kit.metrics(), 'tollgate_would_charge_total')).toBe('0.10124');
});

describe('a response that does not end whole', () => {
  test.each([
    ['usage', 100_000],
    ['usage-zero', 0],
  ])('behaviour: its client leaves, or the API breaks off: %s takes %i millionths', async (plan, millionths) => {
    const token = tokenOf(await buy(`/${plan}?tokens=1`));
    const client = await begin(`/${plan}?tokens=5&events&held`, { 'tollgate-pass': token });
    // While it streams its whole price is reserved.
    expect(booksOf(token)).toMatchObject({ drawn: money(1), reserved: money(100_000) });
    client.destroy();
    expect((await settled(token)).drawn).toBe(money(1 + millionths));
    await expect(present(`/${plan}?tokens=5&events&dies`, token)).rejects.toThrow();
    expect((await settled(token)).drawn).toBe(money(1 + 2 * millionths));
    // The purchase itself is no other request.
    const [entry] = await offers(`/${plan}`);
    if (entry === undefined) throw new Error('nothing is offered');
    const credential = makeUpPayment(entry, kit.now());
    const buyer = await begin(`/${plan}?tokens=5&events&held`, { 'payment-signature': credential });
    buyer.destroy();
    const mine = tokenOf(await kit.ask(`/${plan}?tokens=2`, { headers: { 'payment-signature': credential } }));
    expect((await settled(mine)).drawn).toBe(money(2 + millionths));
  });

  test('behaviour: what was said before the client left stands, and a client that leaves before the head pays nothing', async () => {
    const token = tokenOf(await buy('/header?amount=0.01'));
    const client = await begin('/header?amount=0.02&held', { 'tollgate-pass': token });
    client.destroy();
    expect((await settled(token)).drawn).toBe(money(30_000));
    const early = request(`${kit.urlOf('proxy')}/header?amount=0.02&late`, {
      headers: { 'tollgate-pass': token },
      agent: false,
    });
    early.on('error', () => undefined).end();
    await expect.poll(() => held.length).toBe(2);
    expect(booksOf(token).reserved).toBe(money(100_000));
    early.destroy();
    expect((await settled(token)).drawn).toBe(money(30_000));
  });

  test('behaviour: a store that is away at the end of a response hears it later, and the lease is kept meanwhile', async () => {
    const token = tokenOf(await buy('/usage?tokens=1'));
    const client = await begin('/usage?tokens=70&events&held', { 'tollgate-pass': token });
    const other = new DatabaseSync(join(kit.folder, 'tollgate.db'), { timeout: 5000 });
    other.exec('BEGIN IMMEDIATE');
    const ended = new Promise((resolve) => void client.once('close', resolve));
    for (const go of held) go();
    await ended;
    // Nobody else gets in meanwhile.
    const refused = await present('/usage?tokens=1', token);
    expect([refused.status, codeOf(refused)]).toEqual([503, 'ledger_unavailable']);
    expect(booksOf(token)).toMatchObject({ drawn: money(1), reserved: money(100_000) });
    other.exec('ROLLBACK');
    other.close();
    await expect.poll(() => booksOf(token), { timeout: 30_000 }).toMatchObject({ drawn: money(71), reserved: 0n });
  });
});

describe('what is sold', () => {
  test('attack: twenty requests at once never reserve more than the credit, and the books hold what was told', async () => {
    const token = tokenOf(await buy('/usage?tokens=1'));
    const answers: Answer[] = [];
    const all = Array.from(
      { length: 20 },
      async (_, n) => void answers.push(await present(`/usage?tokens=${1000 + n}&events&held`, token)),
    );
    // Of 0.899999 eight have room, whatever they will take; the others are told at once.
    await expect.poll(() => [answers.length, held.length]).toEqual([12, 8]);
    expect(booksOf(token)).toMatchObject({ reserved: money(800_000), drawn: money(1) });
    expect(new Set(answers.map((each) => `${each.status} ${String(codeOf(each))}`))).toEqual(
      new Set(['409 pass_in_use']),
    );
    for (const go of held) go();
    await Promise.all(all);
    const told = answers
      .filter(({ status }) => status === 200)
      .map(({ body }) => Number(/total_tokens":(\d{4})/.exec(body)?.[1]));
    expect(told).toHaveLength(8);
    expect((await settled(token)).drawn).toBe(money(1 + told.reduce((sum, each) => sum + each, 0)));
    // What was reserved and not taken can be used again.
    expect((await present('/usage?tokens=1', token)).status).toBe(200);
  });

  test('attack: a repeat of an Idempotency-Key is not metered again', async () => {
    const token = tokenOf(await buy('/usage?tokens=1'));
    const ask = { method: 'POST', headers: { 'idempotency-key': 'one' } };
    for (const tokens of [40, 50_000])
      expect((await present(`/usage?tokens=${tokens}`, token, ask)).status).toBe(tokens === 40 ? 200 : 409);
    expect((await present('/usage?tokens=40', token, ask)).status).toBe(200);
    expect(await settled(token)).toMatchObject({ drawn: money(41), uses: 2 });
  });

  test('refuses: a single payment, and everything where no credit covers the request or the path could mean another route', async () => {
    for (const entry of await offers('/usage'))
      expect(entry.extra.pass).toMatchObject({ id: 'top-up', credit: '0.90' });
    for (const target of ['/priced?n=9', '/wide/One']) {
      const answer = await kit.ask(target);
      expect([target, answer.status, codeOf(answer)]).toEqual([target, 503, 'price_unpayable']);
    }
    // A payment of the price of one request buys none.
    const [entry] = await offers('/usage');
    if (entry === undefined) throw new Error('nothing is offered');
    const { external_ref: _, ...extra } = entry.extra as Record<string, unknown>;
    const single = { ...entry, amount: '100000', extra };
    const paid = await kit.ask('/usage', { headers: { 'payment-signature': makeUpPayment(single, kit.now()) } });
    expect([paid.status, paid.headers['tollgate-pass']]).toEqual([402, undefined]);
    const quoted = makeUpPayment(entry, kit.now());
    const dear = await kit.ask('/priced?n=9', { headers: { 'payment-signature': quoted } });
    expect([dear.status, dear.headers['tollgate-pass']]).toEqual([503, undefined]);
  });

  test('behaviour: a quote from before the plan had a meter buys what was quoted, and a pass from then is metered from now on', async () => {
    const plain = TEXT.replace('single: false, meter: { from: header },', 'single: true,');
    await kit.reload(plain);
    const [[single, pass], [, unsold]] = [await offers('/header'), await offers('/header')];
    if (single === undefined || pass === undefined || unsold === undefined)
      throw new Error('less is offered than a single request and a pass');
    const sold = await kit.ask('/header', { headers: { 'payment-signature': makeUpPayment(pass, kit.now()) } });
    expect(leftOf(sold)).toBe('0.80 USD');
    await kit.reload(TEXT);
    const honoured = await kit.ask('/header?amount=0.01', {
      headers: { 'payment-signature': makeUpPayment(single, kit.now()) },
    });
    expect([honoured.status, honoured.headers['tollgate-pass']]).toEqual([200, undefined]);
    // Its terms were others: every request took its price.
    const changed = await kit.ask('/header', { headers: { 'payment-signature': makeUpPayment(unsold, kit.now()) } });
    expect([changed.status, String(changed.headers['tollgate-reason'])]).toEqual([
      402,
      expect.stringMatching(/^quote_mismatch/),
    ]);
    expect(leftOf(await present('/header?amount=0.01', tokenOf(sold)))).toBe('0.79 USD');
  });
});
