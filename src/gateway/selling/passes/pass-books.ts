// Draws requests on passes by uses and credit: a use is reserved in the ledger before its request goes on, taken where a payment
// would be charged, and given back where not. If the ledger cannot say, nobody is let in.
import { LedgerUnavailable } from '../../../domain/payment/ledger.ts';
import type { Problem } from '../../../domain/problem.ts';
import { formatPrice } from '../../../domain/payment/money.ts';
import type { Offer } from '../../../domain/payment/offer.ts';
import type { Route } from '../../../domain/routing/route.ts';
import { CREDIT_SCALE, standingOfBook, type DrawChange, type DrawResult } from '../../../domain/selling/pass-book.ts';
import { drawnBy, firstUseOf } from '../../../domain/selling/pass-opening.ts';
import type { PassLedger } from '../../../domain/selling/pass-store.ts';
import { chargeIdOfPass } from '../../../domain/selling/pass.ts';
import type { Clock, Schedule } from '../../../host/clock.ts';
import type { Log } from '../../../host/log.ts';
import type { GrantedVerdict, ResponseVerdict, SeenResponseHead } from '../../outcome.ts';
import { LEASE_MS, type Leases } from '../../pay/lease.ts';
import { grantAccess } from '../grant.ts';
import type { SaleMetrics } from '../sale-metrics.ts';
import { refuse, type NotPassed, type Ruling } from '../way-to-pass.ts';
import { limitOf, type MeteredUse, type MeterRequests, type PriceLimit } from '../metering.ts';
import { createDraw, sayUntilHeard, whyUnused } from './draw.ts';
import { readDrawKey, readKey } from './idempotency-key.ts';
import { nameUse, type KeptUses, type UseName } from './kept-uses.ts';
import { handOver } from './pass-headers.ts';
import { conflict, inUse, ledgerAway } from './pass-problems.ts';
import type { AnswerInstead, PassBooks, PassUse, PresentedPass } from './presented-pass.ts';
import type { Revocations } from './revocations.ts';

export type PassBooksDeps = {
  readonly ledger: PassLedger;
  readonly leases: Pick<Leases, 'newOwner' | 'keep'>;
  readonly revocations: Pick<Revocations, 'has'>;
  /** Whether a payment for a response on this route would have been charged. */
  readonly wouldCharge: (route: Route, method: string, head: SeenResponseHead) => boolean;
  /** Answers to uses that may be sent again. */
  readonly keptUses: KeptUses;
  /** Hears what responses to requests of metered plans take. */
  readonly meter: MeterRequests;
  readonly metrics: Pick<SaleMetrics, 'passUsed' | 'passDrawn'>;
  readonly newId: () => string;
  readonly clock: Pick<Clock, 'now' | 'monotonic'>;
  readonly schedule: Schedule;
  readonly log: Log;
};

type Reservation = Extract<DrawChange, { kind: 'reserve' }>;
type Drawn = Extract<DrawResult, { readonly useId: string }>;

