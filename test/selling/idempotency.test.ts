// Uses of a pass that are sent again under their Idempotency-Key: within a minute the answer comes again as it was, later the
// upstream is asked again for the same use, and either way it is drawn once. Also what Tollgate answers in place of the upstream.
import { connect } from 'node:net';
import type { RequestListener, ServerResponse } from 'node:http';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { LedgerUnavailable } from '../../src/domain/payment/ledger.ts';
import { buyPass, leftOf, present, tokenOf, type Bought } from './bought-passes.ts';
import { codeOf, startPlans, type Answer, type Ask, type PlanKit } from './kit.ts';

const KEPT = 1000;
const SHOP = 'https://shop.example';
const TEXT = [
  'selling:',
  '  plans:',
  '    - { id: api, passes: [{ id: ten, amount: "0.50", uses: 10 }, { id: two, amount: "0.20", uses: 2 }] }',
  `charges: { secrets: ["first-secret-of-the-passes-of-32-bytes"], keep_response: ${KEPT} }`,
  'routes:',
  ...['GET', 'POST', 'HEAD'].map(
    (method) => `  - { method: ${method}, route_pattern: "/a", amount: "0.10", plan_id: api }`,
  ),
].join('\n');

let kit: PlanKit;
/** The use that the upstream was told, of each request. */
const uses: unknown[] = [];
let held: ServerResponse[] = [];
/** Whether the ledger does not answer the changes of this kind. */
let silent: 'take' | 'all' | undefined;
beforeAll(async () => {
  const handle: RequestListener = (req, res) => {
    const { url = '', headers } = req;
    uses.push(headers['tollgate-use-id']);
    const { searchParams: asked } = new URL(url, 'http://upstream');
    if (asked.has('missing')) res.statusCode = 404;
    res.setHeader('X-Answer', String(uses.length));
    res.setHeader('Access-Control-Allow-Origin', SHOP);
    if (asked.has('slow')) res.write('begun, ');
    if (asked.has('slow') || asked.has('late')) held.push(res);
    else res.end('x'.repeat(Number(asked.get('bytes') ?? '10')));
  };
  kit = await startPlans(TEXT, {
    handle,
    proxy: `cors_origins: ["${SHOP}"], public_url: "https://api.example.com"`,
    aroundPasses: (ledger) => ({
      ...ledger,
      change: (change) =>
        silent === 'all' || silent === change.kind
          ? Promise.reject(new LedgerUnavailable('it is away'))
          : ledger.change(change),
      ofPayer: (payer) =>
        silent === 'all' ? Promise.reject(new LedgerUnavailable('it is away')) : ledger.ofPayer(payer),
    }),
  });
  kit.hold();
});
afterAll(() => kit?.close());

const buy = (pass: string, ask?: Ask, target = '/a'): Promise<Bought> => buyPass(kit, target, pass, ask);
const use = (target: string, token: string, key?: string, { headers, ...more }: Ask = {}): Promise<Answer> =>
  present(kit, target, token, {
    ...more,
    headers: { ...headers, ...(key === undefined ? {} : { 'idempotency-key': key }) },
  });
/** What a client may tell two answers apart by. */
const shown = ({ status, headers, body }: Answer): unknown => {
  const { 'x-request-id': _request, date: _date, connection: _connection, 'keep-alive': _alive, ...rest } = headers;
  return { status, rest, body };
};

test('behaviour: a request with its Idempotency-Key gets the very same answer for 60 s, at no use and without the upstream', async () => {
  const token = tokenOf((await buy('ten')).answer);
  const asked = uses.length;
  for (const method of ['GET', 'POST']) {
    const key = `order-${method}`;
    const first = await use('/a?n=1', token, key, { method });
    kit.pass(59_999);
    const again = await use('/a?n=1', token, key, { method });
    expect(shown(again)).toEqual(shown(first));
    expect(again.headers['x-request-id']).not.toBe(first.headers['x-request-id']);
    const line = kit.lines.findLast(({ msg }) => msg === 'request');
    expect(line).toMatchObject({ outcome: 'pass', reason: 'replayed', charge_id: expect.stringMatching(/^chg_/) });
    kit.pass(1);
    const later = await use('/a?n=1', token, key, { method });
    expect([later.status, leftOf(later), later.headers['x-answer']]).not.toEqual([
      200,
      leftOf(first),
      first.headers['x-answer'],
    ]);
    expect([later.status, leftOf(later), uses.at(-1)]).toEqual([200, leftOf(first), uses.at(-2)]);
    // What the upstream said then is the answer from now on.
    expect(shown(await use('/a?n=1', token, key, { method }))).toEqual(shown(later));
  }
  expect(uses.length - asked).toBe(4);
  // Without a key, and with another one, each request is a use.
  expect(leftOf(await use('/a?n=1', token))).toBe('6');
  expect(leftOf(await use('/a?n=1', token, 'another'))).toBe('5');
  expect(new Set(uses.slice(-2)).size).toBe(2);
});

