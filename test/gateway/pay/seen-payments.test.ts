// A seen payment is never forgotten before two generations are full; an unseen one is hardly ever taken for a seen one.
import { createHash } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import type { PaymentKey } from '../../../src/domain/payment/charge.ts';
import { createSeenPayments } from '../../../src/gateway/pay/seen-payments.ts';

const payment = (number: number): PaymentKey => ({
  network: 'eip155:84532',
  asset: '0x036cbd53842c5426634e7929541ec2318f3dcf7e',
  payer: `0x${'ab'.repeat(20)}`,
  unique: `0x${createHash('sha256').update(String(number)).digest('hex')}`,
});
const numbers = (from: number, to: number): number[] => Array.from({ length: to - from }, (_, index) => from + index);

describe('createSeenPayments', () => {
  const CAPACITY = 1000;

  it('no payment is seen at first', () => {
    const seen = createSeenPayments(CAPACITY);
    expect(numbers(0, 100).filter((number) => seen.has(payment(number)))).toEqual([]);
  });

  it('payments of the generation being filled and of the one before are seen, and none older', () => {
    const seen = createSeenPayments(CAPACITY);
    for (const number of numbers(0, 2 * CAPACITY)) seen.add(payment(number));
    expect(numbers(0, 2 * CAPACITY).filter((number) => !seen.has(payment(number)))).toEqual([]);
    seen.add(payment(2 * CAPACITY));
    expect(numbers(CAPACITY, 2 * CAPACITY + 1).filter((number) => !seen.has(payment(number)))).toEqual([]);
    expect(numbers(0, CAPACITY).filter((number) => seen.has(payment(number))).length).toBeLessThan(CAPACITY / 100);
  });

  it('few unseen payments are taken for seen ones', () => {
    const seen = createSeenPayments(CAPACITY);
    for (const number of numbers(0, 2 * CAPACITY)) seen.add(payment(number));
    const mistaken = numbers(1_000_000, 1_050_000).filter((number) => seen.has(payment(number)));
    expect(mistaken.length).toBeLessThan(50_000 * 0.01);
  });

  it('nonces are told apart by each of their first four parts', () => {
    const seen = createSeenPayments(CAPACITY);
    const nonce = payment(1).unique;
    seen.add(payment(1));
    for (const part of [0, 1, 2, 3]) {
      const at = nonce.length - 32 + part * 8;
      const other = `${nonce.slice(0, at)}${nonce.startsWith('0', at + 7) ? '11111111' : '00000000'}${nonce.slice(at + 8)}`;
      expect([part, seen.has({ ...payment(1), unique: other })]).toEqual([part, false]);
    }
  });

  it.each(['', '0x', `0x${'AB'.repeat(32)}`, 'ab'.repeat(33), `0x${'zz'.repeat(32)}`])(
    'a nonce that is not canonical may always have been seen: "%s"',
    (nonce) => {
      const seen = createSeenPayments(CAPACITY);
      seen.add({ ...payment(1), unique: nonce });
      expect(seen.has({ ...payment(1), unique: nonce })).toBe(true);
    },
  );
});
