// What becomes of a payment while the upstream is away or fails: a connection comes before the settlement, what was never
// asked counts for nothing, the upstream is left alone between its failures, and every problem says where the money is.
import { describe, expect, it } from 'vitest';
import { problem } from '../../../src/domain/problem.ts';
import type { End, Outcome, PaidOutcome } from '../../../src/gateway/outcome.ts';
import { createPayStage, grantedBy, settled, unknown, type PayStage, type RailScript } from './stage.ts';

const AWAY = { code: 'upstream_unreachable', detail: 'ECONNREFUSED' } as const;
const UNREACHABLE = problem('upstream_unreachable', 'It failed.');
const TRANSACTION = `0x${'7'.repeat(64)}`;
const START = 1_800_000_000_000;
const DAY_LATER = new Date(START + 86_400_000).toISOString();
const failed = (asked: boolean, rest: Partial<Extract<End, { kind: 'failed' }>> = {}): End => ({
  ...{ kind: 'failed', headersSent: false, status: undefined, asked, code: 'upstream_unreachable', detail: 'test' },
  ...rest,
});

function forwarded(outcome: Outcome): PaidOutcome {
  if (outcome.kind !== 'forward') throw new Error(`not forwarded but ${JSON.stringify(outcome)}`);
  return outcome.paid;
}

type Told = { readonly status: number; readonly headers: readonly string[]; readonly [member: string]: unknown };

/** Status and headers of a problem, and its members. */
function told(outcome: Outcome): Told {
  if (outcome.kind !== 'response') throw new Error(`not answered but ${outcome.kind}`);
  const { status, headers, body } = outcome.response;
  return { ...(JSON.parse(String(body)) as object), status, headers };
}

const seconds = ({ headers }: Told): number => Number(headers[headers.indexOf('Retry-After') + 1]);

/** What an exchange does with a request whose upstream failed: the end, then the problem that is told. */
async function fail(stage: PayStage, outcome: Outcome, end: End): Promise<ReturnType<typeof problem>> {
  const paid = forwarded(outcome);
  paid.done(end);
  const telling = paid.tell(UNREACHABLE);
  await stage.pass(0);
  return telling;
}

const post = (stage: PayStage, rest: object = {}): Promise<Outcome> => stage.pay({ method: 'POST', ...rest });

describe('no connection to the upstream can be had', () => {
  it('behaviour: a payment whose upstream cannot be reached is not settled, its claim is released, and 502 says that nothing was charged', async () => {
    const stage = createPayStage({ connect: () => AWAY });
    const first = told(await post(stage));
    expect(first).toMatchObject({ status: 502, code: 'upstream_unreachable', charged: false });
    expect(first['charge_id']).toBe(stage.charges()[0]?.id);
    expect(first['detail']).toMatch(/The payment of 0\.10 USDC on eip155:84532 was not taken: nothing was charged\./);
    expect(seconds(first)).toBe(2);
    expect([stage.settleCalls(), stage.charges().map(({ state }) => state)]).toEqual([0, ['released']]);
  });

  it('attack: a client that repeats a hundred times without pauses is charged and served once when the upstream is back', async () => {
    const stage = createPayStage({ connect: (calls) => (calls <= 100 ? AWAY : undefined) });
    for (let i = 0; i < 100; i++) expect(told(await post(stage))).toMatchObject({ status: 502, charged: false });
    forwarded(await post(stage));
    expect([stage.settleCalls(), stage.charges()]).toMatchObject([1, [{ state: 'settled', asks: { all: 1 } }]]);
  });

  it('behaviour: a GET whose upstream was never sent a byte is released without being counted', async () => {
    const stage = createPayStage();
    for (let i = 0; i < 30; i++) {
      const end = await fail(stage, await stage.pay(), failed(false));
      expect(end).toMatchObject({ members: { charged: false, charge_id: stage.charges()[0]?.id }, retryAfter: 2 });
    }
    expect(stage.charges()[0]).toMatchObject({ state: 'released', claims: 1 });
  });

  it('behaviour: a payment whose earlier settlement has no known end stays unknown if the upstream is away, and nothing is sent', async () => {
    const stage = createPayStage({
      settle: (calls) => (calls === 1 ? unknown() : settled()),
      connect: (calls) => (calls === 1 ? undefined : AWAY),
      look: () => ({ kind: 'open', used: false, search: null }),
    });
    expect(told(await post(stage))).toMatchObject({ status: 503, charged: 'unknown' });
    const again = told(await post(stage));
    expect(again).toMatchObject({ status: 503, code: 'settlement_unknown', charged: 'unknown' });
    expect(again['retry_until']).toMatch(/^20/);
    expect(again['detail']).toMatch(/Whether the payment of 0\.10 USDC .* is not known yet\. Do not pay again/);
    expect([stage.settleCalls(), stage.charges()[0]]).toMatchObject([
      1,
      { state: 'settling', owner: null, attempts: 1 },
    ]);
  });

  it('behaviour: a payment that was settled before stays settled if the upstream is away, and the answer waits for its payer', async () => {
    const stage = createPayStage({ connect: (calls) => (calls === 2 ? AWAY : undefined) });
    await fail(stage, await post(stage), failed(false));
    const before = stage.charges()[0];
    const away = told(await post(stage));
    expect(away).toMatchObject({ status: 502, charged: true, retry_until: DAY_LATER });
    expect(away.headers).toEqual(expect.arrayContaining(['PAYMENT-RESPONSE', TRANSACTION]));
    expect(seconds(away)).toBe(2);
    expect(stage.charges()[0]).toEqual(before);
    expect(grantedBy(stage, forwarded(await post(stage)))?.asks).toMatchObject({ all: 1 });
    expect(stage.settleCalls()).toBe(1);
  });
});

