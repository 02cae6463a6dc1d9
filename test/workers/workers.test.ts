// Workers as processes that serve next to nothing: who gets which connection, and that none is left hanging whatever dies. What
// they serve in Tollgate is e2e/workers.test.ts'.
import { fork } from 'node:child_process';
import path from 'node:path';
import { expect, onTestFinished, test, vi } from 'vitest';
import { createWorkerReloads } from '../../src/compose/workers/worker-reloads.ts';
import { systemClock, systemSchedule, type Schedule } from '../../src/host/clock.ts';
import { createLog } from '../../src/host/log.ts';
import { createHandOver } from '../../src/workers/hand-over.ts';
import type { Member } from '../../src/workers/member.ts';
import {
  createSupervisor,
  type EndReason,
  type Supervisor,
  type SupervisorLimits,
} from '../../src/workers/supervisor.ts';
import { openRaw, type RawClient } from '../support/raw-client.ts';

const PROGRAM = path.join(import.meta.dirname, 'small-worker.ts');
const GET = 'GET / HTTP/1.1\r\nHost: h\r\n\r\n';
const SLOW = 'GET /slow HTTP/1.1\r\nHost: h\r\n\r\n';

type House = {
  readonly supervisor: Supervisor;
  readonly reloads: ReturnType<typeof createWorkerReloads>;
  readonly port: number;
  readonly deaths: { readonly worker: number; readonly run: string; readonly reason: EndReason }[];
  readonly answers: readonly string[];
  readonly close: () => Promise<void>;
};

type ReloadOptions = {
  readonly answerMs?: number;
  readonly reloadSchedule?: Schedule;
  /** Told of each worker that answered to a new configuration. */
  readonly onPrepared?: (worker: number) => void;
};

async function open(
  count: number,
  given: string,
  { answerMs, reloadSchedule, onPrepared, ...limits }: Partial<SupervisorLimits> & ReloadOptions = {},
): Promise<House> {
  const log = createLog('error', () => undefined, Date.now);
  const supervisor = createSupervisor({
    count,
    fork: (worker) => fork(PROGRAM, [String(worker)], { execArgv: [] }),
    nameRun: (worker, start) => `run-${worker}.${start}`,
    given: () => given,
    ...{ clock: systemClock, schedule: systemSchedule, log, limits },
  });
  onTestFinished(() => supervisor.end(0));
  const handOver = createHandOver({
    ...{ listener: 'proxy', listen: { host: '127.0.0.1', port: 0 }, members: supervisor.members },
    ...{ clock: systemClock, schedule: systemSchedule, maxWaiting: 1_000 },
  });
  onTestFinished(() => handOver.close());
  const answers: string[] = [];
  const deaths: { worker: number; run: string; reason: EndReason }[] = [];
  const reloads = createWorkerReloads(supervisor, reloadSchedule ?? systemSchedule, answerMs);
  const { port } = await handOver.bind();
  await supervisor.start({
    heard: (member, message) => {
      if (message.kind === 'prepared') {
        reloads.prepared(member, message);
        onPrepared?.(member.number);
      }
      if (message.kind === 'answer') answers.push(message.answer);
    },
    able: handOver.able,
    died: (member, reason) => {
      reloads.died(member);
      deaths.push({ worker: member.number, run: member.run, reason });
    },
  });
  await supervisor.allStarted();
  return { supervisor, reloads, port, deaths, answers, close: handOver.close };
}

/** The answer's text; `cut` where the connection was closed instead. Rejects where it is left hanging. */
function endOf(client: RawClient): Promise<string> {
  return client.answer().then(
    ({ body }) => body.toString(),
    (error: unknown) => {
      if (error instanceof Error && error.message.startsWith('closed')) return 'cut';
      throw error;
    },
  );
}

/** The same on a connection of its own. */
async function ask(port: number, request = GET): Promise<string> {
  const client = await openRaw(port);
  try {
    client.send(request);
    return await endOf(client);
  } finally {
    client.close();
  }
}

const ready = (supervisor: Supervisor): readonly Member[] =>
  supervisor.members().filter(({ life }) => life === 'ready');

