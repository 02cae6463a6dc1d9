// The document against what the registry really sends: a small JSON Schema reader of our own, so that it is not the
// library that made the document that also judges it. Keywords it does not know fail the test.
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { CLAIM_ROWS, PROGRESS_ROWS, type ChargeRow } from '../../../src/domain/payment/charge-fields.ts';
import { chargeWire, claimToWire } from '../../../src/domain/payment/charge-wire.ts';
import { PROBLEMS } from '../../../src/domain/problem.ts';
import { API } from '../../../src/registry/api.ts';
import { viewCharge } from '../../../src/registry/charges/charge-view.ts';
import { EXAMPLE_CHARGES, EXAMPLE_NETWORKS } from '../../../src/registry/charges/charge-examples.ts';
import { describeApi } from '../../../src/registry/http/openapi-document.ts';
import { passIdOf, writePassInSale } from '../../../src/domain/selling/pass.ts';
import { claimOf, hash32, proofOf } from '../../cases/claims.ts';
import { DESK, linkCode, signIn } from '../desk/signed-in.ts';
import {
  EVENTS,
  FEED,
  LEDGER_KEY,
  LIST,
  MATCH,
  REGISTER,
  SDK_KEY,
  startRegistry,
  token,
  type Ask,
  type Kit,
  type Reply,
} from '../kit.ts';

type Schema = {
  $ref?: string;
  anyOf?: Schema[];
  type?: string | string[];
  properties?: Record<string, Schema>;
  required?: string[];
  items?: Schema;
  additionalProperties?: boolean | Schema;
  pattern?: string;
  enum?: unknown[];
  const?: unknown;
  default?: unknown;
  minimum?: number;
  maximum?: number;
  maxLength?: number;
};
type Operation = {
  operationId: string;
  parameters: { in: string; name: string }[];
  security: unknown;
  responses: Record<string, { headers?: object; content?: Record<string, { schema: Schema }> }>;
};
type Document = {
  openapi: string;
  info: object;
  paths: Record<string, Record<string, Operation>>;
  components: { schemas: Record<string, Schema> };
};

const document: Document = JSON.parse(JSON.stringify(describeApi(API, '1.2.3')));
const describedAt = (origin: string): unknown => JSON.parse(JSON.stringify(describeApi(API, '1.2.3', origin)));
const operationOf = ({ method, path }: { method: string; path: string }): Operation =>
  document.paths[path]![method.toLowerCase()]!;

