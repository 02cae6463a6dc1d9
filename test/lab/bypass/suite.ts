// The suite over any upstreams: regressions and the cases of a seed, straight to each and through the proxy under
// `unknown`, under the profile that is promised for it, under the one that `tollgate probe` recommends, with slashes kept,
// and with undeclared methods forwarded.
import { runDirect, runThrough, type Passage } from './campaign.ts';
import { casesOf } from './corpus.ts';
import { describeDraft, type Draft } from './draft.ts';
import { recommendedProfile } from './recommended.ts';
import { startGateway, STRICT, type Gateway, type Settings } from './gateway.ts';
import { SILENCE_MS } from './send.ts';
import { REGRESSIONS } from './regressions.ts';
import { settingsName, type Report, type Row } from './report.ts';
import type { UpstreamSpec } from './upstream.ts';

export type SuiteOptions = {
  readonly upstreams: readonly UpstreamSpec[];
  readonly seed: number;
  readonly cases: number;
  /** Of the settings only those whose name is this. */
  readonly only?: string;
  readonly progress?: (line: string) => void;
};

/** Under which settings an upstream is tried. Kept slashes are folded as `unknown` does. */
export function settingsFor(spec: UpstreamSpec): readonly Settings[] {
  return [
    STRICT,
    ...(spec.profile === undefined ? [] : [{ ...STRICT, profile: spec.profile }]),
    { ...STRICT, encodedSlashes: 'keep', doubleSlashes: 'keep' },
    { ...STRICT, undeclaredMethods: 'forward' },
  ];
}

export async function runSuite(options: SuiteOptions): Promise<Report> {
  const drafts = [...REGRESSIONS, ...casesOf(options.seed, options.cases)];
  const rows: Row[] = [];
  const skipped: { upstream: string; because: string }[] = [];
  const broken: string[] = [];
  const gateway = await startGateway();
  try {
    for (const spec of options.upstreams) {
      const missing = spec.missing?.();
      if (missing !== undefined) {
        skipped.push({ upstream: spec.name, because: missing });
        continue;
      }
      try {
        rows.push(...(await runUpstream(spec, gateway, drafts, { ...options, probed: true })));
      } catch (error) {
        broken.push(`${spec.name}: ${error instanceof Error ? error.message : String(error)}`);
      }
    }
  } finally {
    await gateway.close();
  }
  return { seed: options.seed, cases: drafts.length, rows, skipped, broken };
}

export type RunOptions = Pick<SuiteOptions, 'only' | 'progress'> & {
  readonly silenceMs?: number;
  readonly tried?: readonly Settings[];
  /** Also under the profile that the probe recommends. */
  readonly probed?: boolean;
};

export async function runUpstream(
  spec: UpstreamSpec,
  gateway: Gateway,
  drafts: readonly Draft[],
  { only, progress, silenceMs = SILENCE_MS, tried = settingsFor(spec), probed = false }: RunOptions = {},
): Promise<Row[]> {
  const upstream = await spec.start();
  try {
    const direct = (await runDirect(upstream, drafts, silenceMs)).executions;
    const rows: Row[] = [];
    const recommended = probed ? { ...STRICT, profile: await recommendedProfile(upstream.port) } : undefined;
    const isTried = (settings: Settings): boolean =>
      tried.some((each) => settingsName(each) === settingsName(settings));
    const all = [...tried, ...(recommended === undefined || isTried(recommended) ? [] : [recommended])];
    for (const settings of all) {
      const strict = settings.undeclaredMethods === 'pay';
      if (only !== undefined && settingsName(settings) !== only) continue;
      const passage = await runThrough(gateway, upstream, settings, drafts, { hunt: strict, silenceMs });
      const advised = recommended !== undefined && settingsName(settings) === settingsName(recommended);
      rows.push({ upstream: spec.name, direct, passage, advised });
      progress?.(`${spec.name} (${settingsName(passage.settings)}): ${direct} straight, ${passage.executions} through`);
    }
    return rows;
  } finally {
    await upstream.close();
  }
}

/** What must not be, each as a sentence. */
export function faults(report: Pick<Report, 'rows' | 'broken'>): string[] {
  const all: string[] = [...report.broken];
  for (const { upstream, direct, passage } of report.rows) {
    const where = `${upstream} (${settingsName(passage.settings)})`;
    if (passage.settings.undeclaredMethods === 'pay' && passage.executions > 0)
      all.push(
        `${where}: ${passage.executions} protected executions without a payment, ${passage.found.length} cases that run one alone`,
      );
    for (const draft of passage.surplus)
      all.push(`${where}: saw more requests than were sent on: ${describeDraft(draft)}`);
    if (direct === 0) all.push(`${where}: the cases reach nothing even without the proxy, so they show nothing`);
  }
  return all;
}

export type { Passage };
