// Starts tracing where it is configured. What does it is loaded only then: without `otlp` a process holds none of it.
import type { Config } from '../config/config.ts';
import type { CurrentSnapshot } from '../gateway/routes/current-snapshot.ts';
import type { Tracing } from '../gateway/tracing/tracing.ts';
import type { Clock, Random } from '../host/clock.ts';
import type { Log } from '../host/log.ts';
import type { Metrics } from '../host/metrics.ts';
import type { Closers } from './closers.ts';

export type TracingDeps = {
  readonly current: Pick<CurrentSnapshot, 'snapshot'>;
  readonly metrics: Metrics;
  readonly closers: Closers;
  readonly log: Log;
  readonly clock: Clock;
  readonly random: Random;
  readonly version: string;
};

/** Starts tracing in a process that serves requests; undefined: nothing is traced. */
export async function startTracing(config: Config, deps: TracingDeps): Promise<Tracing | undefined> {
  if (config.otlp === undefined) return undefined;
  const { exportSpans } = await import('./span-export.ts');
  return exportSpans(config, config.otlp, deps);
}
