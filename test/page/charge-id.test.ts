// When the page is sure of a charge id: the server named it, or the quote was in force when an answer with a receipt came.
import { expect, test } from 'vitest';
import { withChargeId } from '../../src/page/charge-id.ts';
import type { TabPayment } from '../../src/page/kept.ts';

const QUOTED_AT = 1_700_000_000_000;
const DATA = { ways: [], quoteTtlMs: 300_000 };
const PAYMENT: TabPayment = {
  ...{ kind: 'payment', header: 'e30=', quotedAt: QUOTED_AT },
  accept: {
    ...{ network: 'eip155:84532', asset: '0xa', payTo: '0xb', amount: '1', maxTimeoutSeconds: 60 },
    extra: { external_ref: 'chg_quoted' },
  },
};
const RECEIPT = { transaction: '0xcc' };

test.each([
  ['at once', 0, 'chg_quoted'],
  ['in the last second that is sure', 298_999, 'chg_quoted'],
  ['in the second in which the quote may end', 299_000, undefined],
  ['long after the quote', 3_600_000, undefined],
  ['before the quote, by a clock that was set back', -1, undefined],
])('behaviour: an answer with a receipt that comes %s has the charge id %3$s', (_when, elapsedMs, id) => {
  expect(withChargeId(PAYMENT, RECEIPT, DATA, QUOTED_AT + elapsedMs).charge).toBe(id);
});

test('behaviour: the charge id that a problem names is the one, whatever the quote was and however late it comes', () => {
  const late = QUOTED_AT + 3_600_000;
  expect(withChargeId(PAYMENT, { charge: 'chg_named' }, DATA, QUOTED_AT).charge).toBe('chg_named');
  expect(withChargeId(PAYMENT, { charge: 'chg_named' }, DATA, late).charge).toBe('chg_named');
  expect(withChargeId({ ...PAYMENT, charge: 'chg_quoted' }, { charge: 'chg_named' }, DATA, late).charge).toBe(
    'chg_named',
  );
});

test('behaviour: an answer without a receipt proves no charge id', () => {
  expect(withChargeId(PAYMENT, {}, DATA, QUOTED_AT).charge).toBe(undefined);
});

test('behaviour: a charge id that is known stays, also when the quote is over', () => {
  const known = withChargeId(PAYMENT, RECEIPT, DATA, QUOTED_AT + 1000);
  expect(withChargeId(known, RECEIPT, DATA, QUOTED_AT + 3_600_000).charge).toBe('chg_quoted');
});

test('behaviour: a payment that was kept without the time of its quote has no charge id of the quote', () => {
  const old = JSON.parse(JSON.stringify({ ...PAYMENT, quotedAt: undefined })) as TabPayment;
  expect(withChargeId(old, RECEIPT, DATA, QUOTED_AT).charge).toBe(undefined);
});
