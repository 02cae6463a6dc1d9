// A presented payment, from its header to a charge of our own: read, looked up, bound to a quote or a price, verified,
// claimed. A payment that the ledger knows is answered by what it knows, even if price, quote or receiver have changed
// since. A payment that this process has not seen is looked up only before it is turned away. If the ledger knows it
// after all, the claim says so. Only the one request whose claim the ledger took goes on.
import { hash } from 'node:crypto';
import type { Caller, Credential } from '../../domain/decide.ts';
import type { Claim } from '../../domain/payment/charge.ts';
import type { Offer, WayServices } from '../../domain/payment/offer.ts';
import { isIdentical, type ClaimOptions, type PresentedRequest } from '../../domain/payment/claim-policy.ts';
import { chargedOf } from '../../domain/payment/whereabouts.ts';
import { LedgerUnavailable, type Ledger } from '../../domain/payment/ledger.ts';
import { problem, type Problem } from '../../domain/problem.ts';
import { joinChargeId, type Quote } from '../../domain/payment/quote.ts';
import type { Route } from '../../domain/routing/route.ts';
import { sellPass, writePassInSale } from '../../domain/selling/pass.ts';
import { priceMeant } from '../../domain/payment/pass-offers.ts';
import { formatPrice, toAtomic, type Price } from '../../domain/payment/money.ts';
import type { RailOffer, Way } from '../../domain/payment/way.ts';
import type { Clock } from '../../host/clock.ts';
import type { Log } from '../../host/log.ts';
import type { ResponseOutcome, RequestFacts, OwnResponses } from '../outcome.ts';
import type { SalesPlan } from '../../domain/selling/plan.ts';
import { readDrawKey } from '../selling/passes/idempotency-key.ts';
import type { Passes } from '../selling/passes/passes.ts';
import type { PresentedPayment, Rail, Refusal, Verification } from '../rails/rail.ts';
import type { OwnAuthorities } from './charged-responses.ts';
import { createDeliverer } from './deliverer.ts';
import { createKnownPayments, type KnownPayments } from './known-payments.ts';
import type { CreateRepeats } from './repeats.ts';
import type { Leases } from './lease.ts';
import { createLookWriter } from './look-writer.ts';
import type { Replay, Replays, ResponseMemory } from './kept-responses.ts';
import type { SeenPayments } from './seen-payments.ts';
import { networkOf, type Payment, type PayOutcome, type SettleModes } from './payment.ts';
import { ledgerUnavailable } from './payment-problems.ts';
import { createPaymentResponses, type PaymentResponses } from './payment-responses.ts';
import { createRecorder, type ChargeLog, type Recorder } from './recorder.ts';
import { createPassSale } from './pass-sale.ts';
import { createRedeemer, type Redeemer } from './redeemer.ts';
import { createResumer, type Resumer } from './resumer.ts';
import { createSettler, type Settler } from './settler.ts';

/** Request that pays for a route. `offer` is a problem if the route cannot be paid now. */
type PaymentRequest = {
  readonly route: Route;
  readonly offer: Offer | Problem;
  /** Everything that the price depends on, as one text; undefined: it depends on nothing of the request. */
  readonly inputs?: string | undefined;
  readonly caller: Caller;
  readonly credential: Credential;
  readonly plan?: SalesPlan | undefined;
  readonly isSpelled?: boolean | undefined;
};
export type PaymentHandler = (payable: PaymentRequest, facts: RequestFacts) => Promise<PayOutcome>;

/** Dependencies of taking payments: `createPay` gives each of its parts what that part uses. */
export type PayDeps = OwnResponses & {
  readonly rail: Rail;
  readonly ledger: Ledger;
  readonly chargeLog: ChargeLog;
  readonly seenPayments: SeenPayments;
  readonly modes: SettleModes;
  readonly leases: Leases;
  readonly responses: { readonly memory: ResponseMemory; readonly replays: Replays };
  /** Passes of the plans in force; undefined: none are sold here. */
  readonly passes?: Passes | undefined;
  readonly log: Log;
  readonly clock: Clock;
  /** Makes a name that nothing else has. */
  readonly newId: () => string;
  /** Waits. */
  readonly pause: (ms: number) => Promise<void>;
  /** Makes what answers a question that is asked again; undefined: requests are forwarded here. */
  readonly createRepeats?: CreateRepeats | undefined;
  readonly options: PayOptions;
};

