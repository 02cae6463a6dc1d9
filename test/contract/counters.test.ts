// The contract of counters over every store that keeps them, and over HTTP as sidecars and workers use it: exact whatever asks at
// the same time, and a change that is sent again counts once.
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  decideTake,
  type CounterChange,
  type CounterChanger,
  type CounterResult,
  type CounterStore,
} from '../../src/domain/selling/counter.ts';
import { createLog } from '../../src/host/log.ts';
import { createMemoryCounters } from '../support/memory-counters.ts';
import { hasPostgres } from '../postgres/server.ts';
import { freshDatabase, openTestStore, stopSharedPostgres } from '../postgres/store.ts';
import { LEDGER_KEY, startRegistry, temporaryFolder } from '../registry/kit.ts';
import { createRemoteCharges } from '../../src/gateway/ledger/remote-ledger.ts';
import { createRandom, systemClock, systemSchedule } from '../../src/host/clock.ts';
import { openPatientCharges } from '../support/sqlite-ledger.ts';

const log = createLog('error', () => undefined, Date.now);
const HOUR_MS = 3_600_000;
/** Of a window that goes on for half an hour more. */
const START = Math.floor(Date.now() / 1000) * 1000 - HOUR_MS / 2;

type OpenedCounters = {
  /** Two ways to the same counters, as two processes have them. */
  readonly stores: readonly [CounterChanger, CounterChanger];
  /** Identities by scope, as a process with the store tells them. */
  readonly identities: CounterStore['identities'];
  /** Removes what is over; `passed`: milliseconds that have passed. */
  readonly prune: (passed: number) => Promise<void>;
  readonly close: () => Promise<void>;
};

const NEVER = { closedMs: undefined, releasedMs: 0, answersMs: 0 };
let made = 0;
function take(identity: string, rest: Partial<Extract<CounterChange, { kind: 'take' }>> = {}): CounterChange {
  return {
    ...{ kind: 'take', scope: 'free a', startMs: START, endMs: START + HOUR_MS, identity, changeId: `c${made++}` },
    ...{ limit: 3, identities: 1000, group: null, groupIdentities: 2 },
    ...rest,
  };
}
function backOf(change: CounterChange): CounterChange {
  const { scope, startMs, endMs, identity, changeId } = change;
  return { kind: 'give_back', scope, startMs, endMs, identity, changeId };
}

function describeCounters(name: string, open: () => Promise<OpenedCounters>): void {
  describe(name, () => {
    let opened: OpenedCounters;
    beforeAll(async () => {
      opened = await open();
    });
    afterAll(() => opened.close());
    const change = async (...changes: CounterChange[]): Promise<readonly CounterResult[]> =>
      opened.stores[made % 2 === 0 ? 0 : 1].change(changes);

    test(`behaviour: ${name} counts up to the limit, and what is given back may be taken again`, async () => {
      const taken = [take('a'), take('a'), take('a'), take('a')];
      expect(await change(...taken)).toEqual([
        ...[1, 2, 3].map((used) => ({ kind: 'counted', used })),
        { kind: 'used_up' },
      ]);
      const [first] = taken;
      if (first === undefined) throw new Error('nothing was taken');
      expect(await change(backOf(first))).toEqual([{ kind: 'given_back' }]);
      // Once, however often it is said.
      expect(await change(backOf(first))).toEqual([{ kind: 'given_back' }]);
      expect(await change(take('a'), take('a'))).toEqual([{ kind: 'counted', used: 3 }, { kind: 'used_up' }]);
    });

    test(`behaviour: ${name} answers a change that is sent again as before; one that was taken back first is not counted`, async () => {
      const wanted = take('again');
      expect(await change(wanted)).toEqual([{ kind: 'counted', used: 1 }]);
      expect(await opened.stores[0].change([wanted])).toEqual([{ kind: 'counted', used: 1 }]);
      expect(await opened.stores[1].change([wanted, take('again')])).toEqual([
        { kind: 'counted', used: 1 },
        { kind: 'counted', used: 2 },
      ]);
      const late = take('again');
      expect(await change(backOf(late))).toEqual([{ kind: 'given_back' }]);
      expect(await change(late)).toEqual([{ kind: 'given_back' }]);
      expect(await change(take('again'))).toEqual([{ kind: 'counted', used: 3 }]);
    });

    test(`behaviour: ${name} keeps identities, their groups, scopes and windows apart, and counts newcomers`, async () => {
      const scope = { scope: 'free b', identities: 3 };
      const group = { ...scope, group: 'g' };
      const changes = [take('1', group), take('2', group), take('3', group), take('4', scope), take('5', scope)];
      expect((await change(...changes)).map(({ kind }) => kind)).toEqual([
        'counted',
        'counted',
        'full',
        'counted',
        'full',
      ]);
      expect(
        (
          await change(take('1', group), take('5', { ...scope, startMs: START + HOUR_MS, endMs: START + 2 * HOUR_MS }))
        ).map(({ kind }) => kind),
      ).toEqual(['counted', 'counted']);
      expect((await opened.identities()).get('free b')).toBe(4);
    });

    test(`attack: ${name} gives a hundred requests at once, over two processes, no more than there is`, async () => {
      const results = await Promise.all(
        Array.from({ length: 100 }, (_, n) =>
          opened.stores[n % 2 === 0 ? 0 : 1].change([take('storm', { scope: 'storm', limit: 7 })]),
        ),
      );
      const counted = results.flat().filter(({ kind }) => kind === 'counted');
      expect(counted.map((each) => ('used' in each ? each.used : 0)).toSorted((a, b) => a - b)).toEqual([
        1, 2, 3, 4, 5, 6, 7,
      ]);
      expect(results.flat().filter(({ kind }) => kind === 'used_up')).toHaveLength(93);
    });

    test(`behaviour: ${name} removes windows that are over, and no others`, async () => {
      const over = { scope: 'over', startMs: START - HOUR_MS, endMs: START };
      await change(take('x', over), take('x', { scope: 'goes on' }));
      await opened.prune(0);
      expect(await change(take('x', over))).toEqual([{ kind: 'counted', used: 1 }]);
      expect(await change(take('x', { scope: 'goes on' }))).toEqual([{ kind: 'counted', used: 2 }]);
    });
  });
}

