// Passes as dashboards see them, over both kinds of store: what was sold and what is left of it, found by plan, pass, payer and
// life, and revoked once, with one entry in the audit log.
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Claim } from '../../src/domain/payment/charge.ts';
import { creditUnits, type DrawChange } from '../../src/domain/selling/pass-book.ts';
import { passIdOf, writePassInSale, type PassInSale } from '../../src/domain/selling/pass.ts';
import { SPELLING } from '../../src/gateway/rails/rails.ts';
import { ledgerOf, type StoredLedger } from '../../src/registry/store/stored-ledger.ts';
import { address, claimOf, hash32, NETWORK, proofOf, ROUTE_ID } from '../cases/claims.ts';
import { hasPostgres } from '../postgres/server.ts';
import { freshDatabase, openTestStore, stopSharedPostgres } from '../postgres/store.ts';
import { DESK, signIn } from './desk/signed-in.ts';
import { LEDGER_KEY, SDK_KEY, startRegistry, type Kit, type Reply } from './kit.ts';

const PASSES = '/v1/billing/passes';
const DAY_MS = 86_400_000;
/** With letters in it, which may be written in either case. */
const PAYER = 0xabcdef;

type Listed = { readonly id: string; readonly [member: string]: unknown };
type Page = { readonly data: readonly Listed[]; readonly next_cursor: string | null };

const bodyOf = (reply: Reply): Listed => JSON.parse(reply.body.toString()) as Listed;
const pageOf = (reply: Reply): Page => JSON.parse(reply.body.toString()) as Page;

const terms = (planId: string, termsId: string): Pick<PassInSale, 'planId' | 'termsId' | 'validMs' | 'scope'> => ({
  ...{ planId, termsId, validMs: DAY_MS, scope: 'plan' },
});
const usesOf = (uses: number, planId = 'default'): PassInSale => ({
  ...{ ...terms(planId, 'hundred'), kind: 'uses', uses, first: '1' },
});
const CREDIT: PassInSale = { ...terms('default', 'top-up'), kind: 'credit', credit: '5.00', first: '0.02' };
const DAY: PassInSale = { ...terms('other', 'day'), kind: 'seconds', seconds: 86_400, first: '0', scope: 'route' };

type Stage = { readonly kit: Kit; readonly ledger: StoredLedger; readonly close: () => Promise<unknown> };

async function onSqlite(): Promise<Stage> {
  const kit = await startRegistry({ settings: { desk: DESK } });
  return { kit, ledger: kit.ledger, close: kit.close };
}

async function onPostgres(): Promise<Stage> {
  const store = await openTestStore(await freshDatabase());
  const ledger = ledgerOf(store.charges, SPELLING);
  const kit = await startRegistry({ store, reports: ledger, settings: { desk: DESK } });
  return { kit, ledger, close: () => kit.close().then(store.close) };
}

const STAGES: readonly (readonly [name: string, open: () => Promise<Stage>])[] = [
  ['SQLite', onSqlite],
  ...(hasPostgres ? ([['PostgreSQL', onPostgres]] as const) : []),
];
afterAll(stopSharedPostgres);