export type PayOptions = {
  /** A response up to this size is kept for a payer who may not have had it whole. */
  readonly keepResponseBytes: number;
  readonly maxUnsettledPerPayer: number;
  readonly ownAuthorities: OwnAuthorities;
  /** Milliseconds that an authorization must still hold for the upstream to be asked before the settlement. */
  readonly enoughToServeFirstMs: number;
  /** Milliseconds for which a charge stays ours if we do not renew its lease. */
  readonly leaseMs: number;
  /** Services of a way, as configured now. */
  readonly services: (way: Way) => WayServices | undefined;
  /** Names a way's token and network, for people. */
  readonly nameOf: (way: Way) => string;
  /** Contact for payers who are owed an answer. */
  readonly support: string | undefined;
};

export function createPay(deps: PayDeps): PaymentHandler {
  const { rail, ledger, chargeLog, seenPayments, modes, leases, log, clock, newId, pause, options } = deps;
  const { demand, refuse, malformed, quotes, listingOf } = deps;
  const { memory, replays } = deps.responses;
  const { leaseMs, ownAuthorities, keepResponseBytes } = options;
  const { monotonic } = clock;
  const { ranUnpaid } = modes;

  const recorder = createRecorder({ ledger, chargeLog, log, newId, pause });
  const { counted } = recorder;
  const responses = createPaymentResponses({
    own: { demand, refuse },
    counted,
    rail,
    ledger,
    options,
    passes: deps.passes,
  });
  const deliverer = createDeliverer({ recorder, responses, kept: { memory, replays }, keepResponseBytes });
  const sale = deps.passes && createPassSale({ recorder, responses, passes: deps.passes });
  const redeemAnswer = createRedeemer({
    ...{ recorder, responses, deliverer, leases, rail, log },
    ...{ now: ledger.now, monotonic, leaseMs },
  });
  const redeem: Redeemer = async (payment, charge) =>
    (await sale?.present(payment, charge)) ?? redeemAnswer(payment, charge);
  const settler = createSettler({
    ...{ recorder, responses, deliverer, redeem, leases, modes, rail, log },
    ...{ ownAuthorities, leaseMs, sale },
  });
  const { takeOver, lookFirst } = createResumer({
    ...{ recorder, responses, settler, redeem, leases, rail, clock, listingOf, ranUnpaid, leaseMs },
    writeLook: createLookWriter({ recorder, ranUnpaid, log, pause }),
    isServed: (way) => options.services(way) !== undefined,
  });
  const repeats = deps.createRepeats?.({ recorder, rail, ledger, pause });
  const known = createKnownPayments({ ledger, seenPayments, quotes, responses, redeem, takeOver, repeats, sale });
  const claimDeps = { rail, recorder, seenPayments, modes, quotes, clock, known, settler, lookFirst, options };
  const attemptDeps: AttemptDeps = {
    ...{ rail, recorder, responses, seenPayments, replays, known, clock, log },
    ...{ demand, quotes, listingOf },
    verifyOnce: createVerifier(rail),
    claimAndServe: (payment, agreement, credential, mode) =>
      claimAndServe(claimDeps, payment, agreement, credential, mode),
  };

  return async ({ route, offer, inputs, caller: { customerId }, credential, plan, isSpelled }, facts) => {
    const ways = 'code' in offer ? [] : offer.receiver.ways.map(({ way }) => way);
    const presented = rail.read(credential, ways);
    if (!('key' in presented)) {
      if ('code' in offer) return refuse(offer, facts.origin, route.id);
      if ('code' in presented) return malformed(presented, credential.version, offer, facts);
      counted(route.id, 'refused', undefined);
      return demand({ offer, reason: `payment_refused: ${presented.reason}`, facts, expected: presented.expected });
    }
    facts.notePayer(presented.key.payer);
    const shown = whatIsShown(presented, facts, route.id);
    const owner = leases.newOwner();
    const payment: Payment = { route, offer, inputs, presented, facts, shown, customerId, owner, plan, isSpelled };
    try {
      return await attempt(attemptDeps, payment, credential);
    } catch (error) {
      if (!(error instanceof LedgerUnavailable)) {
        log.error('request failed', { request_id: facts.requestId, error });
        return answerFailed(ledger, responses, payment);
      }
      log.error('the ledger is unavailable', { error });
      counted(route.id, 'unavailable', networkOf(payment));
      return responses.refuse(payment, ledgerUnavailable());
    }
  };
}

