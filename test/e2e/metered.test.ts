// Metered requests over a real chain: credit is bought once by the public client as it is, and each request takes what its response
// says, whatever dies meanwhile. At the end what was bought is what was taken and what is left, and the chain saw the purchase alone.
import { join, dirname } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import type { RequestListener, ServerResponse } from 'node:http';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { isPooled } from '../postgres/pooler.ts';
import { hasPostgres } from '../postgres/server.ts';
import { freshDatabase, stopSharedPostgres } from '../postgres/store.ts';
import { startPaidTollgate, until, type PaidTollgate } from '../support/paid-tollgate.ts';
import type { TollgateProcess } from '../support/process.ts';

const PASSES = 'single: false, passes: [{ id: credit, amount: "0.90", credit: "0.90" }]';
const MORE = `  - { method: GET, route_pattern: /header, amount: "0.10", plan_id: header }
  - { method: GET, route_pattern: /trailer, amount: "0.10", plan_id: trailer }
selling:
  plans:
    - { id: default, meter: { from: usage, usage: usage.total_tokens, unit: "0.000001" }, ${PASSES} }
    - { id: header, meter: { from: header }, ${PASSES} }
    - { id: trailer, meter: { from: trailer }, ${PASSES} }`;
const ROUTES = ['GET /chat 0.10', 'POST /chat 0.10'];
/** Price of a request, and what is bought, in millionths. */
const PRICE = 100_000;
const CREDIT = 900_000;

/** An API that says what its query tells it to say, and ends a held response when it is told to. */
function createApi(): {
  readonly handle: RequestListener;
  readonly held: ServerResponse[];
  readonly end: (res: ServerResponse) => void;
} {
  const held: ServerResponse[] = [];
  const said = new Map<ServerResponse, string>();
  const end = (res: ServerResponse): void => {
    const tokens = said.get(res) ?? '';
    res.end(`data: {"usage":{"total_tokens":${tokens}}}\n\ndata: [DONE]\n\n`);
  };
  return {
    held,
    end,
    handle: (req, res) => {
      req.resume();
      const { pathname, searchParams } = new URL(req.url ?? '', 'http://h');
      const tokens = searchParams.get('tokens') ?? '0';
      const amount = (Number(tokens) / 1_000_000).toFixed(6);
      said.set(res, tokens);
      if (searchParams.has('missing')) res.statusCode = 404;
      if (pathname === '/header') {
        res.setHeader('tollgate-charge-amount', amount);
        res.end('answered');
      } else if (pathname === '/trailer') {
        res.setHeader('trailer', 'Tollgate-Charge-Amount');
        res.write('answered');
        res.addTrailers({ 'Tollgate-Charge-Amount': amount });
        res.end();
      } else if (searchParams.has('json')) {
        res.setHeader('content-type', 'application/json');
        res.end(JSON.stringify({ usage: { total_tokens: Number(tokens) } }));
      } else {
        res.setHeader('content-type', 'text/event-stream');
        res.write('data: {"text":"begun"}\n\n');
        if (searchParams.has('held')) held.push(res);
        else end(res);
      }
    },
  };
}

const tokenOf = ({ headers }: Response): string => headers.get('tollgate-pass') ?? '';
const millionths = (text: string | null): number => Math.round(Number(text?.replace(' USD', '')) * 1_000_000);