test('refuses: another request with the same key, and another pass does not know it', async () => {
  const token = tokenOf((await buy('ten')).answer);
  expect((await use('/a?n=1', token, 'k')).status).toBe(200);
  const asked = uses.length;
  for (const [target, ask] of [
    ['/a?n=2', {}],
    ['/a', {}],
    ['/a?n=1', { method: 'POST' }],
  ] as const) {
    const refused = await use(target, token, 'k', ask);
    expect([target, refused.status, codeOf(refused)]).toEqual([target, 409, 'idempotency_conflict']);
  }
  expect(uses.length).toBe(asked);
  const other = await use('/a?n=1', tokenOf((await buy('ten')).answer), 'k');
  expect([other.status, leftOf(other)]).toEqual([200, '8']);
});

test('refuses: a key of 129 characters, an empty one, one that is not visible ASCII, and two; one of 128 is taken', async () => {
  const token = tokenOf((await buy('ten')).answer);
  for (const key of ['x'.repeat(129), '', 'two words', 'caf\u00e9', ['a', 'b']]) {
    const headers = { 'tollgate-pass': token, 'idempotency-key': key };
    const refused = await kit.ask('/a', { headers });
    expect([key, refused.status, codeOf(refused)]).toEqual([key, 400, 'request_malformed']);
  }
  expect(leftOf(await use('/a', token, 'x'.repeat(128)))).toBe('8');
});

test('behaviour: an answer up to keep_response comes again, one byte more asks the upstream again for the same use', async () => {
  const token = tokenOf((await buy('ten')).answer);
  for (const [bytes, asks] of [
    [KEPT, 1],
    [KEPT + 1, 2],
  ] as const) {
    const asked = uses.length;
    const target = `/a?bytes=${bytes}`;
    const first = await use(target, token, `bytes-${bytes}`);
    const again = await use(target, token, `bytes-${bytes}`);
    expect([again.status, again.body.length, leftOf(again)]).toEqual([200, bytes, leftOf(first)]);
    expect(uses.length - asked).toBe(asks);
    expect(new Set(uses.slice(asked)).size).toBe(1);
  }
});

test('behaviour: what is not charged is not kept, and neither is an answer without a body to HEAD', async () => {
  const token = tokenOf((await buy('ten')).answer);
  const asked = uses.length;
  for (let times = 0; times < 2; times++) {
    const missing = await use('/a?missing', token, 'missing');
    expect([missing.status, leftOf(missing)]).toEqual([404, '9']);
  }
  expect(uses.length - asked).toBe(2);
  for (let times = 0; times < 2; times++) expect(leftOf(await use('/a', token, 'head', { method: 'HEAD' }))).toBe('8');
  expect(uses.length - asked).toBe(4);
});

test('behaviour: a client that lost its connection in the middle of the answer gets all of it by its key', async () => {
  const token = tokenOf((await buy('ten')).answer);
  held = [];
  const { host } = new URL(kit.urlOf('proxy'));
  const [hostname, port] = host.split(':');
  const socket = connect(Number(port), hostname);
  socket.write(`GET /a?slow HTTP/1.1\r\nHost: ${host}\r\nTollgate-Pass: ${token}\r\nIdempotency-Key: slow\r\n\r\n`);
  await new Promise<void>((resolve, reject) => {
    socket.once('error', reject);
    socket.on('data', (bytes: Buffer) => {
      if (bytes.toString().includes('begun, ')) resolve();
    });
  });
  const ended = (): number => kit.lines.filter(({ msg }) => msg === 'request').length;
  const before = ended();
  socket.destroy();
  held[0]?.end('and ended');
  await expect.poll(ended).toBe(before + 1);
  expect(shown(await use('/a?slow', token, 'slow'))).toMatchObject({ status: 200, body: 'begun, and ended' });
  expect(held).toHaveLength(1);
  expect(leftOf(await use('/a', token))).toBe('7');
});

