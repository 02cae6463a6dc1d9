// The state machine of a charge: every state against every event in one table, and any sequence of claims and events
// against rules that are written here once more, by what must never happen.
import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { Charge, ChargeState } from '../../../src/domain/payment/charge.ts';
import {
  ASK_AGAIN,
  ASKS,
  CLAIMS,
  decideClaim,
  owedBecauseOf,
  presentedBy,
  REDEEM_MS,
  paymentStatus,
  type ClaimOptions,
} from '../../../src/domain/payment/claim-policy.ts';
import { transition, type ChargeEvent } from '../../../src/domain/payment/transition.ts';
import { claimOf, proofOf, requestOf, sha256 } from '../../cases/claims.ts';
import { takesPlace } from '../../support/memory-ledger.ts';

const NOW = 1_800_000_000_000;
const LEASE = 60_000;
const OPTIONS: ClaimOptions = { owner: 'me', leaseMs: LEASE, maxUnsettledPerPayer: 8 };
const CLAIM = claimOf(1);
const presented = presentedBy(CLAIM);

function claimed(at = NOW): Charge {
  const result = decideClaim(undefined, CLAIM, OPTIONS, at);
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

const started: ChargeEvent = { kind: 'settle_started', via: 'first', leaseMs: LEASE };
const settled: ChargeEvent = { kind: 'settled', proof: proofOf(CLAIM), leaseMs: LEASE };
const answer = { status: 200, headers: [], body: Uint8Array.of(1) };

const IN_STATE: Record<ChargeState, Charge> = {
  claimed: claimed(),
  settling: after([started]),
  settled: after([started, settled]),
  delivered: after([started, settled, { kind: 'delivered', partial: false }]),
  released: after([{ kind: 'released', reason: 'upstream_500' }]),
  failed: after([started, { kind: 'failed', by: 'operator', reason: 'x' }]),
};

const EVENTS: Record<string, ChargeEvent> = {
  settle_started: started,
  not_carried_out: { kind: 'not_carried_out', reason: 'breaker_open' },
  settled,
  operator_settled: { kind: 'settled', proof: proofOf(CLAIM), leaseMs: 0, by: 'operator' },
  refused: { kind: 'settle_refused', reason: 'no' },
  unknown: { kind: 'settle_unknown', reason: 'timeout', lookInMs: 5 },
  look: { kind: 'looked', at: 'start', search: null, lookInMs: 5, reason: 'payment_unused' },
  looked: { kind: 'looked', at: 'end', search: { block: '12' }, lookInMs: 5, reason: 'payment_unused' },
  released: { kind: 'released', reason: 'gone' },
  delivered: { kind: 'delivered', partial: false },
  partial: { kind: 'delivered', partial: true },
  refunded: { kind: 'refunded', note: 'by hand' },
  answer_kept: { kind: 'answer_kept', answer, headSent: true },
  undelivered: { kind: 'undelivered', because: 'upstream_failed', headSent: false },
  redeem: { kind: 'redeem_started', request: presented, leaseMs: LEASE },
  taken_over: { kind: 'taken_over', leaseMs: LEASE },
  operator: { kind: 'failed', by: 'operator', reason: 'x' },
  chain: { kind: 'failed', by: 'chain', reason: 'expired' },
};

describe('one event', () => {
  // By the owner, while its lease runs: the state it leads to, or why not.
  const TABLE = `
    event            claimed        settling       settled        delivered    released     failed
    settle_started   settling       settling       wrong_state    not_owner    not_owner    not_owner
    not_carried_out  wrong_state    released       wrong_state    not_owner    not_owner    not_owner
    settled          wrong_state    settled        wrong_state    wrong_state  wrong_state  wrong_state
    operator_settled wrong_state    settled        wrong_state    wrong_state  wrong_state  settled
    refused          wrong_state    failed         wrong_state    not_owner    not_owner    not_owner
    unknown          wrong_state    settling       wrong_state    not_owner    not_owner    not_owner
    look             wrong_state    lease_running  wrong_state    wrong_state  wrong_state  wrong_state
    looked           wrong_state    settling       wrong_state    wrong_state  wrong_state  wrong_state
    released         released       wrong_state    wrong_state    not_owner    not_owner    not_owner
    delivered        wrong_state    wrong_state    delivered      not_owner    not_owner    not_owner
    partial          wrong_state    wrong_state    wrong_state    wrong_state  wrong_state  wrong_state
    refunded         wrong_state    wrong_state    lease_running  delivered    wrong_state  wrong_state
    answer_kept      wrong_state    settling       settled        not_owner    not_owner    not_owner
    undelivered      wrong_state    wrong_state    settled        not_owner    not_owner    not_owner
    redeem           wrong_state    wrong_state    lease_running  wrong_state  wrong_state  wrong_state
    taken_over       lease_running  lease_running  wrong_state    wrong_state  wrong_state  wrong_state
    operator         wrong_state    failed         wrong_state    wrong_state  wrong_state  wrong_state
    chain            wrong_state    failed         wrong_state    wrong_state  wrong_state  wrong_state`;
  // By anybody else, once that lease is over.
  const OTHERS = `
    event            claimed        settling       settled        delivered    released     failed
    settle_started   not_owner      not_owner      not_owner      not_owner    not_owner    not_owner
    not_carried_out  not_owner      not_owner      not_owner      not_owner    not_owner    not_owner
    settled          wrong_state    settled        wrong_state    wrong_state  wrong_state  wrong_state
    operator_settled wrong_state    settled        wrong_state    wrong_state  wrong_state  settled
    refused          not_owner      not_owner      not_owner      not_owner    not_owner    not_owner
    unknown          not_owner      not_owner      not_owner      not_owner    not_owner    not_owner
    look             wrong_state    settling       wrong_state    wrong_state  wrong_state  wrong_state
    looked           wrong_state    settling       wrong_state    wrong_state  wrong_state  wrong_state
    released         not_owner      not_owner      not_owner      not_owner    not_owner    not_owner
    delivered        not_owner      not_owner      not_owner      not_owner    not_owner    not_owner
    partial          wrong_state    wrong_state    wrong_state    wrong_state  wrong_state  wrong_state
    refunded         wrong_state    wrong_state    settled        delivered    wrong_state  wrong_state
    answer_kept      not_owner      not_owner      not_owner      not_owner    not_owner    not_owner
    undelivered      not_owner      not_owner      not_owner      not_owner    not_owner    not_owner
    redeem           wrong_state    wrong_state    settled        wrong_state  wrong_state  wrong_state
    taken_over       released       settling       wrong_state    wrong_state  wrong_state  wrong_state
    operator         wrong_state    failed         wrong_state    wrong_state  wrong_state  wrong_state
    chain            wrong_state    failed         wrong_state    wrong_state  wrong_state  wrong_state`;
  const read = (table: string): { events: string[]; states: string[]; cases: [string, ChargeState, string][] } => {
    const [head = [], ...rows] = table
      .trim()
      .split('\n')
      .map((line) => line.trim().split(/\s+/));
    const cases = rows.flatMap(([event = '', ...ends]) =>
      ends.map((end, index): [string, ChargeState, string] => [event, head[index + 1] as ChargeState, end]),
    );
    return { events: rows.map(([event = '']) => event), states: head.slice(1), cases };
  };

  test.each([TABLE, OTHERS])('behaviour: the tables know every event and every state', (table) => {
    expect(read(table).events).toEqual(Object.keys(EVENTS));
    expect(read(table).states).toEqual(Object.keys(IN_STATE));
  });

  test.each(read(TABLE).cases)('behaviour: a charge after %s in %s is %s', (event, state, end) => {
    const moved = transition(IN_STATE[state], EVENTS[event]!, { owner: 'me' }, NOW + 1);
    expect(moved.ok ? moved.charge.state : moved.because).toBe(end);
  });

  test.each(read(TABLE).cases)(
    'refuses: a change of a charge, %s in %s, by somebody else while the lease runs',
    (event, state) => {
      const moved = transition(IN_STATE[state], EVENTS[event]!, { owner: 'you' }, NOW + 1);
      // An operator's word is about what nobody works on, and what a look searched is kept beside who works on it.
      const isKept = `${event} ${state}`;
      expect(moved.ok).toBe(['operator_settled failed', 'refunded delivered', 'looked settling'].includes(isKept));
    },
  );

  test.each(read(OTHERS).cases)(
    'behaviour: a charge after %s in %s by somebody else after its lease is %s',
    (event, state, end) => {
      const moved = transition(IN_STATE[state], EVENTS[event]!, { owner: 'you' }, NOW + LEASE);
      expect(moved.ok ? moved.charge.state : moved.because).toBe(end);
    },
  );

  test('behaviour: the reason of a charge is cut, and is text', () => {
    const { reason } = after([{ kind: 'released', reason: `${'x'.repeat(199)}\u{1f600}` }]);
    expect(reason).toBe(`${'x'.repeat(199)}\ufffd`);
  });

  test('behaviour: a lease is over at its end, not before', () => {
    const take = (at: number): string => {
      const moved = transition(IN_STATE.settling, EVENTS['taken_over']!, { owner: 'you' }, at);
      return moved.ok ? `${moved.charge.owner} ${moved.charge.attempts}` : moved.because;
    };
    expect([take(NOW + LEASE - 1), take(NOW + LEASE)]).toEqual(['lease_running', 'you 1']);
    expect(paymentStatus(IN_STATE.claimed, presented, NOW + LEASE - 1)).toBe('in_use');
    expect(paymentStatus(IN_STATE.claimed, presented, NOW + LEASE)).toBe('claimable');
  });

  /** What a row of somebody else's says after `event`s of its owner and then of others. */
  const play = (steps: readonly [ChargeEvent, string, number][], start = claimed()): Charge =>
    steps.reduce((charge, [event, owner, at]) => {
      const moved = transition(charge, event, { owner }, at);
      if (!moved.ok) throw new Error(`${event.kind}: ${moved.because}`);
      return moved.charge;
    }, start);

  test('attack: after a settlement that may have been sent no refusal fails a charge, and nothing releases it', () => {
    const take: [ChargeEvent, string, number] = [EVENTS['taken_over']!, 'you', NOW + LEASE];
    const lost = play([[started, 'me', NOW], take]);
    const unknown = play([[started, 'me', NOW], [EVENTS['unknown']!, 'me', NOW], take]);
    for (const before of [lost, unknown]) {
      expect(before).toMatchObject({ state: 'settling', owner: 'you', attempts: 1, via: 'first' });
      const refused = play([[EVENTS['refused']!, 'you', NOW + LEASE]], before);
      expect(refused).toMatchObject({ state: 'settling', owner: null, attempts: 2 });
      const notSent = play([[EVENTS['not_carried_out']!, 'you', NOW + LEASE]], before);
      expect(notSent).toMatchObject({ state: 'settling', owner: null, attempts: 1, credential: CLAIM.credential });
      const next: ChargeEvent = { kind: 'settle_started', via: 'second', leaseMs: LEASE };
      // Only the first one may remember what it did.
      expect(play([[next, 'you', NOW + LEASE]], before).via).toBe('first');
    }
    const second = play([
      [started, 'me', NOW],
      [{ kind: 'settle_started', via: 'second', leaseMs: LEASE }, 'me', NOW],
    ]);
    expect(second.via).toBe('second');
  });

  test('behaviour: a charge that was not carried out is free again, and settles again when it is claimed anew', () => {
    const released = after([started, EVENTS['not_carried_out']!]);
    expect(released).toMatchObject({ state: 'released', credential: null, owner: null, reason: 'breaker_open' });
    const again = decideClaim(released, CLAIM, OPTIONS, NOW + 1);
    expect(again).toMatchObject({
      kind: 'claimed',
      charge: { claims: 2, via: null, claimedAt: NOW + 1, createdAt: NOW },
    });
  });

  test('behaviour: a look moves the time of the next one, so that one process looks, and takes nothing', () => {
    const unknown = play([
      [started, 'me', NOW],
      [EVENTS['unknown']!, 'me', NOW],
    ]);
    expect(transition(unknown, EVENTS['look']!, { owner: 'r' }, NOW + 4)).toEqual({ ok: false, because: 'not_due' });
    const looking = play([[EVENTS['look']!, 'r', NOW + 5]], unknown);
    expect(looking).toMatchObject({ owner: null, looks: 1, lookAt: NOW + 10, search: null });
    expect(transition(looking, EVENTS['look']!, { owner: 's' }, NOW + 6)).toEqual({ ok: false, because: 'not_due' });
    const looked = play([[EVENTS['looked']!, 'r', NOW + 6]], looking);
    expect(looked).toMatchObject({ owner: null, looks: 1, lookAt: NOW + 11, search: { block: '12' }, attempts: 1 });
    expect(play([[{ ...EVENTS['looked']!, search: null } as ChargeEvent, 'r', NOW + 7]], looked).search).toEqual({
      block: '12',
    });
    // Its payer needs not wait for the next look; and what somebody works on is not looked at.
    const taken = play([[EVENTS['taken_over']!, 'you', NOW + 7]], looked);
    expect(taken).toMatchObject({ owner: 'you', lookAt: null, search: { block: '12' } });
    for (const event of ['look', 'settled', 'operator_settled', 'chain', 'operator'])
      expect(transition(taken, EVENTS[event]!, { owner: 'r' }, NOW + 8), event).toMatchObject({
        because: 'lease_running',
      });
  });

  const ended = (search: Charge['search']): ChargeEvent => ({
    ...{ kind: 'looked', at: 'end', search, lookInMs: 5, reason: 'payment_used' },
  });

  test('behaviour: a search of the chain is kept beside a request that has the charge, and nothing else of the charge changes', () => {
    const taken = transition(
      after([started, EVENTS['unknown']!]),
      EVENTS['taken_over']!,
      { owner: 'you', changeId: 'taking it' },
      NOW,
    );
    if (!taken.ok) throw new Error(taken.because);
    const written = transition(taken.charge, ended({ next: '7' }), { owner: 'r', changeId: 'looking' }, NOW + 1);
    // The owner may have had no answer yet, and ask once more.
    expect(written).toEqual({ ok: true, charge: { ...taken.charge, search: { next: '7' }, updatedAt: NOW + 1 } });
    expect(transition(taken.charge, ended(null), { owner: 'r' }, NOW + 1)).toMatchObject({ because: 'lease_running' });
  });

  test('behaviour: a settlement of unknown end keeps what its request searched', () => {
    const unknown: ChargeEvent = { ...(EVENTS['unknown'] as ChargeEvent & { kind: 'settle_unknown' }) };
    expect(after([started, { ...unknown, search: { next: '7' } }]).search).toEqual({ next: '7' });
    // An older process says nothing of it.
    const kept = { ...after([started]), search: { next: '7' } };
    expect(after([unknown], kept).search).toEqual({ next: '7' });
  });

  test.each<[string, Charge['search'], Charge['search'], 'kept' | 'found']>([
    ['to a later place', { next: '7' }, { next: '8' }, 'found'],
    ['to an earlier place', { next: '10' }, { next: '9' }, 'kept'],
    ['to the same place, smaller ranges', { next: '7', range: '1000' }, { next: '7', range: '500' }, 'found'],
    ['begun anew', { next: '90' }, { round: '1', next: '8' }, 'found'],
    ['begun before the other one ended', { round: '2' }, { round: '1', next: '99' }, 'kept'],
    ['of a version without numbers, over none', null, { block: '7' }, 'found'],
    ['without numbers that a rail would write', { next: '7' }, { round: 'x', next: '-1' }, 'kept'],
    ['nothing', { next: '7' }, null, 'kept'],
  ])('behaviour: if two searched the chain, the further search is kept: %s', (_what, kept, found, expected) => {
    const row = { ...after([started]), search: kept };
    const search = expected === 'kept' ? kept : found;
    expect(play([[ended(found), 'r', NOW + LEASE]], row).search).toEqual(search);
    const unknown: ChargeEvent = { kind: 'settle_unknown', reason: 'timeout', lookInMs: 5, search: found };
    expect(after([unknown], row).search).toEqual(search);
  });

  test('behaviour: an owner whose lease ran out may still end what nobody took', () => {
    const looked = play([
      [started, 'me', NOW],
      [EVENTS['look']!, 'r', NOW + LEASE],
    ]);
    expect(play([[EVENTS['not_carried_out']!, 'me', NOW + LEASE + 1]], looked).state).toBe('released');
  });

  test('behaviour: an operator settles what failed, and its payer may fetch it for a day from then', () => {
    const failed = IN_STATE.failed;
    const later = NOW + 5 * REDEEM_MS;
    const settledLate = play([[EVENTS['operator_settled']!, 'operator', later]], failed);
    expect(settledLate).toMatchObject({ state: 'settled', settledAt: later, failedBy: null, owner: null });
    expect(paymentStatus(settledLate, presented, later + REDEEM_MS - 1)).toBe('redeemable');
  });
});

describe('who presents a payment again', () => {
  const other = { ...presented, credentialSha256: sha256('other') };
  const elsewhere = { ...presented, targetSha256: sha256('/else') };
  const STANDINGS: readonly [string, Charge, number, string, string][] = [
    ['claimed', IN_STATE.claimed, NOW + 1, 'in_use', 'in_use'],
    ['claimed, its lease over', IN_STATE.claimed, NOW + LEASE, 'claimable', 'in_use'],
    ['released', IN_STATE.released, NOW + 1, 'claimable', 'spent'],
    ['claimed ten times', { ...IN_STATE.released, claims: CLAIMS }, NOW + 1, 'spent', 'spent'],
    ['settling', IN_STATE.settling, NOW + 1, 'in_use', 'in_use'],
    ['settling, its lease over', IN_STATE.settling, NOW + LEASE, 'unfinished', 'in_use'],
    ['settling, its next look to come', after([started, EVENTS['unknown']!]), NOW + 1, 'unfinished', 'in_use'],
    ['settled', IN_STATE.settled, NOW + 1, 'in_use', 'spent'],
    ['settled, its lease over', IN_STATE.settled, NOW + LEASE, 'redeemable', 'spent'],
    ['settled, over a day ago', IN_STATE.settled, NOW + REDEEM_MS, 'already_paid', 'spent'],
    ['settled with v1', { ...IN_STATE.settled, x402Version: 1 }, NOW + LEASE, 'already_paid', 'spent'],
    ['delivered', IN_STATE.delivered, NOW + 1, 'spent', 'spent'],
    ['delivered in part', { ...IN_STATE.delivered, partial: true }, NOW + 1, 'already_paid', 'spent'],
    ['failed', IN_STATE.failed, NOW + 1, 'spent', 'spent'],
    ['refunded', { ...IN_STATE.settled, leaseUntil: 0, refundedAt: NOW }, NOW + 1, 'already_paid', 'spent'],
  ];

  test.each(STANDINGS)(
    'behaviour: a payment that is presented again is answered as its charge stands: %s',
    (_what, charge, at, identical, others) => {
      expect(paymentStatus(charge, presented, at)).toBe(identical);
      for (const shown of [other, elsewhere, { ...presented, method: 'POST' }])
        expect(paymentStatus(charge, shown, at)).toBe(others);
    },
  );

  test('behaviour: a payer has a day to fetch an answer from when the settlement became certain, whatever became of leases', () => {
    const given = after([started, { kind: 'settled', proof: proofOf(CLAIM), leaseMs: 0 }]);
    const cut = { ...IN_STATE.settled, leaseUntil: 0 };
    const kept = after([started, settled, EVENTS['answer_kept']!]);
    for (const charge of [given, cut, kept])
      expect([NOW + 86_399_999, NOW + 86_400_000].map((at) => paymentStatus(charge, presented, at))).toEqual([
        'redeemable',
        'already_paid',
      ]);
  });

  test('behaviour: an unsettled payment takes a place until ten minutes past its end', () => {
    const deadline = 2_000_000_000;
    const settling: Charge = { ...IN_STATE.settling, deadline: BigInt(deadline) };
    const end = deadline * 1000 + 600_000;
    expect([end - 1, end].map((at) => takesPlace(settling, at))).toEqual([true, false]);
    const without: Charge = { ...settling, deadline: null };
    expect([NOW + 750_000 - 1, NOW + 750_000].map((at) => takesPlace(without, at))).toEqual([true, false]);
    expect([NOW + LEASE - 1, NOW + LEASE].map((at) => takesPlace(IN_STATE.claimed, at))).toEqual([true, false]);
    expect(takesPlace(IN_STATE.settled, NOW)).toBe(false);
  });
});

describe('asking the upstream again', () => {
  type Because = keyof typeof ASK_AGAIN;
  const paidFor = (method: string): Charge => after([started, settled], claimedFor(method));
  const claimedFor = (method: string): Charge => {
    const claim = { ...CLAIM, request: requestOf(method, '/x') };
    const result = decideClaim(undefined, claim, OPTIONS, NOW);
    if (result.kind !== 'claimed') throw new Error(result.kind);
    return result.charge;
  };
  const redeem = (charge: Charge, at: number): Charge | string => {
    const request = {
      credentialSha256: charge.credentialSha256,
      method: charge.request.method,
      targetSha256: charge.request.targetSha256,
    };
    const moved = transition(charge, { kind: 'redeem_started', request, leaseMs: LEASE }, { owner: 'me' }, at);
    return moved.ok ? moved.charge : moved.because;
  };
  const giveUp = (charge: Charge, because: Because): Charge => {
    if (because === 'process_died') return { ...charge, leaseUntil: NOW };
    const moved = transition(charge, { kind: 'undelivered', because, headSent: false }, { owner: 'me' }, NOW);
    if (!moved.ok) throw new Error(moved.because);
    return moved.charge;
  };

  test.each([
    ['answer_lost', 'GET', 1],
    ['answer_lost', 'POST', 0],
    ['answer_dropped', 'HEAD', 1],
    ['answer_dropped', 'PUT', 0],
    ['upstream_failed', 'GET', 6],
    ['upstream_failed', 'POST', 3],
    ['upload_broken_off', 'POST', 1],
    ['process_died', 'GET', 10],
    ['process_died', 'POST', 2],
  ] as const)('behaviour: because of %s a %s is asked again %d times', (because, method, times) => {
    let charge = giveUp(paidFor(method), because);
    for (let asked = 0; asked < times; asked++) {
      const taken = redeem(charge, charge.askAt ?? NOW);
      if (typeof taken === 'string') throw new Error(`after ${asked}: ${taken}`);
      expect(taken.asks.all).toBe(asked + 2);
      charge = giveUp(taken, because);
    }
    expect(redeem(charge, NOW)).toBe('not_redeemable');
    expect(paymentStatus(charge, { ...presented, ...presentedBy(charge) }, NOW)).toBe('already_paid');
    expect(owedBecauseOf(charge, NOW)).toBe(ASK_AGAIN[because].fault);
  });

  test.each([
    [
      'GET',
      17,
      ['answer_lost', ...Array<Because>(6).fill('upstream_failed'), ...Array<Because>(10).fill('process_died')],
    ],
    ['POST', 5, ['upstream_failed', 'upload_broken_off', 'process_died', 'process_died', 'upstream_failed']],
  ] as const)('attack: a %s runs %d times at most for one payment, whatever the causes', (method, times, causes) => {
    let charge = paidFor(method);
    for (const because of causes) {
      const waiting = giveUp(charge, because);
      const taken = redeem(waiting, waiting.askAt ?? NOW);
      if (typeof taken === 'string') break;
      charge = taken;
    }
    expect(charge.asks.all).toBe(times);
    for (const because of Object.keys(ASK_AGAIN) as Because[])
      expect(redeem(giveUp(charge, because), NOW)).toBe('not_redeemable');
  });

  test('behaviour: an ask that was not sent after all does not count', () => {
    const failed = giveUp(paidFor('POST'), 'upstream_failed');
    const taken = redeem(failed, failed.askAt ?? NOW);
    if (typeof taken === 'string') throw new Error(taken);
    const moved = transition(
      taken,
      { kind: 'undelivered', because: 'not_asked', headSent: false },
      { owner: 'me' },
      NOW,
    );
    expect(moved).toMatchObject({ ok: true, charge: { asks: failed.asks, undelivered: 'upstream_failed' } });
    const never = transition(
      paidFor('POST'),
      { kind: 'undelivered', because: 'not_asked', headSent: false },
      { owner: 'me' },
      NOW,
    );
    expect(never).toMatchObject({ ok: true, charge: { asks: { all: 0 }, undelivered: null } });
    expect(never.ok && redeem(never.charge, NOW)).toMatchObject({ asks: { all: 1, afterFailure: 0 } });
  });

  const SECOND = 1000;
  const MINUTE = 60 * SECOND;

  test.each([
    ['GET', [2 * SECOND, 10 * SECOND, MINUTE, 5 * MINUTE, 30 * MINUTE, 30 * MINUTE]],
    ['POST', [2 * SECOND, 10 * SECOND, MINUTE]],
  ] as const)('behaviour: after each failure of a %s the upstream is left alone for longer', (method, pauses) => {
    let charge = paidFor(method);
    for (const pause of pauses) {
      charge = giveUp(charge, 'upstream_failed');
      expect([charge.askAt, charge.failedStatus]).toEqual([NOW + pause, 502]);
      expect(redeem(charge, NOW + pause - 1)).toBe('not_due');
      const taken = redeem(charge, NOW + pause);
      if (typeof taken === 'string') throw new Error(taken);
      expect([taken.askAt, taken.failedStatus]).toEqual([null, null]);
      charge = taken;
    }
    // Nothing more can be asked, so nothing is waited for.
    expect(giveUp(charge, 'upstream_failed')).toMatchObject({ askAt: null, failedStatus: null });
  });

  test('behaviour: a pause keeps the status that the client got, and uses no ask up', () => {
    const event = { kind: 'undelivered', because: 'upstream_failed', headSent: false, status: 504 } as const;
    const failed = after([event], paidFor('POST'));
    expect(failed).toMatchObject({ failedStatus: 504, asks: { all: 1, afterFailure: 0 } });
    for (let copy = 0; copy < 100; copy++) expect(redeem(failed, NOW + copy)).toBe('not_due');
    expect(paymentStatus(failed, { ...presented, ...presentedBy(failed) }, NOW)).toBe('redeemable');
    expect(owedBecauseOf(failed, NOW)).toBeUndefined();
  });

  test('behaviour: an answer that was kept is there at once, and other reasons make no pause', () => {
    const kept = after([EVENTS['answer_kept']!], paidFor('GET'));
    expect(redeem(kept, NOW)).toMatchObject({ owner: 'me' });
    for (const because of ['answer_lost', 'upload_broken_off'] as const)
      expect(giveUp(paidFor(because === 'answer_lost' ? 'GET' : 'POST'), because).askAt).toBeNull();
  });

  test('behaviour: a claim for which the upstream was never sent a byte is not one of the ten', () => {
    const reason = 'upstream_unreachable';
    for (const kind of ['released', 'not_carried_out'] as const) {
      const settleVia = kind === 'released' ? undefined : 'first';
      let charge: Charge | undefined;
      for (let time = 0; time < 3 * CLAIMS; time++) {
        const again = decideClaim(charge, CLAIM, { ...OPTIONS, settleVia }, NOW);
        if (again.kind !== 'claimed') throw new Error(again.kind);
        charge = after([{ kind, reason, unasked: true }], again.charge);
        expect([charge.state, charge.claims]).toEqual(['released', 1]);
      }
    }
  });

  test('behaviour: the upstream was asked before a charge settled if it settles before the response', () => {
    const claim = { ...CLAIM, settle: 'before_response' as const };
    const opened = decideClaim(undefined, claim, OPTIONS, NOW);
    if (opened.kind !== 'claimed') throw new Error(opened.kind);
    const settling = after([started], opened.charge);
    expect(after([settled], settling)).toMatchObject({ owner: 'me', asks: { all: 1 }, undelivered: null });
    const unknown = after([EVENTS['unknown']!], settling);
    const proven = transition(unknown, settled, { owner: 'r' }, NOW);
    expect(proven).toMatchObject({
      ok: true,
      charge: { owner: null, asks: { all: 1 }, undelivered: 'answer_dropped' },
    });
    const died = transition(settling, settled, { owner: 'r' }, NOW + LEASE);
    expect(died).toMatchObject({ ok: true, charge: { owner: null, asks: { all: 1 }, undelivered: 'process_died' } });
    // Who took it over has no answer of its own: it asks for one as everybody does.
    const taken = transition(unknown, EVENTS['taken_over']!, { owner: 'you' }, NOW);
    const again = taken.ok ? transition(taken.charge, settled, { owner: 'you' }, NOW) : taken;
    expect(again).toMatchObject({ ok: true, charge: { owner: null, undelivered: 'answer_dropped' } });
  });
});

describe('what is owed', () => {
  const lost = (headSent: boolean): Charge =>
    after([started, settled, { kind: 'undelivered', because: 'answer_lost', headSent }], {
      ...claimed(),
      request: requestOf('POST', '/x'),
    });

  test('behaviour: a charge that can be fetched no more and was of no use is owed, until the money is given back', () => {
    expect(owedBecauseOf(IN_STATE.settled, NOW + 1)).toBeUndefined();
    expect(owedBecauseOf(IN_STATE.settled, NOW + LEASE)).toBeUndefined();
    expect(owedBecauseOf(IN_STATE.settled, NOW + REDEEM_MS)).toBe('tollgate');
    expect(owedBecauseOf(lost(false), NOW)).toBe('client');
    const refunded = transition(lost(false), EVENTS['refunded']!, { owner: 'operator' }, NOW + 1);
    expect(refunded).toMatchObject({
      ok: true,
      charge: { state: 'settled', refundedAt: NOW + 1, refundNote: 'by hand' },
    });
    expect(refunded.ok && owedBecauseOf(refunded.charge, NOW + 2)).toBeUndefined();
    expect(refunded.ok && transition(refunded.charge, EVENTS['refunded']!, { owner: 'o' }, NOW + 3)).toMatchObject({
      because: 'wrong_state',
    });
  });

  test('behaviour: the money of a delivered charge is given back once, which changes nothing else of it', () => {
    const refunded = transition(IN_STATE.delivered, EVENTS['refunded']!, { owner: 'operator' }, NOW + 1);
    expect(refunded).toEqual({
      ok: true,
      charge: {
        ...IN_STATE.delivered,
        ...{ refundedAt: NOW + 1, refundNote: 'by hand', updatedAt: NOW + 1, changeId: null },
        events: `${IN_STATE.delivered.events}\n[${NOW + 1},"delivered","refunded","operator","by hand"]`,
      },
    });
    expect(refunded.ok && transition(refunded.charge, EVENTS['refunded']!, { owner: 'o' }, NOW + 2)).toMatchObject({
      because: 'wrong_state',
    });
  });

  test('behaviour: a client that had the head of its answer has it delivered in part', () => {
    expect(owedBecauseOf(lost(true), NOW)).toBeUndefined();
    // Nothing more of it can be fetched: that was the end.
    expect(lost(true)).toMatchObject({ state: 'delivered', partial: true, owner: null });
    expect(transition(lost(false), EVENTS['partial']!, { owner: 'store' }, NOW)).toMatchObject({
      because: 'wrong_state',
    });
    const kept = after([started, settled, EVENTS['answer_kept']!]);
    expect(transition(kept, EVENTS['partial']!, { owner: 'store' }, NOW)).toMatchObject({
      because: 'still_redeemable',
    });
    // Nobody has said so of this one yet.
    expect(owedBecauseOf(kept, NOW + REDEEM_MS)).toBeUndefined();
    expect(transition(kept, EVENTS['partial']!, { owner: 'store' }, NOW + REDEEM_MS).ok).toBe(true);
  });

  test('behaviour: a charge whose client never came back is owed by its client’s fault, unless it could not come', () => {
    const proven = after([started, { kind: 'settled', proof: proofOf(CLAIM), leaseMs: 0 }]);
    expect(owedBecauseOf(proven, NOW + REDEEM_MS)).toBe('client');
    expect(owedBecauseOf({ ...proven, x402Version: 1, attempts: 1 }, NOW)).toBe('tollgate');
  });
});

describe('any sequence', () => {
  const WAYS: Record<ChargeState, readonly ChargeState[]> = {
    claimed: ['claimed', 'settling', 'released'],
    settling: ['settling', 'settled', 'failed', 'released'],
    settled: ['settled', 'delivered'],
    // By a refund, which is noted.
    delivered: ['delivered'],
    released: ['claimed'],
    failed: ['settled'],
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

  test('behaviour: no sequence of events does to a charge what must never happen', () => {
    fc.assert(
      fc.property(moves, (all) => {
        let now = NOW;
        let charge: Charge | undefined;
        for (const { owner, passMs, what } of all) {
          now += passMs;
          const before = charge;
          charge = play(charge, what, owner, now);
          if (charge === undefined || charge === before) continue;
          if (before === undefined) expect(charge.state).toBe('claimed');
          else {
            expect(WAYS[before.state]).toContain(charge.state);
            // While somebody's lease runs, nobody else changes anything, but for what was searched.
            if (before.leaseUntil > now && before.owner !== null && owner !== before.owner) {
              const { search, updatedAt } = charge;
              expect(charge).toEqual({ ...before, search, updatedAt });
            }
            if (charge.failedBy === 'refusal' && before.failedBy === null) expect(before.attempts).toBe(0);
            // The one way back: nothing was carried out, and nothing before is unknown.
            if (before.state === 'settling' && charge.state === 'released')
              expect([what, before.attempts]).toEqual(['not_carried_out', 0]);
            if (before.state === 'failed') expect(what).toBe('operator_settled');
          }
          expect(charge.claims).toBeLessThanOrEqual(CLAIMS);
          expect(charge.asks.all).toBeLessThanOrEqual(ASKS.safe);
          for (const { counter, safe } of Object.values(ASK_AGAIN))
            expect(charge.asks[counter]).toBeLessThanOrEqual(safe);
          const paid = charge.state === 'settled' || charge.state === 'delivered';
          const open = charge.state === 'claimed' || charge.state === 'settling';
          expect(charge.proof !== null).toBe(paid);
          expect(charge.settledAt !== null).toBe(paid);
          expect(charge.credential !== null).toBe(open);
          if (!open && charge.state !== 'settled') expect([charge.owner, charge.answer]).toEqual([null, null]);
          if (charge.state === 'settling' && charge.owner === null) expect(charge.lookAt).not.toBeNull();
        }
      }),
      { numRuns: 3000 },
    );
  });

  function play(charge: Charge | undefined, what: string, owner: string, now: number): Charge | undefined {
    if (what === 'claim' || what === 'other') {
      const credential = what === 'claim' ? CLAIM.credential : 'b3RoZXI=';
      const claim = { ...CLAIM, credential, credentialSha256: sha256(credential) };
      const result = decideClaim(charge, claim, { ...OPTIONS, owner }, now);
      return result.kind === 'claimed' ? result.charge : charge;
    }
    if (charge === undefined) return undefined;
    const event: ChargeEvent =
      what === 'lost' ? { kind: 'undelivered', because: 'answer_lost', headSent: false } : EVENTS[what]!;
    const moved = transition(charge, event, { owner }, now);
    return moved.ok ? moved.charge : charge;
  }
});