export function createPassBooks(deps: PassBooksDeps): PassBooks {
  const { ledger, leases, revocations, keptUses, clock } = deps;
  return {
    isRevoked: revocations.has,
    ofPayer: async (payer) =>
      (await ledger.ofPayer(payer)).map(({ pass, book }) => ({
        pass,
        isRevoked: book.revokedAt !== null || revocations.has(pass.passId),
        isEmpty: pass.kind !== 'seconds' && standingOfBook(book, clock.now()).left + book.reserved <= 0n,
      })),
    openFirstUse: ({ passId, planId, currency }, owner) => {
      const name = { passId, useId: firstUseOf(passId), owner };
      const draw = createDraw(name, leases.keep(name.useId, clock.monotonic()), deps);
      const note = (result: DrawResult): void =>
        noteTaken(deps, { ...name, planId, currency, requestId: undefined }, result);
      return {
        take: (amount) => draw.takeAnyway(amount, note),
        takeAfterwards: (amount) => draw.takeAfterwards(amount, note),
        giveBack: draw.giveBack,
      };
    },
    collect: (passId, use) => {
      const key = readKey(use.rawHeaders, use.request);
      const name = key === null || 'code' in key ? undefined : nameUse(passId, use, key);
      return name && keptUses.collect(name);
    },
    drawFrom: async (pass, use, answer) => {
      const { route, plan, request } = use;
      const key = readDrawKey(use.rawHeaders, request);
      if (key !== null && 'code' in key) return refuse(use.route, key);
      const name = key === null ? undefined : nameUse(pass.passId, use, key);
      const given = name && !revocations.has(pass.passId) ? keptUses.find(name) : undefined;
      if (given !== undefined) return { kind: 'answered', outcome: given };
      // A use is a use, whatever the request costs.
      const offer = pass.kind === 'credit' ? await use.offer() : undefined;
      if (offer !== undefined && 'code' in offer) return refuse(use.route, offer);
      const price = offer === undefined ? route.amount : formatPrice(offer.price);
      const wanted: Reservation = {
        ...{ kind: 'reserve', passId: pass.passId, useId: `use_${deps.newId()}`, owner: leases.newOwner(), key },
        ...{ amount: drawnBy(pass, price), leaseMs: LEASE_MS },
        of: { planId: plan.id, routeId: route.id, kind: pass.kind, currency: route.currency },
      };
      const since = clock.monotonic();
      try {
        const result = await ledger.change(wanted);
        return 'useId' in result
          ? grant(deps, { pass, use, name, answer, offer, wanted, since }, result)
          : notDrawn(use, wanted, result.kind);
      } catch (error) {
        if (!(error instanceof LedgerUnavailable)) throw error;
        deps.log.error('the ledger is unavailable', { pass_id: pass.passId, error });
        // It may have been written: nobody works on it.
        const { passId, useId, owner } = wanted;
        const keySha256 = key?.sha256;
        const giveBack = { passId, useId, owner, kind: 'give_back', because: 'unasked', keySha256 } as const;
        sayUntilHeard(deps, giveBack, { lease: leases.keep(useId, since) });
        return refuse(use.route, ledgerAway());
      }
    },
  };
}

/** What a verdict says of keeping the response. */
type Keeping = Pick<Extract<ResponseVerdict, { kind: 'stream' }>, 'keep'>;

type Asked = {
  readonly pass: PresentedPass;
  readonly use: PassUse;
  /** Under which its answer is kept; undefined: it is not. */
  readonly name: UseName | undefined;
  readonly answer: AnswerInstead;
  /** Undefined: the pass is by uses. */
  readonly offer: Offer | undefined;
  readonly wanted: Reservation;
  readonly since: number;
};

