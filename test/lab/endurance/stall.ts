// A facilitator that takes calls and never answers, while payments come in that nobody signed: who pays is refused with
// 503 and told when to come back, who does not pay notices nothing, and what is held is bounded. What free requests take
// is compared with the same load on a facilitator that answers, and with no payments at all, in turn.
import { ask } from '../../../bench/check.ts';
import { median } from '../../../bench/report.ts';
import type { PacedResult } from '../../../bench/paced.ts';
import type { RequestsResult } from './load/requests.ts';
import type { Plan } from './plan.ts';
import type { Notes } from './report.ts';
import { expectSameStore } from './same-store.ts';
import type { Stage } from './stage.ts';
import { fetchTerms } from './terms.ts';

type Measured = { readonly free: PacedResult; readonly paying: RequestsResult | undefined };

/** `facilitators[].limits.calls` is 64 by default; each may leave a connection idle behind it, and one that is closing. */
const CONNECTIONS = 4 * 64;

export async function stallFacilitator(stage: Stage, plan: Plan, notes: Notes): Promise<void> {
  const { rounds, seconds, perSecond } = plan.stall;
  const terms = await fetchTerms(stage);
  const control = async (path: 'stall' | 'refuse'): Promise<void> => {
    await ask(stage.facilitator.port('control'), { method: 'POST', path: `/${path}` });
  };
  const measure = async (paying: boolean): Promise<Measured> => {
    // A little longer than the free requests, the burst before them included.
    const job = { connections: 400, count: Math.round((seconds + 0.5) * perSecond), perSecond };
    const [free, paid] = await Promise.all([
      stage.free(seconds),
      paying ? stage.requests('proxy', { kind: { name: 'payment', terms }, ...job }) : undefined,
    ]);
    return { free, paying: paid };
  };
  const before = stage.stored();
  stage.mostMb();
  const restMb = stage.residentMb();
  const found: Record<'alone' | 'answering' | 'stalled', Measured[]> = { alone: [], answering: [], stalled: [] };
  const waited = stage.waiting();
  let mostOpen = 0;
  const watching = setInterval(() => {
    mostOpen = Math.max(mostOpen, stage.callsOpen());
  }, 50);
  for (let round = 0; round < rounds; round++) {
    found.alone.push(await measure(false));
    await control('refuse');
    await recovered(stage, terms);
    found.answering.push(await measure(true));
    await control('stall');
    found.stalled.push(await measure(true));
  }
  clearInterval(watching);
  await control('refuse');
  const p99 = (measured: readonly Measured[]): number[] => measured.map(({ free }) => free.p99Us / 1000);
  const [alone, answering, stalled] = [p99(found.alone), p99(found.answering), p99(found.stalled)];
  const to = (base: readonly number[]): number => median(stalled.map((ms, index) => ms / (base[index] ?? ms)));
  const ms = (values: readonly number[]): string =>
    `${median(values).toFixed(2)} (${values.map((each) => each.toFixed(2)).join(', ')})`;
  notes.report(`p99 of free requests alone, ms, ${rounds} rounds in turn`, ms(alone));
  notes.report(`beside ${perSecond} payments/s that are answered, ms`, ms(answering));
  notes.report(`beside ${perSecond} payments/s that stall, ms`, ms(stalled));
  const { atMost, equal } = notes.soon(waited());
  atMost('stalled to answered, median of the rounds', to(answering), plan.bounds.stallRatio);
  notes.report('stalled to alone, median of the rounds', to(alone).toFixed(2));
  const all = [...found.alone, ...found.answering, ...found.stalled];
  equal(
    'free requests that failed',
    all.flatMap(({ free }) => free.faults),
    [],
  );
  const answers = found.stalled.map(({ paying }) => paying?.statuses ?? {});
  notes.report('answers to payments while it stalled', JSON.stringify(sum(answers)));
  notes.equal(
    'of them anything but 503 facilitator_unavailable',
    Object.entries(sum(answers)).filter(([kind]) => kind !== '503 facilitator_unavailable'),
    [],
  );
  notes.equal(
    'of them without Retry-After',
    found.stalled.reduce((n, { paying }) => n + (paying?.withoutRetry ?? 0), 0),
    0,
  );
  equal(
    'answers to payments while it refused',
    Object.keys(sum(found.answering.map(({ paying }) => paying?.statuses ?? {}))),
    ['402'],
  );
  notes.atMost('connections to the facilitator', mostOpen, CONNECTIONS);
  expectSameStore(notes, before, stage.stored());
  notes.report('resident memory more than before, MiB', (stage.mostMb() - restMb).toFixed(0));
}

/** The breaker tries again after a while; until it has, payments are refused although the facilitator answers. */
async function recovered(stage: Stage, terms: string): Promise<void> {
  for (let tries = 0; tries < 200; tries++) {
    const one = { kind: { name: 'payment', terms }, connections: 1, count: 1, perSecond: 0 } as const;
    const { statuses } = await stage.requests('proxy', one);
    if (statuses['402'] === 1) return;
    await new Promise((resolve) => {
      setTimeout(resolve, 200);
    });
  }
  throw new Error('payments were not taken again after the facilitator came back');
}

function sum(all: readonly Readonly<Record<string, number>>[]): Record<string, number> {
  const total = new Map<string, number>();
  for (const each of all)
    for (const [name, count] of Object.entries(each)) total.set(name, (total.get(name) ?? 0) + count);
  return Object.fromEntries(total);
}
