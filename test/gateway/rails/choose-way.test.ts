// Which way a payment is read for: the one that it names, whatever was shown; never another one.
import { describe, expect, test } from 'vitest';
import type { RailOffer, Way } from '../../../src/domain/payment/way.ts';
import { SVM_NETWORK, SVM_USDC } from '../../support/svm/chain.ts';
import { keyOf } from '../../support/svm/wire.ts';
import { acceptedOf, encode, makeOffer, makeRail, PAY_TO, SIGNED } from './kit.ts';

const { rail } = makeRail();
const OTHER_TOKEN = '0x2222222222222222222222222222222222222222';
const OTHER_WALLET = '0x00000000000000000000000000000000000CaFe0';

const SEPOLIA = makeOffer();
const TO_OTHER = makeOffer({ payTo: OTHER_WALLET });
const IN_OTHER = makeOffer({ asset: OTHER_TOKEN });
const FUJI = makeOffer({ network: 'eip155:43113', networkName: 'avalanche-fuji' });
const SOLANA: RailOffer = {
  ...SEPOLIA,
  way: {
    ...SEPOLIA.way,
    ...{ network: SVM_NETWORK, asset: SVM_USDC, payTo: keyOf('shop').address, terms: {} },
  },
};
const OFFERS = [SOLANA, SEPOLIA, TO_OTHER, IN_OTHER, FUJI];
const WAYS = OFFERS.map(({ way }) => way);

const read = (offer: RailOffer, changes: object = {}, payload: unknown = SIGNED, ways: readonly Way[] = WAYS) =>
  rail.read(
    { version: 2, value: encode({ x402Version: 2, accepted: { ...acceptedOf(offer), ...changes }, payload }) },
    ways,
  );
const readV1 = (network: string, ways: readonly Way[] = WAYS) =>
  rail.read({ version: 1, value: encode({ x402Version: 1, scheme: 'exact', network, payload: SIGNED }) }, ways);
const mismatch = (expected: string) => ({ reason: 'way_mismatch', expected });

describe('version 2', () => {
  test.each(
    OFFERS.slice(1).map((offer) => [`${offer.way.network} ${offer.way.asset} ${offer.way.payTo}`, offer] as const),
  )('behaviour: a payment names %s by network, asset and payTo', (_, offer) => {
    expect(read(offer)).toMatchObject({ way: offer.way, key: { network: offer.way.network } });
  });

  test('behaviour: addresses of EVM are compared without their case, to the very object that is configured', () => {
    const presented = read(IN_OTHER, {
      payTo: PAY_TO.toLowerCase(),
      asset: OTHER_TOKEN.toUpperCase().replace('0X', '0x'),
    });
    expect(presented).toHaveProperty('way', IN_OTHER.way);
  });

  test('behaviour: scheme and amount do not choose the way', () => {
    expect(read(SEPOLIA, { scheme: 'upto', amount: '1' })).toHaveProperty('way', SEPOLIA.way);
  });

  test.each<[string, object, string]>([
    ['a network that is known', { network: 'eip155:8453' }, 'network eip155:8453 is not offered'],
    ['a network that nobody knows', { network: 'eip155:987654321' }, 'this network is not offered'],
    ['a network in another case', { network: 'EIP155:84532' }, 'this network is not offered'],
    ['no network', { network: '' }, 'this network is not offered'],
    ['a name of version 1', { network: 'base-sepolia' }, 'network eip155:84532, as version 2 names it'],
    [
      'another asset',
      { asset: '0x3333333333333333333333333333333333333333' },
      `asset ${SEPOLIA.way.asset} or ${OTHER_TOKEN} on eip155:84532`,
    ],
    ['a symbol', { asset: 'USDC' }, `asset ${SEPOLIA.way.asset} or ${OTHER_TOKEN} on eip155:84532`],
    ['a mint', { asset: SVM_USDC }, `asset ${SEPOLIA.way.asset} or ${OTHER_TOKEN} on eip155:84532`],
    ['another wallet', { payTo: OTHER_TOKEN }, `payTo ${PAY_TO} or ${OTHER_WALLET} on eip155:84532`],
    [
      'the wallet of a way in another asset',
      { asset: OTHER_TOKEN, payTo: OTHER_WALLET },
      `payTo ${PAY_TO} on eip155:84532`,
    ],
  ])('refuses: a payment of version 2 that names %s', (_, changes, expected) => {
    const presented = read(SEPOLIA, changes);
    expect('way' in presented ? presented.way : presented).toEqual(mismatch(expected));
  });

  test('attack: an asset of Solana in another case is another asset', () => {
    const transaction = { transaction: 'AQAB' };
    const refused = read(SOLANA, { asset: SVM_USDC.toLowerCase() }, transaction);
    // It is malformed before the asset is looked at, or refused for it: never taken for the way.
    expect(refused).not.toHaveProperty('key');
  });
});

describe('a mixture of two ways', () => {
  test('attack: a transaction in a way of EVM is refused', () => {
    expect(read(SEPOLIA, {}, { transaction: 'AQAB' })).toEqual(mismatch('a payment of the kind of eip155:84532'));
  });

  test('attack: an authorization in a way of Solana is refused', () => {
    expect(read(SOLANA)).toEqual(mismatch(`a payment of the kind of ${SVM_NETWORK}`));
  });

  test('attack: an authorization in a network of Solana that is not offered is refused', () => {
    expect(read(SOLANA, {}, SIGNED, [SEPOLIA.way])).toEqual(mismatch(`network ${SVM_NETWORK} is not offered`));
  });

  test('behaviour: a kind of payment that no way takes is named as before', () => {
    expect(read(SEPOLIA, {}, { transaction: 'AQAB' }, [SEPOLIA.way])).toMatchObject({
      code: 'payment_malformed',
      detail: expect.stringContaining('signed transaction'),
    });
  });
});

describe('version 1', () => {
  test('behaviour: a payment of version 1 names the first way of its network', () => {
    expect(readV1('base-sepolia')).toHaveProperty('way', SEPOLIA.way);
    expect(readV1('base-sepolia', [FUJI.way, IN_OTHER.way, SEPOLIA.way])).toMatchObject({
      way: IN_OTHER.way,
      key: { asset: OTHER_TOKEN },
    });
    expect(readV1('avalanche-fuji')).toHaveProperty('way', FUJI.way);
  });

  test.each([
    ['base', 'network eip155:8453 is not offered'],
    ['eip155:84532', 'network base-sepolia, as version 1 names it'],
    ['nowhere', 'this network is not offered'],
  ])('refuses: a payment of version 1 that names %s', (network, expected) => {
    expect(readV1(network)).toEqual(mismatch(expected));
  });
});

test('behaviour: a payment that names no offered way is read all the same, for the ledger', () => {
  expect(read(SEPOLIA, {}, SIGNED, [])).toMatchObject({
    key: { network: 'eip155:84532' },
    way: { reason: 'way_mismatch' },
  });
});
