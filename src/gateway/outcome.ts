// The outcomes of a verdict: an answer of ours, the way upstream, or nothing because the client left. Also the facts of
// the request that the steps of a payment read. Types only: some files decide an outcome, others carry it out.
import type { Access, Credential, Permit } from '../domain/decide.ts';
import type { ListingOf } from '../domain/discovery/listing.ts';
import type { PresentedAsker } from '../domain/payment/claim-policy.ts';
import type { Offer } from '../domain/payment/offer.ts';
import type { Problem } from '../domain/problem.ts';
import type { Quotes } from '../domain/payment/quote.ts';
import type { Route } from '../domain/routing/route.ts';
import type { RequestOutcome } from '../domain/totals/request-counts.ts';
import type { OwnResponse } from '../host/respond.ts';
import type { UpstreamFault } from '../http/transport.ts';
import type { KeptResponse } from './pay/kept-responses.ts';

export type Outcome = ResponseOutcome | ForwardedOutcome | GoneOutcome | PassOutcome;

/** Outcome of a request that goes upstream. `paid`: what the payment wants to know and say meanwhile. */
type ForwardedOutcome = {
  readonly kind: 'forward';
  readonly permit: Permit;
  readonly paid: PaidOutcome;
};

/** Payment for a request, as the upstream and the log are told it. */
export type Grant = {
  readonly id: string;
  readonly routeId: string;
  /** Price as the route or the quote writes it. */
  readonly price: { readonly amount: string; readonly currency: string };
  readonly payer: string;
  /** Further headers for the upstream, about the way in which it was paid: flat name, value pairs. */
  readonly headers: readonly string[];
};

/** A request was granted: it may be forwarded. */
export type PaidOutcome = {
  readonly kind: 'paid';
  readonly grant: Grant;
  readonly route: Route;
  readonly customerId: string | undefined;
  /**
   * Time of the settlement. `before_response`: the upstream must not answer about a copy that the client has, which
   * would cost nothing.
   */
  readonly settles: 'before_response' | 'before_forward';
  /**
   * Response of a settled charge, kept until it is delivered. If the client goes first, the upstream is not aborted
   * until the response is whole or too large.
   */
  readonly keep: KeptResponse | undefined;
  /**
   * Hears the upstream's final status (or 101) before anything of it reaches the client. A promise holds the response,
   * for as long as a settlement is awaited.
   */
  readonly beforeResponse: (head: SeenResponseHead) => ResponseVerdict | Promise<ResponseVerdict>;
  /** Hears the response's body and trailers as they pass, if what the request costs is said there. */
  readonly hearer?: ResponseHearer | undefined;
  /** Exactly once, when all is over; for an upgrade when the 101 was handed over. */
  readonly done: (end: End) => void;
  /** Whether money was taken for the grant; asked after `done`. */
  readonly tookMoney: () => boolean;
  /** Adds to a problem of ours that ends the request where the money is; asked after `done`. */
  readonly tell: (problem: Problem) => Promise<Problem>;
};

/** A plan lets the request pass without a payment: it may be forwarded. */
export type GrantedOutcome = Pick<PaidOutcome, 'keep' | 'done' | 'hearer'> & {
  readonly kind: 'granted';
  /** Hears the upstream's final status, as that of a PaidOutcome does. */
  readonly beforeResponse: (head: SeenResponseHead) => GrantedVerdict | Promise<GrantedVerdict>;
  readonly access: Exclude<Access, 'paid'>;
  readonly route: Route;
  /** What was paid for before and is drawn on now; undefined: nothing. */
  readonly grant: Grant | undefined;
  /** The customer that was recognised, for the log. */
  readonly customerId: string | undefined;
  /** The charge that bought the pass by which the request passes, for the log. */
  readonly chargeId?: string | undefined;
  /** No money moves for this request. */
  readonly settles: 'nothing';
};

/** Hears a response beside the client, and holds nothing of it back. */
export type ResponseHearer = {
  /**
   * What has to be had to hear it: the body whole and uncompressed, the body that anybody gets but uncompressed, trailers, or no
   * more than anybody gets.
   */
  readonly needs: 'whole body' | 'plain body' | 'trailers' | 'nothing';
  /** Hears a piece of the body; its memory is another's afterwards. */
  readonly data: (chunk: Buffer) => void;
  /** Hears once that the response is whole; not at all if it never is. `trailers`: flat name, value pairs. */
  readonly end: (trailers: readonly string[]) => void;
};

/** The payment bought a pass before, by which the request passes. */
export type PassOutcome = { readonly kind: 'granted'; readonly permit: Permit; readonly granted: GrantedOutcome };

export type SeenResponseHead = { readonly status: number; readonly headers: readonly string[] };

export type ResponseVerdict =
  | {
      readonly kind: 'stream';
      /** Headers that are added to the response's head: flat name, value pairs. */
      readonly headers: readonly string[];
      /** Response to keep from here on, as in PaidOutcome. */
      readonly keep?: KeptResponse;
    }
  /** The upstream's response is dropped for this one. */
  | { readonly kind: 'replace'; readonly response: OwnResponse; readonly keep?: ResponseCollector };

/** Verdict on the response to a granted request. `again`: it is dropped, and the upstream is asked anew, under another grant. */
export type GrantedVerdict =
  | ResponseVerdict
  /** Only a request without a body can be sent again: a body can be sent once. */
  | { readonly kind: 'again'; readonly permit: Permit; readonly granted: GrantedOutcome };

