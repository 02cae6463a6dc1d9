// The routes in force in this process, as its workers follow them, like sidecars their registry. They are numbered anew
// here, from the first set on. A change is told the moment it is in force.
import { setImmediate } from 'node:timers/promises';
import type { Route } from '../../domain/routing/route.ts';
import { createSetProver } from '../../domain/routing/set-proof.ts';
import type { Snapshot } from '../../domain/routing/snapshot.ts';
import type { CurrentSnapshot, SnapshotChange } from '../../gateway/routes/current-snapshot.ts';
import type { Random } from '../../host/clock.ts';
import type { RoutesInForce } from '../../registry/worker-api.ts';
import type { RouteEvent } from '../../registry/routes/route-index.ts';

/** Changes that a worker may have missed and still be told of. */
const KEPT = 1_000;
/** Differences of two sets that are told one by one. */
const MOST_TOLD = 100;

export function numberRoutes(current: CurrentSnapshot, random: Random): RoutesInForce {
  const registryId = `primary-${random(12).toString('hex')}`;
  const listeners = new Set<(change: RouteEvent) => void>();
  let kept: RouteEvent[] = [];
  let revision = current.snapshot === undefined ? 0 : 1;

  const tell = (change: RouteEvent): void => {
    if (change.kind === 'reset') kept = [];
    else kept.push(change);
    if (kept.length > KEPT) kept.shift();
    for (const listener of listeners) listener(change);
  };
  const count = (): number => current.snapshot?.routes.length ?? 0;
  const prover = createSetProver(
    { routes: () => current.snapshot?.routes ?? [], head: () => ({ revision, routes: count() }) },
    setImmediate,
  );
  current.onSwap((next, before, change) => {
    const changes = change === undefined ? differences(before, next) : [change];
    if (changes === undefined) {
      prover.replace();
      tell({ kind: 'reset', revision: ++revision });
      return;
    }
    for (const { kind, route, was } of changes) {
      prover.change(was, kind === 'deleted' ? undefined : route);
      tell({ kind, route, revision: ++revision });
    }
  });

  return {
    registryId,
    isKnown: () => current.snapshot !== undefined,
    head: () => ({ revision, stamp: `${registryId}.${revision}` }),
    count,
    prove: prover.prove,
    routeSet: () => ({ registryId, revision, routes: current.snapshot?.routes ?? [] }),
    subscribe: (listener) => {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
    changesAfter: async (seen, limit) => {
      const missed = revision - seen;
      if (missed < 0 || missed > kept.length) return 'too_old';
      return kept.slice(kept.length - missed, kept.length - missed + limit).filter((change) => change.kind !== 'reset');
    },
  };
}

type Difference = Omit<SnapshotChange, 'revision'>;

/** Finds what two sets differ in; undefined if it is too much to be told one by one. An unchanged route is the same object. */
function differences(before: Snapshot | undefined, next: Snapshot): Difference[] | undefined {
  if (before === undefined) return undefined;
  const changes: Difference[] = [];
  const found = (kind: Difference['kind'], route: Route, was?: Route): boolean =>
    changes.push({ kind, route, was }) <= MOST_TOLD;
  const known = new Map(before.routes.map((route) => [route.id, route]));
  for (const route of before.routes)
    if (next.matcher.get(route.id) === undefined && !found('deleted', route, route)) return undefined;
  for (const route of next.routes) {
    const old = known.get(route.id);
    if (old !== route && !found(old === undefined ? 'created' : 'updated', route, old)) return undefined;
  }
  return changes;
}
