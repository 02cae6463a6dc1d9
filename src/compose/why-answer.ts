// The answer to `why` from what runs in this process: quotes are read with the secrets in force, routes are those in
// force. What explains them (why.ts) is loaded when somebody asks.
import { createQuotes } from '../domain/payment/quote.ts';
import type { Route } from '../domain/routing/route.ts';
import type { CurrentSnapshot } from '../gateway/routes/current-snapshot.ts';
import type { Clock } from '../host/clock.ts';
import type { WhyReport } from '../registry/charges/charge-schemas.ts';
import type { Settings } from './settings.ts';
import type { RefusalFinder, WhyLedgers } from './why.ts';

type WhyDeps = {
  readonly settings: Settings;
  readonly current: Pick<CurrentSnapshot, 'snapshot'>;
  readonly clock: Clock;
  /** Ledgers; undefined if this process has none. */
  readonly ledgers: WhyLedgers | undefined;
  /** Finds refusals; undefined if no proxy runs here. */
  readonly findRefusals: RefusalFinder | undefined;
};

/** Says what became of the request or charge with `id`. */
export async function answerWhy(
  id: string,
  { settings, current, clock, ledgers, findRefusals }: WhyDeps,
): Promise<WhyReport> {
  const { explainWhy } = await import('./why.ts');
  const { secrets, quoteTtlMs } = settings.config.charges;
  return explainWhy(id, {
    search: ledgers?.search,
    findByChargeId: ledgers?.findByChargeId,
    refusals: findRefusals,
    quotes: createQuotes({ secrets, ttlMs: quoteTtlMs, nonce: () => '' }),
    quoteTtlMs,
    routeOf: (routeId: string): Route | undefined => current.snapshot?.matcher.get(routeId),
    clock,
  });
}
