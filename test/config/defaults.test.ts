// What a configuration means that leaves everything out: every default, in the units of the code.
import { describe, expect, test } from 'vitest';
import type { ReceiverWay } from '../../src/domain/payment/offer.ts';
import { ADDRESS, configOf, KEY, RECEIVER, SECRET } from './support.ts';

const REST = {
  file: '/srv/t.yaml',
  folder: '/srv',
  admin: { listen: { host: '127.0.0.1', port: 9402 } },
  receivers: [],
  routes: [],
  webhooks: [],
  x402: { v1: false },
  selling: {
    publicKeysListen: 'admin',
    isConfigured: false,
    customers: new Map(),
    plans: { byId: new Map(), hasStandard: false },
  },
  page: {
    ...{ enabled: true, name: undefined, logo: undefined, accent: '#1652f0' },
    ...{ support: undefined, termsUrl: undefined, privacyUrl: undefined },
  },
  metrics: { maxRoutes: 1000 },
  log: { level: 'info', access: true, format: 'auto' },
  workers: 1,
};
const CHARGES = {
  secrets: undefined,
  store: undefined,
  quoteTtlMs: 300_000,
  keepResponseBytes: 65_536,
  maxUnsettledPerPayer: 64,
  retentionMs: undefined,
};
const PROXY = {
  listen: { host: '0.0.0.0', port: 8402 },
  upstream: { protocol: 'http', host: '127.0.0.1', port: 3000, origin: 'http://127.0.0.1:3000' },
  hostHeader: 'preserve',
  publicUrl: undefined,
  hosts: [],
  trustedProxies: [],
  upstreamProfile: 'unknown',
  encodedSlashes: 'refuse',
  doubleSlashes: 'merge',
  undeclaredMethods: 'forward',
  methods: [],
  preflight: 'answer',
  corsOrigins: [],
  customerHeader: 'X-Customer-Id',
  customerHeaderTrusted: false,
  passPaymentHeaders: false,
  timeouts: {
    connectMs: 5000,
    headersMs: 60_000,
    idleMs: 300_000,
    uploadMs: 30_000,
    drainDelayMs: 5000,
    drainMs: 25_000,
  },
  limits: {
    targetBytes: 8192,
    headerBytes: 32_768,
    connections: 20_000,
    inFlight: 10_000,
    inFlightPerClient: 0,
    payments: 1000,
    paymentsPerClient: 0,
    refusedPaymentsPerClient: 0,
    challengesPerClient: { perMinute: 0, burst: 60, clients: 65_536 },
  },
};
const REGISTRY = {
  listen: { host: '127.0.0.1', port: 8403 },
  store: { kind: 'sqlite', name: '/srv/data/tollgate.db', file: '/srv/data/tollgate.db' },
  jwt: undefined,
  apiKeys: undefined,
  corsOrigins: [],
  limits: {
    bodyBytes: 65_536,
    routes: 100_000,
    connections: 2000,
    eventStreams: 1000,
    eventStreamsPerKey: 500,
    registrationsPerMinute: 6000,
  },
  totals: { hoursMs: 90 * 86_400_000, daysMs: 800 * 86_400_000 },
  audit: { keepMs: 400 * 86_400_000 },
};

