// Routes in memory: the store of routes as several registry processes would share it, which forgets everything with its
// process. Its watchers are told of every write.
import { toWire } from '../../src/domain/routing/route.ts';
import type {
  Head,
  RouteChange,
  RouteStore,
  RouteWrite,
  StoredChange,
  StoredRoute,
  WriteOutcome,
} from '../../src/registry/store/ports.ts';

export function createMemoryRoutes(changesKept = 10_000): RouteStore {
  const routes = new Map<string, { readonly route: StoredRoute; readonly key: string }>();
  const hints = new Set<() => void>();
  let head: Head = { revision: 0, stamp: '' };
  let log: { readonly change: StoredChange; readonly told: RouteChange }[] = [];

  const record = (
    kind: StoredChange['kind'],
    route: StoredRoute,
    told: Omit<RouteChange, 'revision'>,
  ): WriteOutcome => {
    const { revision } = head;
    log.push({ change: { ...head, kind, route }, told: { revision, ...told } });
    log = log.filter(({ change }) => change.revision > revision - changesKept);
    return { kind: 'written', revision };
  };
  const next = (): number => {
    head = { revision: head.revision + 1, stamp: `stamp ${head.revision + 1}` };
    return head.revision;
  };
  const taken = (method: string, key: string): StoredRoute | undefined =>
    [...routes.values()].find((each) => each.route.method === method && each.key === key)?.route;
  const same = (stored: StoredRoute | undefined, was: StoredRoute): stored is StoredRoute =>
    stored !== undefined && stored.writtenBy === was.writtenBy && textOf(stored) === textOf(was);

  const writeOne = (write: RouteWrite, maxRoutes: number): WriteOutcome => {
    if (write.kind === 'insert') {
      const { route, key } = write;
      const existing = taken(route.method, key);
      if (existing !== undefined) return { kind: 'conflict', existing };
      if (routes.size >= maxRoutes) return { kind: 'full', limit: maxRoutes };
      const made = { ...route, seq: next() };
      routes.set(route.id, { route: made, key });
      const { updatedAt: at, writtenBy: by } = route;
      return record('created', made, { at, by, before: null, after: toWire(route) });
    }
    const before = routes.get(write.was.id)?.route;
    if (!same(before, write.was)) return { kind: 'stale' };
    if (write.kind === 'delete') {
      routes.delete(before.id);
      next();
      return record('deleted', before, { at: write.at, by: write.by, before: toWire(before), after: null });
    }
    const { route, key } = write;
    const existing = taken(route.method, key);
    if (existing !== undefined && existing.id !== route.id) return { kind: 'conflict', existing };
    routes.set(route.id, { route, key });
    if (textOf(route) === textOf(before)) return { kind: 'written', revision: head.revision };
    next();
    const { updatedAt: at, writtenBy: by } = route;
    return record('updated', route, { at, by, before: toWire(before), after: toWire(route) });
  };

  return {
    registryId: '00000000-0000-4000-8000-00000000feed',
    load: async () => ({ head, routes: [...routes.values()].map(({ route }) => route) }),
    write: async (writes, { maxRoutes, ifRevision }) => {
      if (ifRevision !== undefined && ifRevision !== head.revision) return 'moved';
      const [heldRoutes, heldHead, heldLog] = [new Map(routes), head, log];
      const outcomes = writes.map((write) => writeOne(write, maxRoutes));
      if (ifRevision !== undefined && outcomes.some(({ kind }) => kind !== 'written')) {
        routes.clear();
        for (const [id, each] of heldRoutes) routes.set(id, each);
        [head, log] = [heldHead, heldLog];
        throw new Error('a route was not written with the others');
      }
      for (const hint of hints) hint();
      return { head, outcomes };
    },
    changesAfter: async (revision, limit) => {
      if (revision === head.revision) return [];
      const oldest = log[0]?.change.revision;
      if (revision > head.revision || oldest === undefined || revision < oldest - 1) return 'too_old';
      return log.flatMap(({ change }) => (change.revision > revision ? [change] : [])).slice(0, limit);
    },
    history: async (id, before, limit) =>
      log
        .filter(({ change }) => change.route.id === id && (before === undefined || change.revision < before))
        .map(({ told }) => told)
        .toReversed()
        .slice(0, limit),
    watch: (hint) => {
      hints.add(hint);
      return () => void hints.delete(hint);
    },
  };
}

function textOf(route: StoredRoute): string {
  return JSON.stringify(toWire(route));
}
