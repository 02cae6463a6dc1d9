// The state machine of a charge: every state against every event in one table, and any sequence of claims and events
// against rules that are written here once more, by what must never happen.
import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { canonicalPayment, canonicalTransaction, type Charge, type ChargeState } from '../../src/domain/charge.ts';
import {
  ASKS,
  CLAIMS,
  decideClaim,
  REPEATS,
  REDEEM_MS,
  standing,
  type ClaimOptions,
} from '../../src/domain/standing.ts';
import { transition, type ChargeEvent } from '../../src/domain/transition.ts';
import { ASSET, claimOf, hash32, proofOf, sha256 } from '../cases/claims.ts';

const NOW = 1_800_000_000_000;
const LEASE = 60_000;
const OPTIONS: ClaimOptions = { owner: 'me', leaseMs: LEASE, maxUnsettledPerPayer: 8 };
const CLAIM = claimOf(1);
const presented = { credentialSha256: CLAIM.credentialSha256, ...CLAIM.request };

function claimed(at = NOW): Charge {
  const result = decideClaim({ existing: undefined, idTaken: false, unsettled: 0 }, CLAIM, OPTIONS, at);
  if (result.kind !== 'claimed') throw new Error(result.kind);
  return result.charge;
}

function after(events: readonly ChargeEvent[], start = claimed()): Charge {
  return events.reduce((charge, event) => {
    const moved = transition(charge, event, { owner: 'me' }, NOW);
    if (!moved.ok) throw new Error(`${event.kind}: ${moved.because}`);
    return moved.charge;
  }, start);
}

const started: ChargeEvent = { kind: 'settle_started', leaseMs: LEASE };
const settled: ChargeEvent = { kind: 'settled', proof: proofOf(CLAIM), leaseMs: LEASE };
const answer = { status: 200, headers: [], body: Uint8Array.of(1) };

const IN_STATE: Record<ChargeState, Charge> = {
  claimed: claimed(),
  settling: after([started]),
  settled: after([started, settled]),
  delivered: after([started, settled, { kind: 'delivered' }]),
  released: after([{ kind: 'released', reason: 'upstream_500' }]),
  failed: after([started, { kind: 'failed', by: 'operator', reason: 'x' }]),
};

const EVENTS: Record<string, ChargeEvent> = {
  settle_started: started,
  settled,
  refused: { kind: 'settle_refused', reason: 'no', final: true, retryInMs: 5 },
  unknown: { kind: 'settle_unknown', reason: 'timeout', retryInMs: 5 },
  released: { kind: 'released', reason: 'gone' },
  delivered: { kind: 'delivered' },
  answer_kept: { kind: 'answer_kept', answer },
  undelivered: { kind: 'undelivered', because: 'upstream_failed' },
  redeem: { kind: 'redeem_started', presented, leaseMs: LEASE },
  taken_over: { kind: 'taken_over', leaseMs: LEASE, early: true },
  renewed: { kind: 'lease_renewed', leaseMs: LEASE },
  operator: { kind: 'failed', by: 'operator', reason: 'x' },
  chain: { kind: 'failed', by: 'chain', chainTime: CLAIM.terms.validBefore + 1n, reason: 'expired' },
};

