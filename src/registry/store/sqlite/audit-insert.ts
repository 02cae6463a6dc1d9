// Adds an entry to the audit log on SQLite. Whoever changes something does it in the transaction of the change.
import type { DatabaseSync } from 'node:sqlite';
import type { AuditEntry } from '../../../domain/audit.ts';
import { AUDIT_COLUMNS, auditValues, type AuditValues } from '../audit-values.ts';

export type AddAudit = (entry: AuditEntry) => void;

export function createAddAudit(db: DatabaseSync): AddAudit {
  const insert = createAuditInsert(db);
  return (entry) => insert(auditValues(entry));
}

export function createAuditInsert(db: DatabaseSync): (values: AuditValues) => void {
  const insert = db.prepare(
    `INSERT INTO audit (${AUDIT_COLUMNS.join(', ')}) VALUES (${AUDIT_COLUMNS.map(() => '?').join(', ')})`,
  );
  return (values) => void insert.run(...values);
}
