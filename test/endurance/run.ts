// All scenarios on one Tollgate, one after the other, and what became of its memory.
import { throwBombs } from './bombs.ts';
import { holdConnections } from './connections.ts';
import type { Plan } from './plan.ts';
import { abuseMatch, floodRegistrations, openStreams } from './registry.ts';
import { createNotes, type Finding, type Notes } from './report.ts';
import { stallFacilitator } from './stall.ts';
import { openStage, type Stage } from './stage.ts';
import { floodWithout, presentJunk } from './unpaid.ts';

type Scenario = { readonly name: string; readonly run: (stage: Stage, plan: Plan, notes: Notes) => Promise<void> };

const SCENARIOS: readonly Scenario[] = [
  { name: 'connections', run: holdConnections },
  { name: 'unpaid', run: floodWithout },
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
    const afterMb = await settled(stage, startMb + plan.bounds.restMb, plan.bounds.settleSeconds);
    notes.atMost('resident more than at the start, after the load', afterMb - startMb, plan.bounds.restMb, ' MiB');
    findings.push(...notes.findings);
  } finally {
    await stage.stop();
  }
  return findings;
}

/** A collector that has nothing to do leaves things as they are: a little traffic goes on, until memory is down or time is up. */
async function settled(stage: Stage, belowMb: number, seconds: number): Promise<number> {
  const until = performance.now() + seconds * 1000;
  while (stage.residentMb() > belowMb && performance.now() < until) await stage.free(2);
  return stage.residentMb();
}
