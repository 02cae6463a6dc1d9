// Who changed a route, when, from what and to what: kept in the store, served newest first, and in the log.
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { declared, LIST, REGISTER, SDK_KEY, startRegistry, token, type Kit, type Wire } from './kit.ts';

const page = z.object({
  data: z.array(
    z.object({
      at: z.iso.datetime(),
      by: z.string(),
      before: z.record(z.string(), z.unknown()).nullable(),
      after: z.record(z.string(), z.unknown()).nullable(),
    }),
  ),
  next_cursor: z.string().nullable(),
});

let kit: Kit;
beforeAll(async () => {
  kit = await startRegistry({ changesKept: 20 });
});
afterAll(() => kit.close());

const read = async (id: string, query = ''): Promise<z.infer<typeof page>> => {
  const reply = await kit.dashboard('GET', `${LIST}/${id}/changes${query}`);
  expect(reply.status).toBe(200);
  return page.parse(reply.json);
};
const made = async (body: object): Promise<Wire> => (await kit.dashboard('POST', LIST, { body })).json;

describe('changes of a route', () => {
  test('behaviour: a route that an SDK makes and a dashboard changes and deletes has three changes, each with both states', async () => {
    const body = { route_pattern: '/kept/*', method: 'GET', amount: '0.10' };
    const route = (await kit.sdk('POST', REGISTER, { body })).json;
    kit.clock.advance(1000);
    const patched = (await kit.dashboard('PATCH', `${LIST}/${route.id}`, { body: { amount: '0.50' } })).json;
    kit.clock.advance(1000);
    expect((await kit.dashboard('DELETE', `${LIST}/${route.id}`)).status).toBe(204);
    const { data, next_cursor: next } = await read(route.id);
    expect(next).toBeNull();
    expect(data.map(({ by, before, after }) => ({ by, before, after }))).toEqual([
      { by: 'tollgate-cli', before: patched, after: null },
      { by: 'tollgate-cli', before: route, after: patched },
      { by: 'app', before: null, after: route },
    ]);
    expect(data.map(({ at }) => at)).toEqual(
      data
        .map(({ at }) => at)
        .toSorted()
        .toReversed(),
    );
    expect(data[1]?.at).toBe(patched.updated_at);
  });

  test('behaviour: the configuration and a key of the store are named, and what changes nothing is no change', async () => {
    await kit.registry.declare(declared([{ route_pattern: '/declared', amount: '1' }]), 'start');
    const made = kit.registry.routeSet().routes.find(({ pattern }) => pattern === '/declared');
    expect((await read(made?.id ?? '')).data.map(({ by }) => by)).toEqual(['config']);
    const { key } = await kit.createKey('orders-api', ['sdk']);
    const body = { route_pattern: '/orders', method: 'POST', amount: '1' };
    const route = (await kit.ask('POST', REGISTER, { auth: key, body })).json;
    await kit.ask('POST', REGISTER, { auth: key, body });
    await kit.dashboard('PATCH', `${LIST}/${route.id}`, { body: { amount: '1' } });
    expect((await read(route.id)).data.map(({ by }) => by)).toEqual(['orders-api']);
  });

  test('behaviour: changes are paged, newest first, until the oldest that is kept', async () => {
    const route = await made({ route_pattern: '/paged', method: 'GET', amount: '1' });
    for (let amount = 2; amount <= 25; amount++) {
      await kit.dashboard('PATCH', `${LIST}/${route.id}`, { body: { amount: String(amount) } });
    }
    const seen: unknown[] = [];
    let cursor: string | null = '';
    while (cursor !== null) {
      const part: z.infer<typeof page> = await read(route.id, `?limit=7${cursor === '' ? '' : `&cursor=${cursor}`}`);
      expect(part.data.length).toBeLessThanOrEqual(7);
      seen.push(...part.data.map(({ after }) => after?.['amount']));
      cursor = part.next_cursor;
    }
    expect(seen).toEqual(Array.from({ length: 20 }, (_, index) => String(25 - index)));
  });

  test('refuses: a route that never was, an id that is none, an SDK key, a cursor of nobody', async () => {
    for (const id of ['00000000-0000-4000-8000-00000000dead', 'x']) {
      const reply = await kit.dashboard('GET', `${LIST}/${id}/changes`);
      expect([id, reply.status, reply.json.code]).toEqual([id, 404, 'not_found']);
    }
    const route = await made({ route_pattern: '/guarded', method: 'GET', amount: '1' });
    expect((await kit.ask('GET', `${LIST}/${route.id}/changes`, { auth: SDK_KEY })).status).toBe(401);
    expect((await kit.dashboard('GET', `${LIST}/${route.id}/changes?cursor=zz`)).status).toBe(400);
    expect((await kit.dashboard('GET', `${LIST}/${route.id}/changes?limit=201`)).status).toBe(400);
  });

  test('behaviour: the log line of a change holds old and new values and who it was', async () => {
    const auth = await token();
    const route = await made({ route_pattern: '/logged', method: 'GET', amount: '1', name: 'One' });
    await kit.ask('PATCH', `${LIST}/${route.id}`, { auth, body: { amount: '2', name: null } });
    await kit.ask('DELETE', `${LIST}/${route.id}`, { auth });
    const lines = kit.logs.map((line) => JSON.parse(line)).filter((line) => line.route_id === route.id);
    const [created, updated, deleted] = lines;
    expect(lines.map(({ msg }) => msg)).toEqual(['route created', 'route updated', 'route deleted']);
    expect(created).toMatchObject({ before: null, after: { amount: '1', name: 'One' }, by: 'dashboard:tollgate-cli' });
    expect(updated).toMatchObject({ before: { amount: '1', name: 'One' }, after: { amount: '2', name: null } });
    expect(deleted).toMatchObject({ before: { amount: '2', name: null }, after: null });
  });
});
