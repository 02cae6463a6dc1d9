import { address, getAddressDecoder, getAddressEncoder, getBase58Decoder, getProgramDerivedAddress } from '@solana/kit';
import { expect, test } from 'vitest';
import {
  findTokenAccount,
  isSvmAddress,
  readBase58,
  writeBase58,
} from '../../../../src/gateway/rails/svm/addresses.ts';
import { SVM_NETWORKS } from '../../../../src/gateway/rails/svm/known-networks.ts';
import { keyOf, PROGRAMS } from '../../../support/svm/wire.ts';

const BYTES = [
  Buffer.alloc(32),
  Buffer.alloc(32, 0xff),
  Buffer.concat([Buffer.alloc(5), Buffer.alloc(27, 9)]),
  ...Array.from({ length: 50 }, (_, at) => keyOf(`bytes ${at}`).bytes),
];

test('behaviour: an address of 32 bytes is written and read as the reference does', () => {
  for (const bytes of BYTES) {
    const text = getAddressDecoder().decode(bytes);
    expect(writeBase58(bytes)).toBe(text);
    expect(readBase58(text, 32)).toEqual(bytes);
    expect(isSvmAddress(text)).toBe(true);
  }
});

test('behaviour: a signature of 64 bytes is written and read as the reference does', () => {
  for (const bytes of [
    Buffer.alloc(64),
    Buffer.alloc(64, 0xff),
    keyOf('s').secret.export({ format: 'der', type: 'pkcs8' }),
  ]) {
    const text = getBase58Decoder().decode(bytes);
    expect(writeBase58(bytes)).toBe(text);
    expect(readBase58(text, bytes.length)).toEqual(bytes);
  }
});

test.each([
  ['nothing', ''],
  ['31 bytes', writeBase58(Buffer.alloc(31, 1))],
  ['33 bytes', writeBase58(Buffer.alloc(33, 1))],
  ['one leading zero too many', `1${writeBase58(Buffer.alloc(32, 1))}`],
  ['a character of no alphabet', writeBase58(Buffer.alloc(32, 1)).replace(/.$/, '0')],
  ['45 characters', '1'.repeat(45)],
])('refuses: %s as an address', (_, text) => {
  expect(isSvmAddress(text)).toBe(false);
});

test('behaviour: the token account of an owner is the one that the reference derives', async () => {
  const mints = SVM_NETWORKS.flatMap(({ tokens }) => tokens.map((token) => token.address));
  for (const mint of mints) {
    for (let at = 0; at < 40; at++) {
      const owner = keyOf(`owner ${at}`).address;
      const seeds = [owner, PROGRAMS.token, mint].map((text) => getAddressEncoder().encode(address(text)));
      const [expected] = await getProgramDerivedAddress({ programAddress: address(PROGRAMS.associated), seeds });
      expect(findTokenAccount(owner, mint)).toBe(expected);
    }
  }
});

test('refuses: to derive a token account of an owner that is no address', () => {
  const { address: fine } = keyOf('owner');
  expect(findTokenAccount('0x1111111111111111111111111111111111111111', fine)).toBeUndefined();
  expect(findTokenAccount(fine, '')).toBeUndefined();
});
