// Writes a report to the files that were asked for: Markdown with its plots beside it, JSON. After every scenario, so that a
// run that is cut short has not measured for nothing.
import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { renderJson, renderMarkdown, TABLE, type Report } from './markdown.ts';
import { plotSection, plotTable } from './svg.ts';

export type Files = { readonly markdown: string | undefined; readonly json: string | undefined };

export function writeReport(report: Report, { markdown, json }: Files): void {
  for (const file of [markdown, json])
    if (file !== undefined) mkdirSync(path.dirname(path.resolve(file)), { recursive: true });
  if (json !== undefined) writeFileSync(json, renderJson(report));
  if (markdown === undefined) return;
  const drawn = plot(report).map((each) => ({ ...each, file: plotFile(markdown, each.section) }));
  const plots = drawn.map(({ section, file }) => ({ section, file: path.basename(file) }));
  writeFileSync(markdown, renderMarkdown(report, plots));
  for (const { file, svg } of drawn) writeFileSync(file, svg);
}

/** `bench.md` has its plots in `bench-table.svg`, `bench-free.svg` and so on. */
function plotFile(markdown: string, section: string): string {
  const { dir, name } = path.parse(markdown);
  return path.join(dir, `${name}-${section}.svg`);
}

function plot({ verdicts, sections, machine, revision, startedAt }: Report): { section: string; svg: string }[] {
  const about = `Tollgate ${revision}, ${startedAt.slice(0, 10)}, ${machine.cpu}, Node ${machine.node}`;
  const whole = verdicts.length === 0 ? [] : [{ section: TABLE, svg: plotTable(verdicts, about) }];
  return whole.concat(
    sections.flatMap((section) => {
      const svg = plotSection(section, about);
      return svg === undefined ? [] : [{ section: section.name, svg }];
    }),
  );
}
