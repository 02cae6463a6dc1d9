// Several ways to pay in one receiver: what each takes from it, and how they are written beside one written flat.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { keepSecret } from '../support/canaries.ts';
import { newCdpAccount } from '../support/callers.ts';
import { ADDRESS, configOf, problemsOf } from './support.ts';

const SOLANA = '9xQeWvG816bUx9EPjHmaT23yvVM2ZWbrrpZb9PusVFin';
const OTHER = `0x${'2'.repeat(40)}`;
const TOKEN = 'token-of-one-way-alone';
keepSecret('WAY_TOKEN', TOKEN);

const receiver = (accepts: readonly string[], rest = 'facilitators: [https://f.example]'): string =>
  `registry: {}\nreceivers:\n  - id: a\n    ${rest}\n    accepts:\n${accepts.map((way) => `      - ${way}\n`).join('')}`;
const BASE = `{ network: base, pay_to_address: "${ADDRESS}" }`;
const waysOf = (text: string, env = {}, path?: string) => configOf(text, env, path).receivers[0]?.ways ?? [];

test('behaviour: ways keep their order, and each knows its network’s own facts', () => {
  const text = receiver([`{ network: solana, pay_to_address: ${SOLANA} }`, BASE]);
  expect(waysOf(text)).toMatchObject([
    {
      networkName: 'solana',
      way: {
        receiverId: 'a',
        scheme: 'exact',
        network: 'solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp',
        asset: 'EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v',
        decimals: 6,
        payTo: SOLANA,
        timeoutSeconds: 300,
        terms: {},
      },
      rpcUrls: ['https://api.mainnet-beta.solana.com'],
    },
    {
      networkName: 'base',
      way: { receiverId: 'a', network: 'eip155:8453', payTo: ADDRESS, terms: { name: 'USD Coin', version: '2' } },
      rpcPublic: true,
    },
  ]);
});

test('behaviour: one way in the list is the same as one written flat', () => {
  const keys =
    'max_timeout_seconds: 60\n    confirmations: 3\n    rpc_url: none\n    facilitators: [https://f.example]';
  const flat = `registry: {}\nreceivers:\n  - id: a\n    network: base\n    pay_to_address: "${ADDRESS}"\n    ${keys}\n`;
  expect(configOf(receiver([BASE], keys)).receivers).toEqual(configOf(flat).receivers);
});

test('behaviour: a way takes from its receiver what it does not say itself', () => {
  const own = `{ network: base, pay_to_address: "${OTHER}", max_timeout_seconds: 90, confirmations: 2, rpc_url: [https://own.example], facilitators: [https://own.example] }`;
  const text = receiver(
    [BASE, own],
    'facilitators: [https://f.example]\n    rpc_url: https://n.example\n    max_timeout_seconds: 45\n    confirmations: 7',
  );
  expect(waysOf(text)).toMatchObject([
    {
      way: { timeoutSeconds: 45 },
      confirmations: 7,
      rpcUrls: ['https://n.example'],
      facilitators: [{ url: 'https://f.example' }],
    },
    {
      way: { timeoutSeconds: 90 },
      confirmations: 2,
      rpcUrls: ['https://own.example'],
      facilitators: [{ url: 'https://own.example' }],
    },
  ]);
});

test('behaviour: a way may have facilitators where its receiver has none', () => {
  const own = `{ network: base, pay_to_address: "${ADDRESS}", facilitators: [https://own.example] }`;
  expect(waysOf(receiver([own], 'settle: auto'))).toMatchObject([{ facilitators: [{ url: 'https://own.example' }] }]);
});

test('behaviour: short forms and secret files stand in ways too', () => {
  const folder = mkdtempSync(join(tmpdir(), 'tollgate-'));
  try {
    writeFileSync(join(folder, 'token'), `${TOKEN}\n`);
    const bearer = '{ url: https://own.example, auth: { kind: bearer, token_file: token } }';
    const account = newCdpAccount('ed25519');
    keepSecret('FACILITATOR_KEY', account.secret);
    const env = { CDP_API_KEY_ID: account.keyId, CDP_API_KEY_SECRET: account.secret };
    const text = receiver(
      [
        `{ network: base, pay_to_address: "${ADDRESS}", facilitators: [cdp, ${bearer}] }`,
        `{ network: base-sepolia, pay_to_address: "${ADDRESS}", facilitators: [x402.org] }`,
      ],
      'settle: auto',
    );
    expect(waysOf(text, env, join(folder, 't.yaml'))).toMatchObject([
      { facilitators: [{ account: account.keyId }, { auth: { kind: 'bearer', token: TOKEN }, account: 'a' }] },
      { facilitators: [{ url: 'https://x402.org/facilitator' }] },
    ]);
    expect(problemsOf(text)).toEqual([
      expect.stringContaining(
        'receivers[0].accepts[0].facilitators[0]: takes its key from the environment, where CDP_API_KEY_ID and CDP_API_KEY_SECRET are not set',
      ),
      expect.stringContaining('receivers[0].accepts[0].facilitators[1].auth.token_file: names a file'),
    ]);
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test('behaviour: confirmations of the receiver are for its ways on EVM; one on Solana has none of its own', () => {
  const solana = (more = ''): string => `{ network: solana, pay_to_address: ${SOLANA}${more} }`;
  const shared = 'facilitators: [https://f.example]\n    confirmations: 3';
  expect(waysOf(receiver([solana(), BASE], shared))).toMatchObject([{}, { confirmations: 3 }]);
  expect(problemsOf(receiver([solana(', confirmations: 3'), BASE]))).toEqual([
    expect.stringContaining('receivers[0].accepts[0].confirmations: is nothing that a way on Solana has; leave it out'),
  ]);
});

test('behaviour: everything wrong with several ways is said at once, each at its place', () => {
  const text = receiver(
    [
      `{ network: bse, pay_to_address: "${ADDRESS}" }`,
      `{ network: base, asset: EURC, pay_to_address: "0x..." }`,
      `{ network: solana, pay_to_address: "${ADDRESS}", asset_name: USDC }`,
      `{ network: base, pay_to_address: "${ADDRESS}", max_timeout_seconds: 1 }`,
    ],
    'network: base\n    facilitators: []',
  );
  expect(problemsOf(text).map((line) => line.split(': ')[0]?.replace(/^[\d:]+ /, ''))).toEqual([
    'receivers[0].network',
    'receivers[0].facilitators',
    'receivers[0].accepts[0].network',
    'receivers[0].accepts[1].asset',
    'receivers[0].accepts[1].pay_to_address',
    'receivers[0].accepts[2].pay_to_address',
    'receivers[0].accepts[2].asset_name',
    'receivers[0].accepts[3].max_timeout_seconds',
  ]);
});

test('behaviour: a price that one way can hold is payable', () => {
  const fine = `{ network: base, asset: "${OTHER}", asset_decimals: 8, asset_name: T, asset_version: "1", pay_to_address: "${ADDRESS}" }`;
  const route = (amount: string): string =>
    `routes: [{ route_pattern: /a, amount: "${amount}", receiver_config_id: a }]\n`;
  expect(problemsOf(receiver([BASE, fine]) + route('0.00000001'))).toEqual([]);
  expect(problemsOf(receiver([BASE, fine]) + route('0.000000001'))).toEqual([
    expect.stringContaining(
      'routes[0].amount: cannot be paid: no asset of the receiver a has more than 8 decimals; write at most that many digits after the point',
    ),
  ]);
});