describe('one event', () => {
  // By the owner, while its lease runs: the state it leads to, or why not.
  const TABLE = `
    event           claimed        settling       settled        delivered    released     failed
    settle_started  settling       wrong_state    wrong_state    not_owner    not_owner    not_owner
    settled         wrong_state    settled        wrong_state    not_owner    not_owner    not_owner
    refused         wrong_state    failed         wrong_state    not_owner    not_owner    not_owner
    unknown         wrong_state    settling       wrong_state    not_owner    not_owner    not_owner
    released        released       wrong_state    wrong_state    not_owner    not_owner    not_owner
    delivered       wrong_state    wrong_state    delivered      not_owner    not_owner    not_owner
    answer_kept     wrong_state    settling       settled        not_owner    not_owner    not_owner
    undelivered     wrong_state    wrong_state    settled        not_owner    not_owner    not_owner
    redeem          wrong_state    wrong_state    lease_running  wrong_state  wrong_state  wrong_state
    taken_over      lease_running  lease_running  wrong_state    wrong_state  wrong_state  wrong_state
    renewed         claimed        settling       settled        not_owner    not_owner    not_owner
    operator        wrong_state    failed         wrong_state    not_owner    not_owner    not_owner
    chain           wrong_state    failed         wrong_state    not_owner    not_owner    not_owner`;
  const [head = [], ...rows] = TABLE.trim()
    .split('\n')
    .map((line) => line.trim().split(/\s+/));
  const cases = rows.flatMap(([event = '', ...ends]) =>
    ends.map((end, index) => [event, head[index + 1] as ChargeState, end] as const),
  );

  test('behaviour: the table knows every event and every state', () => {
    expect(rows.map(([event]) => event)).toEqual(Object.keys(EVENTS));
    expect(head.slice(1)).toEqual(Object.keys(IN_STATE));
  });

  test.each(cases)('behaviour: %s in %s is %s', (event, state, end) => {
    const moved = transition(IN_STATE[state], EVENTS[event]!, { owner: 'me' }, NOW + 1);
    expect(moved.ok ? moved.charge.state : moved.because).toBe(end);
  });

  test.each(cases)('refuses: %s in %s by somebody else', (event, state) => {
    const moved = transition(IN_STATE[state], EVENTS[event]!, { owner: 'you' }, NOW + 1);
    expect(moved.ok).toBe(false);
  });

  test('behaviour: a renewal renews, whatever change id it carries', () => {
    const charge = { ...IN_STATE.claimed, changeId: 'c' };
    const moved = transition(charge, EVENTS['renewed']!, { owner: 'me', changeId: 'c' }, NOW + 10);
    expect(moved).toMatchObject({ ok: true, charge: { leaseUntil: NOW + 10 + LEASE, changeId: 'c' } });
  });

  test('behaviour: a reason is cut, and is text', () => {
    const { reason } = after([{ kind: 'released', reason: `${'x'.repeat(199)}\u{1f600}` }]);
    expect(reason).toBe(`${'x'.repeat(199)}\ufffd`);
  });

  test('behaviour: a lease is over at its end, not before', () => {
    const take = (at: number): string => {
      const moved = transition(IN_STATE.settling, EVENTS['taken_over']!, { owner: 'you' }, at);
      return moved.ok ? `${moved.charge.owner} ${moved.charge.attempts}` : moved.because;
    };
    expect([take(NOW + LEASE - 1), take(NOW + LEASE)]).toEqual(['lease_running', 'you 1']);
    expect(standing(IN_STATE.claimed, presented, NOW + LEASE - 1)).toBe('in_use');
    expect(standing(IN_STATE.claimed, presented, NOW + LEASE)).toBe('claimable');
  });

  test('refuses: to fail by the chain until its time is past the end of the authorization', () => {
    const fail = (chainTime: bigint): boolean =>
      transition(IN_STATE.settling, { kind: 'failed', by: 'chain', chainTime, reason: 'x' }, { owner: 'me' }, NOW).ok;
    const { validBefore } = CLAIM.terms;
    expect([fail(validBefore - 1n), fail(validBefore), fail(validBefore + 1n)]).toEqual([false, false, true]);
  });

  test('attack: after a settlement that may have been sent no refusal fails a charge', () => {
    const refusal: ChargeEvent = { kind: 'settle_refused', reason: 'insufficient_balance', final: true, retryInMs: 5 };
    const lost = transition(IN_STATE.settling, EVENTS['taken_over']!, { owner: 'me' }, NOW + LEASE);
    const unknown = transition(IN_STATE.settling, EVENTS['unknown']!, { owner: 'me' }, NOW);
    const again = unknown.ok ? transition(unknown.charge, EVENTS['taken_over']!, { owner: 'me' }, NOW) : unknown;
    for (const before of [lost, again]) {
      const moved = before.ok ? transition(before.charge, refusal, { owner: 'me' }, NOW + LEASE) : before;
      expect(moved).toMatchObject({ ok: true, charge: { state: 'settling', owner: null, attempts: 2 } });
    }
    const doubtful = transition(IN_STATE.settling, { ...refusal, final: false }, { owner: 'me' }, NOW);
    expect(doubtful).toMatchObject({ ok: true, charge: { state: 'settling', attempts: 1, nextTryAt: NOW + 5 } });
  });

  test('behaviour: ten minutes to fetch an answer, counted from when it stopped arriving', () => {
    const streamed = after([started, settled, { kind: 'lease_renewed', leaseMs: 50 * LEASE }]);
    const broken = transition(streamed, { kind: 'answer_kept', answer }, { owner: 'me' }, NOW + 30 * LEASE);
    if (!broken.ok) throw new Error(broken.because);
    const until = NOW + 30 * LEASE + REDEEM_MS;
    expect([until - 1, until].map((at) => standing(broken.charge, presented, at))).toEqual([
      'redeemable',
      'already_paid',
    ]);
    // Fetching it and failing again does not begin the time anew.
    const taken = transition(
      broken.charge,
      { kind: 'redeem_started', presented, leaseMs: 1 },
      { owner: 'you' },
      until - 2,
    );
    const failed = taken.ok
      ? transition(taken.charge, { kind: 'undelivered', because: 'answer_lost' }, { owner: 'you' }, until - 1)
      : taken;
    expect(failed.ok && standing(failed.charge, presented, until)).toBe('already_paid');
  });
});

