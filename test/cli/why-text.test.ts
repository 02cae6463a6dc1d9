// The sentences of `tollgate why` about a charge: whether its answer can still be fetched, is owed, or was given back.
import { expect, test } from 'vitest';
import { tellWhy } from '../../src/cli/why-text.ts';
import type { Charge } from '../../src/domain/payment/charge.ts';
import { decideClaim } from '../../src/domain/payment/claim-policy.ts';
import { viewCharge } from '../../src/registry/charges/charge-view.ts';
import { claimOf } from '../cases/claims.ts';

const NOW = Date.UTC(2030, 0, 2);
const SETTLED_AT = NOW - 3_600_000;
const made = decideClaim(undefined, claimOf(1), { owner: 'me', leaseMs: 1, maxUnsettledPerPayer: 8 }, SETTLED_AT);
if (made.kind !== 'claimed') throw new Error(made.kind);
const { charge: CLAIMED } = made;

function tell(
  changes: Partial<Charge>,
  owed: Parameters<typeof viewCharge>[0]['owed'] = null,
  retryUntil: number | null = null,
): string {
  const charge = viewCharge(
    { ...CLAIMED, settledAt: SETTLED_AT, ...changes, owed, retryUntil },
    { find: () => undefined },
  );
  const report = { id: charge.id, charges: [charge], quote: null, refusals: [] };
  return tellWhy({ ...report, refusals_elsewhere: false, ledger_elsewhere: false }, NOW).join('\n');
}

test('behaviour: a charge that waits for its payer says until when its answer can be fetched', () => {
  expect(tell({ state: 'settled' }, null, NOW + 23 * 3_600_000)).toContain(
    'The money moved; the answer has not been delivered yet and may be fetched with the same payment until 2030-01-02T23:00:00.000Z (in 23 hours).',
  );
});

test.each([
  ['upstream', 'because of the upstream'],
  ['tollgate', 'because of Tollgate'],
  ['client', 'because of the client'],
] as const)('behaviour: a charge that is owed because of %s is not said to be fetched', (owed, because) => {
  const text = tell({ state: 'settled' }, owed);
  expect(text).toContain(`The money moved and nothing usable was delivered: it is owed, ${because}`);
  expect(text).toContain('`tollgate charges refunded chg_test-1 --note TEXT`');
  expect(text).not.toContain('may be fetched');
});

test('behaviour: a charge that can be fetched no more and is owed to nobody is not said to be fetched', () => {
  const text = tell({ state: 'settled', settledAt: NOW - 25 * 3_600_000, headSent: true });
  expect(text).toContain('can be fetched no more');
  expect(text).not.toContain('may be fetched');
});

test('behaviour: a refund is said, of what was owed and of what was delivered', () => {
  const refundedAt = NOW - 60_000;
  const given = tell({ state: 'settled', refundedAt, refundNote: 'by wire' });
  expect(given).toContain('was given back outside Tollgate: by wire.');
  expect(given).not.toContain('may be fetched');
  const goodwill = tell({ state: 'delivered', refundedAt, refundNote: '' });
  expect(goodwill).toContain('The money moved and the answer was delivered.');
  expect(goodwill).toContain('was given back outside Tollgate');
});

test('behaviour: an answer that arrived in part is not said to be delivered whole', () => {
  expect(tell({ state: 'delivered', partial: true })).toContain('only a part of the answer was delivered');
});

test.each([
  ['customer_unknown', 402, 'is of no customer who need not pay'],
  ['customer_expired', 402, 'the token of the customer had run out'],
  ['customer_quota_used_up', 402, 'had used up the requests that cost nothing'],
  ['free_used_up', 402, 'the free requests of this client were used up'],
  ['plan_unknown', 503, 'the route names a plan that the configuration of this proxy does not have'],
  ['price_ambiguous', 400, 'could read the price of this request in two ways'],
  ['length_required', 411, 'the request had no Content-Length'],
  ['price_unpayable', 503, 'nothing that is sold for this request could pay its price'],
  ['price_unavailable', 503, 'the price service of the plan said no price'],
  ['plan_unanswerable', 503, 'depends on what the API answers, which a decision listener never sees'],
  ['customers_unavailable', 503, 'the keys of an issuer of tokens could not be read yet'],
])('behaviour: a plan that let a request not pass is told in a sentence (%s)', (reason, status, sentence) => {
  const refusal = { at: '2030-01-01T00:00:00.000Z', request_id: 'r', method: 'GET', path: '/a', status, reason };
  const refusals = [{ ...refusal, outcome: 'refused', route_id: null, route_pattern: '/a', charge_id: null }];
  const report = { id: 'r', charges: [], quote: null, refusals, refusals_elsewhere: false, ledger_elsewhere: false };
  const told = tellWhy(report, NOW).join('\n');
  expect([told.includes(sentence), told.includes(`(${reason})`)]).toEqual([true, true]);
});
