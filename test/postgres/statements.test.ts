// Every statement that changes a charge is one that PostgreSQL takes: it is put together from what the change does, and a rare
// change would else be the first to find a column that is not there.
import { Client } from 'pg';
import { afterAll, expect, test } from 'vitest';
import { createChargeSql, type ChangeKindOfRow } from '../../src/registry/store/postgres/charge-sql.ts';
import { ALL } from '../../src/registry/store/charge-values.ts';
import { hasPostgres } from './server.ts';
import { freshDatabase, openTestStore, stopSharedPostgres } from './store.ts';

afterAll(stopSharedPostgres);

const FLAGS = [
  ...(['isOwner', 'hasRoom', 'buysPass', 'setsCredential', 'setsAnswer', 'isSettled', 'opensPass'] as const),
  ...(['revokesPass', 'isRefund', 'isProvenRefund', 'isAudited'] as const),
];
/** What one flag cannot be without. */
const NEEDS: Partial<Record<(typeof FLAGS)[number], (typeof FLAGS)[number]>> = {
  buysPass: 'hasRoom',
  isProvenRefund: 'isRefund',
};
const NONE = Object.fromEntries(FLAGS.map((flag) => [flag, false])) as Record<(typeof FLAGS)[number], boolean>;
const STATES = [
  ...([
    ['released', 'claimed'],
    ['settling', 'settled'],
    ['settled', 'delivered'],
    ['settled', 'settled'],
  ] as const),
];

/** Every flag alone and with each other one, with what they need, for each change of state. */
function kinds(): ChangeKindOfRow[] {
  const columns = ALL.slice(1).map((_, at) => at + 1);
  return STATES.flatMap(([before, after]) =>
    FLAGS.flatMap((one) =>
      FLAGS.map((other) => {
        const needed = [one, other].flatMap((flag) => NEEDS[flag] ?? []);
        const set = Object.fromEntries([one, other, ...needed].map((flag) => [flag, true]));
        const tells = before === after ? null : ('charge.settled' as const);
        return { ...NONE, ...set, columns, before, after, tells };
      }),
    ),
  );
}

test.skipIf(!hasPostgres)(
  'behaviour: every kind of a change of a charge is a statement that PostgreSQL takes',
  async () => {
    const url = await freshDatabase();
    const store = await openTestStore(url);
    await store.charges.check();
    const client = new Client(url);
    await client.connect();
    const { update } = createChargeSql('tollgate');
    const refused = new Map<string, ChangeKindOfRow>();
    const statements = new Map(kinds().map((kind) => [update(kind).text, kind]));
    for (const [text, kind] of statements)
      await client
        .query(`PREPARE one AS ${text}; DEALLOCATE one`)
        .catch((error: unknown) => void refused.set(String(error), kind));
    await client.end();
    await store.close();
    expect(statements.size).toBeGreaterThan(200);
    expect([...refused]).toEqual([]);
  },
);
