// What is read of a way to pay, and everything that would lose money.
import { describe, expect, test } from 'vitest';
import type { WayInput } from '../../../src/domain/payment/network.ts';
import { isSvmAddress } from '../../../src/gateway/rails/svm/addresses.ts';
import { NETWORKS } from '../../../src/gateway/rails/rails.ts';

const WALLET = '0x209693Bc6afc0C5328bA36FaF03C514EF312287C';
const OTHER_TOKEN = '0xcA11bde05977b3631167028862bE2a173976CA11';
const DEAD = `0x${'0'.repeat(36)}dEaD`;

/** Keys as a configuration writes them. */
type Written = Omit<WayInput, 'own'> & {
  readonly asset_name?: string | undefined;
  readonly asset_version?: string | undefined;
};

function input({ asset_name, asset_version, ...overrides }: Partial<Written> = {}): WayInput {
  return {
    network: 'base',
    asset: undefined,
    asset_decimals: undefined,
    pay_to_address: WALLET,
    rpc_url: undefined,
    own: { asset_name, asset_version },
    ...overrides,
  };
}
const OTHER = { asset: OTHER_TOKEN, asset_decimals: 18, asset_name: 'T', asset_version: '1' };

describe('ways that can be paid', () => {
  test.each(
    NETWORKS.known
      .filter(({ caip2 }) => caip2.startsWith('eip155:'))
      .flatMap((network) => network.tokens.map((token) => ({ network, token }))),
  )('behaviour: $network.name, $token.symbol and an address are enough', ({ network, token }) => {
    const expected = {
      network: network.caip2,
      testnet: network.testnet,
      asset: token.address,
      decimals: token.decimals,
      terms: token.terms,
      payTo: WALLET,
      rpcUrls: network.rpcUrls,
      rpcPublic: true,
    };
    for (const name of [network.name, network.caip2]) {
      expect(NETWORKS.readWay(input({ network: name, asset: token.symbol }))).toEqual({
        kind: 'way',
        way: expected,
        warnings: [],
      });
    }
  });

  test.each<[string, Partial<Written>]>([
    ['USDC where no token is named', {}],
    ['an address in lower case', { pay_to_address: WALLET.toLowerCase() }],
    ['an address in upper case', { pay_to_address: `0x${WALLET.slice(2).toUpperCase()}` }],
    ['another token, written whole', OTHER],
    ['any chain, with a node', { network: 'eip155:31337', ...OTHER, rpc_url: ['http://127.0.0.1:1'] }],
    ['any chain, without', { network: 'eip155:31337', ...OTHER, rpc_url: [] }],
  ])('behaviour: a way can be paid with %s', (_, overrides) => {
    expect(NETWORKS.readWay(input(overrides))).toMatchObject({ kind: 'way', warnings: [] });
  });

  test('behaviour: an address that nobody has the key of is odd even on a test network', () => {
    expect(NETWORKS.readWay(input({ network: 'base-sepolia', pay_to_address: DEAD }))).toMatchObject({
      kind: 'way',
      warnings: [{ field: 'pay_to_address', message: expect.stringContaining('nobody has the key of') }],
    });
  });
});

