// Passes at the door: finds the pass that a request presents, and lets the request pass by it. By seconds the token is all:
// neither a write nor a read stands between the request and the upstream. By uses and credit the books decide. A pass that is
// no good lets the order go on, and the 402 that may follow says why.
import { LRUCache } from 'lru-cache';
import type { PassRefusal } from '../../../domain/decide.ts';
import { LedgerUnavailable } from '../../../domain/payment/ledger.ts';
import { problem } from '../../../domain/problem.ts';
import { formatPrice, parsePrice, type Price } from '../../../domain/payment/money.ts';
import { chargeIdOfPass, coversRoute, type SoldPass } from '../../../domain/selling/pass.ts';
import { CREDIT_SCALE, creditUnits } from '../../../domain/selling/pass-book.ts';
import { worthOfFirst } from '../../../domain/selling/pass-opening.ts';
import { markOfPlan, type PassTokens, type TokenPass } from '../../../domain/selling/pass-token.ts';
import type { SalesPlan } from '../../../domain/selling/plan.ts';
import type { Clock } from '../../../host/clock.ts';
import { grantAccess } from '../grant.ts';
import type { MeterRequests } from '../metering.ts';
import type { SaleMetrics } from '../sale-metrics.ts';
import { NEXT, refuse, type AskedSale, type NotPassed, type Ruling, type WayToPass } from '../way-to-pass.ts';
import { whenKnown } from '../when-known.ts';
import { handOver, passCookie, readShownPass, secondsLeft } from './pass-headers.ts';
import { ledgerAway } from './pass-problems.ts';
import type { AnswerInstead, OpenFirstUse, PassBooks, PassUse } from './presented-pass.ts';
import type { SignedIn } from './wallet-sign-in.ts';

export type Passes = {
  /** Looks for a pass in a request. */
  readonly way: WayToPass;
  /** Lets a request pass by the pass that its payment bought. */
  readonly useBought: (pass: SoldPass, use: PassUse) => Ruling | NotPassed | Promise<Ruling | NotPassed>;
  /**
   * Headers that hand over a pass with the answer that it was bought with. `used`: that answer is its first use, or what it
   * takes of a credit, in the unit of its books.
   */
  readonly handedOver: (pass: SoldPass, used: boolean | bigint, withCookie: boolean) => readonly string[];
  /** Undefined: there are no books. */
  readonly openFirstUse: OpenFirstUse | undefined;
  /** Collects the answer that a pass was bought with, if its request can be sent again as the same use. */
  readonly collect: PassBooks['collect'] | undefined;
  /** Hears what the response to the request that buys a pass takes of it. */
  readonly meter: MeterRequests;
  /** Counts a pass that was sold. */
  readonly sold: (pass: SoldPass) => void;
  /** Counts the use of the request that bought a pass, if it was taken with the settlement. */
  readonly usedAtOnce: (pass: SoldPass) => void;
};

export type PassesDeps = {
  readonly tokens: PassTokens;
  /** Undefined: nothing could write draws down, and passes by uses and credit are no good here. */
  readonly books: PassBooks | undefined;
  /** Reads a wallet's signature; undefined: none is asked for here. */
  readonly signedIn: ((value: string, asked: AskedSale) => Promise<SignedIn>) | undefined;
  readonly answer: AnswerInstead;
  /** Hears what responses to requests of metered plans take. */
  readonly meter: MeterRequests;
  /** Cookies are `Secure`. */
  readonly isSecure: boolean;
  readonly metrics: Pick<SaleMetrics, 'passSold' | 'passUsed' | 'passDrawn'>;
  readonly clock: Pick<Clock, 'now'>;
};

/** Tokens whose signature is not checked again. */
const KEPT = 10_000;

