// The queue in front of a collector, in virtual time: batches, a full queue, another try, a rest, and a stop.
import { gunzipSync } from 'node:zlib';
import { expect, test } from 'vitest';
import { createExporter, type PostResult } from '../../../src/host/otlp/exporter.ts';
import { createLog } from '../../../src/host/log.ts';

type Timer = { readonly at: number; readonly run: () => void };

type Bed = ReturnType<typeof bed>;

/** An exporter whose collector answers what the test says, at a time that the test says. */
function bed() {
  let now = 0;
  const timers = new Set<Timer>();
  const counts = { exported: 0, dropped: 0, refused: 0 };
  const posts: { at: number; spans: number; signal: AbortSignal; answer: (result: PostResult) => void }[] = [];
  const arrived: (() => void)[] = [];
  const lines: string[] = [];
  const exporter = createExporter({
    post: (body, signal) =>
      new Promise((resolve) => {
        const { spans } = JSON.parse(gunzipSync(body).toString()) as { spans: unknown[] };
        signal.addEventListener('abort', () => resolve({ kind: 'again', waitMs: undefined, why: 'stopped' }));
        posts.push({ at: now, spans: spans.length, signal, answer: resolve });
        for (const resolveArrival of arrived.splice(0)) resolveArrival();
      }),
    envelope: { before: '{"spans":[', after: ']}' },
    schedule: (ms, run) => {
      const timer = { at: now + ms, run };
      timers.add(timer);
      return () => void timers.delete(timer);
    },
    monotonic: () => now,
    fraction: () => 0,
    counted: (result, spans) => void (counts[result] += spans),
    log: createLog(
      'info',
      (line) => void lines.push(line),
      () => 0,
    ),
  });
  const settle = async (): Promise<void> => {
    for (let turn = 0; turn < 3; turn++) await new Promise(setImmediate);
  };
  return {
    ...{ exporter, counts, posts, lines, settle },
    add: (spans: number) => {
      for (let at = 0; at < spans; at++) exporter.add(`"${at}"`);
    },
    /** The `number`th post, once it was made. */
    posted: async (number: number) => {
      while (posts.length < number) await new Promise<void>((resolve) => arrived.push(resolve));
      const post = posts[number - 1];
      if (post === undefined) throw new Error('no such post');
      return post;
    },
    /** Moves the time to the next timer; returns how long that was. */
    next: async (): Promise<number> => {
      await settle();
      // A batch is compressed before anything waits for its sake.
      while (timers.size === 0) await new Promise(setImmediate);
      const [first] = [...timers].toSorted((a, b) => a.at - b.at);
      if (first === undefined) throw new Error('no timer is set');
      timers.delete(first);
      const passed = first.at - now;
      now = first.at;
      first.run();
      await settle();
      return passed;
    },
    timers: () => timers.size,
  };
}

const TAKEN: PostResult = { kind: 'taken', rejected: 0 };
const AWAY: PostResult = { kind: 'again', waitMs: undefined, why: 'away' };

test('behaviour: a lone span is exported after 5 s, 512 of them at once', async () => {
  const { add, next, posted, counts, settle, timers } = bed();
  add(1);
  expect(await next()).toBe(5000);
  const first = await posted(1);
  expect(first.spans).toBe(1);
  add(511);
  first.answer(TAKEN);
  await settle();
  expect([counts.exported, timers()]).toEqual([1, 1]);
  add(1);
  const second = await posted(2);
  expect([second.spans, second.at]).toEqual([512, 5000]);
  second.answer(TAKEN);
  await settle();
  expect([counts, timers()]).toEqual([{ exported: 513, dropped: 0, refused: 0 }, 0]);
});

test('refuses: the newest span once 4,096 wait or are under way, and counts it as dropped', async () => {
  const { add, posted, counts, settle } = bed();
  add(4096);
  const first = await posted(1);
  add(3);
  expect(counts.dropped).toBe(3);
  first.answer(TAKEN);
  for (let number = 2; number <= 8; number++) (await posted(number)).answer(TAKEN);
  await settle();
  add(1);
  expect(counts).toEqual({ exported: 4096, dropped: 3, refused: 0 });
});

