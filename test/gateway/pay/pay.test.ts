// What becomes of a payment where something goes wrong: the ledger, the facilitator, the chain or the client is away at the
// worst moment. Over a ledger in memory and time that the test moves.
import { describe, expect, it } from 'vitest';
import { problem } from '../../../src/domain/problem.ts';
import type { ResponseOutcome, Outcome, PaidOutcome } from '../../../src/gateway/outcome.ts';
import { createResponseMemory, KeptResponse } from '../../../src/gateway/pay/kept-responses.ts';
import type { Look, Settlement, Verification } from '../../../src/gateway/rails/rail.ts';
import { WAY } from '../../cases/receivers.ts';
import { createLeases, LEASE_MS } from '../../../src/gateway/pay/lease.ts';
import { createPayStage, grantedBy, settled, turn, unknown, type PayStage } from './stage.ts';

const OK = { status: 200, headers: [] };
const NOT_CARRIED_OUT: Settlement = {
  kind: 'not_carried_out',
  reason: 'facilitator_unavailable',
  retryAfterMs: 12_300,
};
const TRANSFER = `0x${'9'.repeat(64)}`;

function answered(outcome: Outcome): ResponseOutcome {
  if (outcome.kind !== 'response') throw new Error(`not answered but ${outcome.kind}`);
  return outcome;
}

function forwarded(outcome: Outcome): PaidOutcome {
  if (outcome.kind !== 'forward') throw new Error(`not forwarded but ${JSON.stringify(outcome)}`);
  return outcome.paid;
}

/** Status, code, Retry-After. */
function told(outcome: Outcome): unknown[] {
  const { response, reason } = answered(outcome);
  const at = response.headers.indexOf('Retry-After');
  return [response.status, reason, at < 0 ? undefined : Number(response.headers[at + 1])];
}

/** A promise and what ends it. */
function gate<T>(): { readonly open: (value: T) => void; readonly promise: Promise<T> } {
  let open: (value: T) => void = () => undefined;
  const promise = new Promise<T>((resolve) => {
    open = resolve;
  });
  return { open, promise };
}

describe('a facilitator that carries nothing out', () => {
  it('behaviour: a POST that the facilitator does not carry out is released and told when to come back, and nothing is sent until it does', async () => {
    const stage = createPayStage({ settle: (calls) => (calls === 1 ? NOT_CARRIED_OUT : settled()) });
    expect(told(await stage.pay({ method: 'POST' }))).toEqual([503, 'facilitator_unavailable', 13]);
    expect(stage.charges().map(({ state }) => state)).toEqual(['released']);
    await stage.pass(3_600_000);
    await stage.reconcile();
    expect(stage.settleCalls()).toBe(1);
    forwarded(await stage.pay({ method: 'POST' }));
    expect([stage.settleCalls(), stage.charges()[0]?.state]).toEqual([2, 'settled']);
  });

  it('attack: a payer whose upstream ran for a settlement that was not carried out settles first from then on', async () => {
    const stage = createPayStage({ settle: () => NOT_CARRIED_OUT });
    const paid = forwarded(await stage.pay({ nonce: 1 }));
    expect(await paid.beforeResponse(OK)).toMatchObject({ kind: 'replace', response: { status: 503 } });
    expect(stage.charges().map(({ state }) => state)).toEqual(['released']);
    expect(told(await stage.pay({ nonce: 2 }))).toEqual([503, 'facilitator_unavailable', 13]);
  });
});

