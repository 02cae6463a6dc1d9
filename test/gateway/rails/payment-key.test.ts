// The one spelling of a payment: however a client writes it, it is one payment.
import { describe, expect, test } from 'vitest';
import { SPELLING } from '../../../src/gateway/rails/rails.ts';
import { ASSET, hash32 } from '../../cases/claims.ts';

describe('a payment', () => {
  const key = {
    network: 'base-sepolia',
    asset: ASSET,
    payer: `0x${'aB'.repeat(20)}`,
    unique: hash32(10).replace('a', 'A'),
  };

  test('attack: fifty spellings of one payment are one payment', () => {
    const spell = (text: string, n: number): string =>
      text.replace(/[a-f]/gi, (letter, at: number) =>
        (n >> (at % 5)) & 1 ? letter.toUpperCase() : letter.toLowerCase(),
      );
    const keys = Array.from({ length: 50 }, (_, n) =>
      SPELLING.payment({
        network: n % 2 === 0 ? 'base-sepolia' : 'eip155:84532',
        asset: spell(key.asset, n),
        payer: spell(key.payer, n),
        unique: spell(key.unique, n).replace(/^0x/, n % 7 === 0 ? '0X' : '0x'),
      }),
    );
    expect(new Set(keys.map((each) => JSON.stringify(each))).size).toBe(1);
    expect(keys[0]).toEqual({
      network: 'eip155:84532',
      asset: ASSET.toLowerCase(),
      payer: `0x${'ab'.repeat(20)}`,
      unique: hash32(10),
    });
  });

  test.each([
    { network: 'eip155:084532' },
    { network: 'solana' },
    { asset: 'USDC' },
    { asset: `${ASSET} ` },
    { payer: key.payer.slice(2) },
    { payer: `${key.payer}0` },
    { unique: key.unique.slice(0, -1) },
    { unique: '0xa' },
    { unique: '10' },
    { unique: `${key.unique}\n` },
  ])('refuses: a payment key with %j', (part) => {
    expect(SPELLING.payment({ ...key, ...part })).toBeUndefined();
  });
});

test('attack: a transaction has one spelling', () => {
  expect(SPELLING.identifier('0XAbC')).toBe('0xabc');
  const base58 = '5VERv8NMvzbJMEkV8xnrLkEaWRtSz9CosKDYjCJjBRnb';
  expect(SPELLING.identifier(base58)).toBe(base58);
});
