// Every way to write a configuration wrongly: where the complaint points and what it says. One line per mistake.
import { describe, expect, test } from 'vitest';
import { ADDRESS, KEY, problemsOf, RECEIVER, SECRET } from './support.ts';

/** name, YAML, `line:column path:`, a part of the message. */
type Case = readonly [name: string, yaml: string, place: string, message: string];

const ALL_IN_ONE = 'proxy: { upstream: "http://127.0.0.1:3000" }\nregistry: {}\n';
const proxy = (lines: string): string => `registry: {}\nproxy:\n  upstream: http://127.0.0.1:3000\n  ${lines}\n`;
const registry = (lines: string): string => `registry:\n  ${lines}\n`;
const sync = (lines: string): string =>
  `proxy: { upstream: "http://127.0.0.1:3000" }\ncharges: { secrets: ["${SECRET}"] }\nsync:\n  api_key: ${KEY}\n  ${lines}\n`;
const receiver = (from: string, to: string): string => `${ALL_IN_ONE}receivers:${RECEIVER.replace(from, to)}\n`;
const route = (lines: string): string => `${ALL_IN_ONE}routes:\n  - route_pattern: /a\n    ${lines}\n`;

const CASES: readonly Case[] = [
  ['an empty file', '', '1:1 (file):', 'has nothing to run'],
  ['only a section that runs nothing', 'log: {}\n', '1:1 (file):', 'has nothing to run'],
  ['a list', '- proxy\n', '1:1 (file):', 'is a list; write sections'],
  ['a scalar', 'proxy\n', '1:1 (file):', 'is text; write sections'],
  ['proxy alone', 'proxy: { upstream: "http://127.0.0.1:1" }\n', '1:1 proxy:', 'add `registry`'],
  ['sync alone', `sync: { registry_url: "https://r", api_key: ${KEY} }\n`, '1:1 sync:', 'only a proxy syncs'],
  [
    'registry and sync',
    `${ALL_IN_ONE}sync: { registry_url: "https://r", api_key: ${KEY} }\n`,
    '3:1 sync:',
    'stands beside `registry`',
  ],
  [
    'an empty proxy section',
    'registry:\nproxy:\n',
    '2:1 proxy.upstream:',
    'is missing; write the scheme, host and port',
  ],
  ['a key that is unknown', proxy('upstreem: x'), '4:3 proxy.upstreem:', 'did you mean upstream?'],
  ['a key in camelCase', proxy('hostHeader: upstream'), '4:3 proxy.hostHeader:', 'did you mean host_header?'],
  ['a key that is like none', registry('colour: red'), '2:3 registry.colour:', 'known are listen, store, jwt'],
  ['a section that is unknown', 'registry: {}\nrecievers: []\n', '2:1 recievers:', 'did you mean receivers?'],
  ['a key that looks like a value', registry('"s p a c e": 1'), '2:3 registry.(key):', 'is not known here'],
  ['a key named __proto__', 'registry: {}\n__proto__: { a: 1 }\n', '2:1 __proto__:', 'is not known here'],
  [
    'a key twice',
    'registry:\n  store: sqlite:a\n  store: sqlite:b\n',
    '3:3 registry.store:',
    'stands twice; keep one, the first is in line 2',
  ],
  ['a key that is no word', 'registry: {}\n? [a]\n: 1\n', '1:1 (file):', 'a key in line 2 that is not a word'],
  ['a section that is text', 'registry: yes\n', '1:11 registry:', 'is text; write a section'],
  ['an alias without anchor', 'registry: *nothing\n', '1:11 registry:', 'refers to an anchor that is not set'],
  [
    'an alias that holds itself',
    'registry: &a { jwt: *a }\n',
    '1:21 registry.jwt:',
    'refers to an anchor that holds it',
  ],
  ['a tag', registry('store: !secret x'), '2:18 registry.store:', 'has a tag'],
  ['a tab', 'registry:\n\tlisten: x\n', '2:1 (file):', 'is indented with a tab'],
  ['a second document', 'registry: {}\n---\nproxy: {}\n', '2:1 (file):', 'holds a second document'],
  ['an open quote', 'registry:\n  store: "sqlite:a\n', '3:1 (file):', 'a closing quote, bracket or comma is missing'],
  ['a value with a colon', 'registry:\n  store: a: b\n', '2:10 (file):', 'check the indentation and the colons'],
  ['a value with an at sign', 'registry:\n  store: @a\n', '2:10 (file):', 'put the value in single quotes'],
  ['a noncharacter', 'registry: {} # \uFDD0\n', '1:1 (file):', 'noncharacter'],
  ['deep nesting', `registry: ${'['.repeat(100)}${']'.repeat(100)}\n`, '1:1 (file):', 'more than 64 levels'],
  ['very deep nesting', '['.repeat(20_000), '1:1 (file):', 'holds more than 64 levels'],

  [
    'an unset variable',
    registry('store: sqlite:${DIR}/a'),
    '2:10 registry.store:',
    'the environment variable DIR is not set',
  ],
  [
    'an unset variable in [ ]',
    registry('cors_origins: ["*", ${ORIGIN}]'),
    '2:23 registry.cors_origins[1]:',
    'ORIGIN is not set',
  ],
  [
    'an expression without a name',
    registry('store: sqlite:${}'),
    '2:10 registry.store:',
    'holds a ${ that names no variable',
  ],
  [
    'an expression that is open',
    registry('store: sqlite:${A'),
    '2:10 registry.store:',
    'holds a ${ that names no variable',
  ],

  ['an upstream with a path', proxy('').replace(':3000', ':3000/api'), '3:13 proxy.upstream:', 'without a path'],
  [
    'an upstream without scheme',
    proxy('').replace('http://', ''),
    '3:13 proxy.upstream:',
    'is not the scheme, host and port',
  ],
  ['an upstream with a user', proxy('').replace('127', 'u:p@127'), '3:13 proxy.upstream:', 'is not the scheme'],
  [
    'an upstream that is ourselves',
    proxy('listen: 0.0.0.0:3000'),
    '3:13 proxy.upstream:',
    "is Tollgate's own listener proxy.listen",
  ],
  [
    'an upstream that is our registry',
    proxy('').replace(':3000', ':8403'),
    '3:13 proxy.upstream:',
    'own listener registry.listen',
  ],
  [
    'a listener without host',
    proxy('listen: 8402'),
    '4:11 proxy.listen:',
    'is a number: quote it; write an address and a port',
  ],
  ['a listener with a port alone', proxy('listen: ":8402"'), '4:11 proxy.listen:', 'is not an address and a port'],
  ['a port too high', proxy('listen: 127.0.0.1:65536'), '4:11 proxy.listen:', 'is not an address and a port'],
  ['an address that is none', proxy('listen: 127.0.0.256:80'), '4:11 proxy.listen:', 'is not an address and a port'],
  ['IPv6 without brackets', proxy('listen: ::1:80'), '4:11 proxy.listen:', 'is not an address and a port'],
  [
    'two listeners on one port',
    proxy('listen: 0.0.0.0:8403'),
    '4:11 proxy.listen:',
    'takes the address of registry.listen',
  ],
  [
    'admin on the port of proxy',
    `${proxy('listen: 127.0.0.1:80')}admin: { listen: "localhost:80" }\n`,
    '5:18 admin.listen:',
    'takes the address of proxy.listen',
  ],
  ['a public_url with a query', proxy('public_url: https://a/?b'), '4:15 proxy.public_url:', 'without query'],
  [
    'a CIDR too wide',
    proxy('trusted_proxies: [10.0.0.0/33]'),
    '4:21 proxy.trusted_proxies[0]:',
    'is not an address or a network',
  ],
  [
    'a CIDR that is a name',
    proxy('trusted_proxies: [10.0.0.0/8, lb.internal]'),
    '4:33 proxy.trusted_proxies[1]:',
    'such as 10.0.0.0/8',
  ],
  [
    'a profile that is unknown',
    proxy('upstream_profile: expres'),
    '4:21 proxy.upstream_profile:',
    'write unknown, express, fastify',
  ],
  [
    'a choice that is unknown',
    proxy('undeclared_methods: deny'),
    '4:23 proxy.undeclared_methods:',
    'write forward, pay or refuse',
  ],
  [
    'a method that is never let in',
    proxy('methods: [PURGE, TRACE]'),
    '4:20 proxy.methods[1]:',
    'TRACE and CONNECT are never let in',
  ],
  [
    'a method that is never let in',
    proxy('methods: [PURGE, BREW]'),
    '4:20 proxy.methods[1]:',
    'TRACE and CONNECT are never let in',
  ],
  [
    'an origin with a path',
    proxy('cors_origins: ["https://a.example/"]'),
    '4:18 proxy.cors_origins[0]:',
    'is not an origin',
  ],
  [
    'a customer header of ours',
    proxy('customer_header: Tollgate-Payer'),
    '4:20 proxy.customer_header:',
    'with a meaning of its own',
  ],
  [
    'a truth value in words',
    proxy('customer_header_trusted: "yes"'),
    '4:28 proxy.customer_header_trusted:',
    'is text; write true or false',
  ],
  [
    'a duration without unit',
    proxy('timeouts: { connect: 5 }'),
    '4:24 proxy.timeouts.connect:',
    'write a duration: a whole number with its unit',
  ],
  ['a duration of another unit', proxy('timeouts: { idle: 5m30s }'), '4:21 proxy.timeouts.idle:', 'is not a duration'],
  [
    'a duration out of range',
    proxy('timeouts: { idle: 0s }'),
    '4:21 proxy.timeouts.idle:',
    'is out of range; write 1ms to 596h',
  ],
  ['a duration no timer can hold', proxy('timeouts: { idle: 597h }'), '4:21 proxy.timeouts.idle:', 'is out of range'],
  [
    'a limit of zero',
    proxy('limits: { in_flight: 0 }'),
    '4:24 proxy.limits.in_flight:',
    'is not a whole number from 1',
  ],
  [
    'a limit with a fraction',
    proxy('limits: { target: 8192.5 }'),
    '4:21 proxy.limits.target:',
    'is not a whole number',
  ],
  [
    'a client limit that remembers nobody',
    proxy('limits: { challenges_per_client: { clients: 1 } }'),
    '4:47 proxy.limits.challenges_per_client.clients:',
    'is not a whole number from 2 to 10000000',
  ],
  [
    'a negative rate',
    registry('limits: { registrations_per_minute: -1 }'),
    '2:39 registry.limits.registrations_per_minute:',
    'is not a whole number from 0 to 1000000',
  ],
  [
    'a quoted number',
    proxy('limits: { target: "8192" }'),
    '4:21 proxy.limits.target:',
    'is text; write a whole number',
  ],

  [
    'a store that is elsewhere',
    registry('store: postgres://h/db'),
    '2:10 registry.store:',
    'PostgreSQL, which is not in this version',
  ],
  ['a store of another kind', registry('store: data/tollgate.db'), '2:10 registry.store:', 'is not sqlite: and a file'],
  ['a store in memory', registry('store: "sqlite::memory:"'), '2:10 registry.store:', 'is not sqlite: and a file'],
  [
    'a jwt with two keys',
    registry(`jwt: { secret: "${SECRET}", jwks_url: "https://a/" }`),
    '2:3 registry.jwt:',
    'has secret and jwks_url; write exactly one',
  ],
  [
    'a jwt without key',
    registry('jwt: { issuer: me }'),
    '2:3 registry.jwt:',
    'write exactly one of secret, public_key and jwks_url',
  ],
  [
    'a jwt secret of 31 bytes',
    registry(`jwt: { secret: "${SECRET.slice(1)}" }`),
    '2:18 registry.jwt.secret:',
    'at least 32 bytes',
  ],
  [
    'a public key that is none',
    registry('jwt: { public_key: abc }'),
    '2:22 registry.jwt.public_key:',
    'is not a public key in PEM',
  ],
  [
    'a key set in plain http',
    registry('jwt: { jwks_url: "http://a.example/k" }'),
    '2:20 registry.jwt.jwks_url:',
    'is not an https URL',
  ],
  [
    'an API key of 15 characters',
    registry(`api_keys: [{ name: a, key: ${KEY.slice(1)} }]`),
    '2:30 registry.api_keys[0].key:',
    'of 16 to 512 visible ASCII',
  ],
  [
    'an API key with a space',
    registry(`api_keys: [{ name: a, key: "${KEY} b" }]`),
    '2:30 registry.api_keys[0].key:',
    'without spaces',
  ],
  [
    'an API key without name',
    registry(`api_keys: [{ key: ${KEY} }]`),
    '2:14 registry.api_keys[0].name:',
    'is missing; write a name',
  ],
  [
    'a scope that is unknown',
    registry(`api_keys: [{ name: a, key: ${KEY}, scopes: [admin] }]`),
    '2:57 registry.api_keys[0].scopes[0]:',
    'write sdk or ledger',
  ],
  [
    'two keys of one name',
    registry(`api_keys: [{ name: a, key: ${KEY} }, { name: a, key: ${KEY}x }]`),
    '2:58 registry.api_keys[1].name:',
    'is the name of an earlier key',
  ],
  [
    'one key twice',
    registry(`api_keys: [{ name: a, key: ${KEY} }, { name: b, key: ${KEY} }]`),
    '2:66 registry.api_keys[1].key:',
    'is the same as an earlier key',
  ],

  [
    'a sidecar without secrets',
    sync('registry_url: https://r').replace(/^charges.*\n/m, ''),
    '1:1 charges.secrets:',
    'is missing; a sidecar needs',
  ],
  [
    'a sidecar with empty secrets',
    sync('registry_url: https://r').replace(/secrets: .*\]/, 'secrets: []'),
    '2:21 charges.secrets:',
    'write at least one',
  ],
  [
    'a short charge secret',
    sync('registry_url: https://r').replace(SECRET, 'short'),
    '2:22 charges.secrets[0]:',
    'at least 32 bytes',
  ],
  [
    'routes in a sidecar',
    `${sync('registry_url: https://r')}routes: [{ route_pattern: /a, amount: "1" }]\n`,
    '6:1 routes:',
    'cannot stand in a sidecar',
  ],
  [
    'a store beside the registry',
    'registry: {}\ncharges: { store: "sqlite:a" }\n',
    '2:12 charges.store:',
    'whose store holds the charges',
  ],
  [
    'a sidecar without registry_url',
    sync('insecure: true'),
    '3:1 sync.registry_url:',
    'is missing; write the http or https URL of the registry',
  ],
  [
    'a registry in plain http',
    sync('registry_url: http://registry.internal'),
    '5:17 sync.registry_url:',
    'write https, or insecure: true',
  ],
  ['a registry at a public address', sync('registry_url: http://8.8.8.8'), '5:17 sync.registry_url:', 'write https'],

  [
    'the placeholder address',
    receiver(ADDRESS, '0x...'),
    '6:21 receivers[0].pay_to_address:',
    'is still the placeholder',
  ],
  [
    'an address without quotes',
    receiver(`"${ADDRESS}"`, ADDRESS),
    '6:21 receivers[0].pay_to_address:',
    'is a number: quote it',
  ],
  [
    'an address that is short',
    receiver(ADDRESS, ADDRESS.slice(0, -1)),
    '6:21 receivers[0].pay_to_address:',
    '0x and 40 hex digits',
  ],
  [
    'the zero address',
    receiver(ADDRESS, `0x${'0'.repeat(40)}`),
    '6:21 receivers[0].pay_to_address:',
    'is the zero address',
  ],
  [
    'a network that is unknown',
    receiver('base-sepolia', 'bse'),
    '5:14 receivers[0].network:',
    'is not a network: base, base-sepolia',
  ],
  [
    'a token that is unknown',
    receiver('base-sepolia', 'polygon\n    asset_decimals: 6\n    asset_name: T\n    asset_version: "1"'),
    '4:5 receivers[0].asset:',
    'every asset_ field of another token must be written',
  ],
  [
    'half a token',
    receiver('base-sepolia', `base\n    asset: "${ADDRESS}"\n    asset_name: T\n    asset_version: "1"`),
    '4:5 receivers[0].asset_decimals:',
    'is missing',
  ],
  [
    'a version that is a number',
    receiver('base-sepolia', 'base-sepolia\n    asset_version: 2'),
    '6:20 receivers[0].asset_version:',
    'is a number: quote it',
  ],
  [
    'a scheme that is unknown',
    receiver('network', 'scheme: upto\n    network'),
    '5:13 receivers[0].scheme:',
    'write exact',
  ],
  [
    'no facilitator',
    receiver('[https://facilitator.example.com]', '[]'),
    '7:19 receivers[0].facilitators:',
    'name at least one',
  ],
  [
    'a facilitator that is no URL',
    receiver('https://facilitator', 'ftp://facilitator'),
    '7:20 receivers[0].facilitators[0].url:',
    'is not the http or https URL',
  ],
  [
    'a facilitator header with a line end',
    receiver('[https://facilitator.example.com]', '[{ url: "https://f", headers: { A: "b\\nc" } }]'),
    '7:54 receivers[0].facilitators[0].headers.A:',
    'visible ASCII',
  ],
  [
    'two receivers of one id',
    `${ALL_IN_ONE}receivers:${RECEIVER}${RECEIVER}\n`,
    '8:9 receivers[1].id:',
    'is the id of an earlier receiver',
  ],

  ['an unquoted amount', route('amount: 0.10'), '5:13 routes[0].amount:', 'quote the amount'],
  ['an amount of zero', route('amount: "0.00"'), '5:13 routes[0].amount:', 'greater than 0'],
  ['an amount with an exponent', route('amount: "1e3"'), '5:13 routes[0].amount:', 'is not usable; write a decimal'],
  ['no amount', route('method: GET'), '4:5 routes[0].amount:', 'is missing; quote the amount'],
  [
    'a wildcard in the middle',
    route('amount: "1"').replace('/a', '/a/*/b'),
    '4:20 routes[0].route_pattern:',
    'must stand at the end',
  ],
  ['a source of its own', route('amount: "1"\n    source: me'), '6:5 routes[0].source:', 'is not known here'],
  [
    'one route twice',
    `${route('amount: "1"')}  - { route_pattern: "/A/", method: "*", amount: "2" }\n`,
    '6:22 routes[1].route_pattern:',
    'means the same as routes[0]',
  ],
  [
    'a receiver that is not there',
    `${route('amount: "1"\n    receiver_config_id: defalt')}receivers:${RECEIVER}\n`,
    '6:25 routes[0].receiver_config_id:',
    'names no receiver; did you mean default?',
  ],
  [
    'a currency nobody takes',
    `${route('amount: "1"\n    currency: eur')}receivers:${RECEIVER}\n`,
    '6:15 routes[0].currency:',
    'cannot be paid: the receiver default takes USD, USDC, not EUR',
  ],
  [
    'an amount finer than the asset',
    `${route('amount: "0.0000001"')}receivers:${RECEIVER}\n`,
    '5:13 routes[0].amount:',
    'has 6 decimals',
  ],

  ['a decision service', 'registry: {}\ndecision: { mode: nginx }\n', '2:1 decision:', 'is not in this version'],
  ['several workers', 'registry: {}\nworkers: 2\n', '2:10 workers:', 'not in this version'],
  ['no worker', 'registry: {}\nworkers: 0\n', '2:10 workers:', 'from 1 to 1'],
  [
    'a log level that is unknown',
    'registry: {}\nlog: { level: loud }\n',
    '2:15 log.level:',
    'write debug, info, warn or error',
  ],
];

