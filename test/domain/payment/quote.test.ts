import { randomBytes } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { makeOffer, type Offer, type Receiver } from '../../../src/domain/payment/offer.ts';
import { createQuotes, joinChargeId } from '../../../src/domain/payment/quote.ts';
import type { Route } from '../../../src/domain/routing/route.ts';
import { RECEIVER, receiverOf, type PlainReceiver } from '../../cases/receivers.ts';
import { route } from '../../cases/routes.ts';

const NOW = Date.UTC(2026, 0, 1);
const SECRET = 'a-secret-of-at-least-thirty-two-bytes';
const OLD_SECRET = 'an-older-secret-of-at-least-thirty-two-bytes';
const quotes = createQuotes({ secrets: [SECRET], ttlMs: 300_000, nonce: () => randomBytes(12).toString('base64url') });

function offer(made: Route = route('GET /reports/* 0.10'), receiver: Receiver = RECEIVER): Offer {
  const offered = makeOffer(made, new Map([['default', receiver]]));
  if ('code' in offered) throw new Error(offered.detail);
  return offered;
}

describe('a quote', () => {
  test('behaviour: a quote fixes route, method, price, currency, terms and expiry', () => {
    const made = offer();
    const quote = quotes.read(joinChargeId(quotes.issue(made, 'GET', NOW)), NOW);
    expect(quote).toMatchObject({
      routeId: made.route.id,
      price: made.price,
      currency: 'USD',
      expiresAt: NOW / 1000 + 300,
    });
    expect([quote?.isFor('GET'), quote?.isFor('HEAD'), quote?.isFor('POST')]).toEqual([true, true, false]);
    expect(quote?.hasTermsOf(made)).toBe(true);
  });

  test('behaviour: a quote’s id is chg_ and at most 124 characters of the base64url alphabet, different each time', () => {
    const made = offer();
    const ids = Array.from({ length: 50 }, () => joinChargeId(quotes.issue(made, 'GET', NOW)));
    expect(new Set(ids).size).toBe(50);
    for (const id of ids) {
      expect(id).toMatch(/^chg_[A-Za-z0-9_-]{1,124}$/);
      expect(quotes.read(id, NOW)?.id).toBe(id);
    }
  });

  test('behaviour: a quote holds the largest price, scale and currency that a route can have', () => {
    const receiver = receiverOf({ decimals: 18, currencies: ['ABCDEFGHIJ'] });
    const made = offer(route('GET /a 999999999999.999999999999999999', { currency: 'ABCDEFGHIJ' }), receiver);
    expect(quotes.read(joinChargeId(quotes.issue(made, 'GET', NOW)), NOW)).toMatchObject({
      price: made.price,
      currency: 'ABCDEFGHIJ',
    });
  });

  test('behaviour: a quote lives until its expiry and not a millisecond longer', () => {
    const id = joinChargeId(quotes.issue(offer(), 'GET', NOW));
    expect(quotes.read(id, NOW + 299_999)).toBeDefined();
    expect(quotes.read(id, NOW + 300_000)).toBeUndefined();
  });

  test('behaviour: a cached signature of another method or second is not used', () => {
    const made = offer();
    const first = joinChargeId(quotes.issue(made, 'GET', NOW));
    expect(quotes.read(joinChargeId(quotes.issue(made, 'POST', NOW)), NOW)?.isFor('POST')).toBe(true);
    expect(quotes.read(joinChargeId(quotes.issue(made, 'POST', NOW + 5000)), NOW)?.expiresAt).toBe(NOW / 1000 + 305);
    expect(quotes.read(first, NOW)?.isFor('GET')).toBe(true);
  });

  test('behaviour: the secrets of quotes rotate: the first signs, all verify, a removed one does not', () => {
    const made = offer();
    const older = createQuotes({
      secrets: [OLD_SECRET],
      ttlMs: 300_000,
      nonce: () => randomBytes(12).toString('base64url'),
    });
    const before = joinChargeId(older.issue(made, 'GET', NOW));
    const rotated = createQuotes({
      secrets: [SECRET, OLD_SECRET],
      ttlMs: 300_000,
      nonce: () => randomBytes(12).toString('base64url'),
    });
    expect(rotated.read(before, NOW)).toBeDefined();
    expect(quotes.read(before, NOW)).toBeUndefined();
    expect(quotes.read(joinChargeId(rotated.issue(made, 'GET', NOW)), NOW)).toBeDefined();
  });

  test('behaviour: terms that changed make a quote void', () => {
    const made = offer();
    const quote = quotes.read(joinChargeId(quotes.issue(made, 'GET', NOW)), NOW);
    const changes: Partial<PlainReceiver>[] = [
      { payTo: '0x2222222222222222222222222222222222222222' },
      { asset: '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913' },
      { network: 'eip155:8453' },
      { decimals: 18 },
      { assetName: 'USD Coin' },
    ];
    for (const change of changes) expect(quote?.hasTermsOf(offer(made.route, receiverOf(change)))).toBe(false);
    expect(
      quote?.hasTermsOf(offer(made.route, receiverOf({ confirmations: 9, rpcUrls: ['http://127.0.0.1:1'] }))),
    ).toBe(true);
  });

  test('behaviour: the terms of a quote are those of all ways that are configured, in whatever order', () => {
    const [one, other, coarse] = [{}, { network: 'eip155:43113' }, { payTo: `0x${'3'.repeat(40)}`, decimals: 0 }].map(
      (changes) => receiverOf(changes).ways,
    );
    const of = (...ways: readonly (typeof one)[]): Offer =>
      offer(made.route, { ...receiverOf(), ways: ways.flatMap((each) => each ?? []) });
    const made = offer();
    const quoted = of(one, other, coarse);
    expect(quoted.ways).toHaveLength(2);
    const quote = quotes.read(joinChargeId(quotes.issue(quoted, 'GET', NOW)), NOW);
    expect(quote?.hasTermsOf(of(coarse, other, one))).toBe(true);
    // One that cannot hold this price counts too.
    for (const changed of [
      of(one, other),
      of(one, coarse),
      of(one, other, coarse, receiverOf({ network: 'eip155:1' }).ways),
    ])
      expect(quote?.hasTermsOf(changed)).toBe(false);
  });

  test('attack: every single changed character but those of the nonce makes a quote none', () => {
    const id = joinChargeId(quotes.issue(offer(), 'GET', NOW));
    // Read before, so that what it has in common with the others is remembered.
    expect(quotes.read(id, NOW)).toBeDefined();
    const nonceAt = id.length - 16;
    for (let i = 0; i < id.length; i++) {
      const changed = id.slice(0, i) + (id[i] === 'A' ? 'B' : 'A') + id.slice(i + 1);
      expect([i, quotes.read(changed, NOW) !== undefined]).toEqual([i, i >= nonceAt]);
    }
  });

  test.each([
    '',
    'chg_',
    'chg_x',
    'CHG_',
    '../../etc/passwd',
    `chg_${'A'.repeat(112)}`,
    `chg_${'A'.repeat(113)}`,
    `chg_${'='.repeat(112)}`,
  ])('attack: %j is no quote', (id) => {
    expect(quotes.read(id, NOW)).toBeUndefined();
  });
});

test('refuses: to make quotes without a secret', () => {
  expect(() => createQuotes({ secrets: [], ttlMs: 1, nonce: () => randomBytes(12).toString('base64url') })).toThrow(
    /charges\.secrets/,
  );
});
