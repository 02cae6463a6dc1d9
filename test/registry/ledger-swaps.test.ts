// The short way to change a charge on SQLite: what was decided on an old version of a row is never written over a newer
// one, and what the short way cannot do is decided by the ledger's thread as if there were no short way.
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { Claim } from '../../src/domain/payment/charge.ts';
import type { AdvanceResult } from '../../src/domain/payment/ledger.ts';
import type { ChargeEvent } from '../../src/domain/payment/transition.ts';
import { createLog } from '../../src/host/log.ts';
import { openLedger, type SqliteLedger } from '../support/sqlite-ledger.ts';
import { claimOf, proofOf } from '../cases/claims.ts';
import { temporaryFolder } from './kit.ts';

const log = createLog('error', () => undefined, Date.now);
const LEASE = 60_000;
const START: ChargeEvent = { kind: 'settle_started', via: 'first', leaseMs: LEASE };

let file: string;
let remove: () => void;
let here: SqliteLedger;
let elsewhere: SqliteLedger;
let change = 0;

beforeEach(() => {
  const made = temporaryFolder();
  remove = made.remove;
  file = join(made.folder, 'ledger.db');
  here = openLedger(file, { now: Date.now, log });
  elsewhere = openLedger(file, { now: Date.now, log });
});
afterEach(async () => {
  await Promise.all([here.close(), elsewhere.close()]);
  remove();
});

const claim = async (n: number): Promise<Claim> => {
  const what = claimOf(n);
  const options = { owner: 'run/one', leaseMs: LEASE, maxUnsettledPerPayer: 8, changeId: `change ${++change}` };
  expect((await here.claim(what, options)).kind).toBe('claimed');
  return what;
};
const advance = (
  ledger: SqliteLedger,
  { id }: Claim,
  event: ChargeEvent,
  changeId = `change ${++change}`,
): Promise<AdvanceResult> => ledger.advance(id, event, { owner: 'run/one', changeId });

describe('a row that changed meanwhile', () => {
  test('behaviour: a row that changed meanwhile is not written over; the answer is what the row says', async () => {
    const what = await claim(1);
    await advance(elsewhere, what, { kind: 'released', reason: 'elsewhere' });
    expect(await advance(here, what, START)).toMatchObject({ kind: 'conflict', charge: { state: 'released' } });
    expect(await elsewhere.findByChargeId(what.id)).toMatchObject({ state: 'released', reason: 'elsewhere' });
  });

  test('attack: a charge that was given up elsewhere and taken is not settled by who still believes to own it', async () => {
    const what = await claim(1);
    await advance(here, what, START);
    await advance(elsewhere, what, { kind: 'settle_unknown', reason: 'no_answer', lookInMs: 0 });
    await elsewhere.advance(what.id, { kind: 'taken_over', leaseMs: LEASE }, { owner: 'run/two' });
    expect(await advance(here, what, { kind: 'settled', proof: proofOf(what), leaseMs: LEASE })).toMatchObject({
      kind: 'conflict',
      because: 'lease_running',
    });
    expect(await elsewhere.findByChargeId(what.id)).toMatchObject({ state: 'settling', attempts: 1, proof: null });
  });

  test('behaviour: a row that changed meanwhile is changed all the same if the change is still allowed, from what the row says', async () => {
    const what = await claim(1);
    await advance(elsewhere, what, START);
    const proof = proofOf(what);
    expect(await advance(here, what, { kind: 'settled', proof, leaseMs: LEASE })).toMatchObject({
      kind: 'ok',
      charge: { state: 'settled', proof },
    });
  });

  test('behaviour: if two changes of one version come at once, the second is decided on what the first one made', async () => {
    const what = await claim(1);
    const [released, started] = await Promise.all([
      advance(here, what, { kind: 'released', reason: 'client_gone' }),
      advance(here, what, START),
    ]);
    expect([released, started]).toMatchObject([{ kind: 'ok' }, { kind: 'conflict', because: 'not_owner' }]);
  });

  test('behaviour: a charge whose lease was renewed is no other version', async () => {
    const what = await claim(1);
    expect(await elsewhere.renew('run', [what.id], 10 * LEASE)).toEqual([what.id]);
    const started = await advance(here, what, START);
    expect(started).toMatchObject({ kind: 'ok', charge: { state: 'settling' } });
  });

  test('behaviour: a change that is called again is the same change', async () => {
    const what = await claim(1);
    const first = await advance(here, what, START, 'the change');
    const again = await advance(here, what, START, 'the change');
    expect(again).toEqual(first);
    expect(await advance(here, what, { kind: 'released', reason: 'x' })).toMatchObject({ because: 'wrong_state' });
  });
});

