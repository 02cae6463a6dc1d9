// Who is behind a call, in the words of the audit log.
import type { IncomingHttpHeaders } from 'node:http';
import type { AuditCause } from '../../domain/audit.ts';
import type { Author } from '../store/ports.ts';
import { MAX_SUBJECT, writerOf, type Principal } from './credentials.ts';

type Caller = { readonly principal: Principal; readonly headers?: IncomingHttpHeaders | undefined };

/** A request id that a caller may give, as the proxy takes them. */
const REQUEST_ID = /^[A-Za-z0-9._-]{1,128}$/;

export function causeOf({ principal, headers = {} }: Caller): AuditCause {
  const requestId = requestIdOf(headers);
  switch (principal.kind) {
    case 'anonymous':
      return { actor: '', via: 'tollgate', requestId };
    case 'api_key':
      return { actor: principal.id ?? principal.name, via: 'api_key', requestId };
    case 'dashboard': {
      const actor = (principal.subject ?? '').slice(0, MAX_SUBJECT);
      const via =
        principal.session === undefined ? 'jwt' : principal.session.stored.via === 'oidc' ? 'oidc' : 'session';
      return { actor, via, requestId };
    }
    default:
      return principal satisfies never;
  }
}

export function requestIdOf(headers: IncomingHttpHeaders): string | null {
  const given = headers['x-request-id'];
  return typeof given === 'string' && REQUEST_ID.test(given) ? given : null;
}

/** The writer of a route, with what the audit log says of the call. */
export function authorOf(caller: Caller): Author {
  return { writer: writerOf(caller.principal), cause: causeOf(caller) };
}
