// The result of a run as a table for people and as JSON for everyone else.
import { describeDraft } from './draft.ts';
import type { Passage } from './campaign.ts';
import type { Settings } from './gateway.ts';

export type Row = {
  readonly upstream: string;
  /** Executions when the same cases went straight to it. */
  readonly direct: number;
  readonly passage: Passage;
  /** `tollgate probe` recommends this profile for the upstream. */
  readonly advised: boolean;
};

export type Report = {
  readonly seed: number;
  readonly cases: number;
  readonly rows: readonly Row[];
  readonly skipped: readonly { readonly upstream: string; readonly because: string }[];
  /** Upstreams that could not be run, and why. */
  readonly broken: readonly string[];
};

const COLUMNS = [
  'upstream',
  'settings',
  'cases',
  'direct hits',
  '402',
  'refusals',
  'forwarded',
  'seen',
  'bypasses',
] as const;

export function settingsName({ profile, undeclaredMethods, encodedSlashes, doubleSlashes }: Settings): string {
  return [
    profile,
    ...(undeclaredMethods === 'pay' ? [] : [undeclaredMethods]),
    ...(encodedSlashes === 'refuse' ? [] : ['%2f kept']),
    ...(doubleSlashes === 'merge' ? [] : ['// kept']),
  ].join(', ');
}

export function formatReport({ seed, cases, rows, skipped }: Report): string {
  const lines = rows.map(({ upstream, direct, passage, advised }) => [
    upstream,
    `${settingsName(passage.settings)}${advised ? ' (probe)' : ''}`,
    String(passage.cases),
    String(direct),
    String(passage.demanded),
    String(passage.refused),
    String(passage.forwarded),
    passage.seen === undefined ? '-' : String(passage.seen),
    String(passage.executions),
  ]);
  const widths = COLUMNS.map((name, at) => Math.max(name.length, ...lines.map((line) => line[at]?.length ?? 0)));
  const draw = (cells: readonly string[]): string =>
    `| ${cells.map((cell, at) => (at < 2 ? cell.padEnd(widths[at] ?? 0) : cell.padStart(widths[at] ?? 0))).join(' | ')} |`;
  const found = rows.flatMap(({ upstream, passage }) =>
    passage.found.map((draft) => `  ${upstream} (${settingsName(passage.settings)}): ${describeDraft(draft)}`),
  );
  const strict = rows.filter(({ passage }) => passage.settings.undeclaredMethods === 'pay');
  const sum = (of: readonly Row[], what: (row: Row) => number): number => of.reduce((all, row) => all + what(row), 0);
  return [
    draw(COLUMNS),
    draw(widths.map((width) => '-'.repeat(width))),
    ...lines.map(draw),
    '',
    ...(found.length === 0 ? [] : ['got through, made small:', ...found, '']),
    ...skipped.map(({ upstream, because }) => `skipped: ${upstream} (${because})`),
    `seed ${seed}, ${cases} cases: ${new Set(rows.map(({ upstream }) => upstream)).size} upstreams, ${sum(strict, ({ passage }) => passage.cases)} requests through the proxy under undeclared_methods: pay, ${sum(strict, ({ passage }) => passage.executions)} bypasses`,
  ].join('\n');
}
