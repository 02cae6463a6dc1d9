// The sentences of `price` of a plan: every mistake is told with what would be right, and nothing of it is ignored.
import { expect, test } from 'vitest';
import { readConfig } from '../../src/config/load.ts';
import { NETWORKS } from '../../src/gateway/rails/rails.ts';
import { INBOUND, INBOUND_PREFIXES } from '../../src/gateway/header-rules.ts';

const RECEIVER = `receivers: [{ id: default, network: base-sepolia, pay_to_address: "0x${'1'.repeat(40)}", facilitators: ["https://f.example"] }]`;

function read(price: string, routes = ''): ReturnType<typeof readConfig> {
  const text = [
    'proxy: { upstream: "http://127.0.0.1:3000" }',
    'registry: {}',
    RECEIVER,
    `selling: { plans: [{ id: p, price: ${price} }] }`,
    routes,
  ].join('\n');
  return readConfig(text, { file: 't.yaml', path: '/t/t.yaml', env: {}, networks: NETWORKS, now: 0 });
}

function problemsOf(price: string, routes = ''): readonly string[] {
  const config = read(price, routes);
  return config.ok ? [] : config.problems.map(({ path, message }) => `${path}: ${message}`);
}

const RULE = 'when: { query.size: [large] }';
const UNITS = 'of: query.n, amount: "0.01", max: 10';
const SERVICE = 'url: "http://127.0.0.1:9/p", min: "0.01", max: "5"';

test.each([
  ['{}', 'price: says nothing; write rules, units or service'],
  ['{ rules: [] }', 'price: says nothing'],
  ['{ rule: [] }', 'price.rule: is not known here; did you mean rules?'],
  [`{ rules: [{ ${RULE} }] }`, 'rules[0]: has no price; write amount or times'],
  [`{ rules: [{ ${RULE}, amount: "1", times: "2" }] }`, 'rules[0]: has amount and times; take one of them out'],
  [`{ rules: [{ ${RULE}, amount: 0.5 }] }`, 'rules[0].amount: is a number: quote it; write a decimal'],
  [`{ rules: [{ ${RULE}, amount: "0" }] }`, 'rules[0].amount: is not a decimal'],
  [`{ rules: [{ ${RULE}, times: "-1" }] }`, 'rules[0].times: is not a decimal'],
  ['{ rules: [{ amount: "1" }] }', 'rules[0].when: is missing'],
  ['{ rules: [{ when: {}, amount: "1" }] }', 'rules[0].when: is empty; write an input with its values'],
  ['{ rules: [{ when: { query.size: [] }, amount: "1" }] }', 'is empty; write the values'],
  ['{ rules: [{ when: { size: [a] }, amount: "1" }] }', 'is not query.NAME, header.NAME, param.NAME or length'],
  ['{ rules: [{ when: { "query.a[b]": [a] }, amount: "1" }] }', 'is not query.NAME'],
  [
    '{ rules: [{ when: { query.size: ["l*e"] }, amount: "1" }] }',
    'is not a value of up to 256 bytes, with a * at its end',
  ],
  ['{ rules: [{ when: { query.size: [2] }, amount: "1" }] }', 'is a number: quote it'],
  [
    '{ rules: [{ when: { header.cookie: [a] }, amount: "1" }] }',
    'is a header that your API does not get as the client sends it',
  ],
  [
    '{ rules: [{ when: { query.max_n: [a], query.maxN: [a] }, amount: "1" }] }',
    'which some APIs read as one; name one of them',
  ],
  [`{ rules: [${`{ ${RULE}, amount: "1" }, `.repeat(33)}] }`, 'price.rules: holds more than 32 rules'],
  [`{ units: { ${UNITS} } }`, 'units.missing: is missing; write what a request without the number counts as'],
  [`{ units: { ${UNITS}, missing: 11 } }`, 'units.missing: is more than max'],
  [`{ units: { ${UNITS}, missing: 1, free: 10 } }`, 'units.free: is not less than max'],
  ['{ units: { of: query.n, amount: "0.01", missing: 1 } }', 'units.max: is missing; write a whole number'],
  [`{ units: { ${UNITS}, missing: 1, per: 0 } }`, 'units.per: is not a whole number from 1'],
  ['{ units: { of: query.*, amount: "0.01", missing: 1, max: 10 } }', 'units.of: is not query.NAME'],
  [
    '{ service: { url: "http://price.example/p", min: "1", max: "2" } }',
    'service.url: is not an https URL, or http to a loopback or private address',
  ],
  ['{ service: { url: "http://127.0.0.1:9/p", max: "2" } }', 'service.min: is missing'],
  [
    '{ service: { url: "http://127.0.0.1:9/p", min: "3", max: "2" } }',
    'service.max: is less than min; write at least that',
  ],
  [
    '{ service: { url: "http://127.0.0.1:9/p", min: "0.100000000000000001", max: "0.1" } }',
    'service.max: is less than min; write at least that',
  ],
  [
    '{ service: { url: "http://127.0.0.1:9/p", min: "1", max: "2.0000001" } }',
    'service.max: cannot be paid: has more digits after the point than the 6 decimals',
  ],
  [`{ service: { ${SERVICE}, timeout: 31s } }`, 'service.timeout: is out of range; write 10ms to 30s'],
  [`{ service: { ${SERVICE}, cache: 25h } }`, 'service.cache: is out of range'],
  [`{ service: { ${SERVICE}, inputs: [body.n] } }`, 'service.inputs[0]: is not query.NAME'],
  [`{ service: { ${SERVICE}, inputs: [header.authorization] } }`, 'or that holds a secret; name another'],
  [`{ service: { ${SERVICE}, headers: { "a b": c } } }`, 'is not a header name'],
  [`{ service: { ${SERVICE}, when_away: free } }`, 'service.when_away: is not known; write refuse or route'],
  [
    `{ rules: [{ ${RULE}, amount: "0.0000001" }] }`,
    'rules[0].amount: cannot be paid: has more digits after the point than the 6 decimals',
  ],
  ['{ units: { of: length, amount: "0.0000001", max: 10 } }', 'units.amount: cannot be paid'],
])('refuses: the price %s', (price, sentence) => {
  expect(problemsOf(price).join('\n')).toContain(sentence);
});

