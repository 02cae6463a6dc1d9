// What a payer is told whose payment does not fit a way: what was expected, in our own words, and nothing is asked or written.
import { describe, expect, it } from 'vitest';
import type { Outcome, ResponseOutcome } from '../../../src/gateway/outcome.ts';
import type { Refusal } from '../../../src/gateway/rails/rail.ts';
import { createPayStage, settled } from './stage.ts';

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
  it('behaviour: is refused, and told what was expected', async () => {
    const stage = createPayStage({ read: (presented) => ({ ...presented, way: MISMATCH }), verify: neverAsked });
    const outcome = await stage.pay();
    expect(told(outcome)).toEqual([402, TOLD, TOLD]);
    expect(answered(outcome).response.headers).toContain('PAYMENT-RESPONSE');
    expect(stage.charges()).toEqual([]);
  });

  it('behaviour: and not even so much that it could be known, as well', async () => {
    const stage = createPayStage({ read: () => MISMATCH, verify: neverAsked });
    expect(told(await stage.pay())).toEqual([402, TOLD, TOLD]);
    expect(stage.charges()).toEqual([]);
  });

  it('behaviour: is answered by the ledger where that knows it', async () => {
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

it('attack: what is told is at most 200 printable characters, whatever was configured', async () => {
  const expected = `é\r\nX: y${'long '.repeat(100)}`;
  const stage = createPayStage({ read: () => ({ reason: 'way_mismatch', expected }) });
  const [, , header] = told(await stage.pay());
  expect(header).toMatch(/^payment_refused: way_mismatch: \?\?\?X: y[\x20-\x7e]+$/);
  expect(header).toHaveLength(200);
});
