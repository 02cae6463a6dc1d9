// What a payer agreed to where a receiver has several ways: the quote's price in the way that the payment names, or the price now.
import { expect, test } from 'vitest';
import { makeOffer, type Offer, type Receiver } from '../../../src/domain/payment/offer.ts';
import { createQuotes, joinChargeId } from '../../../src/domain/payment/quote.ts';
import type { RequestFacts } from '../../../src/gateway/outcome.ts';
import { agreementOf } from '../../../src/gateway/pay/pay.ts';
import type { PresentedPayment } from '../../../src/gateway/rails/rail.ts';
import { receiverOf } from '../../cases/receivers.ts';
import { route } from '../../cases/routes.ts';

const NOW = Date.UTC(2026, 0, 1);
const quotes = createQuotes({
  secrets: ['a-secret-of-at-least-thirty-two-bytes'],
  ttlMs: 300_000,
  nonce: () => 'n'.repeat(16),
});
const WAYS = [{}, { network: 'eip155:43113', decimals: 8 }, { network: 'eip155:43114', decimals: 1 }].flatMap(
  (changes) => receiverOf(changes).ways,
);

const ROUTE = route('GET /r 1');

function offerOf(amount: string, ways: Receiver['ways'] = WAYS): Offer {
  const made = makeOffer({ ...ROUTE, amount }, new Map([['default', { ...receiverOf(), ways }]]));
  if ('code' in made) throw new Error(made.detail);
  return made;
}

/** In the way with this number, with the quote of `quoted` if there is one. */
function agree(current: Offer, at: number, quoted?: Offer) {
  const way = current.receiver.ways[at]?.way;
  if (way === undefined) throw new Error('no such way');
  const chargeId = quoted && joinChargeId(quotes.issue(quoted, 'GET', NOW));
  const presented = { way, chargeId } as PresentedPayment;
  const facts = { nowMs: NOW, method: 'GET', path: '/r', publicOrigin: 'https://a' } as RequestFacts;
  const agreed = agreementOf({ quotes, listingOf: undefined }, current, presented, facts);
  if ('differs' in agreed || 'reason' in agreed) return agreed;
  expect(agreed.terms.way).toBe(way);
  return { amount: agreed.terms.amount, quoted: agreed.quote !== undefined };
}

test('behaviour: one price has an amount of its own in each way', () => {
  const now = offerOf('0.5');
  expect([0, 1, 2].map((at) => agree(now, at))).toMatchObject([
    { amount: 500_000n },
    { amount: 50_000_000n },
    { amount: 5n },
  ]);
});

test('behaviour: a quote holds its price in every way, also in one that cannot hold the price now', () => {
  const [before, now] = [offerOf('0.5'), offerOf('0.55')];
  expect(agree(now, 0, before)).toEqual({ amount: 500_000n, quoted: true });
  expect(agree(now, 1, before)).toEqual({ amount: 50_000_000n, quoted: true });
  expect(agree(now, 2, before)).toEqual({ amount: 5n, quoted: true });
});

test('attack: a way that cannot hold the price now is not paid without a quote', () => {
  expect(agree(offerOf('0.55'), 2)).toEqual({
    reason: 'way_mismatch',
    expected: 'a price of at most 1 decimals on eip155:43114',
  });
});

test('behaviour: a quote that the named way cannot hold is passed over for the price now', () => {
  expect(agree(offerOf('0.5'), 2, offerOf('0.55'))).toEqual({ amount: 5n, quoted: false });
});

test('attack: a change of another way voids the quote, and the price now is asked', () => {
  const others = [...WAYS.slice(0, 2), ...receiverOf({ network: 'eip155:1' }).ways];
  expect(agree(offerOf('0.7'), 0, offerOf('0.5', others))).toEqual({ amount: 700_000n, quoted: false });
  expect(agree(offerOf('0.7', WAYS.toReversed()), 2, offerOf('0.5'))).toEqual({ amount: 500_000n, quoted: true });
});
