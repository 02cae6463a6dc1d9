// The routes in force as workers are told of them: every change by itself with the digest that proves the set, and an older
// set is asked for no route by its id, which would take as long as reading all of them.
import { expect, test } from 'vitest';
import { numberRoutes } from '../../../src/compose/workers/worker-feed.ts';
import type { Route } from '../../../src/domain/routing/route.ts';
import { addAll, createSetDigest } from '../../../src/domain/routing/set-digest.ts';
import type { PathOptions, Snapshot } from '../../../src/domain/routing/snapshot.ts';
import { FULL_FOLDING, profileFolding } from '../../../src/domain/routing/profile.ts';
import { createCompiler, type Compiler } from '../../../src/gateway/routes/snapshot-compiler.ts';
import { createCurrent, type CurrentSnapshot } from '../../../src/gateway/routes/current-snapshot.ts';
import { createRandom } from '../../../src/host/clock.ts';
import { createLog } from '../../../src/host/log.ts';
import type { RouteEvent } from '../../../src/registry/routes/route-index.ts';
import type { RoutesInForce } from '../../../src/registry/worker-api.ts';
import { route } from '../../cases/routes.ts';

const ROUTES = ['a', 'b', 'c'].map((id) => route(`GET /${id}`, { id }));
const NEVER = (): never => {
  throw new Error('the whole set is not needed');
};

type Stage = {
  readonly current: CurrentSnapshot;
  readonly compiler: Compiler;
  readonly own: RoutesInForce;
  readonly told: RouteEvent[];
  /** Routes that an older set was asked for. */
  readonly searched: string[];
  paths: PathOptions;
};

function stage(): Stage {
  const current = createCurrent();
  const all: { paths: PathOptions } = {
    paths: { encodedSlashes: 'refuse', doubleSlashes: 'merge', folding: FULL_FOLDING },
  };
  const compiler = createCompiler(
    current,
    () => all.paths,
    createLog('error', () => undefined, Date.now),
  );
  const own = numberRoutes(current, createRandom());
  const told: RouteEvent[] = [];
  own.subscribe((change) => void told.push(change));
  compiler.load({ registryId: 'r', revision: 1, routes: ROUTES });
  const searched: string[] = [];
  const watch = (snapshot: Snapshot): void => {
    const { get } = snapshot.matcher;
    const watched = (id: string): Route | undefined => {
      if (current.snapshot !== snapshot) searched.push(id);
      return get(id);
    };
    Object.assign(snapshot.matcher, { get: watched });
  };
  if (current.snapshot !== undefined) watch(current.snapshot);
  current.onSwap(watch);
  return Object.assign(all, { current, compiler, own, told, searched });
}

async function digestOf(routes: readonly Route[]): Promise<string> {
  const digest = createSetDigest();
  await addAll(digest, routes, () => Promise.resolve());
  return digest.hex();
}

test('behaviour: workers are told created, updated and deleted routes one by one, and the digest goes along', async () => {
  const { compiler, own, told, current, searched } = stage();
  await own.prove();
  told.length = 0;
  const [a = NEVER(), b = NEVER()] = ROUTES;
  const d = route('GET /d', { id: 'd' });
  compiler.change({ kind: 'updated', revision: 2, route: { ...a, amount: '9' } }, NEVER);
  compiler.change({ kind: 'deleted', revision: 3, route: b }, NEVER);
  compiler.change({ kind: 'created', revision: 4, route: d }, NEVER);
  await compiler.takeChange({ kind: 'deleted', revision: 5, id: 'd' });
  expect(told.map((event) => [event.kind, event.kind === 'reset' ? '' : event.route.id])).toEqual([
    ['updated', 'a'],
    ['deleted', 'b'],
    ['created', 'd'],
    ['deleted', 'd'],
  ]);
  expect(await own.prove()).toMatchObject({ routes: 2, digest: await digestOf(current.snapshot?.routes ?? []) });
  expect(searched).toEqual([]);
});

test('scale: of a set that comes whole only what differs is told, and the older one is not searched', async () => {
  const { compiler, own, told, current, searched } = stage();
  await own.prove();
  told.length = 0;
  compiler.recompile();
  expect(told).toEqual([]);
  const routes = ROUTES.map((each) => (each.id === 'c' ? { ...each, amount: '9' } : each)).slice(1);
  compiler.load({ registryId: 'r', revision: 2, routes });
  expect(told.map(({ kind }) => kind).toSorted()).toEqual(['deleted', 'updated']);
  expect(await own.prove()).toMatchObject({ routes: 2, digest: await digestOf(current.snapshot?.routes ?? []) });
  expect(searched).toEqual([]);
});

test('behaviour: paths that are read in another way change no route', async () => {
  const all = stage();
  const { digest } = await all.own.prove();
  all.told.length = 0;
  all.paths = { ...all.paths, folding: profileFolding('express') };
  all.compiler.recompile();
  expect(all.told).toEqual([]);
  expect((await all.own.prove()).digest).toBe(digest);
});