test('behaviour: each worker gets about as many connections, also after one of them was replaced', async () => {
  const { port, supervisor, deaths } = await open(4, 'x', { youngMs: 0 });
  const serve = async (connections: number): Promise<number[]> => {
    const clients = await Promise.all(Array.from({ length: connections }, () => openRaw(port)));
    onTestFinished(() => clients.forEach(({ close }) => close()));
    const counts = new Map<string, number>();
    for (const client of clients) {
      client.send(GET);
      const worker = (await client.answer()).body.toString();
      counts.set(worker, (counts.get(worker) ?? 0) + 1);
    }
    return [...counts.values()];
  };
  // A busy machine makes some of them slow to take one.
  for (const count of await serve(80)) expect(Math.abs(count - 20)).toBeLessThanOrEqual(10);
  supervisor.members()[0]?.kill();
  await vi.waitFor(() => expect(deaths).toHaveLength(1), { timeout: 60_000, interval: 5 });
  await vi.waitFor(() => expect(ready(supervisor)).toHaveLength(4), { timeout: 60_000, interval: 20 });
  // The new one has none yet: it gets as many as the others have.
  await serve(80);
  const loads = supervisor.members().map(({ load }) => load);
  for (const load of loads) expect(Math.abs(load - 35)).toBeLessThanOrEqual(15);
});

test('behaviour: 12 kills of a loaded worker leave no connection hanging, and nobody else notices', async () => {
  const { port, supervisor, deaths } = await open(2, 'x', { youngMs: 0 });
  const over = new AbortController();
  let begun = 0;
  let answered = 0;
  let cut = 0;
  const churn = async (): Promise<void> => {
    while (!over.signal.aborted) {
      const client = await openRaw(port);
      client.send(begun++ % 3 === 0 ? SLOW : GET);
      if ((await endOf(client)) === 'cut') cut++;
      else answered++;
      client.close();
    }
  };
  const churning = Promise.all(Array.from({ length: 24 }, churn));
  for (let kills = 0; kills < 12; kills++) {
    await vi.waitFor(() => expect(ready(supervisor)).toHaveLength(2), { timeout: 60_000, interval: 10 });
    const [victim, other] = kills % 2 === 0 ? supervisor.members() : supervisor.members().toReversed();
    // Held by the other one over the death.
    await vi.waitFor(() => expect(victim?.load).toBeGreaterThan(2), { timeout: 60_000, interval: 5 });
    const before = other?.run;
    const enough = answered + 10;
    await vi.waitFor(() => expect(answered).toBeGreaterThan(enough), { timeout: 60_000, interval: 5 });
    victim?.kill();
    await vi.waitFor(() => expect(deaths).toHaveLength(kills + 1), { timeout: 60_000, interval: 5 });
    expect(supervisor.members().map(({ run }) => run)).toContain(before);
  }
  over.abort();
  await churning;
  expect(answered).toBeGreaterThan(100);
  // Those that were with the dead one and no more.
  expect(cut).toBeLessThanOrEqual(12 * 24);
  expect(new Set(deaths.map(({ run }) => run)).size).toBe(12);
  expect(deaths.every(({ reason }) => reason === 'signal')).toBe(true);
});

test('behaviour: requests of the other workers go on over a death', async () => {
  const { port, supervisor } = await open(2, 'x', { youngMs: 0 });
  const clients = await Promise.all(Array.from({ length: 20 }, () => openRaw(port)));
  onTestFinished(() => clients.forEach(({ close }) => close()));
  const by = await Promise.all(
    clients.map(async (client) => {
      client.send(GET);
      return (await client.answer()).body.toString();
    }),
  );
  const ends = clients.map(async (client) => {
    client.send(SLOW);
    return endOf(client);
  });
  supervisor.members()[0]?.kill();
  expect(await Promise.all(ends)).toEqual(by.map((worker) => (worker === '1 x' ? 'cut' : worker)));
});

