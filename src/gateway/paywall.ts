// Performs a verdict on a request that costs something, and mints its Permit. It returns the way upstream, with the
// proof that the way is open, or an answer of ours. Our answers carry CORS headers for the configured origins, so that
// a payer in a browser can read a 402.
import { accessHeaders, mintPermit, type DemandReason, type PaywallVerdict } from '../domain/decide.ts';
import type { ListingOf } from '../domain/discovery/listing.ts';
import type { PaymentRequired, Demand } from '../domain/payment/payment-required.ts';
import { PROBLEMS, problem, renderProblem, type Problem } from '../domain/problem.ts';
import type { Offer } from '../domain/payment/offer.ts';
import { notSold, pricesShown } from '../domain/payment/pass-offers.ts';
import { joinChargeId, type ChargeId, type Quotes } from '../domain/payment/quote.ts';
import type { SignInNonce, SignInNonces } from '../domain/selling/sign-in.ts';
import { corsHeaders, preflightHeaders } from '../host/cors.ts';
import type { OwnResponse } from '../host/respond.ts';
import { EXPOSED } from './headers.ts';
import type {
  ResponseOutcome,
  OwnResponses,
  GoneOutcome,
  Outcome,
  PaidOutcome,
  PassOutcome,
  PaymentDemand,
  RequestFacts,
} from './outcome.ts';
import type { Page } from './page/document.ts';
import type { PaymentHandler } from './pay/pay.ts';

export type Paywall = {
  /** A promise only if a payment is presented. */
  readonly perform: (verdict: PaywallVerdict, facts: RequestFacts) => Outcome | Promise<Outcome>;
  readonly refuse: (problem: Problem, origin: string | undefined, routeId?: string) => ResponseOutcome;
  /** Answers `OPTIONS *`, which is about the server, not about a path, and is never forwarded. */
  readonly serverOptions: () => ResponseOutcome;
};

type PaywallDeps = {
  /** Takes payments, with the answers that this paywall gives; undefined if there is no ledger to write them into. */
  readonly createPay: (answers: OwnResponses) => PaymentHandler | undefined;
  readonly quotes: Quotes;
  /** Finds listings; undefined: nothing is listed. */
  readonly listingOf: ListingOf | undefined;
  readonly paymentRequired: (demand: Demand) => PaymentRequired | undefined;
  /** Page for browsers; undefined: they get what everybody else gets. */
  readonly page: Page | undefined;
  /** Nonces for wallets that sign in; undefined: none may. */
  readonly signIns?: Pick<SignInNonces, 'issue'> | undefined;
  readonly corsOrigins: readonly string[];
  readonly methods: ReadonlySet<string>;
  /** Further headers that pages of other origins may send: those by which customers are known. */
  readonly allowedHeaders?: readonly string[];
};

/** The charge ids of the prices of an offer, and what the header shows beside them. */
type QuotedOffer = {
  readonly chargeId: ChargeId;
  /** Signed parts of the charge ids of the other prices. */
  readonly further?: readonly string[];
  readonly signIn?: SignInNonce | undefined;
};

const ALLOWED =
  'PAYMENT-SIGNATURE, X-PAYMENT, X-Customer-Id, Authorization, Content-Type, Access-Control-Expose-Headers, Tollgate-Pass, SIGN-IN-WITH-X, Idempotency-Key';
/** Words behind the reason for a 402 to a request whose payment was not read. */
const EXPECTED: Readonly<Partial<Record<DemandReason, string>>> = {
  x402_version_unsupported: 'x402 version 2 is wanted, in the header PAYMENT-SIGNATURE',
};
/** Seconds after which a client may come back when a passing fault on our side is over. */
const RETRY_SECONDS = 5;
/** Characters of `Tollgate-Reason`. */
const MAX_REASON = 200;
const NO_HEADERS: readonly string[] = [];

