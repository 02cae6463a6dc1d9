// Makes an alert fire over series as a real process exports them: promtool keeps every label, and the values here are those
// of the trouble that the alert is about.
import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { selectorsOf, type ALERTS } from './alerts.ts';

export type Series = { readonly name: string; readonly labels: Readonly<Record<string, string>> };

export const promtool = spawnSync('promtool', ['--version']).status === 0;

const RISING = '0+60x120';
const slow = ({ labels }: Series): string =>
  Number(labels['le']?.replace('+Inf', 'Infinity')) >= 10 ? RISING : '0x120';

/** By alert; undefined: the series is not there. Elsewhere everything grows. */
const TROUBLE: Readonly<Record<string, (series: Series) => string | undefined>> = {
  TollgateDown: () => '0x120',
  TollgateNeverSynced: ({ name }) => (name === 'tollgate_sync_total' ? RISING : undefined),
  TollgateRoutesStale: () => '0x120',
  TollgateStoreAway: () => '0x120',
  TollgateWebhooksWaiting: () => '7200x120',
  TollgatePaymentsImpossible: () => '0x120',
  TollgateFacilitatorSlow: slow,
  TollgateReplays: ({ labels }) => (labels['result'] === 'already_used' ? '0+600x120' : '0+1x120'),
  TollgateRevenueStopped: () => '0+60x24 1440x12',
  TollgateDrainingLong: () => '1x120',
  TollgateOverheadHigh: slow,
  TollgateNearItsLimit: () => '9000x120',
  TollgatePriceUnavailable: ({ labels }) => (labels['result'] === 'priced' ? '7x120' : RISING),
  TollgatePlanObservesLong: () => '4000000000x800',
};

/** Step of the series, and when it is looked. */
type Pace = { readonly interval: string; readonly at: string };
const PACES: Readonly<Record<string, Pace>> = {
  TollgateRevenueStopped: { interval: '1h', at: '32h' },
  TollgatePlanObservesLong: { interval: '1h', at: '744h' },
};
const PACE: Pace = { interval: '1m', at: '40m' };

/** What promtool says of those of `alerts` that do not fire over `series`; undefined if all do. */
export function findSilence(
  alerts: readonly (typeof ALERTS)[number][],
  series: readonly Series[],
  folder: string,
): string | undefined {
  const files = alerts.map((rule) => writeCase(rule, series, folder));
  const { status, stdout, stderr } = spawnSync('promtool', ['test', 'rules', ...files], { encoding: 'utf8' });
  return status === 0 ? undefined : stdout + stderr;
}

/** A test of promtool's, beside a file with this rule alone: evaluating all of them at each step takes thirty times as long. */
function writeCase(rule: (typeof ALERTS)[number], series: readonly Series[], folder: string): string {
  const { alert, expr } = rule;
  const names = new Set(selectorsOf(expr).map(({ name }) => name));
  const { interval, at } = PACES[alert] ?? PACE;
  const input = series.flatMap((each) => {
    const values = names.has(each.name) ? (TROUBLE[alert] ?? (() => RISING))(each) : undefined;
    const labels = Object.entries(each.labels).map(([label, value]) => `${label}=${JSON.stringify(value)}`);
    return values === undefined ? [] : [{ series: `${each.name}{${labels.join(',')}}`, values }];
  });
  const fires = `count(ALERTS{alertname="${alert}",alertstate="firing"}) > bool 0`;
  const rules = path.join(folder, `${alert}.rules.yaml`);
  writeFileSync(rules, JSON.stringify({ groups: [{ name: 'tollgate', rules: [rule] }] }));
  const file = path.join(folder, `${alert}.promtool.yaml`);
  const text = {
    rule_files: [rules],
    evaluation_interval: interval,
    tests: [
      {
        interval,
        input_series: input,
        promql_expr_test: [{ expr: fires, eval_time: at, exp_samples: [{ labels: '{}', value: 1 }] }],
      },
    ],
  };
  writeFileSync(file, JSON.stringify(text));
  return file;
}
