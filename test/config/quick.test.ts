// A configuration out of flags: the same as a file would give, and every wrong flag told at once.
import { describe, expect, test } from 'vitest';
import { configWarnings } from '../../src/config/warnings.ts';
import { formatProblem } from '../../src/config/problems.ts';
import { quickConfig, type QuickFlags } from '../../src/config/quick.ts';
import { ADDRESS, configOf } from './support.ts';
import { NETWORKS } from '../../src/gateway/rails/rails.ts';

const NONE: QuickFlags = {
  upstream: undefined,
  publicUrl: undefined,
  profile: undefined,
  routes: [],
  payTo: undefined,
  network: undefined,
  facilitators: [],
  listen: undefined,
  registryListen: undefined,
  adminListen: undefined,
  data: undefined,
};
const GOOD: QuickFlags = {
  ...NONE,
  upstream: 'http://127.0.0.1:3000',
  payTo: ADDRESS,
  routes: ['GET /reports/* 0.10 USD'],
};

function problems(flags: QuickFlags): string[] {
  const result = quickConfig(flags, '/srv', {}, NETWORKS);
  return result.ok ? [] : result.problems.map(formatProblem);
}

test('behaviour: flags mean what a file means', () => {
  const file = `
proxy: { listen: "127.0.0.1:8402", upstream: "http://127.0.0.1:3000", undeclared_methods: pay }
registry: { store: "sqlite:data/tollgate.db" }
receivers: [{ id: default, network: base-sepolia, pay_to_address: "${ADDRESS}", facilitators: ["https://x402.org/facilitator"] }]
routes: [{ method: GET, route_pattern: "/reports/*", amount: "0.10", currency: USD }]
`;
  expect(quickConfig(GOOD, '/srv', {}, NETWORKS)).toEqual({
    ok: true,
    network: 'base-sepolia',
    testnet: true,
    data: expect.objectContaining({
      proxy: { listen: '127.0.0.1:8402', upstream: 'http://127.0.0.1:3000', undeclared_methods: 'pay' },
    }),
    config: { ...configOf(file), file: undefined },
  });
});

test('behaviour: every flag has its place in the configuration', () => {
  const flags = {
    ...GOOD,
    publicUrl: 'https://api.example.com',
    profile: 'express',
    routes: ['GET /a 1', ' post  /b/:id  0.5  usdc '],
    network: 'base',
    facilitators: ['https://one.example', 'https://two.example'],
    listen: '127.0.0.1:0',
    registryListen: '127.0.0.1:0',
    adminListen: '[::1]:0',
    data: '/var/lib/t',
  };
  const result = quickConfig(flags, '/srv', {}, NETWORKS);
  expect(result).toMatchObject({
    ok: true,
    testnet: false,
    config: {
      proxy: {
        ...{ listen: { port: 0 }, undeclaredMethods: 'pay', upstreamProfile: 'express' },
        publicUrl: expect.anything(),
      },
      registry: { listen: { port: 0 }, store: { file: '/var/lib/t/tollgate.db' } },
      admin: { listen: { host: '::1', port: 0 } },
      receivers: [
        {
          ways: [
            { networkName: 'base', facilitators: [{ url: 'https://one.example' }, { url: 'https://two.example' }] },
          ],
        },
      ],
      routes: [
        { method: 'GET', route_pattern: '/a', amount: '1', currency: 'USD' },
        { method: 'POST', route_pattern: '/b/:id', amount: '0.5', currency: 'USDC' },
      ],
    },
  });
});

test('behaviour: warnings about flags name flags, and every one of them can be obeyed by flags', () => {
  const warningsOf = (flags: QuickFlags): string[] => {
    const result = quickConfig(flags, '/srv', {}, NETWORKS);
    return result.ok ? configWarnings(result.config, NETWORKS) : ['refused'];
  };
  expect(warningsOf(GOOD)).toEqual([
    'without --public-url, absolute redirects of this API are charged: write the URL at which clients reach it',
  ]);
  const named = { ...GOOD, publicUrl: 'https://api.example.com' };
  expect(warningsOf(named)).toEqual([]);
  expect(warningsOf({ ...named, upstream: 'http://8.8.8.8' })).toEqual([
    expect.stringMatching(/^--upstream is plain http to a public address/),
  ]);
});

describe('refuses, naming the flag', () => {
  test.each<[string, QuickFlags, string]>([
    ['no upstream', { ...GOOD, upstream: undefined }, '--upstream: is missing'],
    ['an upstream with a path', { ...GOOD, upstream: 'http://a/b' }, '--upstream: is not the scheme'],
    ['a public URL with a path', { ...GOOD, publicUrl: 'https://a/b' }, '--public-url: is not the http or https URL'],
    ['a profile that is none', { ...GOOD, profile: 'expres' }, '--profile: is not known; write'],
    ['no address', { ...GOOD, payTo: undefined }, '--pay-to: is missing'],
    ['the placeholder', { ...GOOD, payTo: '0x...' }, '--pay-to: is still the placeholder'],
    [
      'a route without price',
      { ...GOOD, routes: ['GET /a'] },
      '--route (1.): is not a route; write METHOD PATTERN AMOUNT',
    ],
    ['a route with a word too many', { ...GOOD, routes: ['GET /a 1 USD now'] }, '--route (1.): is not a route'],
    [
      'a route without method',
      { ...GOOD, routes: ['/a 1'] },
      '--route (1.): names no method (* is any); write METHOD PATTERN',
    ],
    [
      'a route without method, with a currency',
      { ...GOOD, routes: ['/a 1 USD'] },
      '--route (1.): names no method (* is any); write METHOD PATTERN',
    ],
    ['a price that is none', { ...GOOD, routes: ['GET /a 1', 'GET /b free'] }, '--route (2.) amount: is not usable'],
    [
      'a pattern that is none',
      { ...GOOD, routes: ['GET reports 1'] },
      '--route (1.) route_pattern: the pattern must start with a slash',
    ],
    ['a method that is none', { ...GOOD, routes: ['GETT /a 1'] }, '--route (1.) method: is answered with 501'],
    ['a currency nobody takes', { ...GOOD, routes: ['GET /a 1 EUR'] }, '--route (1.) currency: cannot be paid'],
    [
      'one route twice',
      { ...GOOD, routes: ['GET /a 1', 'GET /a/ 2'] },
      '--route (2.) route_pattern: means the same as routes[0]',
    ],
    ['real money without facilitator', { ...GOOD, network: 'base' }, '--facilitator: is missing; base needs'],
    [
      'a network without known USDC',
      { ...GOOD, network: 'stable', facilitators: ['https://f'] },
      '--network: is not one whose USDC is known here',
    ],
    ['a network that is none', { ...GOOD, network: 'mars' }, '--network: is not one whose USDC'],
    ['a facilitator that is no URL', { ...GOOD, facilitators: ['f'] }, '--facilitator: is not the http or https URL'],
    ['a listener that is none', { ...GOOD, listen: '8402' }, '--listen: is not an address and a port'],
    ['one port twice', { ...GOOD, adminListen: '127.0.0.1:8402' }, '--admin-listen: takes the address of proxy.listen'],
  ])('refuses: a start with %s', (_name, flags, message) => {
    expect(problems(flags)).toEqual([expect.stringContaining(message)]);
  });

  test('behaviour: all wrong flags are named at once', () => {
    const found = problems({ ...NONE, routes: ['/a'], network: 'base', listen: 'x' });
    expect(found.map((line) => line.split(': ')[0])).toEqual([
      '--upstream',
      '--pay-to',
      '--route (1.)',
      '--facilitator',
      '--listen',
    ]);
  });
});
