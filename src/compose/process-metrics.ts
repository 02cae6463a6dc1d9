// The metrics of one process. The first of them names the version of Tollgate and of Node that runs.
import { createMetrics, type Metrics } from '../host/metrics.ts';

export function createProcessMetrics(version: string): Metrics {
  const metrics = createMetrics();
  metrics.gauge('build_info', 'Version of Tollgate and of Node.', ['version', 'node'])(version, process.version)(1);
  return metrics;
}
