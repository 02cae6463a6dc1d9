// Every metric that a file of src registers, read from the source, and what its series are called.
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { ROOT } from './support.ts';

export const SOURCES = readdirSync(path.join(ROOT, 'src'), { recursive: true, encoding: 'utf8' })
  .filter((file) => file.endsWith('.ts'))
  .map((file) => readFileSync(path.join(ROOT, 'src', file), 'utf8'));

type Metric = { readonly kind: string; readonly labels: readonly string[] };

/** By its full name. */
function registered(): Map<string, Metric> {
  const found = new Map<string, Metric>();
  const call =
    /\.(?:(counter|duration|gauge)\(|(?:observed|exact)\(\s*'(counter|gauge)',)\s*'([a-z_]+)',\s*(?:'[^']*'|"[^"]*"|\w+),\s*\[([^\]]*)\]/g;
  for (const text of SOURCES) {
    for (const [, plain, observed, name, labels = ''] of text.matchAll(call)) {
      found.set(`tollgate_${name}`, { kind: plain ?? observed ?? '', labels: labels.match(/[a-z_]+/g) ?? [] });
    }
  }
  return found;
}

const METRICS = registered();

/** What scraping adds to every series. */
export const SCRAPED = ['job', 'instance'];

/** The metric whose series are called so; undefined: none is. */
export function metricNamed(series: string): Metric | undefined {
  const known = METRICS.get(series);
  if (known !== undefined) return known.kind === 'duration' ? undefined : known;
  const [, base, suffix] = /^(.*)_(bucket|count|sum)$/.exec(series) ?? [];
  const histogram = METRICS.get(base ?? '');
  if (histogram?.kind !== 'duration') return undefined;
  return suffix === 'bucket' ? { ...histogram, labels: [...histogram.labels, 'le'] } : histogram;
}
