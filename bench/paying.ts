// The scenario `paid`: paid requests, as bench/paid.ts measures and checks them, in a process of its own for every round.
import path from 'node:path';
import { LOAD_CORE, NODE, runToEnd } from './process.ts';
import type { Round, Section } from './report.ts';
import { measureSection, slowly, type Contender, type Stage } from './stage.ts';
import { PAID_GET, PAID_POST } from './names.ts';

export async function measurePaid(stage: Stage): Promise<Section> {
  // All rows of one run come at once: they are measured with the first and handed out one by one.
  const contenders = stage.checkouts.flatMap(({ suffix, root }) => {
    let found: ReadonlyMap<string, Round> = new Map();
    return ROWS.map((row, index): Contender => ({
      name: row + suffix,
      check: () => Promise.resolve(),
      measure: async () => {
        if (index === 0) found = readRows(await run(stage, root));
        const round = found.get(row);
        return round === undefined
          ? { round: {}, faults: ['bench/paid.ts did not measure it'] }
          : { round, faults: [] };
      },
    }));
  });
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

/** Of bench/paid.ts itself, whose median counts: its first one is cold. */
const INNER_ROUNDS = '3';

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

function run({ plan }: Stage, root: string): Promise<string> {
  const args = ['--root', root, '--rounds', INNER_ROUNDS, '--seconds', String(plan.seconds)];
  return runToEnd({
    name: 'bench/paid.ts',
    file: NODE,
    args: [path.join(import.meta.dirname, 'paid.ts'), ...args],
    core: LOAD_CORE,
  });
}
