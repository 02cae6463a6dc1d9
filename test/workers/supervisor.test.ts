// When a worker that died is replaced, under a clock of the test's own and with processes that are none.
import { EventEmitter } from 'node:events';
import type { ChildProcess } from 'node:child_process';
import { expect, test } from 'vitest';
import { createLog } from '../../src/host/log.ts';
import type { Report } from '../../src/workers/channel.ts';
import { createSupervisor, type EndReason } from '../../src/workers/supervisor.ts';

class FakeProcess extends EventEmitter {
  readonly connected = true;
  readonly pid = 1;
  readonly killed: string[] = [];
  send(): boolean {
    return true;
  }
  kill(signal: string): boolean {
    this.killed.push(signal);
    this.emit('exit', null, signal);
    return true;
  }
  report(report: Report): void {
    this.emit('message', report);
  }
}

/** One worker; `pass` moves the clock on, a second at a time. */
function house() {
  let now = 0;
  let timers: { at: number; run: () => void }[] = [];
  const forked: { at: number; process: FakeProcess }[] = [];
  const deaths: EndReason[] = [];
  const supervisor = createSupervisor({
    count: 1,
    fork: () => {
      const process = new FakeProcess();
      forked.push({ at: now, process });
      return process as unknown as ChildProcess;
    },
    nameRun: (worker, start) => `${worker}.${start}`,
    given: () => '',
    clock: { monotonic: () => now },
    schedule: (ms, run) => {
      const timer = { at: now + ms, run };
      timers.push(timer);
      return () => void (timers = timers.filter((each) => each !== timer));
    },
    log: createLog('error', () => undefined, Date.now),
  });
  const jump = (ms: number): void => {
    now += ms;
    const due = timers.filter(({ at }) => at <= now);
    timers = timers.filter(({ at }) => at > now);
    for (const { run } of due) run();
  };
  const last = (): FakeProcess => forked.at(-1)?.process ?? new FakeProcess();
  const started = supervisor.start({
    heard: () => undefined,
    able: () => undefined,
    died: (_, reason) => deaths.push(reason),
  });
  return {
    ...{ supervisor, started, deaths, forked, last, jump },
    pass: (seconds: number, alive = true): void => {
      for (let second = 0; second < seconds; second++) {
        if (alive) last().report({ kind: 'alive', open: 0, says: '' });
        jump(1_000);
      }
    },
  };
}

test('behaviour: a worker that lived is replaced at once, one that died young after 1, 2, 4 ... 30 s', async () => {
  const { started, forked, last, pass } = house();
  last().report({ kind: 'ready' });
  await started;
  pass(60);
  last().emit('exit', 1, null);
  expect(forked.map(({ at }) => at)).toEqual([0, 60_000]);
  const waits: number[] = [];
  for (let death = 0; death < 7; death++) {
    const before = forked.length;
    last().report({ kind: 'ready' });
    const diedAt = forked.at(-1)?.at ?? 0;
    last().emit('exit', 1, null);
    while (forked.length === before) pass(1, false);
    waits.push(((forked.at(-1)?.at ?? 0) - diedAt) / 1000);
  }
  expect(waits).toEqual([1, 2, 4, 8, 16, 30, 30]);
  pass(11);
  const [before] = [forked.length];
  last().emit('exit', 1, null);
  expect(forked.length).toBe(before + 1);
});

test('behaviour: a worker that is silent for 30 s is killed, but not for a time in which the supervisor stood still', async () => {
  const { started, deaths, last, pass, jump } = house();
  last().report({ kind: 'ready' });
  await started;
  pass(29, false);
  expect(deaths).toEqual([]);
  jump(120_000);
  expect(deaths).toEqual([]);
  pass(29, false);
  expect(deaths).toEqual([]);
  pass(2, false);
  expect(deaths).toEqual(['stalled']);
});

test.each([
  ['exit', [1, null], 'exit'],
  ['a signal', [null, 'SIGKILL'], 'signal'],
  ['a heap that is full', [null, 'SIGABRT'], 'memory'],
] as const)('behaviour: a worker that is ended by %s is counted so', async (_name, [code, signal], reason) => {
  const { started, deaths, last } = house();
  last().report({ kind: 'ready' });
  await started;
  last().emit('exit', code, signal);
  expect(deaths).toEqual([reason]);
});

test('refuses: a start whose worker ends before it was ready, with what it said', async () => {
  const { started, last } = house();
  last().report({ kind: 'failed', reason: 'no store' });
  last().emit('exit', 69, null);
  await expect(started).rejects.toThrow('worker 1 could not start: no store');
  const silent = house();
  silent.last().emit('exit', null, 'SIGSEGV');
  await expect(silent.started).rejects.toThrow('worker 1 could not start: it ended before it was ready (SIGSEGV)');
});
