// The routes that a configuration would serve, without starting it: what its store holds, read only, and what its file
// registers at start. A store is never made, migrated or written for a look at it.
import { existsSync } from 'node:fs';
import type { ConfigRoute, LoadedConfig } from '../config/config.ts';
import { parsePattern } from '../domain/pattern.ts';
import { profileFolding } from '../domain/profile.ts';
import { fromWire, type Route } from '../domain/route.ts';
import { compileSnapshot, type Snapshot } from '../domain/snapshot.ts';
import { readStoredRoutes } from '../registry/store/read-only.ts';
import { messageOf } from './configuration.ts';

export type OfflineRoutes =
  | { readonly ok: true; readonly snapshot: Snapshot; readonly stored: number }
  | { readonly ok: false; readonly problem: string };

const NO_TIME = '1970-01-01T00:00:00.000Z';

/** Stored routes win over those of the file, as they do at a start. */
export function readOfflineRoutes(config: LoadedConfig): OfflineRoutes {
  if (config.registry === undefined) {
    return {
      ok: false,
      problem: "A sidecar's routes are kept by its registry; ask there, or GET /v1/protected-routes/match.",
    };
  }
  const { file } = config.registry.store;
  let stored: readonly Route[] = [];
  try {
    if (existsSync(file)) stored = readStoredRoutes(file);
  } catch (error) {
    return {
      ok: false,
      problem: `The store ${file} cannot be read: ${messageOf(error)}. If an older version wrote it, run \`tollgate migrate\`.`,
    };
  }
  const taken = new Set(stored.map(nameOf));
  const added = config.routes.map(toRoute).filter((route) => !taken.has(nameOf(route)));
  const { proxy } = config;
  const snapshot = compileSnapshot(
    { registryId: 'offline', revision: 0, routes: [...stored, ...added] },
    {
      encodedSlashes: proxy?.encodedSlashes ?? 'refuse',
      doubleSlashes: proxy?.doubleSlashes ?? 'merge',
      folding: profileFolding(proxy?.upstreamProfile ?? 'unknown'),
    },
  );
  return { ok: true, snapshot, stored: stored.length };
}

/** What makes two routes one: the method and the pattern's key. */
function nameOf(route: Route): string {
  const parsed = parsePattern(route.pattern);
  return `${route.method} ${parsed.ok ? parsed.pattern.key : route.pattern}`;
}

/** A route of the file has no id before it is registered; the nil UUID with its number stands in. */
function toRoute(route: ConfigRoute, index: number): Route {
  const id = `00000000-0000-0000-0000-${index.toString(16).padStart(12, '0')}`;
  return fromWire({ ...route, id, created_at: NO_TIME, updated_at: NO_TIME });
}
