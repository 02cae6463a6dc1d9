// A pass that a request presents, and what draws on it. However it was presented (token, cookie, the payment that bought it, a
// wallet's signature), from here on it is the same. Types only.
import type { Offer } from '../../../domain/payment/offer.ts';
import type { Problem } from '../../../domain/problem.ts';
import type { Route } from '../../../domain/routing/route.ts';
import type { PassMeasure, SoldPass } from '../../../domain/selling/pass.ts';
import type { SalesPlan } from '../../../domain/selling/plan.ts';
import type { OwnResponse } from '../../../host/respond.ts';
import type { End, RequestFacts } from '../../outcome.ts';
import type { KeptResponse } from '../../pay/kept-responses.ts';
import type { NotPassed, Ruling } from '../way-to-pass.ts';

/** A genuine pass of ours. Whether it is over, empty, revoked or of another scope is still to be found out. */
export type PresentedPass = {
  readonly passId: string;
  readonly kind: PassMeasure['kind'];
  /** Token that answers carry, as it was made for the pass: the same one for all of its life. */
  readonly token: string;
};

/** The request that wants to pass by it. */
export type PassUse = {
  readonly route: Route;
  readonly plan: SalesPlan;
  /** Price of the request, or why it has none now. */
  readonly offer: () => Offer | Problem | Promise<Offer | Problem>;
  readonly request: RequestFacts;
  /** Headers of the request, names and values in turn. */
  readonly rawHeaders: readonly string[];
};

/** Makes an answer of ours that stands in for the upstream's; `origin`: the Origin of the request. */
export type AnswerInstead = (problem: Problem, origin: string | undefined) => OwnResponse;

/** Lets a request pass by a pass, or says why not. */
export type DrawFrom = (
  pass: PresentedPass,
  use: PassUse,
  answer: AnswerInstead,
) => Ruling | NotPassed | Promise<Ruling | NotPassed>;

/**
 * The use of the request that buys a pass, if the ledger reserved it as the pass opened: the request is settled before it is
 * forwarded, or metered. Any other one was taken with the settlement.
 */
export type FirstUse = {
  /** Takes it, or `amount` of it. Resolves when that is written, before the client hears of its answer. */
  readonly take: (amount?: bigint) => Promise<void>;
  /** Takes `amount` of it when the response is over; nobody waits for it. */
  readonly takeAfterwards: (amount: bigint) => void;
  readonly giveBack: (because: 'not_charged' | 'left' | 'unasked') => void;
};

/** Keeps the first use of a pass alive from here on. `owner`: the request, as it claimed its charge. */
export type OpenFirstUse = (pass: SoldPass, owner: string) => FirstUse;

/** The answer to a use while it is collected. */
export type CollectedUse = {
  /** Collects the response; it is dropped by the exchange if it is not handed over. */
  readonly keep: KeptResponse;
  /** Remembers the answer if `end` says that it is whole. */
  readonly done: (end: End) => void;
};

/** A pass of a payer. `isEmpty`: nothing is left of it. */
export type PayerPass = { readonly pass: SoldPass; readonly isEmpty: boolean; readonly isRevoked: boolean };

/** What draws on the books of passes by uses and credit, and knows of all passes; undefined members: there is no ledger. */
export type PassBooks = {
  readonly drawFrom: DrawFrom;
  readonly openFirstUse: OpenFirstUse;
  /** Collects the answer to a use that carries an Idempotency-Key; undefined: it carries none. */
  readonly collect: (passId: string, use: PassUse) => CollectedUse | undefined;
  /** Whether a pass was revoked, as far as is known here: by at most 10 s. */
  readonly isRevoked: (passId: string) => boolean;
  /** Passes of a payer that have not ended, as the ledger lists them. Rejects with LedgerUnavailable. */
  readonly ofPayer: (payer: string) => Promise<readonly PayerPass[]>;
};
