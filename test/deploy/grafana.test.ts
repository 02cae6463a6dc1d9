// The dashboard for Grafana against the program: it can be imported, nothing lies over anything else, and each query is
// PromQL about metrics that are registered, with labels that they have. test/e2e/alerts.test.ts asks live processes.
import { existsSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { createMetrics } from '../../src/host/metrics.ts';
import { DASHBOARD, dashboard, PANELS, QUERIES, readQuery } from './grafana.ts';
import { metricNamed, SCRAPED } from './registered.ts';
import { readText, readYaml, ROOT } from './support.ts';

test('behaviour: the dashboard has its rows in order, and no panel lies over another', () => {
  const rows = dashboard.panels.filter(({ type }) => type === 'row').map(({ title }) => title);
  expect(rows).toEqual([
    ...['Revenue', 'Requests by outcome', 'Conversion', 'Plans and passes', 'Latency', 'Facilitators'],
    ...['Ledger and store', 'Routes and sync', 'Webhooks', 'Workers and processes'],
  ]);
  const ids = dashboard.panels.map(({ id }) => id);
  expect(new Set(ids).size).toBe(ids.length);
  const taken = new Map<string, string>();
  for (const { title, gridPos } of dashboard.panels) {
    const { h, w, x, y } = gridPos;
    expect(x + w, title).toBeLessThanOrEqual(24);
    for (let column = x; column < x + w; column++) {
      for (let line = y; line < y + h; line++) {
        const place = `${column} ${line}`;
        expect([title, taken.get(place)]).toEqual([title, undefined]);
        taken.set(place, title);
      }
    }
  }
});

test('behaviour: a legend names labels that its query keeps, and each query is about the chosen job', () => {
  for (const { title, targets } of PANELS) {
    for (const { expr, legendFormat } of targets) {
      const { kept, selectors } = readQuery(expr.replaceAll('$__rate_interval', '5m').replaceAll('$__range', '5m'));
      for (const [, label] of legendFormat.matchAll(/\{\{(\w+)\}\}/g)) expect(kept, title).toContain(label);
      for (const { metric, labels } of selectors)
        expect([metric, ...labels], title).toEqual(expect.arrayContaining(SCRAPED));
    }
  }
});

describe.each(QUERIES)('$of', ({ expr }) => {
  test('behaviour: a query of the dashboard is PromQL, about metrics that are registered and labels that they have', async () => {
    const { faults, selectors, kept } = readQuery(expr);
    expect(faults, expr).toEqual([]);
    expect(selectors.length).toBeGreaterThan(0);
    const defaults = await createMetrics().text();
    for (const { metric, labels } of selectors) {
      if (!metric.startsWith('tollgate_')) {
        expect(defaults, metric).toContain(`# TYPE ${metric} `);
        continue;
      }
      const known = metricNamed(metric);
      expect(known, `${metric} is no series of Tollgate's`).toBeDefined();
      const own = [...(known?.labels ?? []), ...SCRAPED];
      for (const label of labels) expect(own, metric).toContain(label);
    }
    const own = selectors.flatMap(({ metric }) => [...(metricNamed(metric)?.labels ?? []), ...SCRAPED]);
    for (const label of kept) expect(own, expr).toContain(label);
  });
});

test.each([
  ['sum by (a) rate(x)', 'what is no PromQL'],
  ['sum(rate(x[5m])', 'an open bracket'],
])('refuses: %s, %s, so that a fault in a query is seen', (expr) => {
  expect(readQuery(expr).faults).not.toEqual([]);
});

test('behaviour: the Grafana of compose.yaml finds the dashboard and the Prometheus beside it', () => {
  const compose = z
    .object({ services: z.record(z.string(), z.looseObject({ volumes: z.array(z.string()).default([]) })) })
    .parse(readYaml('config/compose.yaml')[0]);
  const { grafana, prometheus } = compose.services;
  expect(prometheus).toBeDefined();
  const mounts = (grafana?.volumes ?? []).map((volume) => volume.split(':'));
  for (const [from = ''] of mounts.filter(([name]) => name?.startsWith('./')))
    expect(existsSync(path.join(ROOT, 'config', from)), from).toBe(true);
  const providers = z
    .looseObject({ providers: z.array(z.looseObject({ options: z.object({ path: z.string() }) })) })
    .parse(readYaml('config/grafana/provisioning/dashboards/tollgate.yaml')[0]);
  const [provider] = providers.providers;
  const target = `${provider?.options.path}/tollgate.json`;
  expect(mounts).toContainEqual(['./grafana/tollgate.json', target, 'ro']);
  expect(grafana).toMatchObject({
    environment: { GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH: target, GF_AUTH_ANONYMOUS_ORG_ROLE: 'Viewer' },
    ports: [expect.stringMatching(/^127\.0\.0\.1:/)],
  });
  expect(mounts).toContainEqual(['./grafana/provisioning', '/etc/grafana/provisioning', 'ro']);
  const [source] = readYaml('config/grafana/provisioning/datasources/prometheus.yaml');
  expect(source).toMatchObject({
    datasources: [{ type: 'prometheus', url: 'http://prometheus:9090', isDefault: true }],
  });
  // Provisioned, the variable of the dashboard takes the one Prometheus that there is; imported, people choose theirs.
  expect(dashboard.templating.list[0]).toMatchObject({
    name: 'DS_PROMETHEUS',
    type: 'datasource',
    query: 'prometheus',
  });
  expect(readText(DASHBOARD)).not.toMatch(/"uid": "(?!\$\{DS_PROMETHEUS\}|tollgate|-- Grafana --)/);
});
