// The routes that a configuration would serve, without starting it: what its store holds, read only, and what a start would
// make of it. A store is never made or written for a look at it.
import { declaredOf } from '../compose/declared-routes.ts';
import { pathOptions } from '../compose/part.ts';
import type { LoadedConfig } from '../config/config.ts';
import { fromWire, type Route } from '../domain/routing/route.ts';
import { compileSnapshot, type Snapshot } from '../domain/routing/snapshot.ts';
import { routeName } from '../domain/routing/pattern.ts';
import { afterPlan, planDeclared, type DeclaredRoute, type DeclaredPlan } from '../registry/routes/three-way-merge.ts';
import { storeAt } from '../registry/store/store-kinds.ts';
import { StoreDamaged } from '../registry/store/store-damage.ts';
import type { StoredRoute } from '../registry/store/ports.ts';
import { messageOf } from '../host/error-message.ts';

type OfflineRoutes =
  | { readonly ok: true; readonly routes: readonly Route[]; readonly plan: DeclaredPlan }
  /** Failure to read the routes. `isDamaged`: the store is damaged, so that a start would fail too. */
  | { readonly ok: false; readonly problem: string; readonly isDamaged?: boolean };

const NO_TIME = '1970-01-01T00:00:00.000Z';

/** Reads `routes` as they are after a start. */
export async function readOfflineRoutes(config: LoadedConfig): Promise<OfflineRoutes> {
  if (config.registry === undefined) {
    return {
      ok: false,
      problem: "A sidecar's routes are kept by its registry; ask there, or GET /v1/protected-routes/match.",
    };
  }
  let stored: readonly StoredRoute[] = [];
  let isShared = false;
  try {
    const store = await storeAt(config.registry.store);
    ({ isShared } = store);
    if (store.exists()) stored = await store.readRoutes();
  } catch (error) {
    if (error instanceof StoreDamaged) return { ok: false, problem: error.message, isDamaged: true };
    return {
      ok: false,
      problem: `The store ${config.registry.store.name} cannot be read: ${messageOf(error)}. If an older version wrote it, run \`tollgate migrate\`.`,
    };
  }
  const plan = planOf(config.routes.map(declaredOf), stored, isShared);
  return { ok: true, routes: afterPlan(stored, plan, toRoute), plan };
}

export function compileOffline(config: LoadedConfig, routes: readonly Route[]): Snapshot {
  return compileSnapshot({ registryId: 'offline', revision: 0, routes }, pathOptions(config));
}

function planOf(file: readonly DeclaredRoute[], routes: readonly StoredRoute[], isShared: boolean): DeclaredPlan {
  const byName = new Map(routes.map((route) => [routeName(route.method, route.pattern), route]));
  return planDeclared({
    file,
    isShared,
    applied: routes.flatMap((route) => (route.declared === null ? [] : [{ route, said: route.declared }])),
    find: ({ method, route_pattern: pattern }) => byName.get(routeName(method, pattern)),
  });
}

/** A route of the file has no id before it is made; the nil UUID with its number stands in. */
function toRoute(route: DeclaredRoute, index: number): Route {
  const id = `00000000-0000-0000-0000-${index.toString(16).padStart(12, '0')}`;
  return fromWire({ ...route, id, source: 'config', created_at: NO_TIME, updated_at: NO_TIME });
}
