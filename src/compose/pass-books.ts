// The books of passes of this process: what draws on them in the ledger, the leases of draws, and what was revoked. They live as
// long as the process; whose redirects lead away comes from the configuration in force.
import type { Config } from '../config/config.ts';
import { createOffers } from '../domain/payment/offer.ts';
import type { PassLedger } from '../domain/selling/pass-store.ts';
import { settleBy } from '../domain/selling/plan.ts';
import { ownAuthorities } from '../gateway/pay/charged-responses.ts';
import { createReplays, type ResponseMemory } from '../gateway/pay/kept-responses.ts';
import { createLeases, LEASE_MS } from '../gateway/pay/lease.ts';
import type { MeterRequests } from '../gateway/selling/metering.ts';
import { createKeptUses } from '../gateway/selling/passes/kept-uses.ts';
import { createPassBooks } from '../gateway/selling/passes/pass-books.ts';
import type { PassBooks } from '../gateway/selling/passes/presented-pass.ts';
import { startRevocations } from '../gateway/selling/passes/revocations.ts';
import type { SaleMetrics } from '../gateway/selling/sale-metrics.ts';
import { createWouldCharge } from '../gateway/selling/would-charge.ts';
import { systemSchedule, type Clock, type Random } from '../host/clock.ts';
import { createTokens } from '../host/identifiers.ts';
import type { Log } from '../host/log.ts';
import { receiversById } from './part.ts';

type PassBooksDeps = {
  readonly ledger: PassLedger;
  readonly config: () => Config;
  readonly meter: MeterRequests;
  readonly metrics: Pick<SaleMetrics, 'passUsed' | 'passDrawn'>;
  /** Memory for all responses that are kept. */
  readonly memory: ResponseMemory;
  readonly log: Log;
  readonly clock: Clock;
  readonly random: Random;
};

export function startPassBooks({ ledger, config, meter, metrics, memory, log, clock, random }: PassBooksDeps): {
  readonly books: PassBooks;
  readonly close: () => void;
} {
  const newId = createTokens(random, 18, 'base64url');
  const schedule = systemSchedule;
  const { monotonic } = clock;
  const revocations = startRevocations({ ledger, isWanted: () => takesPasses(config()), clock, schedule });
  const books = createPassBooks({
    ...{ ledger, revocations, meter, metrics, newId, clock, schedule, log },
    leases: createLeases({ ledger, schedule, newId, monotonic, leaseMs: LEASE_MS }),
    wouldCharge: judgeInForce(config),
    keptUses: createKeptUses({
      ...{ memory, replays: createReplays(schedule, monotonic) },
      keepBytes: () => config().charges.keepResponseBytes,
    }),
  });
  return { books, close: revocations.close };
}

/** Whether passes let requests in: those that were sold do in each plan, also in one that sells none any more. */
function takesPasses({ selling }: Config): boolean {
  return selling.plans.byId.size > 0;
}

type WouldChargeOn = Parameters<typeof createPassBooks>[0]['wouldCharge'];

/** Judges by the configuration in force. */
function judgeInForce(config: () => Config): WouldChargeOn {
  let known: { readonly of: Config; readonly judge: WouldChargeOn } | undefined;
  return (...asked) => {
    const of = config();
    if (known?.of !== of) known = { of, judge: judgeBy(of) };
    return known.judge(...asked);
  };
}

/** The route's own offer says when its money moves, also where nobody can say what a request costs. */
function judgeBy(config: Config): WouldChargeOn {
  const judge = createWouldCharge(authoritiesOf(config));
  const offer = createOffers(receiversById(config), settleBy(config.selling.plans));
  return (route, method, head) => judge(offer(route), method, head);
}

function authoritiesOf({ proxy }: Config): Parameters<typeof createWouldCharge>[0] {
  const { publicUrl, hosts = [], upstream } = proxy ?? {};
  const own = upstream === undefined ? undefined : new URL(upstream.origin);
  return ownAuthorities({ publicUrl, hosts, upstream: own ?? new URL('http://localhost') });
}