describe('refuses, saying where and what would be right', () => {
  test.each(CASES)('refuses: %s', (_name, yaml, place, message) => {
    expect(problemsOf(yaml)).toEqual([expect.stringContaining(message)]);
    expect(problemsOf(yaml).map((problem) => problem.slice(0, place.length + 1))).toEqual([`${place} `]);
  });
});

test('behaviour: everything wrong is reported at once, in the order of the file', () => {
  const problems = problemsOf(
    [
      'proxy:',
      '  upstrem: http://127.0.0.1:3000',
      '  timeouts: { connect: 5, idel: 10s }',
      'sync: { api_key: short }',
      'decision: {}',
      'receivers:',
      '  - network: mars',
      '    pay_to_address: "0x..."',
      'routes:',
      '  - { route_pattern: reports, amount: 0.10 }',
    ].join('\n'),
  );
  expect(problems.map((line) => line.split(': ')[0])).toEqual([
    '1:1 charges.secrets',
    '1:1 proxy.upstream',
    '2:3 proxy.upstrem',
    '3:24 proxy.timeouts.connect',
    '3:27 proxy.timeouts.idel',
    '4:1 sync.registry_url',
    '4:18 sync.api_key',
    '5:1 decision',
    '7:5 receivers[0].id',
    '7:5 receivers[0].facilitators',
    '7:14 receivers[0].network',
    '8:21 receivers[0].pay_to_address',
    '9:1 routes',
    '10:22 routes[0].route_pattern',
    '10:39 routes[0].amount',
  ]);
});

test('attack: aliases that multiply are refused without being followed to the end', () => {
  const levels = Array.from(
    { length: 12 },
    (_, level) =>
      `a${level}: &a${level} [${Array(10)
        .fill(level === 0 ? 'x' : `*a${level - 1}`)
        .join(', ')}]`,
  );
  // Of this process alone: the machine may be busy with others.
  const before = process.cpuUsage();
  expect(problemsOf(levels.join('\n'))).toEqual([
    '1:1 (file): holds more than 100000 values, aliases counted where they are used; that is no configuration',
  ]);
  const { user, system } = process.cpuUsage(before);
  expect((user + system) / 1000).toBeLessThan(2000);
});
