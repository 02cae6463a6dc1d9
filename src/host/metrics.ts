// Prometheus metrics behind plain functions: a counter binds a child once and calls it, a scrape gets text.
// Every name has the prefix `tollgate_`; the names themselves belong to those who count.
import {
  Counter,
  Gauge,
  Registry,
  collectDefaultMetrics,
  Histogram,
  type MetricObjectWithValues,
  type MetricValueWithName,
} from 'prom-client';

export type Labels = Readonly<Record<string, string>>;

/** Decimal number as `units / 10^scale`. */
export type Decimal = { readonly units: bigint; readonly scale: number };

/** The child for these label values, in the order of the label names; made once, then only looked up. */
type Bound = (first?: string, second?: string, third?: string) => (amount: number) => void;

export type Metrics = {
  readonly counter: (name: string, help: string, labels: readonly string[]) => Bound;
  /** Seconds, in buckets from 50 microseconds to 60 seconds. */
  readonly duration: (name: string, help: string, labels: readonly string[]) => Bound;
  /** A histogram in buckets with these upper bounds, ascending. */
  readonly histogram: (name: string, help: string, labels: readonly string[], buckets: readonly number[]) => Bound;
  readonly gauge: (name: string, help: string, labels: readonly string[]) => Bound;
  /** Values that are kept elsewhere and read at a scrape: series that `read` does not set are gone. */
  readonly observed: (
    kind: 'counter' | 'gauge',
    name: string,
    help: string,
    labels: readonly string[],
    read: (set: (values: Labels, value: number) => void) => void | Promise<void>,
  ) => void;
  /** Adds a metric of exact decimals: a float cannot hold a sum of money. */
  readonly exact: (
    kind: 'counter' | 'gauge',
    name: string,
    help: string,
    labels: readonly string[],
    read: (set: (values: Labels, value: Decimal) => void) => void,
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

export function createMetrics(): Metrics {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry, ...EVENT_LOOP });
  for (const name of MISNAMED) registry.removeSingleMetric(name);
  const registers = [registry];
  // The library holds numbers only.
  const exact: (() => Family)[] = [];
  const common = (name: string, help: string, labels: readonly string[]) => ({
    name: PREFIX + name,
    help,
    labelNames: [...labels],
    registers,
  });
  const families = async (): Promise<readonly Family[]> => [
    ...(await registry.getMetricsAsJSON()).map(({ name, help, type, values }) => ({ name, help, type, values })),
    ...exact.map((read) => read()),
  ];
  return {
    counter: (name, help, labels) => {
      // Counts are kept here and handed over at a scrape: a request only adds to a number.
      const handOver: (() => void)[] = [];
      const collect = (): void => handOver.forEach((hand) => hand());
      const counter = new Counter<string>({ ...common(name, help, labels), collect });
      return bind(labels, (values) => {
        const child = counter.labels(values);
        let counted = 0;
        handOver.push(() => {
          child.inc(counted);
          counted = 0;
        });
        return (by) => {
          counted += by;
        };
      });
    },
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
            return read((values, value) => counter.labels({ ...values }).inc(value));
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
          return read((values, value) => gauge.labels({ ...values }).set(value));
        },
      });
    },
    exact: (kind, name, help, _labels, read) => {
      exact.push(() => {
        const values: FamilyValue[] = [];
        read((named, value) => values.push({ labels: named, value: writeDecimal(value) }));
        return { name: PREFIX + name, help, type: kind, values };
      });
    },
    families,
    text: async () => writeFamilies(await families()),
    contentType: registry.contentType,
  };
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

export function addDecimals(a: Decimal, b: Decimal): Decimal {
  const scale = Math.max(a.scale, b.scale);
  return { units: a.units * 10n ** BigInt(scale - a.scale) + b.units * 10n ** BigInt(scale - b.scale), scale };
}

/** Reads what `writeDecimal` wrote. */
export function readDecimal(text: string): Decimal {
  const [whole = '', fraction = ''] = text.split('.');
  return { units: BigInt(whole + fraction), scale: fraction.length };
}

