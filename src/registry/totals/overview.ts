// GET /v1/billing/overview: what was earned and how requests ended in a time, beside the same time before, and how things stand
// now. It reads sums alone, so it takes as long with ten million charges as with ten.
import type { z } from 'zod';
import { conversionOf } from '../../domain/totals/request-counts.ts';
import { keptSince, spansBy, spansOf, STEP_MS, widen } from '../../domain/totals/steps.ts';
import { fail, jsonResponse, type EndpointCall, type EndpointOutcome } from '../http/endpoint.ts';
import type { Services } from '../http/services.ts';
import { percentilesOf, requestsOf, revenueOf } from './added-up.ts';
import { askedRange, iso } from './asked-range.ts';
import { knownSidecars, type SidecarFacts } from '../sidecars/known-sidecars.ts';
import { withTotals } from './with-totals.ts';
import type { overviewQuery } from './totals-schemas.ts';

export function showOverview(
  { query }: EndpointCall<unknown, z.output<typeof overviewQuery>>,
  services: Services,
): Promise<EndpointOutcome> {
  return withTotals(services, async (totals, ledger) => {
    const now = services.clock.now();
    const asked = askedRange(query, now);
    if ('code' in asked) return fail(asked);
    const kept = keptSince(now, totals.hoursKeptMs());
    const range = widen(asked, kept, 'minute');
    const { fromMs, toMs } = range;
    const before = widen({ fromMs: fromMs - (toMs - fromMs), toMs: fromMs }, kept, 'minute');
    const [sums, earlier, charges, sources] = await Promise.all([
      totals.sums({ spans: spansBy(range, now) }),
      totals.sums({ spans: spansOf(before) }),
      ledger.countByState(),
      totals.sources(),
    ]);
    const [revenue, previous] = [revenueOf(sums.money), revenueOf(earlier.money)];
    const currencies = [...new Set([...revenue.currencies(), ...previous.currencies()])].toSorted();
    const requests = requestsOf(sums.requests);
    const overhead = percentilesOf(sums.overhead);
    const { active, paused } = services.snapshot().counts;
    return jsonResponse(200, {
      ...{ from: iso(fromMs), to: iso(toMs) },
      revenue: currencies.map((currency) => ({
        ...{ currency, amount: revenue.text(currency), previous: previous.text(currency) },
      })),
      requests,
      previous: requestsOf(earlier.requests),
      conversion: conversionOf(requests),
      overhead_ms: overhead.p50 === null ? null : overhead,
      routes: { active, paused },
      charges,
      sync: syncOf({ sources, contacts: services.sidecars.contacts(), nowMs: now }),
      as_of: iso(now),
    });
  });
}

type Sync = { readonly sidecars: number; readonly stale: number; readonly uncounted: number; readonly lost: number };

function syncOf(facts: SidecarFacts): Sync {
  const known = knownSidecars(facts);
  const heard = known.filter(({ isSilent }) => !isSilent);
  const recent = facts.sources.filter(({ lastAt }) => lastAt > facts.nowMs - STEP_MS.day);
  return {
    sidecars: heard.length,
    stale: known.filter(({ isSilent, report }) => isSilent || report?.ready === false).length,
    uncounted: heard.filter(({ isCounted }) => !isCounted).length,
    lost: recent.reduce((sum, { lost }) => sum + lost, 0),
  };
}
