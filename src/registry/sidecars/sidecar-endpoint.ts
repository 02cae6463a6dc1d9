// GET /v1/sidecars: who takes routes from this registry, how far each is behind, and what it should be looked after for.
import { jsonResponse, type EndpointCall, type EndpointOutcome } from '../http/endpoint.ts';
import type { Services } from '../http/services.ts';
import { withTotals } from '../totals/with-totals.ts';
import { knownSidecars, type KnownSidecar } from './known-sidecars.ts';
import type { ShownSidecar } from './sidecar-schemas.ts';

/** Those heard last stay if there are more. */
const MOST_SIDECARS = 1000;

export function listSidecars(_call: EndpointCall, services: Services): Promise<EndpointOutcome> {
  return withTotals(services, async (totals) => {
    const { routes, sidecars, clock } = services;
    const sources = await totals.sources();
    const nowMs = clock.now();
    const { revision } = routes.head();
    const known = knownSidecars({ sources, contacts: sidecars.contacts(), nowMs })
      .toSorted((a, b) => b.lastSeenMs - a.lastSeenMs)
      .slice(0, MOST_SIDECARS);
    const data = known.map((sidecar) => viewSidecar(sidecar, { revision, nowMs }));
    return jsonResponse(200, { data: data.toSorted(byName) });
  });
}

const NO_COUNTS = 'it hands no counts over, so its requests are in no sum; its key needs the scope ledger';

function viewSidecar(
  { id, report, contact, lastSeenMs, isSilent, isCounted }: KnownSidecar,
  { revision: head, nowMs }: { readonly revision: number; readonly nowMs: number },
): ShownSidecar {
  const revision = report?.revision ?? null;
  const silent = `nothing was heard of it for ${Math.round((nowMs - lastSeenMs) / 1000)} s`;
  return {
    name: report?.name ?? id,
    version: report?.version ?? contact?.version ?? null,
    address: contact?.address ?? report?.address ?? null,
    since: report?.since ?? null,
    last_seen: new Date(lastSeenMs).toISOString(),
    revision,
    behind: revision === null ? null : Math.max(0, head - revision),
    ready: isSilent ? false : (report?.ready ?? null),
    reasons: [
      ...(isSilent ? [silent] : []),
      ...(!isSilent && !isCounted ? [NO_COUNTS] : []),
      ...(report?.reasons ?? []),
    ],
  };
}

function byName(a: ShownSidecar, b: ShownSidecar): number {
  const [one, other] = [a, b].map(({ name, since, address }) => `${name} ${since ?? ''} ${address ?? ''}`);
  return (one ?? '') < (other ?? '') ? -1 : 1;
}
