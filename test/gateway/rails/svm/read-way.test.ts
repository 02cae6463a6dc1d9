// What is read of a way to pay on Solana, and everything that would lose money.
import { describe, expect, test } from 'vitest';
import type { WayInput } from '../../../../src/domain/payment/network.ts';
import { NETWORKS } from '../../../../src/gateway/rails/rails.ts';
import { base58, keyOf } from '../../../support/svm/wire.ts';

const WALLET = keyOf('shop').address;
const USDC = 'EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v';
const MAINNET = 'solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp';

const input = (overrides: Partial<WayInput> = {}): WayInput => ({
  network: 'solana',
  asset: undefined,
  asset_decimals: undefined,
  pay_to_address: WALLET,
  rpc_url: undefined,
  own: {},
  ...overrides,
});

describe('ways that can be paid', () => {
  test.each([
    ['network and wallet', {}],
    ['the network by another name', { network: 'solana-mainnet' }],
    ['the network by its CAIP-2 name', { network: MAINNET }],
    ['the token by its symbol', { asset: 'USDC' }],
    ['the token by its mint', { asset: USDC, asset_decimals: 6 }],
  ])('behaviour: a way on Solana can be paid with %s', (_, overrides) => {
    expect(NETWORKS.readWay(input(overrides))).toMatchObject({
      kind: 'way',
      way: { network: MAINNET, testnet: false, asset: USDC, decimals: 6, payTo: WALLET, terms: {}, rpcPublic: true },
    });
  });

  test('behaviour: a way on Solana can be paid with another mint, with its decimals and a node of one’s own', () => {
    const asset = keyOf('mint').address;
    const reading = NETWORKS.readWay(input({ asset, asset_decimals: 9, rpc_url: ['http://node.test'] }));
    expect(reading).toMatchObject({ way: { asset, decimals: 9, rpcUrls: ['http://node.test'], rpcPublic: false } });
  });
});

test.each<[string, Partial<WayInput>, string, RegExp]>([
  ['no wallet', { pay_to_address: undefined }, 'pay_to_address', /^is missing/],
  ['an EVM address', { pay_to_address: '0x209693Bc6afc0C5328bA36FaF03C514EF312287C' }, 'pay_to_address', /EVM/],
  ['a wallet of 31 bytes', { pay_to_address: base58(Buffer.alloc(31, 1)) }, 'pay_to_address', /^is not the address/],
  ['the system program', { pay_to_address: '1'.repeat(32) }, 'pay_to_address', /system program/],
  [
    'a token program',
    { pay_to_address: 'TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA' },
    'pay_to_address',
    /token program/,
  ],
  ['a mint as the wallet', { pay_to_address: USDC }, 'pay_to_address', /mint of a token/],
  [
    'a mint of another network as the wallet',
    { network: 'solana-devnet', pay_to_address: USDC },
    'pay_to_address',
    /mint of a token/,
  ],
  ['a symbol that is not known', { asset: 'EURC' }, 'asset', /write USDC or USDT/],
  ['a token of Token-2022', { asset: 'PYUSD' }, 'asset', /fees and hooks/],
  ['its mint', { asset: '2b1kV6DkPAnxd5ixfnxCpjxmKwqjjaYmCZfHsFu24GXo' }, 'asset', /fees and hooks/],
  ['other decimals of a known token', { asset_decimals: 18 }, 'asset_decimals', /which is 6/],
  ['a mint that is not known, without decimals', { asset: keyOf('mint').address }, 'asset_decimals', /^is missing/],
  ['an EIP-712 name', { own: { asset_name: 'USD Coin' } }, 'asset_name', /leave it out/],
  ['a network without USDC', { network: 'solana-testnet' }, 'asset', /^is missing/],
])('refuses: a way on Solana with %s', (_, overrides, field, message) => {
  const reading = NETWORKS.readWay(input(overrides));
  const found = reading.kind === 'issues' ? reading.issues.find((issue) => issue.field === field) : undefined;
  expect(found?.message).toMatch(message);
});

test('refuses: a cluster that is not known', () => {
  expect(NETWORKS.readWay(input({ network: 'solana:unknown' })).kind).toBe('issues');
});
