// Arithmetic and layout of what the bench found: medians with their spread, ratios, tables. Ratios are taken round by
// round, because what is compared runs in turn and a machine drifts: a round's neighbours drifted alike. Pure; measures
// nothing and knows no scenario.
/** What one round measured, by column key. */
export type Round = Readonly<Record<string, number>>;
export type Column = { readonly key: string; readonly title: string; readonly digits: number };
export type Row = { readonly name: string; readonly rounds: readonly Round[] };
/** `fault`: it was there and did not do what it had to. */
export type Skipped = { readonly name: string; readonly reason: string; readonly fault?: true };

export type Section = {
  readonly name: string;
  readonly title: string;
  readonly columns: readonly Column[];
  readonly rows: readonly Row[];
  readonly skipped: readonly Skipped[];
  /** Rows whose `key`, divided by a row's own, becomes a column of its own: above 1 is cheaper than that row. */
  readonly references: { readonly key: string; readonly rows: readonly string[] };
  /** Two revisions of one thing: [new row, old row]. */
  readonly pairs: readonly (readonly [string, string])[];
  /** What has to be said beside the table. */
  readonly remarks: readonly string[];
};

export type Spread = { readonly median: number; readonly min: number; readonly max: number; readonly rounds: number };

/** The middle value, or the mean of the two middle ones. NaN for none. */
export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length / 2;
  const upper = sorted[Math.floor(middle)] ?? Number.NaN;
  return Number.isInteger(middle) ? ((sorted[middle - 1] ?? Number.NaN) + upper) / 2 : upper;
}

export function spread(values: readonly number[]): Spread | undefined {
  if (values.length === 0) return undefined;
  return { median: median(values), min: Math.min(...values), max: Math.max(...values), rounds: values.length };
}

/** The nearest-rank percentile of values in ascending order; 0 for none. */
export function percentile(sorted: ArrayLike<number>, percent: number): number {
  return sorted[Math.max(0, Math.ceil((percent / 100) * sorted.length) - 1)] ?? 0;
}

/** `of` less `by`, round by round; rounds that one of them has not are left out. */
export function difference(of: readonly Round[], by: readonly Round[], key: string): Spread | undefined {
  const values = of.flatMap((round, index) => {
    const [a, b] = [round[key], by[index]?.[key]];
    return a === undefined || b === undefined ? [] : [a - b];
  });
  return spread(values);
}

/** `over` / `under`, round by round; rounds that one of them has not, or with nothing to divide by, are left out. */
export function ratio(over: readonly Round[], under: readonly Round[], key: string): Spread | undefined {
  const values = over.flatMap((round, index) => {
    const a = round[key];
    const b = under[index]?.[key];
    return a === undefined || b === undefined || b === 0 ? [] : [a / b];
  });
  return spread(values);
}

export function spreadOf(row: Row, key: string): Spread | undefined {
  return spread(row.rounds.flatMap((round) => round[key] ?? []));
}

/** What several processes measured within one round, as one: the mean of every figure that all of them have. */
export function meanRound(rounds: readonly Round[]): Round {
  const keys = Object.keys(rounds[0] ?? {}).filter((key) => rounds.every((round) => round[key] !== undefined));
  const mean = (key: string): number => rounds.reduce((sum, round) => sum + (round[key] ?? 0), 0) / rounds.length;
  return Object.fromEntries(keys.map((key) => [key, mean(key)]));
}

/** `12.3 (11.9-13.0)`; one round has no spread; nothing measured is a dash. */
export function formatSpread(value: Spread | undefined, digits: number): string {
  if (value === undefined || Number.isNaN(value.median)) return '-';
  const middle = value.median.toFixed(digits);
  return value.rounds === 1 ? middle : `${middle} (${value.min.toFixed(digits)}-${value.max.toFixed(digits)})`;
}

/** A Markdown table. Bars in cells are escaped. */
export function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]): string =>
    `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`;
  return [line(head), line(head.map((_, index) => (index === 0 ? '---' : '---:'))), ...rows.map(line)].join('\n');
}

export function renderSection(section: Section): string {
  const { columns, rows, references, pairs, skipped } = section;
  const compared = references.rows.flatMap((name) => rows.find((row) => row.name === name) ?? []);
  const head = ['', ...columns.map(({ title }) => title), ...compared.map(({ name }) => `to ${name}`)];
  const body = rows.map((row) => {
    const own = columns.map(({ key, digits }) => formatSpread(spreadOf(row, key), digits));
    const to = compared.map((other) => formatSpread(ratio(other.rounds, row.rounds, references.key), 2));
    return [row.name].concat(own, to);
  });
  const parts = [`## ${section.title}`, table(head, body)];
  if (pairs.length > 0) parts.push(renderPairs(section));
  for (const { name, reason } of skipped) parts.push(`Not measured: ${name} (${reason}).`);
  parts.push(...section.remarks);
  return parts.join('\n\n');
}

function renderPairs({ columns, rows, pairs }: Section): string {
  const body = pairs.flatMap(([newer, older]) => {
    const now = rows.find(({ name }) => name === newer);
    const then = rows.find(({ name }) => name === older);
    if (now === undefined || then === undefined) return [];
    return [[newer, ...columns.map(({ key }) => formatSpread(ratio(now.rounds, then.rounds, key), 3))]];
  });
  return table(['new / old', ...columns.map(({ title }) => title)], body);
}
