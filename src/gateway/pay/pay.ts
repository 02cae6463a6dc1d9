// A presented payment, from its header to a charge of our own: read, looked up, bound to a quote or a price, verified,
// claimed. A payment that the ledger knows is answered by what it knows, even if price, quote or receiver have changed
// since. A payment that this process has not seen is looked up only before it is turned away. If the ledger knows it
// after all, the claim says so. Only the one request whose claim the ledger took goes on.
import { hash } from 'node:crypto';
import type { Caller, Credential } from '../../domain/decide.ts';
import type { Claim } from '../../domain/payment/charge.ts';
import type { Offer } from '../../domain/payment/offer.ts';
import { isIdentical, type ClaimOptions, type PresentedRequest } from '../../domain/payment/claim-policy.ts';
import { chargedOf } from '../../domain/payment/whereabouts.ts';
import { LedgerUnavailable } from '../../domain/payment/ledger.ts';
import { problem, type Problem } from '../../domain/problem.ts';
import { joinChargeId, type Quote } from '../../domain/payment/quote.ts';
import type { Route } from '../../domain/routing/route.ts';
import type { Replay } from './memory.ts';
import type { ResponseOutcome, RequestFacts, OwnResponses } from '../outcome.ts';
import type { Presented, Rail, Refusal, Verification } from '../rails/rail.ts';
import { answerKnown, answerNotClaimed, answerTaken, isReleased, lookFirst } from './known.ts';
import {
  demandAnew,
  facilitatorUnavailable,
  ledgerUnavailable,
  networkOf,
  refusePayment,
  type PayDeps,
  type Payment,
  type PayOutcome,
} from './payment.ts';
import { giveBackLater } from './record.ts';
import { stateMoney } from './statement.ts';
import { serve } from './settle.ts';
import { formatPrice, toAtomic } from '../../domain/payment/money.ts';
import type { RailOffer } from '../../domain/payment/way.ts';

/** `offer`: or why the route cannot be paid now. */
type Payable = {
  readonly route: Route;
  readonly offer: Offer | Problem;
  readonly caller: Caller;
  readonly credential: Credential;
};
export type Pay = (payable: Payable, facts: RequestFacts) => Promise<PayOutcome>;

export function createPay(deps: PayDeps): Pay {
  const verifyOnce = createVerifier(deps.rail);
  return async ({ route, offer, caller: { customerId }, credential }, facts) => {
    const ways = 'code' in offer ? [] : offer.receiver.ways.map(({ way }) => way);
    const presented = deps.rail.read(credential, ways);
    if (!('key' in presented)) return answerUnread(deps, route, offer, presented, credential, facts);
    facts.notePayer(presented.key.payer);
    const shown = whatIsShown(presented, facts);
    const payment: Payment = { route, offer, presented, facts, shown, customerId, owner: deps.leases.newOwner() };
    try {
      return await attempt(deps, verifyOnce, payment, credential);
    } catch (error) {
      if (!(error instanceof LedgerUnavailable)) return answerFailed(deps, payment, error);
      deps.log.error('the ledger is unavailable', { error });
      deps.chargeLog.counted(route.id, 'unavailable', networkOf(payment));
      return deps.refuse(ledgerUnavailable(), facts.origin, route.id);
    }
  };
}

function whatIsShown({ sha256 }: Presented, { method, target }: RequestFacts): PresentedRequest {
  return { credentialSha256: sha256, method, targetSha256: hash('sha256', target) };
}

/** A defect of ours: its payer is told as much about the money as the ledger knows. */
async function answerFailed(deps: PayDeps, payment: Payment, error: unknown): Promise<ResponseOutcome> {
  const { facts, presented, route } = payment;
  deps.log.error('request failed', { request_id: facts.requestId, error });
  const failed = problem('internal', 'Something went wrong here; the request was not forwarded.');
  const charge = await deps.ledger.find(presented.key).catch(() => undefined);
  if (charge === undefined || !isIdentical(charge, payment.shown)) return deps.refuse(failed, facts.origin, route.id);
  // Its lease runs on, but nothing works on it: a claim moved nothing.
  return deps.refuse(stateMoney(deps, payment, charge, chargedOf(charge), failed), facts.origin, route.id);
}

/** Of what was presented not so much is known that the ledger could be asked. */
function answerUnread(
  deps: PayDeps,
  route: Route,
  offer: Offer | Problem,
  unread: Refusal | Problem,
  { version }: Credential,
  facts: RequestFacts,
): ResponseOutcome {
  if ('code' in offer) return deps.refuse(offer, facts.origin, route.id);
  if ('code' in unread) return deps.malformed(unread, version, offer, facts);
  deps.chargeLog.counted(route.id, 'refused', undefined);
  const { reason, expected } = unread;
  return deps.demand({ offer, reason: `payment_refused: ${reason}`, facts, expected });
}