describe('metered requests, paid from credit that an unmodified client bought', () => {
  const api = createApi();
  let paid: PaidTollgate;
  beforeAll(async () => {
    paid = await startPaidTollgate({ handle: api.handle, routes: ROUTES, more: MORE });
  });
  afterAll(() => paid?.stop());

  const ask = (target: string, token: string, init: RequestInit = {}): Promise<Response> =>
    fetch(paid.url(target), { ...init, headers: { 'tollgate-pass': token } });
  /** What is left by the word of a response that is not charged. */
  const left = async (path: string, token: string): Promise<number> => {
    const response = await ask(`${path}?missing`, token);
    await response.arrayBuffer();
    return millionths(response.headers.get('tollgate-pass-left'));
  };
  /** Waits until so much is left, and nothing is reserved. */
  const leaves = (path: string, token: string, wanted: number): Promise<unknown> =>
    expect.poll(() => left(path, token), { timeout: 30_000 }).toBe(wanted);
  /** Begins a stream that the API holds, and resolves when the client has something of it. */
  const begin = async (
    target: string,
    token: string,
  ): Promise<{ api: ServerResponse; body: Promise<unknown>; leave: () => void }> => {
    const leaving = new AbortController();
    const before = api.held.length;
    const response = await ask(target, token, { signal: leaving.signal });
    const reader = response.body?.getReader();
    await reader?.read();
    const held = api.held[before];
    if (held === undefined) throw new Error('the API holds nothing');
    const body = (async (): Promise<unknown> => {
      while ((await reader?.read())?.done === false);
      return 'whole';
    })().catch(() => 'broken');
    return { api: held, body, leave: () => leaving.abort() };
  };

  test('behaviour: header, trailer, JSON and events say what is taken, the purchase is metered too, and money moves once a credit', async () => {
    let bought = 0;
    for (const [path, query, method] of [
      ['/header', 'tokens=12300', 'GET'],
      ['/trailer', 'tokens=12300', 'GET'],
      ['/chat', 'tokens=12300&json', 'POST'],
      ['/chat', 'tokens=12300', 'GET'],
    ] as const) {
      const response = await paid.payer.fetch(paid.url(`${path}?${query}`), { method });
      const token = tokenOf(response);
      expect([path, method, response.status, [...response.headers.keys()].includes('tollgate-charge-amount')]).toEqual([
        ...[path, method, 200, false],
      ]);
      await response.text();
      bought += 1;
      await leaves(path, token, CREDIT - 12_300);
      for (let times = 1; times <= 3; times++) {
        const answer = await ask(`${path}?${query.replace('12300', `${times * 1000}`)}`, token, { method });
        expect(answer.status).toBe(200);
        await answer.text();
      }
      await leaves(path, token, CREDIT - 12_300 - 6_000);
      expect(await paid.earned()).toBe(BigInt(bought * CREDIT));
    }
    expect((await paid.charges()).map(({ status }) => status)).toEqual(Array(bought).fill('delivered'));
  });

  test('behaviour: a client that leaves and an API that dies in the middle take the price', async () => {
    const response = await paid.payer.fetch(paid.url('/chat?tokens=1'));
    const token = tokenOf(response);
    await response.text();
    const leaving = await begin('/chat?tokens=5&held', token);
    leaving.leave();
    await leaves('/chat', token, CREDIT - 1 - PRICE);
    const dying = await begin('/chat?tokens=5&held', token);
    dying.api.destroy();
    expect(await dying.body).toBe('broken');
    await leaves('/chat', token, CREDIT - 1 - 2 * PRICE);
  });

  test('behaviour: killed in streams, or between their end and the books, three uses are given back and the fourth is taken', async () => {
    const earned = await paid.earned();
    // The purchase is the first of them.
    const before = api.held.length;
    const bought = await paid.payer.fetch(paid.url('/chat?tokens=10&held'));
    const token = tokenOf(bought);
    const first = api.held[before];
    if (first === undefined) throw new Error('the API holds nothing');
    const ended = await begin('/chat?tokens=5&held', token);
    for (let times = 1; times <= 2; times++) await begin('/chat?tokens=5&held', token);
    expect(await left('/chat', token)).toBe(CREDIT - 4 * PRICE);
    // Who else writes to the store keeps what was taken from the books.
    const other = new DatabaseSync(join(dirname(paid.config), 'data/tollgate.db'), { timeout: 5000 });
    // The look at what is left is given back by and by.
    const reserved = other.prepare("SELECT count(*) AS draws FROM pass_draws WHERE state = 'reserved'");
    await expect.poll(() => reserved.get()?.['draws']).toBe(4);
    other.exec('BEGIN IMMEDIATE');
    for (const res of [first, ended.api]) api.end(res);
    expect([await ended.body, (await bought.text()).includes('[DONE]')]).toEqual(['whole', true]);
    await paid.tollgate().kill();
    other.close();
    await paid.restart();
    await leaves('/chat', token, CREDIT - PRICE);
    const again = await ask('/chat?tokens=7', token);
    expect(again.status).toBe(200);
    await again.text();
    await leaves('/chat', token, CREDIT - PRICE - 7);
    expect((await paid.earned()) - earned).toBe(BigInt(CREDIT));
  });
});

describe.skipIf(!hasPostgres)('metered requests at two all-in-ones over one PostgreSQL', () => {
  const SECRET = 'a-secret-of-the-test-of-at-least-32-bytes';
  const api = createApi();
  let paid: PaidTollgate;
  let other: TollgateProcess;
  beforeAll(async () => {
    paid = await startPaidTollgate({
      handle: api.handle,
      routes: ROUTES,
      registry: `store: { url: "${await freshDatabase()}", timeout: 30s, pooler: ${isPooled} }, jwt: { secret: ${SECRET} }, api_keys: [{ name: k, key: an-api-key-of-the-test, scopes: [sdk, ledger] }]`,
      more: `${MORE}\ncharges: { secrets: [${SECRET}] }`,
    });
    other = await paid.another();
  });
  afterAll(async () => {
    await paid?.stop();
    await stopSharedPostgres();
  });

  test('attack: twenty requests at once never reserve more than the credit, and the books hold what was told', async () => {
    const response = await paid.payer.fetch(paid.url('/chat?tokens=1'), { method: 'POST' });
    const token = tokenOf(response);
    await response.text();
    const statuses: number[] = [];
    const ask = async (process: TollgateProcess, target: string): Promise<Response> =>
      fetch(`${process.url('proxy')}${target}`, { headers: { 'tollgate-pass': token } });
    const all = Array.from({ length: 20 }, async (_, n) => {
      const answer = await ask(n % 2 === 0 ? paid.tollgate() : other, `/chat?tokens=${1000 + n}&held`);
      statuses.push(answer.status);
      return answer.status === 200 ? Number(/total_tokens":(\d+)/.exec(await answer.text())?.[1]) : 0;
    });
    await until(
      'eight are under way, and twelve were told',
      async () => api.held.length === 8 && statuses.length === 20,
    );
    expect(statuses.filter((status) => status === 409)).toHaveLength(12);
    for (const res of api.held) api.end(res);
    const told = (await Promise.all(all)).reduce((sum, each) => sum + each, 0);
    expect(told).toBeGreaterThan(8000);
    for (const process of [paid.tollgate(), other])
      await expect
        .poll(async () => millionths((await ask(process, '/chat?missing')).headers.get('tollgate-pass-left')))
        .toBe(CREDIT - 1 - told);
    expect(await paid.earned()).toBe(BigInt(CREDIT));
  });
});
