// Every way to write a configuration wrongly: where the complaint points and what it says. One line per mistake.
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, test } from 'vitest';
import { ADDRESS, KEY, problemsOf, RECEIVER, SECRET } from './support.ts';

/** name, YAML, `line:column path:`, a part of the message. */
type Case = readonly [name: string, yaml: string, place: string, message: string];

const ALL_IN_ONE = 'proxy: { upstream: "http://127.0.0.1:3000" }\nregistry: {}\n';
const proxy = (lines: string): string => `registry: {}\nproxy:\n  upstream: http://127.0.0.1:3000\n  ${lines}\n`;
const registry = (lines: string): string => `registry:\n  ${lines}\n`;
const sync = (lines: string): string =>
  `proxy: { upstream: "http://127.0.0.1:3000" }\ncharges: { secrets: ["${SECRET}"] }\nsync:\n  api_key: ${KEY}\n  ${lines}\n`;
/** A receiver with these ways, and one facilitator for all of them. */
const ways = (accepts: string): string =>
  `${ALL_IN_ONE}receivers:\n  - id: a\n    accepts: ${accepts}\n    facilitators: [https://f.example]\n`
    .replaceAll('ADDRESS', ADDRESS)
    .replaceAll('"address"', `"${ADDRESS.toLowerCase()}"`);
const receiver = (from: string, to: string): string => `${ALL_IN_ONE}receivers:${RECEIVER.replace(from, to)}\n`;
const discovery = (lines: string): string => `registry: {}\ndiscovery: { ${lines} }\n`;
const route = (lines: string): string => `${ALL_IN_ONE}routes:\n  - route_pattern: /a\n    ${lines}\n`;

/** An all-in-one whose assertion begins at column 14. */
const assertion = (lines: string): string => `${ALL_IN_ONE}assertion: { ${lines} }\n`;
const otlp = (lines: string): string => `${ALL_IN_ONE}otlp: { ${lines} }\n`;

