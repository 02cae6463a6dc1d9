// The dashboard's endpoints over HTTP: every status, merge patches, conditions, pages.
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { RouteWire } from '../../../src/domain/routing/route.ts';
import { RECEIVER, receiverOf } from '../../cases/receivers.ts';
import { LIST, SETTINGS, startRegistry, type Kit } from '../kit.ts';

let kit: Kit;
let unique = 0;
beforeAll(async () => {
  kit = await startRegistry({
    settings: {
      receivers: new Map([
        ['default', RECEIVER],
        ['eur', receiverOf({ id: 'eur', currencies: ['EUR'], decimals: 2 })],
      ]),
    },
  });
});
beforeEach(() => void unique++);
afterAll(() => kit.close());

const body = (rest: object = {}): object => ({
  route_pattern: `/d${unique}/*`,
  method: 'GET',
  amount: '0.10',
  ...rest,
});
const create = async (rest: object = {}): Promise<RouteWire> => {
  const reply = await kit.dashboard('POST', LIST, { body: body(rest) });
  expect(reply.status).toBe(201);
  return reply.json;
};

const FIELDS = [
  ...[
    'id',
    'route_pattern',
    'method',
    'amount',
    'currency',
    'name',
    'description',
    'status',
    'allow_anonymous',
    'source',
  ],
  ...['receiver_config_id', 'plan_id', 'created_at', 'updated_at'],
];

