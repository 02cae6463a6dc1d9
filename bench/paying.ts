// The scenario `paid`: paid requests, as bench/paid.ts measures and checks them, in a process of its own for every round.
import path from 'node:path';
import { LOAD_CORE, NODE, runToEnd } from './process.ts';
import type { Round, Section } from './report.ts';
import { measureSection, slowly, type Contender, type Stage } from './stage.ts';
import { CONSTANT, PAID_GET, PAID_POST, suffixOf } from './names.ts';

export async function measurePaid(stage: Stage): Promise<Section> {
  // All rows of one run come at once: they are measured with the first and handed out one by one.
  let found: ReadonlyMap<string, Round> = new Map();
  const contender = (name: string, row: string, isFirst: boolean): Contender => ({
    name,
    check: () => Promise.resolve(),
    measure: async () => {
      if (isFirst) found = readRows(await run(stage));
      const round = found.get(row);
      return round === undefined ? { round: {}, faults: ['bench/paid.ts did not measure it'] } : { round, faults: [] };
    },
  });
  const contenders = stage.checkouts.flatMap(({ suffix }, index) =>
    ROWS.map((row, column) => contender(row + suffix, row + suffixOf(index), index === 0 && column === 0)),
  );
  if (stage.checkouts.length === 1) contenders.push(contender(CONSTANT, CONSTANT, false));
  return measureSection(slowly(stage), contenders, {
    name: 'paid',
    title: 'Paid requests, a facilitator that answers at once, SQLite',
    columns: [
      { key: 'perCore', title: 'a second and core', digits: 0 },
      { key: 'cpuUs', title: 'CPU us/request, all threads', digits: 0 },
      { key: 'constants', title: 'constant answers that cost as much', digits: 1 },
    ],
    references: { key: 'cpuUs', rows: [] },
    remarks: [
      'Every step of a charge is durable before the next; `node bench/paid.ts` says more.',
      'The constant answer of node:http is measured in the same rounds: it tells the pace of the machine.',
    ],
  });
}

/** Of bench/paid.ts itself, whose medians count. */
const INNER_ROUNDS = '5';
/** So that a round holds a few thousand requests, and hundreds of commits. */
const LEAST_SECONDS = 2;

const ROWS = [PAID_GET, PAID_POST];

/** The tables that bench/paid.ts prints: name and CPU of every row, and how many constant answers that would be. */
export function readRows(printed: string): ReadonlyMap<string, Round> {
  const rows = new Map<string, Round>();
  for (const line of printed.split('\n')) {
    const [, name = '', cpu = ''] = line.split('|').map((cell) => cell.trim());
    const cpuUs = Number.parseFloat(cpu);
    if (name !== '' && cpuUs > 0) rows.set(name, { cpuUs, perCore: 1e6 / cpuUs });
  }
  const constant = rows.get(CONSTANT)?.['cpuUs'];
  if (constant === undefined) return rows;
  return new Map([...rows].map(([name, round]) => [name, { ...round, constants: (round['cpuUs'] ?? 0) / constant }]));
}

function run({ plan, checkouts }: Stage): Promise<string> {
  const roots = checkouts.flatMap(({ root }) => ['--root', root]);
  const seconds = String(Math.max(plan.seconds, LEAST_SECONDS));
  const args = ['--paid', ...roots, '--rounds', INNER_ROUNDS, '--seconds', seconds];
  return runToEnd({
    name: 'bench/paid.ts',
    file: NODE,
    args: [path.join(import.meta.dirname, 'paid.ts'), ...args],
    core: LOAD_CORE,
  });
}