export function createPaywall(deps: PaywallDeps): Paywall {
  const { createPay, quotes, listingOf, paymentRequired, page, corsOrigins, methods, allowedHeaders = [] } = deps;
  const allowed = [ALLOWED, ...allowedHeaders].join(', ');
  const cors = (origin: string | undefined): readonly string[] =>
    origin === undefined ? [] : corsHeaders(origin, { origins: corsOrigins, exposed: EXPOSED });

  const refuse: Paywall['refuse'] = (refusal, origin, routeId) => ({
    kind: 'response',
    response: renderProblem(refusal, cors(origin)),
    outcome: PROBLEMS[refusal.code].fault === 'client' ? 'refused' : 'error',
    reason: refusal.code,
    chargeId: chargeIdOf(refusal),
    routeId,
  });

  const quoteAll = createQuoteAll(deps);

  const demand = (demanded: PaymentDemand, shownOn?: Page): ResponseOutcome => {
    const { offer, reason, facts, headers: added = NO_HEADERS, expected } = demanded;
    const quoted = quoteAll(offer, facts);
    if ('code' in quoted) return refuse(quoted, facts.origin, offer.route.id);
    const { chargeId, further, signIn } = quoted;
    const listing = listingOf?.(offer.route, facts.method, facts.path);
    const { method, publicOrigin, path, origin } = facts;
    const demandedOf = { offer, listing, chargeId, further, signIn, method, origin: publicOrigin, path, reason };
    const rendered = paymentRequired(demandedOf);
    if (rendered === undefined) return refuse(nothingToOffer(), origin, offer.route.id);
    const { body, bodyBytes, header, ways } = rendered;
    const headers = origin === undefined ? added : [...added, ...cors(origin)];
    const told = expected === undefined ? reason : tell(reason, expected);
    const response =
      shownOn === undefined
        ? new DemandResponse(body, bodyBytes, header, told, headers)
        : shownOn({ ...soldOn(offer), ways, required: header, publicOrigin, path, reason }, headers);
    const id = joinChargeId(chargeId);
    const outcome = 'payment_required';
    return { kind: 'response', response, outcome, reason: told, chargeId: id, routeId: offer.route.id };
  };

  const malformed: OwnResponses['malformed'] = (refusal, version, offer, facts) => {
    const refused = refuse(refusal, facts.origin, offer.route.id);
    if (version === 2) return refused;
    const quoted = quoteAll(offer, facts);
    if ('code' in quoted) return refused;
    const { method, publicOrigin: origin, path } = facts;
    const { chargeId, further } = quoted;
    const rendered = paymentRequired({ offer, chargeId, further, method, origin, path, reason: refusal.code });
    const headers = ['Content-Type', 'application/json', 'Cache-Control', 'no-store', ...cors(facts.origin)];
    const error = JSON.stringify(refusal.detail);
    const body = `{"x402Version":1,"error":${error},"accepts":${rendered?.accepts ?? '[]'}}`;
    return { ...refused, response: { status: PROBLEMS[refusal.code].status, headers, body } };
  };

  const preflight = (origin: string | undefined): ResponseOutcome => {
    const allow = [...methods].join(', ');
    const granted = cors(origin);
    const headers = granted.includes('Access-Control-Allow-Origin')
      ? [...granted, ...preflightHeaders(allow, allowed)]
      : ['Allow', allow, ...granted];
    const response = { status: 204, headers, body: '' };
    return {
      kind: 'response',
      response,
      outcome: 'free',
      reason: 'preflight',
      chargeId: undefined,
      routeId: undefined,
    };
  };

  const noLedger = (routeId: string, facts: RequestFacts): ResponseOutcome =>
    refuse(
      problem('ledger_unavailable', 'Payments cannot be recorded here, so none is taken; nothing was charged.', {
        retryAfter: RETRY_SECONDS,
      }),
      facts.origin,
      routeId,
    );

  const permit = (
    end: ResponseOutcome | PaidOutcome | GoneOutcome | PassOutcome,
    facts: RequestFacts,
    isPlanned: boolean,
  ): Outcome => {
    if (end.kind !== 'paid') return end;
    const headers = paidHeaders(end, facts);
    if (isPlanned) headers.push(...accessHeaders('paid'));
    return { kind: 'forward', permit: mintPermit('paid', end.route, headers), paid: end };
  };

  const pay = createPay({ quotes, listingOf, demand, refuse, malformed });

  return {
    refuse,
    serverOptions: () => preflight(undefined),
    perform: (verdict, facts) => {
      switch (verdict.kind) {
        case 'answer_preflight':
          return preflight(facts.origin);
        case 'demand':
          return demand(
            { offer: verdict.offer, reason: verdict.because, facts, expected: EXPECTED[verdict.because] },
            verdict.caller.credential === undefined && facts.asksForPage() ? page : undefined,
          );
        case 'verify':
          return pay === undefined
            ? noLedger(verdict.route.id, facts)
            : pay(verdict, facts).then((end) => permit(end, facts, verdict.plan !== undefined));
        case 'refuse':
          return refuse(verdict.problem, facts.origin);
        default:
          return verdict satisfies never;
      }
    },
  };
}

