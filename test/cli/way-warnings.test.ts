// What `check` and a start say of routes whose ways are not all offered, not all shown, or over what clients pay unasked.
import { describe, expect, test } from 'vitest';
import { notShownWarnings, routeWarnings } from '../../src/compose/way-warnings.ts';
import type { Route } from '../../src/domain/routing/route.ts';
import { ADDRESS, configOf } from '../config/support.ts';
import { route } from '../cases/routes.ts';

const SOLANA = '9xQeWvG816bUx9EPjHmaT23yvVM2ZWbrrpZb9PusVFin';
const WAYS = {
  base: `{ network: base, pay_to_address: "${ADDRESS}" }`,
  arbitrum: `{ network: arbitrum, pay_to_address: "${ADDRESS}" }`,
  solana: `{ network: solana, pay_to_address: ${SOLANA} }`,
  own: `{ network: base, asset: "0x${'2'.repeat(40)}", asset_decimals: 1, asset_name: T, asset_version: "1", pay_to_address: "${ADDRESS}" }`,
};
const wallet = (n: number): string => `{ network: base, pay_to_address: "0x${String(n).padStart(40, '0')}" }`;
const MANY = Array.from({ length: 8 }, (_, n) => wallet(n + 1));

const config = (ways: readonly string[], v1 = false) =>
  configOf(
    `registry: {}\nx402: { v1: ${v1} }\nreceivers:\n  - id: default\n    facilitators: [https://f.example]\n    accepts:\n${ways.map((way) => `      - ${way}\n`).join('')}`,
  );
const warnings = (ways: readonly string[], routes: readonly Route[], v1 = false): string[] =>
  routeWarnings(config(ways, v1), routes);

test('behaviour: nothing is said of routes that every client pays in every way', () => {
  expect(warnings([WAYS.base, WAYS.solana], [route('GET /a 1.00')])).toEqual([]);
  expect(warnings([WAYS.base, WAYS.solana], [route('GET /a 0.10')], true)).toEqual([]);
});

test('behaviour: a way whose token has too few decimals for a price is named', () => {
  expect(warnings([WAYS.base, WAYS.own], [route('GET /a 0.5'), route('GET /b 0.55')])).toEqual([
    `the route GET /b at 0.55 USD is not offered on base 0x${'2'.repeat(40)}: the price has more decimals than the asset`,
  ]);
});

describe('behaviour: the caps of clients', () => {
  test('the caps of clients are for known tokens, in version 2 from $1 on', () => {
    expect(warnings([WAYS.base, WAYS.own, WAYS.solana], [route('GET /a 1'), route('GET /b 1.01')])).toContain(
      'the route GET /b at 1.01 USD costs more than the $1 that clients of x402 v2 pay unasked: base USDC, solana USDC',
    );
    expect(warnings([WAYS.own], [route('GET /b 100')])).toEqual([]);
  });

  test('the caps of version 1 are from $0.10 on, on networks that it can name', () => {
    const said = warnings([WAYS.arbitrum, WAYS.base, WAYS.solana], [route('GET /a 0.100001')], true);
    expect(said).toEqual([
      'the route GET /a at 0.100001 USD costs more than the $0.10 that clients of x402 v1 pay unasked: base USDC',
    ]);
  });
});

test('behaviour: passes that a 402 has no room for are named, and a sign-in, by check and by the start', () => {
  const selling = (passes: number, more = '') =>
    configOf(
      [
        'proxy: { listen: "127.0.0.1:0", upstream: "http://127.0.0.1:3000", public_url: "https://api.example.com" }',
        `registry: {}\nreceivers: [{ id: default, network: base, pay_to_address: "${ADDRESS}", facilitators: [https://f.example] }]`,
        `selling: { plans: [{ id: p${more}, passes: [${Array.from({ length: passes }, (_, n) => `{ id: pass-${n}, amount: "0.${n + 2}0", uses: 100 }`).join(', ')}] }] }`,
      ].join('\n'),
    );
  const routes = [route('GET /a 0.10', { planId: 'p' }), route('GET /b 0.10')];
  const about = 'the route GET /a at 0.10 USD';
  const signIn = `${about} does not declare sign-in-with-x: the header of a 402 has no room for more; wallets show the token or the payment of their pass`;
  for (const [config_, said] of [
    [selling(2), []],
    [selling(3), [signIn]],
    [selling(3, ', wallet: false'), []],
    [
      selling(4),
      [
        `${about} does not offer the passes pass-3 of its plan: the header of a 402 has no room for more, with fewer passes or ways there is`,
        signIn,
      ],
    ],
    [selling(4, ', single: false'), [signIn]],
  ] as const) {
    expect(routeWarnings(config_, routes)).toEqual(said);
    expect(notShownWarnings(config_, () => routes)).toEqual(said);
  }
});

describe('behaviour: ways that a 402 has no room for', () => {
  const routes = [route('GET /a 0.10'), route('GET /paused 0.10', { status: 'paused' })];

  test('ways without room in a 402 are named, by check and by the start', () => {
    const said = warnings(MANY, routes);
    expect(said).toEqual([
      expect.stringMatching(
        /^the route GET \/a at 0\.10 USD does not show base USDC(, base USDC)+: the header of a 402 has no room for more; they can be paid all the same$/,
      ),
    ]);
    expect(notShownWarnings(config(MANY), () => routes)).toEqual(said);
  });

  test('a way on Solana counts with its fee payer, though nobody named one yet', () => {
    const solana = Array.from(
      { length: 8 },
      (_, n) => `{ network: solana, asset: USDC, pay_to_address: ${SOLANA.slice(0, -1)}${'23456789'[n]} }`,
    );
    expect(warnings(solana, routes)).toEqual([expect.stringContaining('does not show solana USDC')]);
  });

  test('a receiver of one way costs the start nothing', () => {
    const never = (): never => {
      throw new Error('the routes were read');
    };
    expect(notShownWarnings(config([WAYS.base]), never)).toEqual([]);
  });
});

test('behaviour: a thousand routes are not said one by one', () => {
  const routes = Array.from({ length: 1000 }, (_, n) => route(`GET /r/${n} 2`));
  const said = warnings([WAYS.base], routes);
  expect(said).toHaveLength(21);
  expect(said.at(-1)).toBe('the same holds for 980 more routes');
});
