// Requests that nobody pays for, each on a path of its own, and credentials that are worth nothing: no row and no byte
// on the disk but counts that grow with time alone, no memory that stays.
import type { Plan } from './plan.ts';
import type { Notes } from './report.ts';
import { expectSameStore } from './same-store.ts';
import type { Stage } from './stage.ts';
import { fetchTerms } from './terms.ts';

export async function floodWithout(stage: Stage, plan: Plan, notes: Notes): Promise<void> {
  const { warmUp, count } = plan.unpaid;
  const ask = (requests: number) =>
    stage.requests('proxy', { kind: { name: 'unpaid' }, connections: 64, count: requests, perSecond: 0 });
  const before = stage.stored();
  await ask(warmUp);
  stage.mostMb();
  // What the collector has not taken yet is no growth: the start is the most of a stretch of the same load.
  await ask(warmUp);
  const startMb = stage.mostMb();
  const flood = await ask(count);
  const growthMb = stage.mostMb() - startMb;
  notes.equal(`answers to ${count} unpaid requests, each on a path of its own`, flood.statuses, { 402: count });
  notes.equal('connections that broke', flood.broken, 0);
  notes.report('a second; CPU of each, us', `${(count / flood.seconds).toFixed(0)}; ${flood.cpuUsEach.toFixed(1)}`);
  expectSameStore(notes, before, stage.stored());
  notes.atMost(`resident memory grew, after a warm-up of ${2 * warmUp}`, growthMb, plan.bounds.growthMb, ' MiB');
}

export async function presentJunk(stage: Stage, plan: Plan, notes: Notes): Promise<void> {
  const terms = await fetchTerms(stage);
  const before = stage.stored();
  const junk = await stage.requests('proxy', {
    ...{ kind: { name: 'junk', terms }, connections: 32, count: plan.junk, perSecond: 0 },
  });
  const kinds = Object.keys(junk.statuses);
  notes.report(`answers to ${plan.junk} worthless payments`, JSON.stringify(junk.statuses));
  notes.equal(
    'of which neither 400 nor 402',
    kinds.filter((kind) => !/^40[02]\b/.test(kind)),
    [],
  );
  notes.report('CPU of each, us', junk.cpuUsEach.toFixed(0));
  const strangers = await stage.requests('registry', {
    ...{ kind: { name: 'stranger' }, connections: 32, count: plan.junk, perSecond: 0 },
  });
  notes.equal(`answers to ${plan.junk} made-up keys and tokens`, strangers.statuses, {
    '401 credentials_invalid': plan.junk,
  });
  notes.equal('connections that broke', junk.broken + strangers.broken, 0);
  expectSameStore(notes, before, stage.stored());
}