describe('a client that leaves', () => {
  it('behaviour: a client that leaves while its payment is verified claims nothing', async () => {
    const verified = gate<Verification>();
    const stage = createPayStage({ verify: () => verified.promise });
    const outcome = stage.pay({ method: 'POST' });
    await turn();
    stage.leave();
    verified.open({ kind: 'valid', payer: '' });
    expect((await outcome).kind).toBe('gone');
    expect([stage.charges(), stage.settleCalls()]).toEqual([[], 0]);
  });

  it.each(['GET', 'POST'])(
    'behaviour: a client that leaves before settle is sent for a %s has its claim released, and nothing is sent',
    async (method) => {
      // It leaves while the claim is on its way to the disk.
      const stage = createPayStage({ claimed: () => (method === 'POST' ? stage.leave() : undefined) });
      const outcome = await stage.pay({ method });
      if (method === 'GET') {
        stage.leave();
        expect(await forwarded(outcome).beforeResponse(OK)).toMatchObject({ kind: 'replace' });
      } else expect(outcome.kind).toBe('gone');
      expect([stage.charges().map(({ state }) => state), stage.settleCalls()]).toEqual([['released'], 0]);
    },
  );

  it('behaviour: a client that leaves before a payment of unknown end is settled again, while the ledger is away: its end stays unknown', async () => {
    const stage = createPayStage({
      settle: unknown,
      look: () => ({ kind: 'open', used: false, search: null }),
      connect: (calls) => {
        if (calls === 1) return undefined;
        stage.leave();
        stage.away('reject');
        return undefined;
      },
    });
    for (let i = 0; i < 2; i++)
      expect(told(await stage.pay({ method: 'POST' })).slice(0, 2)).toEqual([503, 'settlement_unknown']);
    expect(stage.settleCalls()).toBe(1);
  });

  it('behaviour: a payment whose client left after it was settled waits for its payer, and counts as no asking', async () => {
    const stage = createPayStage();
    forwarded(await stage.pay({ method: 'POST' })).done({ kind: 'not_sent' });
    await stage.pass(0);
    expect(stage.charges()[0]).toMatchObject({ state: 'settled', owner: null, undelivered: null, asks: { all: 0 } });
    forwarded(await stage.pay({ method: 'POST' }));
    expect(stage.settleCalls()).toBe(1);
  });

  it('behaviour: a client that leaves in the middle of its upload, once, is no failure of the upstream', async () => {
    const stage = createPayStage();
    const gone = { kind: 'client_gone', status: undefined, headSent: false, failed: true, kept: undefined } as const;
    for (let i = 0; i < 2; i++) {
      forwarded(await stage.pay({ method: 'POST' })).done({ ...gone, upload: 'broken_off', asked: true });
      await stage.pass(0);
    }
    expect(told(await stage.pay({ method: 'POST' })).slice(0, 2)).toEqual([409, 'already_paid']);
  });
});

describe('a ledger that is away', () => {
  it('behaviour: a free response does not wait for the release while the ledger is away', async () => {
    const stage = createPayStage();
    const paid = forwarded(await stage.pay());
    stage.away('reject');
    expect(await paid.beforeResponse({ status: 404, headers: [] })).toEqual({ kind: 'stream', headers: [] });
    expect(stage.charges()[0]?.state).toBe('claimed');
    stage.away(undefined);
    await stage.pass(1_000);
    expect(stage.charges()[0]).toMatchObject({ state: 'released', reason: 'upstream_answered_404' });
  });

  it.each(['GET', 'POST'])(
    'attack: a %s claim that was refused and written all the same is given back',
    async (method) => {
      const stage = createPayStage();
      stage.away('do_and_reject');
      expect(told(await stage.pay({ method }))).toEqual([503, 'ledger_unavailable', 5]);
      expect(stage.charges().map(({ state }) => state)).toEqual([method === 'GET' ? 'claimed' : 'settling']);
      await stage.pass(60_000);
      stage.away(undefined);
      await stage.pass(60_000);
      await stage.reconcile();
      expect([stage.charges().map(({ state }) => state), stage.settleCalls()]).toEqual([['released'], 0]);
    },
  );

  it('attack: a claim that was refused and never written is not made by giving it back', async () => {
    const stage = createPayStage();
    stage.away('reject');
    await stage.pay({ method: 'POST' });
    stage.away(undefined);
    await stage.pass(600_000);
    expect(stage.charges()).toEqual([]);
  });

  it('behaviour: a GET whose ledger is away before settle is sent: nothing is sent, and it is released in the end', async () => {
    const stage = createPayStage();
    const paid = forwarded(await stage.pay());
    stage.away('do_and_reject');
    expect(await paid.beforeResponse(OK)).toMatchObject({ kind: 'replace', response: { status: 503 } });
    stage.away(undefined);
    await stage.pass(60_000);
    expect([stage.charges()[0]?.state, stage.settleCalls()]).toEqual(['released', 0]);
  });

  it('behaviour: a settlement that was sent before the ledger was away is booked as soon as the ledger answers', async () => {
    const stage = createPayStage({
      settle: () => {
        stage.away('reject');
        return settled();
      },
    });
    expect(told(await stage.pay({ method: 'POST' })).slice(0, 2)).toEqual([503, 'settlement_unknown']);
    stage.away(undefined);
    await stage.pass(60_000);
    expect(stage.charges()[0]).toMatchObject({ state: 'settled', owner: null });
    forwarded(await stage.pay({ method: 'POST' }));
    expect(stage.settleCalls()).toBe(1);
  });
});

