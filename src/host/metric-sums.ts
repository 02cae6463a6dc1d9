// Metrics of several processes as those of one. Each worker reports what it counted since its last report, and its
// gauges as they are; the process that is scraped adds that to its own. So nothing that was counted is lost with a
// worker.
import { addDecimals, readDecimal, writeDecimal } from './decimal.ts';
import { writeFamilies, type Family, type FamilyValue } from './metrics.ts';

/** Rules by which gauges of several processes become one; a gauge without one is summed up. */
export type MergeRules = Readonly<Record<string, 'max' | 'min'>>;

export type Reporter = () => Promise<readonly Family[]>;

/** Makes a reporter. `omitted`: full names of metrics that another process tells. Never called twice at a time. */
export function createReporter(families: () => Promise<readonly Family[]>, omitted: ReadonlySet<string>): Reporter {
  const told = new Map<string, FamilyValue['value']>();
  const changesOf = ({ name, type, values }: Family): FamilyValue[] => {
    const changes = values.map((value) => {
      const key = `${name} ${keyOf(value)}`;
      const before = told.get(key);
      told.set(key, value.value);
      const change = before === undefined ? value.value : minus(value.value, before);
      // A series is told of once though nothing was counted.
      return { change: { ...value, value: change }, isNews: before === undefined || Number(change) !== 0 };
    });
    const news = changes.filter(({ isNews }) => isNews);
    // A changed histogram reports all buckets, so that they keep their order.
    return (type === 'histogram' && news.length > 0 ? changes : news).map(({ change }) => change);
  };
  return async () =>
    (await families()).flatMap((family) => {
      if (omitted.has(family.name)) return [];
      const values = family.type === 'gauge' ? family.values.filter(({ value }) => isKnown(value)) : changesOf(family);
      return values.length === 0 ? [] : [{ ...family, values }];
    });
}

export type MetricSums = {
  /** Adds a report; `worker` undefined: the worker is gone, and its gauges with it. */
  readonly add: (worker: number | undefined, report: readonly Family[]) => void;
  /** Forgets the gauges of a worker; what it counted stays. */
  readonly forget: (worker: number) => void;
  readonly text: () => Promise<string>;
};

type MetricSumsOptions = {
  /** Families of the process that is scraped. */
  readonly own: () => Promise<readonly Family[]>;
  readonly merging: MergeRules;
  /** Rules by which a label's values are folded, by its name: several processes have no more of them than one. */
  readonly folds: Readonly<Record<string, (value: string) => string>>;
};

export function createMetricSums({ own, merging, folds }: MetricSumsOptions): MetricSums {
  const counted = new Map<string, MergedFamily>();
  const gauges = new Map<number, readonly Family[]>();

  const fold = (value: FamilyValue): FamilyValue => {
    const folded = Object.entries(folds).filter(([label]) => value.labels[label] !== undefined);
    if (folded.length === 0) return value;
    const labels = folded.map(([label, become]) => [label, become(String(value.labels[label]))]);
    return { ...value, labels: { ...value.labels, ...Object.fromEntries(labels) } };
  };
  return {
    add: (worker, report) => {
      const [now, since] = partition(report);
      if (worker !== undefined) gauges.set(worker, now);
      for (const family of since) mergeInto(counted, { ...family, values: family.values.map(fold) }, merging);
    },
    forget: (worker) => void gauges.delete(worker),
    text: async () => {
      const merged = new Map<string, MergedFamily>();
      for (const family of await own()) mergeInto(merged, family, merging);
      for (const family of [...counted.values()].map(familyOf)) mergeInto(merged, family, merging);
      for (const family of [...gauges.values()].flat()) mergeInto(merged, family, merging);
      return writeFamilies([...merged.values()].map(familyOf));
    },
  };
}

type MergedFamily = Omit<Family, 'values'> & { readonly values: Map<string, FamilyValue> };

function familyOf({ values, ...about }: MergedFamily): Family {
  return { ...about, values: [...values.values()] };
}

function mergeInto(merged: Map<string, MergedFamily>, { values, ...about }: Family, merging: MergeRules): void {
  let into = merged.get(about.name);
  if (into === undefined) merged.set(about.name, (into = { ...about, values: new Map() }));
  for (const value of values) {
    const key = keyOf(value);
    const known = into.values.get(key);
    into.values.set(
      key,
      known === undefined ? value : { ...known, value: merge(known.value, value.value, merging[about.name]) },
    );
  }
}

function merge(
  a: FamilyValue['value'],
  b: FamilyValue['value'],
  how: MergeRules[string] | undefined,
): FamilyValue['value'] {
  if (how !== undefined) return how === 'max' ? Math.max(Number(a), Number(b)) : Math.min(Number(a), Number(b));
  return typeof a === 'number' && typeof b === 'number' ? a + b : addTexts(String(a), String(b));
}

function minus(now: FamilyValue['value'], before: FamilyValue['value']): FamilyValue['value'] {
  if (typeof now === 'number' && typeof before === 'number') return now - before;
  const { units, scale } = readDecimal(String(before));
  return writeDecimal(addDecimals(readDecimal(String(now)), { units: -units, scale }));
}

function addTexts(a: string, b: string): string {
  return writeDecimal(addDecimals(readDecimal(a), readDecimal(b)));
}

function partition(report: readonly Family[]): readonly [gauges: readonly Family[], counted: readonly Family[]] {
  const isGauge = ({ type }: Family): boolean => type === 'gauge';
  return [report.filter(isGauge), report.filter((family) => !isGauge(family))];
}

/** JSON has no other numbers. */
function isKnown(value: FamilyValue['value']): boolean {
  return typeof value === 'string' || Number.isFinite(value);
}

function keyOf({ labels, metricName = '' }: FamilyValue): string {
  return `${metricName} ${JSON.stringify(labels)}`;
}
