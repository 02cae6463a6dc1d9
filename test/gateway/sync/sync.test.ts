// The loop that keeps a sidecar in step: when it asks, what it takes, what it says. Time and the registry are fakes.
import { describe, expect, test, vi } from 'vitest';
import { createSetDigest } from '../../../src/domain/routing/set-digest.ts';
import { toWire, type Route } from '../../../src/domain/routing/route.ts';
import { FULL_FOLDING } from '../../../src/domain/routing/profile.ts';
import { createCompiler } from '../../../src/gateway/routes/snapshot-compiler.ts';
import { createCurrent } from '../../../src/gateway/routes/current-snapshot.ts';
import type { SnapshotFile, StoredSet } from '../../../src/gateway/sync/keep/snapshot-file.ts';
import type { FetchResult, FoundSet } from '../../../src/gateway/sync/follow/route-source.ts';
import { checkRoutes } from '../../../src/gateway/sync/status.ts';
import type { SyncOptions } from '../../../src/gateway/sync/machine/state.ts';
import { createSync } from '../../../src/gateway/sync/sync.ts';
import { createMetrics } from '../../../src/host/metrics.ts';
import { route } from '../../cases/routes.ts';
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

  test('behaviour: there is one poll at a time; change events during a poll make one more after it, however many they are', async () => {
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

  test('behaviour: polls back off while the registry is away, from the interval up to two minutes, until the first answer', async () => {
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

  test('behaviour: polls before the first set come from one second on, and as late as the registry asks for', async () => {
    const { sync, source, time } = setUp(AWAY);
    await sync.start();
    await settle();
    expect(time.waits()[0]).toBe(1000);
    source.answer = { kind: 'unavailable', reason: 'the registry answered 503', retryAfterMs: 42_000 };
    await time.advance(1000);
    expect(time.waits()[0]).toBe(42_000);
    await sync.close();
  });

  test('behaviour: the routes stay after a defect of our own, and the next poll is taken', async () => {
    const { sync, source, time, patterns, said } = setUp(found('A', 1, ['GET /a']));
    await sync.start();
    await settle();
    const defect = Promise.reject<FetchResult>(new Error('a defect'));
    defect.catch(() => undefined);
    source.answer = defect;
    await time.advance(15_000);
    expect([said('error'), patterns()]).toEqual([['a poll of the registry failed'], ['/a']]);
    source.answer = found('A', 2, ['GET /b']);
    await time.advance(30_000);
    expect(patterns()).toEqual(['/b']);
    await sync.close();
  });

  test('behaviour: a poll that fails is logged when the failing begins, not every time, and its end is logged', async () => {
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

  test('behaviour: a registry that is away before the first set leaves no routes, and the log does not say that some stay', async () => {
    const { sync, said } = setUp(AWAY);
    await sync.start();
    await settle();
    expect(said('warn')).toEqual(['the registry is away, no routes are known yet']);
    await sync.close();
  });
});

describe('what is taken', () => {
  test('refuses: a set that is invalid, as a whole; the last good one stays and is what is asked with', async () => {
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

  test('behaviour: routes that are the same under a new revision are not compiled again', async () => {
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
  test('behaviour: a snapshot file serves at once, is named with its age, and its revision guards against older answers', async () => {
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
    expect(sync.status()).toMatchObject({ source: 'registry', lastError: undefined, held: undefined });
    await sync.close();
  });

  test('behaviour: a start without a snapshot file has nothing in force until the first sync; readiness says so, or that all is free', async () => {
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

describe('the event stream', () => {
  /** A registry that tells its changes, as ours does. */
  class Told {
    revision: number;
    readonly routes = new Map<string, Route>();
    constructor(set: FoundSet) {
      this.revision = set.revision ?? 0;
      for (const each of set.routes) this.routes.set(each.id, each);
    }
    change(kind: 'created' | 'updated' | 'deleted', changed: Route): string {
      this.revision++;
      if (kind === 'deleted') this.routes.delete(changed.id);
      else this.routes.set(changed.id, changed);
      const data = kind === 'deleted' ? { id: changed.id } : toWire(changed);
      return `event: route.${kind}\nid: ${this.revision}\ndata: ${JSON.stringify(data)}\n\n`;
    }
    head(digest = this.digest()): string {
      const data = JSON.stringify({ revision: this.revision, routes: this.routes.size, digest });
      return `event: head\nid: ${this.revision}\ndata: ${data}\n\n`;
    }
    digest(): string {
      const digest = createSetDigest();
      for (const each of this.routes.values()) digest.add(each);
      return digest.hex();
    }
    set(registryId = 'A'): FetchResult {
      const routes = [...this.routes.values()];
      return { kind: 'set', set: { registryId, revision: this.revision, etag: undefined, digest: 'x', routes } };
    }
    named(registryId = 'A'): FetchResult {
      return { kind: 'named', registryId, revision: this.revision };
    }
  }

  const follow = async (rules: readonly string[], options: Partial<SyncOptions> = {}) => {
    const first = found('A', 7, rules);
    const world = setUp(first, { pollIntervalMs: 60 * MINUTE, ...options });
    const stream = fakeStream();
    const told = new Told(first.set);
    world.source.streams = [stream.opened, { kind: 'unavailable', reason: 'gone', isThere: false }];
    await world.sync.start();
    await settle();
    world.source.answer = told.named();
    const prices = (): readonly string[] | undefined =>
      world.current.snapshot?.routes.map(({ pattern, amount }) => `${pattern} ${amount}`).toSorted();
    const end = async (): Promise<void> => {
      await world.sync.close();
      stream.end();
    };
    return { ...world, send: stream.send, endStream: stream.end, told, first: first.set, prices, end };
  };

  test('behaviour: a change on the stream is in force when it is heard, and nothing is asked for it', async () => {
    const { source, send, told, first, prices, counted, sync, kept, end } = await follow(['GET /a', 'GET /b']);
    const [a, b] = first.routes;
    if (a === undefined || b === undefined) throw new Error('no routes');
    expect([source.asked.length, source.streamIds]).toEqual([1, [7]]);
    send(told.change('updated', { ...a, amount: '9' }));
    send(told.change('deleted', b) + told.change('created', route('GET /c 0.30')));
    send(told.head());
    await settle();
    expect(prices()).toEqual(['/a 9', '/c 0.30']);
    expect(sync.status()).toMatchObject({ revision: 10, routes: 2 });
    expect(await counted()).toEqual({ updated: 4, unchanged: 1 });
    expect(source.asked).toHaveLength(1);
    // What is kept on disk is the set as it is.
    expect(kept.at(-1)?.set).toMatchObject({ revision: 10, etag: undefined });
    expect(
      kept
        .at(-1)
        ?.set.routes.map(({ pattern }) => pattern)
        .toSorted(),
    ).toEqual(['/a', '/c']);
    await end();
  });

  test('behaviour: a head of the stream that is ours confirms the routes; polls beside it ask which set there is', async () => {
    const { source, send, told, time, sync, end } = await follow(['GET /a'], { pollIntervalMs: MINUTE });
    await time.advance(30_000);
    expect(sync.status().ageMs).toBe(30_000);
    send(told.head());
    await settle();
    expect(sync.status().ageMs).toBe(0);
    await time.advance(30_000);
    expect(source.wants).toEqual(['changed', 'name']);
    expect(sync.status().ageMs).toBe(0);
    await end();
  });

  test('behaviour: a stream that broke off goes on from the revision it has, and takes no whole set', async () => {
    const { source, send, told, first, prices, time, sync, end, endStream } = await follow(['GET /a']);
    const [a] = first.routes;
    if (a === undefined) throw new Error('no route');
    const second = fakeStream();
    source.streams = [second.opened];
    send(told.change('updated', { ...a, amount: '1' }));
    await settle();
    endStream();
    const missed = told.change('updated', { ...a, amount: '2' });
    await time.advance(500);
    expect(source.streamIds).toEqual([7, 8]);
    second.send(missed + told.head());
    await settle();
    expect([prices(), sync.status().revision, source.asked.length]).toEqual([['/a 2'], 9, 1]);
    await end();
    second.end();
  });

  test('attack: events out of order, twice, or with one missing change nothing; what is missing is asked for', async () => {
    const { source, send, told, first, prices, time, end } = await follow(['GET /a']);
    const [a] = first.routes;
    if (a === undefined) throw new Error('no route');
    const [eight, nine] = [
      told.change('updated', { ...a, amount: '8' }),
      told.change('updated', { ...a, amount: '9' }),
    ];
    const second = fakeStream();
    source.streams = [second.opened];
    send(nine);
    await settle();
    expect(prices()).toEqual(['/a 0.10']);
    await time.advance(0);
    expect(source.streamIds).toEqual([7, 7]);
    second.send(eight + nine + eight + told.head());
    await settle();
    expect(prices()).toEqual(['/a 9']);
    expect(source.asked).toHaveLength(1);
    await end();
    second.end();
  });

  test('attack: a head of more than was told is a gap, and one that stays is the whole set', async () => {
    const { source, send, told, first, prices, time, end } = await follow(['GET /a']);
    const [a] = first.routes;
    if (a === undefined) throw new Error('no route');
    const [second, third] = [fakeStream(), fakeStream()];
    source.streams = [second.opened, third.opened];
    told.change('updated', { ...a, amount: '8' });
    send(told.head());
    await time.advance(0);
    expect(source.streamIds).toEqual([7, 7]);
    source.answer = told.set();
    second.send(told.head());
    await time.advance(20);
    expect(source.wants).toEqual(['changed', 'changed']);
    expect(prices()).toEqual(['/a 8']);
    expect(source.streamIds).toEqual([7, 7, 8]);
    await end();
    second.end();
    third.end();
  });

  test('attack: another digest is another set: it is taken anew, once, and polled if that is no help', async () => {
    const { source, send, told, time, prices, said, end } = await follow(['GET /a'], { pollIntervalMs: MINUTE });
    const [second, third] = [fakeStream(), fakeStream()];
    source.streams = [second.opened, third.opened];
    // The registry has another price, and never told.
    for (const each of told.routes.values()) told.routes.set(each.id, { ...each, amount: '5' });
    send(told.head());
    source.answer = told.set();
    await time.advance(20);
    expect(source.wants).toEqual(['changed', 'anew']);
    expect(prices()).toEqual(['/a 5']);
    second.send(told.head('f'.repeat(64)));
    await settle();
    expect(said('warn')).toEqual([
      'the routes in force are not those of the registry and are taken anew',
      'the registry gives another digest than its own set has; its routes are polled',
    ]);
    await time.advance(2 * MINUTE);
    expect(source.wants.slice(2)).toEqual(['changed', 'changed']);
    expect(source.streamIds).toHaveLength(2);
    await end();
    second.end();
    third.end();
  });

  test('attack: fewer routes under a digest that is ours by chance are another set too', async () => {
    const { source, send, told, time, end } = await follow(['GET /a']);
    send(told.head().replace('"routes":1', '"routes":2'));
    await time.advance(20);
    expect(source.wants).toEqual(['changed', 'anew']);
    await end();
  });

  test.each<[string, (told: Told) => string]>([
    ['a reset', () => 'event: reset\nid: 9\ndata: {"revision":9}\n\n'],
    ['a change that cannot be read', () => 'event: route.updated\nid: 8\ndata: {}\n\n'],
    ['a route that is created twice', (told) => told.change('created', first(told))],
    ['a change of a route that is not there', (told) => told.change('updated', route('GET /other'))],
    ['a price that is none', (told) => told.change('updated', { ...first(told), amount: '0' })],
  ])('behaviour: the whole set is taken after %s, and followed from there', async (_what, event) => {
    const { source, send, told, time, patterns, end } = await follow(['GET /a']);
    const second = fakeStream();
    source.streams = [second.opened];
    send(event(told));
    source.answer = found('A', 12, ['GET /whole']);
    await time.advance(20);
    expect([patterns(), source.wants, source.streamIds]).toEqual([['/whole'], ['changed', 'changed'], [7, 12]]);
    await end();
    second.end();
  });

  test('attack: a head of fewer changes, and a poll that finds fewer, are held back as an older set is', async () => {
    for (const by of ['head', 'poll'] as const) {
      const { source, send, told, time, prices, sync, end } = await follow(['GET /a'], { pollIntervalMs: MINUTE });
      told.revision = 5;
      if (by === 'head') send(told.head());
      else {
        source.answer = told.named();
        await time.advance(MINUTE);
      }
      source.answer = found('A', 5, []);
      await time.advance(20);
      expect(sync.status().held).toBe('the registry is at revision 5, the routes in force are at 7');
      expect(prices()).toEqual(['/a 0.10']);
      await time.advance(6 * MINUTE);
      expect(prices()).toEqual([]);
      expect(new Set(source.streamIds.slice(1))).toEqual(new Set([5]));
      await end();
    }
  });

  test('attack: a stream of another registry is not listened to, and its set is held back', async () => {
    const { sync, source, time, patterns } = setUp(found('A', 7, ['GET /a']), { pollIntervalMs: MINUTE });
    source.streams = [{ kind: 'stranger' }];
    await sync.start();
    source.answer = found('B', 1, []);
    await time.advance(20);
    expect(sync.status().held).toContain('calls itself B');
    expect(patterns()).toEqual(['/a']);
    await sync.close();
  });

  test('behaviour: a stream that tells nothing of what polls see is not waited for', async () => {
    const { source, told, first, time, prices, end } = await follow(['GET /a'], { pollIntervalMs: 10_000 });
    const [a] = first.routes;
    if (a === undefined) throw new Error('no route');
    told.change('updated', { ...a, amount: '8' });
    source.answer = told.named();
    await time.advance(10_000);
    expect(source.wants).toEqual(['changed', 'name']);
    await time.advance(10_000);
    source.answer = told.set();
    await time.advance(20);
    expect(source.wants).toEqual(['changed', 'name', 'name', 'changed']);
    expect(prices()).toEqual(['/a 8']);
    await end();
  });

  test('behaviour: a start from a snapshot file resumes the stream, and asks for no set', async () => {
    const { set } = found('A', 7, ['GET /kept']);
    const { sync, source, time, patterns } = setUp(
      { kind: 'named', registryId: 'A', revision: 8 },
      { stored: { set, savedAt: 1_799_999_999_000 } },
    );
    const stream = fakeStream();
    const told = new Told(set);
    source.streams = [stream.opened];
    await sync.start();
    await settle();
    expect([source.wants, source.streamIds]).toEqual([['name'], [7]]);
    stream.send(told.change('created', route('GET /missed')));
    stream.send(told.head());
    await settle();
    expect(patterns()).toEqual(['/kept', '/missed']);
    expect(sync.status()).toMatchObject({ source: 'registry', ageMs: 0, revision: 8 });
    await time.advance(4_000);
    expect(source.wants).toEqual(['name']);
    await sync.close();
    stream.end();
  });

  test('behaviour: a change that is heard while the whole set is compiled is applied to that set', async () => {
    const { source, send, told, first, time, prices, sync, end } = await follow(['GET /a']);
    const second = fakeStream();
    source.streams = [second.opened];
    const [a] = first.routes;
    if (a === undefined) throw new Error('no route');
    for (let i = 0; i < 3_000; i++) told.routes.set(`r${i}`, route(`GET /r/${i}`, { id: `r${i}` }));
    const flight = Promise.withResolvers<FetchResult>();
    source.answer = flight.promise;
    sync.nudge();
    await time.advance(20);
    // The set is compiled in slices, and the change is there before the last of them.
    flight.resolve(told.set());
    await Promise.resolve();
    send(told.change('updated', { ...a, amount: '9' }));
    await vi.waitFor(() => expect(sync.status()).toMatchObject({ routes: 3_001, revision: 8 }));
    expect(prices()).toContain('/a 9');
    await end();
    second.end();
  });

  test('behaviour: streams that fail are tried further and further apart, and at once when the registry answers again', async () => {
    const { sync, source, time } = setUp(found('A', 1, []), { pollIntervalMs: 60 * MINUTE });
    source.streams = [{ kind: 'unavailable', reason: 'gone', isThere: false }];
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

  test('behaviour: polling goes on if no stream is offered, and a stream is asked for again much later', async () => {
    const { sync, source, time } = setUp(found('A', 1, []));
    await sync.start();
    await time.advance(9 * MINUTE);
    expect(source.streamIds).toHaveLength(1);
    expect(source.asked.length).toBeGreaterThan(30);
    expect(new Set(source.wants)).toEqual(new Set(['changed']));
    await time.advance(2 * MINUTE);
    expect(source.streamIds).toHaveLength(2);
    await sync.close();
  });

  test('behaviour: the whole set is polled while streams are refused, and a stream is tried when it may be', async () => {
    const { sync, source, time } = setUp(found('A', 1, []));
    source.streams = [{ kind: 'refused', reason: 'full', retryAfterMs: 60_000 }];
    await sync.start();
    await time.advance(59_000);
    expect(source.streamIds).toHaveLength(1);
    expect(new Set(source.wants)).toEqual(new Set(['changed']));
    await time.advance(2_000);
    expect(source.streamIds).toHaveLength(2);
    await sync.close();
  });

  test('behaviour: a registry in trouble that had a stream is waited for; one that never had one is polled', async () => {
    const { source, told, time, endStream, end } = await follow(['GET /a'], { pollIntervalMs: MINUTE });
    source.streams = [{ kind: 'unavailable', reason: 'the registry answered 503', isThere: true }];
    source.answer = AWAY;
    endStream();
    await time.advance(3 * MINUTE);
    expect(new Set(source.wants.slice(1))).toEqual(new Set(['name']));
    const back = fakeStream();
    source.streams = [back.opened];
    source.answer = told.named();
    await time.advance(2 * MINUTE);
    back.send(told.head());
    await settle();
    expect(new Set(source.wants.slice(1))).toEqual(new Set(['name']));
    await end();
    back.end();
    const { sync, source: other, time: later } = setUp(found('A', 1, []), { pollIntervalMs: MINUTE });
    other.streams = [{ kind: 'unavailable', reason: 'the registry answered 503', isThere: true }];
    await sync.start();
    await later.advance(3 * MINUTE);
    expect(new Set(other.wants)).toEqual(new Set(['changed']));
    await sync.close();
  });

  test('behaviour: a registry that names no set is polled and not followed', async () => {
    const { sync, source, time } = setUp(found(undefined, undefined, ['GET /a']));
    await sync.start();
    await time.advance(MINUTE);
    expect([source.streamIds.length, new Set(source.wants)]).toEqual([0, new Set(['changed'])]);
    await sync.close();
  });

  function first(told: Told): Route {
    const [one] = told.routes.values();
    if (one === undefined) throw new Error('no route');
    return one;
  }
});