describe('rules of the store', () => {
  test('attack: one transfer does not prove two charges, where it is known which one it is', async () => {
    const [first, second, third] = [await claim(1), await claim(2), await claim(3)];
    for (const what of [first, second, third]) await advance(here, what, START);
    const { transaction } = proofOf(first);
    const settled = (what: Claim, logIndex: number | null) =>
      advance(here, what, { kind: 'settled', proof: proofOf(what, { transaction, logIndex }), leaseMs: LEASE });
    expect(await settled(first, 3)).toMatchObject({ kind: 'ok' });
    expect(await settled(second, 3)).toMatchObject({ kind: 'conflict', because: 'proof_used' });
    expect(await here.findByChargeId(second.id)).toMatchObject({ state: 'settling', proof: null });
    // A facilitator's word names a transaction alone, and that may hold both.
    expect(await settled(second, null)).toMatchObject({ kind: 'ok' });
    expect(await settled(third, null)).toMatchObject({ kind: 'ok' });
  });

  test('behaviour: transactions that differ in a letter are two, hexadecimal or not', async () => {
    const names = ['0xab12', 'ab12', '0ab12', '0xab1', '0xab12g', 'AB12', '5xab12'];
    for (const [n, transaction] of names.entries()) {
      const what = await claim(n);
      await advance(here, what, START);
      const proof = { ...proofOf(what), transaction, logIndex: 1 };
      expect(await advance(here, what, { kind: 'settled', proof, leaseMs: LEASE }), transaction).toMatchObject({
        kind: 'ok',
        charge: { proof: { transaction } },
      });
    }
  });

  test('behaviour: a claim that settles at once is one write, and counted as settling', async () => {
    const options = { owner: 'run/one', leaseMs: LEASE, maxUnsettledPerPayer: 8, changeId: 'one', settleVia: 'first' };
    expect(await here.claim(claimOf(1), options)).toMatchObject({ kind: 'claimed', charge: { state: 'settling' } });
    expect(await here.countByState()).toMatchObject({ claimed: 0, settling: 1 });
    expect((await here.due(10)).length).toBe(0);
  });

  test('behaviour: the ledger’s counts and sums are those of its rows, whichever way a charge went', async () => {
    const all = await Promise.all([1, 2, 3, 4].map(claim));
    await Promise.all(
      all.map(async (what, index) => {
        const ledger = index % 2 === 0 ? here : elsewhere;
        await advance(ledger, what, START);
        await advance(ledger, what, { kind: 'settled', proof: proofOf(what), leaseMs: LEASE });
      }),
    );
    await advance(here, all[0] ?? claimOf(1), { kind: 'delivered', partial: false });
    expect(await here.countByState()).toMatchObject({ claimed: 0, settling: 0, settled: 3, delivered: 1 });
    const hour = 3_600_000;
    const query = { fromMs: Date.now() - hour, toMs: Date.now() + hour, bucket: 'total', limit: 10 } as const;
    const summary = await here.summary(query);
    const amount = all.reduce((sum, { amount: each }) => sum + each, 0n);
    expect(summary).toMatchObject({ kind: 'sums', sums: [{ charges: 4, amount }] });
  });

  test('behaviour: a delivery is written soon, though nobody asks for anything', async () => {
    const what = await claim(1);
    await advance(here, what, START);
    await advance(here, what, { kind: 'settled', proof: proofOf(what), leaseMs: LEASE });
    expect(await advance(here, what, { kind: 'delivered', partial: false })).toMatchObject({ kind: 'ok' });
    const db = new DatabaseSync(file, { readOnly: true });
    expect(db.prepare('SELECT state FROM charges').all()).toEqual([{ state: 'delivered' }]);
    db.close();
  });

  test('behaviour: whoever asks after a delivery is told of it', async () => {
    const what = await claim(1);
    await advance(here, what, START);
    await advance(here, what, { kind: 'settled', proof: proofOf(what), leaseMs: LEASE });
    const delivered = advance(here, what, { kind: 'delivered', partial: false });
    expect(await here.find(what.payment)).toMatchObject({ state: 'delivered' });
    await delivered;
  });

  test('behaviour: closing a ledger writes what nobody waits for', async () => {
    const what = await claim(1);
    await advance(here, what, START);
    await advance(here, what, { kind: 'settled', proof: proofOf(what), leaseMs: LEASE });
    const delivered = advance(here, what, { kind: 'delivered', partial: false });
    await here.close();
    expect((await delivered).kind).toBe('ok');
    expect(await elsewhere.findByChargeId(what.id)).toMatchObject({ state: 'delivered' });
  });
});
