// Adds an entry to the audit log on PostgreSQL. Whoever changes something does it in the transaction of the change.
import type { AuditEntry } from '../../../domain/audit.ts';
import { AUDIT_COLUMNS, auditValues } from '../audit-values.ts';
import { plain } from './charge-batch.ts';
import type { Session } from './connection.ts';

/** Adds an entry in the transaction that `session` is in. */
export async function addAudit(session: Session, schema: string, entry: AuditEntry): Promise<void> {
  const places = AUDIT_COLUMNS.map((_, index) => `$${index + 1}`).join(', ');
  const text = `INSERT INTO ${schema}.audit (${AUDIT_COLUMNS.join(', ')}) VALUES (${places})`;
  await session.query({ name: 'tollgate_audit_add', text }, auditValues(entry).map(bindableText));
}

/** A value as it may be bound: no text of this database holds a NUL. */
export function bindableText(value: string | number | null): string | number | null {
  return typeof value === 'string' ? plain(value) : value;
}
