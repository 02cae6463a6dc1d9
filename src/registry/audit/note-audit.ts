// Notes in the audit log what somebody did that changes nothing in the store, such as a check. A change of the store is noted by
// the call that makes it.
import type { AuditChange, AuditEntry } from '../../domain/audit.ts';
import { causeOf } from '../auth/author.ts';
import type { EndpointCall } from '../http/endpoint.ts';
import type { Services } from '../http/services.ts';

type Note = Pick<AuditEntry, 'kind' | 'subject'> & Partial<AuditChange>;

/** Resolves once it is written. Rejects with StoreUnavailable if the store cannot do it: what is not noted is not done. */
export async function noteAudit(
  { audit, clock }: Pick<Services, 'audit' | 'clock'>,
  call: Pick<EndpointCall, 'principal' | 'headers'>,
  { kind, subject, from = {}, to = {} }: Note,
): Promise<void> {
  await audit?.add({ ...causeOf(call), at: clock.now(), kind, subject, from, to });
}
