// The routes that a listener judges requests by: those in force, and before there are any what `sync.when_absent` says.
import type { Config } from '../config/config.ts';
import { compileSnapshot, type Snapshot } from '../domain/routing/snapshot.ts';
import { pathOptions } from './part.ts';

type RoutesInForce = { readonly snapshot: Snapshot | undefined };

/**
 * Picks the routes that requests are matched against: those in force. Before there are any, nothing (503
 * `routes_absent`), or a set without routes if `sync.when_absent` says so: then every request is an unprotected one
 * like any other.
 */
export function servedRoutes(
  config: Pick<Config, 'sync' | 'front' | 'selling'>,
  current: RoutesInForce,
): RoutesInForce {
  if (config.sync?.whenAbsent !== 'forward') return current;
  const none = compileSnapshot({ registryId: '', revision: 0, routes: [] }, pathOptions(config));
  return {
    get snapshot() {
      return current.snapshot ?? none;
    },
  };
}
