// The sentences of the `selling` section: every mistake is told with what would be right, and nothing of it is ignored.
import { afterAll, expect, test } from 'vitest';
import { readConfig } from '../../src/config/load.ts';
import { NETWORKS } from '../../src/gateway/rails/rails.ts';
import { temporaryFolder } from '../support/process.ts';

const files = temporaryFolder();
afterAll(files.remove);
const NOW = Date.UTC(2026, 0, 1);
const wrongKeys = files.write('wrong.txt', `${'ab'.repeat(32)} one\nnot a digest\n`);

function problemsOf(selling: string, proxy = '', routes = ''): readonly string[] {
  const text = `proxy: { upstream: "http://127.0.0.1:3000"${proxy} }\nregistry: {}\nselling: { ${selling} }\n${routes}`;
  const read = readConfig(text, {
    file: 't.yaml',
    path: `${files.folder}/t.yaml`,
    env: {},
    networks: NETWORKS,
    now: NOW,
  });
  return read.ok ? [] : read.problems.map(({ path, message }) => `${path}: ${message}`);
}

const metered = (meter: string): string =>
  `plans: [{ id: a, single: false, meter: ${meter}, passes: [{ id: c, amount: "1", credit: "1" }] }]`;

test.each([
  ['plans: [{ id: a, observe: {} }]', 'selling.plans[0].observe.until: is missing; write a time in UTC'],
  ['plans: [{ id: a, observe: { until: tomorrow } }]', 'selling.plans[0].observe.until: is not a time in UTC'],
  ['plans: [{ id: a, observe: { until: "2026-04-04T00:00:01Z" } }]', 'observe.until: is more than 92 days ahead'],
  ['plans: [{ id: a }, { id: a }]', 'selling.plans[1].id: is the id of an earlier plan'],
  [
    'plans: [{ id: a, customers: [parners] }], customers: [{ id: partners, networks: [10.0.0.0/8] }]',
    'did you mean partners?',
  ],
  ['plans: [{ id: a, free: { requests: 1, window: week } }]', 'free.window: is not known; write hour, day or month'],
  ['plans: [{ id: a, free: { requests: 1, window: day, by: customer } }]', 'proxy.customer_header_trusted is not true'],
  ['plans: [{ id: a, metre: {} }]', 'selling.plans[0].metre: is not known here'],
  ['customers: [{ id: a }]', 'says nothing by which a customer is known; write exactly one of'],
  ['customers: [{ id: a, header: X-Key, networks: [10.0.0.0/8] }]', 'header: stands beside `networks`'],
  ['customers: [{ id: a, ask: { statuses: [401] } }]', 'customers[0].header: is missing'],
  ['customers: [{ id: a, header: X-Key, ask: { statuses: [404] } }]', 'is not 401 or 403'],
  ['customers: [{ id: a, header: Host, ask: { statuses: [401] } }]', 'is a header with a meaning of its own'],
  [
    'customers: [{ id: a, header: X-Key, ask: { statuses: [401] }, quota: { requests: 1, window: day } }]',
    'quota: stands beside `ask`',
  ],
  [
    'customers: [{ id: a, header: X-Key, keys_file: nowhere.txt }]',
    'keys_file: names a file that cannot be read (ENOENT)',
  ],
  [
    `customers: [{ id: a, header: X-Key, keys_file: ${wrongKeys} }]`,
    'names a file that is not right: line 2 is not usable',
  ],
  ['customers: [{ id: a, header: X-Key, jwt: { issuer: i, audience: a } }]', 'says nothing to check tokens with'],
  [
    'customers: [{ id: a, header: X-Key, jwt: { issuer: i, audience: a, jwks_url: "http://id.example.com/k" } }]',
    'jwks_url: is not an https URL, or http to a loopback address',
  ],
  [metered('{}'), 'meter.from: is missing; write header, trailer or usage'],
  [metered('{ from: body }'), 'meter.from: is not known; write header, trailer or usage'],
  [metered('{ from: header, missing: min }'), 'meter.missing: is not known; write max or zero'],
  [metered('{ from: usage, usage: a.b }'), 'meter.unit: is missing; write the price of one unit'],
  [metered('{ from: usage, unit: "0.01" }'), 'meter.usage: is missing; write names of members'],
  [metered('{ from: usage, unit: "0", usage: a.b }'), 'meter.unit: '],
  [metered('{ from: usage, unit: 0.01, usage: a.b }'), 'meter.unit: quote the amount'],
  [metered('{ from: usage, unit: "0.01", usage: a..b }'), 'meter.usage: is not names of members'],
  [metered('{ from: usage, unit: "0.01", usage: "" }'), 'meter.usage: is not names of members'],
  [metered('{ from: usage, unit: "0.01", usage: a, tail: 0 }'), 'meter.tail: is not a whole number from 1 to 1048576'],
  [metered('{ from: usage, unit: "0.01", usage: a, tail: 1048577 }'), 'meter.tail: is not a whole number from 1'],
  [metered('{ from: header, unitt: "1" }'), 'meter.unitt: is not known here'],
  [
    'plans: [{ id: a, single: false, meter: { from: header }, passes: [{ id: u, amount: "1", uses: 5 }] }]',
    'plans[0].meter: takes what a request costs of a pass by credit, and the plan has none',
  ],
  ['plans: [{ id: a, meter: { from: header } }]', 'meter: takes what a request costs of a pass by credit'],
  [
    'plans: [{ id: a, meter: { from: header }, passes: [{ id: c, amount: "1", credit: "1" }] }]',
    'plans[0].single: is true, but a payment of a single request is exact and pays no metered one; write false',
  ],
  [
    'plans: [{ id: a, single: true, meter: { from: header }, passes: [{ id: c, amount: "1", credit: "1" }] }]',
    'plans[0].single: is true, but a payment of a single request is exact',
  ],
])('refuses: %s', (selling, sentence) => {
  expect(problemsOf(selling).join('\n')).toContain(sentence);
});

test.each([
  '{ from: header }',
  '{ from: trailer, missing: zero }',
  '{ from: usage, unit: "0.000002", usage: usage.total_tokens, tail: 1048576 }',
  '{ from: header, missing: max, unit: "0.000002", usage: usage.total_tokens, tail: 16384 }',
])('behaviour: a plan that sells credit may have the meter %s', (meter) => {
  expect(problemsOf(metered(meter))).toEqual([]);
});

test('refuses: a route of the file that costs more than any credit of its metered plan', () => {
  const routes =
    'routes: [{ route_pattern: /a, amount: "1.00", plan_id: a }, { route_pattern: /b, amount: "1.01", plan_id: a }]';
  expect(problemsOf(metered('{ from: header }'), '', routes)).toEqual([
    expect.stringContaining('routes[1].amount: is more than any credit that its plan sells'),
  ]);
});

test('refuses: a route of the file that names no plan of the file', () => {
  const routes = 'routes: [{ route_pattern: /a, amount: "1", plan_id: trail }]';
  expect(problemsOf('plans: [{ id: trial }]', '', routes)).toEqual([
    'routes[0].plan_id: names no plan; did you mean trial?',
  ]);
});

test('behaviour: a dry run whose end is past is taken, and charges', () => {
  expect(problemsOf('plans: [{ id: a, observe: { until: "2025-12-01T00:00:00Z" } }]')).toEqual([]);
});
