// Passes: what can be bought beforehand. A plan offers up to four, by seconds, by uses or by credit. A charge that buys one
// carries the terms under which it was sold, so that a changed plan changes no pass that somebody has. A pass belongs to its
// charge: its id is the charge's with `pass_` in place of `chg_`. Here stand the terms, and what a settled charge's pass is.
import { createHash } from 'node:crypto';
import type { Charge } from '../payment/charge.ts';
import { comparePrices, parsePrice } from '../payment/money.ts';

/** Routes that a pass is good for: all of its plan, or the one that it was bought on. */
export const PASS_SCOPES = ['plan', 'route'] as const;
export type PassScope = (typeof PASS_SCOPES)[number];

export const PASS_KINDS = ['seconds', 'uses', 'credit'] as const;

/** What a pass gives: a time, a number of requests, or money of the currency that it was bought in. */
export type PassMeasure =
  | { readonly kind: 'seconds'; readonly seconds: number }
  | { readonly kind: 'uses'; readonly uses: number }
  /** `credit`: a price as a route writes it. `isMetered`: a request takes what its response says, also the one that buys. */
  | { readonly kind: 'credit'; readonly credit: string; readonly isMetered?: true | undefined };

/** A pass as a plan offers it. */
export type PassTerms = PassMeasure & {
  readonly id: string;
  /** Price of the pass, as a route writes one. */
  readonly amount: string;
  /** Life of the pass from its settlement on; with `seconds` these. */
  readonly validMs: number;
  readonly scope: PassScope;
};

/** The terms that a charge bought, as its claim fixes them. */
export type PassInSale = PassMeasure & {
  readonly planId: string;
  /** Id of the terms in their plan. */
  readonly termsId: string;
  readonly validMs: number;
  readonly scope: PassScope;
  /**
   * What the request that buys takes of the pass: `1` of uses, the price of the request of a credit, `0` of seconds. It is
   * reserved as the pass opens, taken if the request is delivered, and given back if the upstream fails.
   */
  readonly first: string;
  /** SHA-256 of the `Idempotency-Key` of that request, in lower-case hex; left out: it carried none. */
  readonly keySha256?: string | undefined;
};

/** A pass that was sold: its charge is settled. */
export type SoldPass = PassInSale & {
  readonly passId: string;
  readonly chargeId: string;
  readonly routeId: string;
  readonly payer: string;
  readonly network: string;
  readonly soldAtMs: number;
  readonly endsAtMs: number;
  /** Price of the sale. */
  readonly amount: string;
  readonly currency: string;
};

const CHARGE_PREFIX = 'chg_';
const PASS_PREFIX = 'pass_';

export function passIdOf(chargeId: string): string {
  return PASS_PREFIX + chargeId.slice(CHARGE_PREFIX.length);
}

export function chargeIdOfPass(passId: string): string {
  return CHARGE_PREFIX + passId.slice(PASS_PREFIX.length);
}

export const PASS_ID = /^pass_[A-Za-z0-9_-]{1,124}$/;

/** The pass of a charge that is settled or delivered and bought one; undefined for any other. */
export function soldPassOf(charge: Charge): SoldPass | undefined {
  const sale = charge.pass === null ? undefined : readPassInSale(charge.pass);
  if (sale === undefined || charge.settledAt === null) return undefined;
  return {
    ...sale,
    passId: passIdOf(charge.id),
    chargeId: charge.id,
    routeId: charge.route.id,
    payer: charge.payment.payer,
    network: charge.way.network,
    soldAtMs: charge.settledAt,
    endsAtMs: charge.settledAt + sale.validMs,
    ...charge.price,
  };
}

/** Whether a pass is good for a request of this route. */
export function coversRoute(
  pass: Pick<SoldPass, 'scope' | 'planId' | 'routeId'>,
  planId: string,
  routeId: string,
): boolean {
  return pass.scope === 'plan' ? pass.planId === planId : pass.planId === planId && pass.routeId === routeId;
}

/** The terms as they are sold with a request that costs `price`. */
export function sellPass(planId: string, terms: PassTerms, price: string): PassInSale {
  const { id: termsId, amount: _, ...rest } = terms;
  return { planId, termsId, ...rest, first: firstOf(terms, price) };
}

function firstOf(terms: PassTerms, price: string): string {
  switch (terms.kind) {
    case 'seconds':
      return '0';
    case 'uses':
      return '1';
    case 'credit':
      return price;
    default:
      return terms satisfies never;
  }
}

/** Whether the pass holds enough for the request that would buy it. */
export function coversPrice(terms: PassTerms, price: string): boolean {
  if (terms.kind !== 'credit') return true;
  const [credit, cost] = [parsePrice(terms.credit), parsePrice(price)];
  return credit !== undefined && cost !== undefined && comparePrices(credit, cost) >= 0;
}

// The terms in a charge's row: plain texts.

type PassTexts = Readonly<Record<string, string>>;

export function writePassInSale(sale: PassInSale): PassTexts {
  const { planId, termsId, validMs, scope, first, keySha256: key } = sale;
  const of = { plan: planId, id: termsId, scope, valid_ms: String(validMs), first };
  const fixed = key === undefined ? of : { ...of, key_sha256: key };
  switch (sale.kind) {
    case 'seconds':
      return { ...fixed, seconds: String(sale.seconds) };
    case 'uses':
      return { ...fixed, uses: String(sale.uses) };
    case 'credit':
      return { ...fixed, credit: sale.credit, ...(sale.isMetered === true ? { metered: 'true' } : {}) };
    default:
      return sale satisfies never;
  }
}

/** Reads the terms of a row; undefined if it holds none that are known here. */
export function readPassInSale(texts: PassTexts): PassInSale | undefined {
  const { plan: planId, id: termsId, scope: written, valid_ms: valid, first } = texts;
  const { seconds, uses, credit, metered, key_sha256: keySha256 } = texts;
  const scope = PASS_SCOPES.find((each) => each === written);
  if (planId === undefined || termsId === undefined || scope === undefined || first === undefined) return undefined;
  const of = { planId, termsId, scope, validMs: Number(valid), first };
  const fixed = keySha256 === undefined ? of : { ...of, keySha256 };
  if (seconds !== undefined) return { ...fixed, kind: 'seconds', seconds: Number(seconds) };
  if (uses !== undefined) return { ...fixed, kind: 'uses', uses: Number(uses) };
  if (credit === undefined) return undefined;
  return { ...fixed, kind: 'credit', credit, ...(metered === 'true' ? { isMetered: true } : {}) };
}

/** Hash of 8 bytes over the terms of a receiver and of a pass: a quote for one pass buys no other one. */
export function hashPassTerms(receiverTerms: Buffer, planId: string, terms: PassTerms): Buffer {
  const { id, amount, validMs, scope, kind } = terms;
  const measure = terms.kind === 'seconds' ? terms.seconds : terms.kind === 'uses' ? terms.uses : terms.credit;
  const metered = terms.kind === 'credit' && terms.isMetered === true ? ['metered'] : [];
  return createHash('sha256')
    .update(receiverTerms)
    .update(JSON.stringify([planId, id, amount, validMs, scope, kind, measure, ...metered]))
    .digest()
    .subarray(0, 8);
}
