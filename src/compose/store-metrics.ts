// Metrics of a store, and of a registry.
import type { Metrics } from '../host/metrics.ts';
import type { Check } from '../host/admin.ts';
import type { RegistryObserver } from '../registry/http/services.ts';
import type { ObserveStore, StoreLoad, StorePlace } from '../registry/store/ports.ts';

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

/** Calls in a transaction, 256 at most. */
const BATCHES = [1, 2, 4, 8, 16, 32, 64, 128, 256];

/** Calls of a store that other processes share; undefined if there are no others. */
export function observeCalls(metrics: Metrics, { isShared }: Pick<StorePlace, 'isShared'>): ObserveStore | undefined {
  if (!isShared) return undefined;
  const help = 'Calls of the shared store, as their callers waited for them.';
  const duration = metrics.duration('store_duration_seconds', help, ['operation', 'result']);
  const batchHelp = 'Calls of the ledger that went to the shared store in one transaction.';
  const batch = metrics.histogram('store_batch_calls', batchHelp, [], BATCHES)();
  return { call: (operation, result, seconds) => duration(operation, result)(seconds), batch };
}

/** Exports whether a shared store takes writes, also before it was reached for the first time. */
export function observeStoreUp(metrics: Metrics, check: Check): void {
  const help = '1 where the shared store takes writes of this process; each scrape asks, every five seconds at most.';
  metrics.observed('gauge', 'store_up', help, [], async (set) => set({}, (await check.run()).ok ? 1 : 0));
}

/** Exports the load of a shared store, and the revision of the routes in force here; `revision` is left out if it keeps none. */
export function observeSharedStore(metrics: Metrics, load: () => StoreLoad, revision?: () => number | undefined): void {
  observeLoad(metrics, load);
  if (revision === undefined) return;
  const help = 'Revision of the shared route set that is in force in this process.';
  metrics.observed('gauge', 'store_revision', help, [], (set) => {
    const known = revision();
    if (known !== undefined) set({}, known);
  });
}

/** Exports what a process does with a shared store, also if it exports nothing of the store itself. */
export function observeLoad(metrics: Metrics, load: () => StoreLoad): void {
  const help = 'Connections of this process to the shared store, those that are busy among them.';
  metrics.observed('gauge', 'store_connections', help, ['state'], (set) => {
    const { open, busy } = load();
    set({ state: 'open' }, open);
    set({ state: 'busy' }, busy);
  });
  const waitingHelp = 'Calls of the ledger that wait for a connection to the shared store.';
  metrics.observed('gauge', 'store_waiting', waitingHelp, [], (set) => set({}, load().waiting));
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
  const signIns = metrics.counter('desk_sign_ins_total', 'Sign-ins to the desk, by way and result.', ['via', 'result']);
  return {
    request: (endpoint, code) => requests(endpoint, String(code))(1),
    signInRefused: (kind) => refused(kind)(1),
    deskSignIn: (via, result) => signIns(via, result)(1),
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

export function observeSessions(metrics: Metrics, count: () => Promise<number>): void {
  metrics.observed('gauge', 'desk_sessions', 'Sessions of the desk that are open.', [], async (set) => {
    // While the store is away nobody knows, and the other metrics are told all the same.
    const open = await count().catch(() => undefined);
    if (open !== undefined) set({}, open);
  });
}
