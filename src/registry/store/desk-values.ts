// Sessions of the desk as the columns of a store and back, the same for every kind of store.
import { bytes, integer, nullableInteger, text, type Row } from './rows.ts';
import type { DeskRole, NewSession, SignInWay, StoredSession } from './desk-ports.ts';

export const SESSION_COLUMNS = [
  ...['id', 'digest', 'key_digest', 'subject', 'role', 'via', 'members', 'created_at', 'seen_at', 'not_after'],
] as const;

const ROLES: readonly DeskRole[] = ['admin', 'viewer'];
const WAYS: readonly SignInWay[] = ['link', 'token', 'oidc'];

/** Values of SESSION_COLUMNS, in their order. */
export function sessionValues(session: NewSession): (string | number | Buffer | null)[] {
  const { id, digest, keyDigest, subject, role, via, members, createdAt, seenAt, notAfter } = session;
  return [id, digest, keyDigest, subject, role, via, JSON.stringify(members), createdAt, seenAt, notAfter];
}

export function readSession(row: Row): StoredSession {
  return {
    id: text(row, 'id'),
    keyDigest: bytes(row, 'key_digest'),
    subject: text(row, 'subject'),
    role: oneOf(row, 'role', ROLES),
    via: oneOf(row, 'via', WAYS),
    members: readMembers(text(row, 'members')),
    createdAt: integer(row, 'created_at'),
    seenAt: integer(row, 'seen_at'),
    notAfter: nullableInteger(row, 'not_after'),
  };
}

function oneOf<const T extends string>(row: Row, column: string, known: readonly T[]): T {
  const found = known.find((each) => each === row[column]);
  if (found === undefined) throw new TypeError(`the column ${column} of the store holds a word that is not known`);
  return found;
}

function readMembers(written: string): readonly string[] {
  const members: unknown = JSON.parse(written);
  if (!Array.isArray(members)) throw new TypeError('the column members of the store is no list');
  return members.map(String);
}
