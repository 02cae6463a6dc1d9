// A question to workers: who answers in time is heard, and nobody else is waited for.
import { expect, test } from 'vitest';
import { createAsking, type WorkerQuestion } from '../../../src/compose/workers/worker-questions.ts';
import type { Order } from '../../../src/workers/channel.ts';
import type { Member } from '../../../src/workers/member.ts';

const WHO: WorkerQuestion = { kind: 'refusals', id: 'who' };

function stage(lives: readonly Member['life'][]) {
  const sent: Order[] = [];
  const members = lives.map((life) => ({ life, send: (order: Order) => void sent.push(order) }) as unknown as Member);
  const timers: (() => void)[] = [];
  const schedule = (_ms: number, run: () => void): (() => void) => {
    timers.push(run);
    return () => void timers.splice(timers.indexOf(run), 1);
  };
  const asking = createAsking({ members: () => members }, schedule);
  const member = (at: number): Member => members[at] as Member;
  return { asking, member, sent, timers };
}

test('behaviour: all workers that serve are asked, and the last answer ends the waiting', async () => {
  const { asking, member, sent, timers } = stage(['ready', 'starting', 'draining']);
  const asked = asking.ask(WHO);
  expect(sent).toEqual([1, 1].map((ask) => ({ kind: 'ask', ask, question: JSON.stringify(WHO) })));
  asking.answered(member(2), { kind: 'answer', ask: 1, answer: 'two' });
  // Not asked, or for the second time.
  asking.answered(member(1), { kind: 'answer', ask: 1, answer: 'one' });
  asking.answered(member(2), { kind: 'answer', ask: 1, answer: 'two' });
  asking.answered(member(0), { kind: 'answer', ask: 1, answer: 'zero' });
  expect(await asked).toEqual(['two', 'zero']);
  expect(timers).toEqual([]);
});

test('behaviour: a worker that died, or is late, is not waited for', async () => {
  const { asking, member, timers } = stage(['ready', 'ready']);
  const first = asking.ask(WHO);
  const second = asking.ask({ kind: 'healths' });
  asking.answered(member(0), { kind: 'answer', ask: 1, answer: 'zero' });
  asking.died(member(1));
  expect(await first).toEqual(['zero']);
  for (const run of timers) run();
  expect(await second).toEqual([]);
  asking.answered(member(0), { kind: 'answer', ask: 2, answer: 'late' });
});

test('behaviour: where one answer is enough, the first one ends the waiting', async () => {
  const { asking, member, timers } = stage(['ready', 'ready']);
  const asked = asking.askAny({ kind: 'trial', method: 'GET', path: '/x', origin: 'http://h' });
  asking.answered(member(1), { kind: 'answer', ask: 1, answer: 'first' });
  expect(await asked).toBe('first');
  expect(timers).toEqual([]);
  const dead = asking.askAny(WHO);
  for (const at of [0, 1]) asking.died(member(at));
  expect(await dead).toBeUndefined();
});

test('behaviour: a question has no answer if no worker serves', async () => {
  expect(await stage(['starting']).asking.ask(WHO)).toEqual([]);
});
