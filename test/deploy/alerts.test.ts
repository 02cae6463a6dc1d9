// The alerts against the metrics: an expression names only what the program registers, with the labels that it has and
// values that it writes; an alert on anything else would stay silent for ever. Where promtool is installed it runs the
// cases beside this file.
import { spawnSync } from 'node:child_process';
import { describe, expect, test } from 'vitest';
import { REDEEM_MS } from '../../src/domain/payment/claim-policy.ts';
import { createMetrics } from '../../src/host/metrics.ts';
import { ALERTS, keptLabelsOf, selectorsOf } from './alerts.ts';
import { metricNamed, SCRAPED, SOURCES } from './registered.ts';
import { readText, ROOT } from './support.ts';

const CASES = ['test/deploy/alerts.promtool.yaml', 'test/deploy/alerts-day.promtool.yaml'];

test('behaviour: the alert about answers that did not arrive says for how long they may be fetched', () => {
  const action = ALERTS.find(({ alert }) => alert === 'TollgatePaidNotDelivered')?.annotations['action'];
  expect(action).toContain(`again for ${REDEEM_MS / 3_600_000} hours without paying`);
});

describe.each(ALERTS)('$alert', ({ alert, expr, annotations }) => {
  const used = selectorsOf(expr);
  const own = used.filter(({ name }) => name.startsWith('tollgate_'));

  test('behaviour: an alert names metrics that are registered, and labels that they have', async () => {
    expect(used.length).toBeGreaterThan(0);
    const defaults = await createMetrics().text();
    for (const { name, matchers } of used) {
      if (!name.startsWith('tollgate_')) {
        expect(name === 'up' || defaults.includes(`# TYPE ${name} `), name).toBe(true);
        expect(matchers).toEqual([{ label: 'job', operator: '=', value: 'tollgate' }]);
        continue;
      }
      const metric = metricNamed(name);
      expect(metric, `${name} is no series of Tollgate's`).toBeDefined();
      for (const { label } of matchers) expect([...(metric?.labels ?? []), ...SCRAPED], name).toContain(label);
    }
    const labels = new Set([...own.flatMap(({ name }) => metricNamed(name)?.labels ?? []), ...SCRAPED]);
    for (const label of keptLabelsOf(expr)) expect(labels).toContain(label);
  });

  test('behaviour: an alert waits for label values that the program writes', () => {
    for (const { name, matchers } of own) {
      // Codes are numbers; states and results stand in the source as they are.
      for (const { label, value } of matchers.filter((matcher) => matcher.label !== 'code')) {
        for (const word of value.split('|')) {
          expect(
            SOURCES.some((text) => text.includes(`'${word}'`)),
            `${name}{${label}="${word}"}`,
          ).toBe(true);
        }
      }
    }
  });

  test('behaviour: an alert says what happened and what to do, with values that the series carry', () => {
    for (const [, name] of annotations.summary.matchAll(/\$labels\.(\w+)/g))
      expect(expr).toContain(name === 'instance' && !expr.includes('by') ? '' : name);
    expect(annotations.action.length).toBeGreaterThan(20);
    const cases = CASES.map(readText).join('\n');
    const named = [...cases.matchAll(new RegExp(`alertname: ${alert}\\b[^\\n]*\\n(\\s+exp_alerts:)?`, 'g'))];
    expect(
      named.some(([, fires]) => fires !== undefined),
      'a case that fires',
    ).toBe(true);
    expect(
      named.some(([, fires]) => fires === undefined),
      'a case that stays quiet',
    ).toBe(true);
  });
});

const promtool = spawnSync('promtool', ['--version']).status === 0;

describe.skipIf(!promtool)('promtool (skipped where it is not installed)', () => {
  const run = (...args: string[]): { code: number | null; output: string } => {
    const { status, stdout, stderr } = spawnSync('promtool', args, { cwd: ROOT, encoding: 'utf8' });
    return { code: status, output: stdout + stderr };
  };

  test('behaviour: promtool reads the alerts and the configuration', () => {
    expect(run('check', 'rules', 'config/prometheus/alerts.yml')).toMatchObject({ code: 0 });
    expect(run('check', 'config', 'config/prometheus/prometheus.yml')).toMatchObject({ code: 0 });
  });

  test('behaviour: every alert fires when it should, and only then', { timeout: 60_000 }, () => {
    expect(run('test', 'rules', ...CASES)).toMatchObject({ code: 0 });
  });
});
