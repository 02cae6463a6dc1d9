// Entries of the audit log about webhooks: what somebody had sent, and endpoints that are disabled and enabled. The thread of the
// SQLite ledger writes them, so nothing here needs a package.
import { differingMembers, NOBODY, type AuditCause, type AuditEntry } from '../../domain/audit.ts';
import type { EndpointStatus } from '../../domain/webhooks/webhook-store.ts';

type AboutEndpoint = { readonly endpointId: string; readonly at: number; readonly cause?: AuditCause | undefined };

/** Entry about an event that somebody had sent: a test, or one that was sent before. */
export function auditOfEvent(
  kind: 'webhook.tested' | 'webhook.retried',
  eventId: string,
  { endpointId: subject, at, cause = NOBODY }: AboutEndpoint,
): AuditEntry {
  return { ...cause, at, kind, subject, from: {}, to: { event_id: eventId } };
}

/** `before`: whether the endpoint was disabled. */
export function auditOfEnabling(
  before: Extract<EndpointStatus, 'ok' | 'disabled'>,
  { endpointId: subject, at, cause = NOBODY }: AboutEndpoint,
): AuditEntry {
  return { ...cause, at, kind: 'webhook.enabled', subject, ...differingMembers({ status: before }, { status: 'ok' }) };
}

/** Entry about an endpoint that was disabled by what it answered, or did not. */
export function auditOfDisabling(because: string, { endpointId: subject, at }: AboutEndpoint): AuditEntry {
  const to = { status: 'disabled', last_error: because };
  return { ...NOBODY, at, kind: 'webhook.disabled', subject, from: { status: 'failing' }, to };
}