const CASES: readonly Case[] = [
  [
    'an assertion for nobody',
    `${ALL_IN_ONE}assertion: {}\n`,
    '3:1 assertion.audience:',
    'is missing; write what your API calls',
  ],
  [
    'an assertion without a section',
    `${ALL_IN_ONE}assertion:\n`,
    '3:1 assertion.audience:',
    'is missing; write what your API calls',
  ],
  [
    'an audience with spaces',
    assertion('audience: my api'),
    '3:24 assertion.audience:',
    'is not what your API calls itself',
  ],
  ['an audience that is a number', assertion('audience: 7'), '3:24 assertion.audience:', 'is a number: quote it'],
  ['a short assertion', assertion('audience: a, ttl: 4s'), '3:32 assertion.ttl:', 'is out of range; write 5s to 1m'],
  ['a long assertion', assertion('audience: a, ttl: 61s'), '3:32 assertion.ttl:', 'is out of range; write 5s to 1m'],
  [
    'an assertion of half a second',
    assertion('audience: a, ttl: 5500ms'),
    '3:32 assertion.ttl:',
    'is not in whole seconds',
  ],
  [
    'an assertion on free routes',
    assertion('audience: a, on: free'),
    '3:31 assertion.on:',
    'is not known; write plan, protected or all',
  ],
  [
    'an assertion that nobody signs',
    assertion('audience: a, alg: none'),
    '3:32 assertion.alg:',
    'is not known; write EdDSA or HS256',
  ],
  [
    'an assertion signed by RSA',
    assertion('audience: a, alg: RS256'),
    '3:32 assertion.alg:',
    'is not known; write EdDSA or HS256',
  ],
  [
    'HS256 without its secret',
    assertion('audience: a, alg: HS256'),
    '3:1 assertion.secret:',
    'is missing; HS256 signs with a secret',
  ],
  [
    'HS256 with a short secret',
    assertion('audience: a, alg: HS256, secret: short'),
    '3:47 assertion.secret:',
    'is not a secret of at least 32 bytes',
  ],
  [
    'a secret for EdDSA',
    assertion(`audience: a, secret: ${SECRET}`),
    '3:27 assertion.secret:',
    'is of no use to EdDSA',
  ],
  [
    'a secret of assertions that signs prices too',
    `${assertion(`audience: a, alg: HS256, secret: "${SECRET}"`)}charges: { secrets: ["${SECRET}"] }\n`,
    '3:47 assertion.secret:',
    'is one of `charges.secrets`',
  ],
  [
    'an unknown key of an assertion',
    assertion('audience: a, algorithm: EdDSA'),
    '3:27 assertion.algorithm:',
    'did you mean alg',
  ],
  [
    'public keys on the port of the proxy',
    `${ALL_IN_ONE}selling: { public_keys_listen: proxy }\n`,
    '3:32 selling.public_keys_listen:',
    'is not known; write admin or registry',
  ],
  [
    'public keys on a registry that is not here',
    `${sync('registry_url: http://127.0.0.1:1')}selling: { public_keys_listen: registry }\n`,
    '6:32 selling.public_keys_listen:',
    'names a listener that is not here',
  ],
  [
    'a collector without a scheme',
    otlp('endpoint: "collector:4318"'),
    '3:19 otlp.endpoint:',
    'is not the http or https URL',
  ],
  [
    'a collector with a password in its URL',
    otlp('endpoint: "https://a:b@collector"'),
    '3:19 otlp.endpoint:',
    'without user and query',
  ],
  ['a share of more than all', otlp('sample: 1.5'), '3:17 otlp.sample:', 'is not a number from 0 to 1'],
  ['a share in percent', otlp('sample: 5%'), '3:17 otlp.sample:', 'is text; write a number from 0 to 1'],
  ['a share below nothing', otlp('sample: -0.1'), '3:17 otlp.sample:', 'is not a number from 0 to 1'],
  [
    'a header that frames a batch',
    otlp('headers: { Content-Type: text/plain }'),
    '3:34 otlp.headers.Content-Type:',
    'is written by Tollgate itself',
  ],
  ['a header that cannot be sent', otlp('headers: { A: "a\\nb" }'), '3:23 otlp.headers.A:', 'is not a header value'],
  [
    'the service name in the wrong place',
    otlp('attributes: { service.name: a }'),
    '3:37 otlp.attributes.(key):',
    'is what otlp.service_name says',
  ],
  ['an attribute that is a number', otlp('attributes: { a: 1 }'), '3:26 otlp.attributes.a:', 'quote it'],
  ['a service without a name', otlp('service_name: ""'), '3:23 otlp.service_name:', 'a name of 1 to 255'],
  ['an empty file', '', '1:1 (file):', 'has nothing to run'],
  ['only a section that runs nothing', 'log: {}\n', '1:1 (file):', 'has nothing to run'],
  ['a list', '- proxy\n', '1:1 (file):', 'is a list; write sections'],
  ['a scalar', 'proxy\n', '1:1 (file):', 'is text; write sections'],
  ['proxy alone', 'proxy: { upstream: "http://127.0.0.1:1" }\n', '1:1 proxy:', 'add `registry`'],
  [
    'sync alone',
    `sync: { registry_url: "https://r", api_key: ${KEY} }\n`,
    '1:1 sync:',
    'stands without `proxy` and `decision`',
  ],
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
  ['a public_url with a query', proxy('public_url: https://a/?b'), '4:15 proxy.public_url:', 'without a path'],
  ['a public_url with a path', proxy('public_url: https://a/v2'), '4:15 proxy.public_url:', 'without a path'],
  ['a host with a scheme', proxy('hosts: ["https://a"]'), '4:11 proxy.hosts[0]:', 'is not a host name or address'],
  ['a host with a path', proxy('hosts: [a, a/b]'), '4:14 proxy.hosts[1]:', 'is not a host name or address'],
  ['a host with a wildcard', proxy('hosts: ["*.a"]'), '4:11 proxy.hosts[0]:', 'is not a host name or address'],
  ['a host with a port too high', proxy('hosts: ["a:65536"]'), '4:11 proxy.hosts[0]:', 'is not a host name or'],
  ['an upload time without unit', proxy('timeouts: { upload: 30 }'), '4:23 proxy.timeouts.upload:', 'write a duration'],
  ['an upload time of nothing', proxy('timeouts: { upload: 0s }'), '4:23 proxy.timeouts.upload:', 'is out of range'],
  ...['in_flight_per_client', 'payments_per_client', 'refused_payments_per_client'].map((key): Case => [
    `${key} one past its end`,
    proxy(`limits: { ${key}: 1000001 }`),
    `4:${15 + key.length} proxy.limits.${key}:`,
    'is not a whole number from 1 to 1000000, or off',
  ]),
  [
    'a limit that is no number',
    proxy('limits: { payments_per_client: none }'),
    '4:34 proxy.limits.payments_per_client:',
    'is text; write a whole number from 1 to 1000000, or off',
  ],
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
    'is not a whole number from 1 to 1000000, or off',
  ],
  [
    'a quoted number',
    proxy('limits: { target: "8192" }'),
    '4:21 proxy.limits.target:',
    'is text; write a whole number',
  ],

  [
    'PostgreSQL without a key for tokens',
    registry('store: postgres://h/db'),
    '1:1 registry.jwt:',
    'is missing; with PostgreSQL a dashboard token',
  ],
  [
    'PostgreSQL without a database',
    registry(`jwt: { secret: "${SECRET}" }\n  store: postgres://h`),
    '3:10 registry.store:',
    'names no database',
  ],
  [
    'PostgreSQL with sslmode',
    registry(`jwt: { secret: "${SECRET}" }\n  store: postgres://h/db?sslmode=require`),
    '3:10 registry.store:',
    'write tls: { mode: verify }',
  ],
  [
    'PostgreSQL with another parameter',
    registry(`jwt: { secret: "${SECRET}" }\n  store: postgres://h/db?options=-c`),
    '3:10 registry.store:',
    'has parameters; only host',
  ],
  [
    'PostgreSQL with two passwords',
    registry(`jwt: { secret: "${SECRET}" }\n  store: { url: "postgres://u:p@h/db", password: p }`),
    '3:17 registry.store.url:',
    'has a password in two places',
  ],
  [
    'a schema that needs quotes',
    registry(`jwt: { secret: "${SECRET}" }\n  store: { url: "postgres://h/db", schema: "My-Schema" }`),
    '3:44 registry.store.schema:',
    'is not a name of up to 48 small letters',
  ],
  [
    'a schema of a name that PostgreSQL keeps for itself',
    registry(`jwt: { secret: "${SECRET}" }\n  store: { url: "postgres://h/db", schema: pg_tollgate }`),
    '3:44 registry.store.schema:',
    'is not a name of up to 48 small letters, digits and underscores that does not begin with pg_',
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
    'an address with a wrong checksum',
    receiver(ADDRESS, ADDRESS.replace('Bc', 'bc')),
    '6:21 receivers[0].pay_to_address:',
    'has a wrong checksum (EIP-55): a digit or the case of a letter is mistyped; compare it with your wallet',
  ],
  [
    'a token with a wrong checksum',
    receiver('base-sepolia', `base-sepolia\n    asset: "0x036cbD53842c5426634e7929541eC2318f3dCF7e"`),
    '6:12 receivers[0].asset:',
    'has a wrong checksum (EIP-55)',
  ],
  [
    'an address that nobody has the key of, for real money',
    receiver(`base-sepolia\n    pay_to_address: "${ADDRESS}"`, `base\n    pay_to_address: "0x${'0'.repeat(36)}dEaD"`),
    '6:21 receivers[0].pay_to_address:',
    'nobody has the key of',
  ],
  [
    'the public test facilitator for real money',
    receiver('base-sepolia', 'base').replace('https://facilitator.example.com', 'https://x402.org/facilitator'),
    '7:20 receivers[0].facilitators[0]:',
    'serves test networks only',
  ],
  [
    'a facilitator as text',
    receiver('[https://facilitator.example.com]', 'https://facilitator.example.com'),
    '7:19 receivers[0].facilitators:',
    'is text; write a list',
  ],
  [
    'facilitators left out',
    receiver('\n    facilitators: [https://facilitator.example.com]', ''),
    '4:5 receivers[0].facilitators:',
    'is missing; write a list of those who verify and settle payments, such as [https://',
  ],
  [
    'a list of methods',
    route('amount: "1"\n    method: [GET, POST]'),
    '6:13 routes[0].method:',
    'is a list; write one route for each method, or *',
  ],
  ['an amount with a comma', route('amount: "0,10"'), '5:13 routes[0].amount:', 'has a comma; write a point'],
  [
    'an amount with a currency',
    route('amount: "$0.10"'),
    '5:13 routes[0].amount:',
    'holds more than the number; write that alone',
  ],
  ['an amount with its code', route('amount: "0.10 USD"'), '5:13 routes[0].amount:', 'holds more than the number'],
  ['an amount below nothing', route('amount: "-1"'), '5:13 routes[0].amount:', 'has a sign; write the amount without'],
  [
    'a route that is disabled',
    route('amount: "1"\n    status: disabled'),
    '6:13 routes[0].status:',
    'is not known; write active, or paused',
  ],
  [
    'a path',
    route('amount: "1"').replace('route_pattern', 'path'),
    '4:5 routes[0].path:',
    'did you mean route_pattern?',
  ],
  ['a price', route('price: "1"'), '5:5 routes[0].price:', 'did you mean amount?'],
  ['TLS', 'registry: {}\ntls: { cert: a }\n', '2:1 tls:', 'TLS is not done here; put a proxy that does TLS in front'],
  ['TLS of the proxy', proxy('tls: { cert: a }'), '4:3 proxy.tls:', 'TLS is not done here'],
  [
    'a list at the top with other mistakes in it',
    '- proxy: "${X}"\n- registry: "${Y}"\n',
    '1:1 (file):',
    'is a list; write sections',
  ],
  [
    'a network that is unknown',
    receiver('base-sepolia', 'bse'),
    '5:14 receivers[0].network:',
    'is not a network that is known here; did you mean base?',
  ],
  [
    'a token that is unknown',
    receiver('base-sepolia', 'sepolia\n    asset_decimals: 6\n    asset_name: T\n    asset_version: "1"'),
    '4:5 receivers[0].asset:',
    'is missing; USDC is not known on sepolia, so write the address of the token',
  ],
  [
    'a network whose nodes are unknown, without rpc_url',
    receiver(
      'base-sepolia',
      `eip155:31337\n    asset: "${ADDRESS}"\n    asset_decimals: 6\n    asset_name: T\n    asset_version: "1"`,
    ),
    '4:5 receivers[0].rpc_url:',
    'is missing; no public node of this network is known here, so write',
  ],
  [
    'a node that is no URL',
    receiver('base-sepolia', 'base\n    rpc_url: wss://a.example'),
    '6:14 receivers[0].rpc_url:',
    'is not the http or https URL of a JSON-RPC node, a list of them, or none',
  ],
  [
    'a list of nodes with none in it',
    receiver('base-sepolia', 'base\n    rpc_url: [https://a, none]'),
    '6:26 receivers[0].rpc_url[1]:',
    'is not the http or https URL',
  ],
  [
    'an empty list of nodes',
    receiver('base-sepolia', 'base\n    rpc_url: []'),
    '6:14 receivers[0].rpc_url:',
    'is empty; write',
  ],
  [
    'one node twice',
    receiver('base-sepolia', 'base\n    rpc_url: [https://a, https://a]'),
    '6:26 receivers[0].rpc_url[1]:',
    'stands twice',
  ],
  [
    'nine nodes',
    receiver('base-sepolia', `base\n    rpc_url: [${Array.from({ length: 9 }, (_, n) => `https://a${n}`).join(', ')}]`),
    '6:14 receivers[0].rpc_url:',
    'names more than 8 nodes',
  ],
  [
    'a time-out of 29 seconds',
    receiver('base-sepolia', 'base\n    max_timeout_seconds: 29'),
    '6:26 receivers[0].max_timeout_seconds:',
    'is not a whole number from 30 to 86400',
  ],
  [
    'a time-out of more than a day',
    receiver('base-sepolia', 'base\n    max_timeout_seconds: 86401'),
    '6:26 receivers[0].max_timeout_seconds:',
    'is not a whole number from 30 to 86400',
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

  [
    'a method that no proxy lets in',
    route('amount: "1"\n    method: GETT'),
    '6:13 routes[0].method:',
    'did you mean GET?',
  ],
  ['an unquoted amount', route('amount: 0.10'), '5:13 routes[0].amount:', 'quote the amount'],
  [
    'a method that the proxy answers with 501',
    route('amount: "1"\n    method: GETT'),
    '6:13 routes[0].method:',
    'is answered with 501, so such a route would protect nothing; did you mean GET?',
  ],
  [
    'a method that is never let in',
    route('amount: "1"\n    method: TRACE'),
    '6:13 routes[0].method:',
    'take the route out',
  ],
  [
    'a method that is not let in here',
    route('amount: "1"\n    method: PURGE'),
    '6:13 routes[0].method:',
    'write GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS, * for any, or add it to proxy.methods',
  ],
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

  [
    'a service name that is too long',
    discovery(`service_name: "${'x'.repeat(33)}"`),
    '2:28 discovery.service_name:',
    'is not 1 to 32 printable ASCII characters',
  ],
  ['a service name that is empty', discovery('service_name: ""'), '2:28 discovery.service_name:', 'is not 1 to 32'],
  [
    'a service name in other letters',
    discovery('service_name: Café'),
    '2:28 discovery.service_name:',
    'is not 1 to 32',
  ],
  ['serving that is neither yes nor no', discovery('serve: maybe'), '2:21 discovery.serve:', 'true or false'],
  ['a contact that is no address', discovery('contact: me'), '2:23 discovery.contact:', 'is not an e-mail address'],
  [
    'a contact with a line end',
    discovery('contact: "me@example.com\\n"'),
    '2:23 discovery.contact:',
    'is not an e-mail address',
  ],
  [
    'documentation elsewhere than on the web',
    discovery('docs_url: "javascript:alert(1)"'),
    '2:24 discovery.docs_url:',
    'is not an http or https URL',
  ],
  ['a title that is empty', discovery('title: " "'), '2:21 discovery.title:', 'is not a title of 1 to 128'],
  [
    'a title that is too long',
    discovery(`title: "${'x'.repeat(129)}"`),
    '2:21 discovery.title:',
    'is not a title of 1 to 128 characters',
  ],
  [
    'a text for llms.txt that is not there',
    discovery('llms_file: missing.txt'),
    '2:25 discovery.llms_file:',
    'names a file that cannot be read (ENOENT)',
  ],
  ['six tags', discovery('tags: [a, b, c, d, e, f]'), '2:20 discovery.tags:', 'is longer than 5'],
  ['a tag that is too long', discovery(`tags: [a, ${'x'.repeat(33)}]`), '2:24 discovery.tags[1]:', 'is not 1 to 32'],
  [
    'an icon in plain http',
    discovery('icon_url: http://example.com/i.png'),
    '2:24 discovery.icon_url:',
    'is not an https URL',
  ],
  [
    'an icon at an address',
    discovery('icon_url: https://192.0.2.1/i.png'),
    '2:24 discovery.icon_url:',
    'with a public host name',
  ],
  [
    'an icon at an address in another spelling',
    discovery('icon_url: https://0x7f.1/i.png'),
    '2:24 discovery.icon_url:',
    'is not an https URL',
  ],
  [
    'an icon at an IPv6 address',
    discovery('icon_url: "https://[::1]/i.png"'),
    '2:24 discovery.icon_url:',
    'is not an https URL',
  ],
  [
    'an icon on this machine',
    discovery('icon_url: https://localhost/i.png'),
    '2:24 discovery.icon_url:',
    'is not an https URL',
  ],
  [
    'an icon with a user',
    discovery('icon_url: https://u:p@example.com/i.png'),
    '2:24 discovery.icon_url:',
    'is not an https URL',
  ],
  [
    'an icon with a long URL',
    discovery(`icon_url: https://example.com/${'i'.repeat(2048 - 19)}`),
    '2:24 discovery.icon_url:',
    'of at most 2048 characters',
  ],
  [
    'an excluded pattern that is none',
    discovery('exclude: [internal]'),
    '2:24 discovery.exclude[0]:',
    'is not usable: the pattern must start with a slash',
  ],
  ['an excluded list', discovery('exclude: [[a]]'), '2:24 discovery.exclude[0]:', 'is a list; write a pattern'],
  [
    'a description that is empty',
    discovery('openapi: ""'),
    '2:23 discovery.openapi:',
    'is not the file of an OpenAPI document',
  ],
  [
    'a key of discovery that is unknown',
    discovery('name: A'),
    '2:14 discovery.name:',
    'known are openapi, service_name',
  ],
  [
    'a decision without a dialect',
    'registry: {}\ndecision: { listen: "127.0.0.1:8404" }\n',
    '2:1 decision.dialect:',
    'is missing; write nginx, nginx_accel',
  ],
  [
    'a dialect that nobody speaks',
    'registry: {}\ndecision: { dialect: varnish }\n',
    '2:22 decision.dialect:',
    'is not known; write nginx',
  ],
  [
    'a key of the proxy on a decision',
    'registry: {}\ndecision: { dialect: nginx, host_header: preserve }\n',
    '2:29 decision.host_header:',
    'is not known here',
  ],
  [
    'payment headers passed by a decision',
    'registry: {}\ndecision: { dialect: nginx, pass_payment_headers: true }\n',
    '2:29 decision.pass_payment_headers:',
    'is not known here',
  ],
  [
    'an upstream time-out of a decision',
    'registry: {}\ndecision: { dialect: nginx, timeouts: { headers: 1s } }\n',
    '2:41 decision.timeouts.headers:',
    'is not known here',
  ],
  [
    'a short secret of a decision',
    'registry: {}\ndecision: { dialect: nginx, secret: short }\n',
    '2:37 decision.secret:',
    'is not a secret of 16 to 512 visible',
  ],
  [
    'a decision that answers too late',
    'registry: {}\ndecision: { dialect: nginx, answer_within: 121s }\n',
    '2:44 decision.answer_within:',
    'is out of range',
  ],
  [
    'a header of ours let in',
    'registry: {}\ndecision: { dialect: nginx, allow_headers: [Tollgate-Payer] }\n',
    '2:45 decision.allow_headers[0]:',
    'begins with tollgate-',
  ],
  [
    'a decision in a list',
    'registry: {}\ndecision: [{ dialect: nginx }, { dialect: caddy }]\n',
    '2:32 decision[1].listen:',
    'takes the address',
  ],
  ['a decision without routes', 'decision: { dialect: nginx }\n', '1:1 decision:', 'needs routes'],
  [
    'a way beside the list of ways',
    ways('[{ network: base, pay_to_address: "ADDRESS" }]\n    network: base'),
    '6:5 receivers[0].network:',
    'stands beside accepts; write it in the ways of accepts, or take accepts out',
  ],
  ['no way', ways('[]'), '5:14 receivers[0].accepts:', 'is empty; write a list of 1 to 8 ways to pay'],
  ['a way that is no list', ways('{ network: base }'), '5:14 receivers[0].accepts:', 'is a section; write a list of 1'],
  [
    'nine ways',
    ways(
      `[${Array.from({ length: 9 }, (_, n) => `{ network: base, pay_to_address: "0x${String(n + 1).repeat(40)}" }`).join(', ')}]`,
    ),
    '5:14 receivers[0].accepts:',
    'holds more than 8 ways',
  ],
  [
    'a way on a network that is unknown',
    ways('[{ network: base, pay_to_address: "ADDRESS" }, { network: bse, pay_to_address: "ADDRESS" }]'),
    '5:107 receivers[0].accepts[1].network:',
    'did you mean base?',
  ],
  [
    'a way without a network',
    ways('[{ network: base, pay_to_address: "ADDRESS" }, { pay_to_address: "ADDRESS" }]'),
    '5:96 receivers[0].accepts[1].network:',
    'is missing; write a network, such as base',
  ],
  [
    'a way without a receiving address',
    ways('[{ network: base }]'),
    '5:15 receivers[0].accepts[0].pay_to_address:',
    'is missing; write the address that receives the payments',
  ],
  [
    'a way with a key of the receiver',
    ways('[{ network: base, pay_to_address: "ADDRESS", settle: auto }]'),
    '5:94 receivers[0].accepts[0].settle:',
    'is not known here; known are scheme, network',
  ],
  [
    'a way with a key that is mistyped',
    ways('[{ network: base, pay_to_adress: "ADDRESS" }]'),
    '5:32 receivers[0].accepts[0].pay_to_adress:',
    'did you mean pay_to_address?',
  ],
  [
    'one way twice, in two spellings',
    ways(
      '[{ network: base, pay_to_address: "ADDRESS" }, { network: "eip155:8453", asset: USDC, pay_to_address: "address" }]',
    ),
    '5:96 receivers[0].accepts[1]:',
    'has the network, asset and pay_to_address of accepts[0]; keep one of the two',
  ],
  [
    'nodes for ways on two networks',
    ways(
      '[{ network: base, pay_to_address: "ADDRESS" }, { network: polygon, pay_to_address: "ADDRESS" }]\n    rpc_url: https://a',
    ),
    '6:14 receivers[0].rpc_url:',
    'stands beside ways on several networks; write it in each way',
  ],
  [
    'a way that nobody serves',
    ways('[{ network: base, pay_to_address: "ADDRESS" }]').replace(/\n.*facilitators.*/, ''),
    '5:15 receivers[0].accepts[0].facilitators:',
    'is missing; write a list of those who verify and settle payments, such as [https://facilitator.example.com], here or once beside accepts',
  ],
  [
    'the public test facilitator for one way of real money',
    ways(
      '[{ network: base, pay_to_address: "ADDRESS" }, { network: base, pay_to_address: "0x1111111111111111111111111111111111111111", facilitators: [x402.org] }]',
    ),
    '5:190 receivers[0].accepts[1].facilitators[0]:',
    'serves test networks only',
  ],
  [
    'an EIP-712 name that no client gives back',
    receiver(
      'base-sepolia',
      `base\n    asset: "${ADDRESS}"\n    asset_decimals: 6\n    asset_name: "${'n'.repeat(129)}"\n    asset_version: "1"`,
    ),
    '8:17 receivers[0].asset_name:',
    'of at most 128 bytes',
  ],
  [
    'an EVM wallet on Solana',
    receiver('base-sepolia', 'solana'),
    '6:21 receivers[0].pay_to_address:',
    'is an address of an EVM network; write one of this network: base58 of 32 bytes, in quotes',
  ],
  [
    'a name of USDC that is not its own',
    receiver('base-sepolia', 'base\n    asset_name: USDC'),
    '6:17 receivers[0].asset_name:',
    'is not that of USDC on base, which is "USD Coin"; write that, or leave it out',
  ],
  [
    'a symbol that is not known',
    receiver('base-sepolia', 'celo\n    asset: EURC'),
    '6:12 receivers[0].asset:',
    'write USDC or USDT or USAT, or the address of another token',
  ],
  [
    'more connections than there may be',
    registry(`jwt: { secret: "${SECRET}" }\n  store: { url: "postgres://h/db", connections: 17 }`),
    '3:49 registry.store.connections:',
    'from 1 to 16',
  ],
  ['as many workers as fit without a proxy', 'registry: {}\nworkers: auto\n', '2:10 workers:', 'without `proxy`'],
  ['a retention of six days', 'registry: {}\ncharges: { retention: 6d }\n', '2:23 charges.retention:', 'at least 7d'],
  ['a retention without unit', 'registry: {}\ncharges: { retention: 30 }\n', '2:23 charges.retention:', 'at least 7d'],
  [
    'a log format that is unknown',
    'registry: {}\nlog: { format: pretty }\n',
    '2:16 log.format:',
    'write auto, json or text',
  ],
  ['several workers without a proxy', 'registry: {}\nworkers: 2\n', '2:10 workers:', 'without `proxy`'],
  ['too many workers without a proxy', 'registry: {}\nworkers: 65\n', '2:10 workers:', 'without `proxy`'],
  ['no worker', 'registry: {}\nworkers: 0\n', '2:10 workers:', 'is not a whole number from 1 to 64, or auto'],
  ['too many workers', `${ALL_IN_ONE}workers: 65\n`, '3:10 workers:', 'is not a whole number from 1 to 64, or auto'],
  ['a part of a worker', `${ALL_IN_ONE}workers: 1.5\n`, '3:10 workers:', 'is not a whole number from 1 to 64, or auto'],
  [
    'workers in words',
    `${ALL_IN_ONE}workers: all\n`,
    '3:10 workers:',
    'is text; write a whole number from 1 to 64, or auto',
  ],
  ['workers in quotes', `${ALL_IN_ONE}workers: "2"\n`, '3:10 workers:', 'is text; write a whole number from 1 to 64'],
  [
    'workers without a number',
    `${ALL_IN_ONE}workers:\n`,
    '3:9 workers:',
    'is empty; write a whole number from 1 to 64',
  ],
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

test('behaviour: everything wrong in a file is reported at once, in the order of the file', () => {
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
    '2:3 proxy.upstrem',
    '3:24 proxy.timeouts.connect',
    '3:27 proxy.timeouts.idel',
    '4:1 sync.registry_url',
    '4:18 sync.api_key',
    '5:1 decision.dialect',
    '7:5 receivers[0].facilitators',
    '7:5 receivers[0].id',
    '7:14 receivers[0].network',
    '8:21 receivers[0].pay_to_address',
    '9:1 routes',
    '10:22 routes[0].route_pattern',
    '10:39 routes[0].amount',
  ]);
});

