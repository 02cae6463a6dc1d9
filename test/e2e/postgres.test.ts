// All-in-ones over one PostgreSQL, with a real chain: one ledger and one set of prices, whichever process is asked and
// whatever dies.
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { startPaidTollgate, until, type PaidTollgate } from '../support/paid-tollgate.ts';
import type { TollgateProcess } from '../support/process.ts';
import { isPooled } from '../postgres/pooler.ts';
import { hasPostgres } from '../postgres/server.ts';
import { freshDatabase, sharedPostgres, stopSharedPostgres } from '../postgres/store.ts';

const SECRET = 'a-secret-of-the-test-of-at-least-32-bytes';
const PRICE = 100_000n;

describe.skipIf(!hasPostgres)('all-in-ones over one PostgreSQL', () => {
  let paid: PaidTollgate;
  let other: TollgateProcess;
  let served: string[] = [];
  /** What is served waits for it. */
  let hold: Promise<void> | undefined;

  beforeAll(async () => {
    paid = await startPaidTollgate({
      handle: (request, response) => {
        served.push(request.url ?? '');
        void Promise.resolve(hold).then(() => setTimeout(() => response.end('paid'), 50));
      },
      routes: ['GET /a 0.10', 'POST /b 0.10'],
      registry: `store: { url: "${await freshDatabase()}", timeout: 30s, pooler: ${isPooled} }, jwt: { secret: ${SECRET} }, api_keys: [{ name: k, key: an-api-key-of-the-test, scopes: [sdk, ledger] }]`,
      more: `charges: { secrets: [${SECRET}] }`,
    });
    other = await paid.another();
  });
  afterAll(async () => {
    await paid?.stop();
    await stopSharedPostgres();
  });

  const at = (process: TollgateProcess, target: string, credential: string): Promise<Response> =>
    fetch(`${process.url('proxy')}${target}`, { headers: { 'payment-signature': credential } });
  const delivered = async (): Promise<number> =>
    (await paid.charges()).filter(({ status }) => status === 'delivered').length;

  test('attack: duplicates of one payment at two all-in-ones are served once and settled once', async () => {
    const earned = await paid.earned();
    served = [];
    const credential = await paid.sign(await paid.quote('/a'));
    // All are on their way at once, however long the last of them takes to arrive.
    const turnedAway = Promise.withResolvers<void>();
    hold = turnedAway.promise;
    let answers = 0;
    const all = await Promise.all(
      Array.from({ length: 20 }, async (_, index) => {
        const response = await at(index % 2 === 0 ? paid.tollgate() : other, '/a', credential);
        answers += 1;
        if (answers + served.length >= 20) turnedAway.resolve();
        return response;
      }),
    );
    hold = undefined;
    expect(all.filter(({ status }) => status === 200)).toHaveLength(1);
    expect(served).toHaveLength(1);
    expect((await paid.earned()) - earned).toBe(PRICE);
    await until('it is delivered in the ledger', async () => (await delivered()) === 1);
  });

  test('behaviour: a quote of one all-in-one is paid at the other', async () => {
    const credential = await paid.sign(await paid.quote('/a'));
    expect((await at(other, '/a', credential)).status).toBe(200);
  });

  test('behaviour: a price changed at one all-in-one is in force at the other within a second', async () => {
    const token = await paid.cli('token');
    const ask = (process: TollgateProcess, path: string, init: RequestInit = {}): Promise<Response> =>
      fetch(`${process.url('registry')}${path}`, {
        ...init,
        headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      });
    const list = (await (await ask(other, '/v1/billing/protected-routes')).json()) as {
      data: { id: string; route_pattern: string }[];
    };
    const id = list.data.find(({ route_pattern: pattern }) => pattern === '/b')?.id ?? '';
    const took: number[] = [];
    for (const amount of ['5', '6', '7']) {
      const changed = await ask(paid.tollgate(), `/v1/billing/protected-routes/${id}`, {
        method: 'PATCH',
        body: JSON.stringify({ amount }),
      });
      expect(changed.status).toBe(200);
      const since = performance.now();
      await until('the other asks for it', async () => {
        const response = await fetch(`${other.url('proxy')}/b`, { method: 'POST' });
        const quoted = Buffer.from(response.headers.get('payment-required') ?? '', 'base64').toString();
        return quoted.includes(`"${amount}000000"`);
      });
      took.push(performance.now() - since);
    }
    // The others a busy machine may have held up.
    expect(Math.min(...took)).toBeLessThan(1000);
  });

  test('behaviour: an all-in-one killed in the middle of paid requests starts again, and the ledger is what the chain says', async () => {
    const credentials = await Promise.all(Array.from({ length: 12 }, async () => paid.sign(await paid.quote('/a'))));
    const asked = credentials.map((credential, index) =>
      at(index % 2 === 0 ? paid.tollgate() : other, '/a', credential).then(
        ({ status }) => status,
        () => 0,
      ),
    );
    await Promise.race(asked);
    await paid.restart();
    await Promise.all(asked);
    // Each payer comes back with the same payment until he has it, or is told that it is spent.
    for (const credential of credentials)
      await until('the payment has an end', async () => {
        const { status } = await at(paid.tollgate(), '/a', credential);
        return status === 200 || status === 402;
      });
    await until('no charge is open', async () =>
      (await paid.charges()).every(({ status }) => status === 'delivered' || status === 'settled'),
    );
    const charges = await paid.charges();
    const took = charges.reduce((sum, { amount_atomic: amount }) => sum + BigInt(amount), 0n);
    expect(await paid.earned()).toBe(took);
    expect(new Set(charges.map(({ id }) => id)).size).toBe(charges.length);
  });

  test('behaviour: commands work beside several processes over PostgreSQL, and a process ends in order', async () => {
    expect(await paid.cli('migrate')).toBe('up to date');
    expect(await paid.cli('keys', 'create', '--name', 'a')).toMatch(/^tg_/);
    expect(await paid.cli('keys', 'list')).toMatch(/active +sdk .* a$/m);
    expect(await paid.cli('charges', 'list')).toContain('delivered');
    expect(await paid.cli('check')).toContain('postgres://');
    const [{ id } = { id: '' }] = await paid.charges();
    expect(await paid.cli('charges', 'show', id)).toContain(id);
    other.signal('SIGTERM');
    expect(await other.exited).toBe(0);
  });

  test('behaviour: the database is killed and comes back: payments wait and none fails, free requests go on', async () => {
    const server = await sharedPostgres();
    const credential = await paid.sign(await paid.quote('/a'));
    await server.stop('SIGKILL');
    expect((await fetch(paid.url('/free'))).status).toBe(200);
    expect((await fetch(paid.url('/a'))).status).toBe(402);
    // Not taken out: free requests would go with it. An answer of a moment ago is still good for a few seconds.
    await vi.waitFor(async () => {
      const ready = await fetch(`${paid.tollgate().url('admin')}/readyz?verbose`, {
        signal: AbortSignal.timeout(9_000),
      });
      expect(ready.status).toBe(200);
      expect(await ready.text()).toContain('degraded: the store does not take writes: ');
    });
    // Scrapes go on: nothing that the store alone knows keeps the rest back.
    const scraped = await fetch(`${paid.tollgate().url('admin')}/metrics`, { signal: AbortSignal.timeout(9_000) });
    expect(await scraped.text()).toContain('tollgate_store_up 0');
    const waiting = at(paid.tollgate(), '/a', credential);
    await server.start();
    expect((await waiting).status).toBe(200);
    const took = (await paid.charges()).reduce((sum, { amount_atomic: amount }) => sum + BigInt(amount), 0n);
    expect(await paid.earned()).toBe(took);
  });
});
