// How one process hears of another's changes: by a notification, and where none comes (one was lost, or a pooler stands
// between) by reading the numbers of changes. Here they are read only if something says so.
import { performance } from 'node:perf_hooks';
import { afterAll, afterEach, describe, expect, test } from 'vitest';
import { createApiKey, digestKey } from '../../src/registry/auth/api-keys.ts';
import { createRandom } from '../../src/host/clock.ts';
import type { Store } from '../../src/registry/store/ports.ts';
import { openPostgres } from '../../src/registry/store/postgres/place.ts';
import { storedRoute } from '../cases/routes.ts';
import { until } from '../support/paid-tollgate.ts';
import { isPooled } from './pooler.ts';
import { hasPostgres } from './server.ts';
import { freshDatabase, placeOf, sharedPostgres, silent, stopSharedPostgres } from './store.ts';
import { startTap } from './tap.ts';

const TIMES = 21;
const MEDIAN_MS = 50;
const MANY = { maxRoutes: 1000 };

describe.skipIf(!hasPostgres || isPooled)('changes of other processes on PostgreSQL', () => {
  const closing: (() => Promise<void>)[] = [];
  afterEach(async () => {
    for (const close of closing.splice(0).toReversed()) await close();
  });
  afterAll(stopSharedPostgres);

  /** It reads the numbers of changes only if it hears something. */
  const opened = async (
    url: string,
    { pollMs = Infinity, ...address }: { pollMs?: number; pooler?: boolean; port?: number } = {},
  ): Promise<Store> => {
    const store = await openPostgres(placeOf(url, address), { now: Date.now, log: silent }, { pollMs });
    closing.push(store.close);
    return store;
  };
  let routes = 0;
  const writeAt = (store: Store): Promise<unknown> => {
    const pattern = `/notified/${++routes}`;
    return store.routes.write([{ kind: 'insert', route: storedRoute(`GET ${pattern}`), key: pattern }], MANY);
  };
  /**
   * Milliseconds from the answer of a write at `here` to the hint at `there`, at the median. What a busy machine makes of
   * a write it makes of a hint as well: as long as that is left out.
   */
  const medianDelay = async (here: Store, there: Store): Promise<number> => {
    const delays: number[] = [];
    for (let time = 0; time < TIMES; time++) {
      const { promise, resolve } = Promise.withResolvers<number>();
      const stop = there.routes.watch(() => resolve(performance.now()));
      const begun = performance.now();
      await writeAt(here);
      const written = performance.now();
      delays.push(Math.max(0, (await promise) - written - (written - begun)));
      stop();
    }
    return delays.toSorted((a, b) => a - b)[TIMES >> 1] ?? Infinity;
  };

  test('behaviour: a notification brings a change to another process within 50 ms at the median', async () => {
    const url = await freshDatabase();
    const [here, there] = [await opened(url), await opened(url)];
    expect(await medianDelay(here, there)).toBeLessThan(MEDIAN_MS);
    expect(await medianDelay(there, here)).toBeLessThan(MEDIAN_MS);
  });

  test('behaviour: a connection that was lost hears of changes again, and of those made meanwhile', async () => {
    const url = await freshDatabase();
    const tap = await startTap((await sharedPostgres()).port);
    closing.push(tap.close);
    const [here, there] = [await opened(url), await opened(url, { port: tap.port })];
    const heard: number[] = [];
    there.routes.watch(() => void heard.push(routes));
    await writeAt(here);
    await until('it hears of a write', async () => heard.includes(routes));
    for (let time = 0; time < 3; time++) {
      tap.cut();
      await writeAt(here);
      await until('it hears of the write that it was not told of', async () => heard.includes(routes));
    }
    expect(await medianDelay(here, there)).toBeLessThan(MEDIAN_MS);
  });

  test('behaviour: a key that was revoked at one process is refused at another as soon', async () => {
    const url = await freshDatabase();
    const [here, there] = [await opened(url), await opened(url)];
    const made = { random: createRandom(), now: Date.now };
    const { key, stored } = await createApiKey(here.apiKeys, { name: 'one', scopes: ['sdk'] }, made);
    const digest = digestKey(key);
    await until('it is known', async () => (await there.apiKeys.find(digest)) !== undefined);
    await here.apiKeys.revoke(stored.id, '2027-01-01T00:00:00.000Z');
    await until('it is revoked', async () => (await there.apiKeys.find(digest))?.revokedAt !== null);
  });

  test('behaviour: behind a pooler no notification is listened to, and the numbers of changes are read', async () => {
    const url = await freshDatabase();
    const [here, deaf] = [await opened(url), await opened(url, { pooler: true })];
    let heard = 0;
    deaf.routes.watch(() => void heard++);
    const reading = await opened(url, { pooler: true, pollMs: 20 });
    const { promise: read, resolve } = Promise.withResolvers<void>();
    reading.routes.watch(() => void (routes > 0 && resolve()));
    await writeAt(here);
    await read;
    expect(await (await sharedPostgres()).query("SELECT 1 FROM pg_stat_activity WHERE query LIKE 'LISTEN%'")).toEqual(
      [],
    );
    expect(heard).toBe(0);
  });
});