test('behaviour: a worker that stands still holds up nobody but the connection on its way to it', async () => {
  const { port, supervisor, deaths } = await open(2, 'x', { youngMs: 0 });
  const [still] = supervisor.members();
  still?.child.kill('SIGSTOP');
  // One of them meets it, and all of them end once it is killed.
  const asked = Array.from({ length: 10 }, () => ask(port));
  let answered = 0;
  for (const answer of asked) void answer.then((said) => (answered += said === '2 x' ? 1 : 0));
  await vi.waitFor(() => expect(answered).toBe(9), { timeout: 60_000, interval: 20 });
  if (still !== undefined) supervisor.replace(still);
  expect((await Promise.all(asked)).toSorted()).toEqual([...Array<string>(9).fill('2 x'), 'cut']);
  expect(deaths).toEqual([{ worker: 1, run: 'run-1.1', reason: 'stalled' }]);
  await vi.waitFor(() => expect(ready(supervisor)).toHaveLength(2), { timeout: 60_000, interval: 20 });
});

test('refuses: a start with a worker that cannot start', async () => {
  await expect(open(3, 'fails 2')).rejects.toThrow('worker 2 could not start: it was told not to');
});

test('behaviour: a configuration is taken by all workers or by none', async () => {
  const { port, reloads } = await open(2, 'old', { answerMs: 60_000 });
  await expect(reloads.prepare('refused by 2')).rejects.toThrow('not this one');
  const told = async (): Promise<Set<string>> => {
    const said = new Set<string>();
    for (let asked = 0; asked < 8; asked++) said.add((await ask(port)).split(' ').slice(1).join(' '));
    return said;
  };
  expect(await told()).toEqual(new Set(['old']));
  const commit = await reloads.prepare('new');
  expect(await told()).toEqual(new Set(['old']));
  commit();
  await vi.waitFor(async () => expect(await told()).toEqual(new Set(['new'])), { timeout: 60_000, interval: 50 });
});

test('behaviour: a worker that does not answer to a new configuration is replaced, the others take it', async () => {
  let endTime = (): void => undefined;
  const { reloads, supervisor, deaths } = await open(2, 'old', {
    youngMs: 0,
    // The time to answer is up once the other one has answered.
    reloadSchedule: (_ms, run) => {
      endTime = run;
      return () => undefined;
    },
    onPrepared: (worker) => worker === 2 && endTime(),
  });
  (await reloads.prepare('ignored by 1'))();
  await vi.waitFor(() => expect(deaths.map(({ worker, reason }) => [worker, reason])).toEqual([[1, 'stalled']]), {
    timeout: 60_000,
    interval: 20,
  });
  expect(supervisor.lives().map(({ worker }) => worker)).toEqual([1, 2]);
});

/** Eight connections that brought no request yet, with workers that were told to end. */
async function drained(given: string): Promise<{ clients: readonly RawClient[]; ended: Promise<void> }> {
  const { port, supervisor, answers, close } = await open(2, given);
  const clients = await Promise.all(Array.from({ length: 8 }, () => openRaw(port)));
  onTestFinished(() => clients.forEach((client) => client.close()));
  supervisor.tell({ kind: 'drain' });
  await close();
  supervisor.tell({ kind: 'ask', ask: 1, question: 'have you heard?' });
  await vi.waitFor(() => expect(answers.toSorted()).toEqual(['1: have you heard?', '2: have you heard?']), {
    timeout: 60_000,
    interval: 5,
  });
  supervisor.tell({ kind: 'close', withinMs: 120_000 });
  return { clients, ended: supervisor.end(120_000) };
}

test('behaviour: a drain lets a connection bring its first request, which is its last', async () => {
  const { clients, ended } = await drained('patient');
  for (const client of clients) client.send(GET);
  for (const client of clients) {
    const { status, headers } = await client.answer();
    expect(status).toBe(200);
    expect(headers.map((pair) => pair.join(': ').toLowerCase())).toContain('connection: close');
  }
  await ended;
});

test('behaviour: a drain closes connections that bring no request', async () => {
  const { clients, ended } = await drained('x');
  for (const client of clients) await client.closed;
  await ended;
});

test('behaviour: slow headers are answered 408 by the worker that has the connection', async () => {
  const { port } = await open(2, 'hasty');
  const client = await openRaw(port);
  onTestFinished(() => client.close());
  client.send('GET / HTTP/1.1\r\n');
  expect((await client.answer()).status).toBe(408);
});
