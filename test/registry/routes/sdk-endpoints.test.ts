// What SDKs call: registering at every boot, the whole set with its ETag, and match, which must say what the proxy does.
import { gunzipSync } from 'node:zlib';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { RouteSet } from '../../../src/domain/routing/snapshot.ts';
import { createFeed } from '../../../src/registry/stream/feed.ts';
import { MATCHES } from '../../cases/matches.ts';
import { route } from '../../cases/routes.ts';
import {
  declared,
  FEED,
  LIST,
  MATCH,
  REGISTER,
  SDK_KEY,
  startRegistry,
  type Kit,
  type Reply,
  type Wire,
} from '../kit.ts';

let kit: Kit;
beforeEach(async () => {
  kit = await startRegistry();
});
afterEach(() => kit.close());

const rule = (text: string, rest: object = {}): object => {
  const [method, route_pattern] = text.split(' ');
  return { method, route_pattern, amount: '0.10', ...rest };
};
const register = async (text: string, rest: object = {}): Promise<Wire> =>
  (await kit.sdk('POST', REGISTER, { body: rule(text, rest) })).json;

describe('register', () => {
  test('behaviour: a registration is 201 with defaults and Location the first time, then 200 with the stored route', async () => {
    const first = await kit.sdk('POST', REGISTER, { body: rule('get /reports/{id}', { name: 'R' }) });
    expect(first.status).toBe(201);
    expect(first.json).toMatchObject({
      ...{
        route_pattern: '/reports/{id}',
        method: 'GET',
        amount: '0.10',
        currency: 'USD',
        name: 'R',
        description: null,
      },
      ...{ status: 'active', allow_anonymous: true, source: 'sdk', receiver_config_id: null },
    });
    expect(first.headers['location']).toBe(`${LIST}/${first.json.id}`);
    const again = await kit.sdk('POST', REGISTER, { body: rule('GET /reports/{id}', { amount: '9', name: 'other' }) });
    expect([again.status, again.json]).toEqual([200, first.json]);
    expect(kit.registry.routeSet().revision).toBe(1);
  });

  test('behaviour: a route that the dashboard changed stays so when the application boots again', async () => {
    const { id } = await register('GET /a');
    await kit.dashboard('PATCH', `${LIST}/${id}`, { body: { amount: '7', status: 'paused' } });
    expect(await register('GET /a')).toMatchObject({ id, amount: '7', status: 'paused' });
  });

  test('refuses: another spelling of the same key is 409 with existing_id', async () => {
    const { id } = await register('GET /reports/{id}');
    const reply = await kit.sdk('POST', REGISTER, { body: rule('GET /Reports/:name') });
    expect([reply.status, reply.json.code, reply.json.existing_id]).toEqual([409, 'duplicate', id]);
  });

  test('behaviour: unknown members and id of a registration are ignored and logged by name, without their values', async () => {
    const reply = await kit.sdk('POST', REGISTER, {
      body: rule('GET /a', { id: '00000000-0000-4000-8000-000000000001', organization_id: 'hush', created_at: 'x' }),
    });
    expect(reply.status).toBe(201);
    expect(reply.json.id).not.toBe('00000000-0000-4000-8000-000000000001');
    const line = kit.logs.find((each) => each.includes('ignored')) ?? '';
    expect(JSON.parse(line)).toMatchObject({ members: ['id', 'organization_id', 'created_at'], by: 'api_key:app' });
    expect(kit.logs.join('')).not.toContain('hush');
    expect(kit.logs.join('')).not.toContain(SDK_KEY);
  });

  test('refuses: a registration in which something is missing or wrong, with 422', async () => {
    const reply = await kit.sdk('POST', REGISTER, { body: { name: 'x' } });
    expect(reply.status).toBe(422);
    expect(reply.json.errors).toEqual(
      ['/route_pattern', '/method', '/amount'].map((pointer) => ({ pointer, detail: 'This member is required.' })),
    );
    for (const body of ['[]', '"x"', 'null', '1', '[{}]']) {
      const wrong = await kit.sdk('POST', REGISTER, { body });
      expect([body, wrong.status, wrong.json.errors[0]?.pointer]).toEqual([body, 422, '']);
    }
    expect((await kit.sdk('POST', REGISTER, { body: rule('GET /a', { currency: 'EUR' }) })).status).toBe(422);
  });

  test('attack: fifty racing registrations make one route', async () => {
    const replies = await Promise.all(
      Array.from({ length: 50 }, () => kit.sdk('POST', REGISTER, { body: rule('GET /race') })),
    );
    expect(replies.filter(({ status }) => status === 201).length).toBe(1);
    expect(replies.filter(({ status }) => status === 200).length).toBe(49);
    expect(new Set(replies.map(({ json }) => json.id)).size).toBe(1);
    expect(kit.registry.routeSet()).toMatchObject({ revision: 1, routes: [{ pattern: '/race' }] });
  });

  test('refuses: more routes than the limit; those that are there still register', async () => {
    const small = await startRegistry({ limits: { routes: 2 } });
    const post = (text: string): Promise<number> =>
      small.sdk('POST', REGISTER, { body: rule(text) }).then(({ status }) => status);
    expect([await post('GET /a'), await post('GET /b'), await post('GET /c'), await post('GET /b')]).toEqual([
      201, 201, 422, 200,
    ]);
    await small.close();
  });
});

