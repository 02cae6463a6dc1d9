// The loop that keeps a sidecar in step: when it asks, what it takes, what it says. Time and the registry are fakes.
import { describe, expect, test } from 'vitest';
import { FULL_FOLDING } from '../../../src/domain/profile.ts';
import { createCompiler } from '../../../src/gateway/sync/compile.ts';
import { createCurrent } from '../../../src/gateway/sync/current.ts';
import type { SnapshotFile, StoredSet } from '../../../src/gateway/sync/snapshot-file.ts';
import type { FetchResult } from '../../../src/gateway/sync/source.ts';
import { checkRoutes } from '../../../src/gateway/sync/status.ts';
import { createSync, type SyncOptions } from '../../../src/gateway/sync/sync.ts';
import { createMetrics } from '../../../src/host/metrics.ts';
import { AWAY, collectLog, fakeSource, fakeStream, fakeTime, found, settle, steadyRandom } from './fakes.ts';

const MINUTE = 60_000;

function setUp(
  answer: FetchResult,
  { stored, jitter = 0.999_999_9, ...rest }: Partial<SyncOptions> & { stored?: StoredSet; jitter?: number } = {},
) {
  const time = fakeTime();
  const source = fakeSource(answer);
  const current = createCurrent();
  const metrics = createMetrics();
  const { log, lines } = collectLog();
  const kept: StoredSet[] = [];
  const snapshotFile: SnapshotFile = {
    read: () => Promise.resolve(stored),
    keep: (set, savedAt) => void kept.push({ set, savedAt }),
    settled: () => Promise.resolve(),
  };
  const sync = createSync(
    { pollIntervalMs: 15_000, emptyAfterMs: 5 * MINUTE, ...rest },
    {
      source,
      snapshotFile,
      compiler: createCompiler(
        current,
        () => ({ encodedSlashes: 'refuse', doubleSlashes: 'merge', folding: FULL_FOLDING }),
        log,
      ),
      metrics,
      clock: time,
      schedule: time.schedule,
      random: steadyRandom(jitter),
      log,
    },
  );
  const counted = async (): Promise<Record<string, number>> =>
    Object.fromEntries(
      [...(await metrics.text()).matchAll(/^tollgate_sync_total\{result="(\w+)"\} (\d+)/gm)].map(
        ([, result, count]) => [result, Number(count)],
      ),
    );
  const patterns = (): readonly string[] | undefined => current.snapshot?.routes.map(({ pattern }) => pattern);
  const said = (level: string): readonly string[] => lines.filter((line) => line.level === level).map(({ msg }) => msg);
  return { time, source, current, metrics, sync, kept, lines, counted, patterns, said };
}

describe('polling', () => {
  test('behaviour: the first set is in force with the first poll, and the next poll asks with it', async () => {
    const { sync, source, time, patterns, kept, counted } = setUp(found('A', 1, ['GET /a']));
    await sync.start();
    await settle();
    expect(patterns()).toEqual(['/a']);
    expect(kept).toMatchObject([{ set: { revision: 1 } }]);
    source.answer = { kind: 'unchanged' };
    await time.advance(15_000);
    expect(source.asked).toHaveLength(2);
    expect(source.asked[1]).toMatchObject({ etag: '"1"' });
    expect(await counted()).toEqual({ updated: 1, unchanged: 1 });
    await sync.close();
    expect(time.waits()).toEqual([]);
  });

  test('behaviour: jitter shortens the interval by up to a fifth and never lengthens it', async () => {
    for (const [jitter, wait] of [
      [0, 12_000],
      [0.5, 13_500],
      [0.999_999_9, 15_000],
    ] as const) {
      const { sync, time } = setUp(found('A', 1, []), { jitter });
      await sync.start();
      await settle();
      expect(time.waits()[0]).toBe(wait);
      await sync.close();
    }
  });

  test('behaviour: one poll at a time; change events during a poll make one more after it, however many they are', async () => {
    const flight = Promise.withResolvers<FetchResult>();
    const { sync, source, time, patterns } = setUp(AWAY);
    source.answer = flight.promise;
    await sync.start();
    for (let i = 0; i < 50; i++) sync.nudge();
    await time.advance(60 * MINUTE);
    expect(source.asked).toHaveLength(1);
    source.answer = found('A', 2, ['GET /new']);
    flight.resolve(found('A', 1, ['GET /old']));
    await settle();
    expect(patterns()).toEqual(['/old']);
    await time.advance(2 * 60 * MINUTE);
    expect(patterns()).toEqual(['/new']);
    await sync.close();
  });

  test('behaviour: a change event is answered within a moment; one that never stops is not answered all the time', async () => {
    const { sync, source, time } = setUp(found('A', 1, []), { pollIntervalMs: 60 * MINUTE });
    await sync.start();
    await settle();
    sync.nudge();
    await time.advance(20);
    expect(source.asked).toHaveLength(2);
    for (let i = 0; i < 1000; i++) {
      sync.nudge();
      await time.advance(1);
    }
    expect(source.asked.length).toBeLessThanOrEqual(2 + 1000 / 20 + 1);
    await sync.close();
  });

  test('behaviour: back-off while the registry is away, from the interval up to two minutes, gone with the first answer', async () => {
    const { sync, source, time } = setUp(found('A', 1, ['GET /a']));
    await sync.start();
    await settle();
    source.answer = AWAY;
    const waits: number[] = [];
    for (let i = 0; i < 6; i++) {
      const [wait = 0] = time.waits();
      waits.push(Math.round(wait / 1000));
      await time.advance(wait);
    }
    expect(waits).toEqual([15, 15, 30, 60, 120, 120]);
    source.answer = { kind: 'unchanged' };
    await time.advance(120_000);
    expect(time.waits()[0]).toBe(15_000);
    await sync.close();
  });

  test('behaviour: before the first set it tries from one second on, and as late as the registry asks for', async () => {
    const { sync, source, time } = setUp(AWAY);
    await sync.start();
    await settle();
    expect(time.waits()[0]).toBe(1000);
    source.answer = { kind: 'unavailable', reason: 'the registry answered 503', retryAfterMs: 42_000 };
    await time.advance(1000);
    expect(time.waits()[0]).toBe(42_000);
    await sync.close();
  });

  test('behaviour: a failure is logged when it begins, not at every poll, and its end is logged', async () => {
    const { sync, source, time, said } = setUp(found('A', 1, ['GET /a']));
    await sync.start();
    await settle();
    source.answer = AWAY;
    await time.advance(30 * MINUTE);
    expect(said('warn')).toEqual(['the registry is away, the last good routes stay']);
    source.answer = { kind: 'unchanged' };
    await time.advance(2 * MINUTE);
    expect(said('info')).toContain('the registry answers again');
    await sync.close();
  });
});

