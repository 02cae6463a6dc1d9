// Changes of a route. Each says which state of the route it is made from (`If-Match`), so that nobody overwrites what somebody
// else did meanwhile without seeing it.
import type { CallProblem, DeskClient } from '../../net/client.ts';
import type { RouteView } from '../../wire/billing.ts';

export const ROUTES = '/v1/billing/protected-routes';

export type RouteDraft = { readonly [K in keyof RouteView]?: RouteView[K] };

export type RouteSaved =
  | { readonly kind: 'saved'; readonly route: RouteView }
  /** Somebody changed it since it was shown. */
  | { readonly kind: 'conflict'; readonly theirs: RouteView; readonly etag: string | null }
  | { readonly kind: 'problem'; readonly problem: CallProblem | 'away' };

/** Writes `draft` if the route is still as `shown`. */
export async function saveRoute(client: DeskClient, shown: RouteView, draft: RouteDraft): Promise<RouteSaved> {
  const now = await readRoute(client, shown.id);
  if (now.kind !== 'read') return now;
  if (now.route.updated_at !== shown.updated_at) return { kind: 'conflict', theirs: now.route, etag: now.etag };
  return writeRoute(client, { id: shown.id, draft, etag: now.etag });
}

export async function writeRoute(
  client: DeskClient,
  { id, draft, etag }: { readonly id: string; readonly draft: RouteDraft; readonly etag: string | null },
): Promise<RouteSaved> {
  const headers = etag === null ? {} : { 'If-Match': etag };
  const outcome = await client.call<RouteView>('PATCH', `${ROUTES}/${id}`, { body: draft, headers });
  if (outcome.kind === 'ok') return { kind: 'saved', route: outcome.value };
  if (outcome.kind !== 'problem') return { kind: 'problem', problem: 'away' };
  if (outcome.problem.status !== 412) return outcome;
  const now = await readRoute(client, id);
  return now.kind === 'read' ? { kind: 'conflict', theirs: now.route, etag: now.etag } : now;
}

type RouteRead =
  | { readonly kind: 'read'; readonly route: RouteView; readonly etag: string | null }
  | { readonly kind: 'problem'; readonly problem: CallProblem | 'away' };

async function readRoute(client: DeskClient, id: string): Promise<RouteRead> {
  const outcome = await client.call<RouteView>('GET', `${ROUTES}/${id}`);
  if (outcome.kind === 'ok') return { kind: 'read', route: outcome.value, etag: outcome.etag };
  return { kind: 'problem', problem: outcome.kind === 'problem' ? outcome.problem : 'away' };
}

export function nameOf(route: Pick<RouteView, 'method' | 'route_pattern'>): string {
  return `${route.method} ${route.route_pattern}`;
}