function grant(deps: PassBooksDeps, asked: Asked, reserved: Drawn): Ruling {
  const { pass, use, name, answer, wanted, since } = asked;
  const { route, plan, request } = use;
  const { passId, owner, amount } = wanted;
  const { useId } = reserved;
  const isDrawn = reserved.kind === 'repeated';
  const draw = createDraw({ passId, useId, owner }, deps.leases.keep(useId, since), deps);
  const metered = isDrawn ? undefined : meterUse(deps, asked);
  const told = (left: bigint): readonly string[] => handOver(pass.token, leftText(pass, left, route.currency));
  const collected = name && deps.keptUses.collect(name);
  const keep: Keeping = collected === undefined ? {} : { keep: collected.keep };
  const instead = (refusal: Problem): GrantedVerdict => ({
    kind: 'replace',
    response: answer(refusal, request.origin),
  });
  const noted: NotedUse = { passId, useId, planId: plan.id, currency: route.currency, requestId: request.requestId };
  const note = (result: DrawResult): void => noteTaken(deps, noted, result);
  let stage: 'open' | 'heard' | 'over' = 'open';
  const take = async (part: bigint | undefined): Promise<GrantedVerdict> => {
    const taken = await draw.take(part);
    if (taken === 'unavailable') return instead(ledgerAway());
    note(taken);
    if (taken.kind !== 'taken') return instead(inUse());
    return { kind: 'stream', headers: told(taken.left), ...keep };
  };
  return grantAccess(
    'pass',
    { route },
    {
      chargeId: chargeIdOfPass(passId),
      headers: ['Tollgate-Route-Id', route.id, 'Tollgate-Use-Id', useId],
      hearer: metered?.use.hearer,
      beforeResponse: (head): GrantedVerdict | Promise<GrantedVerdict> => {
        stage = 'over';
        const isCharged = deps.wouldCharge(route, request.method, head);
        if (isDrawn) {
          draw.end();
          return { kind: 'stream', headers: told(reserved.left), ...(isCharged ? keep : {}) };
        }
        if (!isCharged) {
          draw.giveBack('not_charged');
          return { kind: 'stream', headers: told(reserved.left + amount) };
        }
        if (metered === undefined) return take(undefined);
        if (metered.use.head(head)) return take(metered.use.amount(metered.limit));
        // The end of the response says it. Until then the whole price stays reserved.
        stage = 'heard';
        return { kind: 'stream', headers: told(reserved.left), ...keep };
      },
      done: (end) => {
        if (stage === 'open') draw.giveBack(whyUnused(end));
        if (stage === 'heard' && metered !== undefined)
          draw.takeAfterwards(metered.use.amount(metered.limit, end), note);
        stage = 'over';
        collected?.done(end);
      },
    },
  );
}

/** Meters the use of a credit, if the plan has a meter. */
function meterUse(
  { meter }: PassBooksDeps,
  { use, offer }: Asked,
): { readonly use: MeteredUse; readonly limit: PriceLimit } | undefined {
  const { plan, route, request } = use;
  if (plan.meter === undefined || offer === undefined) return undefined;
  const about = { routeId: route.id, planId: plan.id, requestId: request.requestId };
  return { use: meter(plan.meter, about), limit: limitOf(offer) };
}

/** A use, as metrics and the log name it. */
type NotedUse = {
  readonly passId: string;
  readonly useId: string;
  readonly planId: string;
  readonly currency: string;
  readonly requestId: string | undefined;
};

/** Counts a use that was taken, and says it if one that was delivered could not be. */
function noteTaken(
  { metrics, log }: Pick<PassBooksDeps, 'metrics' | 'log'>,
  { passId, useId, planId, currency, requestId }: NotedUse,
  result: DrawResult,
): void {
  const about = { request_id: requestId, pass_id: passId, use_id: useId };
  if (result.kind !== 'taken') {
    log.warn('a use of a pass was lost: its lease ran out, and others have what is left', about);
    return;
  }
  metrics.passUsed(planId, result.termsId);
  metrics.passDrawn(planId, currency, { units: result.worth, scale: CREDIT_SCALE });
}

function leftText({ kind }: PresentedPass, left: bigint, currency: string): string {
  return kind === 'uses' ? left.toString() : `${formatPrice({ units: left, scale: CREDIT_SCALE })} ${currency}`;
}

function notDrawn(use: PassUse, { key }: Reservation, because: Exclude<DrawResult, Drawn>['kind']): Ruling | NotPassed {
  switch (because) {
    case 'used_up':
    case 'unknown':
    case 'expired':
    case 'revoked':
    case 'scope':
      return { kind: 'next', because: `pass_${because}` };
    case 'conflict':
      // Only what a proxy asks again stands for less than an Idempotency-Key.
      return refuse(use.route, conflict(key?.forMs !== undefined));
    case 'in_use':
    case 'lost':
      return refuse(use.route, inUse());
    default:
      return because satisfies never;
  }
}
