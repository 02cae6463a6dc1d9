// The contract of charges over everything that keeps them: one table of implementations.
import { join } from 'node:path';
import { createRandom, systemSchedule } from '../../src/host/clock.ts';
import { createLog } from '../../src/host/log.ts';
import { createRemoteCharges } from '../../src/gateway/ledger/remote-ledger.ts';
import { SPELLING } from '../../src/gateway/rails/rails.ts';
import { createLedger, type ChargeStore } from '../../src/domain/payment/ledger.ts';
import { ledgerOf } from '../../src/registry/store/stored-ledger.ts';
import { LEDGER_KEY, startRegistry, temporaryFolder } from '../registry/kit.ts';
import { createMemoryCharges, createMemoryLedger } from '../support/memory-ledger.ts';
import { openLedger, openPatientCharges } from '../support/sqlite-ledger.ts';
import { describeChargeStore, type OpenedStores } from './charge-store.ts';
import { describeLedger, type OpenedLedger } from './ledger.ts';
import { describeReports } from './reports.ts';
import { afterAll, describe } from 'vitest';
import { hasPostgres } from '../postgres/server.ts';
import { freshDatabase, openTestStore, stopSharedPostgres } from '../postgres/store.ts';

const log = createLog('error', () => undefined, Date.now);

afterAll(stopSharedPostgres);

type Implementation = {
  readonly name: string;
  readonly open: () => Promise<OpenedStores>;
  /** Sequences of calls that are compared with the reference. */
  readonly runs?: number;
  /** It decides again, on what it has by then: an operator's word is not given there, and no version is compared. */
  readonly decides?: true;
};

const IMPLEMENTATIONS: readonly Implementation[] = [
  {
    name: 'in memory, the reference',
    open: async () => {
      const clock = movable();
      const store = createMemoryCharges(clock.now);
      return { stores: [store, store], ...clock, close: async () => undefined };
    },
  },
  {
    name: 'SQLite, two threads on one file',
    open: async () => {
      const clock = movable();
      const { folder, remove } = temporaryFolder();
      const file = join(folder, 'ledger.db');
      const stores = [
        openPatientCharges(file, { now: clock.now, log }),
        openPatientCharges(file, { now: clock.now, log }),
      ] as const;
      return {
        stores,
        ...clock,
        close: async () => {
          await Promise.all(stores.map((store) => store.close()));
          remove();
        },
      };
    },
  },
  ...((hasPostgres
    ? [
        {
          name: 'PostgreSQL, two processes on one database',
          open: async () => {
            const clock = shifted();
            const database = await freshDatabase();
            const opened = [await openTestStore(database, clock), await openTestStore(database, clock)] as const;
            return {
              stores: [opened[0].charges, opened[1].charges],
              ...clock,
              now: opened[0].charges.now,
              close: async () => void (await Promise.all(opened.map((store) => store.close()))),
            };
          },
        },
      ]
    : []) as Implementation[]),
  {
    name: 'over HTTP, before SQLite',
    runs: 8,
    decides: true,
    open: async () => {
      const kit = await startRegistry();
      const client = (): ChargeStore =>
        createRemoteCharges({
          registryUrl: `http://127.0.0.1:${kit.port}`,
          apiKey: LEDGER_KEY,
          version: '1.2.3',
          schedule: systemSchedule,
          clock: kit.clock,
          random: createRandom(),
          // As long as it takes beside whatever else the machine does: times have tests of their own.
          limits: { attemptMs: 20_000, totalMs: 25_000 },
        });
      const stores = [client(), client()] as const;
      const close = async (): Promise<void> => {
        await Promise.all(stores.map((store) => store.close()));
        await kit.close();
      };
      return { stores, now: kit.clock.now, pass: kit.clock.advance, close };
    },
  },
];

for (const { name, open, runs, decides = false } of IMPLEMENTATIONS) {
  const ledgers = async (): Promise<OpenedLedger> => {
    const { stores, ...rest } = await open();
    return { clients: [createLedger(stores[0], SPELLING), createLedger(stores[1], SPELLING)], ...rest };
  };
  describeChargeStore(name, open, { decides });
  describeLedger(name, ledgers, { operators: !decides, ...(runs === undefined ? {} : { runs }) });
}

// Changes with ids, as the gateway's have.
let changes = 0;
describeLedger('SQLite, every change named', async () => {
  const sqlite = IMPLEMENTATIONS.find(({ name }) => name.startsWith('SQLite'));
  if (sqlite === undefined) throw new Error('SQLite is none of them');
  const { stores, ...rest } = await sqlite.open();
  const named = (store: ChargeStore): OpenedLedger['clients'][0] => {
    const ledger = createLedger(store, SPELLING);
    return {
      ...ledger,
      claim: (claim, options) => ledger.claim(claim, { changeId: `change ${++changes}`, ...options }),
      advance: (id, event, actor) => ledger.advance(id, event, { changeId: `change ${++changes}`, ...actor }),
    };
  };
  return { clients: [named(stores[0]), named(stores[1])], ...rest };
});

describeReports('in memory, the reference', async () => {
  const clock = movable();
  const ledger = createMemoryLedger(clock.now);
  return { ledger, ...clock, close: async () => undefined };
});

describe.skipIf(!hasPostgres)('PostgreSQL', () => {
  describeReports('PostgreSQL', async () => {
    const clock = shifted();
    const store = await openTestStore(await freshDatabase(), clock);
    const ledger = { ...store.charges, ...ledgerOf(store.charges, SPELLING) };
    return { ledger, ...clock, now: ledger.now, close: store.close };
  });
});

describeReports('SQLite', async () => {
  const clock = movable();
  const { folder, remove } = temporaryFolder();
  const ledger = openLedger(join(folder, 'ledger.db'), { now: clock.now, log });
  return {
    ledger,
    ...clock,
    close: async () => {
      await ledger.close();
      remove();
    },
  };
});

/** Of a store whose clock is its own. */
function shifted(): { pass: (ms: number) => void; shift: () => number } {
  let shift = 0;
  return { pass: (ms) => void (shift += ms), shift: () => shift };
}

function movable(): { now: () => number; pass: (ms: number) => void } {
  let offset = 0;
  return { now: () => Date.now() + offset, pass: (ms) => void (offset += ms) };
}
