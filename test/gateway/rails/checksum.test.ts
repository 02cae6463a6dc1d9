// EIP-55 against the library that wallets use.
import { randomBytes } from 'node:crypto';
import { getAddress } from 'viem';
import { expect, test } from 'vitest';
import { hasWrongChecksum } from '../../../src/gateway/rails/evm/read-way.ts';

// The vectors of EIP-55 itself.
test.each([
  '0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed',
  '0xfB6916095ca1df60bB79Ce92cE3Ea74c37c5d359',
  '0xdbF03B407c01E7cD3CBea99509d93f8DDDC8C6FB',
  '0xD1220A0cf47c7B9Be7A2E6BA89F429762e7b9aDb',
  '0x52908400098527886E0F7030069857D2E4169EE7',
  '0xde709f2102306220921060314715629080e2fb77',
])('behaviour: the address %s is right', (address) => expect(hasWrongChecksum(address)).toBe(false));

test('behaviour: a thousand addresses are right as viem writes them, in one case, and wrong with one letter turned', () => {
  for (let round = 0; round < 1000; round++) {
    const address = getAddress(`0x${randomBytes(20).toString('hex')}`);
    expect(hasWrongChecksum(address)).toBe(false);
    expect(hasWrongChecksum(address.toLowerCase())).toBe(false);
    expect(hasWrongChecksum(`0x${address.slice(2).toUpperCase()}`)).toBe(false);
    const digits = address.slice(2);
    const letters = [...digits.matchAll(/[a-f]/gi)];
    const [letter] = letters;
    if (letter === undefined) continue;
    const turned = letter[0] === letter[0].toLowerCase() ? letter[0].toUpperCase() : letter[0].toLowerCase();
    const wrong = digits.slice(0, letter.index) + turned + digits.slice(letter.index + 1);
    if (wrong === wrong.toLowerCase() || wrong === wrong.toUpperCase()) continue;
    expect([wrong, hasWrongChecksum(`0x${wrong}`)]).toEqual([wrong, true]);
  }
});