/** Collects a response that the client does not get; `ended` is told once whether it is whole. */
export type ResponseCollector = { readonly response: KeptResponse; readonly ended: (whole: boolean) => void };

/** The client went away before anything was charged: no response is sent. */
export type GoneOutcome = { readonly kind: 'gone'; readonly routeId: string };

export type ResponseOutcome = {
  readonly kind: 'response';
  readonly response: OwnResponse;
  readonly outcome: RequestOutcome;
  /** The problem's code, or why a 402 was answered. */
  readonly reason: string | undefined;
  readonly chargeId: string | undefined;
  readonly routeId: string | undefined;
  /** A facilitator was asked about the payment of this request and refused it. */
  readonly refusedBy?: 'facilitator';
  /** Hears once whether the answer was handed to the client's socket whole. */
  readonly delivered?: (whole: boolean) => void;
};

/** End of a forwarded exchange: it has one, and its payment, the log and the metrics are told. */
export type End =
  /** The last byte was handed to the client's socket without error, or the 101 of a tunnel. */
  | {
      readonly kind: 'delivered';
      readonly status: number;
      /** Time until the response was there whole; the time for which it was held does not count. */
      readonly upstreamMs: number;
      /** The response, if it was kept: the receiver's to drop. */
      readonly kept: KeptResponse | undefined;
    }
  /** The client got a response of ours in place of the upstream's. */
  | { readonly kind: 'replaced'; readonly status: number; readonly upstreamMs: number }
  | ClientAbort
  /** The client went away before anything was sent upstream. */
  | { readonly kind: 'not_sent' }
  /**
   * The exchange failed. `headersSent` false: nothing was written, the client is told. True: its connection was
   * destroyed. `status`: the upstream's, if its head was there. `asked`, as below.
   */
  | ({
      readonly kind: 'failed';
      readonly headersSent: boolean;
      readonly status: number | undefined;
      readonly asked: boolean;
    } & UpstreamFault);

/** The client went away first. */
export type ClientAbort = {
  readonly kind: 'client_gone';
  /** The upstream's, or of what replaced its response; undefined: there was none yet. */
  readonly status: number | undefined;
  readonly headSent: boolean;
  /** The upstream failed afterwards, while its response was read on. */
  readonly failed: boolean;
  /**
   * State of the upload. `broken_off`: the client left in the middle of it, which no upstream can answer. `stalled`:
   * the client sent nothing of it for too long; it got nothing yet, and is told so.
   */
  readonly upload: 'whole' | 'broken_off' | 'stalled';
  /** A byte of the request may have left for the upstream. */
  readonly asked: boolean;
  /** The response that it would have had, whole: the receiver's to drop. */
  readonly kept: KeptResponse | undefined;
};

/** The exchange as those see it who perform its verdict. */
export type RequestFacts = {
  readonly requestId: string;
  readonly method: string;
  /** The canonical path. */
  readonly path: string;
  /** The canonical path and the query. */
  readonly target: string;
  /** Scheme and authority that clients use. */
  readonly publicOrigin: string;
  /** The Origin header. */
  readonly origin: string | undefined;
  readonly nowMs: number;
  /** A write that the upstream may refuse for its If-Match or If-Unmodified-Since. */
  readonly conditionalWrite: boolean;
  /** Whether it is somebody's who looks at a browser's window. */
  asksForPage(): boolean;
  /** The request itself, for its headers. */
  readonly req?: { readonly rawHeaders: readonly string[] } | undefined;
  /** Whether the client went away. */
  left(): boolean;
  /** Has a connection to the upstream that is kept for this request. Resolves with the fault if none can be had. */
  connect(): Promise<UpstreamFault | undefined>;
  /** A trusted proxy vouches for the customer id. */
  readonly customerTrusted: boolean;
  /** Hears who pays, once that is read. */
  notePayer(payer: string): void;
  /** Set for a question of another proxy, which forwards by itself. */
  readonly asker?: AskerFacts | undefined;
  /** Hears that this request works on a charge. `state`: what to say of it if the time for an answer is over before its end. */
  noteCharge?(state: () => ResponseOutcome): void;
};

/** The question of a proxy that forwards by itself: nothing of its upstream is ever seen here. */
export type AskerFacts = Omit<PresentedAsker, 'routeId'>;

/** Facts that a 402 says beside its new quote. */
export type PaymentDemand = {
  readonly offer: Offer;
  readonly reason: string;
  readonly facts: RequestFacts;
  /** Headers that are added to those of the 402: flat name, value pairs. */
  readonly headers?: readonly string[];
  /** Words of ours for what would have been right, in printable ASCII. */
  readonly expected?: string | undefined;
};

/** Responses that tell the client how a payment ended. */
export type OwnResponses = {
  readonly quotes: Quotes;
  /** Finds listings; undefined: nothing is listed. */
  readonly listingOf: ListingOf | undefined;
  /** Makes a 402 with a new quote. */
  readonly demand: (demand: PaymentDemand) => ResponseOutcome;
  readonly refuse: (problem: Problem, origin: string | undefined, routeId?: string) => ResponseOutcome;
  /** Answers 400 to a payment that cannot be read, in the shape that clients of its version know. */
  readonly malformed: (
    problem: Problem,
    version: Credential['version'],
    offer: Offer,
    facts: RequestFacts,
  ) => ResponseOutcome;
};