export function createPasses(deps: PassesDeps): Passes {
  const { tokens, books, signedIn, metrics, clock } = deps;
  // Tokens that were read: a second look takes no HMAC.
  const known = new LRUCache<string, TokenPass>({ max: KEPT });
  const read = (token: string): TokenPass | undefined => {
    const seen = known.get(token);
    if (seen !== undefined) return seen;
    const found = tokens.read(token);
    if (found !== undefined) known.set(token, found);
    return found;
  };
  const useToken = (token: string, use: PassUse): ReturnType<Passes['useBought']> => {
    const pass = read(token);
    if (pass === undefined) return refused('pass_unknown');
    if (pass.kind === 'seconds') return useSeconds(deps, pass, token, use);
    if (books === undefined) return refused('pass_unknown');
    return books.drawFrom({ passId: pass.passId, kind: pass.kind, token }, use, deps.answer);
  };
  const bySignIn = async (value: string, asked: AskedSale): Promise<Ruling | NotPassed> => {
    const { sale } = asked;
    if (signedIn === undefined || !sale.plan.wallet) return NEXT;
    const signed = await signedIn(value, asked);
    if (signed.kind === 'malformed') return refuse(sale.route, problem('pass_malformed', signed.detail));
    if (signed.kind === 'refused') return refused(signed.because);
    const all = await passesOf(books, signed.payer);
    if (all === 'unavailable') return refuse(sale.route, ledgerAway());
    const covering = all.filter(({ pass }) => coversRoute(pass, sale.plan.id, sale.route.id));
    const unrevoked = covering.filter(({ isRevoked }) => !isRevoked);
    const good = unrevoked.filter(({ isEmpty }) => !isEmpty);
    if (covering.length === 0) return refused(all.length === 0 ? 'pass_unknown' : 'pass_scope');
    if (unrevoked.length === 0) return refused('pass_revoked');
    return useFirst(
      good.map(({ pass }) => pass).toSorted((one, other) => one.endsAtMs - other.endsAtMs),
      useOf(asked),
    );
  };
  /** Lets a request pass by the first of these passes that is good for it: one may hold less than it costs. */
  const useFirst = async (passes: readonly SoldPass[], use: PassUse): Promise<Ruling | NotPassed> => {
    let refusal: NotPassed | undefined;
    for (const pass of passes) {
      const ruling = await useToken(tokens.write(pass), use);
      if (ruling.kind !== 'next') return ruling;
      refusal ??= ruling;
    }
    return refusal ?? refused('pass_used_up');
  };
  return {
    way: (asked) => {
      const { sale, request } = asked;
      const shown = readShownPass(request.req.rawHeaders, sale.plan.cookie);
      if ('code' in shown) return refuse(sale.route, shown);
      if (shown.token !== undefined) return useToken(shown.token, useOf(asked));
      return shown.signIn === undefined ? NEXT : bySignIn(shown.signIn, asked);
    },
    useBought: (pass, use) => useToken(tokens.write(pass), use),
    handedOver: (pass, used, withCookie) => {
      const token = tokens.write(pass);
      const left = secondsLeft(pass.endsAtMs, clock.now());
      const cookie = withCookie && pass.kind === 'seconds' ? passCookie(token, left, deps.isSecure) : [];
      return [...handOver(token, leftAfterSale(pass, used, left)), ...cookie];
    },
    openFirstUse: books?.openFirstUse,
    collect: books?.collect,
    meter: deps.meter,
    sold: ({ planId, termsId }) => metrics.passSold(planId, termsId),
    usedAtOnce: (pass) => {
      const { planId, termsId, kind, currency } = pass;
      metrics.passUsed(planId, termsId);
      if (kind !== 'seconds') metrics.passDrawn(planId, currency, { units: worthOfFirst(pass), scale: CREDIT_SCALE });
    },
  };
}

function useOf({ sale, request, priced }: AskedSale): PassUse {
  const { route, plan } = sale;
  return {
    route,
    plan,
    request,
    rawHeaders: request.req.rawHeaders,
    offer: () => whenKnown(priced(), ({ offer }) => offer),
  };
}