test('behaviour: a client may leave out what has a default: no `default`, which generators take for required', () => {
  const texts = JSON.stringify(document);
  expect(/"default":(?!\{"description":"What is answered where it leads)/.exec(texts)?.[0]).toBeUndefined();
  for (const name of ['RouteCreation', 'RouteRegistration'])
    expect(document.components.schemas[name]?.required?.toSorted()).toEqual(['amount', 'method', 'route_pattern']);
  expect(texts).toContain('Left out: \\"USD\\".');
});

test('behaviour: every operation has a tag that is described', () => {
  const { tags } = document as unknown as { tags: { name: string }[] };
  const used = API.map((row) => ({ ...row, tags: (operationOf(row) as unknown as { tags: string[] }).tags }));
  const untold = used.filter((each) => each.tags.length !== 1 || each.tags[0] === 'about');
  const meant = new Set(['getHealth', 'getDocument', 'getVersionedDocument']);
  expect(
    untold
      .filter(({ id }) => !meant.has(id))
      .map(({ path }) => `${path} lacks a tag: add its prefix to TAGS of src/registry/http/openapi-document.ts`),
  ).toEqual([]);
  expect(new Set(used.flatMap((each) => each.tags))).toEqual(new Set(tags.map(({ name }) => name)));
});

test('behaviour: every header that an operation takes or answers is described', () => {
  const named = API.flatMap((row) => [
    ...(row.requestHeaders ?? []),
    ...Object.values(row.responses).flatMap(({ headers }) => headers ?? []),
  ]);
  const undescribed = new Set(named.filter((name) => describedHeader(name) === undefined));
  expect(
    [...undescribed].map((name) => `${name} lacks a sentence in HEADERS of src/registry/http/openapi-document.ts`),
  ).toEqual([]);
});

/** What the document says of a header; undefined if it says nothing. */
function describedHeader(name: string): string | undefined {
  for (const row of API) {
    const { parameters, responses } = operationOf(row) as unknown as {
      parameters: { in: string; name: string; description?: string }[];
      responses: Record<string, { headers?: Record<string, { description?: string }> }>;
    };
    const taken = parameters.find((each) => each.in === 'header' && each.name === name)?.description;
    const answered = Object.values(responses).find(({ headers }) => headers?.[name])?.headers?.[name]?.description;
    const said = taken ?? answered;
    if (said !== undefined) return said;
  }
  return undefined;
}

test('behaviour: every operation says in a sentence what it is for beyond its summary', () => {
  const silent = API.filter((row) => {
    const { description = '', summary } = operationOf(row) as unknown as { description?: string; summary: string };
    return !description.endsWith('.') || description === summary;
  });
  expect(silent.map(({ id }) => `${id} lacks a description in EXPLAINED of src/registry/http/examples.ts`)).toEqual([]);
});

type Shown = {
  readonly schema: Schema;
  readonly example?: unknown;
  readonly examples?: Record<string, { $ref: string }>;
};

/** Every body and answer of an operation that has content, with its examples. */
function shownBy(row: (typeof API)[number]): { what: string; schema: Schema; examples: unknown[] }[] {
  const operation = operationOf(row) as unknown as {
    requestBody?: { content: Record<string, Shown> };
    responses: Record<string, { content?: Record<string, Shown> }>;
  };
  const { examples: known } = document.components as unknown as { examples: Record<string, { value: unknown }> };
  const contents: [string, Record<string, Shown>][] = [
    ['body', operation.requestBody?.content ?? {}],
    ...Object.entries(operation.responses).map(([status, { content = {} }]): [string, Record<string, Shown>] => [
      `answer ${status}`,
      content,
    ]),
  ];
  return contents.flatMap(([what, content]) =>
    Object.values(content).map(({ schema, example, examples = {} }) => ({
      ...{ what: `${row.id}, ${what}`, schema },
      examples: [
        ...(example === undefined ? [] : [example]),
        ...Object.values(examples).map(({ $ref }) => known[$ref.replace('#/components/examples/', '')]?.value),
      ],
    })),
  );
}

test('behaviour: every body and every answer has an example, which its schema takes', () => {
  const all = API.flatMap(shownBy);
  expect(
    all
      .filter(({ examples }) => examples.length === 0)
      .map(({ what }) => `${what} lacks an example: EXPLAINED of src/registry/http/examples.ts`),
  ).toEqual([]);
  const wrong = all.flatMap(({ what, schema, examples }) =>
    examples.flatMap((example) => findWrong(schema, example).map((each) => `${what}: its example ${each}`)),
  );
  expect(wrong).toEqual([]);
  for (const row of API) {
    const { requestBody } = operationOf(row) as unknown as { requestBody?: { content: Record<string, Shown> } };
    expect(Object.keys(requestBody?.content ?? {})).toEqual(row.mediaTypes);
    for (const { example } of Object.values(requestBody?.content ?? {}))
      expect(row.body.safeParse(example).error, row.id).toBeUndefined();
    for (const [status, { schema, mediaType }] of Object.entries(row.responses)) {
      const shown: Partial<Shown> | undefined =
        operationOf(row).responses[status]?.content?.[mediaType ?? 'application/json'];
      if (schema) expect(schema.safeParse(shown?.example).error, row.id).toBeUndefined();
    }
  }
});

test('behaviour: the example of a problem is one that its status has, in a sentence of its own', () => {
  const examples = Object.entries((document.components as unknown as { examples: object }).examples) as [
    keyof typeof PROBLEMS,
    { value: { status: number; code: string; detail: string } },
  ][];
  expect(examples.length).toBeGreaterThan(15);
  for (const [code, { value }] of examples) expect([value.code, value.status]).toEqual([code, PROBLEMS[code].status]);
  expect(
    examples
      .filter(([code, { value }]) => value.detail === `${PROBLEMS[code].title}.`)
      .map(([code]) => `${code} lacks a sentence in src/registry/http/problem-examples.ts`),
  ).toEqual([]);
});

test('behaviour: what clients send and what the registry answers have no schema in common', () => {
  /** Every component that `value` leads to. */
  const componentsOf = (value: unknown, seen = new Set<string>()): Set<string> => {
    for (const [, name = ''] of JSON.stringify(value).matchAll(/"#\/components\/schemas\/(\w+)"/g)) {
      if (seen.has(name)) continue;
      seen.add(name);
      componentsOf(document.components.schemas[name], seen);
    }
    return seen;
  };
  const operations = Object.values(document.paths).flatMap((path) => Object.values(path));
  const sent = componentsOf(operations.map((each) => (each as unknown as { requestBody?: object }).requestBody ?? {}));
  const responses = componentsOf(operations.map(({ responses }) => responses));
  expect(sent.size).toBeGreaterThan(4);
  expect([...sent].filter((name) => responses.has(name))).toEqual([]);
  expect([...sent, ...responses].toSorted()).toEqual(Object.keys(document.components.schemas).toSorted());
});

test('behaviour: examples of charges come from the rows of its fields, so that a new field is in all of them', () => {
  const shownIn = (path: string): Record<string, unknown> =>
    JSON.parse(JSON.stringify(operationOf({ method: 'GET', path }).responses['200']?.content?.['application/json']))
      .example as Record<string, unknown>;
  const claimed = JSON.parse(JSON.stringify(operationOf({ method: 'POST', path: '/v1/ledger/claims' }))).requestBody
    .content['application/json'].example as Record<string, unknown>;
  const view = shownIn('/v1/billing/charges/{id}');
  const [held] = shownIn('/v1/ledger/claims')['data'] as Record<string, unknown>[];
  const at = (where: Record<string, unknown> | undefined, { part, wire }: ChargeRow): unknown =>
    part === undefined ? where?.[wire] : (where?.[part] as Record<string, unknown> | undefined)?.[wire];
  for (const row of CLAIM_ROWS) {
    const { example, isNullable, member, shown, part } = row;
    const value = typeof example === 'bigint' ? String(example) : example;
    expect([part, member, value === undefined]).toEqual([part, member, isNullable && value === undefined]);
    expect([part, member, at(claimed, row)]).toEqual([part, member, value ?? null]);
    expect([part, member, at(held, row)]).toEqual([part, member, value ?? null]);
    if (shown !== undefined) expect([shown, view[shown]]).toEqual([shown, value ?? null]);
  }
  expect(Object.keys(held ?? {}).toSorted()).toEqual(Object.keys(chargeWire.shape).toSorted());
  expect(Object.keys(view)).toEqual(Object.keys(viewCharge(EXAMPLE_CHARGES.delivered, EXAMPLE_NETWORKS)));
  expect([view['status'], view['charged'], view['transaction']]).toEqual([
    'delivered',
    true,
    PROGRESS_ROWS.find(({ wire }) => wire === 'transaction')?.example,
  ]);
});

let kit: Kit;
const answered = new Set<string>();
beforeAll(async () => {
  kit = await startRegistry({ limits: { routes: 3 }, settings: { desk: DESK } });
});
afterAll(() => kit.close());

const KNOWN = new Set([
  ...[
    '$ref',
    'anyOf',
    'type',
    'properties',
    'required',
    'items',
    'additionalProperties',
    'pattern',
    'enum',
    'const',
    'minimum',
  ],
  ...[
    'maximum',
    'maxLength',
    'description',
    'examples',
    'default',
    'format',
    'propertyNames',
    'minLength',
    'maxItems',
    'minItems',
    'contentEncoding',
  ],
]);

/** Where `value` is not what `schema` says. Members that an object's schema does not name are wrong too. */
function findWrong(schema: Schema, value: unknown, at = ''): string[] {
  const wrong = (what: string): string[] => [`${at || '/'}: ${what}`];
  const unknown = Object.keys(schema).filter((name) => !KNOWN.has(name));
  if (unknown.length > 0) throw new Error(`unknown keywords ${unknown.join(', ')}`);
  if (Object.keys(schema).length === 0) return [];
  const { anyOf, type, minimum = -Infinity, maximum = Infinity, maxLength = Infinity } = schema;
  if (schema.$ref !== undefined) {
    const target = document.components.schemas[schema.$ref.replace('#/components/schemas/', '')];
    return target ? findWrong(target, value, at) : wrong(`${schema.$ref} does not lead anywhere`);
  }
  if (anyOf) return anyOf.some((each) => findWrong(each, value, at).length === 0) ? [] : wrong('fits none of anyOf');
  const kind =
    value === null ? 'null' : Array.isArray(value) ? 'array' : Number.isInteger(value) ? 'integer' : typeof value;
  const kinds = kind === 'integer' ? ['integer', 'number'] : [kind];
  if (type !== undefined && ![type].flat().some((each) => kinds.includes(each)))
    return wrong(`is ${kind}, not ${String(type)}`);
  if (schema.enum && !schema.enum.includes(value)) return wrong('is not listed');
  if ('const' in schema && schema.const !== value) return wrong('is not the constant');
  if (typeof value === 'string' && schema.pattern !== undefined && !new RegExp(schema.pattern).test(value))
    return wrong(`does not match ${schema.pattern}`);
  if (typeof value === 'string' && value.length > maxLength) return wrong('is too long');
  if (typeof value === 'number' && (value < minimum || value > maximum)) return wrong('is out of range');
  if (Array.isArray(value))
    return value.flatMap((each, index) => findWrong(schema.items ?? {}, each, `${at}/${index}`));
  if (typeof value !== 'object' || value === null) return [];
  const missing = (schema.required ?? []).filter((name) => !(name in value)).map((name) => `${at}/${name}: is missing`);
  const members = Object.entries(value).flatMap(([name, each]) => {
    const member = schema.properties?.[name] ?? schema.additionalProperties;
    return typeof member === 'object'
      ? findWrong(member, each, `${at}/${name}`)
      : [`${at}/${name}: is not in the document`];
  });
  return [...missing, ...members];
}

/** Asks, holds the answer against the document, and remembers which responses were seen. */
async function check(row: { method: string; path: string }, reply: Reply): Promise<Reply> {
  const described = operationOf(row).responses[reply.status];
  if (!described) throw new Error(`${row.method} ${row.path} does not say ${reply.status}`);
  answered.add(`${row.method} ${row.path} ${reply.status}`);
  for (const name of Object.keys(described.headers ?? {}))
    expect(Object.keys(reply.headers)).toContain(name.toLowerCase());
  if (!described.content) {
    expect(reply.body.length).toBe(0);
    return reply;
  }
  const mediaType = (reply.headers['content-type'] ?? '').split(';')[0] ?? '';
  const content = described.content[mediaType];
  if (!content) throw new Error(`${row.method} ${row.path} does not say ${mediaType} for ${reply.status}`);
  expect(findWrong(content.schema, mediaType.endsWith('json') ? reply.json : reply.body.toString())).toEqual([]);
  return reply;
}

describe('live responses are what the document says', () => {
  const good = {
    route_pattern: '/a/*',
    method: 'GET',
    amount: '0.10',
    name: 'A',
    receiver_config_id: 'r',
    status: 'paused',
  };
  const row = (method: string, path: string): { method: string; path: string } => ({ method, path });
  const ONE = `${LIST}/{id}`;
  const CHANGES = `${ONE}/changes`;
  const dashboard = async (method: string, path: string, url: string, ask: Ask = {}): Promise<Reply> =>
    check(row(method, path), await kit.dashboard(method, url, ask));
  const sdk = async (method: string, path: string, url: string, ask: Ask = {}): Promise<Reply> =>
    check(row(method, path), await kit.sdk(method, url, ask));

  test('behaviour: answers of the dashboard endpoints are what the document says', async () => {
    const { json, headers } = await dashboard('POST', LIST, LIST, { body: good });
    const url = `${LIST}/${json.id}`;
    for (const [body, type] of [
      [good, ''],
      ['{', ''],
      [{ x: 1 }, ''],
      ['x'.repeat(70_000), ''],
      [good, 'text/plain'],
    ] as const) {
      const ask = type === '' ? { body } : { body, headers: { 'Content-Type': type } };
      await dashboard('POST', LIST, LIST, ask);
      await dashboard('PATCH', ONE, url, ask);
    }
    await dashboard('GET', LIST, LIST);
    await dashboard('GET', LIST, `${LIST}?limit=0`);
    await dashboard('GET', ONE, url);
    await dashboard('GET', ONE, url, { headers: { 'If-None-Match': headers['etag'] ?? '' } });
    await dashboard('GET', ONE, `${LIST}/x`);
    await dashboard('PATCH', ONE, url, { body: { amount: '2' } });
    await dashboard('PATCH', ONE, url, { body: {}, headers: { 'If-Match': '"x"' } });
    await dashboard('PATCH', ONE, `${LIST}/x`, { body: {} });
    const other = await kit.dashboard('POST', LIST, { body: { ...good, route_pattern: '/b' } });
    await dashboard('PATCH', ONE, url, { body: { route_pattern: '/b' } });
    for (const query of ['', '?limit=0']) await dashboard('GET', CHANGES, `${url}/changes${query}`);
    await dashboard('GET', CHANGES, `${LIST}/x/changes`);
    await dashboard('DELETE', ONE, url, { headers: { 'If-Match': '"x"' } });
    await dashboard('DELETE', ONE, `${LIST}/${other.json.id}`);
    await dashboard('DELETE', ONE, `${LIST}/${other.json.id}`);
  });

  test('behaviour: answers of the SDK endpoints are what the document says', async () => {
    for (const body of [
      { ...good, route_pattern: '/s/:a' },
      { ...good, route_pattern: '/s/:a' },
      { ...good, route_pattern: '/S/:a' },
      '{',
      {},
      'x'.repeat(70_000),
    ]) {
      await sdk('POST', REGISTER, REGISTER, { body });
    }
    await sdk('POST', REGISTER, REGISTER, { body: good, headers: { 'Content-Type': 'text/plain' } });
    const { headers } = await sdk('GET', FEED, FEED);
    await sdk('GET', FEED, FEED, { headers: { 'If-None-Match': headers['etag'] ?? '' } });
    for (const path of ['/s/1', '/a', '/none', '/a/../b']) await sdk('GET', MATCH, `${MATCH}?method=GET&path=${path}`);
    await sdk('GET', MATCH, MATCH);
    answered.add(`GET ${EVENTS} 200`);
    answered.add(`GET ${EVENTS} 429`);
  });

  test('behaviour: answers of the ledger, and what people see of it, are what the document says', async () => {
    const [CLAIMS, CLAIM] = ['/v1/ledger/claims', '/v1/ledger/claims/{id}'];
    const ledger = async (method: string, path: string, url: string, ask: Ask = {}): Promise<Reply> =>
      check(row(method, path), await kit.ask(method, url, { auth: LEDGER_KEY, ...ask }));
    const claim = claimOf(1);
    const body = { ...claimToWire(claim), owner: 'one', lease_ms: 60_000, max_unsettled_per_payer: 1 };
    const other = {
      ...claimToWire(claimOf(2, { payer: 1 })),
      owner: 'one',
      lease_ms: 60_000,
      max_unsettled_per_payer: 1,
    };
    for (const each of [
      body,
      body,
      other,
      { ...other, charge_id: claim.id },
      { ...body, payment: { ...body.payment, unique: '0x1' } },
      '{',
      'x'.repeat(300_000),
    ])
      await ledger('POST', CLAIMS, CLAIMS, { body: each });
    await ledger('POST', CLAIMS, CLAIMS, { body, headers: { 'Content-Type': 'text/plain' } });
    const url = `${CLAIMS}/${claim.id}`;
    const answer = {
      status: 200,
      headers: ['Content-Type', 'text/plain'],
      body: Buffer.from('hello').toString('base64'),
    };
    const proof = {
      transaction: '0xAB',
      log_index: 3,
      amount: claim.amount.toString(),
      payer: claim.payment.payer,
    };
    for (const event of [
      { kind: 'delivered', partial: false },
      { kind: 'settle_started', via: 'first', lease_ms: 1000 },
      { kind: 'settled', proof, lease_ms: 1000 },
      { kind: 'answer_kept', answer, head_sent: true },
      { kind: 'nonsense' },
    ])
      await ledger('PATCH', CLAIM, url, { body: { event, owner: 'one' } });
    await ledger('PATCH', CLAIM, `${CLAIMS}/x`, { body: {} });
    await ledger('PATCH', CLAIM, url, { body: 'x'.repeat(300_000) });
    await ledger('PATCH', CLAIM, url, { body: {}, headers: { 'Content-Type': 'text/plain' } });
    const RENEWALS = '/v1/ledger/renewals';
    const ids = [claim.id, 'chg_unknown'];
    for (const each of [
      { owner: 'one', ids, lease_ms: 1000 },
      { owner: 'one', ids: ['x'], lease_ms: 0 },
      'x'.repeat(300_000),
    ])
      await ledger('POST', RENEWALS, RENEWALS, { body: each });
    await ledger('POST', RENEWALS, RENEWALS, { body: {}, headers: { 'Content-Type': 'text/plain' } });
    const COUNTERS = '/v1/ledger/counters';
    const counted = { kind: 'give_back', scope: 's', window_start: 0, window_end: 1, identity: 'i', change_id: 'c' };
    for (const each of [{ changes: [counted] }, { changes: [] }, 'x'.repeat(300_000)])
      await ledger('POST', COUNTERS, COUNTERS, { body: each });
    await ledger('POST', COUNTERS, COUNTERS, { body: {}, headers: { 'Content-Type': 'text/plain' } });
    const [DRAWS, PASSES, REVOKED] = ['/v1/ledger/passes/{id}/draws', '/v1/ledger/passes', '/v1/ledger/revocations'];
    const draw = { kind: 'take', use_id: 'use_1', owner: 'one/1', amount: null };
    for (const each of [{ changes: [draw] }, { changes: [] }, 'x'.repeat(300_000)])
      await ledger('POST', DRAWS, `${PASSES}/pass_unknown/draws`, { body: each });
    await ledger('POST', DRAWS, `${PASSES}/x/draws`, { body: { changes: [draw] } });
    await ledger('POST', DRAWS, `${PASSES}/pass_unknown/draws`, {
      body: {},
      headers: { 'Content-Type': 'text/plain' },
    });
    for (const query of [`payer=${claim.payment.payer}`, '']) await ledger('GET', PASSES, `${PASSES}?${query}`);
    for (const query of ['after=0&limit=10', 'after=x']) await ledger('GET', REVOKED, `${REVOKED}?${query}`);
    for (const query of ['due=true', `id=${claim.id}`, '']) await ledger('GET', CLAIMS, `${CLAIMS}?${query}`);
    const [CHARGES, CHARGE, SUMMARY] = ['/v1/billing/charges', '/v1/billing/charges/{id}', '/v1/billing/summary'];
    await dashboard('GET', CHARGES, CHARGES);
    await dashboard('GET', CHARGE, `${CHARGES}/${claim.id}`);
    await dashboard('GET', CHARGE, `${CHARGES}/chg_unknown`);
    await dashboard('GET', `${CHARGE}/history`, `${CHARGES}/${claim.id}/history`);
    await dashboard('GET', `${CHARGE}/history`, `${CHARGES}/chg_unknown/history`);
    const CSV = `${CHARGES}.csv`;
    await dashboard('GET', CSV, `${CSV}?from=2026-01-01&to=2026-02-01`);
    // It needs readers that take nothing: charge-export.test.ts has them.
    answered.add(`GET ${CSV} 429`);
    const [OWED, REFUNDS] = ['/v1/billing/owed.csv', `${CHARGE}/refunds`];
    await dashboard('GET', OWED, OWED);
    answered.add(`GET ${OWED} 429`);
    const refund = { transaction: hash32(9), amount: '0.04', reason: 'too late', unproven: true };
    for (const each of [
      refund,
      refund,
      { ...refund, amount: '0.05' },
      { ...refund, transaction: hash32(8), amount: '1' },
      { transaction: hash32(8) },
      { ...refund, amonut: '1' },
      'x'.repeat(300_000),
    ])
      await dashboard('POST', REFUNDS, `${CHARGES}/${claim.id}/refunds`, { body: each });
    await dashboard('POST', REFUNDS, `${CHARGES}/chg_unknown/refunds`, { body: refund });
    await dashboard('POST', REFUNDS, `${CHARGES}/${claim.id}/refunds`, {
      body: {},
      headers: { 'Content-Type': 'text/plain' },
    });
    await dashboard('GET', CHARGE, `${CHARGES}/${claim.id}`);
    // Streams: charge-events.test.ts has them.
    for (const status of [200, 429]) answered.add(`GET ${CHARGES}/events ${status}`);
    await dashboard('GET', SUMMARY, SUMMARY);
    await dashboard('GET', SUMMARY, `${SUMMARY}?group_by=network`);
    const TOTALS = '/v1/ledger/totals';
    for (const each of [
      { source: 'sidecar-1', seq: 1, rows: [] },
      { source: 'sidecar-1', seq: 0 },
      'x'.repeat(300_000),
    ])
      await ledger('POST', TOTALS, TOTALS, { body: each });
    await ledger('POST', TOTALS, TOTALS, { body: {}, headers: { 'Content-Type': 'text/plain' } });
    for (const path of ['overview', 'series', 'top-routes', 'plans'].map((name) => `/v1/billing/${name}`)) {
      await dashboard('GET', path, path);
      await dashboard('GET', path, `${path}?from=x`);
    }
    const [SOLD, PASS] = ['/v1/billing/passes', '/v1/billing/passes/{id}'];
    const sale = {
      planId: 'p',
      termsId: 'ten',
      kind: 'uses',
      uses: 10,
      validMs: 1e6,
      scope: 'plan',
      first: '1',
    } as const;
    const buying = claimOf(3, { pass: writePassInSale(sale), settle: 'before_response' });
    await kit.ledger.claim(buying, { owner: 'one', leaseMs: 60_000, maxUnsettledPerPayer: 1, settleVia: 'first' });
    const settled = { kind: 'settled', proof: proofOf(buying), leaseMs: 60_000 } as const;
    await kit.ledger.advance(buying.id, settled, { owner: 'one' });
    for (const query of ['', '?live=perhaps']) await dashboard('GET', SOLD, SOLD + query);
    for (const id of [passIdOf(buying.id), 'pass_unknown']) {
      await dashboard('GET', PASS, `${SOLD}/${id}`);
      await dashboard('POST', `${PASS}/revoke`, `${SOLD}/${id}/revoke`);
    }
    const WHY = '/v1/billing/why/{id}';
    for (const id of [claim.id, 'nobody-knows']) await dashboard('GET', WHY, `/v1/billing/why/${id}`);
  });

  test('behaviour: answers to what becomes of a request are what the document says', async () => {
    const TRY = '/v1/billing/try';
    for (const query of ['?path=/none&method=GET', '?path=/a/../b&method=GET', ''])
      await dashboard('GET', TRY, TRY + query);
  });

  test('behaviour: answers to what a pattern would do are what the document says', async () => {
    const PATTERN = '/v1/billing/pattern';
    for (const query of ['?route_pattern=/a/*&method=GET', '?route_pattern=/*/a', ''])
      await dashboard('GET', PATTERN, PATTERN + query);
  });

  test('behaviour: answers about API keys are what the document says', async () => {
    const [KEYS, KEY] = ['/v1/api-keys', '/v1/api-keys/{id}'];
    const body = { name: 'a', scopes: ['sdk'] };
    const made = await dashboard('POST', KEYS, KEYS, { body });
    for (const each of ['{', {}, 'x'.repeat(70_000)]) await dashboard('POST', KEYS, KEYS, { body: each });
    await dashboard('POST', KEYS, KEYS, { body, headers: { 'Content-Type': 'text/plain' } });
    await dashboard('GET', KEYS, KEYS);
    await dashboard('DELETE', KEY, `${KEYS}/${made.json.id}`);
    await dashboard('DELETE', KEY, `${KEYS}/x`);
    // It needs 200 keys: keys.test.ts makes them.
    answered.add(`POST ${KEYS} 409`);
  });

  test('behaviour: answers about what needs somebody are what the document says', async () => {
    await dashboard('GET', '/v1/billing/attention', '/v1/billing/attention');
  });

  test('behaviour: answers about the audit log are what the document says', async () => {
    await dashboard('POST', '/v1/api-keys', '/v1/api-keys', { body: { name: 'audited', scopes: ['sdk'] } });
    for (const query of ['', '?limit=1', '?kind=nothing']) await dashboard('GET', '/v1/audit', `/v1/audit${query}`);
  });

  test('behaviour: answers about receivers and sidecars are what the document says', async () => {
    const [RECEIVERS, CHECK, SIDECARS] = ['/v1/receivers', '/v1/receivers/{id}/check', '/v1/sidecars'];
    await dashboard('GET', RECEIVERS, RECEIVERS);
    for (const id of ['default', 'default', 'nobody']) await dashboard('POST', CHECK, `${RECEIVERS}/${id}/check`);
    await dashboard('GET', SIDECARS, SIDECARS);
  });

  test('behaviour: answers about sessions, their downloads and links to the desk are what the document says', async () => {
    const [SESSION, DOWNLOADS, LINKS] = ['/desk/session', '/desk/downloads', '/v1/desk-links'];
    const plain = { 'Content-Type': 'text/plain' };
    const open = (body: unknown, headers: Ask['headers'] = {}): Promise<Reply> =>
      kit.ask('POST', SESSION, { body, headers });
    await check(row('POST', SESSION), await open({ code: await linkCode(kit, 'admin') }));
    for (const body of [{ code: 'wrong' }, '{', {}, 'x'.repeat(20_000)])
      await check(row('POST', SESSION), await open(body));
    await check(row('POST', SESSION), await open({}, plain));
    await check(row('POST', SESSION), await open({}, { Host: 'evil.example' }));
    for (let tries = 0; tries < 10; tries += 1) await open({ code: 'wrong' });
    await check(row('POST', SESSION), await open({ code: 'wrong' }));
    kit.clock.advance(60_000);
    const headers = await signIn(kit);
    await check(row('GET', SESSION), await kit.ask('GET', SESSION, { headers }));
    for (const body of [{ path: '/v1/billing/charges.csv' }, {}, '{', 'x'.repeat(20_000)])
      await check(row('POST', DOWNLOADS), await kit.ask('POST', DOWNLOADS, { headers, body }));
    await check(
      row('POST', DOWNLOADS),
      await kit.ask('POST', DOWNLOADS, { headers: { ...headers, ...plain }, body: {} }),
    );
    await check(row('DELETE', SESSION), await kit.ask('DELETE', SESSION, { headers }));
    for (const body of [{}, { role: 'owner' }, '{', 'x'.repeat(20_000)])
      await dashboard('POST', LINKS, LINKS, { body });
    await dashboard('POST', LINKS, LINKS, { body: {}, headers: plain });
    // A thousand downloads and a hundred links at a time: desk/attacks.test.ts.
    for (const path of [DOWNLOADS, LINKS]) answered.add(`POST ${path} 429`);
    for (const path of ['/desk/oidc/start', '/desk/oidc/callback']) {
      await check(row('GET', path), await kit.ask('GET', path));
      await check(row('GET', path), await kit.ask('GET', path, { headers: { Host: 'evil.example' } }));
      await check(row('GET', path), await kit.ask('GET', `${path}?zzz=1&state=${'x'.repeat(9000)}`));
      // It needs a provider: desk/oidc has one.
      answered.add(`GET ${path} 303`);
    }
  });

  test('behaviour: answers about webhooks are what the document says', async () => {
    const [HOOKS, HOOK] = ['/v1/webhooks', '/v1/webhooks/{id}'];
    await dashboard('GET', HOOKS, HOOKS);
    for (const id of ['books', 'nobody']) {
      for (const action of ['test', 'enable']) await dashboard('POST', `${HOOK}/${action}`, `${HOOKS}/${id}/${action}`);
      await dashboard('GET', `${HOOK}/deliveries`, `${HOOKS}/${id}/deliveries`);
    }
    await dashboard('GET', `${HOOK}/deliveries`, `${HOOKS}/books/deliveries?status=lost`);
    const sent = await dashboard('POST', `${HOOK}/test`, `${HOOKS}/books/test`);
    const { event_id: event } = JSON.parse(sent.body.toString()) as { event_id: string };
    const RETRY = `${HOOK}/deliveries/{event_id}/retry`;
    for (const id of [event, `evt_${'0'.repeat(32)}`])
      await dashboard('POST', RETRY, `${HOOKS}/books/deliveries/${id}/retry`);
  });

  test('behaviour: answers of the endpoints for anyone are what the document says', async () => {
    await check(row('GET', '/v1/health'), await kit.ask('GET', '/v1/health'));
    for (const path of ['/v1/health', '/openapi.json', '/v1/openapi.json'])
      await check(row('GET', path), await kit.ask('GET', `${path}?x=1`));
    for (const path of ['/openapi.json', '/v1/openapi.json']) {
      const reply = await kit.ask('GET', path);
      expect(reply.json).toEqual(describedAt(`http://127.0.0.1:${kit.port}`));
      answered.add(`GET ${path} 200`);
    }
  });

  test('behaviour: refusals of every endpoint are what the document says', async () => {
    const session = await signIn(kit);
    for (const { method, path, auth, mediaTypes } of API.filter((each) => each.auth.kind !== 'none')) {
      const url = path.replace('{id}', 'x');
      const body = mediaTypes.length > 0 ? {} : undefined;
      const good = auth.kind === 'api_key' ? LEDGER_KEY : await token();
      await check({ method, path }, await kit.ask(method, url, { body }));
      await check(
        { method, path },
        await kit.ask(method, url, { body, headers: { Authorization: [`Bearer ${good}`, 'Bearer x'] } }),
      );
      const other =
        auth.kind === 'api_key'
          ? { auth: auth.scope === 'sdk' ? LEDGER_KEY : SDK_KEY }
          : { headers: { ...session, 'Sec-Fetch-Site': 'cross-site' } };
      await check({ method, path }, await kit.ask(method, url, { ...other, body }));
    }
  });

  test('behaviour: the answer to an API key that adds too much is what the document says', async () => {
    const one = await startRegistry({ limits: { registrationsPerMinute: 1 } });
    for (const route_pattern of ['/x', '/y'])
      await check(row('POST', REGISTER), await one.sdk('POST', REGISTER, { body: { ...good, route_pattern } }));
    await one.close();
  });

  test('behaviour: answers while the store is away are what the document says', async () => {
    const one = await startRegistry();
    one.store.close();
    await check(row('GET', LIST), await one.dashboard('GET', LIST));
    await one.close();
  });

  test('behaviour: every answer in the document was seen, but 500 and 503', () => {
    const unseen = API.flatMap((row) =>
      Object.keys(operationOf(row).responses)
        .filter((status) => !/^(?:50[03]|default)$/.test(status))
        .map((status) => `${row.method} ${row.path} ${status}`),
    ).filter((each) => !answered.has(each));
    expect(
      unseen.map(
        (each) => `${each} was not seen: ask for it in test/registry/http/openapi-document.test.ts by \`check\``,
      ),
    ).toEqual([]);
  });
});

describe('the origin of the registry', () => {
  const serversAt = async (one: Kit, headers: Record<string, string> = {}): Promise<unknown[]> => {
    const { json } = await one.ask('GET', '/openapi.json', { headers });
    return (json as unknown as { servers: { url: string }[] }).servers.map(({ url }) => url);
  };

  test('behaviour: the document names as its server the origin under which this registry is asked', async () => {
    expect(await serversAt(kit)).toEqual([`http://127.0.0.1:${kit.port}`]);
    // Relative to where the document is: a linter has something to say about localhost.
    for (const host of [`localhost:${kit.port}`, `LOCALHOST:${kit.port}`])
      expect(await serversAt(kit, { Host: host })).toEqual(['/']);
  });

  test('attack: a document that is asked for under a made-up host names no server of that host', async () => {
    for (const host of ['evil.example', `evil.example:${kit.port}`, 'localhost:1', '"></script>'])
      expect(await serversAt(kit, { Host: host })).toEqual(['/']);
  });

  test('behaviour: with a public URL the document names that one, whatever the request says', async () => {
    const publicUrl = 'https://desk.example.com';
    const one = await startRegistry({ settings: { desk: { ...DESK, publicUrl } } });
    for (const host of [`127.0.0.1:${one.port}`, 'desk.example.com', 'evil.example'])
      expect(await serversAt(one, { Host: host })).toEqual([publicUrl]);
    await one.close();
  });
});

describe('the document', () => {
  test('behaviour: the document is OpenAPI 3.1 with a unique id, a summary and security for every row of the table', () => {
    expect(document.openapi).toBe('3.1.0');
    expect(document.info).toMatchObject({ version: '1.2.3' });
    expect(new Set(API.map((row) => operationOf(row).operationId)).size).toBe(API.length);
    for (const row of API) {
      const operation = operationOf(row);
      const names = operation.parameters.filter((each) => each.in === 'path').map((each) => each.name);
      expect(names).toEqual([...row.path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name));
      expect(names).toEqual(Object.keys(row.params.shape));
      expect(operation.security).toEqual(securityOf(row.auth));
    }
  });

  test('behaviour: every reference of the document leads somewhere, and nothing speaks of another dialect', () => {
    const text = JSON.stringify(document);
    for (const [, name] of text.matchAll(/"\$ref":"#\/components\/schemas\/(\w+)"/g))
      expect(Object.keys(document.components.schemas)).toContain(name);
    expect(text).not.toMatch(/"\$schema"|"\$id"|"\$defs"|undefined/);
    expect(document.components.schemas['Problem']?.properties?.['code']?.enum).toEqual(Object.keys(PROBLEMS));
  });

  test('behaviour: members of a body that have a default are optional and tell it; a PATCH requires nothing', () => {
    const { RouteRegistration, RoutePatch, RouteCreation, Route } = document.components.schemas;
    expect(RouteRegistration?.required).toEqual(['route_pattern', 'method', 'amount']);
    expect(RouteRegistration?.properties).toMatchObject({
      currency: { description: expect.stringContaining('Left out: "USD".') as string },
      source: { description: 'Left out: "sdk".' },
      name: { description: 'Left out: null.' },
    });
    expect(RouteCreation?.properties).toMatchObject({ source: { description: 'Left out: "dashboard".' } });
    expect([RouteRegistration?.additionalProperties, RouteCreation?.additionalProperties]).toEqual([undefined, false]);
    expect([RoutePatch?.required, RoutePatch?.additionalProperties]).toEqual([undefined, false]);
    expect(Object.keys(RoutePatch?.properties ?? {})).not.toContain('source');
    expect(Route?.required?.length).toBe(14);
    const limit = operationOf({ method: 'GET', path: LIST }).parameters.find(({ name }) => name === 'limit');
    expect(limit).toMatchObject({
      required: false,
      schema: { type: 'integer', minimum: 1, maximum: 200, description: 'Left out: 50.' },
    });
  });
});

function securityOf(auth: (typeof API)[number]['auth']): object[] {
  if (auth.kind === 'none') return [];
  if (auth.kind === 'api_key') return [{ api_key: [auth.scope] }];
  if (auth.kind === 'session') return [{ desk: [] }];
  return auth.alone ? [{ jwt: [] }] : [{ jwt: [] }, { desk: [] }];
}