describe('what is taken', () => {
  test('refuses: an invalid set whole; the last good one stays and is what is asked with', async () => {
    const { sync, source, time, patterns, counted, said } = setUp(found('A', 1, ['GET /a']));
    await sync.start();
    await settle();
    for (const bad of [
      { kind: 'invalid', reason: 'it is not a JSON array' } as const,
      found('A', 2, ['GET /b', 'GET /b/']),
      found('A', 2, ['GET /b', 'GET /a**']),
      found('A', 2, ['GET /b', 'GET /c 0']),
    ]) {
      source.answer = bad;
      await time.advance(15_000);
      expect(patterns()).toEqual(['/a']);
    }
    expect(source.asked.at(-1)).toMatchObject({ revision: 1 });
    expect(await counted()).toEqual({ updated: 1, invalid: 4 });
    expect(said('error')).toHaveLength(4);
    expect(sync.status()).toMatchObject({
      revision: 1,
      lastError: expect.stringContaining('not a price') as string,
      away: false,
    });
    await sync.close();
  });

  test('attack: an emptied registry is held back, named everywhere, and taken after empty_after of saying so', async () => {
    const { sync, source, time, patterns, counted, said } = setUp(found('A', 7, ['GET /a', 'GET /b']));
    await sync.start();
    await settle();
    source.answer = found('A', 7, []);
    await time.advance(5 * MINUTE);
    expect(patterns()).toEqual(['/a', '/b']);
    expect(said('error')).toEqual(['route set held back, the last good one stays']);
    expect(await counted()).toMatchObject({ updated: 1, held: 20 });
    expect(sync.status().held).toBe('the registry has no routes any more, 2 are in force');
    const { detail, ok } = checkRoutes(sync.status(), 'refuse');
    expect(ok).toBe(true);
    expect(detail).toBe(
      '2 routes at revision 7, confirmed 300 s ago; held back: the registry has no routes any more, 2 are in force',
    );
    await time.advance(15_000);
    expect(patterns()).toEqual([]);
    expect(said('warn')).toEqual(['the set that was held back is taken: the registry kept saying so']);
    expect(sync.status().held).toBeUndefined();
    await sync.close();
  });

  test('behaviour: a held set does not count as a success, and goes when the registry is itself again', async () => {
    const { sync, source, time, patterns, metrics } = setUp(found('A', 7, ['GET /a']));
    await sync.start();
    await settle();
    const first = sync.status().lastSuccess;
    source.answer = found('B', 1, []);
    await time.advance(MINUTE);
    expect(sync.status()).toMatchObject({
      lastSuccess: first,
      ageMs: MINUTE,
      held: expect.stringContaining('calls itself B') as string,
    });
    expect(
      (await metrics.text()).includes(`tollgate_sync_last_success_timestamp_seconds ${(first ?? 0) / 1000}\n`),
    ).toBe(true);
    source.answer = found('A', 8, ['GET /b']);
    await time.advance(15_000);
    expect(patterns()).toEqual(['/b']);
    expect(sync.status()).toMatchObject({ held: undefined, revision: 8, ageMs: 0 });
    await sync.close();
  });

  test('behaviour: the same routes under a new revision are not compiled again', async () => {
    const first = found('A', 1, ['GET /a']);
    const { sync, source, time, current } = setUp(first);
    await sync.start();
    await settle();
    const snapshot = current.snapshot;
    source.answer = { kind: 'set', set: { ...first.set, revision: 3, etag: '"3"' } };
    await time.advance(15_000);
    expect(current.snapshot).toBe(snapshot);
    expect(sync.status().revision).toBe(3);
    await sync.close();
  });
});