describe('registrations of one API key', () => {
  test('refuses: one route more than it may add in a minute; what is stored, other keys and later go on', async () => {
    const limited = await startRegistry({ limits: { registrationsPerMinute: 3 } });
    const other = (await limited.createKey('other', ['sdk'])).key;
    const post = (text: string, auth = SDK_KEY): Promise<Reply> =>
      limited.sdk('POST', REGISTER, { body: rule(text), auth });
    const statuses: number[] = [];
    // What is not added does not count.
    for (const text of ['GET /a', 'GET /a', 'GET /A', 'GET /b', 'GET /c', 'GET /d', 'GET /a', 'GET /A'])
      statuses.push((await post(text)).status);
    expect(statuses).toEqual([201, 200, 409, 201, 201, 429, 200, 409]);
    const refused = await post('GET /d');
    expect([refused.json.code, refused.headers['retry-after']]).toEqual(['too_many_requests', '20']);
    expect((await post('GET /d', other)).status).toBe(201);
    limited.clock.advance(20_000);
    expect([(await post('GET /e')).status, (await post('GET /f')).status]).toEqual([201, 429]);
    await limited.close();
  });

  test('behaviour: a limit of 0 registrations in a minute is none', async () => {
    const free = await startRegistry({ limits: { registrationsPerMinute: 0 } });
    for (let index = 0; index < 20; index++)
      expect((await free.sdk('POST', REGISTER, { body: rule(`GET /${index}`) })).status).toBe(201);
    await free.close();
  });
});

describe('the whole set', () => {
  test('behaviour: the whole set is a bare array of all routes, active and paused, with registry id and revision', async () => {
    const empty = await kit.sdk('GET', FEED);
    expect([empty.status, empty.json, empty.headers['tollgate-revision']]).toEqual([200, [], '0']);
    const [a, b] = [await register('GET /a'), await register('* /b', { status: 'paused' })];
    const reply = await kit.sdk('GET', FEED);
    expect(reply.json).toEqual([a, b]);
    expect(reply.headers).toMatchObject({
      ...{
        'content-type': 'application/json',
        'tollgate-registry': kit.store.routes.registryId,
        'tollgate-revision': '2',
      },
      ...{ vary: expect.stringContaining('Accept-Encoding'), 'cache-control': 'private, no-cache' },
    });
  });

  test('behaviour: the strong ETag of the whole set changes with every change and only then; 304 carries the same headers', async () => {
    const { id } = await register('GET /a');
    const tag = async (): Promise<string> => (await kit.sdk('GET', FEED)).headers['etag'] ?? '';
    const first = await tag();
    expect(first).toMatch(/^"[^"]+"$/);
    await register('GET /a');
    await kit.dashboard('PATCH', `${LIST}/${id}`, { body: {} });
    expect(await tag()).toBe(first);
    const same = await kit.sdk('GET', FEED, { headers: { 'If-None-Match': first } });
    expect([same.status, same.body.length, same.headers['etag'], same.headers['tollgate-revision']]).toEqual([
      304,
      0,
      first,
      '1',
    ]);
    await kit.dashboard('PATCH', `${LIST}/${id}`, { body: { amount: '2' } });
    const changed = await kit.sdk('GET', FEED, { headers: { 'If-None-Match': first } });
    expect([changed.status, changed.list[0]?.amount]).toEqual([200, '2']);
    const tags = new Set([first, await tag()]);
    await kit.dashboard('DELETE', `${LIST}/${id}`);
    expect(tags.add(await tag()).size).toBe(3);
  });

  test('behaviour: the whole set is sent as gzip if that is accepted, under a tag of its own, and either tag is 304', async () => {
    for (const index of Array(20).keys()) await register(`GET /a/${index}`);
    const zipped = await kit.sdk('GET', FEED, { headers: { 'Accept-Encoding': 'br, gzip;q=0.5' } });
    const plain = await kit.sdk('GET', FEED);
    expect([zipped.headers['content-encoding'], plain.headers['content-encoding']]).toEqual(['gzip', undefined]);
    expect(gunzipSync(zipped.body)).toEqual(plain.body);
    expect(zipped.body.length).toBeLessThan(plain.body.length / 3);
    const tags = [zipped.headers['etag'] ?? '', plain.headers['etag'] ?? ''];
    expect(new Set(tags).size).toBe(2);
    for (const tag of tags)
      expect((await kit.sdk('GET', FEED, { headers: { 'If-None-Match': tag } })).status).toBe(304);
    const refused = await kit.sdk('GET', FEED, { headers: { 'Accept-Encoding': 'gzip;q=0, identity' } });
    expect(refused.headers['content-encoding']).toBeUndefined();
  });

  test('behaviour: a reader that comes while an older state of the set is being made waits for its own', async () => {
    // More than a slice, so that making it takes several turns.
    let set: RouteSet = { registryId: 'r', revision: 1, routes: Array.from({ length: 1200 }, () => route('GET /old')) };
    const book = { head: () => ({ revision: set.revision, stamp: `s${set.revision}` }), routeSet: () => set };
    const feed = createFeed(book);
    const first = feed.current();
    set = { ...set, revision: 2, routes: [route('GET /new')] };
    const [older, newer, alike] = await Promise.all([first, feed.current(), feed.current()]);
    expect([older.revision, older.plain.includes('/old'), older.etag]).toEqual([1, true, '"1.s1"']);
    expect([newer.revision, newer.plain.includes('/new'), newer.etag]).toEqual([2, true, '"2.s2"']);
    expect(alike).toBe(newer);
    expect(await feed.current()).toBe(newer);
  });
});