describe('a payment', () => {
  const key = {
    network: 'base-sepolia',
    asset: ASSET,
    payer: `0x${'aB'.repeat(20)}`,
    nonce: hash32(10).replace('a', 'A'),
  };

  test('attack: fifty spellings of one payment are one', () => {
    const spell = (text: string, n: number): string =>
      text.replace(/[a-f]/gi, (letter, at: number) =>
        (n >> (at % 5)) & 1 ? letter.toUpperCase() : letter.toLowerCase(),
      );
    const keys = Array.from({ length: 50 }, (_, n) =>
      canonicalPayment({
        network: n % 2 === 0 ? 'base-sepolia' : 'eip155:84532',
        asset: spell(key.asset, n),
        payer: spell(key.payer, n),
        nonce: spell(key.nonce, n).replace(/^0x/, n % 7 === 0 ? '0X' : '0x'),
      }),
    );
    expect(new Set(keys.map((each) => JSON.stringify(each))).size).toBe(1);
    expect(keys[0]).toEqual({
      network: 'eip155:84532',
      asset: ASSET.toLowerCase(),
      payer: `0x${'ab'.repeat(20)}`,
      nonce: hash32(10),
    });
  });

  test.each([
    { network: 'eip155:084532' },
    { network: 'solana' },
    { asset: 'USDC' },
    { asset: `${ASSET} ` },
    { payer: key.payer.slice(2) },
    { payer: `${key.payer}0` },
    { nonce: key.nonce.slice(0, -1) },
    { nonce: '0xa' },
    { nonce: '10' },
    { nonce: `${key.nonce}\n` },
  ])('refuses: %j', (part) => {
    expect(canonicalPayment({ ...key, ...part })).toBeUndefined();
  });

  test('attack: a transaction has one spelling', () => {
    expect(canonicalTransaction('0XAbC')).toBe('0xabc');
    expect(canonicalTransaction('5VERv8NMvzbJMEkV8xnrLkEaWRtSz9CosKDYjCJjBRnb')).toBe(
      '5VERv8NMvzbJMEkV8xnrLkEaWRtSz9CosKDYjCJjBRnb',
    );
  });
});

describe('any sequence', () => {
  const WAYS: Record<ChargeState, readonly ChargeState[]> = {
    claimed: ['claimed', 'settling', 'released'],
    settling: ['settling', 'settled', 'failed'],
    settled: ['settled', 'delivered'],
    delivered: [],
    released: ['claimed'],
    failed: [],
  };
  const moves = fc.array(
    fc.record({
      owner: fc.constantFrom('a', 'b'),
      passMs: fc.constantFrom(0, 0, 0, 1, LEASE, REDEEM_MS),
      what: fc.constantFrom(
        'lost',
        'claim',
        'claim',
        'other',
        ...Object.keys(EVENTS),
        'settle_started',
        'settled',
        'redeem',
        'taken_over',
      ),
    }),
    { minLength: 5, maxLength: 60 },
  );

  test('behaviour: nothing that must never happen happens', () => {
    fc.assert(
      fc.property(moves, (all) => {
        let now = NOW;
        let charge: Charge | undefined;
        let sends = 0;
        for (const { owner, passMs, what } of all) {
          now += passMs;
          const before = charge;
          charge = play(charge, what, owner, now);
          if (charge === undefined || charge === before) continue;
          if (before === undefined) expect(charge.state).toBe('claimed');
          else {
            expect(WAYS[before.state]).toContain(charge.state);
            // While somebody's lease runs, nobody else changes anything.
            if (before.leaseUntil > now && before.owner !== null) expect(owner).toBe(before.owner);
            if (before.state !== 'settling' && charge.state === 'settling') sends++;
            if (charge.failedBy === 'refusal') expect(before.attempts).toBe(0);
          }
          expect(sends).toBeLessThanOrEqual(1);
          expect(charge.claims).toBeLessThanOrEqual(CLAIMS);
          expect(charge.asks).toBeLessThanOrEqual(ASKS);
          expect(charge.repeats).toBeLessThanOrEqual(REPEATS);
          const paid = charge.state === 'settled' || charge.state === 'delivered';
          const open = charge.state === 'claimed' || charge.state === 'settling';
          expect(charge.proof !== null).toBe(paid);
          expect(charge.settledAt !== null).toBe(paid);
          expect(charge.credential !== null).toBe(open);
          if (!open && charge.state !== 'settled') expect([charge.owner, charge.answer]).toEqual([null, null]);
          if (charge.state === 'settling' && charge.owner === null) expect(charge.nextTryAt).not.toBeNull();
          if (charge.owner !== null) expect(charge.nextTryAt).toBeNull();
        }
      }),
      { numRuns: 3000 },
    );
  });

  function play(charge: Charge | undefined, what: string, owner: string, now: number): Charge | undefined {
    if (what === 'claim' || what === 'other') {
      const credential = what === 'claim' ? CLAIM.credential : 'b3RoZXI=';
      const claim = { ...CLAIM, credential, credentialSha256: sha256(credential) };
      const result = decideClaim({ existing: charge, idTaken: false, unsettled: 0 }, claim, { ...OPTIONS, owner }, now);
      return result.kind === 'claimed' ? result.charge : charge;
    }
    if (charge === undefined) return undefined;
    const event: ChargeEvent = what === 'lost' ? { kind: 'undelivered', because: 'answer_lost' } : EVENTS[what]!;
    const moved = transition(charge, event, { owner }, now);
    return moved.ok ? moved.charge : charge;
  }
});