/** Lets a request pass by a pass by seconds. */
function useSeconds(deps: PassesDeps, pass: TokenPass, token: string, use: PassUse): Ruling | NotPassed {
  const { books, metrics, isSecure } = deps;
  const { route, plan, request } = use;
  const { passId, endsAtMs, routeId, planMark } = pass;
  const sought = soughtOf(plan);
  if (planMark !== sought.mark || (routeId ?? route.id) !== route.id) return refused('pass_scope');
  const left = secondsLeft(endsAtMs, request.nowMs);
  if (left === 0) return refused('pass_expired');
  if (books?.isRevoked(passId) === true) return refused('pass_revoked');
  metrics.passUsed(plan.id, termsIdOf(pass, sought));
  // A token tells whole seconds, rounded up: what is left of its last one would be a second more than was sold.
  const rest = Math.max(1, Math.floor((endsAtMs - request.nowMs) / 1000));
  const told = [...handOver(token, `${rest}s`), ...(plan.cookie ? passCookie(token, rest, isSecure) : [])];
  return grantAccess(
    'pass',
    { route },
    {
      chargeId: chargeIdOfPass(passId),
      headers: ['Tollgate-Route-Id', route.id],
      beforeResponse: () => ({ kind: 'stream', headers: told }),
    },
  );
}

/** Stands in metrics for terms that are gone. */
const FORMER = 'former';

/** What tokens of a plan are known by: made once, because every request by a token asks for it. */
type SoughtPlan = { readonly mark: string; readonly sold: readonly { readonly id: string; readonly price: Price }[] };

const soughtPlans = new WeakMap<SalesPlan, SoughtPlan>();

function soughtOf(plan: SalesPlan): SoughtPlan {
  const known = soughtPlans.get(plan);
  if (known !== undefined) return known;
  const sold = plan.passes.flatMap(({ id, amount }) => {
    const price = parsePrice(amount);
    return price === undefined ? [] : [{ id, price }];
  });
  const made = { mark: markOfPlan(plan.id), sold };
  soughtPlans.set(plan, made);
  return made;
}

/** Id of the terms that a pass was sold by, which its price tells. Equal prices have equal members. */
function termsIdOf({ price: { units, scale } }: TokenPass, { sold }: SoughtPlan): string {
  return sold.find(({ price }) => price.units === units && price.scale === scale)?.id ?? FORMER;
}

/** What is left of a pass with the answer that it was bought with, in its own unit. */
function leftAfterSale(pass: SoldPass, used: boolean | bigint, seconds: number): string {
  switch (pass.kind) {
    case 'seconds':
      return `${seconds}s`;
    case 'uses':
      return String(pass.uses - (used === false ? 0 : 1));
    case 'credit':
      return `${creditAfter(pass, used)} ${pass.currency}`;
    default:
      return pass satisfies never;
  }
}

function creditAfter({ credit, first }: CreditPass, used: boolean | bigint): string {
  const taken = typeof used === 'bigint' ? used : used ? creditUnits(first) : 0n;
  const left = creditUnits(credit) - taken;
  return formatPrice({ units: left < 0n ? 0n : left, scale: CREDIT_SCALE });
}

type CreditPass = Extract<SoldPass, { readonly kind: 'credit' }>;

function refused(because: PassRefusal): NotPassed {
  return { kind: 'next', because };
}

type PayerPasses = Awaited<ReturnType<PassBooks['ofPayer']>>;

/** Passes of a payer that have not ended. `unavailable`: the ledger cannot say. */
async function passesOf(books: PassBooks | undefined, payer: string): Promise<PayerPasses | 'unavailable'> {
  try {
    return (await books?.ofPayer(payer)) ?? [];
  } catch (error) {
    if (error instanceof LedgerUnavailable) return 'unavailable';
    throw error;
  }
}
