// What a payer is told whose payment does not fit a way: what was expected, in our own words, and nothing is asked or written.
import { describe, expect, it } from 'vitest';
import type { Outcome, ResponseOutcome } from '../../../src/gateway/outcome.ts';
import type { Refusal } from '../../../src/gateway/rails/rail.ts';
import { receiverOf, RECEIVER, WAY } from '../../cases/receivers.ts';
import { createPayStage, settled, type RailScript } from './stage.ts';

const MISMATCH: Refusal = { reason: 'way_mismatch', expected: 'network eip155:8453 is not offered' };
const TOLD = 'payment_refused: way_mismatch: network eip155:8453 is not offered';

function answered(outcome: Outcome): ResponseOutcome {
  if (outcome.kind !== 'response') throw new Error(`not answered but ${outcome.kind}`);
  return outcome;
}

function told(outcome: Outcome): unknown[] {
  const { response, reason } = answered(outcome);
  return [response.status, reason, response.headers[response.headers.indexOf('Tollgate-Reason') + 1]];
}

const neverAsked = () => {
  throw new Error('a facilitator was asked');
};

describe('a payment that names no way', () => {
  it('behaviour: a payment that names no way is refused, and told what was expected', async () => {
    const stage = createPayStage({ read: (presented) => ({ ...presented, way: MISMATCH }), verify: neverAsked });
    const outcome = await stage.pay();
    expect(told(outcome)).toEqual([402, TOLD, TOLD]);
    expect(answered(outcome).response.headers).toContain('PAYMENT-RESPONSE');
    expect(stage.charges()).toEqual([]);
  });

  it('behaviour: a payment that cannot even be read as far as to know it is refused, and told what was expected', async () => {
    const stage = createPayStage({ read: () => MISMATCH, verify: neverAsked });
    expect(told(await stage.pay())).toEqual([402, TOLD, TOLD]);
    expect(stage.charges()).toEqual([]);
  });

  it('behaviour: a payment that names no way any more is answered by the ledger if that knows it', async () => {
    let isGone = false;
    const stage = createPayStage({
      read: (presented) => (isGone ? { ...presented, way: MISMATCH } : presented),
      settle: () => settled(),
    });
    const paid = await stage.pay({ method: 'POST' });
    expect(paid.kind).toBe('forward');
    isGone = true;
    expect(told(await stage.pay({ method: 'POST' })).slice(0, 2)).toEqual([409, 'payment_in_use']);
    expect(told(await stage.pay({ method: 'POST', nonce: 2 }))[1]).toBe(TOLD);
  });
});

it('attack: a way that cannot hold the price is not paid by rounding it', async () => {
  const ways = [...receiverOf({ decimals: 0 }).ways, ...RECEIVER.ways];
  const stage = createPayStage({ ways, verify: neverAsked });
  expect(told(await stage.pay())).toEqual([
    402,
    'payment_refused: way_mismatch: a price of at most 0 decimals on eip155:84532',
    expect.any(String),
  ]);
});

describe('a facilitator that is away', () => {
  const OTHER = receiverOf({ network: 'eip155:43113', networkName: 'avalanche-fuji' });
  const MORE = receiverOf({ payTo: `0x${'9'.repeat(40)}`, network: 'eip155:43113', networkName: 'avalanche-fuji' });
  const away = { kind: 'unavailable', detail: 'test', retryAfterMs: undefined } as const;
  const detailOf = (outcome: Outcome): unknown => JSON.parse(String(answered(outcome).response.body)).detail;
  const HERE = 'Send the same request again later.';

  it.each<[string, Omit<RailScript, 'verify'>, string]>([
    ['nothing where there is no other way', {}, HERE],
    [
      'each network of another way once',
      { ways: [...RECEIVER.ways, ...OTHER.ways, ...MORE.ways] },
      `${HERE} What can be paid on now: eip155:43113.`,
    ],
    [
      'none whose facilitators are left alone too',
      { ways: [...RECEIVER.ways, ...OTHER.ways], isCallable: ({ network }) => network === WAY.network },
      HERE,
    ],
  ])('behaviour: the answer if a facilitator is away names %s', async (_, script, end) => {
    const stage = createPayStage({ ...script, verify: () => away });
    expect(detailOf(await stage.pay())).toBe(`The payment cannot be verified right now; nothing was charged. ${end}`);
    const settling = createPayStage({
      ...script,
      settle: () => ({ kind: 'not_carried_out', reason: 'facilitator_unavailable', retryAfterMs: undefined }),
    });
    expect(detailOf(await settling.pay({ method: 'POST' }))).toBe(
      `The payment cannot be settled right now; nothing was charged. ${end} The payment of 0.10 USDC on ${WAY.network} was not taken.`,
    );
  });
});

it('attack: the words that tell a payer what was expected are at most 200 printable characters, whatever was configured', async () => {
  const expected = `é\r\nX: y${'long '.repeat(100)}`;
  const stage = createPayStage({ read: () => ({ reason: 'way_mismatch', expected }) });
  const [, , header] = told(await stage.pay());
  expect(header).toMatch(/^payment_refused: way_mismatch: \?\?\?X: y[\x20-\x7e]+$/);
  expect(header).toHaveLength(200);
});
