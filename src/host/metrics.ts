// Prometheus metrics behind plain functions: a counter binds a child once and calls it, a scrape gets text.
// Every name has the prefix `tollgate_`; the names themselves belong to those who count.
import { Counter, Gauge, Registry, collectDefaultMetrics } from 'prom-client';
import { systemSchedule, type Schedule } from './clock.ts';
import { writeDecimal, type Decimal } from './decimal.ts';
import { bind, createCounter, createHistogram, type Bound, type Labels } from './series.ts';
import { settlesWithin } from './within.ts';

export type Metrics = {
  readonly counter: (name: string, help: string, labels: readonly string[]) => Bound;
  /** Seconds, in buckets from 50 microseconds to 60 seconds. */
  readonly duration: (name: string, help: string, labels: readonly string[]) => Bound;
  /** A histogram in buckets with these upper bounds, ascending. */
  readonly histogram: (name: string, help: string, labels: readonly string[], buckets: readonly number[]) => Bound;
  readonly gauge: (name: string, help: string, labels: readonly string[]) => Bound;
  /**
   * Values that are kept elsewhere and read at a scrape: series that `read` does not set are gone. A `read` that fails or
   * takes longer than 2 seconds tells nothing, and the other metrics are told all the same.
   */
  readonly observed: (
    kind: 'counter' | 'gauge',
    name: string,
    help: string,
    labels: readonly string[],
    read: (set: (values: Labels, value: number) => void) => void | Promise<void>,
  ) => void;
  /** Adds a metric of exact decimals: a float cannot hold a sum of money. Its `read` is waited for as that of `observed`. */
  readonly exact: (
    kind: 'counter' | 'gauge',
    name: string,
    help: string,
    labels: readonly string[],
    read: (set: (values: Labels, value: Decimal) => void) => void | Promise<void>,
  ) => void;
  /** Lists all families as they are now. */
  readonly families: () => Promise<readonly Family[]>;
  readonly text: () => Promise<string>;
  readonly contentType: string;
};

/** A metric with its series, as plain data. */
export type Family = {
  readonly name: string;
  readonly help: string;
  readonly type: string;
  readonly values: readonly FamilyValue[];
};
export type FamilyValue = {
  readonly labels: Readonly<Record<string, string | number | undefined>>;
  /** Text: an exact decimal. */
  readonly value: number | string;
  /** Name if it is not that of the family: `..._bucket`. */
  readonly metricName?: string | undefined;
};

const PREFIX = 'tollgate_';
/** Longest wait for a value that is kept elsewhere: longer than a readiness check, shorter than scrapes wait. */
const READ_MS = 2_000;
const BUCKETS = [
  0.00005, 0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60,
];

/**
 * Settings of the library's look at the event loop. By default it wakes an idle process a hundred times a second, which
 * costs more than all else that such a process does. At ten times a second it still sees every pause that matters. What
 * it measures for the metrics that are taken out below never wakes.
 */
const EVENT_LOOP = { eventLoopMonitoringPrecision: 100, eventLoopUtilizationTimeout: 2 ** 31 - 1 };

/** Defaults of the library whose names `promtool check metrics` rejects; `nodejs_active_handles` and its like say the same. */
const MISNAMED = [
  'nodejs_active_handles_total',
  'nodejs_active_requests_total',
  'nodejs_active_resources_total',
  'nodejs_eventloop_utilization_histogram',
  'nodejs_eventloop_utilization_summary',
];

export function createMetrics(schedule: Schedule = systemSchedule): Metrics {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry, ...EVENT_LOOP });
  for (const name of MISNAMED) registry.removeSingleMetric(name);
  const registers = [registry];
  // The library holds numbers only.
  const exact: (() => Promise<Family>)[] = [];
  const common = (name: string, help: string, labels: readonly string[]) => ({
    name: PREFIX + name,
    help,
    labelNames: [...labels],
    registers,
  });
  const families = async (): Promise<readonly Family[]> => {
    const [numbers, decimals] = await Promise.all([
      registry.getMetricsAsJSON(),
      Promise.all(exact.map((read) => read())),
    ]);
    return [...numbers.map(({ name, help, type, values }) => ({ name, help, type, values })), ...decimals];
  };
  return {
    counter: (name, help, labels) => bind(labels, createCounter(common(name, help, labels))),
    duration: (name, help, labels) =>
      bind(labels, createHistogram({ ...common(name, help, labels), buckets: BUCKETS })),
    histogram: (name, help, labels, buckets) =>
      bind(labels, createHistogram({ ...common(name, help, labels), buckets })),
    gauge: (name, help, labels) => {
      const gauge = new Gauge<string>(common(name, help, labels));
      return bind(labels, (values) => {
        const child = gauge.labels(values);
        return (value) => child.set(value);
      });
    },
    observed: (kind, name, help, labels, read) => {
      const options = common(name, help, labels);
      if (kind === 'counter') {
        const counter: Counter<string> = new Counter({
          ...options,
          collect: () => {
            counter.reset();
            if (labels.length === 0) counter.remove();
            return readInTime(read, schedule, (values, value) => counter.labels({ ...values }).inc(value));
          },
        });
        return;
      }
      const gauge: Gauge<string> = new Gauge({
        ...options,
        collect: () => {
          gauge.reset();
          // The library starts a gauge without labels at 0, though no such value was set.
          if (labels.length === 0) gauge.remove();
          return readInTime(read, schedule, (values, value) => gauge.labels({ ...values }).set(value));
        },
      });
    },
    exact: (kind, name, help, _labels, read) => {
      exact.push(async () => {
        const values: FamilyValue[] = [];
        await readInTime(read, schedule, (named, value: Decimal) => {
          values.push({ labels: named, value: writeDecimal(value) });
        });
        return { name: PREFIX + name, help, type: kind, values };
      });
    },
    families,
    text: async () => writeFamilies(await families()),
    contentType: registry.contentType,
  };
}

type SetValue<V> = (values: Labels, value: V) => void;

/** Reads values, and waits READ_MS at most. What comes later is dropped: it would mix with what the next scrape reads. */
function readInTime<V>(
  read: (set: SetValue<V>) => void | Promise<void>,
  schedule: Schedule,
  set: SetValue<V>,
): void | Promise<void> {
  let isOver = false;
  const reading = read((values, value) => {
    if (!isOver) set(values, value);
  });
  if (reading === undefined) return undefined;
  return settlesWithin(reading, READ_MS, schedule).then(() => {
    isOver = true;
  });
}

/** Writes families in the text format of Prometheus. */
export function writeFamilies(families: readonly Family[]): string {
  return families.map((family) => `${linesOf(family).join('\n')}\n`).join('\n');
}

function linesOf({ name, help, type, values }: Family): string[] {
  const lines = values.map(({ labels, value, metricName = name }) => {
    const named = Object.entries(labels).map(([label, text]) => `${label}="${escapeLabel(String(text))}"`);
    return `${metricName}${named.length === 0 ? '' : `{${named.join(',')}}`} ${writeValue(value)}`;
  });
  return [`# HELP ${name} ${help}`, `# TYPE ${name} ${type}`, ...lines];
}

function writeValue(value: number | string): string {
  return value === Infinity ? '+Inf' : value === -Infinity ? '-Inf' : String(value);
}

function escapeLabel(value: string): string {
  return value.replace(/[\\"\n]/g, (character) => (character === '\n' ? '\\n' : `\\${character}`));
}