describeCounters('SQLite', async () => {
  const { folder, remove } = temporaryFolder();
  const file = join(folder, 'ledger.db');
  const [one, two] = [
    openPatientCharges(file, { now: Date.now, log }),
    openPatientCharges(file, { now: Date.now, log }),
  ];
  return {
    stores: [one.counters, two.counters],
    identities: two.counters.identities,
    prune: async () => {
      while (await one.prune(NEVER, 100));
    },
    close: async () => {
      await Promise.all([one.close(), two.close()]);
      remove();
    },
  };
});

describeCounters('the ledger over HTTP', async () => {
  const kit = await startRegistry();
  const client = (): ReturnType<typeof createRemoteCharges> =>
    createRemoteCharges({
      ...{ registryUrl: `http://127.0.0.1:${kit.port}`, apiKey: LEDGER_KEY, version: '1.2.3' },
      ...{ schedule: systemSchedule, clock: systemClock, random: createRandom() },
      limits: { attemptMs: 20_000, totalMs: 25_000 },
    });
  const [one, two] = [client(), client()];
  return {
    stores: [one.counters, two.counters],
    identities: kit.ledger.counters.identities,
    prune: async () => {
      while (await kit.ledger.store.prune(NEVER, 100));
    },
    close: async () => {
      await Promise.all([one.close(), two.close()]);
      await kit.close();
    },
  };
});

describe.skipIf(!hasPostgres)('PostgreSQL', () => {
  afterAll(stopSharedPostgres);
  describeCounters('PostgreSQL', async () => {
    const database = await freshDatabase();
    const [one, two] = [await openTestStore(database), await openTestStore(database)];
    return {
      stores: [one.charges.counters, two.charges.counters],
      identities: two.charges.counters.identities,
      prune: async () => {
        while (await one.charges.prune(NEVER, 100));
      },
      close: async () => void (await Promise.all([one.close(), two.close()])),
    };
  });
});

test('behaviour: the counters of tests in memory count as those of the stores do', async () => {
  const store = createMemoryCounters();
  const [a, b] = [take('m', { limit: 1 }), take('m', { limit: 1 })];
  expect(await store.change([a, b, a])).toEqual([
    { kind: 'counted', used: 1 },
    { kind: 'used_up' },
    { kind: 'counted', used: 1 },
  ]);
  const state = { used: undefined, identities: 0, groupIdentities: 0 };
  if (a.kind === 'take') expect(decideTake({ ...a, limit: 0 }, state)).toEqual({ kind: 'used_up' });
});
