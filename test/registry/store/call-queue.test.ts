// The queue in front of a ledger, with carriers that a test answers for: what goes out together, what is refused, and
// what is never carried out.
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { LedgerUnavailable } from '../../../src/domain/payment/ledger.ts';
import { createLog } from '../../../src/host/log.ts';
import {
  createCallQueue,
  type Answers,
  type CallQueue,
  type CallQueueOptions,
  type Carrier,
  type PendingCall,
} from '../../../src/registry/store/call-queue.ts';

type Pending = PendingCall<number, string>;
type Sent = {
  readonly calls: readonly number[];
  /** Answers every call that has no answer yet, and comes back; `again` is left without one. */
  readonly done: (again?: readonly number[]) => void;
  readonly refuse: (message: string) => void;
};
type Stage = {
  readonly queue: CallQueue<number, string>;
  readonly sent: Sent[];
  readonly lines: string[];
  readonly closed: () => number;
};

function stage(options: Partial<CallQueueOptions<number, string>> = {}, carriers = 1): Stage {
  const sent: Sent[] = [];
  const lines: string[] = [];
  let closed = 0;
  const carrier = (): Carrier<number, string> => ({
    carry: (batch, answers) =>
      new Promise((resolve) => {
        sent.push(sentOf(batch, answers, resolve));
      }),
    close: async () => void closed++,
  });
  const queue = createCallQueue<number, string>({
    carriers: Array.from({ length: carriers }, carrier),
    ...{ maxBatch: 3, maxQueued: 10, timeoutMs: 60_000, next: 'idle' },
    log: createLog('error', (line) => void lines.push(line), Date.now),
    ...options,
  });
  return { queue, sent, lines, closed: () => closed };
}

function sentOf(
  batch: readonly Pending[],
  { finish, refuse }: Answers<number, string>,
  comeBack: (again: readonly Pending[]) => void,
): Sent {
  return {
    calls: batch.map(({ call }) => call),
    done: (again = []) => {
      for (const each of batch) if (!again.includes(each.call)) finish(each, `did ${each.call}`);
      comeBack(batch.filter(({ call }) => again.includes(call)));
    },
    refuse: (message) => {
      for (const each of batch) refuse(each, message);
      comeBack([]);
    },
  };
}

/** Waits until `count` batches went out, and gives their calls. */
async function batches({ sent }: Stage, count: number): Promise<readonly (readonly number[])[]> {
  await vi.waitFor(() => expect(sent.length).toBeGreaterThanOrEqual(count), { interval: 1 });
  return sent.map(({ calls }) => calls);
}

const callAll = ({ queue }: Stage, calls: readonly number[]): readonly Promise<string>[] =>
  calls.map((call) => queue.call(call));

