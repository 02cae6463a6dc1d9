// API keys on PostgreSQL. Keys are looked up in memory, so that known keys work while the database is away. When the
// number of key changes has moved, memory is read anew, within a second of the change.
import { readKey } from '../api-key-values.ts';
import type { ApiKeyStore, FoundKey } from '../ports.ts';
import { bytes, integer, text } from '../rows.ts';
import { auditOfKey, auditOfRevocation } from '../audit-entries.ts';
import { addAudit } from './audit-insert.ts';
import { inTransaction, type Session } from './connection.ts';
import type { Links } from './links.ts';
import { createAsk } from './route-store.ts';
import type { ChangeWatch } from './change-watch.ts';

type KnownKeys = ReadonlyMap<string, FoundKey>;

export function createApiKeys(links: Links, watch: ChangeWatch): ApiKeyStore {
  const { schema, settings } = links;
  const ask = createAsk(links, 'read');
  const askToChange = createAsk(links, 'change');
  const all = `SELECT id, name, digest, scopes, created_at, created_by, revoked_at FROM ${schema}.api_keys ORDER BY created_at, id`;
  const sql = {
    insert: `INSERT INTO ${schema}.api_keys (id, name, digest, scopes, created_at, created_by) VALUES ($1, $2, $3, $4, $5, $6)`,
    live: `SELECT count(*)::int AS live FROM ${schema}.api_keys WHERE revoked_at IS NULL`,
    revoke: `UPDATE ${schema}.api_keys SET revoked_at = $2 WHERE id = $1 AND revoked_at IS NULL`,
    exists: `SELECT 1 FROM ${schema}.api_keys WHERE id = $1`,
    use: `INSERT INTO ${schema}.api_key_uses AS u (holder, used_at) VALUES ($1, $2)
      ON CONFLICT (holder) DO UPDATE SET used_at = greatest(u.used_at, excluded.used_at)`,
    uses: `SELECT holder, used_at FROM ${schema}.api_key_uses`,
  };
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
        // The row of the meta table is the lock: two processes that count at once would both find room for the last key.
        await session.simple(
          `UPDATE ${schema}.meta SET keys_revision = keys_revision + 1; SELECT pg_notify('${schema}_changes', 'keys')`,
        );
        return work(session);
      }),
    );
    forget();
    return result;
  };

  return {
    insert: (key, most, cause) =>
      write(async (session) => {
        const { id, name, digest, scopes, createdAt, createdBy } = key;
        const { rows } = await session.query({ name: 'tollgate_keys_live', text: sql.live }, []);
        if (integer(rows[0] ?? {}, 'live') >= most) return 'full';
        const values = [id, name, digest, scopes.join(' '), createdAt, createdBy];
        await session.query({ name: 'tollgate_keys_insert', text: sql.insert }, values);
        await addAudit(session, schema, auditOfKey(key, cause));
        return 'inserted';
      }),
    find: async (digest) => (await current()).get(digest.toString('hex')),
    list: async () =>
      (await ask((session) => session.query({ name: 'tollgate_keys', text: all }, []))).rows.map(readKey),
    revoke: (id, at, cause) =>
      write(async (session) => {
        if ((await session.query({ name: 'tollgate_keys_revoke', text: sql.revoke }, [id, at])).count > 0) {
          await addAudit(session, schema, auditOfRevocation(id, at, cause));
          return 'revoked';
        }
        const { count } = await session.query({ name: 'tollgate_keys_exists', text: sql.exists }, [id]);
        return count > 0 ? 'already_revoked' : 'unknown';
      }),
    use: async (holder, at) => {
      await askToChange((session) => session.query({ name: 'tollgate_keys_use', text: sql.use }, [holder, at]));
    },
    uses: async () => {
      const { rows } = await ask((session) => session.query({ name: 'tollgate_keys_uses', text: sql.uses }, []));
      return new Map(rows.map((row) => [text(row, 'holder'), integer(row, 'used_at')]));
    },
  };
}
