// API keys made here: `tg_` + id + `_` + 256 random bits. Only the SHA-256 of a key is kept, and `create` returns the key
// itself once. Nothing is cached: a key that another process revoked is refused with the next request.
import { hash } from 'node:crypto';
import type { DatabaseSync } from 'node:sqlite';
import type { Random } from '../../../host/clock.ts';
import { SCOPES } from '../../../domain/scope.ts';
import type { ApiKeyStore, StoredKey } from '../ports.ts';
import { bytes, nullableText, text, type Row } from './rows.ts';

const NAME = /^[\x20-\x7e]{1,64}$/;

export function digestKey(key: string): Buffer {
  return hash('sha256', key, 'buffer');
}

export function createApiKeyStore(db: DatabaseSync, random: Random, now: () => number): ApiKeyStore {
  const sql = {
    insert: db.prepare('INSERT INTO api_keys (id, name, digest, scopes, created_at) VALUES (?, ?, ?, ?, ?)'),
    find: db.prepare('SELECT id, name, digest, scopes, created_at, revoked_at FROM api_keys WHERE digest = ?'),
    exists: db.prepare('SELECT 1 FROM api_keys WHERE id = ?'),
    list: db.prepare('SELECT id, name, scopes, created_at, revoked_at FROM api_keys ORDER BY created_at, id'),
    revoke: db.prepare('UPDATE api_keys SET revoked_at = ? WHERE id = ? AND revoked_at IS NULL'),
  };
  return {
    create: (name, scopes) => {
      if (!NAME.test(name)) throw new Error('The name of an API key is 1 to 64 visible ASCII characters.');
      const wanted = SCOPES.filter((scope) => scopes.includes(scope));
      if (wanted.length === 0) throw new Error(`An API key needs at least one scope of: ${SCOPES.join(', ')}.`);
      const id = random(8).toString('hex');
      const key = `tg_${id}_${random(32).toString('base64url')}`;
      const createdAt = new Date(now()).toISOString();
      sql.insert.run(id, name, digestKey(key), wanted.join(' '), createdAt);
      return { key, stored: { id, name, scopes: wanted, createdAt, revokedAt: null } };
    },
    find: (wanted) => {
      const row = sql.find.get(wanted);
      return row && { ...readKey(row), digest: bytes(row, 'digest') };
    },
    list: () => sql.list.all().map(readKey),
    revoke: (id) => {
      if (sql.revoke.run(new Date(now()).toISOString(), id).changes > 0) return 'revoked';
      return sql.exists.get(id) ? 'already_revoked' : 'unknown';
    },
  };
}

function readKey(row: Row): StoredKey {
  const granted = text(row, 'scopes').split(' ');
  return {
    id: text(row, 'id'),
    name: text(row, 'name'),
    scopes: SCOPES.filter((scope) => granted.includes(scope)),
    createdAt: text(row, 'created_at'),
    revokedAt: nullableText(row, 'revoked_at'),
  };
}
