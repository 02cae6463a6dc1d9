// The status of the sync, in words for readiness and numbers for metrics. Says what is there; decides nothing.
import { describeHolding } from './keep/acceptance.ts';
import { factsInForce } from './machine/set-in-force.ts';
import type { SetState } from './machine/state.ts';

export type SyncStatus = {
  /** Where the routes in force came from. */
  readonly source: 'registry' | 'disk' | 'none';
  /** Milliseconds since the registry last confirmed the routes in force; undefined if there are none. */
  readonly ageMs: number | undefined;
  /** When the registry last confirmed them: milliseconds since the epoch. */
  readonly lastSuccess: number | undefined;
  /** What is odd about a set that is held back. */
  readonly held: string | undefined;
  /** Why the last poll came to nothing. */
  readonly lastError: string | undefined;
  readonly registryId: string | undefined;
  readonly revision: number | undefined;
  readonly routes: number | undefined;
  /** The last poll got no answer. */
  readonly away: boolean;
};

export function statusOf({ good, holding, lastError, away }: SetState, nowMs: number): SyncStatus {
  return {
    source: good?.source ?? 'none',
    ageMs: good && Math.max(0, nowMs - good.confirmedAt),
    lastSuccess: good?.confirmedAt,
    held: holding && describeHolding(holding, factsInForce(good)),
    lastError,
    registryId: good?.set.registryId,
    revision: good?.set.revision,
    routes: good?.size,
    away,
  };
}

/** The check `routes` of /readyz. `whenAbsent` says whether requests are served before the first set. */
export function checkRoutes(
  status: SyncStatus,
  whenAbsent: 'refuse' | 'forward',
): { readonly ok: boolean; readonly detail: string } {
  const error = status.lastError === undefined ? '' : `; ${status.lastError}`;
  if (status.source === 'none') {
    const forwarding = whenAbsent === 'forward' ? '; everything is forwarded free (sync.when_absent)' : '';
    return { ok: whenAbsent === 'forward', detail: `no routes were loaded yet${forwarding}${error}` };
  }
  const revision = status.revision === undefined ? '' : ` at revision ${status.revision}`;
  const from = status.source === 'disk' ? 'from the snapshot file, ' : '';
  const age = `confirmed ${Math.round((status.ageMs ?? 0) / 1000)} s ago`;
  const held = status.held === undefined ? '' : `; held back: ${status.held}`;
  return { ok: true, detail: `${status.routes} routes${revision}, ${from}${age}${held}${error}` };
}