test('behaviour: a batch that finds nobody is tried again after 1, 2, 4, 8, 16 s, and given up within a minute', async () => {
  const { add, posted, next, counts, lines, settle } = bed();
  add(512);
  const pauses: number[] = [];
  for (let number = 1; number <= 6; number++) {
    (await posted(number)).answer(AWAY);
    await settle();
    if (number < 6) pauses.push(await next());
  }
  expect(pauses).toEqual([1000, 2000, 4000, 8000, 16_000]);
  expect(counts).toEqual({ exported: 0, dropped: 512, refused: 0 });
  add(512);
  (await posted(7)).answer(TAKEN);
  await settle();
  expect(counts).toEqual({ exported: 512, dropped: 512, refused: 0 });
  // One line when it began, one when it was over.
  expect(lines.map((line) => (JSON.parse(line) as { msg: string }).msg)).toEqual([
    'spans are not exported',
    'spans are exported again',
  ]);
});

test('behaviour: Retry-After is kept to, also by the batch behind one that cannot wait for so long', async () => {
  const { add, posted, next, counts, settle } = bed();
  add(512);
  (await posted(1)).answer({ kind: 'again', waitMs: 7000, why: '429' });
  expect(await next()).toBe(7000);
  (await posted(2)).answer({ kind: 'again', waitMs: 90_000, why: '429' });
  await settle();
  expect(counts.dropped).toBe(512);
  add(512);
  expect(await next()).toBe(90_000);
  (await posted(3)).answer(TAKEN);
  await settle();
  expect(counts).toEqual({ exported: 512, dropped: 512, refused: 0 });
});

test('behaviour: what a collector refuses is not tried again, and what it takes in part is counted in part', async () => {
  const { add, posted, counts, settle, timers } = bed();
  add(512);
  (await posted(1)).answer({ kind: 'refused', why: '400' });
  await settle();
  expect([counts, timers()]).toEqual([{ exported: 0, dropped: 0, refused: 512 }, 0]);
  add(512);
  (await posted(2)).answer({ kind: 'taken', rejected: 12 });
  await settle();
  expect(counts).toEqual({ exported: 500, dropped: 0, refused: 524 });
});

async function stopped({ exporter, settle }: Bed): Promise<() => boolean> {
  let isOver = false;
  void exporter.close(2000).then(() => (isOver = true));
  await settle();
  return () => isOver;
}

test('behaviour: a stop exports what is left at once', async () => {
  const all = bed();
  all.add(700);
  (await all.posted(1)).answer(TAKEN);
  await all.settle();
  const isOver = await stopped(all);
  const second = await all.posted(2);
  expect([second.at, second.spans, isOver()]).toEqual([0, 188, false]);
  second.answer(TAKEN);
  await expect.poll(isOver).toBe(true);
  all.add(1);
  expect(all.counts).toEqual({ exported: 700, dropped: 1, refused: 0 });
});

test('behaviour: a stop waits 2 s for a collector that does not answer, then drops what is left', async () => {
  const all = bed();
  all.add(700);
  const first = await all.posted(1);
  const isOver = await stopped(all);
  expect(await all.next()).toBe(2000);
  await expect.poll(isOver).toBe(true);
  expect([first.signal.aborted, all.counts]).toEqual([true, { exported: 0, dropped: 700, refused: 0 }]);
  expect(all.timers()).toBe(0);
});

test('behaviour: a stop does not wait for the end of a rest, and tries once more', async () => {
  const all = bed();
  all.add(512);
  (await all.posted(1)).answer({ kind: 'again', waitMs: 30_000, why: '429' });
  await all.settle();
  const isOver = await stopped(all);
  const second = await all.posted(2);
  expect(second.at).toBe(0);
  second.answer(TAKEN);
  await expect.poll(isOver).toBe(true);
  expect(all.counts).toEqual({ exported: 512, dropped: 0, refused: 0 });
});
