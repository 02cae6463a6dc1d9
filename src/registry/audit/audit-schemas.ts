// Schemas of the endpoint that shows the audit log.
import { z } from 'zod';
import { AUDIT_KINDS, AUDIT_WAYS } from '../../domain/audit.ts';
import { moment } from '../charges/charge-schemas.ts';
import { documented, listQuery } from '../http/schemas.ts';
import type { AuditPlace } from '../store/audit-ports.ts';

const name = z.string().min(1).max(200);
const members = z.record(z.string(), z.unknown());

export const auditQuery = z.object({
  limit: listQuery.shape.limit,
  cursor: z
    .string()
    .transform((cursor, context) => {
      const place = readPlace(cursor);
      if (place !== undefined) return place;
      context.addIssue({ code: 'custom', message: 'a next_cursor of an earlier answer' });
      return z.NEVER;
    })
    .optional(),
  subject: name.optional(),
  actor: name.optional(),
  kind: z.enum(AUDIT_KINDS, `one of ${AUDIT_KINDS.join(', ')}`).optional(),
  from: moment.optional(),
  to: moment.optional(),
});

const auditEntry = z.object({
  id: z.string(),
  at: z.iso.datetime(),
  actor: z.string(),
  via: z.enum(AUDIT_WAYS),
  kind: z.enum(AUDIT_KINDS),
  subject: z.string(),
  subject_name: z.string().nullable(),
  from: members,
  to: members,
  request_id: z.string().nullable(),
});

export const auditList = z.object({ data: z.array(auditEntry), next_cursor: z.string().nullable() });

documented.add(auditEntry, {
  id: 'AuditEntry',
  description:
    'Who changed what, or was refused. `from` and `to` hold the members that changed and no others, and never a secret. `subject` is the id of the route, key, receiver, webhook, session, charge or pass, or the address of who was refused; `subject_name` what people know it by, if that is known; `actor` a subject, the id or name of an API key, or a user of the machine; `request_id` what the caller sent as `X-Request-Id`.',
});
documented.add(auditList, { id: 'AuditLog' });

/** Cursor of the page behind an entry: opaque to clients. */
export function writePlace({ at, n }: AuditPlace): string {
  return Buffer.from(`a${at}.${n}`).toString('base64url');
}

function readPlace(cursor: string): AuditPlace | undefined {
  const [, at, n] = /^a(\d{1,15})\.(\d{1,15})$/.exec(Buffer.from(cursor, 'base64url').toString('latin1')) ?? [];
  if (at === undefined || n === undefined) return undefined;
  const place = { at: Number(at), n: Number(n) };
  return writePlace(place) === cursor ? place : undefined;
}