/** Writes a decimal without zeros at its end. */
export function writeDecimal({ units, scale }: Decimal): string {
  const digits = units.toString().padStart(scale + 1, '0');
  const fraction = scale === 0 ? '' : digits.slice(-scale).replace(/0+$/, '');
  const whole = scale === 0 ? digits : digits.slice(0, -scale);
  return fraction === '' ? whole : `${whole}.${fraction}`;
}

function escapeLabel(value: string): string {
  return value.replace(/[\\"\n]/g, (character) => (character === '\n' ? '\\n' : `\\${character}`));
}

type Child = (amount: number) => void;

function bind(names: readonly string[], make: (labels: Record<string, string>) => Child): Bound {
  if (names.length > 3) throw new Error(`more labels than are looked up: ${names.join(', ')}`);
  const children = new Map<string, Map<string, Map<string, Child>>>();
  return (first = '', second = '', third = '') => {
    let seconds = children.get(first);
    if (seconds === undefined) children.set(first, (seconds = new Map()));
    let thirds = seconds.get(second);
    if (thirds === undefined) seconds.set(second, (thirds = new Map()));
    let child = thirds.get(third);
    if (child === undefined) {
      const values = [first, second, third];
      child = make(Object.fromEntries(names.map((name, index) => [name, values[index] ?? ''])));
      thirds.set(third, child);
    }
    return child;
  };
}

// Histograms in plain numbers: a request adds to three, and the library's own observing costs more than all
// the rest of counting. A scrape reads them in the library's shape, and the library writes the text.

type Values = MetricValueWithName<string>[];

type Series = {
  readonly labels: Labels;
  /** Numbers of values by bucket, not cumulative, with one more for values beyond the last. */
  readonly counts: Float64Array;
  sum: number;
};

type HistogramSettings = {
  readonly name: string;
  readonly help: string;
  readonly labelNames: string[];
  readonly registers: Registry[];
  /** Upper bounds, ascending. */
  readonly buckets: readonly number[];
};

/** Registers the histogram; what is returned makes the child for label values: `(amount) => void`. */
function createHistogram(settings: HistogramSettings): (labels: Labels) => (amount: number) => void {
  const { buckets } = settings;
  const children: Series[] = [];
  const read = (): Values => children.flatMap((series) => valuesOf(settings, series));
  const { registers } = settings;
  for (const registry of registers)
    registry.registerMetric(new CountedHistogram({ ...settings, buckets: [...buckets], registers: [] }, read));
  return (labels) => {
    const series: Series = { labels, counts: new Float64Array(buckets.length + 1), sum: 0 };
    children.push(series);
    const { counts } = series;
    return (amount) => {
      let at = 0;
      while (at < buckets.length && amount > (buckets[at] ?? 0)) at++;
      counts[at] = (counts[at] ?? 0) + 1;
      series.sum += amount;
    };
  };
}

class CountedHistogram extends Histogram<string> {
  readonly #read: () => Values;
  readonly #about: { name: string; help: string };

  constructor(configuration: ConstructorParameters<typeof Histogram<string>>[0], read: () => Values) {
    super(configuration);
    this.#read = read;
    this.#about = configuration;
  }

  override get(): Promise<MetricObjectWithValues<MetricValueWithName<string>>> {
    return this.getForPromString();
  }

  /** Answers what the registry asks a histogram for. */
  async getForPromString(): Promise<MetricObjectWithValues<MetricValueWithName<string>>> {
    const { name, help } = this.#about;
    return { name, help, type: 'histogram', aggregator: 'sum', collect: () => undefined, values: this.#read() };
  }
}

function valuesOf({ name, buckets }: HistogramSettings, { labels, counts, sum }: Series): Values {
  const values: Values = [];
  let below = 0;
  for (const [at, bound] of [...buckets, Infinity].entries()) {
    below += counts[at] ?? 0;
    const le = bound === Infinity ? '+Inf' : bound;
    values.push({ metricName: `${name}_bucket`, labels: { ...labels, le }, value: below });
  }
  values.push({ metricName: `${name}_sum`, labels, value: sum }, { metricName: `${name}_count`, labels, value: below });
  return values;
}
