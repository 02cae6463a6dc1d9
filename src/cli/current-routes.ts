// The routes that a configuration serves, wherever they are kept: those of its own store as a start would make them, or those
// that its registry serves to a sidecar.
import type { LoadedConfig } from '../config/config.ts';
import type { Route } from '../domain/routing/route.ts';
import { systemSchedule } from '../host/clock.ts';
import { readOfflineRoutes } from './offline-routes.ts';

type CurrentRoutes =
  | { readonly ok: true; readonly routes: readonly Route[] }
  | { readonly ok: false; readonly problem: string };

const ANSWER_MS = 5000;

export async function readCurrentRoutes(config: LoadedConfig, version: string): Promise<CurrentRoutes> {
  const { sync } = config;
  if (sync === undefined) return readOfflineRoutes(config);
  // Imported late: it loads the whole of fetch, which other commands do without.
  const { createRegistrySource } = await import('../gateway/sync/follow/registry-source.ts');
  const source = createRegistrySource({
    ...{ ...sync, version, fetch, schedule: systemSchedule },
    limits: { answerMs: ANSWER_MS },
  });
  const found = await source.fetchSet({ known: undefined, want: 'anew' }, new AbortController().signal);
  if (found.kind === 'set') return { ok: true, routes: found.set.routes };
  return { ok: false, problem: 'reason' in found ? found.reason : 'the registry sent no routes' };
}