describe('POST', () => {
  test('behaviour: POST makes a route with all twelve fields, its defaults, a Location and an ETag', async () => {
    const reply = await kit.dashboard('POST', LIST, {
      body: body({ method: 'get', amount: '0.100', currency: 'usdc' }),
    });
    expect(reply.status).toBe(201);
    expect(Object.keys(reply.json)).toEqual(FIELDS);
    expect(reply.json).toMatchObject({
      ...{
        route_pattern: `/d${unique}/*`,
        method: 'GET',
        amount: '0.100',
        currency: 'USDC',
        name: null,
        description: null,
      },
      ...{ status: 'active', allow_anonymous: true, source: 'dashboard', receiver_config_id: null },
    });
    expect(reply.headers['location']).toBe(`${LIST}/${reply.json.id}`);
    const got = await kit.dashboard('GET', reply.headers['location'] ?? '');
    expect(got.json).toEqual(reply.json);
    expect(got.headers['etag']).toBe(reply.headers['etag']);
    expect(reply.json.created_at).toMatch(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/);
  });

  test('refuses: a duplicate and another spelling of it, each 409 with existing_id', async () => {
    const { id } = await create({ route_pattern: `/Dup${unique}/:a` });
    for (const spelling of [`/Dup${unique}/:a`, `/dup${unique}/{b}`, `/DUP${unique}/:c/`]) {
      const reply = await kit.dashboard('POST', LIST, { body: body({ route_pattern: spelling }) });
      expect([spelling, reply.status, reply.json.code, reply.json.existing_id]).toEqual([
        spelling,
        409,
        'duplicate',
        id,
      ]);
    }
    await create({ route_pattern: `/Dup${unique}/:a`, method: 'POST' });
  });

  const invalid: [object, string][] = [
    [{ route_pattern: 'no-slash' }, '/route_pattern'],
    [{ route_pattern: '/a/**' }, '/route_pattern'],
    [{ route_pattern: `/${'x'.repeat(512)}` }, '/route_pattern'],
    [{ method: 'GET /' }, '/method'],
    [{ method: '' }, '/method'],
    [{ method: 'GETT' }, '/method'],
    [{ method: 'PURGE' }, '/method'],
    [{ method: 'TRACE' }, '/method'],
    [{ amount: 0.1 }, '/amount'],
    [{ amount: '0' }, '/amount'],
    [{ amount: '0.000' }, '/amount'],
    [{ amount: '-1' }, '/amount'],
    [{ amount: '1e3' }, '/amount'],
    [{ amount: ' 1' }, '/amount'],
    [{ amount: '01' }, '/amount'],
    [{ amount: '1.' }, '/amount'],
    [{ amount: '١' }, '/amount'],
    [{ amount: '1234567890123' }, '/amount'],
    [{ amount: undefined }, '/amount'],
    [{ currency: 'US' }, '/currency'],
    [{ currency: 'U$D' }, '/currency'],
    [{ currency: null }, '/currency'],
    [{ name: 'n'.repeat(201) }, '/name'],
    [{ description: 'd'.repeat(1001) }, '/description'],
    [{ status: 'deleted' }, '/status'],
    [{ allow_anonymous: 'yes' }, '/allow_anonymous'],
    [{ source: 'a b' }, '/source'],
    [{ receiver_config_id: 'x'.repeat(65) }, '/receiver_config_id'],
    [{ id: '00000000-0000-4000-8000-000000000000' }, '/id'],
    [{ created_at: '2026-01-01T00:00:00Z' }, '/created_at'],
    [{ 'odd/na~me': 1 }, '/odd~1na~0me'],
  ];
  test.each(invalid)('refuses: a new route with %o, with 422 at %s', async (rest, pointer) => {
    const reply = await kit.dashboard('POST', LIST, { body: body(rest) });
    expect([reply.status, reply.json.code, reply.json.type]).toEqual([422, 'invalid', '/problems/invalid']);
    expect(reply.headers['content-type']).toBe('application/problem+json');
    expect(reply.json.errors.map((error) => error.pointer)).toEqual([pointer]);
    expect(reply.json.errors[0]?.detail).toMatch(/^.+[.?]$/);
    expect(reply.json.detail).toContain(reply.json.errors[0]?.detail);
  });

  test('behaviour: a new route with every field at its limit is taken', async () => {
    const edge = {
      route_pattern: `/${String(unique).padEnd(511, 'x')}`,
      name: 'n'.repeat(200),
      description: 'd'.repeat(1000),
    };
    await create({
      ...edge,
      amount: '999999999999.999999',
      source: 's'.repeat(64),
      receiver_config_id: 'r'.repeat(64),
    });
    await create({ amount: '0.000000000000000001', receiver_config_id: 'unknown.receiver' });
  });

  test('behaviour: all wrong fields of a new route are told at once', async () => {
    const reply = await kit.dashboard('POST', LIST, { body: { method: 1, amount: 2, extra: 3 } });
    expect(reply.json.errors.map((error) => error.pointer).sort()).toEqual([
      '/amount',
      '/extra',
      '/method',
      '/route_pattern',
    ]);
  });

  test('refuses: a price that the receiver known here cannot take, and takes one of a receiver that is not', async () => {
    const wrong: [object, string[]][] = [
      [{ currency: 'EUR' }, ['/currency']],
      [{ amount: '0.0000001' }, ['/amount']],
      [{ receiver_config_id: 'eur', amount: '0.001' }, ['/currency', '/amount']],
      [{ receiver_config_id: 'default', currency: 'EUR' }, ['/currency']],
    ];
    for (const [rest, pointers] of wrong) {
      const reply = await kit.dashboard('POST', LIST, { body: body(rest) });
      expect([reply.status, reply.json.errors?.map((error) => error.pointer)]).toEqual([422, pointers]);
    }
    await create({ receiver_config_id: 'eur', currency: 'EUR', amount: '0.10' });
    await create({
      route_pattern: `/elsewhere${unique}`,
      receiver_config_id: 'elsewhere',
      currency: 'EUR',
      amount: '0.0000001',
    });
    await create({ route_pattern: `/zeros${unique}`, amount: '0.10000000' });
  });
});

describe('GET one', () => {
  test('refuses: an unknown id and one that is no UUID are 404', async () => {
    for (const id of ['00000000-0000-4000-8000-00000000dead', 'x', '__proto__', '%00', '..', 'a'.repeat(5000)]) {
      for (const method of ['GET', 'DELETE', 'PATCH']) {
        const reply = await kit.dashboard(method, `${LIST}/${id}`, method === 'PATCH' ? { body: {} } : {});
        expect([id.slice(0, 40), method, reply.status, reply.json.code]).toEqual([
          id.slice(0, 40),
          method,
          404,
          'not_found',
        ]);
      }
    }
  });

  test('behaviour: an id may be written in upper case', async () => {
    const { id } = await create();
    expect((await kit.dashboard('GET', `${LIST}/${id.toUpperCase()}`)).json.id).toBe(id);
  });

  test('behaviour: If-None-Match is 304 for the route’s tag, weak or in a list, and for *, and 200 for others', async () => {
    const made = await create();
    const { headers } = await kit.dashboard('GET', `${LIST}/${made.id}`);
    const etag = headers['etag'] ?? '';
    expect(etag).toMatch(/^"[A-Za-z0-9_-]+"$/);
    const cases: [string, number][] = [
      [etag, 304],
      [`W/${etag}`, 304],
      [`"a", ${etag}, "b"`, 304],
      ['*', 304],
      ['"other"', 200],
      [etag.slice(1, -1), 200],
      ['', 200],
    ];
    for (const [value, status] of cases) {
      const reply = await kit.dashboard('GET', `${LIST}/${made.id}`, { headers: { 'If-None-Match': value } });
      expect([value, reply.status]).toEqual([value, status]);
      if (status === 304) expect([reply.body.length, reply.headers['etag']]).toEqual([0, etag]);
    }
  });
});

