// The table of networks, row by row against the lists of other projects: a wrong digit here would lose money.
import { DEFAULT_ASSETS } from '@x402/evm';
import * as chains from 'viem/chains';
import { getAddress } from 'viem';
import { describe, expect, test } from 'vitest';
import { EVM_NETWORKS, PERMIT2_TOKENS } from '../../../src/gateway/rails/evm/known-networks.ts';
import { NETWORKS } from '../../../src/gateway/rails/rails.ts';
import { SVM_NETWORKS } from '../../../src/gateway/rails/svm/known-networks.ts';

const plain = (url: string): string => url.replace(/\/$/, '');

describe.each(EVM_NETWORKS)('$name', ({ caip2, testnet, nativeCurrency, rpcUrls, explorer, tokens }) => {
  const chainId = Number(caip2.replace('eip155:', ''));
  const listed = Object.values(chains).filter((chain) => chain.id === chainId);

  test('behaviour: the currency, explorer and kind of a network are those of viem, and it has one node at least', () => {
    expect(listed.map((chain) => chain.nativeCurrency)).toContainEqual(nativeCurrency);
    expect(listed.map((chain) => plain(chain.blockExplorers?.default.url ?? ''))).toContain(plain(explorer));
    expect(listed.map((chain) => ('testnet' in chain ? chain.testnet === true : false))).toContain(testnet);
    expect(listed.flatMap((chain) => chain.rpcUrls.default.http.map(plain))).toContain(plain(rpcUrls[0] ?? ''));
  });

  test('behaviour: the tokens of a network are those of x402, if it lists some, with checksums', () => {
    for (const { address } of tokens) expect(getAddress(address)).toBe(address);
    const theirs = DEFAULT_ASSETS[caip2] ?? [];
    const eip3009 = theirs.filter((asset) => asset.assetTransferMethod === undefined);
    if (eip3009.length === 0) return;
    expect(
      tokens.map(({ symbol, address, decimals, terms }) => ({ symbol, asset: address, decimals, ...terms })),
    ).toEqual(
      eip3009.map(({ symbol, asset, decimals, name, version }) => ({ symbol, asset, decimals, name, version })),
    );
  });
});

test('behaviour: every token of x402 stands in the table, or is one of Permit2', () => {
  const known = new Map(
    NETWORKS.known.flatMap(({ caip2, tokens }) => tokens.map((token) => [`${caip2} ${token.address}`, token])),
  );
  for (const [network, assets] of Object.entries(DEFAULT_ASSETS)) {
    for (const { asset, symbol, assetTransferMethod } of assets ?? []) {
      if (assetTransferMethod === 'permit2') expect(PERMIT2_TOKENS[network]).toEqual({ symbol, address: asset });
      else expect(known.has(`${network} ${asset}`)).toBe(true);
    }
  }
});

test('behaviour: every network has a name of its own, and that of x402 1.x if there is one', () => {
  const names = NETWORKS.known.map(({ name }) => name);
  expect(new Set(names).size).toBe(names.length);
  expect(new Set(NETWORKS.known.map(({ caip2 }) => caip2)).size).toBe(names.length);
  expect(NETWORKS.known.flatMap(({ v1 }) => v1 ?? []).toSorted()).toEqual([
    'abstract',
    'abstract-testnet',
    'avalanche',
    'avalanche-fuji',
    'base',
    'base-sepolia',
    'educhain',
    'iotex',
    'peaq',
    'polygon',
    'polygon-amoy',
    'sei',
    'sei-testnet',
    'skale-base-sepolia',
    'solana',
    'solana-devnet',
    'story',
  ]);
});

test.each([
  ['base', 'base'],
  ['eip155:8453', 'base'],
  ['solana', 'solana'],
  ['solana-mainnet', 'solana'],
  ['solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp', 'solana'],
  ['xdc-apothem', 'xdc-apothem'],
  ['Base', undefined],
  ['eip155:999999', undefined],
  ['', undefined],
  ['constructor', undefined],
])('behaviour: the network written %j is %s', (written, name) => {
  expect(NETWORKS.find(written)?.name).toBe(name);
});

test.each([
  ['bse', 'base'],
  ['base-sepola', 'base-sepolia'],
  ['Base', 'base'],
  ['arbitrum-one', 'arbitrum'],
  ['eth', undefined],
])('behaviour: a network written %j probably meant %s', (written, meant) => {
  expect(NETWORKS.suggest(written)).toBe(meant);
});

test('behaviour: the tokens known on Solana are of SPL Token alone', () => {
  expect(SVM_NETWORKS.map(({ name, tokens }) => [name, tokens.map(({ symbol }) => symbol)])).toEqual([
    ['solana', ['USDC', 'USDT']],
    ['solana-devnet', ['USDC']],
    ['solana-testnet', []],
  ]);
});
