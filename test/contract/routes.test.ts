// The contract of stores of routes over everything that keeps them, and the registry's routes over one that others write
// to as well.
import { join } from 'node:path';
import { afterAll, afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { createRandom, systemClock } from '../../src/host/clock.ts';
import { createLog } from '../../src/host/log.ts';
import { openRoutes, type Routes } from '../../src/registry/routes/registry-routes.ts';
import type { RouteInput } from '../../src/domain/routing/route.ts';
import { createBody } from '../../src/registry/http/schemas.ts';
import type {
  NewRoute,
  RouteStore,
  RouteWriteResult,
  RouteWrite,
  StoredRoute,
} from '../../src/registry/store/ports.ts';
import { openStore } from '../../src/registry/store/sqlite/store.ts';
import { RECEIVERS } from '../cases/receivers.ts';
import { storedRoute as route } from '../cases/routes.ts';
import { temporaryFolder } from '../registry/kit.ts';
import { hasPostgres } from '../postgres/server.ts';
import { freshDatabase, openTestStore, sharedPostgres, stopSharedPostgres } from '../postgres/store.ts';
import { createMemoryRoutes } from '../support/memory-routes.ts';

type Opened = { readonly store: RouteStore; readonly close: () => void | Promise<void> };
const KEPT = 3;
const MANY = { maxRoutes: 100 };

afterAll(stopSharedPostgres);

const IMPLEMENTATIONS: readonly (readonly [string, (changesKept?: number) => Opened | Promise<Opened>])[] = [
  [
    'SQLite',
    (changesKept) => {
      const { folder, remove } = temporaryFolder();
      const kept = changesKept === undefined ? {} : { changesKept };
      const { routes, close } = openStore(join(folder, 'tollgate.db'), { random: createRandom(), ...kept });
      return {
        store: routes,
        close: () => {
          close();
          remove();
        },
      };
    },
  ],
  ...(hasPostgres
    ? ([
        [
          'PostgreSQL',
          async (changesKept?: number) => {
            const kept = changesKept === undefined ? {} : { changesKept };
            const { routes, close } = await openTestStore(await freshDatabase(), kept);
            return { store: routes, close };
          },
        ],
      ] as const)
    : []),
  ['in memory', (changesKept) => ({ store: createMemoryRoutes(changesKept), close: () => undefined })],
];

describe.each(IMPLEMENTATIONS)('routes: %s', (_name, open) => {
  let opened: Opened[] = [];
  let store: RouteStore;
  const another = async (changesKept?: number): Promise<RouteStore> => {
    const one = await open(changesKept);
    opened.push(one);
    return one.store;
  };
  beforeEach(async () => {
    store = await another();
  });
  afterEach(async () => {
    for (const { close } of opened.splice(0)) await close();
    opened = [];
  });

  const insert = (made: NewRoute, key = made.pattern): RouteWrite => ({ kind: 'insert', route: made, key });
  const write = async (writes: readonly RouteWrite[], options = MANY, to = store): Promise<RouteWriteResult> => {
    const written = await to.write(writes, options);
    if (written === 'moved') throw new Error(written);
    return written;
  };
  const stored = async (id: string): Promise<StoredRoute> => {
    const found = (await store.load()).routes.find((each) => each.id === id);
    if (found === undefined) throw new Error(`no route ${id}`);
    return found;
  };

  test('behaviour: routes that are written are loaded oldest first, with the revision that made each and the head', async () => {
    expect((await store.load()).head).toEqual({ revision: 0, stamp: '' });
    const [a, b] = [route('GET /a', { name: 'A', status: 'paused' }), route('* /b', { source: 'sdk' })];
    const { head, outcomes } = await write([insert(a), insert(b)]);
    expect(outcomes).toEqual([
      { kind: 'written', revision: 1 },
      { kind: 'written', revision: 2 },
    ]);
    expect(await store.load()).toEqual({
      head,
      routes: [
        { ...a, seq: 1 },
        { ...b, seq: 2 },
      ],
    });
  });

  test('behaviour: the stamp of a set is new with every write, so that a repeated revision is no repeated set', async () => {
    const stamps: string[] = [];
    for (const pattern of ['/a', '/b', '/c']) stamps.push((await write([insert(route(`GET ${pattern}`))])).head.stamp);
    expect(new Set(stamps).size).toBe(3);
  });

  test('refuses: a second route with the same method and key, before it is one too many', async () => {
    const one = route('GET /a');
    const full = { maxRoutes: 1 };
    await write([insert(one)], full);
    const { outcomes } = await write([insert(route('GET /A'), '/a'), insert(route('GET /b'))], full);
    expect(outcomes).toEqual([
      { kind: 'conflict', existing: { ...one, seq: 1 } },
      { kind: 'full', limit: 1 },
    ]);
    const other = route('GET /b');
    await write([insert(other)]);
    const was = await stored(other.id);
    const update: RouteWrite = { kind: 'update', route: { ...was, pattern: '/a' }, key: '/a', was };
    expect((await write([update])).outcomes).toMatchObject([{ kind: 'conflict' }]);
    expect((await store.load()).head.revision).toBe(2);
  });

  test('attack: a change of a route that is not as it was known writes nothing', async () => {
    const made = route('GET /a');
    await write([insert(made)]);
    const was = await stored(made.id);
    const dearer = { ...was, amount: '5', updatedAt: '2027-01-01T00:00:00.000Z' };
    const update: RouteWrite = { kind: 'update', route: dearer, key: '/a', was };
    expect((await write([update])).outcomes).toEqual([{ kind: 'written', revision: 2 }]);
    const remove: RouteWrite = { kind: 'delete', was, by: 'config', at: '2027-01-01T00:00:00.000Z' };
    expect((await write([update, remove])).outcomes).toEqual([{ kind: 'stale' }, { kind: 'stale' }]);
    expect(await stored(made.id)).toEqual(dearer);
    expect((await write([{ ...remove, was: dearer }])).outcomes).toEqual([{ kind: 'written', revision: 3 }]);
    expect((await store.load()).routes).toEqual([]);
  });

  test('behaviour: the declared values of a route are kept with it, and are no change of the set by themselves', async () => {
    const made = route('GET /a');
    await write([insert(made)]);
    const was = await stored(made.id);
    const declared = {
      ...{ method: 'GET', route_pattern: '/a', amount: '0.10', currency: 'USD', name: null, description: null },
      ...{ status: 'active' as const, allow_anonymous: true, receiver_config_id: null, plan_id: null },
    } as const;
    const update: RouteWrite = { kind: 'update', route: { ...was, declared }, key: '/a', was };
    expect((await write([update])).outcomes).toEqual([{ kind: 'written', revision: 1 }]);
    expect((await stored(made.id)).declared).toEqual(declared);
    expect(await store.changesAfter(1, 10)).toEqual([]);
  });

  test('behaviour: a decision over the whole set is written if the set is still that one, all of it or none', async () => {
    await write([insert(route('GET /a'))]);
    expect(await store.write([insert(route('GET /b'))], { ...MANY, ifRevision: 0 })).toBe('moved');
    const twice = [insert(route('GET /c')), insert(route('GET /c'))];
    await expect(store.write(twice, { ...MANY, ifRevision: 1 })).rejects.toThrow('not written');
    expect((await store.load()).routes.map(({ pattern }) => pattern)).toEqual(['/a']);
    expect(await store.write([insert(route('GET /b'))], { ...MANY, ifRevision: 1 })).toMatchObject({
      head: { revision: 2 },
    });
  });

  test('behaviour: the change log keeps its last changes and says where it does not reach', async () => {
    const short = await another(KEPT);
    for (const key of ['/1', '/2', '/3', '/4', '/5']) await write([insert(route(`GET ${key}`))], MANY, short);
    const revisions = async (after: number, limit: number): Promise<unknown> => {
      const changes = await short.changesAfter(after, limit);
      return changes === 'too_old' ? changes : changes.map(({ revision }) => revision);
    };
    expect(await revisions(5, 10)).toEqual([]);
    expect(await revisions(2, 10)).toEqual([3, 4, 5]);
    expect(await revisions(2, 2)).toEqual([3, 4]);
    for (const beyond of [1, 6, -1]) expect(await revisions(beyond, 10)).toBe('too_old');
  });

  test('behaviour: changes are told with the route as it became, a deleted one as it was; and its history, newest first', async () => {
    const made = route('GET /a');
    await write([insert(made)]);
    const was = await stored(made.id);
    const dearer = { ...was, amount: '5', updatedAt: '2027-01-01T00:00:00.000Z', writtenBy: 'dashboard:ann' } as const;
    await write([{ kind: 'update', route: dearer, key: '/a', was }]);
    await write([{ kind: 'delete', was: dearer, by: 'dashboard:bob', at: '2027-02-01T00:00:00.000Z' }]);
    expect(await store.changesAfter(0, 10)).toMatchObject([
      { revision: 1, kind: 'created', route: was },
      { revision: 2, kind: 'updated', route: dearer },
      { revision: 3, kind: 'deleted', route: { id: made.id } },
    ]);
    expect(await store.history(made.id, undefined, 10)).toMatchObject([
      { revision: 3, by: 'dashboard:bob', before: { amount: '5' }, after: null },
      { revision: 2, by: 'dashboard:ann', before: { amount: '0.10' }, after: { amount: '5' } },
      { revision: 1, by: 'config', before: null, after: { amount: '0.10' } },
    ]);
    expect((await store.history(made.id, 3, 1)).map(({ revision }) => revision)).toEqual([2]);
  });

  test('behaviour: the proof that followed the changes is that of the set read anew, here and by who reached them', async () => {
    const [routes, follower] = [await over(store), await over({ ...store, watch: () => () => undefined })];
    expect((await routes.prove()).digest).toBe('0'.repeat(64));
    expect((await follower.prove()).routes).toBe(0);
    const ids: string[] = [];
    for (const name of ['/a', '/b', '/c']) {
      const created = await routes.create({ input: input(name), by: BY });
      ids.push(created.kind === 'created' ? created.route.id : '');
    }
    await routes.patch(ids[0] ?? '', { amount: '7', name: 'É\n' }, BY, () => true);
    await routes.patch(ids[1] ?? '', { route_pattern: '/d' }, BY, () => true);
    await routes.remove(ids[2] ?? '', BY, () => true);
    const proof = await routes.prove();
    expect(proof).toMatchObject({ revision: 6, routes: 2 });
    await follower.reach(6);
    expect([await follower.prove(), await (await over(store)).prove()]).toEqual([proof, proof]);
  });
});

const BY = 'dashboard:ann';
const log = createLog('error', () => undefined, Date.now);
const input = (pattern: string, amount = '1'): RouteInput =>
  createBody.parse({ route_pattern: pattern, method: 'GET', amount });
const over = (store: RouteStore, maxRoutes = 10): Promise<Routes> =>
  openRoutes({
    ...{
      store,
      isShared: true,
      receivers: () => RECEIVERS,
      unknownReceiver: () => 'store',
      methods: () => new Set(['GET']),
    },
    ...{ maxRoutes, clock: systemClock, random: createRandom(), log },
  });

describe('two registries on one store', () => {
  const patterns = (routes: Routes): readonly string[] => routes.routeSet().routes.map(({ pattern }) => pattern);

  test('attack: made-up ids, hundreds at once, cost the store a few readings and not one each', async () => {
    const store = createMemoryRoutes();
    const gate = Promise.withResolvers<void>();
    let reads = 0;
    const changesAfter: RouteStore['changesAfter'] = async (...asked) => {
      reads++;
      await gate.promise;
      return store.changesAfter(...asked);
    };
    const routes = await over({ ...store, changesAfter });
    const asked = Array.from({ length: 300 }, (_, index) =>
      index % 3 > 0 ? routes.seek(`made up ${index}`) : routes.remove(`made up ${index}`, BY, () => true),
    );
    await vi.waitFor(() => expect(reads).toBe(1));
    gate.resolve();
    for (const found of await Promise.all(asked)) expect(found ?? { kind: 'gone' }).toEqual({ kind: 'gone' });
    // Deletions wait for their turns, a few of which share one.
    expect(reads).toBeLessThan(10);
  });

  test('behaviour: a route that one registry writes the other serves, after a hint alone', async () => {
    const store = createMemoryRoutes();
    const [here, there] = [await over(store), await over(store)];
    const heard: string[] = [];
    there.subscribe(({ kind, revision }) => void heard.push(`${kind} ${revision}`));
    await here.createAll([
      { input: input('/a'), by: BY },
      { input: input('/b'), by: BY },
    ]);
    await vi.waitFor(() => expect(heard).toEqual(['created 1', 'created 2']));
    expect(patterns(there)).toEqual(['/a', '/b']);
    expect(there.head()).toEqual(here.head());
  });

  test('behaviour: a route of another registry is met without a hint by the next write, which is decided on what is there by then', async () => {
    const store: RouteStore = { ...createMemoryRoutes(), watch: () => () => undefined };
    const [here, there] = [await over(store), await over(store)];
    const created = await here.create({ input: input('/a'), by: BY });
    expect(created.kind).toBe('created');
    expect(await there.create({ input: input('/A'), by: BY })).toMatchObject({
      kind: 'conflict',
      existing: { pattern: '/a' },
    });
    expect(patterns(there)).toEqual(['/a']);
    const { id = '' } = 'route' in created ? created.route : {};
    expect(await here.patch(id, { amount: '2' }, BY, () => true)).toMatchObject({ kind: 'updated' });
    // Asked for on a condition that held before.
    const asked: string[] = [];
    const patched = await there.patch(id, { amount: '3' }, BY, ({ amount }) => {
      asked.push(amount);
      return amount === '1';
    });
    expect([patched.kind, asked]).toEqual(['refused', ['1', '2']]);
    expect(await there.remove(id, BY, () => true)).toMatchObject({ kind: 'removed', route: { amount: '2' } });
    expect(await here.patch(id, { amount: '3' }, BY, () => true)).toEqual({ kind: 'gone' });
    expect(patterns(here)).toEqual([]);
  });

  test('behaviour: a decision over the whole set is made again if the set moved, and written once', async () => {
    const store: RouteStore = { ...createMemoryRoutes(), watch: () => () => undefined };
    const [here, there] = [await over(store), await over(store)];
    await here.create({ input: input('/a'), by: BY });
    const seen: number[] = [];
    await there.writeTogether('config', (writes) => {
      const known = patterns(there).length;
      seen.push(known);
      writes.insert(input(`/of-${known}`), null);
    });
    expect(seen).toEqual([0, 1]);
    expect(patterns(there)).toEqual(['/a', '/of-1']);
  });

  test('behaviour: a revision that was seen elsewhere is read before the set is asked for, or the store has none such', async () => {
    const kept = createMemoryRoutes();
    let away = false;
    const store: RouteStore = {
      ...kept,
      watch: () => () => undefined,
      changesAfter: async (...asked) => {
        if (away) throw new Error('away');
        return kept.changesAfter(...asked);
      },
    };
    const [here, there] = [await over(store), await over(store)];
    await here.createAll([
      { input: input('/a'), by: BY },
      { input: input('/b'), by: BY },
    ]);
    expect(there.head().revision).toBe(0);
    away = true;
    await there.reach(0);
    await expect(there.reach(2)).rejects.toThrow('away');
    away = false;
    await Promise.all([there.reach(1), there.reach(2), there.reach(99)]);
    expect(there.head()).toEqual(here.head());
    expect(await there.prove()).toEqual(await here.prove());
  });

  test('behaviour: the proof of a set that changes while it is reckoned is that of the set as it is then', async () => {
    const store: RouteStore = { ...createMemoryRoutes(), watch: () => () => undefined };
    const [here, there] = [await over(store, 2000), await over(store, 2000)];
    const made = await here.createAll(
      Array.from({ length: 1000 }, (_, index) => ({ input: input(`/r/${index}`), by: BY })),
    );
    const proving = here.prove();
    const { id = '' } = made[7] !== undefined && 'route' in made[7] ? made[7].route : {};
    await here.patch(id, { amount: '2' }, BY, () => true);
    await here.create({ input: input('/late'), by: BY });
    const proof = await proving;
    expect(proof).toMatchObject({ revision: 1002, routes: 1001 });
    await there.reach(1002);
    expect(await there.prove()).toEqual(proof);
    await here.remove(id, BY, () => true);
    expect((await here.prove()).digest).not.toBe(proof.digest);
  });

  test('behaviour: a store that says nothing fails the write, and what it wrote all the same is met later', async () => {
    const kept = createMemoryRoutes();
    let lost = true;
    const store: RouteStore = {
      ...kept,
      watch: () => () => undefined,
      write: async (...args) => {
        const written = await kept.write(...args);
        if (lost) throw new Error('no answer');
        return written;
      },
    };
    const routes = await over(store);
    await expect(routes.create({ input: input('/a'), by: BY })).rejects.toThrow('no answer');
    lost = false;
    expect(await routes.create({ input: input('/a'), by: BY })).toMatchObject({ kind: 'conflict' });
    expect(patterns(routes)).toEqual(['/a']);
  });
});

test.skipIf(!hasPostgres)(
  'attack: commits that a database lost, and others in their place, are a reset at every replica, and the set as it is now',
  async () => {
    const url = await freshDatabase();
    const database = new URL(url).pathname.slice(1);
    const { query } = await sharedPostgres();
    const stores = [await openTestStore(url), await openTestStore(url)];
    const [one, other] = await Promise.all(stores.map(({ routes }) => over(routes)));
    if (one === undefined || other === undefined) throw new Error('no routes');
    for (const name of ['/a', '/b', '/c']) await one.create({ input: input(name), by: BY });
    await vi.waitFor(() => expect(other.head().revision).toBe(3));
    const heard: string[][] = [[], []];
    for (const [index, each] of [one, other].entries())
      each.subscribe(({ kind, revision }) => void heard[index]?.push(`${kind} ${revision}`));
    // Back to the first change, and another second one: a higher revision is not told, but the same number of another set is.
    await query(
      `BEGIN; DELETE FROM tollgate.routes WHERE route_pattern <> '/a'; DELETE FROM tollgate.changes WHERE revision = 3;
       UPDATE tollgate.changes SET stamp = 'elsewhere' WHERE revision = 2;
       UPDATE tollgate.meta SET revision = 2, stamp = 'elsewhere'; COMMIT`,
      database,
    );
    await vi.waitFor(() => expect(heard).toEqual([['reset 2'], ['reset 2']]));
    for (const each of [one, other]) {
      expect(each.routeSet().routes.map(({ pattern }) => pattern)).toEqual(['/a']);
      expect(await each.prove()).toEqual(await (await over(createMemoryCopy(each))).prove());
    }
    for (const { close } of stores) await close();
  },
);

/** The same routes in a store of memory, at the same revision. */
function createMemoryCopy(routes: Routes): RouteStore {
  const set = [...routes.all()];
  return { ...createMemoryRoutes(), load: async () => ({ head: routes.head(), routes: set }) };
}
