// The scenario `memory`: what a process of Tollgate keeps resident, a fresh one every round: idle after its start, and with
// 10,000 connections kept alive that made one request each and do nothing more; and the CPU that it takes to do nothing.
import path from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { ask, checkFree, expect } from './check.ts';
import type { HoldJob } from './hold.ts';
import { LOAD_CORE, NODE, readMemoryMb, readThreadsUs, startServer } from './process.ts';
import type { Section } from './report.ts';
import { freePaths } from './routes.ts';
import { mainCount, measureSection, slowly, withPool, type Contender, type Stage } from './stage.ts';
import { tollgateName } from './names.ts';
import { startTollgate } from './tollgate.ts';

const CONNECTIONS = 10_000;
/** After which a process that has nothing to do has put away what it needed for starting, as far as it ever will. */
const SETTLE_MS = 2000;
const IDLE_MS = 4000;

export async function measureMemory(stage: Stage): Promise<Section> {
  const main = mainCount(stage.plan);
  const [target = '/'] = freePaths(main, 1);
  const contenders = [...new Set([Math.min(...stage.plan.counts), main])].flatMap((routes) =>
    stage.checkouts.map(({ suffix, root }): Contender => ({
      name: tollgateName(routes) + suffix,
      check: () => Promise.resolve(),
      measure: () =>
        withPool(async (pool) => {
          const { upstream, folder, witness } = stage;
          const upstreamPort = upstream.port('upstream');
          const options = { label: 'memory', root, routes, upstreamPort, folder, profiles: undefined };
          const tollgate = await pool.keep(startTollgate(options));
          const port = tollgate.port('proxy');
          await setTimeout(SETTLE_MS);
          const { resident: idleMb, anonymous: idleOwnMb } = readMemoryMb(tollgate.pid);
          const cpuBefore = readThreadsUs(tollgate.pid).all;
          await setTimeout(IDLE_MS);
          const idleCpuMs = (readThreadsUs(tollgate.pid).all - cpuBefore) / IDLE_MS;
          await checkFree(port, witness, 'GET', target);
          const job: HoldJob = { port, path: target, connections: CONNECTIONS };
          const args = [path.join(import.meta.dirname, 'hold.ts'), JSON.stringify(job)];
          const holder = await pool.keep(
            startServer({ name: 'connections', file: NODE, args, core: LOAD_CORE }, ['proxy']),
          );
          await setTimeout(SETTLE_MS);
          const { resident: heldMb, anonymous: heldOwnMb, peak: peakMb } = readMemoryMb(tollgate.pid);
          const held = await ask(holder.port('proxy'), { method: 'GET', path: '/' });
          const { open }: { open: number } = JSON.parse(held.body.toString());
          expect(open === CONNECTIONS, `let ${CONNECTIONS - open} idle connections of ${CONNECTIONS} go`);
          await checkFree(port, witness, 'GET', target);
          return { round: { idleMb, idleOwnMb, idleCpuMs, heldMb, heldOwnMb, peakMb }, faults: [] };
        }),
    })),
  );
  return measureSection(slowly(stage), contenders, {
    name: 'memory',
    title: 'Resident memory',
    columns: [
      { key: 'heldMb', title: '10,000 idle connections MB', digits: 0 },
      { key: 'heldOwnMb', title: 'of that not files MB', digits: 0 },
      { key: 'idleMb', title: 'idle MB', digits: 0 },
      { key: 'idleOwnMb', title: 'of that not files MB', digits: 0 },
      { key: 'peakMb', title: 'peak MB', digits: 0 },
      { key: 'idleCpuMs', title: 'idle CPU ms/s', digits: 1 },
    ],
    references: { key: 'heldMb', rows: [] },
    remarks: [
      'A fresh process every round. The connections made one free request each and are all still open. What is not files leaves out the pages of the Node program itself, which processes share.',
    ],
  });
}
