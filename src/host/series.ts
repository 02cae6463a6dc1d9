// Series that a request adds to, in plain numbers: counters and histograms. The library's own observing costs more than all
// the rest of counting. A scrape reads them in the library's shape, and the library writes the text.
import {
  Counter,
  Histogram,
  type CounterConfiguration,
  type MetricObjectWithValues,
  type MetricValueWithName,
  type Registry,
} from 'prom-client';

export type Labels = Readonly<Record<string, string>>;

/** The child for these label values, in the order of the label names; made once, then only looked up. */
export type Bound = (first?: string, second?: string, third?: string, fourth?: string) => (amount: number) => void;

type Child = (amount: number) => void;

/** Looks the child of label values up, and makes it once. */
export function bind(names: readonly string[], make: (labels: Record<string, string>) => Child): Bound {
  if (names.length > 4) throw new Error(`more labels than are looked up: ${names.join(', ')}`);
  const children = new Map<string, Map<string, Map<string, Map<string, Child>>>>();
  return (first = '', second = '', third = '', fourth = '') => {
    let seconds = children.get(first);
    if (seconds === undefined) children.set(first, (seconds = new Map()));
    let thirds = seconds.get(second);
    if (thirds === undefined) seconds.set(second, (thirds = new Map()));
    let fourths = thirds.get(third);
    if (fourths === undefined) thirds.set(third, (fourths = new Map()));
    let child = fourths.get(fourth);
    if (child === undefined) {
      const values = [first, second, third, fourth];
      child = make(Object.fromEntries(names.map((name, index) => [name, values[index] ?? ''])));
      fourths.set(fourth, child);
    }
    return child;
  };
}

/** Registers the counter; what is returned makes the child for label values. */
export function createCounter(settings: Omit<CounterConfiguration<string>, 'collect'>): (labels: Labels) => Child {
  // Counts are kept here and handed over at a scrape: a request only adds to a number.
  const handOver: (() => void)[] = [];
  const collect = (): void => handOver.forEach((hand) => hand());
  const counter = new Counter<string>({ ...settings, collect });
  return (labels) => {
    const child = counter.labels({ ...labels });
    let counted = 0;
    handOver.push(() => {
      child.inc(counted);
      counted = 0;
    });
    return (by) => {
      counted += by;
    };
  };
}

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

/** Registers the histogram; what is returned makes the child for label values. */
export function createHistogram(settings: HistogramSettings): (labels: Labels) => Child {
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