describe('behaviour: what is left out has the default of the contract', () => {
  test('an all-in-one has the defaults of the contract', () => {
    expect(configOf('proxy: { upstream: "http://127.0.0.1:3000" }\nregistry:\n')).toEqual({
      ...REST,
      shape: 'all-in-one',
      proxy: PROXY,
      front: PROXY,
      registry: REGISTRY,
      sync: undefined,
      charges: CHARGES,
    });
  });

  test('a registry has the defaults of the contract', () => {
    expect(configOf('registry: {}')).toEqual({
      ...REST,
      shape: 'registry',
      proxy: undefined,
      registry: REGISTRY,
      sync: undefined,
      charges: CHARGES,
    });
  });

  test('a sidecar has the defaults of the contract', () => {
    const text = `proxy: { upstream: "http://127.0.0.1:3000" }\nsync: { registry_url: "https://r.example/", api_key: ${KEY} }\ncharges: { secrets: ["${SECRET}"] }\n`;
    expect(configOf(text)).toEqual({
      ...REST,
      shape: 'sidecar',
      front: PROXY,
      proxy: PROXY,
      registry: undefined,
      sync: {
        registryUrl: 'https://r.example',
        apiKey: KEY,
        pollIntervalMs: 15_000,
        snapshotFile: '/srv/data/routes.json',
        snapshotMaxAgeMs: 86_400_000,
        emptyAfterMs: 300_000,
        whenAbsent: 'refuse',
        listen: undefined,
      },
      charges: { ...CHARGES, secrets: [SECRET] },
    });
  });

  test('a receiver on a network whose USDC is known has the defaults of the contract', () => {
    expect(configOf(`registry: {}\nreceivers:${RECEIVER}\n`).receivers).toEqual([
      {
        id: 'default',
        ways: [
          {
            way: {
              receiverId: 'default',
              scheme: 'exact',
              network: 'eip155:84532',
              asset: '0x036CbD53842c5426634e7929541eC2318f3dCF7e',
              decimals: 6,
              payTo: ADDRESS,
              timeoutSeconds: 300,
              terms: { name: 'USDC', version: '2' },
            },
            networkName: 'base-sepolia',
            testnet: true,
            facilitators: [
              {
                url: 'https://facilitator.example.com',
                headers: {},
                timeouts: { verifyMs: 5000, settleMs: 15_000 },
                limits: { calls: 512, waiting: 512 },
              },
            ],
            rpcUrls: ['https://sepolia.base.org', 'https://base-sepolia-rpc.publicnode.com'],
            rpcPublic: true,
            confirmations: 1,
          },
        ],
        currencies: ['USD', 'USDC'],
        settle: 'auto',
      },
    ]);
  });

  test('a route, an API key and a jwt have the defaults of the contract', () => {
    const text = `registry:\n  api_keys: [{ name: a, key: ${KEY} }]\n  jwt: { secret: "${SECRET}" }\nroutes: [{ route_pattern: /a, amount: "1.50" }]\n`;
    const { routes, registry } = configOf(text);
    expect(registry?.apiKeys).toEqual([{ name: 'a', key: KEY, scopes: ['sdk'] }]);
    expect(registry?.jwt).toEqual({
      key: { kind: 'secret', secret: SECRET },
      issuer: 'tollgate',
      audience: 'dashboard',
    });
    expect(routes).toEqual([
      {
        route_pattern: '/a',
        method: '*',
        amount: '1.50',
        currency: 'USD',
        name: null,
        description: null,
        status: 'active',
        allow_anonymous: true,
        receiver_config_id: null,
        plan_id: null,
        source: 'config',
      },
    ]);
  });
});