describe.each(['idle', 'at_once'] as const)('a call queue whose next batch goes %s', (next) => {
  test('behaviour: calls that come together go out together, in their order, as many as a batch may hold', async () => {
    const on = stage({ next });
    const results = callAll(on, [1, 2, 3, 4, 5]);
    expect(await batches(on, 1)).toEqual([[1, 2, 3]]);
    expect(on.queue.waiting()).toBe(2);
    on.sent[0]?.done();
    expect(await batches(on, 2)).toEqual([
      [1, 2, 3],
      [4, 5],
    ]);
    on.sent[1]?.done();
    expect(await Promise.all(results)).toEqual(['did 1', 'did 2', 'did 3', 'did 4', 'did 5']);
    expect(on.queue.waiting()).toBe(0);
  });

  test('behaviour: calls that a carrier leaves without an answer go out again, before what came later', async () => {
    const on = stage({ next });
    const results = callAll(on, [1, 2, 3, 4]);
    await batches(on, 1);
    on.sent[0]?.done([2, 3]);
    expect((await batches(on, 2))[1]).toEqual([2, 3, 4]);
    on.sent[1]?.done();
    expect(await Promise.all(results)).toEqual(['did 1', 'did 2', 'did 3', 'did 4']);
  });

  test('behaviour: a call without a waiting caller goes along with the next one, and by itself if none comes', async () => {
    const on = stage({ next });
    const results = [on.queue.callLater(1), on.queue.call(2)];
    expect(await batches(on, 1)).toEqual([[1, 2]]);
    results.push(on.queue.callLater(3));
    on.sent[0]?.done();
    expect((await batches(on, 2))[1]).toEqual([3]);
    on.sent[1]?.done();
    results.push(on.queue.callLater(4));
    expect((await batches(on, 3))[2]).toEqual([4]);
    on.sent[2]?.done();
    expect(await Promise.all(results)).toEqual(['did 1', 'did 2', 'did 3', 'did 4']);
  });

  test('behaviour: closing a call queue finishes what was called, refuses what comes later, and then closes the carriers', async () => {
    const on = stage({ next });
    const results = [...callAll(on, [1, 2, 3, 4]), on.queue.callLater(5)];
    const closing = on.queue.close();
    await expect(on.queue.call(6)).rejects.toThrow(new LedgerUnavailable('The ledger is closed.'));
    await batches(on, 1);
    on.sent[0]?.done();
    await batches(on, 2);
    expect(on.closed()).toBe(0);
    on.sent[1]?.done();
    await closing;
    expect(await Promise.all(results)).toHaveLength(5);
    expect(on.sent.map(({ calls }) => calls)).toEqual([
      [1, 2, 3],
      [4, 5],
    ]);
    expect(on.closed()).toBe(1);
  });

  test('refuses: a call whose time is over; one that was not sent by then is never carried out', async () => {
    // Time goes by only where the test says so.
    let now = performance.now();
    const clock = vi.spyOn(performance, 'now').mockImplementation(() => now);
    onTestFinished(() => clock.mockRestore());
    const on = stage({ next, timeoutMs: 50 });
    const results = callAll(on, [1, 2, 3, 4]);
    now += 50;
    const late = new LedgerUnavailable('The ledger did not answer within 50 milliseconds.');
    for (const result of results) await expect(result).rejects.toThrow(late);
    expect(on.queue.waiting()).toBe(0);
    const fifth = on.queue.call(5);
    on.sent[0]?.done([1]);
    expect(await batches(on, 2)).toEqual([[1, 2, 3], [5]]);
    on.sent[1]?.done();
    expect(await fifth).toBe('did 5');
  });
});

test('refuses: more calls than may wait in a queue', async () => {
  const on = stage({ maxQueued: 2 });
  const [first, second, third] = callAll(on, [1, 2, 3]);
  await expect(third).rejects.toThrow(new LedgerUnavailable('Too many calls wait for the ledger.'));
  expect(await batches(on, 1)).toEqual([[1, 2]]);
  on.sent[0]?.done();
  expect(await Promise.all([first, second])).toEqual(['did 1', 'did 2']);
});

test('behaviour: the calls of an outage that fail the same way are told once, and again after one that succeeded', async () => {
  const on = stage({ maxBatch: 1 });
  const outcomes: string[] = [];
  for (const [call, message] of ['full', 'full', 'away', undefined, 'away'].entries()) {
    const result = on.queue.call(call).catch((error: unknown) => String(error));
    await batches(on, call + 1);
    if (message === undefined) on.sent[call]?.done();
    else on.sent[call]?.refuse(message);
    outcomes.push(await result);
  }
  expect(outcomes.filter((each) => each.startsWith('LedgerUnavailable'))).toHaveLength(4);
  expect(on.lines.map((line) => /full|away/.exec(line)?.[0])).toEqual(['full', 'away', 'away']);
});

test('behaviour: batches go out side by side, one for each carrier', async () => {
  const on = stage({ maxBatch: 1, next: 'at_once' }, 2);
  const first = on.queue.call(1);
  await batches(on, 1);
  const others = callAll(on, [2, 3]);
  expect(await batches(on, 2)).toEqual([[1], [2]]);
  expect(on.queue.waiting()).toBe(1);
  on.sent[1]?.done();
  expect((await batches(on, 3))[2]).toEqual([3]);
  on.sent[0]?.done();
  on.sent[2]?.done();
  expect(await Promise.all([first, ...others])).toEqual(['did 1', 'did 2', 'did 3']);
});