describe('the upstream fails after the money moved', () => {
  it('behaviour: an ask of which not a byte left counts for nothing and makes no pause', async () => {
    const stage = createPayStage();
    for (let i = 0; i < 50; i++) {
      expect(await fail(stage, await post(stage), failed(false))).toMatchObject({
        members: { charged: true, retry_until: DAY_LATER },
        retryAfter: 2,
      });
    }
    expect(stage.charges()[0]).toMatchObject({ asks: { all: 0, afterFailure: 0 }, askAt: null });
  });

  it('behaviour: a client who leaves before a byte of the request left takes no ask with it', async () => {
    const stage = createPayStage();
    const gone = { kind: 'client_gone', status: undefined, headSent: false, failed: true, kept: undefined } as const;
    forwarded(await post(stage)).done({ ...gone, upload: 'broken_off', asked: false });
    await stage.pass(0);
    expect(stage.charges()[0]).toMatchObject({ undelivered: null, asks: { all: 0 }, askAt: null });
  });

  it('behaviour: the payer of a failed request is told at once what was charged, with the receipt and when to come back', async () => {
    const stage = createPayStage();
    const end = await fail(stage, await post(stage), failed(true));
    expect(end).toMatchObject({
      members: { charge_id: stage.charges()[0]?.id, charged: true, retry_until: DAY_LATER },
      headers: { 'PAYMENT-RESPONSE': TRANSACTION },
      retryAfter: 2,
    });
    expect(end.detail).toBe(
      `It failed. 0.10 USDC on eip155:84532 was charged. Send the very same request with the same payment again, until ${DAY_LATER}: it brings the answer without another charge.`,
    );
  });

  const failures: readonly (readonly [string, End, number])[] = [
    ['no answer', failed(true), 502],
    ['none in time', failed(true, { code: 'upstream_timeout' }), 504],
    ['half an answer', failed(true, { headersSent: true, status: 200 }), 502],
    ['a 503 of its own', { kind: 'delivered', status: 503, upstreamMs: 1, kept: undefined }, 503],
  ];
  it.each(failures)(
    'behaviour: after %s the same status comes again until the pause is over',
    async (_, end, status) => {
      const stage = createPayStage();
      forwarded(await post(stage)).done(end);
      await stage.pass(500);
      for (let i = 0; i < 20; i++) {
        const again = told(await post(stage));
        expect(again).toMatchObject({ status, charged: true, retry_until: DAY_LATER });
        expect(again['code']).toBe(status === 504 ? 'upstream_timeout' : 'upstream_unreachable');
        expect(seconds(again)).toBe(2);
      }
      await stage.pass(1_499);
      expect(seconds(told(await post(stage)))).toBe(1);
      expect(stage.charges()[0]?.asks).toMatchObject({ all: 1, afterFailure: 0 });
      await stage.pass(1);
      expect(grantedBy(stage, forwarded(await post(stage)))?.asks).toMatchObject({ all: 2, afterFailure: 1 });
    },
  );

  it('behaviour: the pauses after failures are 2 s, 10 s and a minute, then the charge is owed and says so', async () => {
    const stage = createPayStage({ support: 'mailto:help@example.com' });
    for (const pause of [2, 10, 60]) {
      expect((await fail(stage, await post(stage), failed(true))).retryAfter).toBe(pause);
      await stage.pass(pause * 1000 - 1);
      expect(told(await post(stage)).status).toBe(502);
      await stage.pass(1);
    }
    const last = await fail(stage, await post(stage), failed(true));
    expect(last).toMatchObject({ members: { charged: true, owed: true, support: 'mailto:help@example.com' } });
    expect([last.retryAfter, last.members?.['retry_until']]).toEqual([undefined, undefined]);
    const owed = told(await post(stage));
    expect(owed).toMatchObject({ status: 409, code: 'already_paid', charged: true, owed: true });
    expect(owed).toMatchObject({ support: 'mailto:help@example.com', charge_id: stage.charges()[0]?.id });
    expect(owed['detail']).toMatch(
      /0\.10 USDC on eip155:84532 was charged\. Do not pay again for it\. It is owed to you/,
    );
    expect(owed.headers).toEqual(expect.arrayContaining(['PAYMENT-RESPONSE', TRANSACTION]));
    expect(owed.headers).not.toContain('Retry-After');
  });
});

