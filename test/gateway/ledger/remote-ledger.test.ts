// The ledger over HTTP where the network misbehaves: an answer that was lost is asked for again and means the same, and
// whatever is not exactly a ledger's answer about this very charge is no answer.
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { once } from 'node:events';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { chargeToWire } from '../../../src/domain/payment/charge-wire.ts';
import type { Charge } from '../../../src/domain/payment/charge.ts';
import { SPELLING } from '../../../src/gateway/rails/rails.ts';
import { createLedger, LedgerUnavailable, type Ledger } from '../../../src/domain/payment/ledger.ts';
import { presentedBy } from '../../../src/domain/payment/claim-policy.ts';
import type { ChargeEvent } from '../../../src/domain/payment/transition.ts';
import { createRandom, systemClock, systemSchedule } from '../../../src/host/clock.ts';
import type { RegistryCallLimits } from '../../../src/gateway/ledger/registry-calls.ts';
import { createRemoteCharges } from '../../../src/gateway/ledger/remote-ledger.ts';
import { address, claimOf, proofOf } from '../../cases/claims.ts';
import { LEDGER_KEY, SDK_KEY, startRegistry, type Kit } from '../../registry/kit.ts';
import { LOSSES, losing, startFront, type CallerTime, type Front } from '../../support/lossy-front.ts';
import { createMemoryLedger } from '../../support/memory-ledger.ts';

const LIMITS: RegistryCallLimits = { attemptMs: 2_000, totalMs: 8_000, pausesMs: [1, 1], bodyBytes: 1024 * 1024 };
const OPTIONS = { owner: 'one', leaseMs: 60_000, maxUnsettledPerPayer: 8 };
const URL_OF_NOBODY = 'http://127.0.0.1:9';
const SYSTEM_TIME: CallerTime = { clock: systemClock, schedule: systemSchedule };

let kit: Kit;
let n = 0;
beforeAll(async () => {
  kit = await startRegistry();
  await kit.ledger.check();
});
const closers: (() => unknown)[] = [];
afterAll(async () => {
  for (const close of closers.splice(0)) await close();
  await kit.close();
});

function ledgerAt(
  registryUrl: string,
  limits: Partial<RegistryCallLimits> = {},
  apiKey = LEDGER_KEY,
  time = SYSTEM_TIME,
): Ledger {
  const store = createRemoteCharges({
    ...{ registryUrl, apiKey, version: '1.2.3', ...time, random: createRandom() },
    limits: { ...LIMITS, ...limits },
  });
  closers.push(store.close);
  return createLedger(store, SPELLING);
}

const direct = (): Ledger => ledgerAt(`http://127.0.0.1:${kit.port}`);

/** A ledger that reaches its registry through `front` alone. */
async function remote(front: Front, limits: Partial<RegistryCallLimits> = {}, time = SYSTEM_TIME): Promise<Ledger> {
  const between = await startFront(front, () => kit.port);
  closers.push(between.close);
  return ledgerAt(between.url, limits, LEDGER_KEY, time);
}

describe.each(Object.entries(LOSSES))('an answer that is lost: %s', (_name, lose) => {
  test('behaviour: a claim whose answer is lost is sent again and knows its own', async () => {
    const what = claimOf(++n);
    const { front, calls, time } = losing(2, lose);
    expect(await (await remote(front, {}, time)).claim(what, OPTIONS)).toMatchObject({
      kind: 'claimed',
      charge: { claims: 1, owner: 'one' },
    });
    expect(calls()).toBe(3);
    expect((await direct().claim(what, OPTIONS)).kind).toBe('in_use');
  });

  test('behaviour: a change whose answer is lost is sent again and happens once', async () => {
    const what = claimOf(++n);
    await kit.ledger.claim(what, OPTIONS);
    const request = presentedBy(what);
    const events: readonly ChargeEvent[] = [
      { kind: 'settle_started', via: 'first', leaseMs: 60_000 },
      { kind: 'settled', proof: proofOf(what), leaseMs: 60_000 },
      { kind: 'undelivered', because: 'upload_broken_off', headSent: false },
      { kind: 'redeem_started', request, leaseMs: 60_000 },
      { kind: 'undelivered', because: 'upstream_failed', headSent: false, status: 504 },
    ];
    for (const event of events) {
      const { front, calls, time } = losing(1, lose);
      const ledger = await remote(front, {}, time);
      expect(await ledger.advance(what.id, event, { owner: 'one' })).toMatchObject({ kind: 'ok' });
      expect(calls()).toBe(2);
    }
    expect(await kit.ledger.findByChargeId(what.id)).toMatchObject({
      state: 'settled',
      asks: { all: 2, afterUpload: 1 },
      failedStatus: 504,
    });
  });

  test('behaviour: the ledger cannot say if every answer is lost', async () => {
    const { front, calls, time } = losing(10, lose);
    const ledger = await remote(front, {}, time);
    await expect(ledger.claim(claimOf(++n), OPTIONS)).rejects.toThrow(LedgerUnavailable);
    expect(calls()).toBe(3);
  });
});

