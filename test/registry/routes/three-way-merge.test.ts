// What the configuration declares and the store follows, three-way: per field what the file said last decides. Over a real
// store, a start after the other, with what a dashboard does in between.
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { DeclaredRoute } from '../../../src/registry/routes/three-way-merge.ts';
import { declared, LIST, REGISTER, startRegistry, temporaryFolder, type Kit } from '../kit.ts';

let files: ReturnType<typeof temporaryFolder>;
let kit: Kit;

beforeEach(async () => {
  files = temporaryFolder();
  kit = await startRegistry({ file: `${files.folder}/t.db` });
});
afterEach(async () => {
  await kit.close();
  files.remove();
});

type Told = Parameters<typeof declared>[0];
const A = { route_pattern: '/a', method: 'GET', amount: '0.10' };
const B = { route_pattern: '/b', method: 'GET', amount: '0.20' };

/** A process that starts with `file` on the store of the one before it. */
async function start(file: Told) {
  await kit.close();
  kit = await startRegistry({ file: `${files.folder}/t.db` });
  return kit.registry.declare(declared(file), 'start');
}
const reload = (file: Told) => kit.registry.declare(declared(file), 'reload');
const stored = (): string[] =>
  kit.registry
    .routeSet()
    .routes.map(({ method, pattern, amount, status }) => `${method} ${pattern} ${amount} ${status}`);
const idOf = (pattern: string): string =>
  kit.registry.routeSet().routes.find((route) => route.pattern === pattern)?.id ?? '';
const patch = (pattern: string, body: Partial<DeclaredRoute>) =>
  kit.dashboard('PATCH', `${LIST}/${idOf(pattern)}`, { body });