/** The prices of an offer as the page shows them. */
function soldOn(given: Offer): Pick<Parameters<Page>[0], 'offer' | 'passes' | 'cookie'> {
  const [offer = given, ...passes] = pricesShown(given);
  return { offer, passes, cookie: given.passes?.cookie };
}

/** Quotes the prices of an offer, each with a charge id of its own. */
function createQuoteAll({ quotes, signIns }: Pick<PaywallDeps, 'quotes' | 'signIns'>) {
  return (offer: Offer, { method, nowMs }: RequestFacts): QuotedOffer | Problem => {
    if (offer.passes === undefined) return { chargeId: quotes.issue(offer, method, nowMs) };
    const [first, ...others] = pricesShown(offer);
    if (first === undefined) return notSold();
    const chargeId = quotes.issue(first, method, nowMs);
    const further = others.map((each) => quotes.issue(each, method, nowMs).signed);
    return { chargeId, further, signIn: offer.passes.wallet ? signIns?.issue(nowMs) : undefined };
  };
}

/** The charge that a problem is about. */
function chargeIdOf({ members }: Problem): string | undefined {
  const id = members?.['charge_id'];
  return typeof id === 'string' ? id : undefined;
}

/** Tells what was expected, within a header's length, whatever configuration it names. */
function tell(reason: string, expected: string): string {
  return `${reason}: ${expected}`.replace(/[^\x20-\x7e]/g, '?').slice(0, MAX_REASON);
}

function nothingToOffer(): Problem {
  const detail = 'Nothing that this costs can be paid right now. Send the same request again later.';
  return problem('facilitator_unavailable', detail, { retryAfter: RETRY_SECONDS });
}

/** A 402. A class, because every unpaid request makes one, and hardly any needs its headers but as lines. */
class DemandResponse implements OwnResponse {
  readonly status = 402;
  readonly body: string;
  readonly bodyBytes: number;
  private readonly header: string;
  private readonly reason: string;
  private readonly added: readonly string[];

  constructor(body: string, bodyBytes: number, header: string, reason: string, added: readonly string[]) {
    this.body = body;
    this.bodyBytes = bodyBytes;
    this.header = header;
    this.reason = reason;
    this.added = added;
  }

  get headers(): readonly string[] {
    const { header, reason, added } = this;
    const own = ['Content-Type', 'application/json', 'Cache-Control', 'no-store', 'PAYMENT-REQUIRED', header];
    return own.concat('Tollgate-Reason', reason, added);
  }

  /** Base64 and words of ours; what is added is checked like any other header. */
  get lines(): string | undefined {
    const { header, reason, added } = this;
    if (added.length > 0) return undefined;
    return `Content-Type: application/json\r\nCache-Control: no-store\r\nPAYMENT-REQUIRED: ${header}\r\nTollgate-Reason: ${reason}\r\n`;
  }
}

/** Tells the upstream who paid for what, and the customer id only if it is more than the client's word. */
function paidHeaders({ grant, customerId }: PaidOutcome, { customerTrusted }: RequestFacts): string[] {
  const { id, routeId, payer, price } = grant;
  const headers = [
    ...['Tollgate-Charge-Id', id, 'Tollgate-Route-Id', routeId, 'Tollgate-Payer', payer],
    ...['Tollgate-Amount', price.amount, 'Tollgate-Currency', price.currency],
    ...grant.headers,
  ];
  return customerTrusted && customerId !== undefined ? [...headers, 'Tollgate-Customer-Id', customerId] : headers;
}