/** Time in which nothing happens before the next time that something waits for. */
function untilDue(): CallerTime {
  let now = 0;
  return {
    clock: { now: Date.now, monotonic: () => now },
    schedule: (ms, run) => {
      const next = setImmediate(() => {
        now += ms;
        run();
      });
      return () => clearImmediate(next);
    },
  };
}

describe('a registry that is away', () => {
  test('behaviour: a registry that is away is told soon, whatever is asked', async () => {
    const ledger = ledgerAt(URL_OF_NOBODY);
    const what = claimOf(++n);
    const asked = [
      ledger.find(what.payment),
      ledger.findByChargeId(what.id),
      ledger.claim(what, OPTIONS),
      ledger.advance(what.id, { kind: 'delivered', partial: false }, { owner: 'one' }),
      ledger.due(5),
      ledger.renew('run', [what.id], 1000),
    ];
    const all = await Promise.allSettled(asked);
    expect(all.map((each) => each.status === 'rejected' && each.reason instanceof LedgerUnavailable)).toEqual(
      asked.map(() => true),
    );
  });

  test('behaviour: the time for all attempts at a registry that is away is bounded', async () => {
    const stuck: Front = () => new Promise<Response>(() => undefined);
    const time = untilDue();
    const ledger = await remote(stuck, { attemptMs: 200, totalMs: 300 }, time);
    await expect(ledger.find(claimOf(1).payment)).rejects.toThrow(/away after 2 attempts/);
    expect(time.clock.monotonic()).toBe(300);
  });

  test('behaviour: a call at a registry that takes connections and never answers ends after 5 s, as at a store', async () => {
    const silent = createServer(() => undefined);
    closers.push(() => {
      silent.closeAllConnections();
      silent.close();
    });
    await once(silent.listen(0, '127.0.0.1'), 'listening');
    const time = untilDue();
    const store = createRemoteCharges({
      ...{ registryUrl: `http://127.0.0.1:${(silent.address() as AddressInfo).port}`, apiKey: LEDGER_KEY },
      ...{ version: '1.2.3', ...time, random: createRandom() },
    });
    closers.push(store.close);
    await expect(createLedger(store, SPELLING).claim(claimOf(++n), OPTIONS)).rejects.toThrow(LedgerUnavailable);
    expect(time.clock.monotonic()).toBe(5_000);
  });

  test('behaviour: a registry whose store is away answers 503, and a dashboard is told when to come back', async () => {
    const one = await startRegistry();
    const ledger = ledgerAt(`http://127.0.0.1:${one.port}`);
    await one.ledger.close();
    await expect(ledger.claim(claimOf(1), OPTIONS)).rejects.toThrow(/answered 503/);
    const reply = await one.dashboard('GET', '/v1/billing/charges');
    expect([reply.status, reply.json.code, reply.headers['retry-after']]).toEqual([503, 'ledger_unavailable', '2']);
    await one.close();
  });

  test.each([
    ['no key of scope ledger', SDK_KEY, /403.*scope ledger/],
    ['a key of nobody', 'x'.repeat(20), /401.*scope ledger/],
  ])('refuses: a call of the ledger with %s, and says what to do', async (_what, key, message) => {
    await expect(ledgerAt(`http://127.0.0.1:${kit.port}`, {}, key).find(claimOf(1).payment)).rejects.toThrow(message);
  });
});

