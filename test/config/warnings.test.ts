// What is allowed and probably not meant: said, never refused.
import { expect, test } from 'vitest';
import { configWarnings } from '../../src/config/warnings.ts';
import { ADDRESS, configOf, KEY, RECEIVER, SECRET } from './support.ts';
import { NETWORKS } from '../../src/gateway/rails/rails.ts';

const warningsOf = (text: string): string[] => configWarnings(configOf(text), NETWORKS);
const proxy = (lines: string): string =>
  `registry: {}\nproxy:\n  upstream: http://127.0.0.1:3000\n  undeclared_methods: pay\n  hosts: [api.example.com]\n  ${lines}\nreceivers:${RECEIVER}\n`;

test('behaviour: a whole configuration has nothing to warn of', () => {
  expect(warningsOf(proxy(''))).toEqual([]);
  expect(warningsOf('registry: {}')).toEqual([]);
});

test('behaviour: a value that is just enough is not warned of', () => {
  expect(warningsOf(proxy('').replace('base-sepolia', 'base-sepolia\n    max_timeout_seconds: 120'))).toEqual([]);
  expect(warningsOf(`${proxy('')}routes: [{ route_pattern: /a, amount: "9999.99" }]\n`)).toEqual([]);
  expect(warningsOf(proxy('public_url: https://api.example.com').replace(/ *hosts.*\n/, ''))).toEqual([]);
});

test('behaviour: undeclared methods that are free are told while the upstream is unknown, and only then', () => {
  const free = proxy('').replace('undeclared_methods: pay', 'undeclared_methods: forward');
  expect(warningsOf(free)).toEqual([
    expect.stringContaining('undeclared_methods is forward while proxy.upstream_profile is unknown'),
  ]);
  expect(warningsOf(free.replace('undeclared_methods: forward', 'upstream_profile: fastify'))).toEqual([]);
  expect(warningsOf(free.replace('forward', 'refuse'))).toEqual([]);
});

test.each<[string, string, string]>([
  ['everybody trusted', proxy('trusted_proxies: [0.0.0.0/0]'), 'proxy.trusted_proxies holds every address'],
  [
    'an upstream in the open',
    proxy('').replace('127.0.0.1', '8.8.8.8'),
    'proxy.upstream is plain http to a public address',
  ],
  ['discovery where nothing is paid', 'registry: {}\ndiscovery:\n', 'discovery does nothing here'],
  ['traces where nothing is served', 'registry: {}\notlp:\n', 'otlp does nothing here'],
  [
    'spans in the open',
    `otlp: { endpoint: "http://collector.example.com:4318" }\n${proxy('')}`,
    'otlp.endpoint is plain http beyond this network',
  ],
  [
    'assertions where another proxy forwards',
    `assertion: { audience: a }\nregistry: {}\ndecision: { dialect: caddy }\nreceivers:${RECEIVER}\n`,
    'assertion signs nothing for a decision listener',
  ],
  ['assertions of plans that are not there', `assertion: { audience: a }\n${proxy('')}`, 'assertion.on is plan'],
  ['nowhere to pay to', proxy('').replace(/receivers[^]*/, ''), 'receivers is empty'],
  ['no default receiver', proxy('').replace('id: default', 'id: other'), 'no receiver has the id `default`'],
  [
    'a facilitator in plain http',
    proxy('').replace('https://f', 'http://f'),
    'a facilitator is spoken to in plain http',
  ],
  [
    'v1 on a network that v1 lacks',
    `x402: { v1: true }\n${proxy('').replace('base-sepolia', `eip155:1\n    asset: "${ADDRESS}"\n    asset_decimals: 6\n    asset_name: T\n    asset_version: "1"\n    rpc_url: none`)}`,
    'has no x402 v1 name',
  ],
  [
    'no name of this API',
    proxy('').replace(/ *hosts.*\n/, ''),
    'without `public_url` and `hosts`, absolute redirects of this API are charged: set one',
  ],
  [
    'a receiver that nobody has the key of',
    proxy('').replace(ADDRESS, `0x${'0'.repeat(36)}dEaD`),
    'nobody has the key',
  ],
  [
    'a time shorter than the upstream may take',
    proxy('').replace('base-sepolia', 'base-sepolia\n    max_timeout_seconds: 69'),
    'less than timeouts.headers and 10 s',
  ],
  [
    'a short time',
    proxy('').replace('base-sepolia', 'base-sepolia\n    max_timeout_seconds: 119'),
    'max_timeout_seconds is 119: a wallet',
  ],
  [
    'an amount of 10,000',
    `${proxy('')}routes: [{ route_pattern: /a, amount: "10000" }]\n`,
    'costs 10000 USD a request',
  ],
  [
    'GET alone',
    `${proxy('').replace('undeclared_methods: pay', 'undeclared_methods: forward')}routes: [{ route_pattern: /b, method: GET, amount: "1" }, { route_pattern: /b, method: POST, amount: "1" }, { route_pattern: /a, method: GET, amount: "1" }]\n`,
    'gives GET /a away to POST',
  ],
  [
    'a registry in plain http',
    `proxy: { upstream: "http://127.0.0.1:1", undeclared_methods: pay, hosts: [a] }\nsync: { registry_url: "http://r.example/x", api_key: ${KEY}, insecure: true }\ncharges: { secrets: ["${SECRET}"] }\nreceivers:${RECEIVER}\n`,
    'travel in plain http to r.example',
  ],
])('behaviour: a start warns of %s', (_name, text, message) => {
  expect(warningsOf(text)).toEqual([expect.stringContaining(message)]);
});

test('behaviour: a warning about one of several ways names the one that is meant', () => {
  const two = proxy('').replace(
    /receivers[^]*/,
    `receivers:\n  - id: default\n    facilitators: [https://f.example]\n    accepts:\n      - { network: base, pay_to_address: "${ADDRESS}", max_timeout_seconds: 100 }\n      - { network: base-sepolia, pay_to_address: "0x${'0'.repeat(36)}dEaD" }\n`,
  );
  expect(warningsOf(two)).toEqual([
    expect.stringContaining('receiver default on base: max_timeout_seconds is 100'),
    expect.stringContaining(
      'receiver default on base-sepolia: pay_to_address is an address that nobody has the key of',
    ),
  ]);
});

test('behaviour: one way that v1 can name is enough for v1', () => {
  const ways = (...names: readonly string[]): string =>
    `x402: { v1: true }\n${proxy('').replace(
      /receivers[^]*/,
      `receivers:\n  - id: default\n    facilitators: [https://f.example]\n    accepts:\n${names.map((name) => `      - { network: ${name}, pay_to_address: "${ADDRESS}" }\n`).join('')}`,
    )}`;
  expect(warningsOf(ways('arbitrum', 'base'))).toEqual([]);
  expect(warningsOf(ways('arbitrum', 'celo'))).toEqual([
    'receiver default: none of its networks has an x402 v1 name, so v1 clients cannot pay it',
  ]);
});