describe('where the money is', () => {
  it.each<[string, RailScript, object]>([
    [
      'a settlement that was not carried out',
      { settle: () => ({ kind: 'not_carried_out', reason: 'x', retryAfterMs: undefined }) },
      { code: 'facilitator_unavailable', charged: false },
    ],
    ['a settlement without a known end', { settle: unknown }, { code: 'settlement_unknown', charged: 'unknown' }],
  ])('behaviour: the payer is told if money moved after %s', async (_, script, said) => {
    const stage = createPayStage(script);
    expect(told(await post(stage))).toMatchObject({ ...said, charge_id: stage.charges()[0]?.id });
  });

  it('behaviour: who asks while another request delivers the charge is told that money moved', async () => {
    const stage = createPayStage();
    forwarded(await post(stage));
    const other = told(await post(stage));
    expect(other).toMatchObject({ status: 409, code: 'payment_in_use', charged: true });
    expect(other.headers).toEqual(expect.arrayContaining(['PAYMENT-RESPONSE', TRANSACTION]));
  });

  it('behaviour: an answer of 500 after a defect of ours says if money moved, as the ledger has it', async () => {
    const stage = createPayStage({
      settle: () => {
        throw new TypeError('a defect');
      },
    });
    expect(told(await post(stage))).toMatchObject({ status: 500, code: 'internal', charged: 'unknown' });
    const early = createPayStage({
      verify: () => {
        throw new TypeError('a defect');
      },
    });
    expect(told(await post(early))['charged']).toBeUndefined();
  });

  it('behaviour: a payer who was refunded is told that the money moved and is owed no more', async () => {
    const stage = createPayStage();
    const gone = { kind: 'client_gone', status: undefined, headSent: false, failed: false, kept: undefined } as const;
    forwarded(await post(stage)).done({ ...gone, upload: 'whole', asked: true });
    await stage.pass(0);
    const { id = '' } = stage.charges()[0] ?? {};
    expect(told(await post(stage))).toMatchObject({ code: 'already_paid', owed: true, charged: true });
    await stage.ledger.advance(id, { kind: 'refunded', note: '' }, { owner: 'operator' });
    expect(told(await post(stage))).toMatchObject({ code: 'already_paid', owed: false, charged: true });
  });

  it('behaviour: the payer is told if money moved although the ledger does not answer: it waits two seconds for it, not longer', async () => {
    const stage = createPayStage();
    const paid = forwarded(await post(stage));
    stage.away('reject');
    paid.done(failed(true));
    const telling = paid.tell(UNREACHABLE);
    await stage.pass(2_000);
    expect(await telling).toMatchObject({ members: { charged: true, retry_until: DAY_LATER }, retryAfter: 2 });
  });
});