describe('PATCH', () => {
  test('behaviour: PATCH changes what it names, nothing else, and answers a new ETag', async () => {
    const made = await create({ name: 'Reports', description: 'All of them' });
    const before = await kit.dashboard('GET', `${LIST}/${made.id}`);
    kit.clock.advance(5);
    const changes = {
      amount: '0.20',
      status: 'paused',
      name: null,
      allow_anonymous: false,
      receiver_config_id: 'elsewhere',
    };
    const reply = await kit.dashboard('PATCH', `${LIST}/${made.id}`, { body: changes });
    expect(reply.status).toBe(200);
    expect(reply.json).toEqual({ ...made, ...changes, updated_at: reply.json.updated_at });
    expect(reply.json.updated_at > made.updated_at).toBe(true);
    expect(reply.headers['etag']).not.toBe(before.headers['etag']);
    expect((await kit.dashboard('GET', `${LIST}/${made.id}`)).json).toEqual(reply.json);
  });

  test('behaviour: a PATCH of {} or of what changes nothing keeps ETag, updated_at and revision', async () => {
    const made = await create();
    const { revision } = kit.registry.routeSet();
    kit.clock.advance(1000);
    for (const body of [{}, { amount: '0.10', method: 'get', status: 'active', name: null }]) {
      const reply = await kit.dashboard('PATCH', `${LIST}/${made.id}`, { body });
      expect([reply.status, reply.json]).toEqual([200, made]);
    }
    expect(kit.registry.routeSet().revision).toBe(revision);
  });

  test('behaviour: a PATCH is taken as JSON and as a merge patch', async () => {
    const made = await create();
    for (const [type, status] of [
      ['application/merge-patch+json', 200],
      ['application/json; charset=utf-8', 200],
      ['Application/JSON;Charset="UTF-8"', 200],
      ['application/json-patch+json', 415],
      ['application/json; charset=latin1', 415],
      ['text/plain', 415],
      ['', 415],
    ] as const) {
      const reply = await kit.dashboard('PATCH', `${LIST}/${made.id}`, { body: {}, headers: { 'Content-Type': type } });
      expect([type, reply.status]).toEqual([type, status]);
      if (status === 415) expect(reply.headers['accept-patch']).toBe('application/json, application/merge-patch+json');
    }
  });

  test.each(['id', 'source', 'created_at', 'updated_at', 'unknown', 'constructor', '__proto__'])(
    'refuses: a PATCH of %s, with 422, and nothing changes',
    async (member) => {
      const made = await create();
      const reply = await kit.dashboard('PATCH', `${LIST}/${made.id}`, { body: `{"amount":"5","${member}":null}` });
      expect([reply.status, reply.json.errors]).toMatchObject([422, [{ pointer: `/${member}` }]]);
      expect((await kit.dashboard('GET', `${LIST}/${made.id}`)).json).toEqual(made);
    },
  );

  test.each(['route_pattern', 'method', 'amount', 'currency', 'status', 'allow_anonymous'])(
    'refuses: a PATCH of null for %s, which is not nullable',
    async (member) => {
      const made = await create();
      const reply = await kit.dashboard('PATCH', `${LIST}/${made.id}`, { body: { [member]: null } });
      expect([reply.status, reply.json.errors[0]?.pointer]).toEqual([422, `/${member}`]);
    },
  );

  test('refuses: a method that no proxy lets in is 422 with the one that is probably meant', async () => {
    const made = await create();
    const reply = await kit.dashboard('PATCH', `${LIST}/${made.id}`, { body: { method: 'gett' } });
    expect([reply.status, reply.json.errors]).toEqual([
      422,
      [{ pointer: '/method', detail: expect.stringMatching(/^GETT is answered with 501, .+; did you mean GET\?$/) }],
    ]);
  });

  test('behaviour: a patched pattern is read anew; one that another route has is 409; the route’s own in another spelling is fine', async () => {
    const made = await create();
    const other = await create({ route_pattern: `/other${unique}` });
    const taken = await kit.dashboard('PATCH', `${LIST}/${made.id}`, { body: { route_pattern: `/OTHER${unique}/` } });
    expect([taken.status, taken.json.existing_id]).toEqual([409, other.id]);
    expect((await kit.dashboard('PATCH', `${LIST}/${made.id}`, { body: { route_pattern: '/a//b' } })).status).toBe(422);
    const respelled = await kit.dashboard('PATCH', `${LIST}/${made.id}`, { body: { route_pattern: `/D${unique}/*` } });
    expect([respelled.status, respelled.json.route_pattern]).toEqual([200, `/D${unique}/*`]);
    const freed = await kit.dashboard('PATCH', `${LIST}/${other.id}`, { body: { route_pattern: `/moved${unique}` } });
    expect(freed.status).toBe(200);
    await create({ route_pattern: `/other${unique}` });
  });

  test('refuses: a price the receiver cannot take; pausing works whatever the configuration says now', async () => {
    const made = await create({ receiver_config_id: 'eur', currency: 'EUR', amount: '1.00' });
    expect(
      (await kit.dashboard('PATCH', `${LIST}/${made.id}`, { body: { amount: '0.001' } })).json.errors[0]?.pointer,
    ).toBe('/amount');
    expect(
      (await kit.dashboard('PATCH', `${LIST}/${made.id}`, { body: { receiver_config_id: null } })).json.errors[0]
        ?.pointer,
    ).toBe('/currency');
    const one = await startRegistry({ settings: { receivers: new Map() } });
    try {
      const { json } = await one.dashboard('POST', LIST, { body: body({ currency: 'EUR' }) });
      one.registry.reconfigure({ ...SETTINGS, receivers: new Map([['default', RECEIVER]]) });
      expect((await one.dashboard('PATCH', `${LIST}/${json.id}`, { body: { status: 'paused' } })).status).toBe(200);
      expect((await one.dashboard('PATCH', `${LIST}/${json.id}`, { body: { amount: '3' } })).status).toBe(422);
    } finally {
      await one.close();
    }
  });

  test('behaviour: a PATCH with If-Match loses nobody else’s update', async () => {
    const made = await create();
    const url = `${LIST}/${made.id}`;
    const etag = (await kit.dashboard('GET', url)).headers['etag'] ?? '';
    const patch = (amount: string, headers: Record<string, string>): Promise<number> =>
      kit.dashboard('PATCH', url, { body: { amount }, headers }).then(({ status }) => status);
    expect(await patch('1', { 'If-Match': '"other"' })).toBe(412);
    expect(await patch('1', { 'If-Match': `W/${etag}` })).toBe(412);
    expect(await patch('1', { 'If-Match': 'unreadable' })).toBe(412);
    expect(await patch('1', { 'If-None-Match': etag })).toBe(412);
    expect(await patch('1', { 'If-None-Match': '*' })).toBe(412);
    expect((await kit.dashboard('GET', url)).json).toEqual(made);
    expect(await patch('2', { 'If-Match': `"other", ${etag}` })).toBe(200);
    expect(await patch('3', { 'If-Match': etag })).toBe(412);
    expect(await patch('3', { 'If-Match': '*' })).toBe(200);
    expect(await kit.dashboard('DELETE', url, { headers: { 'If-Match': etag } }).then(({ json }) => json.code)).toBe(
      'precondition_failed',
    );
    expect((await kit.dashboard('DELETE', url, { headers: { 'If-Match': '*' } })).status).toBe(204);
    expect((await kit.dashboard('DELETE', url, { headers: { 'If-Match': '*' } })).status).toBe(404);
  });
});

describe('DELETE', () => {
  test('behaviour: DELETE is 204 without a body, then 404, and the pattern is free again', async () => {
    const made = await create();
    const reply = await kit.dashboard('DELETE', `${LIST}/${made.id}`);
    expect([reply.status, reply.body.length, reply.headers['content-length']]).toEqual([204, 0, undefined]);
    expect((await kit.dashboard('DELETE', `${LIST}/${made.id}`)).status).toBe(404);
    expect((await create()).id).not.toBe(made.id);
  });
});
