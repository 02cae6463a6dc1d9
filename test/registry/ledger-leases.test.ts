// Leases on SQLite: those of a process that is gone are over when it starts again on its own file, those of sidecars are
// not; a clock that is set ends none; and what is known here of a lease that was renewed is believed by nobody but its owner.
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { Claim } from '../../src/domain/payment/charge.ts';
import { ownerOf } from '../../src/domain/payment/ledger.ts';
import { createLog } from '../../src/host/log.ts';
import { openLedger, type SqliteLedger } from '../support/sqlite-ledger.ts';
import { claimOf, proofOf } from '../cases/claims.ts';
import { temporaryFolder } from './kit.ts';

const log = createLog('error', () => undefined, Date.now);
const LEASE = 10_000;
const HOUR = 3_600_000;

let file: string;
let remove: () => void;
let offset = 0;
const ledgers: SqliteLedger[] = [];

beforeEach(() => {
  const made = temporaryFolder();
  remove = made.remove;
  file = join(made.folder, 'ledger.db');
  offset = 0;
});
afterEach(async () => {
  await Promise.all(ledgers.splice(0).map((ledger) => ledger.close()));
  remove();
});

const open = (alone: boolean): SqliteLedger => {
  const ledger = openLedger(file, { now: () => Date.now() + offset, log, alone });
  ledgers.push(ledger);
  return ledger;
};

type State = 'claimed' | 'settling' | 'settled';
const take = async (ledger: SqliteLedger, n: number, state: State, run = ledger.run): Promise<Claim> => {
  const what = claimOf(n);
  const owner = ownerOf(run, `request ${n}`);
  expect((await ledger.claim(what, { owner, leaseMs: LEASE, maxUnsettledPerPayer: 8 })).kind).toBe('claimed');
  if (state !== 'claimed')
    await ledger.advance(what.id, { kind: 'settle_started', via: 'f', leaseMs: LEASE }, { owner });
  if (state === 'settled')
    await ledger.advance(what.id, { kind: 'settled', proof: proofOf(what), leaseMs: LEASE }, { owner });
  return what;
};
const kindOf = async (ledger: SqliteLedger, what: Claim): Promise<string> =>
  (await ledger.claim(what, { owner: 'other/one', leaseMs: LEASE, maxUnsettledPerPayer: 8 })).kind;

describe('a process that starts again on its own file', () => {
  test('behaviour: after a restart on the same file whoever asks again is served at once; a sidecar keeps what it works on', async () => {
    const first = open(true);
    const [claimed, settling, settled] = [
      await take(first, 1, 'claimed'),
      await take(first, 2, 'settling'),
      await take(first, 3, 'settled'),
    ];
    const theirs = [
      await take(first, 4, 'claimed', 'sidecar-x'),
      await take(first, 5, 'settling', 'sidecar-x'),
      await take(first, 6, 'settled', 'sidecar-x'),
    ];
    const again = open(true);
    for (const what of theirs) expect(await kindOf(again, what)).toBe('in_use');
    expect((await again.due(10)).map(({ id }) => id)).toEqual([claimed.id, settling.id]);
    expect([await kindOf(again, claimed), await kindOf(again, settling), await kindOf(again, settled)]).toEqual([
      'claimed',
      'unfinished',
      'redeemable',
    ]);
    // Of the run that is on nothing is taken, though its process opens the file once more.
    const mine = await take(again, 7, 'claimed');
    await again.due(1);
    expect(await kindOf(again, mine)).toBe('in_use');
  });

  test('behaviour: a command beside a running process ends none of its leases', async () => {
    const server = open(true);
    const what = await take(server, 1, 'settling');
    expect(await kindOf(open(false), what)).toBe('in_use');
  });
});

describe('a clock that is set', () => {
  test.each([HOUR, -HOUR, 24 * HOUR])(
    'attack: a clock that is set by %d ms neither ends a lease nor makes one longer',
    async (step) => {
      const ledger = open(true);
      const all = [
        await take(ledger, 1, 'claimed'),
        await take(ledger, 2, 'settling'),
        await take(ledger, 3, 'settled'),
      ];
      offset += step;
      for (const what of all) expect(await kindOf(ledger, what)).toBe('in_use');
      expect(await ledger.due(10)).toEqual([]);
      for (const { id } of all) {
        const { leaseUntil = 0 } = (await ledger.findByChargeId(id)) ?? {};
        expect(leaseUntil - (Date.now() + offset)).toBeLessThanOrEqual(LEASE + 1_000);
      }
    },
  );
});

describe('a lease that was renewed', () => {
  test('attack: nobody takes a charge over because of what was known of its lease before it was renewed', async () => {
    const ledger = open(false);
    const what = await take(ledger, 1, 'settling');
    await ledger.renew(ledger.run, [what.id], 10 * LEASE);
    offset += 2 * LEASE;
    const taken = await ledger.advance(what.id, { kind: 'taken_over', leaseMs: LEASE }, { owner: 'other/one' });
    expect(taken).toMatchObject({ kind: 'conflict', because: 'lease_running' });
  });
});