/** Undefined if another spelling of the payment is being verified. */
type VerifyOnce = (presented: Presented, agreement: Agreement) => Promise<Verification> | undefined;

/** One call in flight per payment, for every request that presents it and however it is spelled. */
function createVerifier(rail: Rail): VerifyOnce {
  const verifying = new Map<string, { readonly sha256: string; readonly flight: Promise<Verification> }>();
  return (presented, { terms }) => {
    const { network, asset, payer, unique } = presented.key;
    const name = `${network} ${asset} ${payer} ${unique} ${terms.way.receiverId} ${terms.amount}`;
    const known = verifying.get(name);
    if (known !== undefined) return known.sha256 === presented.sha256 ? known.flight : undefined;
    const flight = rail.verify(presented, terms).finally(() => verifying.delete(name));
    verifying.set(name, { sha256: presented.sha256, flight });
    return flight;
  };
}

async function attempt(
  deps: PayDeps,
  verifyOnce: VerifyOnce,
  payment: Payment,
  credential: Credential,
): Promise<PayOutcome> {
  const { rail, seenPayments, clock } = deps;
  const { route, presented, facts } = payment;
  const offer = 'code' in payment.offer ? undefined : payment.offer;
  const lost = presented.version === 2 ? deps.responses.replays.find(payment.shown) : undefined;
  if (lost !== undefined) return replayed(deps, payment, lost);

  if (seenPayments.has(presented.key)) {
    const taken = await answerKnown(deps, payment);
    if (taken !== undefined) return taken;
  }
  /** A 402 for a payment that was taken makes its payer pay twice: that it was taken may be why it is refused now. */
  const unlessTaken = async (refuse: () => ResponseOutcome): Promise<PayOutcome> =>
    (await answerKnown(deps, payment)) ?? refuse();

  if (offer === undefined) return unlessTaken(() => demandAnew(deps, payment, 'payment_required'));
  const agreement = agreementOf(deps, offer, presented, facts);
  if ('differs' in agreement)
    return unlessTaken(() => deps.demand({ offer, reason: 'quote_mismatch', facts, expected: agreement.differs }));
  if ('reason' in agreement) return unlessTaken(() => refusePayment(deps, payment, presented.amount, agreement));
  const refusal = rail.check(presented, agreement.terms, clock.now());
  if (refusal !== undefined) return unlessTaken(() => refusePayment(deps, payment, agreement.terms.amount, refusal));
  const asking = verifyOnce(presented, agreement);
  if (asking === undefined) return answerTaken(deps, payment, 'in_use', undefined);
  const verification = await asking;
  switch (verification.kind) {
    case 'valid':
      // Nothing is claimed for a client that is not there.
      if (facts.left()) return { kind: 'gone', routeId: route.id };
      return claimAndServe(deps, payment, agreement, credential, wantedMode(deps, payment, agreement));
    case 'refused':
      if (isUsedUp(verification) && (await isReleased(deps, payment)))
        return claimAndServe(deps, payment, agreement, credential, 'look_first');
      return unlessTaken(() => ({
        ...refusePayment(deps, payment, agreement.terms.amount, verification),
        refusedBy: 'facilitator',
      }));
    case 'unavailable':
      return unlessTaken(() => notVerified(deps, payment, verification));
    default:
      return verification satisfies never;
  }
}

function wantedMode({ modes, clock, options }: PayDeps, payment: Payment, { offer }: Agreement): Claim['settle'] {
  const { presented, facts } = payment;
  return modes.modeFor({
    wanted: offer.receiver.settle,
    method: facts.method,
    conditionalWrite: facts.conditionalWrite,
    payer: presented.key.payer,
    leftMs: presented.deadline === undefined ? Infinity : Number(presented.deadline) * 1000 - clock.now(),
    enoughMs: options.enoughToServeFirstMs,
  });
}

/** `look_first`: it may be paid already, so the chain is looked at before a settlement is sent. */
async function claimAndServe(
  deps: PayDeps,
  payment: Payment,
  agreement: Agreement,
  credential: Credential,
  mode: Claim['settle'] | 'look_first',
): Promise<PayOutcome> {
  const { rail, ledger, seenPayments, quotes, options } = deps;
  const { presented, facts, route } = payment;
  const { offer, quote, terms } = agreement;
  const settle = mode === 'look_first' ? 'before_forward' : mode;
  const id = quote?.id ?? joinChargeId(quotes.issue(offer, facts.method, facts.nowMs));
  const claim = makeClaim(payment, agreement, credential, id, quote?.currency ?? route.currency, settle);
  const { leaseMs, maxUnsettledPerPayer } = options;
  seenPayments.add(presented.key);
  const wanted: ClaimOptions = {
    owner: payment.owner,
    leaseMs,
    maxUnsettledPerPayer,
    changeId: deps.newId(),
    settleVia: settle === 'before_forward' ? rail.firstVia(presented, terms) : undefined,
  };
  const since = deps.clock.monotonic();
  const claimed = await ledger.claim(claim, wanted).catch((error: unknown) => {
    if (error instanceof LedgerUnavailable) void giveBackLater(deps, payment);
    throw error;
  });
  if (claimed.kind !== 'claimed') return answerNotClaimed(deps, payment, claimed);
  deps.chargeLog.changed(claimed.charge, 'claimed');
  return mode === 'look_first' && claimed.charge.state === 'settling'
    ? lookFirst(deps, payment, claimed.charge, since)
    : serve(deps, payment, claimed.charge, terms, since);
}