describe('an answer that is not to be believed', () => {
  const what = claimOf(500);
  let claimed: Charge;
  beforeAll(async () => {
    const result = await createMemoryLedger(Date.now).claim(what, OPTIONS);
    if (result.kind !== 'claimed') throw new Error(result.kind);
    claimed = result.charge;
  });
  const json = (value: unknown): Response => Response.json(value);
  const wire = (rest: Partial<Charge> = {}): object => chargeToWire({ ...claimed, ...rest });

  const claims: [string, () => Response][] = [
    ['no JSON', () => new Response('<html>', { headers: { 'Content-Type': 'text/html' } })],
    ['nothing', () => new Response(null, { status: 200 })],
    ['no content', () => new Response(null, { status: 204 })],
    ['created', () => new Response(JSON.stringify({ kind: 'claimed', charge: wire() }), { status: 201 })],
    ['null', () => json(null)],
    ['an array', () => json([{ kind: 'claimed', charge: wire() }])],
    ['a kind that is not known', () => json({ kind: 'granted', charge: wire() })],
    ['true', () => json({ claimed: true })],
    ['claimed without a charge', () => json({ kind: 'claimed' })],
    ['claimed by somebody else', () => json({ kind: 'claimed', charge: wire({ owner: 'two' }) })],
    ['claimed and settled already', () => json({ kind: 'claimed', charge: wire({ state: 'settled' }) })],
    [
      'another payment',
      () => json({ kind: 'claimed', charge: wire({ payment: { ...what.payment, payer: address(9) } }) }),
    ],
    ['a state that is not known', () => json({ kind: 'claimed', charge: { ...wire(), state: 'free' } })],
    ['an amount that is a number', () => json({ kind: 'claimed', charge: { ...wire(), amount: 1 } })],
    ['too much', () => new Response(JSON.stringify({ kind: 'claimed', charge: wire() }) + ' '.repeat(2 * 1024 * 1024))],
    ['a redirect', () => new Response(null, { status: 307, headers: { Location: URL_OF_NOBODY } })],
    ...[400, 401, 403, 404, 409, 422, 429, 500, 503].map((status): [string, () => Response] => [
      String(status),
      () => new Response(JSON.stringify({ kind: 'claimed', charge: wire() }), { status }),
    ]),
  ];

  test.each(claims)('attack: the ledger does not believe %s as the answer to a claim', async (_what, answer) => {
    let calls = 0;
    const ledger = await remote(async () => {
      calls++;
      return answer();
    });
    const refused = await ledger.claim(what, OPTIONS).catch((error: unknown) => error);
    expect(refused).toBeInstanceOf(LedgerUnavailable);
    expect(refused instanceof Error ? refused.message : '').not.toContain(what.credential);
    expect(calls).toBe(1);
  });

  test('attack: the ledger does not believe an answer about another charge, whatever is asked', async () => {
    const other = { ...wire({ id: 'chg_other', payment: { ...what.payment, payer: address(9) } }) };
    const found = await remote(async () => json({ data: [other] }));
    await expect(found.find(what.payment)).rejects.toThrow(/another charge/);
    await expect(found.findByChargeId(what.id)).rejects.toThrow(/another charge/);
    for (const answer of [
      { kind: 'ok', charge: other },
      { kind: 'ok', charge: null },
      { kind: 'conflict', because: 'x', charge: null },
    ]) {
      const ledger = await remote(async () => json(answer));
      const advanced = ledger.advance(what.id, { kind: 'delivered', partial: false }, { owner: 'one' });
      await expect(advanced).rejects.toThrow(LedgerUnavailable);
    }
  });

  test('behaviour: the key goes to the registry alone, and the credential only with the claim', async () => {
    const seen: string[] = [];
    const front: Front = async (request) => {
      expect(request.headers.get('authorization')).toBe(`Bearer ${LEDGER_KEY}`);
      seen.push(`${request.method} ${request.url} ${await request.text()}`);
      return json({ data: [] });
    };
    expect(await (await remote(front)).find(what.payment)).toBeUndefined();
    expect(seen.join('')).not.toContain(what.credential);
    expect(seen.length).toBe(1);
  });
});
