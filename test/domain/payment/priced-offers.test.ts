// Offers and 402 texts of a route with very many prices: each price has its own text, and only so many are remembered.
import { expect, test } from 'vitest';
import { parsePrice } from '../../../src/domain/payment/money.ts';
import { createPaymentRequired } from '../../../src/domain/payment/payment-required.ts';
import { createPricedOffers } from '../../../src/domain/payment/priced-offers.ts';
import type { Offer } from '../../../src/domain/payment/offer.ts';
import { joinChargeId, type ChargeId } from '../../../src/domain/payment/quote.ts';
import { RECEIVERS, requirement } from '../../cases/receivers.ts';
import { route } from '../../cases/routes.ts';

/** Texts, and offers, that are remembered. */
const [TEXTS, OFFERS] = [1024, 4096];
const ROUTE = route('GET /gen 0.10');
const CHARGE: ChargeId = { signed: `chg_${'x'.repeat(108)}`, nonce: 'y'.repeat(16) };

function start() {
  const offerAt = createPricedOffers(RECEIVERS);
  let written = 0;
  const render = createPaymentRequired({
    v1: false,
    requirement: (...given) => {
      written += 1;
      return requirement(...given);
    },
  });
  const amountOf = (n: number): string => `0.${String(n).padStart(6, '0')}`;
  const offerOf = (n: number, inputs = `asked ${n}`): Offer => {
    const price = parsePrice(amountOf(n));
    const offer = price && offerAt(ROUTE, { price }, inputs);
    if (offer === undefined || 'code' in offer) throw new Error('no offer');
    return offer;
  };
  /** Writes the 402 of a price, holds it against the price, and says whether its text had to be made. */
  const isMade = (n: number, inputs?: string): boolean => {
    const before = written;
    const rendered = render({
      ...{ offer: offerOf(n, inputs), chargeId: CHARGE, origin: 'https://api.example.com', method: 'GET' },
      ...{ path: '/gen', reason: 'payment_required' },
    });
    const header = JSON.parse(Buffer.from(rendered?.header ?? '', 'base64').toString()) as {
      accepts: readonly { amount: string; extra: { external_ref: string } }[];
    };
    expect(header.accepts.map(({ amount, extra }) => [amount, extra.external_ref])).toEqual([
      [String(n), joinChargeId(CHARGE)],
    ]);
    expect(Number((JSON.parse(rendered?.body ?? '') as { amount: string }).amount)).toBe(n / 1e6);
    return written > before;
  };
  return { isMade, offerOf };
}

const numbers = (from: number, to: number): number[] => Array.from({ length: to - from + 1 }, (_, at) => from + at);

test('behaviour: of more than a thousand prices of one route each 402 has its own text, and the newest 1,024 are not written again', () => {
  const { isMade } = start();
  expect(numbers(1, TEXTS).filter((n) => !isMade(n))).toEqual([]);
  // What else was asked changes the quote and not the text.
  expect(numbers(1, TEXTS).filter((n) => isMade(n, `other ${n}`))).toEqual([]);
  expect(isMade(TEXTS + 1)).toBe(true);
  // One past the limit: the one that was asked for longest ago is gone, no other.
  expect(numbers(2, TEXTS + 1).filter((n) => isMade(n))).toEqual([]);
  expect(isMade(1)).toBe(true);
  expect([isMade(2), isMade(4)]).toEqual([true, false]);
  // However many there were.
  for (const n of numbers(5000, 9000)) isMade(n);
  expect(numbers(9001 - TEXTS, 9000).filter((n) => isMade(n))).toEqual([]);
  expect(isMade(9000 - TEXTS)).toBe(true);
});

test('behaviour: 4,096 priced offers are remembered, and one past that drops the oldest', () => {
  const { offerOf } = start();
  const first = numbers(1, OFFERS).map((n) => offerOf(n).shared);
  expect(numbers(1, OFFERS).filter((n) => offerOf(n).shared !== first[n - 1])).toEqual([]);
  offerOf(OFFERS + 1);
  expect(numbers(2, OFFERS).filter((n) => offerOf(n).shared !== first[n - 1])).toEqual([]);
  expect(offerOf(1).shared).not.toBe(first[0]);
  expect(new Set(first).size).toBe(OFFERS);
});
