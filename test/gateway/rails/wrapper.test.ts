// Signatures of wallets that may not be on the chain yet (ERC-6492): one exact form, as viem writes it, and every other is
// refused before anybody is asked.
import fc from 'fast-check';
import { concat, decodeAbiParameters, encodeAbiParameters, pad, parseAbiParameters, size, type Hex } from 'viem';
import { describe, expect, test } from 'vitest';
import { wrap } from '../../support/chain/smart-wallet.ts';
import { acceptedOf, encode, makeOffer, makeRail, SIGNED } from './kit.ts';

const { rail } = makeRail();
const OFFER = makeOffer();
const MAGIC: Hex = `0x${'6492'.repeat(16)}`;
const FACTORY = '0x00000000000000000000000000000000000fac70';
const CALL: Hex = '0xdeadbeef01';
const INNER: Hex = `0x${'ab'.repeat(65)}`;

const WHOLE = wrap({ factory: FACTORY, call: CALL, signature: INNER });
const word = (value: bigint | number): Hex => pad(`0x${value.toString(16)}`, { size: 32 });
const address = (text: string): Hex => pad(text as Hex, { size: 32 });
const call = (hex: Hex): Hex =>
  encodeAbiParameters(parseAbiParameters('bytes'), [hex]).replace(word(32).slice(2), '') as Hex;
/** The parts one after the other, which `encodeAbiParameters` would write in order. */
const written = (...parts: readonly Hex[]): Hex => concat([...parts, MAGIC]);
const HEAD = [address(FACTORY), word(96), word(160)] as const;

function readAs(version: 1 | 2, signature: string): string {
  const payload = { ...SIGNED, signature };
  const json =
    version === 2
      ? { x402Version: 2, accepted: acceptedOf(OFFER), payload }
      : { x402Version: 1, scheme: 'exact', network: 'base-sepolia', payload };
  const presented = rail.read({ version, value: encode(json) }, [OFFER.way]);
  return 'code' in presented ? `${presented.code}: ${presented.detail}` : 'read';
}

describe.each([1, 2] as const)('in version %i', (version) => {
  test('behaviour: a signature that is written by hand here is what viem writes', () => {
    expect(written(...HEAD, call(CALL), call(INNER))).toBe(WHOLE);
  });

  test.each<[string, Hex]>([
    ['a call and a signature', WHOLE],
    ['the shortest call and signature', wrap({ factory: FACTORY, call: '0xdeadbeef', signature: '0x01' })],
    [
      'parts of whole words',
      wrap({ factory: FACTORY, call: pad('0x1', { size: 64 }), signature: pad('0x1', { size: 96 }) }),
    ],
    ['upper case', `0x${WHOLE.slice(2).toUpperCase()}`],
    ['a contract that is there, whose signature is anything', `0x${'6492'.repeat(40)}00`],
  ])('behaviour: a wrapped signature of %s is read', (_, signature) => {
    expect(readAs(version, signature)).toBe('read');
  });

  test.each<[string, Hex]>([
    ['no factory', wrap({ factory: `0x${'0'.repeat(40)}`, call: CALL, signature: INNER })],
    ['no call', wrap({ factory: FACTORY, call: '0x', signature: INNER })],
    ['a call of three bytes', wrap({ factory: FACTORY, call: '0xdeadbe', signature: INNER })],
    ['no inner signature', wrap({ factory: FACTORY, call: CALL, signature: '0x' })],
    ['another wrapper inside', wrap({ factory: FACTORY, call: CALL, signature: WHOLE })],
    ['the mark and nothing else', concat([`0x${'00'.repeat(33)}`, MAGIC])],
    ['a signature of a key and the mark', concat([INNER, MAGIC])],
    ['a byte too many', concat([WHOLE.slice(0, -64) as Hex, '0x00', MAGIC])],
    ['a word too many', concat([WHOLE.slice(0, -64) as Hex, word(0), MAGIC])],
    ['a word too few', concat([WHOLE.slice(0, -128) as Hex, MAGIC])],
    ['a factory of more than 20 bytes', written(word(2n ** 160n + 1n), word(96), word(160), call(CALL), call(INNER))],
    ['a call that begins elsewhere', written(address(FACTORY), word(128), word(160), call(CALL), call(INNER))],
    ['a signature that begins elsewhere', written(address(FACTORY), word(96), word(96), call(CALL), call(INNER))],
    ['one word for both', written(address(FACTORY), word(96), word(96), call(CALL))],
    ['parts in the other order', written(address(FACTORY), word(224), word(96), call(INNER), call(CALL))],
    ['a gap between them', written(address(FACTORY), word(96), word(192), call(CALL), word(0), call(INNER))],
    ['a length beyond the end', written(...HEAD, concat([word(2n ** 31n), word(0)]), call(INNER))],
    [
      'a length of more than 32 bits',
      written(...HEAD, concat([word(2n ** 32n + 5n), pad(CALL, { size: 32, dir: 'right' })]), call(INNER)),
    ],
    [
      'a call that is not filled up with zeros',
      written(...HEAD, concat([word(5), CALL, `0x${'ff'.repeat(27)}`]), call(INNER)),
    ],
    ['a signature that is not filled up', written(...HEAD, call(CALL), concat([word(65), INNER]))],
  ])('refuses: a wrapped signature with %s', (_, signature) => {
    expect(readAs(version, signature)).toMatch(
      /^payment_malformed: The payment has a wrong payload\.signature: it is not an ERC-6492/,
    );
  });

  test('attack: a wrapped signature that is changed in any two bytes is read only if viem would write it so', () => {
    const bytes = Buffer.from(WHOLE.slice(2), 'hex');
    const at = fc.nat(bytes.length - 33);
    const by = fc.nat(255);
    fc.assert(
      fc.property(at, by, at, by, (first, one, second, other) => {
        const changed = Buffer.from(bytes);
        changed.writeUInt8(changed.readUInt8(first) ^ one, first);
        changed.writeUInt8(changed.readUInt8(second) ^ other, second);
        const signature: Hex = `0x${changed.toString('hex')}`;
        expect(readAs(version, signature) === 'read').toBe(isAsWritten(signature));
      }),
      { numRuns: 500 },
    );
  });
});

function isAsWritten(signature: Hex): boolean {
  const body = signature.slice(0, -64) as Hex;
  try {
    const [factory, call, inner] = decodeAbiParameters(parseAbiParameters('address, bytes, bytes'), body);
    const isWhole = size(call) >= 4 && size(inner) > 0 && BigInt(factory) > 0n;
    return isWhole && wrap({ factory: factory.toLowerCase() as Hex, call, signature: inner }) === signature;
  } catch {
    return false;
  }
}
