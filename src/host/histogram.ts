// Histograms of durations in plain numbers: a request adds to three, and the library's own observing costs more than all
// the rest of counting. A scrape reads them in the library's shape, and the library writes the text.
import { Histogram, type MetricObjectWithValues, type MetricValueWithName, type Registry } from 'prom-client';

type Labels = Record<string, string>;
type Values = MetricValueWithName<string>[];

type Series = {
  readonly labels: Labels;
  /** One per bucket, not cumulative, and one for what is longer than all of them. */
  readonly counts: Float64Array;
  sum: number;
};

export type DurationSettings = {
  readonly name: string;
  readonly help: string;
  readonly labelNames: string[];
  readonly registers: Registry[];
  /** Upper bounds in seconds, ascending. */
  readonly buckets: readonly number[];
};

/** Registers the histogram; what is returned makes the child for label values: `(seconds) => void`. */
export function createDurations(settings: DurationSettings): (labels: Labels) => (seconds: number) => void {
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
    return (seconds) => {
      let at = 0;
      while (at < buckets.length && seconds > (buckets[at] ?? 0)) at++;
      counts[at] = (counts[at] ?? 0) + 1;
      series.sum += seconds;
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

  /** What the registry asks a histogram for. */
  async getForPromString(): Promise<MetricObjectWithValues<MetricValueWithName<string>>> {
    const { name, help } = this.#about;
    return { name, help, type: 'histogram', aggregator: 'sum', collect: () => undefined, values: this.#read() };
  }
}

function valuesOf({ name, buckets }: DurationSettings, { labels, counts, sum }: Series): Values {
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
