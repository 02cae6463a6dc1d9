// Registries on one PostgreSQL behind a balancer: what one answered, another knows, though nothing has told it yet. Those
// that are asked second here hear and read nothing by themselves.
import { afterAll, afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { Store } from '../../src/registry/store/ports.ts';
import { openPostgres } from '../../src/registry/store/postgres/place.ts';
import { LIST, REGISTER, startRegistry, type Kit } from '../registry/kit.ts';
import { hasPostgres } from './server.ts';
import { freshDatabase, placeOf, silent, stopSharedPostgres } from './store.ts';

const ROUTE = { route_pattern: '/new', method: 'GET', amount: '1' };

describe.skipIf(!hasPostgres)('registries on one PostgreSQL', () => {
  const closing: (() => Promise<void>)[] = [];
  let here: Kit;
  let deaf: Kit;

  const replica = async (url: string): Promise<Kit> => {
    const store: Store = await openPostgres(
      placeOf(url, { pooler: true }),
      { now: Date.now, log: silent },
      { pollMs: Infinity },
    );
    closing.push(store.close);
    const kit = await startRegistry({ store });
    closing.push(kit.close);
    return kit;
  };
  beforeEach(async () => {
    const url = await freshDatabase();
    [here, deaf] = [await replica(url), await replica(url)];
  });
  afterEach(async () => {
    for (const close of closing.splice(0).toReversed()) await close();
  });
  afterAll(stopSharedPostgres);

  const make = async (kit: Kit, rest: object = {}): Promise<{ id: string; etag: string }> => {
    const { status, json, headers } = await kit.dashboard('POST', LIST, { body: { ...ROUTE, ...rest } });
    expect(status).toBe(201);
    return { id: json.id, etag: String(headers.etag) };
  };

  test.each([
    ['GET', '', undefined, 200],
    ['GET', '/changes', undefined, 200],
    ['PATCH', '', { amount: '2' }, 200],
    ['DELETE', '', undefined, 204],
  ])(
    'behaviour: %s%s by the id of a route that another replica has just made finds it',
    async (method, rest, body, status) => {
      const { id } = await make(here);
      const reply = await deaf.dashboard(method, `${LIST}/${id}${rest}`, body === undefined ? {} : { body });
      expect(reply.status).toBe(status);
      if (body !== undefined) expect(reply.json).toMatchObject({ id, ...body });
    },
  );

  test('behaviour: a route that another replica has just made is named by its id where it stands in the way', async () => {
    const { id } = await make(here);
    const refused = await deaf.dashboard('POST', LIST, { body: ROUTE });
    expect([refused.status, refused.json.existing_id]).toEqual([409, id]);
    expect((await deaf.dashboard('GET', `${LIST}/${id}`)).status).toBe(200);
    const { id: other } = await make(here, { route_pattern: '/other' });
    const booted = await deaf.sdk('POST', REGISTER, { body: { ...ROUTE, route_pattern: '/other' } });
    expect([booted.status, booted.json.id]).toEqual([200, other]);
  });

  test('behaviour: a condition is compared with what another replica has just written', async () => {
    const { id } = await make(here);
    await deaf.dashboard('GET', `${LIST}/${id}`);
    const path = `${LIST}/${id}`;
    const newest = String((await here.dashboard('PATCH', path, { body: { amount: '2' } })).headers.etag);
    const patched = await deaf.dashboard('PATCH', path, { headers: { 'If-Match': newest }, body: { amount: '3' } });
    expect([patched.status, patched.json.amount]).toEqual([200, '3']);
    const removed = await here.dashboard('DELETE', path, { headers: { 'If-Match': String(patched.headers.etag) } });
    expect(removed.status).toBe(204);
  });

  test('behaviour: a change is made, though it changes nothing of what this replica knows', async () => {
    const { id } = await make(here);
    const path = `${LIST}/${id}`;
    await deaf.dashboard('GET', path);
    await here.dashboard('PATCH', path, { body: { amount: '2' } });
    const patched = await deaf.dashboard('PATCH', path, { body: { amount: '1' } });
    expect([patched.status, patched.json.amount]).toEqual([200, '1']);
    expect((await here.dashboard('GET', `${path}/changes`)).json.data).toHaveLength(3);
  });
});
