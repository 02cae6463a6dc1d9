// The whole report: as Markdown for people, with the table that Tollgate is held to first, and as JSON with every number of
// every round for whoever wants to look again.
import type { Machine } from './machine.ts';
import { ratio, renderSection, spreadOf, type Round, type Section, type Spread } from './report.ts';
import { renderTable, type Verdict } from './table.ts';

export type Report = {
  readonly revision: string;
  readonly against: string | undefined;
  readonly startedAt: string;
  readonly command: string;
  readonly machine: Machine;
  readonly verdicts: readonly Verdict[];
  readonly sections: readonly Section[];
  readonly remarks: readonly string[];
};

/** A plot's file, beside the Markdown. */
export type Plot = { readonly section: string; readonly file: string };

export function renderMarkdown(report: Report, plots: readonly Plot[]): string {
  const { machine } = report;
  const about = [
    `Tollgate ${report.revision}${report.against === undefined ? '' : ` against ${report.against}`}, ${report.startedAt}, \`${report.command}\``,
    `Machine: ${machine.cpu}, ${machine.cores} cores, ${machine.memoryGb} GB, Linux ${machine.kernel}, Node ${machine.node}, ${machine.pinned ? 'processes pinned' : 'processes NOT pinned: the numbers say little'}`,
  ].join('\n');
  const plotsOf = (section: string): string[] =>
    plots.flatMap((plot) => (plot.section === section ? [`![${section}](${plot.file})`] : []));
  const { verdicts } = report;
  const goals = verdicts.length === 0 ? [] : ['## What it is held to', renderTable(verdicts), ...plotsOf(TABLE)];
  const sections = report.sections.flatMap((section) => [renderSection(section), ...plotsOf(section.name)]);
  const remarks = report.remarks.map((remark) => `- ${remark}`).join('\n');
  const parts = ['# Bench', about, ...goals, ...sections, '## What this shows and what it does not', remarks];
  return `${parts.join('\n\n')}\n`;
}

/** The name that the plot of the whole table has among those of the sections. */
export const TABLE = 'table';

/** Every number of every round, with medians and ratios beside them. */
export function renderJson(report: Report): string {
  const sections = report.sections.map((section) => ({
    ...section,
    rows: section.rows.map((row) => ({
      ...row,
      summary: Object.fromEntries(section.columns.map(({ key }) => [key, spreadOf(row, key)])),
      ratios: Object.fromEntries(
        section.references.rows.map((name) => [
          name,
          ratio(section.rows.find((other) => other.name === name)?.rounds ?? [], row.rounds, section.references.key),
        ]),
      ),
    })),
    changes: Object.fromEntries(section.pairs.map(([newer, older]) => [newer, changesOf(section, newer, older)])),
  }));
  return `${JSON.stringify({ ...report, sections }, undefined, 2)}\n`;
}

function changesOf({ rows, columns }: Section, newer: string, older: string): Record<string, Spread | undefined> {
  const roundsOf = (wanted: string): readonly Round[] => rows.find(({ name }) => name === wanted)?.rounds ?? [];
  return Object.fromEntries(columns.map(({ key }) => [key, ratio(roundsOf(newer), roundsOf(older), key)]));
}
