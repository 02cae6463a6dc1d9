// Why, by what each shape of the program can be asked: a store that searches, or a registry's ledger that takes whole ids.
import { expect, test } from 'vitest';
import { explainWhy, type WhyParts } from '../../src/compose/why.ts';
import { decideClaim } from '../../src/domain/payment/claim-policy.ts';
import type { ListedCharge } from '../../src/domain/payment/reports.ts';
import type { RefusedRequest } from '../../src/gateway/refusals.ts';
import { systemClock } from '../../src/host/clock.ts';
import { claimOf } from '../cases/claims.ts';

const made = decideClaim(undefined, claimOf(1), { owner: 'me', leaseMs: 1, maxUnsettledPerPayer: 8 }, 1_000);
if (made.kind !== 'claimed') throw new Error(made.kind);
const CHARGE: ListedCharge = { ...made.charge, owed: null, retryUntil: null };
const OFFERED: RefusedRequest = {
  ...{ at: 0, requestId: 'r-1', method: 'GET', path: '/a', status: 402, outcome: 'payment_required' },
  ...{ reason: 'payment_required', routeId: undefined, chargeId: CHARGE.id },
};
const UNPAID: RefusedRequest = { ...OFFERED, chargeId: 'chg_of-nobody' };

function parts(changes: Partial<WhyParts>): WhyParts {
  return {
    search: undefined,
    findByChargeId: async (id) => (id === CHARGE.id ? CHARGE : undefined),
    refusals: async (id) => (id === 'r-1' ? [UNPAID, OFFERED] : []),
    quotes: { explain: () => ({ kind: 'none' }) },
    quoteTtlMs: 1,
    routeOf: () => undefined,
    clock: systemClock,
    ...changes,
  };
}

test.each<[string, Partial<WhyParts>, boolean]>([
  ['a sidecar, whose ledger is the registry’s', {}, true],
  ['a process with a store', { search: async () => [] }, false],
])('behaviour: a request id leads to the charge of the quote that was offered: %s', async (_shape, own, elsewhere) => {
  const report = await explainWhy('r-1', parts(own));
  expect(report).toMatchObject({ charges: [{ id: CHARGE.id }], ledger_elsewhere: elsewhere });
  expect(report.charges).toHaveLength(1);
});

test('behaviour: a charge that is named and offered is told once, and a whole id is found without a search', async () => {
  const search = async (): Promise<ListedCharge[]> => [CHARGE];
  expect((await explainWhy('r-1', parts({ search }))).charges).toHaveLength(1);
  expect((await explainWhy(CHARGE.id, parts({}))).charges).toHaveLength(1);
  expect((await explainWhy('r-2', parts({}))).charges).toEqual([]);
});