/** The last byte of the response was handed over a moment ago, to a client that may not have had it. */
function replayed(
  { chargeLog }: PayDeps,
  { presented }: Payment,
  { response, chargeId, routeId }: Replay,
): ResponseOutcome {
  chargeLog.counted(routeId, 'replayed', presented.key.network);
  return { kind: 'response', response, outcome: 'paid', reason: 'replayed', chargeId, routeId };
}

function notVerified(
  deps: PayDeps,
  payment: Payment,
  { detail, retryAfterMs }: Extract<Verification, { kind: 'unavailable' }>,
): ResponseOutcome {
  const { route, facts } = payment;
  deps.log.warn('payment not verified', { route_id: route.id, detail });
  deps.chargeLog.counted(route.id, 'unavailable', networkOf(payment));
  return deps.refuse(facilitatorUnavailable(deps, payment, 'verified', retryAfterMs), facts.origin, route.id);
}

function isUsedUp({ reason }: Refusal): boolean {
  return reason.endsWith('nonce_already_used');
}

// What a payer agreed to: the quote that the payment names, or the route's price now. The claim is made of it.

/** What of the quote differs from the request, for people; nothing of the credential. */
type QuoteMismatch = { readonly differs: string };
type Agreement = {
  readonly offer: Offer;
  /** As the route writes it, unless the quote holds another price than the route has by now. */
  readonly price: string;
  readonly terms: RailOffer;
  readonly quote: Quote | undefined;
};

/**
 * The quote that the payment names, if it is ours and still good; else the route's current price, in the way that it names.
 * A refusal: it names no way, or one that cannot hold the price.
 */
export function agreementOf(
  { quotes, listingOf }: Pick<OwnResponses, 'quotes' | 'listingOf'>,
  current: Offer,
  { chargeId, way }: Presented,
  facts: RequestFacts,
): Agreement | QuoteMismatch | Refusal {
  if ('reason' in way) return way;
  const agreeOn = (offer: Offer, amount: bigint, quote: Quote | undefined): Agreement => ({
    offer,
    quote,
    price: offer === current ? current.route.amount : formatPrice(offer.price),
    terms: {
      way,
      amount,
      description: offer.description,
      resource: facts.publicOrigin + facts.path,
      listing: listingOf?.(current.route, facts.method, facts.path),
    },
  });
  const offered = current.ways.find((each) => each.way === way);
  const quote = chargeId === undefined ? undefined : quotes.read(chargeId, facts.nowMs);
  if (quote !== undefined) {
    const { id, method, pattern } = current.route;
    if (quote.routeId !== id) return { differs: `it was made for another route than ${method} ${pattern}` };
    if (!quote.isFor(facts.method)) return { differs: `it was made for another method than ${facts.method}` };
    const isPrice = quote.isPriceOf(current);
    const quoted = isPrice ? offered?.amount : toAtomic(quote.price, way.decimals);
    // Terms that no longer exist make a quote void: the route is paid at what it costs now.
    if (quote.hasTermsOf(current) && quoted !== undefined && current.receiver.currencies.includes(quote.currency))
      return agreeOn(isPrice ? current : { ...current, price: quote.price }, quoted, quote);
  }
  return offered === undefined
    ? { reason: 'way_mismatch', expected: `a price of at most ${way.decimals} decimals on ${way.network}` }
    : agreeOn(current, offered.amount, undefined);
}

function makeClaim(
  { presented, facts, shown, customerId, route }: Payment,
  { price, terms: { way, amount } }: Agreement,
  credential: Credential,
  id: string,
  currency: string,
  settle: Claim['settle'],
): Claim {
  return {
    id,
    payment: presented.key,
    credential: credential.value,
    credentialSha256: presented.sha256,
    x402Version: presented.version,
    way,
    amount,
    deadline: presented.deadline ?? null,
    route: { id: route.id, method: route.method, pattern: route.pattern },
    request: { method: facts.method, path: facts.path, targetSha256: shown.targetSha256 },
    requestId: facts.requestId,
    price: { amount: price, currency },
    customerId: customerId ?? null,
    settle,
  };
}