test('refuses: an answer of a byte more than PostgreSQL keeps; one of as many is fine', () => {
  const keeping = (bytes: number): string[] =>
    problemsOf(
      `${registry(`jwt: { secret: "${SECRET}" }\n  store: postgres://h/db`)}charges: { keep_response: ${bytes} }\n`,
    );
  expect(keeping(1_048_576)).toEqual([]);
  expect(keeping(1_048_577)).toEqual([
    '4:27 charges.keep_response: is more than PostgreSQL keeps; write at most 1048576',
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

describe('one slip in the YAML', () => {
  const shipped = readFileSync(path.join(import.meta.dirname, '../../config/all-in-one.yaml'), 'utf8');
  test.each([
    ['a quote that is not closed', 'amount: "0.10"', 'amount: "0.10', 97],
    ['a bracket too many', '[https://x402.org/facilitator]', '[https://x402.org/facilitator]]', 73],
    ['a tab', '    network: base-sepolia', '\tnetwork: base-sepolia', 71],
    ['a colon that is missing', 'listen: 0.0.0.0:8402', 'listen 0.0.0.0:8402', 13],
    ['a list item without its space', '  - route_pattern: /reports/*', '  -route_pattern: /reports/*', 96],
    ['a line that is not indented', 'amount: "0.10"', 'amount:\n"0.10"', 98],
  ])('refuses: %s with one message, where it is', (_, right, wrong, line) => {
    expect(shipped).toContain(right);
    const problems = problemsOf(shipped.replace(right, wrong), { PAY_TO: ADDRESS });
    expect(problems).toEqual([expect.stringMatching(new RegExp(`^${line}:\\d+ \\(file\\): `))]);
  });
});
