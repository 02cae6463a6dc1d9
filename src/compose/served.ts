// What requests are matched against while there may be no routes yet.
import type { ProxyConfig, SyncConfig } from '../config/config.ts';
import { compileSnapshot, type Snapshot } from '../domain/snapshot.ts';
import type { Current } from '../gateway/sync/current.ts';
import { pathOptions } from './part.ts';

/**
 * What requests are matched against: the routes in force. Before there are any, nothing (503 `routes_absent`), or a set
 * without routes where `sync.when_absent` says so: then every request is an unprotected one like any other.
 */
export function servedSnapshot(
  sync: SyncConfig | undefined,
  proxy: ProxyConfig,
  current: Current,
): () => Snapshot | undefined {
  if (sync?.whenAbsent !== 'forward') return current.get;
  const none = compileSnapshot({ registryId: '', revision: 0, routes: [] }, pathOptions(proxy));
  return () => current.get() ?? none;
}
