// The dashboard that is shipped: its panels and queries as data, and what a query names, by Prometheus's own grammar.
import { parser } from '@prometheus-io/lezer-promql';
import { z } from 'zod';
import { readText } from './support.ts';

export const DASHBOARD = 'config/grafana/tollgate.json';
export const DATASOURCE = '${DS_PROMETHEUS}';

const datasource = z.strictObject({ type: z.literal('prometheus'), uid: z.literal(DATASOURCE) });
const gridPos = z.strictObject({ h: z.int().min(1), w: z.int().min(1).max(24), x: z.int().min(0), y: z.int().min(0) });
const row = z.looseObject({
  ...{ id: z.int(), type: z.literal('row'), title: z.string().min(1), gridPos },
  ...{ collapsed: z.literal(false), panels: z.array(z.never()) },
});
const panel = z.looseObject({
  id: z.int(),
  type: z.enum(['timeseries', 'stat', 'bargauge']),
  title: z.string().min(1),
  description: z.string().regex(/\.$/),
  datasource,
  gridPos,
  fieldConfig: z.looseObject({ defaults: z.looseObject({ unit: z.string() }) }),
  targets: z
    .array(
      z.strictObject({
        expr: z.string().min(1),
        legendFormat: z.string().min(1),
        instant: z.boolean(),
        refId: z.string(),
        datasource,
      }),
    )
    .min(1),
});

export const dashboard = z
  .looseObject({
    __inputs: z.array(z.looseObject({ name: z.literal('DS_PROMETHEUS'), type: z.literal('datasource') })).length(1),
    uid: z.literal('tollgate'),
    title: z.literal('Tollgate'),
    schemaVersion: z.int().min(39),
    templating: z.strictObject({
      list: z.array(z.looseObject({ name: z.string(), type: z.string(), definition: z.string().optional() })),
    }),
    annotations: z.strictObject({ list: z.array(z.looseObject({ expr: z.string().optional() })) }),
    panels: z.array(z.union([row, panel])),
  })
  .parse(JSON.parse(readText(DASHBOARD)));

export type Panel = z.output<typeof panel>;
export const PANELS = dashboard.panels.filter((each): each is Panel => each.type !== 'row');

/** Grafana's variables, with what they may stand for in Prometheus. */
const FILLED: Readonly<Record<string, string>> = {
  $__rate_interval: '10s',
  $__range: '30s',
  $job: 'tollgate',
  $instance: '.+',
};

/** Every query of the dashboard, with its variables filled in. */
export const QUERIES: readonly { readonly of: string; readonly expr: string }[] = [
  ...PANELS.flatMap(({ title, targets }) => targets.map(({ expr }) => ({ of: title, expr }))),
  ...dashboard.annotations.list.flatMap(({ expr }) => (expr === undefined ? [] : [{ of: 'annotation', expr }])),
].map(({ of, expr }) => ({ of, expr: expr.replace(/\$\w+/g, (name) => FILLED[name] ?? name) }));

export type NamedSelector = { readonly metric: string; readonly labels: readonly string[] };

/** What a query names. `faults`: where it is no PromQL. */
export function readQuery(expr: string): {
  readonly faults: readonly string[];
  readonly selectors: readonly NamedSelector[];
  /** Labels that it sums up or joins by. */
  readonly kept: readonly string[];
} {
  const faults: string[] = [];
  const selectors: { metric: string; labels: string[] }[] = [];
  const kept: string[] = [];
  parser.parse(expr).iterate({
    enter: ({ name, type, from, to, node }) => {
      const text = expr.slice(from, to);
      if (type.isError) faults.push(`at ${from}: ${text}`);
      if (name === 'VectorSelector')
        selectors.push({ metric: expr.slice(from, node.firstChild?.to ?? to), labels: [] });
      if (name !== 'LabelName') return;
      if (node.parent?.name === 'GroupingLabels') kept.push(text);
      else selectors.at(-1)?.labels.push(text);
    },
  });
  return { faults, selectors, kept };
}
