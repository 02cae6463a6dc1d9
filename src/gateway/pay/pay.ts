// A presented payment, from its header to a charge of our own: read, bound to a quote, looked up in the ledger, verified,
// claimed. One that this process never met is looked up only before it is turned away: if it is known after all the claim
// says so. Only the one request whose claim the ledger took goes on; everything else ends here with an answer that says what
// became of the payment. Sources: CONTRACT section 6, rules 1 to 4.
import type { Caller, Credential } from '../../domain/decide.ts';
import type { Charge, Claim } from '../../domain/charge.ts';
import { LedgerUnavailable } from '../../domain/ledger.ts';
import { comparePrices, formatPrice, parsePrice, toAtomic } from '../../domain/money.ts';
import type { Offer } from '../../domain/offer.ts';
import { joinChargeId, type Quote } from '../../domain/quote.ts';
import { standing, type Claimed, type Standing } from '../../domain/standing.ts';
import type { AnswerOutcome, Asked, PaidOutcome } from '../collect.ts';
import { refusedReceipt, type Presented, type Verification } from '../rails/rail.ts';
import {
  ledgerUnavailable,
  paymentProblem,
  railOfferOf,
  receiptOf,
  settlementUnknown,
  whatIsShown,
  type PayDeps,
  type Payment,
} from './payment.ts';
import { redeem } from './redeem.ts';
import { createServe, type SettleModes } from './serve.ts';

export type Payable = { readonly offer: Offer; readonly caller: Caller; readonly credential: Credential };
export type Pay = (payable: Payable, asked: Asked) => Promise<AnswerOutcome | PaidOutcome>;