function whatIsShown(
  { sha256 }: PresentedPayment,
  { method, target, asker }: RequestFacts,
  routeId: string,
): PresentedRequest {
  const shown = { credentialSha256: sha256, method, targetSha256: hash('sha256', target) };
  return asker === undefined ? shown : { ...shown, asker: { ...asker, routeId } };
}

/** Answers after a defect of ours: its payer is told as much about the money as the ledger knows. */
async function answerFailed(
  ledger: Pick<Ledger, 'find'>,
  responses: PaymentResponses,
  payment: Payment,
): Promise<ResponseOutcome> {
  const failed = problem('internal', 'Something went wrong here; the request was not forwarded.');
  const charge = await ledger.find(payment.presented.key).catch(() => undefined);
  if (charge === undefined || !isIdentical(charge, payment.shown)) return responses.refuse(payment, failed);
  // The charge keeps its lease, but nothing works on it: a claim moved nothing.
  return responses.refuseCharged(payment, charge, chargedOf(charge), failed);
}

/** Verifies a payment; undefined if another spelling of it is being verified. */
type PaymentVerifier = (presented: PresentedPayment, agreement: Agreement) => Promise<Verification> | undefined;

/** Makes one call at a time for a payment, shared by all requests that present it in the same spelling. */
function createVerifier(rail: Rail): PaymentVerifier {
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

/**
 * Claims a verified payment and serves it. `look_first`: it may be paid already, so the chain is looked at before a
 * settlement is sent.
 */
type ClaimServer = (
  payment: Payment,
  agreement: Agreement,
  credential: Credential,
  mode: 'wanted' | 'look_first',
) => Promise<PayOutcome>;

/** Dependencies of judging a payment, up to its claim. */
type AttemptDeps = Pick<OwnResponses, 'demand' | 'quotes' | 'listingOf'> & {
  readonly rail: Pick<Rail, 'check'>;
  readonly verifyOnce: PaymentVerifier;
  readonly recorder: Recorder;
  readonly responses: PaymentResponses;
  readonly known: KnownPayments;
  readonly seenPayments: SeenPayments;
  readonly replays: Replays;
  readonly claimAndServe: ClaimServer;
  readonly clock: Clock;
  readonly log: Log;
};

async function attempt(deps: AttemptDeps, payment: Payment, credential: Credential): Promise<PayOutcome> {
  const { rail, recorder, responses, known, seenPayments, claimAndServe } = deps;
  const { route, presented, facts } = payment;
  const offer = 'code' in payment.offer ? undefined : payment.offer;
  const lost = presented.version === 2 ? deps.replays.find(payment.shown) : undefined;
  if (lost !== undefined) return replayed(recorder, payment, lost);

  if (seenPayments.has(presented.key)) {
    const taken = await known.answer(payment);
    if (taken !== undefined) return taken;
  }
  /** Refuses a payment only if it was not taken. A payer who gets a 402 for a payment that was taken pays twice. */
  const unlessTaken = async (refuse: () => ResponseOutcome): Promise<PayOutcome> =>
    (await known.answer(payment)) ?? refuse();

  if (offer === undefined) return unlessTaken(() => responses.demandAnew(payment, 'payment_required'));
  const agreement = agreementOf(deps, offer, presented, facts);
  if ('differs' in agreement)
    return unlessTaken(() => deps.demand({ offer, reason: 'quote_mismatch', facts, expected: agreement.differs }));
  if ('reason' in agreement) return unlessTaken(() => responses.refusePayment(payment, presented.amount, agreement));
  const refusal = rail.check(presented, agreement.terms, deps.clock.now());
  if (refusal !== undefined)
    return unlessTaken(() => responses.refusePayment(payment, agreement.terms.amount, refusal));
  const asking = deps.verifyOnce(presented, agreement);
  if (asking === undefined) return known.answerTaken(payment, 'in_use', undefined);
  const verification = await asking;
  switch (verification.kind) {
    case 'valid':
      // A client that left gets no claim.
      if (facts.left()) return { kind: 'gone', routeId: route.id };
      return claimAndServe(payment, agreement, credential, 'wanted');
    case 'refused':
      if (isUsedUp(verification) && (await known.isReleased(payment)))
        return claimAndServe(payment, agreement, credential, 'look_first');
      return unlessTaken(() => ({
        ...responses.refusePayment(payment, agreement.terms.amount, verification),
        refusedBy: 'facilitator',
      }));
    case 'unavailable':
      return unlessTaken(() => notVerified(deps, payment, verification));
    default:
      return verification satisfies never;
  }
}

/** Dependencies of claiming and serving a verified payment. */
type ClaimDeps = {
  readonly rail: Pick<Rail, 'firstVia'>;
  readonly recorder: Recorder;
  readonly known: Pick<KnownPayments, 'answerNotClaimed'>;
  readonly settler: Pick<Settler, 'serve'>;
  readonly lookFirst: Resumer['lookFirst'];
  readonly seenPayments: SeenPayments;
  readonly modes: Pick<SettleModes, 'modeFor'>;
  readonly quotes: OwnResponses['quotes'];
  readonly clock: Clock;
  readonly options: Pick<PayOptions, 'leaseMs' | 'maxUnsettledPerPayer' | 'enoughToServeFirstMs'>;
};

function wantedMode({ modes, clock, options }: ClaimDeps, payment: Payment, { offer }: Agreement): Claim['settle'] {
  const { presented, facts } = payment;
  // The answer of the upstream is never seen here.
  if (facts.asker !== undefined) return 'before_forward';
  return modes.modeFor({
    wanted: offer.receiver.settle,
    method: facts.method,
    conditionalWrite: facts.conditionalWrite,
    payer: presented.key.payer,
    leftMs: presented.deadline === undefined ? Infinity : Number(presented.deadline) * 1000 - clock.now(),
    enoughMs: options.enoughToServeFirstMs,
  });
}

async function claimAndServe(
  deps: ClaimDeps,
  payment: Payment,
  agreement: Agreement,
  credential: Credential,
  mode: 'wanted' | 'look_first',
): Promise<PayOutcome> {
  const { rail, recorder, known, settler, seenPayments, quotes, options } = deps;
  const { presented, facts, route } = payment;
  const { offer, quote, terms } = agreement;
  const settle = mode === 'look_first' ? 'before_forward' : wantedMode(deps, payment, agreement);
  const id = quote?.id ?? joinChargeId(quotes.issue(offer, facts.method, facts.nowMs));
  const claim = makeClaim(payment, agreement, credential, id, quote?.currency ?? route.currency, settle);
  const { leaseMs, maxUnsettledPerPayer } = options;
  seenPayments.add(presented.key);
  const wanted: ClaimOptions = {
    owner: payment.owner,
    leaseMs,
    maxUnsettledPerPayer,
    changeId: recorder.newId(),
    settleVia: settle === 'before_forward' ? rail.firstVia(presented, terms) : undefined,
  };
  const since = deps.clock.monotonic();
  const claimed = await recorder.claim(payment, claim, wanted);
  if (claimed.kind !== 'claimed') return known.answerNotClaimed(payment, claimed);
  return mode === 'look_first' && claimed.charge.state === 'settling'
    ? deps.lookFirst(payment, claimed.charge, since)
    : settler.serve(payment, claimed.charge, terms, since);
}

/** Replays a response whose last byte was handed over a moment ago, to a client that may not have had it. */
function replayed(
  { counted }: Recorder,
  { presented }: Payment,
  { response, chargeId, routeId }: Replay,
): ResponseOutcome {
  counted(routeId, 'replayed', presented.key.network);
  return { kind: 'response', response, outcome: 'paid', reason: 'replayed', chargeId, routeId };
}

function notVerified(
  { log, recorder, responses }: AttemptDeps,
  payment: Payment,
  { detail, retryAfterMs }: Extract<Verification, { kind: 'unavailable' }>,
): ResponseOutcome {
  const { route } = payment;
  log.warn('payment not verified', { route_id: route.id, detail });
  recorder.counted(route.id, 'unavailable', networkOf(payment));
  return responses.refuse(payment, responses.facilitatorsAway(payment, 'verified', retryAfterMs));
}

function isUsedUp({ reason }: Refusal): boolean {
  return reason.endsWith('nonce_already_used');
}

// The agreement with a payer is the quote that the payment names, or else the route's current price. The claim is made
// of it.

/** Sentence for people about how the quote differs from the request; it holds nothing of the credential. */
type QuoteMismatch = { readonly differs: string };
type Agreement = {
  readonly offer: Offer;
  /** Price as the route writes it, unless the quote holds another price than the route has by now. */
  readonly price: string;
  /** Price of the request, which a pass that is bought with it covers first. */
  readonly request: string;
  readonly terms: RailOffer;
  readonly quote: Quote | undefined;
};

/**
 * The quote that the payment names, if it is ours and still good; else the route's current price, in the way that it names.
 * A refusal: it names no way, or one that cannot hold the price.
 */
export function agreementOf(
  { quotes, listingOf }: Pick<OwnResponses, 'quotes' | 'listingOf'>,
  sold: Offer,
  { chargeId, way, version, amount: paid }: PresentedPayment,
  facts: RequestFacts,
): Agreement | QuoteMismatch | Refusal {
  if ('reason' in way) return way;
  const quote = chargeId === undefined ? undefined : quotes.read(chargeId, facts.nowMs);
  const current = sold.passes === undefined ? sold : priceMeant(sold, quote, { version, amount: paid, way });
  if (current === undefined) return { differs: 'it was made for something that is not sold for this request' };
  const agreeOn = (offer: Offer, amount: bigint, quote: Quote | undefined): Agreement => ({
    offer,
    quote,
    price: offer.amount,
    request: sold.amount,
    terms: {
      way,
      amount,
      description: offer.description,
      resource: facts.publicOrigin + facts.path,
      listing: listingOf?.(current.route, facts.method, facts.path),
    },
  });
  const offered = current.ways.find((each) => each.way === way);
  if (quote !== undefined) {
    const { id, method, pattern } = current.route;
    if (quote.routeId !== id) return { differs: `it was made for another route than ${method} ${pattern}` };
    if (!quote.isFor(facts.method)) return { differs: `it was made for another method than ${facts.method}` };
    if (!quote.isForInputs(current.inputs))
      return { differs: 'it was made for a request that asks for something else' };
    const isPrice = quote.isPriceOf(current);
    const quoted = isPrice ? offered?.amount : toAtomic(quote.price, way.decimals);
    // Terms that no longer exist make a quote void: the route is paid at what it costs now.
    if (quote.hasTermsOf(current) && quoted !== undefined && current.receiver.currencies.includes(quote.currency))
      return agreeOn(isPrice ? current : repriced(current, quote.price), quoted, quote);
  }
  return offered === undefined
    ? { reason: 'way_mismatch', expected: `a price of at most ${way.decimals} decimals on ${way.network}` }
    : agreeOn(current, offered.amount, undefined);
}

/** The offer at the price that was quoted. Its quotes are its own. */
function repriced({ shared: _shared, ...current }: Offer, price: Price): Offer {
  return { ...current, price, amount: formatPrice(price) };
}

function makeClaim(
  { presented, facts, shown, customerId, route }: Payment,
  { price, request, offer: { pass }, terms: { way, amount } }: Agreement,
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
    asker: facts.asker?.dialect ?? null,
    askSha256: facts.asker?.askSha256 ?? null,
    pass:
      pass === undefined ? null : writePassInSale({ ...sellPass(pass.planId, pass.terms, request), ...keyOf(facts) }),
  };
}

/** The key of a request that buys a pass: as any other use, it is one with those that follow under it. */
function keyOf(facts: RequestFacts): { readonly keySha256?: string } {
  const key = readDrawKey(facts.req?.rawHeaders ?? [], facts);
  return key === null || 'code' in key ? {} : { keySha256: key.sha256 };
}