test('behaviour: a value that is written replaces the default', () => {
  const text = `
proxy:
  listen: "[::1]:0"
  upstream: https://api.internal/
  host_header: upstream
  public_url: https://api.example.com:8443/
  hosts: [WWW.example.com, "localhost:8402", "[::1]:8402", münchen.example]
  trusted_proxies: [10.0.0.0/8, "::1"]
  upstream_profile: fastify
  encoded_slashes: keep
  double_slashes: keep
  undeclared_methods: pay
  methods: [propfind]
  preflight: forward
  cors_origins: ["*", "https://app.example.com:8443"]
  customer_header: X-Account
  customer_header_trusted: true
  pass_payment_headers: true
  timeouts: { connect: 250ms, headers: 1m, idle: 1h, upload: 45s, total: 2h, drain_delay: 0s, drain: 0ms }
  limits: { target: 100, headers: 2048, connections: 1, in_flight: 2, in_flight_per_client: 8, payments: 3, payments_per_client: 4, refused_payments_per_client: 9, challenges_per_client: { per_minute: 5, burst: 6, clients: 7 } }
registry: { listen: "localhost:0", store: "sqlite:/var/lib/t.db", cors_origins: ["https://d.example"], api_keys: [], limits: { body: 1024, routes: 1, connections: 2, event_streams: 3, event_streams_per_key: 4, registrations_per_minute: 5 }, totals: { hours: 48h, days: 30d } }
admin: { listen: 0.0.0.0:0 }
charges: { quote_ttl: 10s, keep_response: 0, max_unsettled_per_payer: 1, retention: 90d }
x402: { v1: true }
metrics: { max_routes: 5 }
log: { level: debug, access: false, format: text }
workers: 64
`;
  const config = configOf(text);
  expect(config.proxy).toEqual({
    listen: { host: '::1', port: 0 },
    upstream: { protocol: 'https', host: 'api.internal', port: 443, origin: 'https://api.internal' },
    hostHeader: 'upstream',
    publicUrl: 'https://api.example.com:8443',
    hosts: [
      { host: 'www.example.com', port: undefined },
      { host: 'localhost', port: 8402 },
      { host: '[::1]', port: 8402 },
      { host: 'xn--mnchen-3ya.example', port: undefined },
    ],
    trustedProxies: ['10.0.0.0/8', '::1'],
    upstreamProfile: 'fastify',
    encodedSlashes: 'keep',
    doubleSlashes: 'keep',
    undeclaredMethods: 'pay',
    methods: ['PROPFIND'],
    preflight: 'forward',
    corsOrigins: ['*', 'https://app.example.com:8443'],
    customerHeader: 'X-Account',
    customerHeaderTrusted: true,
    passPaymentHeaders: true,
    timeouts: {
      connectMs: 250,
      headersMs: 60_000,
      idleMs: 3_600_000,
      uploadMs: 45_000,
      totalMs: 7_200_000,
      drainDelayMs: 0,
      drainMs: 0,
    },
    limits: {
      targetBytes: 100,
      headerBytes: 2048,
      connections: 1,
      inFlight: 2,
      inFlightPerClient: 8,
      payments: 3,
      paymentsPerClient: 4,
      refusedPaymentsPerClient: 9,
      challengesPerClient: { perMinute: 5, burst: 6, clients: 7 },
    },
  });
  expect(config.registry).toMatchObject({
    listen: { host: 'localhost', port: 0 },
    store: { file: '/var/lib/t.db' },
    apiKeys: [],
    limits: {
      bodyBytes: 1024,
      routes: 1,
      connections: 2,
      eventStreams: 3,
      eventStreamsPerKey: 4,
      registrationsPerMinute: 5,
    },
    totals: { hoursMs: 2 * 86_400_000, daysMs: 30 * 86_400_000 },
  });
  expect(config).toMatchObject({
    admin: { listen: { host: '0.0.0.0', port: 0 } },
    charges: { quoteTtlMs: 10_000, keepResponseBytes: 0, maxUnsettledPerPayer: 1, retentionMs: 90 * 86_400_000 },
    x402: { v1: true },
    metrics: { maxRoutes: 5 },
    log: { level: 'debug', access: false, format: 'text' },
    workers: 64,
  });
});

test.each([
  ['auto', 'auto'],
  ['"auto"', 'auto'],
  ['2', 2],
  ['${N}', 3],
  ['${A}', 'auto'],
])('behaviour: workers may be written as %s', (written, workers) => {
  const text = `registry: {}\nproxy: { upstream: "http://a" }\nworkers: ${written}`;
  expect(configOf(text, { N: '3', A: 'auto' }).workers).toBe(workers);
});

test('behaviour: one worker needs no proxy, also if a variable says it', () => {
  expect(configOf('registry: {}\nworkers: ${N}', { N: '1' }).workers).toBe(1);
});

