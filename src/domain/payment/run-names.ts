// Names of runs: each process that owns charges has one, and its prefix says how the process reaches the store.

/**
 * Prefix of the runs of a process that holds the store itself. When it starts, no process is left with a lease of an
 * earlier run. A ledger takes no such owner from elsewhere.
 */
export const LOCAL_RUN = 'local-';

/** Prefix of the runs of workers. They reach the store through its process and end with it. */
export const WORKER_RUN = 'worker-';

/** Prefix of the runs of all workers of the process whose run is `run`. */
export function workersOfRun(run: string): string {
  return `${WORKER_RUN}${run.slice(LOCAL_RUN.length)}.`;
}
