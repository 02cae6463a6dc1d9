// Plots of what was measured, written by hand as SVG: bars with their labels and, where there is one, the spread. Readable
// on light and on dark ground, whichever the reader's system asks for. Pure: text in, text out.
import { formatSpread, spreadOf, type Section } from './report.ts';
import { bound, spaced, type Standing, type Verdict } from './table.ts';

const ROW = 26;
const BAR = 14;
const TOP = 58;
const LABELS = 330;
const WIDTH = 960;
const RIGHT = 250;
const PLOT = WIDTH - LABELS - RIGHT;
/** Of the table's scale: 1 is what must be; bars beyond the end are cut off and say so. */
const MOST_SCORE = 2.5;

const STYLE = `<style>
text { font: 13px system-ui, -apple-system, 'Segoe UI', Helvetica, Arial, sans-serif; fill: #1f2328 }
.title { font-size: 16px; font-weight: 600 }
.small { font-size: 12px; fill: #59636e }
.grid { stroke: #8c959f; stroke-width: 1 }
.whisker { stroke: #1f2328; stroke-width: 1.5 }
.peer { fill: #8c959f } .own { fill: #0969da }
.aim { fill: #1a7f37 } .must { fill: #0969da } .missed { fill: #cf222e }
.goal { stroke: #1f2328; stroke-width: 2 }
@media (prefers-color-scheme: dark) {
  text { fill: #f0f6fc } .small { fill: #9198a1 }
  .whisker, .goal { stroke: #f0f6fc } .grid { stroke: #656c76 } .peer { fill: #656c76 }
  .own, .must { fill: #4493f8 } .aim { fill: #3fb950 } .missed { fill: #f85149 }
}
</style>`;

const WORDS: Readonly<Record<Standing, string>> = {
  aim: 'aim met',
  must: 'must met',
  missed: 'not met',
  'not measured': 'not measured',
};

/** Every row of the table on one scale: 1 is what must be, a tick is what it aims at, longer is better. */
export function plotTable(verdicts: readonly Verdict[], about: string): string {
  const at = (score: number): number => LABELS + (Math.min(score, MOST_SCORE) / MOST_SCORE) * PLOT;
  const bottom = TOP + verdicts.length * ROW;
  const rows = verdicts.map(({ goal, value, standing, score, aimScore }, index) => {
    const y = TOP + index * ROW;
    const measured = value === undefined ? '-' : `${value.median.toFixed(goal.digits)}${spaced(goal.unit)}`;
    const of = `${measured} (${bound(goal, goal.must)}, ${bound(goal, goal.aim)}) ${WORDS[standing]}`;
    return [
      label(goal.what, y),
      score === undefined ? '' : bar(standing, at(0), at(score), y),
      score !== undefined && score > MOST_SCORE ? words(at(MOST_SCORE) + 2, y, '›') : '',
      `<line class="goal" x1="${round(at(aimScore))}" x2="${round(at(aimScore))}" y1="${y + 3}" y2="${y + ROW - 3}"/>`,
      words(LABELS + PLOT + 14, y, of),
    ].join('');
  });
  const must = `<line class="grid" stroke-dasharray="4 3" x1="${round(at(1))}" x2="${round(at(1))}" y1="${TOP - 4}" y2="${bottom}"/>`;
  const heads =
    `<text class="small" text-anchor="middle" x="${round(at(1))}" y="${TOP - 10}">must</text>` +
    `<text class="small" x="${LABELS + PLOT + 14}" y="${TOP - 10}">measured (must, aim)</text>`;
  return frame('What it is held to: longer is better, ticks are the aims', about, bottom, [must, heads, ...rows]);
}

/** The first column of a section: a bar for each row from 0, with the least and the most that was measured. */
export function plotSection({ title, columns, rows }: Section, about: string): string | undefined {
  const [column] = columns;
  if (column === undefined) return undefined;
  const { key, digits } = column;
  const measured = rows.flatMap(({ name, rounds }) => {
    const spread = spreadOf({ name, rounds }, key);
    return spread === undefined ? [] : [{ name, spread }];
  });
  if (measured.length === 0) return undefined;
  // One outlier must not make the rest unreadable.
  const most = Math.max(...measured.map(({ spread }) => spread.median)) * 1.15 || 1;
  const at = (value: number): number => LABELS + (Math.max(0, Math.min(value, most)) / most) * PLOT;
  const drawn = measured.map(({ name, spread }, index) => {
    const y = TOP + index * ROW;
    const own = /^(Tollgate|paid|\d+ routes|402)/.test(name) ? 'own' : 'peer';
    const middle = y + ROW / 2;
    return [
      label(name, y),
      bar(own, at(0), at(spread.median), y),
      `<line class="whisker" x1="${round(at(spread.min))}" x2="${round(at(spread.max))}" y1="${middle}" y2="${middle}"/>`,
      words(LABELS + PLOT + 14, y, formatSpread(spread, digits)),
    ].join('');
  });
  return frame(`${title}: ${column.title}`, about, TOP + measured.length * ROW, drawn);
}

function frame(title: string, about: string, bottom: number, parts: readonly string[]): string {
  const height = bottom + 14;
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" width="${WIDTH}" height="${height}" role="img" aria-label="${escape(title)}">
${STYLE}
<text class="title" x="14" y="24">${escape(title)}</text>
<text class="small" x="14" y="42">${escape(about)}</text>
${parts.join('\n')}
</svg>
`;
}

function bar(kind: string, from: number, to: number, y: number): string {
  return `<rect class="${kind}" x="${round(from)}" y="${y + (ROW - BAR) / 2}" width="${round(Math.max(1, to - from))}" height="${BAR}" rx="2"/>`;
}

function label(text: string, y: number): string {
  return `<text text-anchor="end" x="${LABELS - 10}" y="${y + ROW / 2 + 5}">${escape(text)}</text>`;
}

function words(x: number, y: number, text: string): string {
  return `<text x="${round(x)}" y="${y + ROW / 2 + 5}">${escape(text)}</text>`;
}

function round(value: number): string {
  return value.toFixed(1);
}

function escape(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;');
}
