// A presented payment, from its header to a charge of our own: read, looked up in the ledger, bound to a quote, verified,
// claimed. What the ledger knows is answered by what the ledger says, whatever has become of price, quote, times or receiver
// since. A payment that this process never met is looked up only before it is turned away: if it is known after all, the
// claim says so. Only the one request whose claim the ledger took goes on.
import type { Caller, Credential } from '../../domain/decide.ts';
import type { Charge, Claim } from '../../domain/charge.ts';
import { LedgerUnavailable } from '../../domain/payment/ledger.ts';
import { comparePrices, formatPrice, parsePrice, toAtomic } from '../../domain/money.ts';
import type { Offer } from '../../domain/offer.ts';
import type { Problem } from '../../domain/problem.ts';
import { joinChargeId, type Quote } from '../../domain/quote.ts';
import type { Route } from '../../domain/route.ts';
import {
  paymentStatus,
  type Claimed,
  type ClaimOptions,
  type PaymentStatus,
} from '../../domain/payment/claim-policy.ts';
import type { AnswerOutcome, Asked } from '../collect.ts';
import type { Replay } from '../kept-responses.ts';
import { refusedReceipt, type Presented, type RailOffer, type Refusal, type Verification } from '../rails/rail.ts';
import {
  alreadyPaid,
  demandAnew,
  facilitatorUnavailable,
  ledgerUnavailable,
  paymentInUse,
  paymentProblem,
  railOfferOf,
  whatIsShown,
  sha256Of,
  type PayDeps,
  type Payment,
  type PayOutcome,
} from './payment.ts';
import { redeem } from './redeem.ts';
import { giveBack } from './record.ts';
import { lookFirst, resume } from './resume.ts';
import { serve } from './serve.ts';

/** `offer`: or why nobody can pay for the route now. */
export type Payable = {
  readonly route: Route;
  readonly offer: Offer | Problem;
  readonly caller: Caller;
  readonly credential: Credential;
};
export type Pay = (payable: Payable, asked: Asked) => Promise<PayOutcome>;

/** A payment that may be claimed. */
type Bound = { readonly offer: Offer; readonly terms: RailOffer; readonly quote: Quote | undefined };

