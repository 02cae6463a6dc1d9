// Metrics of a store, and of a registry.
import type { Metrics } from '../host/metrics.ts';
import type { Check } from '../host/admin.ts';
import type { RegistryObserver } from '../registry/services.ts';
import type { ObserveCall, StoreConnections, StorePlace } from '../registry/store/ports.ts';

export function observeStore(metrics: Metrics, readStats: StorePlace['stats']): void {
  metrics.observed('gauge', 'store_bytes', 'Bytes of the files of the store.', ['file'], async (set) => {
    const stats = await readStats();
    for (const [name, bytes] of Object.entries(stats?.files ?? {})) set({ file: name }, bytes);
  });
  metrics.observed('gauge', 'store_free_bytes', 'Bytes that the volume of the store still takes.', [], async (set) => {
    const stats = await readStats();
    if (stats !== undefined) set({}, stats.freeBytes);
  });
  metrics.observed('gauge', 'store_volume_bytes', 'Bytes of the volume of the store.', [], async (set) => {
    const stats = await readStats();
    if (stats !== undefined) set({}, stats.volumeBytes);
  });
}

/** Calls of a store that other processes share; undefined if there are no others. */
export function observeCalls(metrics: Metrics, { isShared }: Pick<StorePlace, 'isShared'>): ObserveCall | undefined {
  if (!isShared) return undefined;
  const help = 'Calls of the shared store, as their callers waited for them.';
  const duration = metrics.duration('store_duration_seconds', help, ['operation', 'result']);
  return (operation, result, seconds) => duration(operation, result)(seconds);
}

/** Of a store that other processes share. `revision`: of the routes that are in force here; undefined if it has none of them. */
export function observeSharedStore(
  metrics: Metrics,
  check: Check,
  connections: () => StoreConnections,
  revision?: () => number | undefined,
): void {
  const upHelp = '1 where the shared store takes writes of this process; each scrape asks, every five seconds at most.';
  metrics.observed('gauge', 'store_up', upHelp, [], async (set) => set({}, (await check.run()).ok ? 1 : 0));
  const help = 'Connections of this process to the shared store, those that are busy among them.';
  metrics.observed('gauge', 'store_connections', help, ['state'], (set) => {
    for (const [state, count] of Object.entries(connections())) set({ state }, count);
  });
  if (revision === undefined) return;
  const revisionHelp = 'Revision of the shared route set that is in force in this process.';
  metrics.observed('gauge', 'store_revision', revisionHelp, [], (set) => {
    const known = revision();
    if (known !== undefined) set({}, known);
  });
}

export function observeRegistry(metrics: Metrics): RegistryObserver {
  const requests = metrics.counter(
    'registry_requests_total',
    'Requests to the registry, by endpoint and status code.',
    ['endpoint', 'code'],
  );
  const refused = metrics.counter(
    'registry_sign_ins_refused_total',
    'Requests to the registry whose credential is missing, wrong or lacks the scope, by the kind that was needed.',
    ['kind'],
  );
  return {
    request: (endpoint, code) => requests(endpoint, String(code))(1),
    signInRefused: (kind) => refused(kind)(1),
  };
}

export function observeConnections(
  metrics: Metrics,
  connections: () => { readonly streams: number; readonly sidecars: number },
): void {
  metrics.observed('gauge', 'event_streams', 'Open event streams.', [], (set) => set({}, connections().streams));
  metrics.observed('gauge', 'sidecars', 'Sidecars that hold a stream or asked for routes within a minute.', [], (set) =>
    set({}, connections().sidecars),
  );
}
