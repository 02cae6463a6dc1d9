// Draws on passes over HTTP where the network misbehaves: an answer that was lost is asked for again and draws once, a call that
// arrives after its request gave up draws nothing, and whatever is not exactly an answer about this use is no answer.
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createLedger, LedgerUnavailable } from '../../../src/domain/payment/ledger.ts';
import type { DrawChange, PassBook } from '../../../src/domain/selling/pass-book.ts';
import type { PassLedger } from '../../../src/domain/selling/pass-store.ts';
import { writePassInSale } from '../../../src/domain/selling/pass.ts';
import { createRemoteCharges } from '../../../src/gateway/ledger/remote-ledger.ts';
import { SPELLING } from '../../../src/gateway/rails/rails.ts';
import { createRandom, systemClock, systemSchedule } from '../../../src/host/clock.ts';
import { claimOf, proofOf, sha256 } from '../../cases/claims.ts';
import { LEDGER_KEY, startRegistry, type Kit } from '../../registry/kit.ts';
import { LOSSES, losing, startFront, type CallerTime, type Front } from '../../support/lossy-front.ts';

const LEASE_MS = 60_000;
const SYSTEM_TIME: CallerTime = { clock: systemClock, schedule: systemSchedule };
const USES = 20;

let kit: Kit;
let made = 0;
const closers: (() => unknown)[] = [];
beforeAll(async () => {
  kit = await startRegistry();
});
afterAll(async () => {
  for (const close of closers.splice(0)) await close();
  await kit.close();
});

/** Passes that are reached through `front` alone. */
async function remote(front: Front, attemptMs = 2_000, time = SYSTEM_TIME): Promise<PassLedger> {
  const between = await startFront(front, () => kit.port);
  const store = createRemoteCharges({
    ...{ registryUrl: between.url, apiKey: LEDGER_KEY, version: '1.2.3', random: createRandom() },
    ...{ ...time, limits: { attemptMs, totalMs: 8_000, pausesMs: [1, 1] } },
  });
  closers.push(async () => {
    await store.close();
    between.close();
  });
  return store.passes;
}

/** The id of a pass of 20 uses, one of which is drawn. */
async function buy(): Promise<string> {
  const n = ++made + 700;
  const terms = { planId: 'p', termsId: 't', validMs: 86_400_000, scope: 'plan', kind: 'uses', uses: USES } as const;
  const wanted = claimOf(n, { payer: n, pass: writePassInSale({ ...terms, first: '1' }), settle: 'before_response' });
  const ledger = createLedger(kit.ledger.store, SPELLING);
  await ledger.claim(wanted, { owner: 'one/1', leaseMs: LEASE_MS, maxUnsettledPerPayer: 8, settleVia: 'x' });
  await ledger.advance(wanted.id, { kind: 'settled', proof: proofOf(wanted), leaseMs: LEASE_MS }, { owner: 'one/1' });
  return wanted.id.replace('chg_', 'pass_');
}

async function bookOf(passId: string): Promise<PassBook> {
  const found = await kit.ledger.passes.get(passId);
  if (found === undefined) throw new Error(`there is no pass ${passId}`);
  return found.book;
}

const reserve = (passId: string, routeId: string): Extract<DrawChange, { kind: 'reserve' }> => ({
  ...{ kind: 'reserve', passId, useId: `use_r${++made}`, owner: `sidecar-x/${made}`, amount: 1n, leaseMs: LEASE_MS },
  ...{ key: null, of: { planId: 'p', routeId, kind: 'uses', currency: 'USD' } },
});
const named = ({ passId, useId, owner }: DrawChange): Pick<DrawChange, 'passId' | 'useId' | 'owner'> => ({
  ...{ passId, useId, owner },
});
const take = (change: DrawChange): DrawChange => ({ ...named(change), kind: 'take', amount: null });

test.each(Object.entries(LOSSES))(
  'behaviour: a draw is drawn once though answers to it are lost: %s',
  async (_name, lose) => {
    const passId = await buy();
    const drawing = losing(2, lose);
    const wanted = reserve(passId, 'r');
    const drawn = await (await remote(drawing.front, 2_000, drawing.time)).change(wanted);
    expect(drawn).toMatchObject({ kind: 'reserved', left: 18n });
    expect(await bookOf(passId)).toMatchObject({ drawn: 1n, reserved: 1n });
    const taking = losing(2, lose);
    const taken = await (await remote(taking.front, 2_000, taking.time)).change(take(wanted));
    expect(taken).toMatchObject({ kind: 'taken', left: 18n });
    expect([drawing.calls(), taking.calls()]).toEqual([3, 3]);
    expect(await bookOf(passId)).toMatchObject({ drawn: 2n, reserved: 0n, uses: 2 });
  },
);