describe('the charge log', () => {
  it.each(['reject', 'do_and_reject'] as const)(
    'behaviour: the charge log is told of a settlement once, although the ledger was away (%s) when it was written',
    async (away) => {
      const stage = createPayStage({
        settle: () => {
          stage.away(away);
          return settled();
        },
      });
      expect(told(await stage.pay({ method: 'POST' })).slice(0, 2)).toEqual([503, 'settlement_unknown']);
      stage.away(undefined);
      await stage.pass(60_000);
      await stage.reconcile();
      forwarded(await stage.pay({ method: 'POST' }));
      expect(stage.changes.filter((by) => by === 'settled')).toEqual(['settled']);
      expect(stage.settleCalls()).toBe(1);
    },
  );
});

describe('how a payment ended is counted', () => {
  const { network } = WAY;

  it('behaviour: the end of a payment is counted under the network that it was paid on, or would have been', async () => {
    const stage = createPayStage({ settle: (calls) => (calls === 1 ? NOT_CARRIED_OUT : settled()) });
    await stage.pay({ method: 'POST' });
    const paid = forwarded(await stage.pay({ method: 'POST' }));
    await stage.pay({ method: 'POST' });
    paid.done({ kind: 'delivered', status: 200, upstreamMs: 1, kept: undefined });
    await stage.pass(0);
    await stage.pay({ method: 'POST' });
    stage.away('reject');
    await stage.pay({ method: 'POST', nonce: 2 });
    const ends = ['unavailable', 'in_use', 'delivered', 'already_used', 'unavailable'];
    expect(stage.counts).toEqual(ends.map((end) => `${end} ${network}`));
  });

  it('behaviour: the end of a payment that names no offered way is counted under no network', async () => {
    const stage = createPayStage();
    expect(answered(await stage.pay({ network: 'eip155:999' })).response.status).toBe(402);
    stage.away('reject');
    expect(answered(await stage.pay({ network: 'eip155:999' })).response.status).toBe(503);
    expect(stage.counts).toEqual(['refused none', 'unavailable none']);
  });

  it('behaviour: the end of a payment that the ledger knows is counted under its network, though its way is offered no more', async () => {
    const stage = createPayStage();
    forwarded(await stage.pay({ method: 'POST' })).done({
      kind: 'delivered',
      status: 200,
      upstreamMs: 1,
      kept: undefined,
    });
    await stage.pass(0);
    await stage.pay({ method: 'POST', offer: problem('price_unpayable', 'not any more') });
    expect(stage.counts.at(-1)).toBe(`already_used ${network}`);
  });
});

