// The metrics of workers and of the process that they belong to, as one: which process tells what, and how it adds up.
import {
  createMetricSums,
  createReporter,
  type MetricSums,
  type MergeRules,
  type Reporter,
} from '../../host/metric-sums.ts';
import type { Metrics } from '../../host/metrics.ts';

/** Metrics that the primary alone tells: what all have the same, and what there is once. */
const OF_THE_PRIMARY: ReadonlySet<string> = new Set([
  ...['tollgate_build_info', 'tollgate_draining', 'tollgate_config_reloads_total'],
  ...['tollgate_routes', 'tollgate_route_info'],
  ...['tollgate_sync_total', 'tollgate_sync_last_success_timestamp_seconds'],
  ...['tollgate_charges', 'tollgate_owed', 'tollgate_owed_charges', 'tollgate_settling_overdue_seconds'],
  ...[
    'tollgate_store_bytes',
    'tollgate_store_free_bytes',
    'tollgate_store_volume_bytes',
    'tollgate_store_revision',
    'tollgate_store_up',
  ],
  ...['nodejs_version_info', 'process_start_time_seconds'],
]);

/** Rules for gauges: what one process is worst at, all of them are. */
const MERGING: MergeRules = {
  tollgate_facilitator_open: 'max',
  nodejs_eventloop_lag_seconds: 'max',
  nodejs_eventloop_lag_min_seconds: 'min',
  nodejs_eventloop_lag_max_seconds: 'max',
  nodejs_eventloop_lag_mean_seconds: 'max',
  nodejs_eventloop_lag_stddev_seconds: 'max',
  nodejs_eventloop_lag_p50_seconds: 'max',
  nodejs_eventloop_lag_p90_seconds: 'max',
  nodejs_eventloop_lag_p99_seconds: 'max',
};

/** Reports what a worker sends each second. */
export function reportMetrics({ families }: Pick<Metrics, 'families'>): Reporter {
  return createReporter(families, OF_THE_PRIMARY);
}

type WorkerState = {
  readonly worker: number;
  /** State of the worker; undefined: it ended, and its successor was not started yet. */
  readonly life: 'starting' | 'ready' | 'draining' | undefined;
};
const LIVES = ['ready', 'starting', 'draining'] as const;
const REASONS = ['exit', 'signal', 'memory', 'stalled'] as const;

type WorkerMetrics = MetricSums & {
  /** A worker ended that was not asked to. */
  readonly restarted: (reason: (typeof REASONS)[number]) => void;
};

/** Sums metrics. `routeLabel` gives a route's id as a label of the whole process. */
export function sumMetrics(
  metrics: Metrics,
  workers: () => readonly WorkerState[],
  routeLabel: (routeId: string) => string,
): WorkerMetrics {
  metrics.observed('gauge', 'workers', 'Processes that serve the proxy, by their state.', ['state'], (set) => {
    for (const state of LIVES) set({ state }, workers().filter(({ life }) => life === state).length);
  });
  const restarts = metrics.counter('worker_restarts_total', 'Workers that ended unasked and were replaced.', [
    'reason',
  ]);
  for (const reason of REASONS) restarts(reason)(0);
  const foldRoute = (id: string): string => (id === '' || id === 'other' ? id : routeLabel(id));
  const sums = createMetricSums({ own: metrics.families, merging: MERGING, folds: { route_id: foldRoute } });
  return { ...sums, restarted: (reason) => restarts(reason)(1) };
}
