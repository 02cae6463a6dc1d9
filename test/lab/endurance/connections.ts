// Thousands of connections that ask for nothing, and thousands that send their headers a byte at a time, while free
// requests go on: all are held or cut off as configured, nobody else notices, and memory stays bounded.
import type { Plan } from './plan.ts';
import type { Notes } from './report.ts';
import type { Stage } from './stage.ts';

export async function holdConnections(stage: Stage, plan: Plan, notes: Notes): Promise<void> {
  const { bounds } = plan;
  const before = await stage.free(plan.freeSeconds);
  const restMb = stage.residentMb();
  stage.mostMb();
  const proxy = stage.tollgate.port('proxy');
  const idle = stage.talk('../../../support/idle-clients.ts', [proxy, plan.idle, '/paid/idle']);
  const slow = stage.talk('slow-clients.ts', [proxy, plan.slow, plan.slowEveryMs]);
  try {
    notes.equal('idle connections open', (await idle.said)['open'], plan.idle);
    notes.equal('slow connections open', (await slow.said)['open'], plan.slow);
    const since = performance.now();
    const waited = stage.waiting();
    // Until every slow connection of the beginning has had its time.
    const rounds = Math.ceil((plan.headersMs * 1.3) / 1000 / plan.freeSeconds);
    const faults: string[] = [];
    let worstMs = 0;
    for (let round = 0; round < rounds; round++) {
      const free = await stage.free(plan.freeSeconds);
      faults.push(...free.faults);
      worstMs = Math.max(worstMs, free.p99Us / 1000);
    }
    const heldSeconds = (performance.now() - since) / 1000;
    const { atMost } = notes.soon(waited());
    notes.report('p99 of free requests before, ms', (before.p99Us / 1000).toFixed(2));
    // On a busy machine everything takes longer, with or without them.
    const mostMs = Math.max(bounds.freeMs, (bounds.freeTimes * before.p99Us) / 1000);
    atMost(`p99 of free requests meanwhile, worst of ${rounds} times ${plan.freeSeconds} s`, worstMs, mostMs, ' ms');
    notes.equal('free requests that failed', faults, []);
    notes.equal('idle connections still open', (await idle.ask())['open'], plan.idle);
    const { told, others } = await slow.ask();
    notes.equal(`every slow one was told 408 within ${heldSeconds.toFixed(0)} s`, Number(told) >= plan.slow, true);
    notes.equal('slow ones told something else', others, 0);
    const mostMb = stage.mostMb();
    notes.report('memory for each connection, KiB', (((mostMb - restMb) * 1024) / (plan.idle + plan.slow)).toFixed(1));
    notes.atMost('resident with all of them', mostMb, bounds.residentMb, ' MiB');
  } finally {
    await Promise.all([idle.end(), slow.end()]);
  }
}