describe('a settlement of unknown end', () => {
  it('behaviour: a settlement of unknown end says until when, and nobody settles it but its payer', async () => {
    const stage = createPayStage({ settle: unknown });
    const outcome = await stage.pay({ method: 'POST', validForSeconds: 300 });
    expect(told(outcome)).toEqual([503, 'settlement_unknown', 1]);
    expect(JSON.parse(String(answered(outcome).response.body))).toMatchObject({
      charge_id: stage.charges()[0]?.id,
      retry_until: new Date(1_800_000_000_000 + 300_000 + 60_000).toISOString(),
    });
    for (let i = 0; i < 5; i++) {
      await stage.pass(60_000);
      await stage.reconcile();
    }
    expect([stage.settleCalls(), stage.charges()[0]?.state]).toEqual([1, 'settling']);
  });

  it('behaviour: the response to a POST that was forwarded first is kept with the charge, and had from there', async () => {
    const proof = { transaction: TRANSFER, logIndex: 1, amount: 100_000n, payer: `0x${'a'.repeat(40)}` };
    const stage = createPayStage({
      settle: unknown,
      look: () => ({ kind: 'proven', proof }),
      mode: 'before_response',
    });
    const paid = forwarded(await stage.pay({ method: 'POST' }));
    const verdict = await paid.beforeResponse({ status: 201, headers: [] });
    if (verdict.kind !== 'replace' || verdict.keep === undefined) throw new Error('not kept');
    expect(verdict.response.status).toBe(503);
    // Ours while the rest of it is read.
    await stage.pass(3_000);
    expect(told(await stage.pay({ method: 'POST' })).slice(0, 2)).toEqual([409, 'payment_in_use']);
    verdict.keep.response.begin(201, ['Content-Type', 'text/plain']);
    verdict.keep.response.add(Buffer.from('made'));
    verdict.keep.ended(true);
    await stage.pass(0);
    expect(stage.charges()[0]).toMatchObject({ state: 'settling', owner: null });
    const { response, reason } = answered(await stage.pay({ method: 'POST' }));
    expect([response.status, response.body.toString(), reason]).toEqual([201, 'made', 'replayed']);
  });

  it('behaviour: a settlement of unknown end is settled again by its payer, who is told to wait longer each time', async () => {
    const stage = createPayStage({ settle: (calls) => (calls < 4 ? unknown() : settled()) });
    const waits: unknown[] = [];
    for (let i = 0; i < 3; i++) waits.push(told(await stage.pay({ method: 'POST' }))[2]);
    expect(waits).toEqual([1, 2, 4]);
    forwarded(await stage.pay({ method: 'POST' }));
    expect([stage.settleCalls(), stage.charges()[0]?.state]).toEqual([4, 'settled']);
  });

  it('behaviour: a payment that the chain proves is served at once, also if nobody could pay for the route now', async () => {
    const proof = { transaction: TRANSFER, logIndex: 1, amount: 100_000n, payer: `0x${'a'.repeat(40)}` };
    const stage = createPayStage({ settle: unknown, look: () => ({ kind: 'proven', proof }) });
    await stage.pay({ method: 'POST' });
    const gone = problem('receiver_unknown', 'not configured');
    expect(told(await stage.pay({ method: 'POST', nonce: 2, offer: gone })).slice(0, 2)).toEqual([
      503,
      'receiver_unknown',
    ]);
    const paid = forwarded(await stage.pay({ method: 'POST', offer: gone }));
    expect([grantedBy(stage, paid)?.proof?.transaction, stage.settleCalls()]).toEqual([TRANSFER, 1]);
  });

  it('attack: a payment that is used up and not proven is not settled again, and one that can never pay is over', async () => {
    let look: 'used' | 'impossible' = 'used';
    const stage = createPayStage({
      settle: unknown,
      look: () =>
        look === 'used'
          ? { kind: 'open', used: true, search: null }
          : { kind: 'impossible', reason: 'authorization_cancelled' },
    });
    const paid = forwarded(await stage.pay());
    await paid.beforeResponse(OK);
    expect(told(await stage.pay()).slice(0, 2)).toEqual([503, 'settlement_unknown']);
    look = 'impossible';
    expect(answered(await stage.pay()).reason).toBe('payment_already_used');
    expect([stage.settleCalls(), stage.charges()[0]?.state]).toEqual([1, 'failed']);
    // The upstream ran for a payment that was cancelled: this payer settles first from now on.
    expect(told(await stage.pay({ nonce: 2 })).slice(0, 2)).toEqual([503, 'settlement_unknown']);
  });

  it('behaviour: an authorization that has ended is not sent again', async () => {
    const stage = createPayStage({ settle: unknown });
    await stage.pay({ method: 'POST', validForSeconds: 100 });
    await stage.pass(101_000);
    expect(told(await stage.pay({ method: 'POST', validForSeconds: 100 })).slice(0, 2)).toEqual([
      503,
      'settlement_unknown',
    ]);
    expect(stage.settleCalls()).toBe(1);
  });

  it('behaviour: somebody else with the same payment, or for another target, is told that it is in use', async () => {
    const stage = createPayStage({ settle: unknown });
    await stage.pay({ method: 'POST' });
    expect(told(await stage.pay({ method: 'POST', target: '/r?x=2' })).slice(0, 2)).toEqual([409, 'payment_in_use']);
    expect(stage.settleCalls()).toBe(1);
  });
});