export function createPay(deps: PayDeps, modes: SettleModes): Pay {
  const { rail, ledger, met, quotes, options, clock, newId } = deps;
  const verifying = new Map<string, { readonly sha256: string; readonly flight: Promise<Verification> }>();
  const serve = createServe(deps, modes);

  /** One call in flight per payment, whoever asks and however it is spelled; undefined where another spelling is being asked about. */
  const verifyOnce = (payment: Payment): Promise<Verification> | undefined => {
    const { presented, offer } = payment;
    const { network, asset, payer, nonce } = presented.key;
    const name = `${network} ${asset} ${payer} ${nonce} ${offer.receiver.id} ${offer.atomic}`;
    const known = verifying.get(name);
    if (known !== undefined) return known.sha256 === presented.sha256 ? known.flight : undefined;
    const flight = rail.verify(presented, payment.railOffer).finally(() => verifying.delete(name));
    verifying.set(name, { sha256: presented.sha256, flight });
    return flight;
  };

  const attempt = async (payable: Payable, asked: Asked): Promise<AnswerOutcome | PaidOutcome> => {
    const { route } = payable.offer;
    const presented = rail.read(payable.credential, payable.offer);
    if ('code' in presented) return deps.refuse(presented, asked.origin, route.id);
    const bound = bind(payable.offer, presented, asked);
    if (bound === 'mismatch') return deps.demand(payable.offer, 'quote_mismatch', asked);
    const { customerId } = payable.caller;
    const { offer } = bound;
    const railOffer = railOfferOf(offer, asked);
    const payment: Payment = { offer, railOffer, presented, asked, customerId, owner: newId() };

    if (met.has(presented.key)) {
      const taken = await stoppedWhereTaken(payment);
      if (taken !== undefined) return taken;
    }

    const refusal = rail.check(presented, railOffer, clock.now());
    if (refusal !== undefined) return (await stoppedWhereTaken(payment)) ?? refused(payment, refusal);
    const asking = verifyOnce(payment);
    if (asking === undefined) return stopped(payment, 'in_use', undefined);
    const verification = await asking;
    switch (verification.kind) {
      case 'valid':
        break;
      case 'refused':
        return (await stoppedWhereTaken(payment)) ?? refused(payment, verification.reason);
      case 'unavailable':
        return (await stoppedWhereTaken(payment)) ?? notVerified(payment, verification.detail);
      default:
        return verification satisfies never;
    }

    const mode = modes.modeFor(bound.offer.receiver, asked.method, presented.key.payer);
    const claim = makeClaim(
      payment,
      payable.credential,
      bound.quote?.id ?? joinChargeId(quotes.issue(payable.offer, asked.method, asked.nowMs)),
      bound.quote?.currency ?? route.currency,
      mode,
    );
    const { leaseMs, maxUnsettledPerPayer } = options;
    met.add(presented.key);
    const claimed = await ledger.claim(claim, {
      owner: payment.owner,
      leaseMs,
      maxUnsettledPerPayer,
      changeId: payment.owner,
      settlesAtOnce: mode === 'before_forward',
    });
    if (claimed.kind !== 'claimed') return notClaimed(payment, claimed);
    deps.chargeLog.changed(claimed.charge);
    return serve(payment, claimed.charge);
  };

  /** The quote that the payment names, where it is ours and still good; else the route's current price. */
  const bind = (
    current: Offer,
    presented: Presented,
    asked: Asked,
  ): { offer: Offer; quote: Quote | undefined } | 'mismatch' => {
    const quote = presented.externalRef === undefined ? undefined : quotes.read(presented.externalRef, asked.nowMs);
    if (quote === undefined) return { offer: current, quote };
    if (quote.routeId !== current.route.id || !quote.isFor(asked.method)) return 'mismatch';
    const atomic = toAtomic(quote.price, current.receiver.assetDecimals);
    // Terms that no longer exist make a quote void: the route is paid at what it costs now.
    if (!quote.hasTermsOf(current) || atomic === undefined || !current.receiver.currencies.includes(quote.currency)) {
      return { offer: current, quote: undefined };
    }
    return { offer: { ...current, price: quote.price, atomic }, quote };
  };

  /**
   * What the ledger knows of this payment, where that leaves no room for another claim. Asked before a payment that was met
   * is verified, and before any is turned away: it may have been taken through another request, and then that is why it is
   * refused (a used nonce, a spent balance): whoever is told 402 for it would pay twice.
   */
  const stoppedWhereTaken = async (payment: Payment): Promise<AnswerOutcome | PaidOutcome | undefined> => {
    const { key } = payment.presented;
    const known = await ledger.find(key);
    if (known === undefined) return undefined;
    met.add(key);
    const stands = standing(known, whatIsShown(payment), clock.now());
    return stands === 'claimable' ? undefined : stopped(payment, stands, known);
  };

  const refused = (payment: Payment, reason: string): AnswerOutcome => {
    deps.chargeLog.counted(payment.offer.route.id, 'refused');
    const { presented, offer } = payment;
    const header = rail.receiptHeader(presented.version, refusedReceipt(presented.key, offer.atomic, reason));
    return deps.demand(offer, `payment_refused: ${reason}`, payment.asked, header);
  };

  const notVerified = ({ offer, asked }: Payment, detail: string): AnswerOutcome => {
    const routeId = offer.route.id;
    deps.log.warn('payment not verified', { route_id: routeId, detail });
    deps.chargeLog.counted(routeId, 'unavailable');
    return deps.refuse(
      paymentProblem(
        'facilitator_unavailable',
        'The payment cannot be verified right now; nothing was charged. Send the same request again later.',
      ),
      asked.origin,
      routeId,
    );
  };

  const notClaimed = (
    payment: Payment,
    claimed: Exclude<Claimed, { kind: 'claimed' }>,
  ): Promise<AnswerOutcome | PaidOutcome> | AnswerOutcome => {
    const { offer, asked } = payment;
    switch (claimed.kind) {
      case 'quote_already_used':
        deps.chargeLog.counted(offer.route.id, 'already_used');
        return deps.demand(offer, 'quote_already_used', asked);
      case 'too_many_unsettled':
        return deps.refuse(
          paymentProblem(
            'too_many_unsettled',
            'This payer has too many payments that are not settled yet; nothing was charged. Try again later.',
          ),
          asked.origin,
          offer.route.id,
        );
      case 'in_use':
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
    stands: Exclude<Standing, 'claimable'>,
    charge: Charge | undefined,
  ): Promise<AnswerOutcome | PaidOutcome> => {
    const { offer, asked, presented } = payment;
    const routeId = offer.route.id;
    switch (stands) {
      case 'in_use':
        deps.chargeLog.counted(routeId, 'in_use');
        if (charge?.state === 'settling' && charge.owner === null)
          return deps.refuse(settlementUnknown(charge.id), asked.origin, routeId);
        return deps.refuse(
          paymentProblem(
            'payment_in_use',
            'This payment is being used by another request. Send it again when that is answered.',
            charge?.id,
          ),
          asked.origin,
          routeId,
        );
      case 'spent':
        deps.chargeLog.counted(routeId, 'already_used');
        return deps.demand(offer, 'payment_already_used', asked);
      case 'redeemable':
        return charge === undefined ? deps.demand(offer, 'payment_already_used', asked) : redeem(deps, payment, charge);
      case 'already_paid': {
        deps.chargeLog.counted(routeId, 'already_used');
        const receipt = charge && receiptOf(charge);
        const answer = deps.refuse(
          paymentProblem(
            'already_paid',
            'This payment was settled, and its answer cannot be delivered any more. Do not pay again for it.',
            charge?.id,
          ),
          asked.origin,
          routeId,
        );
        return receipt === undefined ? answer : withHeaders(answer, rail.receiptHeader(presented.version, receipt));
      }
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
      deps.chargeLog.counted(payable.offer.route.id, 'unavailable');
      return deps.refuse(ledgerUnavailable(), asked.origin, payable.offer.route.id);
    }
  };
}

export function withHeaders(outcome: AnswerOutcome, headers: readonly string[]): AnswerOutcome {
  return { ...outcome, answer: { ...outcome.answer, headers: [...outcome.answer.headers, ...headers] } };
}

function makeClaim(
  payment: Payment,
  credential: Credential,
  id: string,
  currency: string,
  settle: Claim['settle'],
): Claim {
  const { offer, presented, asked, customerId } = payment;
  const { route, receiver } = offer;
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
      validAfter: presented.validAfter,
      validBefore: presented.validBefore,
    },
    route: { id: route.id, method: route.method, pattern: route.pattern },
    request: { method: asked.method, target: asked.target },
    price: { amount: writePrice(offer), currency },
    receiverId: receiver.id,
    customerId: customerId ?? null,
    settle,
    // Where to look for proof is derived from the claim's time: asking the chain now would cost every payer a round trip.
    fromBlock: null,
  };
}

/** As the route writes it, unless a quote holds another price than the route has by now. */
function writePrice({ route, price }: Offer): string {
  const current = parsePrice(route.amount);
  return current !== undefined && comparePrices(current, price) === 0 ? route.amount : formatPrice(price);
}
