// An API key as the columns of a store, the same for every kind of store. Its scopes are names with a space between. A
// scope that this version does not know grants nothing.
import { SCOPES } from '../../domain/scope.ts';
import type { StoredKey } from './ports.ts';
import { nullableText, text, type Row } from './rows.ts';

export function readKey(row: Row): StoredKey {
  const granted = text(row, 'scopes').split(' ');
  return {
    id: text(row, 'id'),
    name: text(row, 'name'),
    scopes: SCOPES.filter((scope) => granted.includes(scope)),
    createdAt: text(row, 'created_at'),
    createdBy: nullableText(row, 'created_by'),
    revokedAt: nullableText(row, 'revoked_at'),
  };
}
