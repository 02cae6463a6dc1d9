// API keys on disk: their SHA-256 and what they may do. Nothing is cached: a key that another process revoked is refused with
// the next request.
import type { DatabaseSync } from 'node:sqlite';
import { readKey } from '../api-key-values.ts';
import type { ApiKeyStore, FoundKey, StoredKey } from '../ports.ts';
import { bytes, integer, text } from '../rows.ts';
import { auditOfKey, auditOfRevocation } from '../audit-entries.ts';
import type { AddAudit } from './audit-insert.ts';
import { inTransaction } from './database.ts';

/** API keys of the port, without promises: a statement of SQLite waits for nothing. */
type ApiKeyRows = {
  readonly insert: (...given: Parameters<ApiKeyStore['insert']>) => 'inserted' | 'full';
  readonly find: (digest: Buffer) => FoundKey | undefined;
  readonly list: () => readonly StoredKey[];
  readonly revoke: (...given: Parameters<ApiKeyStore['revoke']>) => 'revoked' | 'already_revoked' | 'unknown';
  readonly use: (holder: string, at: number) => void;
  readonly uses: () => ReadonlyMap<string, number>;
};

export function createApiKeyRows(db: DatabaseSync, addAudit: AddAudit): ApiKeyRows {
  const sql = {
    insert: db.prepare(
      'INSERT INTO api_keys (id, name, digest, scopes, created_at, created_by) VALUES (?, ?, ?, ?, ?, ?)',
    ),
    countLive: db.prepare('SELECT count(*) AS live FROM api_keys WHERE revoked_at IS NULL'),
    find: db.prepare(
      'SELECT id, name, digest, scopes, created_at, created_by, revoked_at FROM api_keys WHERE digest = ?',
    ),
    exists: db.prepare('SELECT 1 FROM api_keys WHERE id = ?'),
    list: db.prepare(
      'SELECT id, name, scopes, created_at, created_by, revoked_at FROM api_keys ORDER BY created_at, id',
    ),
    revoke: db.prepare('UPDATE api_keys SET revoked_at = ? WHERE id = ? AND revoked_at IS NULL'),
    use: db.prepare(
      'INSERT INTO api_key_uses (holder, used_at) VALUES (?, ?) ON CONFLICT (holder) DO UPDATE SET used_at = max(used_at, excluded.used_at)',
    ),
    uses: db.prepare('SELECT holder, used_at FROM api_key_uses'),
  };
  return {
    insert: (key, most, cause) =>
      inTransaction(db, () => {
        const { id, name, digest, scopes, createdAt, createdBy } = key;
        if (integer(sql.countLive.get() ?? {}, 'live') >= most) return 'full';
        sql.insert.run(id, name, digest, scopes.join(' '), createdAt, createdBy);
        addAudit(auditOfKey(key, cause));
        return 'inserted';
      }),
    find: (digest) => {
      const row = sql.find.get(digest);
      return row && { ...readKey(row), digest: bytes(row, 'digest') };
    },
    list: () => sql.list.all().map(readKey),
    revoke: (id, at, cause) =>
      inTransaction(db, () => {
        if (sql.revoke.run(at, id).changes === 0) return sql.exists.get(id) ? 'already_revoked' : 'unknown';
        addAudit(auditOfRevocation(id, at, cause));
        return 'revoked';
      }),
    use: (holder, at) => void sql.use.run(holder, at),
    uses: () => new Map(sql.uses.all().map((row) => [text(row, 'holder'), integer(row, 'used_at')])),
  };
}