describe('a released payment that is used up', () => {
  const proof = { transaction: TRANSFER, logIndex: 1, amount: 100_000n, payer: `0x${'a'.repeat(40)}` };
  const USED: Verification = { kind: 'refused', reason: 'invalid_exact_evm_nonce_already_used' };

  it.each([
    ['served where the chain proves that it was paid to us', { kind: 'proven', proof }, undefined],
    ['of unknown end where nothing is proven yet', { kind: 'open', used: true, search: null }, 'settlement_unknown'],
    ['over where it paid somebody else', { kind: 'impossible', reason: 'elsewhere' }, 'payment_already_used'],
  ] as const)('behaviour: a released payment that is used up is %s', async (_what, seen, reason) => {
    let calls = 0;
    const stage = createPayStage({
      verify: () => (++calls === 1 ? { kind: 'valid', payer: '' } : USED),
      settle: () => NOT_CARRIED_OUT,
      look: () => seen,
    });
    await stage.pay({ method: 'POST' });
    expect(stage.charges()[0]?.state).toBe('released');
    const outcome = await stage.pay({ method: 'POST' });
    if (reason === undefined) expect(grantedBy(stage, forwarded(outcome))?.proof?.transaction).toBe(TRANSFER);
    else expect(answered(outcome).reason).toBe(reason);
    expect(stage.settleCalls()).toBe(1);
    // Nobody else's used payment is claimed.
    expect(answered(await stage.pay({ method: 'POST', nonce: 2 })).reason).toContain('payment_refused');
  });
});

describe('a lease', () => {
  it('behaviour: a lease is renewed while a settlement takes 75 s', async () => {
    const settling = gate<Settlement>();
    const stage = createPayStage({ settle: () => settling.promise });
    const first = stage.pay({ method: 'POST' });
    for (let i = 0; i < 25; i++) {
      await stage.pass(3_000);
      expect(told(await stage.pay({ method: 'POST' }))).toEqual([409, 'payment_in_use', 2]);
    }
    settling.open(settled());
    forwarded(await first);
    expect([stage.settleCalls(), stage.charges()[0]?.state]).toEqual([1, 'settled']);
  });

  it('behaviour: a lease is renewed while the upstream takes its time, before and after the settlement', async () => {
    const stage = createPayStage();
    const paid = forwarded(await stage.pay());
    await stage.pass(59_000);
    expect(told(await stage.pay()).slice(0, 2)).toEqual([409, 'payment_in_use']);
    expect(await paid.beforeResponse(OK)).toMatchObject({ kind: 'stream' });
    await stage.pass(59_000);
    expect(told(await stage.pay()).slice(0, 2)).toEqual([409, 'payment_in_use']);
    paid.done({ kind: 'delivered', status: 200, upstreamMs: 1, kept: undefined });
    await stage.pass(0);
    expect(stage.charges()[0]?.state).toBe('delivered');
  });

  it('behaviour: a lease is renewed while a kept response goes to a client that reads slowly', async () => {
    const stage = createPayStage();
    const kept = new KeptResponse(createResponseMemory(), 100);
    kept.begin(201, []);
    kept.add(Buffer.from('made'));
    const gone = {
      kind: 'client_gone',
      status: 201,
      headSent: false,
      failed: false,
      upload: 'whole',
      asked: true,
    } as const;
    forwarded(await stage.pay({ method: 'POST' })).done({ ...gone, kept });
    await stage.pass(0);
    const replay = answered(await stage.pay({ method: 'POST' }));
    expect(replay.reason).toBe('replayed');
    await stage.pass(59_000);
    expect(told(await stage.pay({ method: 'POST' })).slice(0, 2)).toEqual([409, 'payment_in_use']);
    replay.delivered?.(true);
    await stage.pass(0);
    expect(stage.charges()[0]?.state).toBe('delivered');
  });
});

