// The endpoints about charges over a real registry: what a sidecar may write, and what a dashboard may see of it.
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { claimToWire } from '../../../src/domain/payment/charge-wire.ts';
import type { Claim } from '../../../src/domain/payment/charge.ts';
import { address, ASSET, claimOf, hash32, NETWORK, proofOf, requestOf, ROUTE_ID } from '../../cases/claims.ts';
import { LEDGER_KEY, startRegistry, type Kit, type Reply } from '../kit.ts';

const CLAIMS = '/v1/ledger/claims';
const CHARGES = '/v1/billing/charges';
const SUMMARY = '/v1/billing/summary';
const OPTIONS = { owner: 'one', lease_ms: 60_000, max_unsettled_per_payer: 8 };

let kit: Kit;
beforeAll(async () => {
  kit = await startRegistry();
});
afterAll(() => kit.close());

const ledger = (method: string, path: string, body?: unknown): Promise<Reply> =>
  kit.ask(method, path, { auth: LEDGER_KEY, ...(body === undefined ? {} : { body }) });
/** Every member that some answer has. */
type Seen = {
  kind: string;
  data: { id: string; charges: number; currency: string }[];
  next_cursor: string | null;
  bucket: string;
  from: string;
  to: string;
};
const parsed = (reply: Reply): Seen => JSON.parse(reply.body.toString());

describe('what a sidecar may write', () => {
  const wire = claimToWire(claimOf(1));

  test.each<[string, object, string]>([
    ['no credential', { credential: '' }, '/credential'],
    ['a credential over 16 KiB', { credential: 'A'.repeat(16 * 1024 + 1) }, '/credential'],
    ['a payment in another spelling', { payment: { ...wire.payment, unique: wire.payment.unique.toUpperCase() } }, ''],
    ['a network by its v1 name', { payment: { ...wire.payment, network: 'base-sepolia' } }, ''],
    ['a way of another asset', { way: { ...wire.way, asset: address(5) } }, ''],
    ['an amount of nothing', { amount: '0' }, ''],
    ['an amount that is a number', { amount: 100_000 }, '/amount'],
    ['an amount with a sign', { amount: '-1' }, '/amount'],
    ['an amount of 79 digits', { amount: '1'.repeat(79) }, '/amount'],
    ['terms that are no texts', { way: { ...wire.way, terms: { version: 2 } } }, '/way/terms/version'],
    ['a charge id that is none', { charge_id: 'chg_ ' }, '/charge_id'],
    ['a lease of more than an hour', { lease_ms: 3_600_001 }, '/lease_ms'],
    ['no lease', { lease_ms: 0 }, '/lease_ms'],
    ['no owner', { owner: '' }, '/owner'],
    ['x402 version 3', { x402_version: 3 }, '/x402_version'],
    ['a limit of nothing', { max_unsettled_per_payer: 0 }, '/max_unsettled_per_payer'],
  ])('refuses: a claim of a sidecar with %s', async (_what, part, pointer) => {
    const reply = await ledger('POST', CLAIMS, { ...wire, ...OPTIONS, ...part });
    expect([reply.status, reply.json.code, reply.json.errors[0]?.pointer]).toEqual([422, 'invalid', pointer]);
    expect(await kit.ledger.find(claimOf(1).payment)).toBeUndefined();
  });

  test('behaviour: a credential of 16 KiB and a kept answer of 64 KiB fit, one byte more does not', async () => {
    const credential = 'A'.repeat(16 * 1024);
    const claim = claimOf(2, { credential });
    expect(parsed(await ledger('POST', CLAIMS, { ...claimToWire(claim), ...OPTIONS }))).toMatchObject({
      kind: 'claimed',
    });
    await kit.ledger.advance(claim.id, { kind: 'settle_started', via: 'first', leaseMs: 1000 }, { owner: 'one' });
    await kit.ledger.advance(claim.id, { kind: 'settled', proof: proofOf(claim), leaseMs: 1000 }, { owner: 'one' });
    const keep = (bytes: number): Promise<Reply> => {
      const headers = Array.from({ length: 16 }, (_, n) => [`X-${n}`, 'v'.repeat(1900)]).flat();
      const answer = { status: 200, headers, body: Buffer.alloc(bytes, 1).toString('base64') };
      return ledger('PATCH', `${CLAIMS}/${claim.id}`, {
        event: { kind: 'answer_kept', answer, head_sent: false },
        owner: 'one',
      });
    };
    expect((await keep(64 * 1024 + 3)).status).toBe(422);
    expect(parsed(await keep(64 * 1024))).toMatchObject({
      kind: 'ok',
      charge: { undelivered: 'answer_lost', owner: null },
    });
  });

  test('behaviour: a charge is found by its payment in any spelling, by its id, or not at all', async () => {
    const claim = claimOf(0xabcdef);
    await kit.ledger.claim(claim, { owner: 'one', leaseMs: 60_000, maxUnsettledPerPayer: 8 });
    const spelled = {
      network: 'base-sepolia',
      asset: ASSET,
      payer: claim.payment.payer.toUpperCase().replace('0X', '0x'),
      unique: hash32(0xabcdef).replaceAll('a', 'A'),
    };
    const found = parsed(await ledger('GET', `${CLAIMS}?${new URLSearchParams(spelled).toString()}`));
    expect(found.data).toMatchObject([{ charge_id: claim.id, credential: claim.credential, owner: 'one' }]);
    expect(parsed(await ledger('GET', `${CLAIMS}?id=${claim.id}`))).toEqual(found);
    expect(parsed(await ledger('GET', `${CLAIMS}?id=chg_none`))).toEqual({ data: [] });
  });

  test.each([
    '',
    '?network=base',
    '?due=false',
    '?due=true&id=chg_x',
    '?id=x',
    `?network=${NETWORK}&asset=x&payer=x&unique=x`,
    '?due=true&limit=21',
  ])('refuses: a search for a charge, GET %s', async (query) => {
    const reply = await ledger('GET', `${CLAIMS}${query}`);
    expect([reply.status, reply.json.code]).toEqual([400, 'malformed']);
  });
});