describe('behaviour: a limit that can be switched off is off by `off` and by 0', () => {
  const proxyLimits = (text: string) =>
    configOf(`registry: {}\nproxy: { upstream: "http://a", limits: ${text} }`).proxy?.limits;
  test.each([
    ['in_flight_per_client', 'inFlightPerClient'],
    ['payments_per_client', 'paymentsPerClient'],
    ['refused_payments_per_client', 'refusedPaymentsPerClient'],
  ] as const)('proxy.limits.%s may be off or 0', (key, name) => {
    expect(proxyLimits(`{ ${key}: off }`)?.[name]).toBe(0);
    expect(proxyLimits(`{ ${key}: 0 }`)?.[name]).toBe(0);
    expect(proxyLimits(`{ ${key}: "off" }`)?.[name]).toBe(0);
    expect(proxyLimits(`{ ${key}: 1 }`)?.[name]).toBe(1);
    expect(proxyLimits(`{ ${key}: 1000000 }`)?.[name]).toBe(1_000_000);
  });

  test.each(['off', '0', '{ per_minute: off }', '{ per_minute: 0 }', '{}'])(
    'proxy.limits.challenges_per_client is off: %s',
    (value) => {
      expect(proxyLimits(`{ challenges_per_client: ${value} }`)?.challengesPerClient).toEqual({
        perMinute: 0,
        burst: 60,
        clients: 65_536,
      });
    },
  );

  test.each(['off', '0'])('registry.limits.registrations_per_minute is off: %s', (value) => {
    const { registry } = configOf(`registry: { limits: { registrations_per_minute: ${value} } }`);
    expect(registry?.limits.registrationsPerMinute).toBe(0);
  });

  test.each([
    ['off', undefined],
    ['0', undefined],
    ['7d', 7 * 86_400_000],
    ['168h', 7 * 86_400_000],
  ])('charges.retention may be written as %s', (value, expected) => {
    expect(configOf(`registry: {}\ncharges: { retention: ${value} }`).charges.retentionMs).toBe(expected);
  });

  test('a limit is switched off by an environment variable too, which can only hold text', () => {
    const text = 'registry: {}\nproxy: { upstream: "http://a", limits: { payments_per_client: "${N}" } }';
    expect(configOf(text, { N: 'off' }).proxy?.limits.paymentsPerClient).toBe(0);
    expect(configOf(text, { N: '7' }).proxy?.limits.paymentsPerClient).toBe(7);
  });
});