describe('a process that stood still for longer than its lease', () => {
  const LONGER_MS = 10_500;
  /** It stands still when `by` is written and not answered yet; meanwhile the same payment comes again, once. */
  const stoppedAt = (by: string, again: Parameters<PayStage['pay']>[0]) => {
    const seen: { outcome?: Outcome } = {};
    const stage: PayStage = createPayStage({
      written: async (kind) => {
        if (kind !== by || seen.outcome !== undefined) return;
        stage.standStill(LONGER_MS);
        seen.outcome = { kind: 'gone', routeId: '' };
        seen.outcome = await stage.pay(again);
      },
    });
    return { seen, stage };
  };

  it('attack: a process that stood still forwards nothing after the settlement if another request took it over', async () => {
    const { seen, stage } = stoppedAt('settled', { method: 'POST' });
    const first = await stage.pay({ method: 'POST' });
    forwarded(seen.outcome ?? first);
    expect(told(first).slice(0, 2)).toEqual([409, 'payment_in_use']);
  });

  it('attack: a process that stood still gives no answer that it settled for and had none of yet', async () => {
    const { seen, stage } = stoppedAt('settled', {});
    const paid = forwarded(await stage.pay());
    const verdict = await paid.beforeResponse(OK);
    expect([verdict.kind, paid.tookMoney()]).toEqual(['replace', false]);
    forwarded(seen.outcome ?? { kind: 'gone', routeId: '' });
    paid.done({ kind: 'replaced', status: 409, upstreamMs: 1 });
    await stage.pass(0);
    expect(stage.charges()[0]?.undelivered).toBe('process_died');
  });

  it('attack: a process that stood still gives no answer to a request that it forwarded before', async () => {
    const stage = createPayStage();
    const paid = forwarded(await stage.pay({ method: 'POST' }));
    stage.standStill(LONGER_MS);
    const other = forwarded(await stage.pay({ method: 'POST' }));
    expect((await paid.beforeResponse(OK)).kind).toBe('replace');
    expect((await other.beforeResponse(OK)).kind).toBe('stream');
  });

  it('attack: a process that stood still replays no kept answer that another request replays', async () => {
    const { seen, stage } = stoppedAt('redeem_started', { method: 'POST' });
    const kept = new KeptResponse(createResponseMemory(), 100);
    kept.begin(201, []);
    kept.add(Buffer.from('made'));
    const gone = {
      kind: 'client_gone',
      status: 201,
      headSent: false,
      failed: false,
      upload: 'whole',
      asked: true,
    } as const;
    forwarded(await stage.pay({ method: 'POST' })).done({ ...gone, kept });
    await stage.pass(0);
    const late = await stage.pay({ method: 'POST' });
    expect(answered(seen.outcome ?? late).reason).toBe('replayed');
    expect(told(late).slice(0, 2)).toEqual([409, 'payment_in_use']);
  });

  it('attack: a process that stood still forwards nothing for a claim that another request has by now', async () => {
    const seen: { outcome?: Outcome } = {};
    const stage: PayStage = createPayStage({
      claimed: async () => {
        if (seen.outcome !== undefined) return;
        stage.standStill(LONGER_MS);
        seen.outcome = { kind: 'gone', routeId: '' };
        seen.outcome = await stage.pay();
      },
    });
    const first = await stage.pay();
    forwarded(seen.outcome ?? first);
    expect(told(first).slice(0, 2)).toEqual([409, 'payment_in_use']);
  });

  it('attack: a process that stood still holds nothing that the ledger says another process has', async () => {
    let now = 0;
    const leases = createLeases({
      ledger: { run: 'this', renew: async () => [] },
      ...{ schedule: () => () => undefined, newId: () => 'one', monotonic: () => now, leaseMs: LEASE_MS },
    });
    const lease = leases.keep('a charge', 0);
    expect(await lease.holds()).toBe(true);
    now = LONGER_MS;
    expect(await lease.holds()).toBe(false);
  });

  it('behaviour: a process that stood still goes on if nobody came meanwhile', async () => {
    const stage = createPayStage();
    const paid = forwarded(await stage.pay({ method: 'POST' }));
    stage.standStill(LONGER_MS);
    expect((await paid.beforeResponse(OK)).kind).toBe('stream');
    expect(told(await stage.pay({ method: 'POST' })).slice(0, 2)).toEqual([409, 'payment_in_use']);
  });

  it('behaviour: a process that stood still goes on while the ledger is away and its lease runs, and not after it', async () => {
    const stage = createPayStage();
    const paid = forwarded(await stage.pay({ method: 'POST' }));
    stage.away('reject');
    await stage.pass(8_000);
    expect((await paid.beforeResponse(OK)).kind).toBe('stream');
    await stage.pass(3_000);
    expect((await paid.beforeResponse(OK)).kind).toBe('replace');
  });
});