test.each(['GET', 'POST'])(
  'behaviour: a %s that buys a pass is a use under its key: sent again it is that answer, then that use, and drawn once',
  async (method) => {
    const headers = { 'idempotency-key': `buys-${method}` };
    const { credential, answer } = await buy('ten', { method, headers }, '/a?n=1');
    expect([answer.status, leftOf(answer)]).toEqual([200, '9']);
    const asked = uses.length;
    const first = uses.at(-1);
    expect(first).toMatch(/^use_/);
    const paid = { method, headers: { ...headers, 'payment-signature': credential } };
    expect(shown(await kit.ask('/a?n=1', paid))).toEqual(shown(answer));
    expect(shown(await use('/a?n=1', tokenOf(answer), headers['idempotency-key'], { method }))).toEqual(shown(answer));
    expect(uses.length).toBe(asked);
    const elsewhere = await kit.ask('/a?n=2', paid);
    expect([elsewhere.status, codeOf(elsewhere)]).toEqual([409, 'idempotency_conflict']);
    kit.pass(60_000);
    const later = await kit.ask('/a?n=1', paid);
    expect([later.status, leftOf(later), uses.at(-1)]).toEqual([200, '9', first]);
    // Without its key it is another use.
    const anew = await kit.ask('/a?n=1', { method, headers: { 'payment-signature': credential } });
    expect([leftOf(anew), uses.at(-1) === first]).toEqual(['8', false]);
  },
);

test('behaviour: a key stands for its request for 24 hours and is free then', async () => {
  const token = tokenOf((await buy('ten')).answer);
  expect(leftOf(await use('/a?n=1', token, 'day'))).toBe('8');
  kit.pass(86_400_000 - 1);
  const late = await use('/a?n=2', token, 'day');
  expect([late.status, codeOf(late)]).toEqual([409, 'idempotency_conflict']);
  kit.pass(1);
  expect(leftOf(await use('/a?n=2', token, 'day'))).toBe('7');
});

test('behaviour: what Tollgate answers in place of the upstream can be read by a page of an origin that may', async () => {
  const token = tokenOf((await buy('two')).answer);
  const page = { headers: { origin: SHOP } };
  const allowed = {
    'access-control-allow-origin': SHOP,
    'access-control-expose-headers': expect.stringMatching(
      /\bRetry-After\b.*\bTollgate-Pass\b.*\bTollgate-Pass-Left\b/,
    ),
    vary: expect.stringContaining('Origin'),
  };
  silent = 'take';
  const untaken = await use('/a', token, undefined, page);
  silent = 'all';
  const undrawn = await use('/a', token, undefined, page);
  const refused = await use('/a', token, 'twenty words', page);
  silent = undefined;
  expect([untaken.status, codeOf(untaken), untaken.headers['retry-after']]).toEqual([503, 'ledger_unavailable', '5']);
  expect([undrawn.status, codeOf(undrawn)]).toEqual([503, 'ledger_unavailable']);
  expect([refused.status, codeOf(refused)]).toEqual([400, 'request_malformed']);
  held = [];
  const late = use('/a?late', token, 'late', page);
  await expect.poll(() => held.length).toBe(1);
  const inUse = await use('/a?late', token, 'late', page);
  expect([inUse.status, codeOf(inUse), inUse.headers['retry-after']]).toEqual([409, 'pass_in_use', '1']);
  held[0]?.end();
  const served = await late;
  expect([served.status, served.headers['access-control-expose-headers']]).toEqual([
    200,
    expect.stringMatching(/\bTollgate-Pass\b.*\bTollgate-Pass-Left\b/),
  ]);
  const conflict = await use('/a?other', token, 'late', page);
  expect([conflict.status, codeOf(conflict)]).toEqual([409, 'idempotency_conflict']);
  const over = await use('/a', token, undefined, page);
  expect([over.status, over.headers['tollgate-reason']]).toEqual([402, 'pass_used_up']);
  const malformed = await use('/a', 'none', undefined, page);
  expect([malformed.status, codeOf(malformed)]).toEqual([400, 'pass_malformed']);
  for (const { headers } of [untaken, undrawn, refused, inUse, conflict, over, malformed])
    expect(headers).toMatchObject(allowed);
  const elsewhere = await use('/a', 'none', undefined, { headers: { origin: 'https://other.example' } });
  expect(elsewhere.headers['access-control-allow-origin']).toBeUndefined();
  // A page may send all of what a pass is shown and used by.
  const asks = { origin: SHOP, 'access-control-request-method': 'GET' };
  const preflight = await kit.ask('/a', { method: 'OPTIONS', headers: asks });
  const allowedNames = String(preflight.headers['access-control-allow-headers']).split(', ');
  expect([preflight.status, allowedNames]).toEqual([
    204,
    expect.arrayContaining(['Tollgate-Pass', 'SIGN-IN-WITH-X', 'Idempotency-Key']),
  ]);
});