test('refuses: what a price would make of a route of the file, if no asset can hold it', () => {
  const routes = 'routes: [{ route_pattern: /a, amount: "0.001", plan_id: p }]';
  expect(problemsOf(`{ rules: [{ ${RULE}, times: "0.0001" }] }`, routes).join()).toContain(
    'rules[0].times: cannot be paid',
  );
  const high = problemsOf('{ units: { of: query.n, amount: "999", missing: 0, max: 1000000000000 } }', routes);
  expect(high.join()).toContain('its highest price has more than 12 digits before the point');
});

test('behaviour: a price is read with everything that the contract shows', () => {
  const price = `{ rules: [{ when: { query.size: [large, "xl*"] }, amount: "0.50" }, { when: { header.X-Model: [opus] }, times: "3" }], units: { of: query.n, amount: "0.01", free: 0, max: 1000, missing: 1 }, service: { url: "http://127.0.0.1:9000/price", min: "0.01", max: "5.00", timeout: 500ms, cache: 30s, inputs: [query.*, header.x-model], headers: {}, when_away: refuse } }`;
  const config = read(price);
  expect(config).toMatchObject({ ok: true });
  expect(config.ok && config.config.selling.plans.byId.get('p')?.price).toEqual({
    rules: [
      {
        when: [{ input: { kind: 'query', name: 'size' }, exact: new Set(['large']), beginnings: ['xl'] }],
        base: { kind: 'amount', amount: { units: 5n, scale: 1 } },
      },
      {
        when: [{ input: { kind: 'header', name: 'x-model' }, exact: new Set(['opus']), beginnings: [] }],
        base: { kind: 'times', factor: { units: 3n, scale: 0 } },
      },
    ],
    units: {
      of: { kind: 'query', name: 'n' },
      ...{ amount: { units: 1n, scale: 2 }, per: 1, free: 0, max: 1000, missing: 1 },
    },
    service: {
      ...{ url: 'http://127.0.0.1:9000/price', min: { units: 1n, scale: 2 }, max: { units: 5n, scale: 0 } },
      ...{ timeoutMs: 500, cacheMs: 30_000, headers: {}, whenAway: 'refuse' },
      inputs: [
        { kind: 'all', of: 'query' },
        { kind: 'header', name: 'x-model' },
      ],
    },
  });
});

test('attack: no header that reaches the API otherwise than it came can make a price', () => {
  const changed = [
    ...[...INBOUND].flatMap(([name, rule]) => (rule === 'pass' ? [] : [name])),
    ...INBOUND_PREFIXES.map(([prefix]) => `${prefix}a`),
    ...['x-original-url', 'x-rewrite-url', 'path-info', 'script-name', 'x-envoy-original-path', 'x-uri-override'],
  ];
  const taken = changed.filter(
    (name) => problemsOf(`{ rules: [{ when: { "header.${name}": [a] }, amount: "1" }] }`).length === 0,
  );
  expect(taken).toEqual([]);
});