describe('the reconciler', () => {
  const proof = { transaction: TRANSFER, logIndex: 1, amount: 100_000n, payer: `0x${'a'.repeat(40)}` };

  it('behaviour: the reconciler looks after 1 s, 2 s, 4 s ... 5 minutes, and after a day every hour', async () => {
    const stage = createPayStage({ settle: unknown });
    await stage.pay({ method: 'POST' });
    const waits: number[] = [];
    let waited = 0;
    while (waits.length < 12) {
      await stage.pass(1_000);
      waited += 1;
      const before = stage.charges()[0]?.looks;
      await stage.reconcile();
      if (stage.charges()[0]?.looks === before) continue;
      waits.push(waited);
      waited = 0;
    }
    expect(waits).toEqual([1, 1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300]);
    await stage.pass(24 * 3_600_000);
    await stage.reconcile();
    const { looks, lookAt } = stage.charges()[0] ?? {};
    await stage.pass(3_599_000);
    await stage.reconcile();
    expect(stage.charges()[0]).toMatchObject({ looks, lookAt });
    await stage.pass(1_000);
    await stage.reconcile();
    expect(stage.charges()[0]?.looks).toBe((looks ?? 0) + 1);
    expect(stage.settleCalls()).toBe(1);
  });

  it('behaviour: a look of the reconciler that takes long delays no other', async () => {
    const slow = gate<Look>();
    const stage = createPayStage({
      settle: unknown,
      look: (nonce) => (nonce.endsWith('1') ? slow.promise : { kind: 'proven', proof }),
    });
    await stage.pay({ method: 'POST', nonce: 1 });
    await stage.pass(1_000);
    await stage.beginLooks();
    await stage.pay({ method: 'POST', nonce: 2 });
    await stage.pass(1_000);
    await stage.beginLooks();
    await stage.pass(0);
    expect(stage.charges().map(({ state }) => state)).toEqual(['settling', 'settled']);
    slow.open({ kind: 'open', used: false, search: null });
    await stage.pass(0);
    expect(stage.charges()[0]?.reason).toBe('payment_unused');
  });

  it('behaviour: a look that its payer waits for no longer is written at its end, once no request has the charge', async () => {
    const end = gate<Look>();
    const second = gate<Settlement>();
    const stage = createPayStage({
      settle: (calls) => (calls === 2 ? second.promise : unknown()),
      look: () => ({ kind: 'unavailable', detail: 'no end yet', end: end.promise }),
    });
    await stage.pay({ method: 'POST' });
    const again = stage.pay({ method: 'POST' });
    await stage.pass(0);
    end.open({ kind: 'proven', proof });
    await stage.pass(2_000);
    expect(stage.charges()[0]?.state).toBe('settling');
    second.open(unknown());
    expect(told(await again).slice(0, 2)).toEqual([503, 'settlement_unknown']);
    await stage.pass(2_000);
    expect(stage.charges()[0]).toMatchObject({ state: 'settled', proof });
  });

  const USED_UP = { kind: 'open', used: true } as const;

  it('behaviour: a search that a look of the payer made is kept, and the next look goes on from there', async () => {
    const stage = createPayStage({
      settle: unknown,
      look: (_unique, { search }) => ({
        ...USED_UP,
        search: { next: String(Number(search?.['next'] ?? 0) + 1000) },
      }),
    });
    await stage.pay({ method: 'POST' });
    for (const next of ['1000', '2000', '3000']) {
      expect(told(await stage.pay({ method: 'POST' })).slice(0, 2)).toEqual([503, 'settlement_unknown']);
      expect(stage.charges()[0]).toMatchObject({ search: { next }, owner: null });
    }
  });

  it('behaviour: a look that its payer waits for no longer is kept as far as it came, while another request has the charge', async () => {
    const end = gate<Look>();
    const second = gate<Look>();
    let looks = 0;
    const stage = createPayStage({
      settle: unknown,
      look: () => (++looks === 1 ? { ...USED_UP, search: { next: '500' }, end: end.promise } : second.promise),
    });
    await stage.pay({ method: 'POST' });
    expect(told(await stage.pay({ method: 'POST' })).slice(0, 2)).toEqual([503, 'settlement_unknown']);
    expect(stage.charges()[0]?.search).toEqual({ next: '500' });
    const again = stage.pay({ method: 'POST' });
    await stage.pass(0);
    const { owner, leaseUntil } = stage.charges()[0] ?? {};
    end.open({ ...USED_UP, search: { next: '6000' } });
    await stage.pass(0);
    expect(owner).not.toBeNull();
    expect(stage.charges()[0]).toMatchObject({ owner, leaseUntil, search: { next: '6000' } });
    // The request that has the charge began where the first one had been.
    second.open({ ...USED_UP, search: { next: '3000' } });
    expect(told(await again).slice(0, 2)).toEqual([503, 'settlement_unknown']);
    expect(stage.charges()[0]).toMatchObject({ owner: null, search: { next: '6000' } });
  });

  it('behaviour: a reconciler that ends its look while the payer has the charge keeps what it searched', async () => {
    const slow = gate<Look>();
    const paying = gate<Settlement>();
    let looks = 0;
    const stage = createPayStage({
      settle: (calls) => (calls === 1 ? unknown() : paying.promise),
      look: () => (++looks === 1 ? slow.promise : { kind: 'unavailable', detail: 'busy' }),
    });
    await stage.pay({ method: 'POST' });
    await stage.pass(1_000);
    await stage.beginLooks();
    const again = stage.pay({ method: 'POST' });
    await stage.pass(0);
    slow.open({ ...USED_UP, search: { next: '7' } });
    await stage.pass(0);
    expect(stage.charges()[0]).toMatchObject({ state: 'settling', search: { next: '7' } });
    paying.open(settled());
    expect(grantedBy(stage, forwarded(await again))?.state).toBe('settled');
  });

  it('behaviour: a search for a payment that is not used up is kept before the payment is settled again', async () => {
    const paying = gate<Settlement>();
    const stage = createPayStage({
      settle: (calls) => (calls === 1 ? unknown() : paying.promise),
      look: () => ({ kind: 'open', used: false, search: { next: '900', before: 'there' } }),
    });
    await stage.pay({ method: 'POST' });
    const again = stage.pay({ method: 'POST' });
    await stage.pass(0);
    expect(stage.charges()[0]).toMatchObject({ state: 'settling', search: { next: '900', before: 'there' } });
    paying.open(unknown());
    await again;
    expect(stage.charges()[0]).toMatchObject({ owner: null, search: { next: '900' } });
  });

  it('attack: a payer whose upstream ran for a payment that the chain says was cancelled settles first from then on', async () => {
    const stage = createPayStage({
      settle: unknown,
      look: () => ({ kind: 'impossible', reason: 'authorization_cancelled' }),
    });
    await forwarded(await stage.pay({ nonce: 1 })).beforeResponse(OK);
    await stage.pass(1_000);
    await stage.reconcile();
    expect(stage.charges()[0]?.state).toBe('failed');
    expect(told(await stage.pay({ nonce: 2 })).slice(0, 2)).toEqual([503, 'settlement_unknown']);
  });

  it('attack: a payer who comes while the reconciler looks is not in its way, nor it in theirs', async () => {
    const slow = gate<Look>();
    let looks = 0;
    const stage = createPayStage({
      settle: (calls) => (calls === 1 ? unknown() : settled()),
      look: () => (++looks === 1 ? slow.promise : { kind: 'open', used: false, search: null }),
    });
    await stage.pay({ method: 'POST' });
    await stage.pass(1_000);
    await stage.beginLooks();
    const paid = forwarded(await stage.pay({ method: 'POST' }));
    slow.open({ kind: 'impossible', reason: 'authorization_expired_unused' });
    await stage.pass(0);
    expect([grantedBy(stage, paid)?.state, stage.charges()[0]?.state, stage.settleCalls()]).toEqual([
      'settled',
      'settled',
      2,
    ]);
  });

  describe('what the chain proves while somebody else writes', () => {
    const begin = async (look: Promise<Look>, settle: (calls: number) => Promise<Settlement> | Settlement) => {
      let looks = 0;
      const stage = createPayStage({
        settle: (calls) => (calls === 1 ? unknown() : settle(calls)),
        look: () => (++looks === 1 ? look : { kind: 'unavailable', detail: 'busy' }),
      });
      await stage.pay({ method: 'POST' });
      await stage.pass(1_000);
      await stage.beginLooks();
      return stage;
    };

    it('behaviour: it is no error if the payer is at it, or has booked it', async () => {
      for (const isBooked of [false, true]) {
        const [slow, paying] = [gate<Look>(), gate<Settlement>()];
        const stage = await begin(slow.promise, () => paying.promise);
        const again = stage.pay({ method: 'POST' });
        await stage.pass(0);
        if (isBooked) paying.open(settled());
        await stage.pass(0);
        slow.open({ kind: 'proven', proof });
        await stage.pass(0);
        paying.open(settled());
        await again;
        expect([stage.errors, stage.charges()[0]?.state]).toEqual([[], 'settled']);
      }
    });

    it('behaviour: it is an error if the charge has another end: money came that nobody books', async () => {
      const slow = gate<Look>();
      const stage = await begin(slow.promise, settled);
      const [{ id } = { id: '' }] = stage.charges();
      const failed = { kind: 'failed', by: 'chain', reason: 'authorization_expired_unused' } as const;
      await stage.ledger.advance(id, failed, { owner: 'another', changeId: 'another' });
      slow.open({ kind: 'proven', proof });
      await stage.pass(0);
      expect([stage.errors, stage.charges()[0]?.state]).toEqual([['a look at a charge was not written'], 'failed']);
    });
  });
});
