// API keys on PostgreSQL. Keys are looked up in memory, so that known keys work while the database is away. When the
// number of key changes has moved, memory is read anew, within a second of the change.
import { readKey } from '../api-key-values.ts';
import type { ApiKeyStore, FoundKey } from '../ports.ts';
import { bytes } from '../rows.ts';
import { inTransaction, type Session } from './connection.ts';
import type { Links } from './links.ts';
import { createAsk } from './route-store.ts';
import type { ChangeWatch } from './change-watch.ts';

type KnownKeys = ReadonlyMap<string, FoundKey>;

export function createApiKeys(links: Links, watch: ChangeWatch): ApiKeyStore {
  const { schema, settings } = links;
  const ask = createAsk(links, 'read');
  const askToChange = createAsk(links, 'change');
  const all = `SELECT id, name, digest, scopes, created_at, revoked_at FROM ${schema}.api_keys ORDER BY created_at, id`;
  let known: Promise<KnownKeys> | undefined;
  const forget = (): void => {
    known = undefined;
  };
  watch.keys(forget);
  const read = (): Promise<KnownKeys> =>
    ask(async (session) => {
      const { rows } = await session.query({ name: 'tollgate_keys', text: all }, []);
      return new Map(
        rows.map((row) => [bytes(row, 'digest').toString('hex'), { ...readKey(row), digest: bytes(row, 'digest') }]),
      );
    });
  /** The keys that were known last hold for as long as they cannot be read anew. */
  let last: KnownKeys | undefined;
  const current = async (): Promise<KnownKeys> => {
    if (known === undefined) {
      const reading = (known = read());
      reading.then(
        (keys) => (last = keys),
        () => known === reading && forget(),
      );
    }
    try {
      return await known;
    } catch (error) {
      if (last === undefined) throw error;
      return last;
    }
  };
  const write = async <T>(work: (session: Session) => Promise<T>): Promise<T> => {
    const result = await askToChange((session) =>
      inTransaction(session, settings(), async () => {
        const written = await work(session);
        await session.simple(
          `UPDATE ${schema}.meta SET keys_revision = keys_revision + 1; SELECT pg_notify('${schema}_changes', 'keys')`,
        );
        return written;
      }),
    );
    forget();
    return result;
  };

  return {
    insert: ({ id, name, digest, scopes, createdAt }) =>
      write(async (session) => {
        const text = `INSERT INTO ${schema}.api_keys (id, name, digest, scopes, created_at) VALUES ($1, $2, $3, $4, $5)`;
        await session.query({ name: 'tollgate_keys_insert', text }, [id, name, digest, scopes.join(' '), createdAt]);
      }),
    find: async (digest) => (await current()).get(digest.toString('hex')),
    list: async () =>
      (await ask((session) => session.query({ name: 'tollgate_keys', text: all }, []))).rows.map(readKey),
    revoke: (id, at) =>
      write(async (session) => {
        const text = `UPDATE ${schema}.api_keys SET revoked_at = $2 WHERE id = $1 AND revoked_at IS NULL`;
        if ((await session.query({ name: 'tollgate_keys_revoke', text }, [id, at])).count > 0) return 'revoked';
        const exists = `SELECT 1 FROM ${schema}.api_keys WHERE id = $1`;
        const { count } = await session.query({ name: 'tollgate_keys_exists', text: exists }, [id]);
        return count > 0 ? 'already_revoked' : 'unknown';
      }),
  };
}
