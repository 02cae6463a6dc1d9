// The scenario `paid`: paid requests, as bench/paid.ts measures and checks them, in a process of its own for every round.
import path from 'node:path';
import { LOAD_CORE, NODE, runToEnd } from './process.ts';
import type { Round, Section } from './report.ts';
import { measureSection, slowly, type Contender, type Stage } from './stage.ts';
import { PAID_GET, PAID_POST, suffixOf } from './names.ts';

export async function measurePaid(stage: Stage): Promise<Section> {
  // All rows of one run come at once: they are measured with the first and handed out one by one.
  let found: ReadonlyMap<string, Round> = new Map();
  const contenders = stage.checkouts.flatMap(({ suffix }, index) =>
    ROWS.map((row, column): Contender => ({
      name: row + suffix,
      check: () => Promise.resolve(),
      measure: async () => {
        if (index === 0 && column === 0) found = readRows(await run(stage));
        const round = found.get(row + suffixOf(index));
        return round === undefined
          ? { round: {}, faults: ['bench/paid.ts did not measure it'] }
          : { round, faults: [] };
      },
    })),
  );
  return measureSection(slowly(stage), contenders, {
    name: 'paid',
    title: 'Paid requests, a facilitator that answers at once, SQLite',
    columns: [
      { key: 'perCore', title: 'a second and core', digits: 0 },
      { key: 'cpuUs', title: 'CPU us/request, all threads', digits: 0 },
    ],
    references: { key: 'cpuUs', rows: [] },
    remarks: ['Every step of a charge is durable before the next; `node bench/paid.ts` says more.'],
  });
}

/** Of bench/paid.ts itself, whose medians count. */
const INNER_ROUNDS = '5';
/** So that a round holds a few thousand requests, and hundreds of commits. */
const LEAST_SECONDS = 2;

const ROWS = [PAID_GET, PAID_POST];

/** The tables that bench/paid.ts prints: name and CPU of every row. */
export function readRows(printed: string): ReadonlyMap<string, Round> {
  const rows = new Map<string, Round>();
  for (const line of printed.split('\n')) {
    const [, name = '', cpu = ''] = line.split('|').map((cell) => cell.trim());
    const cpuUs = Number.parseFloat(cpu);
    if (name !== '' && cpuUs > 0) rows.set(name, { cpuUs, perCore: 1e6 / cpuUs });
  }
  return rows;
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