describe('what a dashboard may see', () => {
  const secret = Buffer.from('worth money').toString('base64');
  const claims: Claim[] = [11, 12, 13].map((n) =>
    claimOf(n, {
      payer: 11,
      customerId: `customer-${n}`,
      credential: `${secret}${n}`,
      request: requestOf('GET', `/reports/${n}?token=private`),
    }),
  );

  beforeAll(async () => {
    for (const claim of claims) {
      await kit.ledger.claim(claim, { owner: 'owner-secret', leaseMs: 60_000, maxUnsettledPerPayer: 8 });
      await kit.ledger.advance(
        claim.id,
        { kind: 'settle_started', via: 'first', leaseMs: 60_000 },
        { owner: 'owner-secret' },
      );
      await kit.ledger.advance(
        claim.id,
        { kind: 'settled', proof: proofOf(claim, { logIndex: 7 }), leaseMs: 60_000 },
        { owner: 'owner-secret' },
      );
    }
    const answer = { status: 200, headers: ['Set-Cookie', 'answer-secret'], body: Buffer.from('answer-secret') };
    await kit.ledger.advance(
      claims[2]!.id,
      { kind: 'answer_kept', answer, headSent: false },
      { owner: 'owner-secret' },
    );
    await kit.ledger.advance(claims[0]!.id, { kind: 'delivered', partial: false }, { owner: 'owner-secret' });
  });

  const charges = async (query: string): Promise<Seen> => parsed(await kit.dashboard('GET', `${CHARGES}${query}`));

  test('behaviour: a dashboard sees a charge without its credential, its answer or the query that was asked', async () => {
    const reply = await kit.dashboard('GET', `${CHARGES}/${claims[0]!.id}`);
    expect(parsed(reply)).toMatchObject({
      id: claims[0]!.id,
      status: 'delivered',
      route_id: ROUTE_ID,
      amount: '0.10',
      currency: 'USD',
      amount_atomic: '100000',
      path: '/reports/11',
      payer: address(11),
      customer_id: 'customer-11',
      transaction: hash32(11),
      log_index: 7,
      network: NETWORK,
      asset: ASSET,
      scheme: 'exact',
      pay_to_address: address(0xbeef),
      x402_version: 2,
      flow: 'upfront',
    });
    const texts = await Promise.all(
      ['', ...claims.map(({ id }) => `/${id}`)].map(async (path) =>
        (await kit.dashboard('GET', CHARGES + path)).body.toString(),
      ),
    );
    for (const hidden of [secret, claims[0]!.credentialSha256, 'answer-secret', 'owner-secret', 'private'])
      expect(texts.join('')).not.toContain(hidden);
  });

  test('behaviour: a dashboard sees the history of a charge, and 404 for one that is not there', async () => {
    const reply = await kit.dashboard('GET', `${CHARGES}/${claims[0]!.id}/history`);
    expect([reply.status, JSON.parse(reply.body.toString()).data.map(({ event }: { event: string }) => event)]).toEqual(
      [...[200, ['claimed', 'settle_started', 'settled', 'delivered']]],
    );
    expect(reply.body.toString()).not.toContain('owner-secret');
    expect(JSON.parse(reply.body.toString()).data[0]).toEqual({
      ...{ at: expect.stringMatching(/^20.*Z$/), state: 'claimed', event: 'claimed', by: 'request' },
      detail: claims[0]!.requestId,
    });
    for (const id of ['chg_nobody', 'x'])
      expect((await kit.dashboard('GET', `${CHARGES}/${id}/history`)).status).toBe(404);
  });

  test('behaviour: a list of charges has pages and filters', async () => {
    const first = await charges(`?payer=${address(11)}&limit=2`);
    const second = await charges(`?payer=${address(11)}&limit=2&cursor=${first.next_cursor}`);
    const ids = [first, second].map(({ data }) => data.map(({ id }) => id));
    expect(ids).toEqual([[claims[2]!.id, claims[1]!.id], [claims[0]!.id]]);
    expect(second.next_cursor).toBeNull();
    expect((await charges(`?payer=${address(11)}&status=delivered`)).data.length).toBe(1);
    expect((await charges('?customer_id=customer-12')).data.length).toBe(1);
    expect((await charges(`?payer=${address(11)}&network=${NETWORK}`)).data.length).toBe(3);
    expect((await charges(`?payer=${address(11)}&network=eip155:8453`)).data).toEqual([]);
    expect((await charges(`?route_id=${ROUTE_ID}&from=2100-01-01`)).data).toEqual([]);
    expect((await charges(`?payer=${address(11)}&from=2001-01-01T00:00:00%2B02:00&to=2100-01-01`)).data.length).toBe(3);
  });

  test.each([
    '?status=paid',
    '?network=base',
    '?limit=0',
    '?limit=201',
    '?cursor=x',
    '?from=today',
    '?to=2026-13-01',
    '?payer=',
  ])('refuses: a list of charges%s', async (query) => {
    const reply = await kit.dashboard('GET', `${CHARGES}${query}`);
    expect([reply.status, reply.json.code]).toEqual([400, 'malformed']);
  });

  test('behaviour: sums are of the last 30 days by the day if nothing else is asked', async () => {
    const { data, bucket, from, to } = parsed(await kit.dashboard('GET', SUMMARY));
    expect(bucket).toBe('day');
    expect(Date.parse(to) - Date.parse(from)).toBeGreaterThanOrEqual(30 * 24 * 3_600_000);
    const total = data.reduce((sum, each) => sum + each.charges, 0);
    // The three above, and the one with the large answer.
    expect([total, new Set(data.map((each) => each.currency))]).toEqual([4, new Set(['USD'])]);
    const whole = parsed(
      await kit.dashboard('GET', `${SUMMARY}?bucket=total&route_id=${ROUTE_ID}&currency=usd&from=2001-01-01`),
    );
    expect(whole.data).toMatchObject([
      { amount: '0.40', amount_atomic: '400000', charges: 4, asset_decimals: 6, network: NETWORK },
    ]);
    expect(parsed(await kit.dashboard('GET', `${SUMMARY}?currency=EUR`)).data).toEqual([]);
    const byNetwork = parsed(await kit.dashboard('GET', `${SUMMARY}?bucket=total&group_by=network&from=2001-01-01`));
    expect(byNetwork.data).toMatchObject([{ route_id: null, network: NETWORK, amount_atomic: '400000', charges: 4 }]);
  });

  test.each([
    '?bucket=week',
    '?group_by=route',
    '?from=2026-02-01&to=2026-01-01',
    '?from=x',
    '?from=2026-01-01&to=2026-01-01',
  ])('refuses: a summary%s', async (query) => {
    const reply = await kit.dashboard('GET', `${SUMMARY}${query}`);
    expect([reply.status, reply.json.code]).toEqual([400, 'malformed']);
  });
});

describe('a registry without a ledger', () => {
  test('behaviour: without a ledger what needs one is 503, and the rest works', async () => {
    const one = await startRegistry({ withoutLedger: true });
    for (const path of [CHARGES, `${CHARGES}/chg_x`, SUMMARY]) {
      const reply = await one.dashboard('GET', path);
      expect([reply.status, reply.json.code, reply.headers['retry-after']]).toEqual([503, 'ledger_unavailable', '2']);
    }
    const claimed = await one.ask('POST', CLAIMS, {
      auth: LEDGER_KEY,
      body: { ...claimToWire(claimOf(1)), ...OPTIONS },
    });
    expect(claimed.status).toBe(503);
    expect((await one.dashboard('GET', '/v1/billing/protected-routes')).status).toBe(200);
    await one.close();
  });
});
