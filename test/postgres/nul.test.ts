// A NUL, which PostgreSQL keeps in no text, in whatever a client may send to a registry: it is refused or found nowhere.
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { SPELLING } from '../../src/gateway/rails/rails.ts';
import { API } from '../../src/registry/api.ts';
import { EXPLAINED } from '../../src/registry/http/examples.ts';
import { ledgerOf } from '../../src/registry/store/stored-ledger.ts';
import { LEDGER_KEY, SDK_KEY, startRegistry, token, type Kit } from '../registry/kit.ts';
import { hasPostgres } from './server.ts';
import { freshDatabase, openTestStore, stopSharedPostgres } from './store.ts';

const ID = {
  ...{ charge: 'chg_AZQ0XkN7c2lnbmVk', pass: 'pass_AZQ0XkN7c2lnbmVk' },
  route: '6f1c2f5e-3f0a-4a53-9f0e-3f1f3a0b7c11',
};

type Asked = { readonly method: string; readonly path: string; readonly body?: unknown };

/** `value` with a NUL at the end of one of its texts, for each of them. */
function poisoned(value: unknown): readonly unknown[] {
  if (typeof value === 'string') return [`${value}\0`];
  if (Array.isArray(value)) return value.flatMap((each, index) => poisoned(each).map((bad) => value.with(index, bad)));
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([name, each]) => poisoned(each).map((bad) => ({ ...value, [name]: bad })));
}

function idIn(path: string): string {
  if (path.includes('protected-routes')) return ID.route;
  return path.includes('/passes/') ? ID.pass : ID.charge;
}

/** Every request of the row that has a NUL in one place. */
function askedOf({ method, path, id, query }: (typeof API)[number]): readonly Asked[] {
  const filled = path.replace('{id}', idIn(path));
  const { shape } = query as { readonly shape?: Readonly<Record<string, unknown>> };
  const { body } = EXPLAINED[id] ?? {};
  return [
    ...(path.includes('{id}') ? [{ method, path: `${filled}%00`, body }] : []),
    ...Object.keys(shape ?? {}).map((name) => ({ method, path: `${filled}?${name}=a%00b` })),
    ...poisoned(body).map((bad) => ({ method, path: filled, body: bad })),
  ];
}

/** Streams do not end by themselves. */
const STREAMS = new Set(['streamEvents', 'streamCharges']);
const ROWS = API.filter(({ id }) => !STREAMS.has(id)).map((row) => ({ row, id: row.id, asked: askedOf(row) }));

describe.skipIf(!hasPostgres)('a NUL in what a registry on PostgreSQL is asked', () => {
  const closing: (() => Promise<void>)[] = [];
  let kit: Kit;
  beforeAll(async () => {
    const store = await openTestStore(await freshDatabase());
    kit = await startRegistry({ store, reports: ledgerOf(store.charges, SPELLING) });
    closing.push(store.close, kit.close);
  });
  afterEach(() => expect(kit.logs.filter((line) => line.includes('"level":"error"'))).toEqual([]));
  afterAll(async () => {
    for (const close of closing.toReversed()) await close();
    await stopSharedPostgres();
  });

  test.each(ROWS.filter(({ asked }) => asked.length > 0))(
    'attack: $id with a NUL in any place is answered, and never as if the store were away',
    async ({ row, asked }) => {
      const auth =
        row.auth.kind === 'jwt'
          ? await token()
          : row.auth.kind === 'api_key' && row.auth.scope === 'ledger'
            ? LEDGER_KEY
            : SDK_KEY;
      for (const { method, path, body } of asked) {
        const { status } = await kit.ask(method, path, { auth, ...(body === undefined ? {} : { body }) });
        expect(status, `${method} ${path} ${JSON.stringify(body)}`).toBeLessThan(500);
      }
    },
  );
});