describe.each(STAGES)('on %s', (name, open) => {
  let stage: Stage;
  let made = 0;
  beforeAll(async () => {
    stage = await open();
  });
  afterAll(() => stage.close());

  /** Sells a pass: the id of the charge that paid for it. */
  const sell = async (sale: PassInSale, rest: Partial<Claim> & { payer?: number } = {}): Promise<string> => {
    const { ledger } = stage;
    made += 1;
    const claim = claimOf(made, {
      ...{ id: `chg_${name}-${made}`, payer: made, settle: 'before_response', pass: writePassInSale(sale) },
      ...rest,
    });
    await ledger.claim(claim, { owner: 'o', leaseMs: 60_000, maxUnsettledPerPayer: 100, settleVia: 'first' });
    const settled = { kind: 'settled', proof: proofOf(claim), leaseMs: 60_000 } as const;
    expect((await ledger.advance(claim.id, settled, { owner: 'o' })).kind).toBe('ok');
    await ledger.advance(claim.id, { kind: 'delivered', partial: false }, { owner: 'o' });
    return claim.id;
  };
  const read = async (id: string): Promise<Listed> => {
    const reply = await stage.kit.dashboard('GET', `${PASSES}/${id}`);
    expect([id, reply.status]).toEqual([id, 200]);
    return bodyOf(reply);
  };
  const list = async (query = ''): Promise<Page> => {
    const reply = await stage.kit.dashboard('GET', PASSES + query);
    expect([query, reply.status]).toEqual([query, 200]);
    return pageOf(reply);
  };
  const idsOf = async (query: string): Promise<readonly string[]> => (await list(query)).data.map(({ id }) => id);
  const revoke = (id: string, headers: Record<string, string> = {}): Promise<Reply> =>
    stage.kit.dashboard('POST', `${PASSES}/${id}/revoke`, { headers });
  const reserve = (
    passId: string,
    amount: bigint,
    kind: 'uses' | 'credit',
  ): Extract<DrawChange, { kind: 'reserve' }> => {
    made += 1;
    const of = { planId: 'default', routeId: ROUTE_ID, kind, currency: 'USD' };
    return {
      kind: 'reserve',
      passId,
      useId: `use_${made}`,
      owner: `o/${made}`,
      amount,
      leaseMs: 60_000,
      key: null,
      of,
    };
  };
  const audited = async (): Promise<readonly Record<string, unknown>[]> =>
    pageOf(await stage.kit.dashboard('GET', '/v1/audit?kind=pass.revoked')).data;

  test(`behaviour: on ${name} a pass says what was sold, drawn, left and reserved, in uses, in its currency, or in seconds`, async () => {
    const { passes } = stage.ledger;
    const [uses, credit, day] = [await sell(usesOf(100)), await sell(CREDIT), await sell(DAY)];
    expect((await passes.change(reserve(passIdOf(uses), 1n, 'uses'))).kind).toBe('reserved');
    const metered = reserve(passIdOf(credit), creditUnits('0.10'), 'credit');
    await passes.change(metered);
    await passes.change({ ...metered, kind: 'take', amount: creditUnits('0.000002') });
    const common = { payer_url: expect.stringMatching(/^https:/), network: NETWORK, network_name: 'base-sepolia' };
    const times = { sold_at: expect.any(String), ends_at: expect.any(String), revoked_at: null };
    expect(await read(passIdOf(uses))).toEqual({
      ...{ id: passIdOf(uses), charge_id: uses, status: 'live', plan: 'default', pass: 'hundred', kind: 'uses' },
      ...{ scope: 'plan', route_id: ROUTE_ID, payer: address(1), ...common, amount: '0.10', currency: 'USD' },
      ...{ seconds: null, sold: '100', drawn: '1', left: '98', reserved: '1', lapsed: '0', uses: 1, ...times },
    });
    expect(await read(passIdOf(credit))).toMatchObject({
      ...{ status: 'live', kind: 'credit', pass: 'top-up', seconds: null },
      ...{ sold: '5', drawn: '0.020002', left: '4.979998', reserved: '0', lapsed: '0', uses: 2 },
    });
    // The charge names the pass that it sold.
    const charge = bodyOf(await stage.kit.dashboard('GET', `/v1/billing/charges/${uses}`));
    expect(charge['pass_id']).toBe(passIdOf(uses));
    const seconds = await read(passIdOf(day));
    expect(seconds).toMatchObject({
      ...{ status: 'live', kind: 'seconds', scope: 'route', seconds: 86_400 },
      ...{ sold: null, drawn: null, left: null, reserved: null, lapsed: null, uses: null },
    });
    expect(Date.parse(String(seconds['ends_at'])) - Date.parse(String(seconds['sold_at']))).toBe(DAY_MS);
    // Nothing in it lets anybody pass.
    for (const shown of [uses, credit, day])
      expect(JSON.stringify(await read(passIdOf(shown)))).not.toMatch(/credential|token|secret|nonce/);
  });

  test(`behaviour: on ${name} passes are listed newest first, a page at a time, by plan, pass, payer in any spelling, and life`, async () => {
    const mine = { payer: PAYER };
    const [first, second, spent] = [
      await sell(usesOf(3, 'list'), mine),
      await sell({ ...DAY, planId: 'list' }, mine),
      await sell(usesOf(1, 'list'), mine),
    ].map(passIdOf);
    const brief = passIdOf(await sell({ ...usesOf(3, 'brief'), validMs: 1 }));
    await expect.poll(async () => (await read(brief))['status']).toBe('ended');
    expect((await list('?plan=brief')).data).toMatchObject([{ id: brief, left: '0', lapsed: '2' }]);
    expect(await idsOf('?plan=list')).toEqual([spent, second, first]);
    expect((await read(spent ?? ''))['status']).toBe('used_up');
    expect(await idsOf('?plan=list&pass=hundred')).toEqual([spent, first]);
    expect(await idsOf('?pass=hundred&plan=nobody')).toEqual([]);
    expect(await idsOf('?plan=list&live=true')).toEqual([second, first]);
    expect(await idsOf('?plan=list&live=false')).toEqual([spent]);
    for (const payer of [address(PAYER), `0x${address(PAYER).slice(2).toUpperCase()}`])
      expect(await idsOf(`?payer=${payer}`)).toEqual([spent, second, first]);
    const all = await idsOf('?limit=200');
    expect((await list('?limit=200')).next_cursor).toBeNull();
    expect(all.slice(0, 4)).toEqual([brief, spent, second, first]);
    const paged: string[] = [];
    for (let query = '?limit=2'; query !== '';) {
      const { data, next_cursor: next } = await list(query);
      paged.push(...data.map(({ id }) => id));
      query = next === null ? '' : `?limit=2&cursor=${next}`;
    }
    expect(paged).toEqual(all);
    const { next_cursor: next } = await list('?plan=list&limit=2');
    expect(await list(`?plan=list&limit=2&cursor=${next}`)).toMatchObject({ data: [{ id: first }], next_cursor: null });
  });

  test(`behaviour: on ${name} a pass is revoked once, at once, with one entry in the audit log; again it stays as it was`, async () => {
    const { passes } = stage.ledger;
    const charge = await sell(usesOf(10));
    const id = passIdOf(charge);
    const open = reserve(id, 1n, 'uses');
    expect((await passes.change(open)).kind).toBe('reserved');
    const before = (await audited()).length;
    const replies = [await revoke(id, { 'X-Request-Id': 'the-first' }), await revoke(id)];
    const [first, again] = replies.map(bodyOf);
    expect(replies.map(({ status }) => status)).toEqual([200, 200]);
    expect(first).toMatchObject({
      ...{ id, status: 'revoked', sold: '10', drawn: '1', left: '0', reserved: '1', lapsed: '8' },
      revoked_at: expect.stringMatching(/Z$/),
    });
    expect(again).toEqual(first);
    // A request that goes on ends as it would; no other one begins.
    expect((await passes.change({ ...open, kind: 'take', amount: null })).kind).toBe('taken');
    expect(await passes.change(reserve(id, 1n, 'uses'))).toEqual({ kind: 'revoked' });
    expect(await read(id)).toMatchObject({ drawn: '2', reserved: '0', lapsed: '8' });
    const entries = await audited();
    expect(entries.length - before).toBe(1);
    expect(entries[0]).toMatchObject({
      ...{ kind: 'pass.revoked', subject: id, via: 'jwt', request_id: 'the-first' },
      ...{ from: { revoked_at: null }, to: { revoked_at: first?.['revoked_at'] } },
    });
    const told = stage.kit.logs.map((line) => JSON.parse(line)).filter(({ msg }) => msg === 'pass revoked');
    expect(told.filter(({ pass_id }) => pass_id === id)).toEqual([
      expect.objectContaining({ charge_id: charge, plan: 'default', pass: 'hundred', by: expect.any(String) }),
    ]);
  });

  test(`attack: on ${name} twenty who revoke a pass at once leave one entry in the audit log`, async () => {
    const id = passIdOf(await sell(DAY));
    const before = (await audited()).length;
    const replies = await Promise.all(Array.from({ length: 20 }, () => revoke(id)));
    expect(new Set(replies.map(({ status }) => status))).toEqual(new Set([200]));
    expect(new Set(replies.map((reply) => bodyOf(reply)['revoked_at'])).size).toBe(1);
    expect((await audited()).length - before).toBe(1);
  });

  test(`behaviour: on ${name} the refund of the whole price revokes a pass, and money of a revoked one can be given back still`, async () => {
    const refund = async (charge: string, n: number, amount?: string): Promise<number> => {
      const body = { transaction: hash32(0x1000 + n), unproven: true, ...(amount === undefined ? {} : { amount }) };
      return (await stage.kit.dashboard('POST', `/v1/billing/charges/${charge}/refunds`, { body })).status;
    };
    const [whole, revoked] = [await sell(usesOf(10)), await sell(usesOf(10))];
    expect(await refund(whole, 1, '0.04')).toBe(201);
    expect(await read(passIdOf(whole))).toMatchObject({ status: 'live', left: '9' });
    expect(await refund(whole, 2)).toBe(201);
    const given = await read(passIdOf(whole));
    expect(given).toMatchObject({ status: 'revoked', left: '0', lapsed: '9' });
    // By hand it stays as it was.
    expect(bodyOf(await revoke(passIdOf(whole)))).toEqual(given);
    const { revoked_at: at } = bodyOf(await revoke(passIdOf(revoked)));
    expect(await refund(revoked, 3)).toBe(201);
    expect(await read(passIdOf(revoked))).toMatchObject({ status: 'revoked', revoked_at: at });
  });

  test(`refuses: on ${name} a pass that nobody was sold, queries that mean nothing, and whoever may not`, async () => {
    const { kit } = stage;
    const id = passIdOf(await sell(usesOf(2)));
    // Paid for, and not settled.
    const pending = claimOf(9_000, { id: `chg_${name}-pending`, pass: writePassInSale(usesOf(2)) });
    await stage.ledger.claim(pending, { owner: 'o', leaseMs: 60_000, maxUnsettledPerPayer: 100 });
    for (const unknown of [
      passIdOf(pending.id),
      'pass_none',
      pending.id,
      'pass_',
      `pass_${'a'.repeat(125)}`,
      'pass_%00',
    ]) {
      for (const [method, path] of [
        ['GET', `${PASSES}/${unknown}`],
        ['POST', `${PASSES}/${unknown}/revoke`],
      ] as const) {
        const reply = await kit.dashboard(method, path);
        expect([path, reply.status, reply.json.code]).toEqual([path, 404, 'not_found']);
      }
    }
    for (const query of [
      'live=yes',
      'live=',
      'plan=',
      'plan=a%00b',
      'pass=a%20b',
      `plan=${'a'.repeat(65)}`,
      'payer=%00',
    ])
      expect([query, (await kit.dashboard('GET', `${PASSES}?${query}`)).status]).toEqual([query, 400]);
    for (const query of ['limit=0', 'limit=201', 'cursor=x', 'status=live'])
      expect([query, (await kit.dashboard('GET', `${PASSES}?${query}`)).status]).toEqual([query, 400]);
    for (const auth of [undefined, SDK_KEY, LEDGER_KEY])
      for (const [method, path] of [
        ['GET', PASSES],
        ['GET', `${PASSES}/${id}`],
        ['POST', `${PASSES}/${id}/revoke`],
      ] as const)
        expect((await kit.ask(method, path, { auth })).status).toBe(401);
    const viewer = await signIn(kit, 'viewer');
    expect((await kit.ask('GET', `${PASSES}/${id}`, { headers: viewer })).status).toBe(200);
    expect((await kit.ask('POST', `${PASSES}/${id}/revoke`, { headers: viewer })).status).toBe(403);
    expect(await read(id)).toMatchObject({ status: 'live', revoked_at: null });
  });
});

test('refuses: a registry that keeps no ledger says so of passes, and that it may be asked again', async () => {
  const kit = await startRegistry({ withoutLedger: true });
  try {
    for (const [method, path] of [
      ['GET', PASSES],
      ['GET', `${PASSES}/pass_a`],
      ['POST', `${PASSES}/pass_a/revoke`],
    ] as const) {
      const reply = await kit.dashboard(method, path);
      expect([path, reply.status, reply.json.code]).toEqual([path, 503, 'ledger_unavailable']);
      expect(reply.headers['retry-after']).toBe('2');
    }
  } finally {
    await kit.close();
  }
});