describe('match', () => {
  let one: Kit;
  beforeAll(async () => {
    one = await startRegistry();
  });
  afterAll(() => one.close());
  const ask = (path: string, method = 'GET'): Promise<object> =>
    one
      .sdk('GET', `${MATCH}?${new URLSearchParams({ path, method })}`)
      .then(({ status, json }) => ({ http: status, ...json }));

  test('behaviour: a match is answered with route and parameters; no match is 200 too', async () => {
    const made = await one.sdk('POST', REGISTER, { body: rule('GET /users/{id}/*') });
    expect(await ask('/users/7/a/b', 'get')).toEqual({
      ...{ http: 200, matched: true, payment_required: true, route: made.json },
      params: { id: '7', wildcard: 'a/b' },
    });
    const free = { http: 200, matched: false, payment_required: false, route: null, params: {} };
    expect(await ask('/other')).toEqual(free);
    expect(await ask('/users/7/a', 'POST')).toEqual(free);
    await one.dashboard('PATCH', `${LIST}/${made.json.id}`, { body: { status: 'paused' } });
    expect(await ask('/users/7/a?x=1')).toMatchObject({
      matched: true,
      payment_required: false,
      route: { status: 'paused' },
    });
  });

  test('behaviour: a path to match has bytes that a target cannot hold encoded first, and its query cut', async () => {
    await one.sdk('POST', REGISTER, { body: rule('GET /café/:x') });
    const raw = async (path: string): Promise<Wire> => (await one.sdk('GET', `${MATCH}?method=GET&path=${path}`)).json;
    expect(await raw('/caf%C3%A9/a')).toMatchObject({ matched: true, params: { x: 'a' } });
    expect(await raw('/caf%25C3%25A9/a%3Fb=c')).toMatchObject({ matched: true, params: { x: 'a' } });
    expect(await raw('/CAF%C3%89/a+b')).toMatchObject({ matched: true, params: { x: 'a b' } });
  });

  const ambiguous = { matched: true, payment_required: true, ambiguous: true, route: null, params: {} };
  test.each([
    '/a/../b',
    '/a/%2e%2e/b',
    '/a%2Fb',
    '/a\\b',
    '/a%00',
    '/%zz',
    '/%25252e',
    '/a\u0000b',
    '/a\nb',
    '/a#b',
    '/%ff',
    '/%C0%AE',
  ])('behaviour: a path to match that the proxy would refuse, %j, is ambiguous', async (path) => {
    expect(await ask(path)).toEqual({ http: 200, ...ambiguous });
  });

  test('behaviour: a path to match whose escapes are malformed or no UTF-8 is ambiguous, not an error', async () => {
    for (const path of ['/a%FFb', '/%zz', '/%C3%A9%FF', '/%', '/%2']) {
      const reply = await one.sdk('GET', `${MATCH}?path=${path}&method=GET`);
      expect([path, reply.status, reply.json]).toEqual([path, 200, ambiguous]);
    }
  });

  test.each([
    '',
    'path=/a',
    'method=GET',
    'path=&method=GET',
    'path=a&method=GET',
    'path=/a&method=',
    'path=/a&method=G%20T',
    'path=/a&path=/b&method=GET',
    'path=http://x/a&method=GET',
  ])('refuses: a match for ?%s, with 400', async (query) => {
    const reply = await one.sdk('GET', `${MATCH}?${query}`);
    expect([reply.status, reply.json.code]).toEqual([400, 'malformed']);
  });

  test.each(MATCHES)('behaviour: $why', async ({ rules, asks }) => {
    const routes = rules.map((text) => {
      const [method = '*', route_pattern = '/', amount = '0.10'] = text.split(' ');
      return { method, route_pattern, amount };
    });
    await kit.registry.declare(declared(routes), 'start');
    const won = await Promise.all(
      asks.map(async ([request]) => {
        const [method = '', path = ''] = request.split(' ');
        const { json } = await kit.sdk('GET', `${MATCH}?${new URLSearchParams({ method, path })}`);
        return [
          request,
          json.ambiguous ? 'refused' : json.route ? `${json.route.method} ${json.route.route_pattern}` : 'free',
        ];
      }),
    );
    // "undeclared" is free where undeclared_methods is forward.
    expect(won).toEqual(
      asks.map(([request, wins]) => [request, wins === 'undeclared' ? 'free' : wins.split(' ').slice(0, 2).join(' ')]),
    );
  });
});