describe('a start', () => {
  test('behaviour: a value that changed in the file is applied, whatever the store holds', async () => {
    await start([A]);
    await patch('/a', { amount: '0.70' });
    const plan = await start([{ ...A, amount: '0.50' }]);
    expect(stored()).toEqual(['GET /a 0.50 active']);
    expect(plan.changes).toMatchObject([{ fields: [{ field: 'amount', from: '0.70', to: '0.50' }] }]);
    expect(kit.registry.differences()).toEqual([]);
  });

  test('behaviour: a value that changed only in the store stays, and is a difference', async () => {
    await start([A]);
    await patch('/a', { amount: '0.70', status: 'paused' });
    const plan = await start([A]);
    expect(stored()).toEqual(['GET /a 0.70 paused']);
    expect(plan.changes).toEqual([]);
    expect(plan.differences).toMatchObject([
      {
        fields: [
          { field: 'amount', store: '0.70', file: '0.10' },
          { field: 'status', store: 'paused', file: 'active' },
        ],
      },
    ]);
    expect(kit.registry.differences()).toEqual(plan.differences);
  });

  test('behaviour: routes are merged field by field: the file’s new price and the dashboard’s pause are both in force', async () => {
    await start([A]);
    await patch('/a', { status: 'paused' });
    await start([{ ...A, amount: '0.50' }]);
    expect(stored()).toEqual(['GET /a 0.50 paused']);
  });

  test.each<[keyof DeclaredRoute, unknown, unknown]>([
    ['route_pattern', '/A/', '/a'],
    ['currency', 'USDC', 'USD'],
    ['name', 'Report', null],
    ['description', 'What it is', null],
    ['status', 'paused', 'active'],
    ['allow_anonymous', false, true],
    ['receiver_config_id', 'default', null],
  ])(
    'behaviour: %s is a field: written it is applied, left out again it is the default',
    async (field, value, fallback) => {
      const seen = async (): Promise<unknown> => {
        const [route] = kit.registry.routeSet().routes;
        return (await kit.dashboard('GET', `${LIST}/${route?.id}`)).json[field];
      };
      await start([A]);
      await start([{ ...A, [field]: value }]);
      expect(await seen()).toBe(value);
      await start([A]);
      expect(await seen()).toBe(fallback);
    },
  );

  test('behaviour: a route that is taken out of the file is deleted', async () => {
    await start([A, B]);
    const plan = await start([A]);
    expect(stored()).toEqual(['GET /a 0.10 active']);
    expect(plan.deletes.map(({ pattern }) => pattern)).toEqual(['/b']);
  });

  test('behaviour: a route that somebody else made and the file declares takes the file’s values, and is later deleted with it', async () => {
    await kit.sdk('POST', REGISTER, { body: { ...A, amount: '3', name: 'kept by nobody' } });
    const plan = await start([{ ...A, route_pattern: '/A' }]);
    expect(kit.registry.routeSet().routes).toMatchObject([
      { pattern: '/A', amount: '0.10', name: null, source: 'config' },
    ]);
    expect(plan.changes[0]?.fields.map(({ field }) => field)).toEqual(['route_pattern', 'amount', 'name', 'source']);
    expect(plan.creates).toEqual([]);
    await start([]);
    expect(stored()).toEqual([]);
  });

  test('behaviour: a route that the configuration never declared is not deleted by a start', async () => {
    await kit.sdk('POST', REGISTER, { body: B });
    await start([A]);
    await start([]);
    expect(stored()).toEqual(['GET /b 0.20 active']);
  });

  test('behaviour: a route that was deleted in the store is made again by a start, not by a reload', async () => {
    await start([A, B]);
    const reply = await kit.dashboard('DELETE', `${LIST}/${idOf('/a')}`);
    expect(reply.status).toBe(204);
    expect(kit.logs.join('')).toMatch(/"msg":"route deleted".*the next start makes it again/);
    expect(kit.registry.differences()).toMatchObject([{ declared: { route_pattern: '/a' }, route: undefined }]);
    await reload([A, { ...B, amount: '9' }]);
    expect(stored()).toEqual(['GET /b 9 active']);
    await start([A, { ...B, amount: '9' }]);
    expect(stored()).toEqual(['GET /b 9 active', 'GET /a 0.10 active']);
    expect(kit.registry.differences()).toEqual([]);
  });

  test('behaviour: a route that was deleted in the store and changed in the file is made again by a reload', async () => {
    await start([A, B]);
    await kit.dashboard('DELETE', `${LIST}/${idOf('/a')}`);
    await reload([{ ...A, amount: '0.30' }, B]);
    expect(stored()).toContain('GET /a 0.30 active');
  });

  test('behaviour: if the dashboard gave a route another pattern, the declared one is made again and the other is not deleted', async () => {
    await start([A]);
    await patch('/a', { route_pattern: '/elsewhere' });
    await start([A]);
    expect(stored()).toEqual(['GET /elsewhere 0.10 active', 'GET /a 0.10 active']);
    await start([]);
    expect(stored()).toEqual(['GET /elsewhere 0.10 active']);
  });

  test('behaviour: a start with the same file again writes nothing', async () => {
    await start([A, B]);
    const { revision } = kit.registry.routeSet();
    const plan = await start([A, B]);
    expect([plan.creates, plan.changes, plan.deletes, plan.differences, plan.said.size]).toEqual([[], [], [], [], 0]);
    expect(kit.registry.routeSet().revision).toBe(revision);
  });

  test('behaviour: all routes of the file may be gone at a start', async () => {
    await start([A, B]);
    await start([]);
    expect(stored()).toEqual([]);
  });

  test('behaviour: the limit of routes keeps SDKs out and not the configuration', async () => {
    await kit.close();
    kit = await startRegistry({ file: `${files.folder}/t.db`, limits: { routes: 1 } });
    await kit.sdk('POST', REGISTER, { body: B });
    await kit.registry.declare(declared([A]), 'start');
    expect(stored()).toEqual(['GET /b 0.20 active', 'GET /a 0.10 active']);
  });
});

describe('a reload', () => {
  const many = (count: number): Told =>
    Array.from({ length: count }, (_, index) => ({ ...A, route_pattern: `/r${index}` }));

  test.each([
    ['the only one', 1, 0],
    ['every one of three', 3, 0],
    ['three of four', 4, 1],
    ['three of five', 5, 2],
    ['all of a hundred', 100, 0],
  ])('refuses: a reload that would delete %s', async (_, before, after) => {
    await start(many(before));
    const was = stored();
    const next = [...many(after), { ...A, route_pattern: '/new' }];
    await expect(reload(next)).rejects.toThrow(/the new file deletes .* declared routes?.*; if that is meant, restart/);
    expect(stored()).toEqual(was);
    await start(next);
    expect(stored()).toHaveLength(after + 1);
  });

  test.each([
    ['two of three', 3, 1],
    ['two of four', 4, 2],
    ['half of a hundred', 100, 50],
  ])('behaviour: a reload deletes %s', async (_, before, after) => {
    await start(many(before));
    await reload(many(after));
    expect(stored()).toHaveLength(after);
  });
});