describe('the snapshot file', () => {
  test('behaviour: serves at once, is named with its age, and its revision guards against older answers', async () => {
    const { set } = found('A', 7, ['GET /kept']);
    const { sync, source, time, patterns } = setUp(AWAY, { stored: { set, savedAt: 1_800_000_000_000 - 3_600_000 } });
    await sync.start();
    await settle();
    expect(patterns()).toEqual(['/kept']);
    expect(source.asked[0]).toBe(set);
    expect(sync.status()).toMatchObject({ source: 'disk', ageMs: 3_600_000, revision: 7, away: true });
    expect(checkRoutes(sync.status(), 'refuse')).toMatchObject({
      ok: true,
      detail: expect.stringContaining(
        '1 routes at revision 7, from the snapshot file, confirmed 3600 s ago; the registry could not',
      ) as string,
    });
    source.answer = found('A', 6, []);
    await time.advance(15_000);
    expect(patterns()).toEqual(['/kept']);
    source.answer = { kind: 'unchanged' };
    await time.advance(15_000);
    expect(sync.status()).toMatchObject({ source: 'registry', ageMs: 0 });
    await sync.close();
  });

  test('behaviour: without one nothing is in force until the first sync; readiness says so, or that all is free', async () => {
    const { sync, patterns, metrics } = setUp(AWAY);
    await sync.start();
    await settle();
    expect(patterns()).toBeUndefined();
    expect(checkRoutes(sync.status(), 'refuse')).toEqual({
      ok: false,
      detail: 'no routes were loaded yet; the registry could not be reached (ECONNREFUSED)',
    });
    expect(checkRoutes(sync.status(), 'forward')).toMatchObject({
      ok: true,
      detail: expect.stringContaining('forwarded free') as string,
    });
    // Not 0: TollgateNeverSynced fires where it is missing.
    expect(await metrics.text()).not.toMatch(/^tollgate_sync_last_success_timestamp_seconds /m);
    await sync.close();
  });
});

describe('change events', () => {
  test('behaviour: an event makes a poll at once, a comment does not, and a break resumes from the last id', async () => {
    const [first, second] = [fakeStream(), fakeStream()];
    const { sync, source, time } = setUp(found('A', 1, []), { pollIntervalMs: 60 * MINUTE });
    source.streams = [first.opened, second.opened, { kind: 'unavailable', reason: 'gone' }];
    await sync.start();
    await time.advance(1000);
    // One at the start and one because the stream opened.
    expect(source.asked).toHaveLength(2);
    first.send(': still here\n\nretry: 5\nid: 41\n\n');
    await time.advance(1000);
    expect(source.asked).toHaveLength(2);
    first.send('event: route.updated\nid: 42\ndata: {"amount":"0.00","free":tr');
    await time.advance(1000);
    expect(source.asked).toHaveLength(2);
    first.send('ue}\n\n');
    await time.advance(20);
    expect(source.asked).toHaveLength(3);
    first.end();
    await time.advance(500);
    expect(source.streamIds).toEqual([undefined, '42']);
    await sync.close();
    second.end();
  });

  test('behaviour: streams that fail are tried further and further apart, and at once when the registry answers again', async () => {
    const { sync, source, time } = setUp(found('A', 1, []), { pollIntervalMs: 60 * MINUTE });
    source.streams = [{ kind: 'unavailable', reason: 'gone' }];
    await sync.start();
    await time.advance(0);
    expect(time.waits()[0]).toBe(500);
    await time.advance(10 * MINUTE);
    expect(source.streamIds.length).toBeLessThan(20);
    const tried = source.streamIds.length;
    source.answer = AWAY;
    sync.nudge();
    await time.advance(20);
    source.answer = { kind: 'unchanged' };
    sync.nudge();
    await time.advance(20);
    expect(source.streamIds).toHaveLength(tried + 1);
    await sync.close();
  });

  test('behaviour: where no stream is offered polling goes on, and it is asked for again much later', async () => {
    const { sync, source, time } = setUp(found('A', 1, []));
    await sync.start();
    await time.advance(9 * MINUTE);
    expect(source.streamIds).toHaveLength(1);
    expect(source.asked.length).toBeGreaterThan(30);
    await time.advance(2 * MINUTE);
    expect(source.streamIds).toHaveLength(2);
    await sync.close();
  });
});
