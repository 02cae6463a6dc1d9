// GET /v1/audit: the audit log, newest first, a page at a time.
import type { z } from 'zod';
import { fail, jsonResponse, type EndpointCall, type EndpointOutcome } from '../http/endpoint.ts';
import { problem } from '../../domain/problem.ts';
import type { Services } from '../http/services.ts';
import type { AuditChange, AuditEntry } from '../../domain/audit.ts';
import type { Routes } from '../routes/registry-routes.ts';
import { writePlace, type auditList, type auditQuery } from './audit-schemas.ts';

export async function listAudit(
  { query }: EndpointCall<unknown, z.output<typeof auditQuery>>,
  { audit, routes }: Services,
): Promise<EndpointOutcome> {
  if (audit === undefined) return fail(problem('not_found', 'This registry keeps no audit log.'));
  const { subject, actor, kind, from: fromMs, to: toMs, cursor: before, limit } = query;
  const found = await audit.list({ subject, actor, kind, fromMs, toMs, before, limit: limit + 1 });
  const page = found.slice(0, limit);
  const last = found.length > limit ? page.at(-1) : undefined;
  const answer: z.output<typeof auditList> = {
    data: page.map(({ n, at, requestId, ...entry }) => ({
      subject_name: nameOf(entry, routes),
      ...{ ...entry, from: { ...entry.from }, to: { ...entry.to } },
      ...{ id: String(n), at: new Date(at).toISOString(), request_id: requestId },
    })),
    next_cursor: last === undefined ? null : writePlace(last),
  };
  return jsonResponse(200, answer);
}

/** A route is known by its method and pattern, as they are or were last; a key by its name. */
function nameOf(
  { kind, subject, from, to }: Pick<AuditEntry, 'kind' | 'subject'> & AuditChange,
  routes: Pick<Routes, 'get'>,
): string | null {
  if (kind.startsWith('route.')) {
    const route = routes.get(subject);
    if (route !== undefined) return `${route.method} ${route.pattern}`;
    const { method, route_pattern: pattern } = { ...from, ...to };
    return typeof method === 'string' && typeof pattern === 'string' ? `${method} ${pattern}` : null;
  }
  return kind === 'api_key.created' && typeof to['name'] === 'string' ? to['name'] : null;
}
