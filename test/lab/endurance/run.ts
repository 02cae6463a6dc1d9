// All scenarios on one Tollgate, one after the other, and what became of its memory.
import { throwBombs } from './bombs.ts';
import { holdConnections } from './connections.ts';
import type { Plan } from './plan.ts';
import { abuseMatch, floodRegistrations, openStreams } from './registry.ts';
import { crawlPages } from './pages.ts';
import { createNotes, type Finding, type Notes } from './report.ts';
import { stallFacilitator } from './stall.ts';
import { openStage, type Stage } from './stage.ts';
import { floodWithout, presentJunk } from './unpaid.ts';

/** Requests that give the collector something to do. */
const STIR = 10_000;

type Scenario = { readonly name: string; readonly run: (stage: Stage, plan: Plan, notes: Notes) => Promise<void> };

const SCENARIOS: readonly Scenario[] = [
  { name: 'connections', run: holdConnections },
  { name: 'unpaid', run: floodWithout },
  { name: 'pages', run: crawlPages },
  { name: 'junk', run: presentJunk },
  { name: 'bombs', run: throwBombs },
  { name: 'stall', run: stallFacilitator },
  { name: 'match', run: abuseMatch },
  { name: 'streams', run: openStreams },
  { name: 'registrations', run: floodRegistrations },
];
export const SCENARIO_NAMES = SCENARIOS.map(({ name }) => name);

export async function endure(
  plan: Plan,
  only: readonly string[],
  say: (line: string) => void,
): Promise<readonly Finding[]> {
  const findings: Finding[] = [];
  const stage = await openStage(plan);
  try {
    await stage.free(Math.min(1, plan.freeSeconds));
    const startMb = stage.residentMb();
    const startHeapMb = await stage.heapMb();
    for (const { name, run } of SCENARIOS) {
      if (!only.includes(name)) continue;
      say(name);
      const notes = createNotes(name, say);
      await run(stage, plan, notes);
      notes.report(
        'resident now; at most so far, MiB',
        `${stage.residentMb().toFixed(0)}; ${stage.peakMb().toFixed(0)}`,
      );
      findings.push(...notes.findings);
    }
    say('memory');
    const notes = createNotes('memory', say);
    notes.report('resident at the start, MiB', startMb.toFixed(0));
    notes.atMost('resident at most, in the whole run', stage.peakMb(), plan.bounds.residentMb, ' MiB');
    // What the allocator keeps is used again; what the program holds on to would not be.
    const heldMb = (await leastHeap(stage, startHeapMb + plan.bounds.heapMb, plan.bounds.settleSeconds)) - startHeapMb;
    notes.atMost('heap in use more than at the start, after the load', heldMb, plan.bounds.heapMb, ' MiB');
    notes.report('resident after the load, MiB', stage.residentMb().toFixed(0));
    findings.push(...notes.findings);
  } finally {
    await stage.stop();
  }
  return findings;
}

/** A collector that has nothing to do leaves things as they are: traffic goes on, until it was there or time is up. */
async function leastHeap(stage: Stage, belowMb: number, seconds: number): Promise<number> {
  const until = performance.now() + seconds * 1000;
  let least = await stage.heapMb();
  while (least > belowMb && performance.now() < until) {
    await stage.requests('proxy', { kind: { name: 'unpaid' }, connections: 16, count: STIR, perSecond: 0 });
    least = Math.min(least, await stage.heapMb());
  }
  return least;
}