describe('receivers', () => {
  const receiver = (lines: string): string =>
    `registry: {}\nreceivers:\n  - id: a\n    pay_to_address: "${ADDRESS}"\n    facilitators: ["http://127.0.0.1:1/x/"]\n    ${lines}\n`;

  const wayOf = (lines: string): ReceiverWay | undefined => configOf(receiver(lines)).receivers[0]?.ways[0];

  test('behaviour: a network is known by either of its names, the other is derived', () => {
    const byV1 = wayOf('network: base');
    const byCaip = wayOf('network: eip155:8453');
    expect(byV1).toMatchObject({ networkName: 'base', way: { network: 'eip155:8453', terms: { name: 'USD Coin' } } });
    expect(byCaip).toEqual({ ...byV1, networkName: 'eip155:8453' });
  });

  test.each([
    'asset: USDC',
    'asset: "0x833589FCD6EDB6E08F4C7C32D4F71B54BDA02913"',
    'asset: "0x833589fcd6edb6e08f4c7c32d4f71b54bda02913"\n    asset_name: USD Coin\n    asset_version: "2"\n    asset_decimals: 6',
  ])('behaviour: a token may be written by its symbol, its address in any case of letters, or whole: %s', (lines) => {
    const named = wayOf(`network: base\n    ${lines}`);
    expect(named).toMatchObject({ way: { decimals: 6, terms: { name: 'USD Coin', version: '2' } }, testnet: false });
    expect(named?.way.asset.toLowerCase()).toBe('0x833589fcd6edb6e08f4c7c32d4f71b54bda02913');
  });

  test('behaviour: any EVM chain and token may be written, when the token is written whole', () => {
    const token = `network: eip155:31337\n    asset: "${ADDRESS}"\n    asset_decimals: 18\n    asset_name: T\n    asset_version: "1"\n    rpc_url: none`;
    expect(wayOf(token)).toMatchObject({ way: { network: 'eip155:31337', decimals: 18 } });
  });

  const TOKEN = `asset: "${ADDRESS}"\n    asset_decimals: 6\n    asset_name: T\n    asset_version: "1"`;
  test.each([
    ['base', ['https://mainnet.base.org', 'https://base-rpc.publicnode.com']],
    ['base-sepolia', ['https://sepolia.base.org', 'https://base-sepolia-rpc.publicnode.com']],
    ['polygon', ['https://polygon.drpc.org', 'https://polygon-bor-rpc.publicnode.com']],
    ['polygon-amoy', ['https://polygon-amoy.drpc.org']],
    ['avalanche', ['https://api.avax.network/ext/bc/C/rpc']],
    ['avalanche-fuji', ['https://api.avax-test.network/ext/bc/C/rpc']],
    ['eip155:137', ['https://polygon.drpc.org', 'https://polygon-bor-rpc.publicnode.com']],
    ['sei', ['https://evm-rpc.sei-apis.com/']],
    ['arbitrum', ['https://arb1.arbitrum.io/rpc']],
  ])('behaviour: without rpc_url the public endpoints of %s are asked', (network, urls) => {
    expect(wayOf(`network: ${network}\n    ${TOKEN}`)).toMatchObject({
      rpcUrls: urls,
      rpcPublic: true,
    });
  });

  test.each([
    ['none', [], false],
    ['https://node.example/key', ['https://node.example/key'], false],
    ['[https://a.example, https://b.example]', ['https://a.example', 'https://b.example'], false],
    ['[https://a.example, https://mainnet.base.org]', ['https://a.example', 'https://mainnet.base.org'], false],
    ['https://mainnet.base.org', ['https://mainnet.base.org'], true],
  ])('behaviour: rpc_url may be written as %s', (written, rpcUrls, rpcPublic) => {
    expect(wayOf(`network: base\n    rpc_url: ${written}`)).toMatchObject({
      rpcUrls,
      rpcPublic,
    });
  });

  test('behaviour: one network, asset and address may serve two receivers', () => {
    expect(
      configOf(`registry: {}\nreceivers:${RECEIVER}${RECEIVER.replace('default', 'second')}\n`).receivers,
    ).toHaveLength(2);
  });

  test('behaviour: a facilitator has room for as many payments as may be taken at a time', () => {
    const { proxy, receivers } = configOf(
      `${receiver('network: base')}proxy: { listen: 127.0.0.1:8402, upstream: http://127.0.0.1:3000 }\n`,
    );
    const { calls, waiting } = receivers[0]?.ways[0]?.facilitators[0]?.limits ?? { calls: 0, waiting: 0 };
    expect(calls + waiting).toBeGreaterThanOrEqual(proxy?.limits.payments ?? Infinity);
  });

  test('behaviour: a facilitator is a URL or an object', () => {
    const text = receiver('network: base').replace(
      '["http://127.0.0.1:1/x/"]',
      '["http://127.0.0.1:1/x/", { url: "https://f", headers: { Authorization: "Bearer x" }, timeouts: { verify: 1s }, limits: { calls: 2 } }]',
    );
    expect(configOf(text).receivers[0]?.ways[0]?.facilitators).toEqual([
      {
        url: 'http://127.0.0.1:1/x',
        headers: {},
        timeouts: { verifyMs: 5000, settleMs: 15_000 },
        limits: { calls: 512, waiting: 512 },
      },
      {
        url: 'https://f',
        headers: { Authorization: 'Bearer x' },
        timeouts: { verifyMs: 1000, settleMs: 15_000 },
        limits: { calls: 2, waiting: 512 },
      },
    ]);
  });
});

test('behaviour: traces that are switched on and left alone go to this machine, one request in twenty', () => {
  const on = `proxy: { upstream: "http://127.0.0.1:3000" }\nregistry: {}\notlp:`;
  expect(configOf(`${on}\n`).otlp).toEqual({
    ...{ endpoint: 'http://127.0.0.1:4318/v1/traces', headers: {}, serviceName: 'tollgate' },
    ...{ sample: 0.05, attributes: {} },
  });
  const endpointOf = (endpoint: string) => configOf(`${on} { endpoint: "${endpoint}" }\n`).otlp?.endpoint;
  expect(endpointOf('https://collector.example.com/')).toBe('https://collector.example.com/v1/traces');
  expect(endpointOf('https://collector.example.com/otlp/traces')).toBe('https://collector.example.com/otlp/traces');
});