test('behaviour: a reservation that arrives after its request gave it up draws nothing', async () => {
  const passId = await buy();
  const late: (() => Promise<unknown>)[] = [];
  const passes = await remote(async (request) => {
    if (!(await request.clone().text()).includes('"reserve"')) return fetch(request);
    late.push(() => fetch(request));
    throw new Error('the connection ends');
  });
  const wanted = [
    reserve(passId, 'r'),
    { ...reserve(passId, 'r'), key: { sha256: sha256('k'), method: 'GET', targetSha256: sha256('t') } },
  ];
  for (const each of wanted) {
    await expect(passes.change(each)).rejects.toThrow(LedgerUnavailable);
    const gaveUp = { ...named(each), kind: 'give_back', because: 'unasked', keySha256: each.key?.sha256 } as const;
    expect(await passes.change(gaveUp)).toMatchObject({ kind: 'given_back' });
  }
  expect(late).toHaveLength(6);
  for (const arrive of late) await arrive();
  expect(await bookOf(passId)).toMatchObject({ drawn: 1n, reserved: 0n, lost: 0 });
});

test('behaviour: changes of one pass that come together go together, and those of others do not wait for them', async () => {
  const [hot, other] = [await buy(), await buy()];
  let calls = 0;
  const held = Promise.withResolvers<void>();
  const passes = await remote(async (request) => {
    calls += 1;
    if (request.url.includes(hot)) await held.promise;
    return fetch(request);
  }, 8_000);
  const all = Promise.all(Array.from({ length: 50 }, () => passes.change(reserve(hot, 'r'))));
  expect(await passes.change(reserve(other, 'r'))).toMatchObject({ kind: 'reserved' });
  held.resolve();
  const kinds = (await all).map(({ kind }) => kind);
  expect(kinds.filter((kind) => kind === 'reserved')).toHaveLength(USES - 1);
  expect(kinds.filter((kind) => kind === 'in_use')).toHaveLength(50 - USES + 1);
  expect(calls).toBe(3);
});

describe('an answer about a draw that is not to be believed', () => {
  const wanted = reserve('pass_x', 'r');
  const end = { use_id: wanted.useId, left: '9', terms_id: 't', worth: '0' };
  const results = (...all: readonly object[]): Response => Response.json({ results: all });
  const answers: Readonly<Record<string, () => Response>> = {
    'no JSON': () => new Response('<html>'),
    nothing: () => new Response(null, { status: 204 }),
    'no result': () => results(),
    'a result too many': () => results({ kind: 'reserved', ...end }, { kind: 'reserved', ...end }),
    'the use of somebody else': () => results({ kind: 'reserved', ...end, use_id: 'use_another' }),
    'the end of another change': () => results({ kind: 'taken', ...end }),
    'a kind that is not known': () => results({ kind: 'granted', ...end }),
    'a refusal that is not known': () => results({ kind: 'no' }),
    'an amount that is a number': () => results({ kind: 'reserved', ...end, left: 9 }),
    ...Object.fromEntries(
      [400, 401, 403, 404, 409, 422, 429, 500, 503].map((status) => [
        String(status),
        () => new Response(JSON.stringify({ results: [{ kind: 'reserved', ...end }] }), { status }),
      ]),
    ),
  };
  test.each(Object.entries(answers))('attack: a draw is not made by %s', async (_name, answer) => {
    const passes = await remote(async () => answer());
    await expect(passes.change(wanted)).rejects.toThrow(LedgerUnavailable);
  });

  test('attack: neither a use is taken nor given back by an answer about another one', async () => {
    const passes = await remote(async () => results({ kind: 'taken', ...end, use_id: 'use_another' }));
    await expect(passes.change(take(wanted))).rejects.toThrow(LedgerUnavailable);
    await expect(passes.change({ ...named(wanted), kind: 'give_back', because: 'left' })).rejects.toThrow(
      LedgerUnavailable,
    );
  });
});
