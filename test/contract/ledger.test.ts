// The contract of the ledger over everything that implements it.
import { join } from 'node:path';
import { createRandom, systemClock, systemSchedule } from '../../src/host/clock.ts';
import { createLog } from '../../src/host/log.ts';
import { createRemoteLedger } from '../../src/gateway/sync/ledger-remote.ts';
import type { Ledger } from '../../src/domain/payment/ledger.ts';
import { openLedger } from '../../src/registry/store/sqlite/ledger.ts';
import type { StoredLedger } from '../../src/registry/store/ports.ts';
import { LEDGER_KEY, startRegistry, temporaryFolder } from '../registry/kit.ts';
import { createMemoryLedger } from '../support/memory-ledger.ts';
import { describeLedger, type OpenedLedger } from './ledger.ts';
import { describeReports } from './reports.ts';

const log = createLog('error', () => undefined, Date.now);

describeLedger('in memory, the reference', async () => {
  const clock = movable();
  const ledger = createMemoryLedger(clock.now);
  return { clients: [ledger, ledger], ...clock, close: async () => undefined };
});

async function openTwice(client: (ledger: StoredLedger) => Ledger): Promise<OpenedLedger> {
  const clock = movable();
  const { folder, remove } = temporaryFolder();
  const file = join(folder, 'ledger.db');
  const [first, second] = [openLedger(file, { now: clock.now, log }), openLedger(file, { now: clock.now, log })];
  return {
    clients: [client(first), client(second)],
    ...clock,
    close: async () => {
      await Promise.all([first.close(), second.close()]);
      remove();
    },
  };
}

describeLedger('SQLite, two threads on one file', () => openTwice((ledger) => ledger));

// With changes that have names of their own, as the gateway's have, a row is swapped where it is as it was last known;
// here the other client changes it in between again and again.
let changes = 0;
describeLedger('SQLite, two threads on one file, every change named', () =>
  openTwice((ledger) => ({
    ...ledger,
    claim: (claim, options) => ledger.claim(claim, { changeId: `change ${++changes}`, ...options }),
    advance: (id, event, actor) => ledger.advance(id, event, { changeId: `change ${++changes}`, ...actor }),
  })),
);

describeLedger(
  'over HTTP, before SQLite',
  async () => {
    const kit = await startRegistry();
    const client = () =>
      createRemoteLedger({
        registryUrl: `http://127.0.0.1:${kit.port}`,
        apiKey: LEDGER_KEY,
        version: '1.2.3',
        schedule: systemSchedule,
        clock: systemClock,
        random: createRandom(),
        // As long as it takes beside whatever else the machine does: times have tests of their own.
        limits: { attemptMs: 20_000, totalMs: 25_000 },
      });
    return { clients: [client(), client()], now: kit.clock.now, pass: kit.clock.advance, close: kit.close };
  },
  { runs: 8, operators: false },
);

describeReports('in memory, the reference', async () => {
  const clock = movable();
  const ledger = createMemoryLedger(clock.now);
  return { ledger, ...clock, close: async () => undefined };
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

function movable(): { now: () => number; pass: (ms: number) => void } {
  let offset = 0;
  return { now: () => Date.now() + offset, pass: (ms) => void (offset += ms) };
}
