// API keys on disk: their SHA-256 and what they may do. Nothing is cached: a key that another process revoked is refused with
// the next request.
import type { DatabaseSync } from 'node:sqlite';
import { readKey } from '../api-key-values.ts';
import type { FoundKey, NewKey, StoredKey } from '../ports.ts';
import { bytes } from '../rows.ts';

/** API keys of the port, without promises: a statement of SQLite waits for nothing. */
type ApiKeyRows = {
  readonly insert: (key: NewKey) => void;
  readonly find: (digest: Buffer) => FoundKey | undefined;
  readonly list: () => readonly StoredKey[];
  readonly revoke: (id: string, at: string) => 'revoked' | 'already_revoked' | 'unknown';
};

export function createApiKeyRows(db: DatabaseSync): ApiKeyRows {
  const sql = {
    insert: db.prepare('INSERT INTO api_keys (id, name, digest, scopes, created_at) VALUES (?, ?, ?, ?, ?)'),
    find: db.prepare('SELECT id, name, digest, scopes, created_at, revoked_at FROM api_keys WHERE digest = ?'),
    exists: db.prepare('SELECT 1 FROM api_keys WHERE id = ?'),
    list: db.prepare('SELECT id, name, scopes, created_at, revoked_at FROM api_keys ORDER BY created_at, id'),
    revoke: db.prepare('UPDATE api_keys SET revoked_at = ? WHERE id = ? AND revoked_at IS NULL'),
  };
  return {
    insert: ({ id, name, digest, scopes, createdAt }) =>
      void sql.insert.run(id, name, digest, scopes.join(' '), createdAt),
    find: (digest) => {
      const row = sql.find.get(digest);
      return row && { ...readKey(row), digest: bytes(row, 'digest') };
    },
    list: () => sql.list.all().map(readKey),
    revoke: (id, at) => {
      if (sql.revoke.run(at, id).changes > 0) return 'revoked';
      return sql.exists.get(id) ? 'already_revoked' : 'unknown';
    },
  };
}