export function createPay(deps: PayDeps): Pay {
  const { rail, ledger, met, quotes, options, clock, leases, modes } = deps;
  const verifying = new Map<string, { readonly sha256: string; readonly flight: Promise<Verification> }>();

  /** One call in flight per payment, whoever asks and however it is spelled; undefined where another spelling is being asked about. */
  const verifyOnce = (presented: Presented, { offer, terms }: Bound): Promise<Verification> | undefined => {
    const { network, asset, payer, nonce } = presented.key;
    const name = `${network} ${asset} ${payer} ${nonce} ${offer.receiver.id} ${offer.atomic}`;
    const known = verifying.get(name);
    if (known !== undefined) return known.sha256 === presented.sha256 ? known.flight : undefined;
    const flight = rail.verify(presented, terms).finally(() => verifying.delete(name));
    verifying.set(name, { sha256: presented.sha256, flight });
    return flight;
  };

  const attempt = async (payable: Payable, asked: Asked): Promise<PayOutcome> => {
    const { route, offer: current, caller, credential } = payable;
    const offer = 'code' in current ? undefined : current;
    const presented = rail.read(credential, offer);
    if ('code' in presented)
      return 'code' in current
        ? deps.refuse(current, asked.origin, route.id)
        : deps.malformed(presented, credential.version, current, asked);
    asked.notePayer(presented.key.payer);
    const { customerId } = caller;
    const payment: Payment = { route, offer: current, presented, asked, customerId, owner: leases.newOwner() };
    const lost = presented.version === 2 ? deps.responses.replays.find(whatIsShown(payment)) : undefined;
    if (lost !== undefined) return replayed(lost);

    if (met.has(presented.key)) {
      const taken = await answeredByLedger(payment);
      if (taken !== undefined) return taken;
    }
    /** Whoever is told 402 for a payment that was taken would pay twice: it may be why it is refused now. */
    const unlessTaken = async (refuse: () => AnswerOutcome): Promise<PayOutcome> =>
      (await answeredByLedger(payment)) ?? refuse();

    if (offer === undefined) return unlessTaken(() => demandAnew(deps, payment, 'payment_required'));
    const bound = bind(offer, presented, asked);
    if (bound === 'mismatch') return unlessTaken(() => deps.demand(offer, 'quote_mismatch', asked));
    const refusal = rail.check(presented, bound.terms, clock.now());
    if (refusal !== undefined) return unlessTaken(() => refused(payment, bound, refusal));
    const asking = verifyOnce(presented, bound);
    if (asking === undefined) return stopped(payment, 'in_use', undefined);
    const verification = await asking;
    switch (verification.kind) {
      case 'valid':
        break;
      case 'refused':
        if (isUsedUp(verification) && (await isReleased(payment)))
          return claimAndServe(payment, bound, credential, true);
        return unlessTaken(() => ({ ...refused(payment, bound, verification), refusedBy: 'facilitator' }));
      case 'unavailable':
        return unlessTaken(() => notVerified(payment, verification));
      default:
        return verification satisfies never;
    }
    // Nothing is claimed for a client that is not there.
    return asked.left() ? { kind: 'gone', routeId: route.id } : claimAndServe(payment, bound, credential);
  };

  /** `mayBePaid`: the chain is looked at before a settlement is sent. */
  const claimAndServe = async (
    payment: Payment,
    bound: Bound,
    credential: Credential,
    mayBePaid = false,
  ): Promise<PayOutcome> => {
    const { presented, asked, route } = payment;
    const { offer, quote, terms } = bound;
    const settle = mayBePaid
      ? 'before_forward'
      : modes.modeFor({
          wanted: offer.receiver.settle,
          method: asked.method,
          conditionalWrite: asked.conditionalWrite,
          payer: presented.key.payer,
          leftMs: Number(presented.validBefore) * 1000 - clock.now(),
          enoughMs: options.enoughToServeFirstMs,
        });
    const id = quote?.id ?? joinChargeId(quotes.issue(offer, asked.method, asked.nowMs));
    const claim = makeClaim(payment, bound, credential, id, quote?.currency ?? route.currency, settle);
    const { leaseMs, maxUnsettledPerPayer } = options;
    met.add(presented.key);
    const wanted: ClaimOptions = {
      owner: payment.owner,
      leaseMs,
      maxUnsettledPerPayer,
      changeId: deps.newId(),
      settleVia: settle === 'before_forward' ? rail.firstVia(terms) : undefined,
    };
    const claimed = await ledger.claim(claim, wanted).catch((error: unknown) => {
      if (error instanceof LedgerUnavailable) void giveBackLater(payment);
      throw error;
    });
    if (claimed.kind !== 'claimed') return notClaimed(payment, claimed);
    deps.chargeLog.changed(claimed.charge, 'claimed');
    return mayBePaid && claimed.charge.state === 'settling'
      ? lookFirst(deps, payment, claimed.charge)
      : serve(deps, payment, claimed.charge, terms);
  };

  /** A claim that was refused for want of an answer may have been written: it is given back as soon as it is seen. */
  const giveBackLater = async (payment: Payment): Promise<void> => {
    // A write that is on its way to a ledger elsewhere may arrive after the first answers.
    for (let answers = 0, pauseMs = 250; answers < ANSWERS; pauseMs = Math.min(2 * pauseMs, LONGEST_PAUSE_MS)) {
      await deps.pause(pauseMs);
      try {
        const known = await ledger.find(payment.presented.key);
        answers += 1;
        if (known?.owner === payment.owner) return await giveBack(deps, payment, known, 'ledger_unavailable');
      } catch (error) {
        if (!(error instanceof LedgerUnavailable)) throw error;
      }
    }
  };

  /** Its last byte was handed over a moment ago, to a client that may not have had it. */
  const replayed = ({ answer, chargeId, routeId }: Replay): AnswerOutcome => {
    deps.chargeLog.counted(routeId, 'replayed');
    return { kind: 'answer', answer, outcome: 'paid', reason: 'replayed', chargeId, routeId };
  };

  /** The quote that the payment names, where it is ours and still good; else the route's current price. */
  const bind = (current: Offer, presented: Presented, asked: Asked): Bound | 'mismatch' => {
    const priced = (offer: Offer, quote: Quote | undefined): Bound => ({
      offer,
      quote,
      terms: railOfferOf(offer, asked),
    });
    const quote = presented.externalRef === undefined ? undefined : quotes.read(presented.externalRef, asked.nowMs);
    if (quote === undefined) return priced(current, quote);
    if (quote.routeId !== current.route.id || !quote.isFor(asked.method)) return 'mismatch';
    const atomic = toAtomic(quote.price, current.receiver.assetDecimals);
    // Terms that no longer exist make a quote void: the route is paid at what it costs now.
    if (!quote.hasTermsOf(current) || atomic === undefined || !current.receiver.currencies.includes(quote.currency))
      return priced(current, undefined);
    return priced({ ...current, price: quote.price, atomic }, quote);
  };

  /** What the ledger knows of this payment, where that leaves no room for another claim. */
  const answeredByLedger = async (payment: Payment): Promise<PayOutcome | undefined> => {
    const { key } = payment.presented;
    const known = await ledger.find(key);
    if (known === undefined) return undefined;
    met.add(key);
    const stands = paymentStatus(known, whatIsShown(payment), clock.now());
    return stands === 'claimable' ? undefined : stopped(payment, stands, known);
  };

  /** A payment that was released and is used up all the same was perhaps paid to us. */
  const isReleased = async (payment: Payment): Promise<boolean> => {
    const known = await ledger.find(payment.presented.key);
    return known?.state === 'released' && paymentStatus(known, whatIsShown(payment), clock.now()) === 'claimable';
  };

  const refused = ({ presented, asked, route }: Payment, { offer }: Bound, refusal: Refusal): AnswerOutcome => {
    deps.chargeLog.counted(route.id, 'refused');
    const { reason, expected } = refusal;
    const header = rail.receiptHeader(presented.version, refusedReceipt(presented.key, offer.atomic, reason));
    const why = expected === undefined ? reason : `${reason}, ${expected}`;
    return deps.demand(offer, `payment_refused: ${why}`, asked, header);
  };

  const notVerified = (
    { route, asked }: Payment,
    { detail, retryAfterMs }: Extract<Verification, { kind: 'unavailable' }>,
  ): AnswerOutcome => {
    deps.log.warn('payment not verified', { route_id: route.id, detail });
    deps.chargeLog.counted(route.id, 'unavailable');
    return deps.refuse(facilitatorUnavailable('verified', retryAfterMs), asked.origin, route.id);
  };

  const notClaimed = (
    payment: Payment,
    claimed: Exclude<Claimed, { kind: 'claimed' }>,
  ): Promise<PayOutcome> | AnswerOutcome => {
    const { route, asked } = payment;
    switch (claimed.kind) {
      case 'quote_already_used':
        deps.chargeLog.counted(route.id, 'already_used');
        return demandAnew(deps, payment, 'quote_already_used');
      case 'too_many_unsettled':
        return deps.refuse(
          paymentProblem(
            'too_many_unsettled',
            'This payer has too many payments that are not settled yet; nothing was charged. Try again later.',
            { retryAfter: UNSETTLED_SECONDS },
          ),
          asked.origin,
          route.id,
        );
      case 'in_use':
      case 'unfinished':
      case 'spent':
      case 'redeemable':
      case 'already_paid':
        return stopped(payment, claimed.kind, claimed.charge);
      default:
        return claimed satisfies never;
    }
  };

  /** What the ledger knows of this payment leaves no room for another claim. */
  const stopped = async (
    payment: Payment,
    stands: Exclude<PaymentStatus, 'claimable'>,
    charge: Charge | undefined,
  ): Promise<PayOutcome> => {
    const { route, asked } = payment;
    if (charge === undefined || stands === 'in_use') {
      deps.chargeLog.counted(route.id, 'in_use');
      return deps.refuse(paymentInUse(deps, charge), asked.origin, route.id);
    }
    switch (stands) {
      case 'unfinished':
        return resume(deps, payment, charge);
      case 'spent':
        deps.chargeLog.counted(route.id, 'already_used');
        return demandAnew(deps, payment, 'payment_already_used');
      case 'redeemable':
        return redeem(deps, payment, charge);
      case 'already_paid':
        return alreadyPaid(deps, payment, charge);
      default:
        return stands satisfies never;
    }
  };

  return async (payable, asked) => {
    try {
      return await attempt(payable, asked);
    } catch (error) {
      if (!(error instanceof LedgerUnavailable)) throw error;
      deps.log.error('the ledger is unavailable', { error });
      deps.chargeLog.counted(payable.route.id, 'unavailable');
      return deps.refuse(ledgerUnavailable(), asked.origin, payable.route.id);
    }
  };
}

