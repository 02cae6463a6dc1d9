// Entries of the audit log as the columns of a store and back, the same for every kind of store.
import { AUDIT_KINDS, AUDIT_WAYS, membersJson, type AuditEntry, type AuditMembers } from '../../domain/audit.ts';
import type { AuditFilter, StoredAudit } from './audit-ports.ts';
import { integer, nullableText, text, type Row } from './rows.ts';

/** Columns in the order in which `auditValues` binds them. */
export const AUDIT_COLUMNS = [...['at', 'actor', 'via', 'kind', 'subject', 'was', 'became', 'request_id']] as const;

const MOST_NAME = 200;
/** Entries that one call of `prune` takes away at most, for each reason. */
export const AUDIT_PRUNED = 500;

export type AuditValues = readonly (string | number | null)[];

export function auditValues(entry: AuditEntry): AuditValues {
  const { at, actor, via, kind, subject, from, to, requestId } = entry;
  return [at, named(actor), via, kind, named(subject), membersJson(from), membersJson(to), requestId];
}

function named(text: string): string {
  return text.slice(0, MOST_NAME).toWellFormed();
}

export function readAudit(row: Row): StoredAudit {
  return {
    n: integer(row, 'n'),
    at: integer(row, 'at'),
    actor: text(row, 'actor'),
    via: oneOf(row, 'via', AUDIT_WAYS),
    kind: oneOf(row, 'kind', AUDIT_KINDS),
    subject: text(row, 'subject'),
    from: readMembers(text(row, 'was')),
    to: readMembers(text(row, 'became')),
    requestId: nullableText(row, 'request_id'),
  };
}

function oneOf<const T extends string>(row: Row, column: string, known: readonly T[]): T {
  const found = known.find((each) => each === row[column]);
  if (found === undefined) throw new TypeError(`the column ${column} of the store holds a word that is not known`);
  return found;
}

function readMembers(json: string): AuditMembers {
  const members: unknown = JSON.parse(json);
  if (typeof members !== 'object' || members === null || Array.isArray(members))
    throw new TypeError('the store holds an entry of the audit log without members');
  return Object.fromEntries(Object.entries(members));
}

/** Conditions of a list as SQL, and the values that they bind. `bound` writes the place of the next value. */
export function auditConditions(
  { subject, actor, kind, fromMs, toMs, before }: AuditFilter,
  bound: (index: number) => string,
): { readonly where: string; readonly values: readonly (string | number)[] } {
  const values: (string | number)[] = [];
  const bind = (value: string | number): string => bound(values.push(value));
  const conditions = [
    ...(subject === undefined ? [] : [`subject = ${bind(subject)}`]),
    ...(actor === undefined ? [] : [`actor = ${bind(actor)}`]),
    ...(kind === undefined ? [] : [`kind = ${bind(kind)}`]),
    ...(fromMs === undefined ? [] : [`at >= ${bind(fromMs)}`]),
    ...(toMs === undefined ? [] : [`at < ${bind(toMs)}`]),
    ...(before === undefined ? [] : [`(at, n) < (${bind(before.at)}, ${bind(before.n)})`]),
  ];
  return { where: conditions.length === 0 ? '' : `WHERE ${conditions.join(' AND ')}`, values };
}
