// Entries of the audit log that changes of a store leave: of routes, of API keys and of sessions of the desk.
import {
  differingMembers,
  NOBODY,
  type AuditCause,
  type AuditEntry,
  type AuditMembers,
  type AuditWay,
} from '../../domain/audit.ts';
import { toWire, type Route } from '../../domain/routing/route.ts';
import type { NewSession, SessionEnd, SignInWay } from './desk-ports.ts';
import type { NewKey, Writer } from './ports.ts';
import type { RecordedChange } from './route-values.ts';

/** Says who wrote a route if its write says no more. */
function causeOfWriter(writer: Writer): AuditCause {
  const [kind, actor] = [writer.slice(0, writer.indexOf(':')), writer.slice(writer.indexOf(':') + 1)];
  if (writer === 'config') return { actor: 'configuration', via: 'configuration', requestId: null };
  return { actor, via: kind === 'api_key' ? 'api_key' : 'jwt', requestId: null };
}

export function auditOfRoute({ kind, route, at, by, before, after }: RecordedChange, cause?: AuditCause): AuditEntry {
  return {
    ...(cause ?? causeOfWriter(by)),
    ...{ at: Date.parse(at), kind: `route.${kind}`, subject: route.id },
    ...differingMembers(membersOf(before), membersOf(after)),
  };
}

function membersOf(route: Route | undefined): AuditMembers {
  if (route === undefined) return {};
  const { id: _id, created_at: _created, updated_at: _updated, ...members } = toWire(route);
  return members;
}

export function auditOfKey({ id, name, scopes, createdAt }: NewKey, cause: AuditCause = NOBODY): AuditEntry {
  const at = Date.parse(createdAt);
  return { ...cause, at, kind: 'api_key.created', subject: id, from: {}, to: { name, scopes } };
}

export function auditOfRevocation(id: string, at: string, cause: AuditCause = NOBODY): AuditEntry {
  return {
    ...cause,
    ...{ at: Date.parse(at), kind: 'api_key.revoked', subject: id, from: { revoked_at: null }, to: { revoked_at: at } },
  };
}

const SIGN_INS: Readonly<Record<SignInWay, AuditWay>> = { link: 'link', token: 'jwt', oidc: 'oidc' };

export function auditOfSession({ id, subject: actor, role, via, createdAt: at, origin }: NewSession): AuditEntry {
  const { address, requestId = null } = origin ?? {};
  const to = { role, ...(address === undefined ? {} : { address }) };
  return { actor, via: SIGN_INS[via], requestId, at, kind: 'session.created', subject: id, from: {}, to };
}

/** Entry about the end of a session, or of `sessions` of them. */
export function auditOfEnd({ at, ...cause }: SessionEnd, ended: string | number): AuditEntry {
  const [subject, to] = typeof ended === 'string' ? [ended, {}] : ['', { sessions: ended }];
  return { ...cause, at, kind: 'session.ended', subject, from: {}, to };
}