function isUsedUp({ reason }: Refusal): boolean {
  return reason.endsWith('nonce_already_used');
}

const UNSETTLED_SECONDS = 2;
const LONGEST_PAUSE_MS = 30_000;
/** Of the ledger, without such a claim: after them none will come. */
const ANSWERS = 6;

function makeClaim(
  { presented, asked, customerId, route }: Payment,
  { offer }: Bound,
  credential: Credential,
  id: string,
  currency: string,
  settle: Claim['settle'],
): Claim {
  const { receiver } = offer;
  return {
    id,
    payment: presented.key,
    credential: credential.value,
    credentialSha256: presented.sha256,
    x402Version: presented.version,
    terms: {
      scheme: receiver.scheme,
      network: receiver.caip2,
      asset: receiver.asset,
      payTo: receiver.payTo,
      amount: offer.atomic,
      maxTimeoutSeconds: receiver.maxTimeoutSeconds,
      assetName: receiver.assetName,
      assetVersion: receiver.assetVersion,
      assetDecimals: receiver.assetDecimals,
    },
    deadline: presented.validBefore,
    route: { id: route.id, method: route.method, pattern: route.pattern },
    request: { method: asked.method, path: asked.path, targetSha256: sha256Of(asked.target) },
    requestId: asked.requestId,
    price: { amount: writePrice(offer), currency },
    receiverId: receiver.id,
    customerId: customerId ?? null,
    settle,
  };
}

/** As the route writes it, unless a quote holds another price than the route has by now. */
function writePrice({ route, price }: Offer): string {
  const current = parsePrice(route.amount);
  return current !== undefined && comparePrices(current, price) === 0 ? route.amount : formatPrice(price);
}
