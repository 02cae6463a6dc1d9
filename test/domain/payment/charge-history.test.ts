// The history of a charge where it kept no lines, or not from its beginning.
import { expect, test } from 'vitest';
import { historyOf } from '../../../src/domain/payment/charge-history.ts';
import { decideClaim } from '../../../src/domain/payment/claim-policy.ts';
import { transition } from '../../../src/domain/payment/transition.ts';
import type { Charge } from '../../../src/domain/payment/charge.ts';
import { claimOf, proofOf } from '../../cases/claims.ts';

const OPTIONS = { owner: 'run/one', leaseMs: 1000, maxUnsettledPerPayer: 8 };

function claimed(at: number): Charge {
  const decided = decideClaim(undefined, claimOf(1), OPTIONS, at);
  if (decided.kind !== 'claimed') throw new Error(decided.kind);
  return decided.charge;
}
function moved(charge: Charge, event: Parameters<typeof transition>[1], at: number, owner = 'run/one'): Charge {
  const next = transition(charge, event, { owner }, at);
  if (!next.ok) throw new Error(next.because);
  return next.charge;
}
const told = (charge: Charge): unknown => historyOf(charge, charge.events).map(({ at, event, by }) => [at, event, by]);

test('behaviour: a charge from before lines were kept tells what its times say, and what follows by its lines', () => {
  const settling = moved(claimed(100), { kind: 'settle_started', via: 'v', leaseMs: 1000 }, 110);
  const settled = moved(settling, { kind: 'settled', proof: proofOf(claimOf(1)), leaseMs: 1000 }, 120);
  const old: Charge = { ...settled, events: null };
  expect(told(old)).toEqual([
    [100, 'claimed', null],
    [120, 'settled', null],
  ]);
  const delivered = moved(old, { kind: 'delivered', partial: false }, 130);
  expect(told(delivered)).toEqual([
    [100, 'claimed', null],
    [120, 'settled', null],
    [130, 'delivered', 'request'],
  ]);
  expect(told({ ...delivered, events: null })).toEqual([
    [100, 'claimed', null],
    [120, 'settled', null],
    [130, 'delivered', null],
  ]);
  const released = moved(claimed(100), { kind: 'released', reason: 'upstream_500' }, 140);
  expect(historyOf(released, null).at(-1)).toEqual({
    ...{ at: 140, state: 'released', event: 'released', by: null, detail: 'upstream_500' },
  });
});

test('behaviour: a claim after a release goes on in the same history', () => {
  const released = moved(claimed(100), { kind: 'released', reason: 'upstream_500' }, 140);
  const again = decideClaim(released, claimOf(1), { ...OPTIONS, owner: 'run/two' }, 150);
  expect(again.kind === 'claimed' && told(again.charge)).toEqual([
    [100, 'claimed', 'request'],
    [140, 'released', 'request'],
    [150, 'claimed', 'request'],
  ]);
});

test('refuses: a line that is none', () => {
  for (const line of ['{}', 'null', '[1,"paid","x",null,null]', '["1","settled","x",null,null]'])
    expect(() => historyOf(claimed(1), line)).toThrow(/a line of a history that is none/);
});
