// The contract of outboxes over every store that keeps one.
import { join } from 'node:path';
import { afterAll, describe } from 'vitest';
import { SPELLING } from '../../src/gateway/rails/rails.ts';
import { createLog } from '../../src/host/log.ts';
import { ledgerOf } from '../../src/registry/store/stored-ledger.ts';
import { hasPostgres } from '../postgres/server.ts';
import { freshDatabase, openTestStore, stopSharedPostgres } from '../postgres/store.ts';
import { temporaryFolder } from '../registry/kit.ts';
import { describeOutbox } from './webhooks.ts';
import { openPatientCharges } from '../support/sqlite-ledger.ts';

const log = createLog('error', () => undefined, Date.now);

afterAll(stopSharedPostgres);

describeOutbox(
  'SQLite',
  async () => {
    let offset = 0;
    const now = (): number => Date.now() + offset;
    const { folder, remove } = temporaryFolder();
    const file = join(folder, 'ledger.db');
    const [one, two] = [openPatientCharges(file, { now, log }), openPatientCharges(file, { now, log })];
    return {
      ...{ stores: [one.webhooks, two.webhooks], ledger: ledgerOf(one, SPELLING) },
      pass: (ms) => void (offset += ms),
      close: async () => {
        await Promise.all([one.close(), two.close()]);
        remove();
      },
    };
  },
  { isShared: false },
);

describe.skipIf(!hasPostgres)('PostgreSQL', () => {
  describeOutbox(
    'PostgreSQL',
    async () => {
      let offset = 0;
      const shift = (): number => offset;
      const database = await freshDatabase();
      const [one, two] = [await openTestStore(database, { shift }), await openTestStore(database, { shift })];
      return {
        ...{ stores: [one.charges.webhooks, two.charges.webhooks], ledger: ledgerOf(one.charges, SPELLING) },
        pass: (ms) => void (offset += ms),
        close: async () => void (await Promise.all([one.close(), two.close()])),
      };
    },
    { isShared: true },
  );
});