describe('ways that cannot', () => {
  test.each<[string, Partial<Written>, keyof Written, RegExp]>([
    ['a network that is misspelled', { network: 'bse' }, 'network', /did you mean base\?/],
    ['a network that is none', { network: 'mars-colony' }, 'network', /`tollgate networks` lists those that are/],
    ['a chain id that is no number', { network: 'eip155:0x1' }, 'network', /is not a network/],
    [
      'no token, where USDC is not known',
      { network: 'stable' },
      'asset',
      /^is missing; USDC is not known on stable, so write USDT0,/,
    ],
    ['no token, where none is known', { network: 'sepolia' }, 'asset', /^is missing; .*every asset_ field/],
    [
      'a symbol that is not known there',
      { asset: 'USDT' },
      'asset',
      /^is not a token that is known on base; write USDC,/,
    ],
    ['a symbol in other letters', { asset: 'usdc' }, 'asset', /write USDC/],
    [
      'a token of Permit2, by its symbol',
      { network: 'eip155:4326', asset: 'MegaUSD', rpc_url: [] },
      'asset',
      /Permit2/,
    ],
    [
      'a token of Permit2, by its address',
      { network: 'eip155:38833', asset: '0xa5b8bf902b2844da17d4506cc827f7f1681735e7', rpc_url: [] },
      'asset',
      /Permit2/,
    ],
    ['a token address that is short', { asset: OTHER_TOKEN.slice(0, -1) }, 'asset', /^is not the address of the token/],
    ['a mint of Solana', { asset: 'EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v' }, 'asset', /Solana/],
    [
      'a token with a wrong checksum',
      { ...OTHER, asset: OTHER_TOKEN.replace('cA', 'ca') },
      'asset',
      /^has a wrong checksum/,
    ],
    [
      'wrong decimals of a known token',
      { asset_decimals: 18 },
      'asset_decimals',
      /which is 6; write that, or leave it out/,
    ],
    ['a wrong name of a known token', { asset_name: 'USDC' }, 'asset_name', /which is "USD Coin"; write that/],
    ['a wrong version of a known token', { asset_version: '1' }, 'asset_version', /which is "2"; write that/],
    [
      'a wrong name of a known token by its address',
      { network: 'base-sepolia', asset: '0x036CbD53842c5426634e7929541eC2318f3dCF7e', asset_name: 'USD Coin' },
      'asset_name',
      /which is "USDC"/,
    ],
    [
      'another token without its decimals',
      { ...OTHER, asset_decimals: undefined },
      'asset_decimals',
      /^is missing; `tollgate networks` does not list this token/,
    ],
    ['another token without its name', { ...OTHER, asset_name: undefined }, 'asset_name', /^is missing/],
    ['another token without its version', { ...OTHER, asset_version: undefined }, 'asset_version', /^is missing/],
    ['no address', { pay_to_address: undefined }, 'pay_to_address', /^is missing; write the address that receives/],
    ['an address that is short', { pay_to_address: WALLET.slice(0, -1) }, 'pay_to_address', /0x and 40 hex digits/],
    ['an address that is long', { pay_to_address: `${WALLET}0` }, 'pay_to_address', /0x and 40 hex digits/],
    [
      'an address with another digit',
      { pay_to_address: WALLET.replace('6', '7') },
      'pay_to_address',
      /^has a wrong checksum .* compare it with your wallet$/,
    ],
    [
      'an address of Solana',
      { pay_to_address: 'Es9vMFrzaCERmJfrF4H2FYD4KCoNkY11McCe8BenwNYB' },
      'pay_to_address',
      /^is an address of Solana/,
    ],
    ['the zero address', { pay_to_address: `0x${'0'.repeat(40)}` }, 'pay_to_address', /^is the zero address/],
    ['an address that nobody has the key of', { pay_to_address: DEAD }, 'pay_to_address', /nobody has the key of/],
    [
      'the same on a chain that is not known',
      { network: 'eip155:31337', ...OTHER, rpc_url: [], pay_to_address: DEAD },
      'pay_to_address',
      /nobody has the key of/,
    ],
    [
      'the token itself',
      { pay_to_address: '0x833589fcd6edb6e08f4c7c32d4f71b54bda02913' },
      'pay_to_address',
      /^is the contract of the token/,
    ],
    ['a chain without a node', { network: 'eip155:31337', ...OTHER }, 'rpc_url', /^is missing; no public node/],
  ])('refuses: a way with %s', (_, overrides, field, says) => {
    const reading = NETWORKS.readWay(input(overrides));
    expect(reading).toMatchObject({ kind: 'issues', issues: [{ field }] });
    expect(reading.kind === 'issues' ? reading.issues[0]?.message : '').toMatch(says);
  });

  test('attack: a mistyped address is never answered with one that would pass', () => {
    const reading = NETWORKS.readWay(input({ pay_to_address: WALLET.replace('Bc', 'bc') }));
    expect(JSON.stringify(reading)).not.toContain(WALLET);
  });
});

test.each<[string, boolean]>([
  ['EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v', true],
  ['11111111111111111111111111111111', true],
  ['TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA', true],
  ['ComputeBudget111111111111111111111111111111', true],
  ['1111111111111111111111111111111', false],
  ['111111111111111111111111111111111', false],
  // Of the right length and alphabet, and 33 bytes.
  ['zzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzz', false],
  // 31 bytes.
  ['2PjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt', false],
  ['EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt10', false],
  ['0PjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v', false],
  ['0x209693Bc6afc0C5328bA36FaF03C514EF312287C', false],
  ['', false],
])('behaviour: %j is an address of Solana: %s', (text, is) => expect(isSvmAddress(text)).toBe(is));
