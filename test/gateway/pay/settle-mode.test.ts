// When a payment is settled, and for whom it is settled first.
import { describe, expect, it } from 'vitest';
import { createSettleModes, enoughToServeFirst } from '../../../src/gateway/pay/settler.ts';
import type { SettleFacts } from '../../../src/gateway/pay/payment.ts';

const HOUR_MS = 3_600_000;

function stage(remembered?: number): {
  modes: ReturnType<typeof createSettleModes>;
  mode: (facts?: Partial<SettleFacts>) => string;
  pass: (ms: number) => void;
} {
  let now = 5_000;
  const modes = createSettleModes(() => now, remembered);
  const usual = { wanted: 'auto', method: 'GET', conditionalWrite: false, payer: 'a', leftMs: 300_000 } as const;
  return {
    modes,
    mode: (facts) => modes.modeFor({ ...usual, enoughMs: enoughToServeFirst(60_000), ...facts }),
    pass: (ms) => void (now += ms),
  };
}

describe('what the request says', () => {
  it.each([
    ['GET', 'before_response'],
    ['HEAD', 'before_response'],
    ['POST', 'before_forward'],
    ['PUT', 'before_forward'],
    ['DELETE', 'before_forward'],
  ])('behaviour: a %s is settled %s', (method, mode) => expect(stage().mode({ method })).toBe(mode));

  it('behaviour: a mode that is configured wins over the method', () => {
    expect(stage().mode({ wanted: 'before_forward' })).toBe('before_forward');
    expect(stage().mode({ wanted: 'before_response', method: 'POST' })).toBe('before_response');
  });

  it('attack: a conditional write is settled first whatever is configured', () => {
    expect(stage().mode({ wanted: 'before_response', method: 'PUT', conditionalWrite: true })).toBe('before_forward');
  });

  it('attack: an authorization that may run out before the settlement is settled first', () => {
    const { mode } = stage();
    expect(mode({ leftMs: 70_000 })).toBe('before_response');
    expect(mode({ leftMs: 69_999 })).toBe('before_forward');
    expect(mode({ leftMs: 69_999, wanted: 'before_response' })).toBe('before_forward');
    expect(enoughToServeFirst(5_000)).toBe(60_000);
    expect(enoughToServeFirst(120_000)).toBe(130_000);
  });
});

describe('what the payer did', () => {
  it('attack: a payer whose upstream ran for nothing settles first for an hour', () => {
    const { modes, mode, pass } = stage();
    modes.ranUnpaid('a');
    expect([mode(), mode({ payer: 'b' })]).toEqual(['before_forward', 'before_response']);
    pass(HOUR_MS - 1);
    expect(mode({ wanted: 'before_response' })).toBe('before_forward');
    pass(1);
    expect(mode()).toBe('before_response');
  });

  it('attack: a payer who leaves three times before the status line settles first for an hour', () => {
    const { modes, mode, pass } = stage();
    modes.leftEarly('a');
    modes.leftEarly('a');
    expect(mode()).toBe('before_response');
    modes.leftEarly('a');
    expect([mode(), mode({ payer: 'b' })]).toEqual(['before_forward', 'before_response']);
    pass(HOUR_MS);
    expect(mode()).toBe('before_response');
    modes.leftEarly('a');
    expect(mode()).toBe('before_response');
  });

  it('behaviour: the last payers are remembered, as many as were asked for', () => {
    const { modes, mode } = stage(2);
    for (const payer of ['a', 'b', 'c']) modes.ranUnpaid(payer);
    expect(['a', 'b', 'c'].map((payer) => mode({ payer }))).toEqual([
      'before_response',
      'before_forward',
      'before_forward',
    ]);
  });
});
