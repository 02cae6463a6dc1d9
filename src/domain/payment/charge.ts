// A charge: one price taken once. Here stands what a claim fixes, and what the ledger keeps beside it; transition.ts
// says how it changes. A payment's key names what can move money only once on its chain, in one spelling. So fifty
// encodings of one payment are one payment. Amounts are integers of the asset's smallest unit, never rounded.
import type {
  CHARGE_STATES,
  ClaimPart,
  ClaimValues,
  ProgressPart,
  ProgressValues,
  UNDELIVERED,
} from './charge-fields.ts';

/** State of a charge: `claimed -> settling -> settled -> delivered`, or `released`, `failed`. */
export type ChargeState = (typeof CHARGE_STATES)[number];

/** Whether it may still have to be settled: its credential is kept for as long. */
export function isUnsettled(state: ChargeState): boolean {
  return state === 'claimed' || state === 'settling';
}

/** Canonical text that a rail makes; opaque to all others. No two payments that can both move money share one. */
export type PaymentKey = ClaimPart<'payment'>;

/**
 * Canonical spelling of payments and names, as rails write it: two spellings of one payment must not pay for two
 * charges.
 */
export type Spelling = {
  /** Canonical key of a payment; undefined if no rail serves its network. */
  readonly payment: (raw: PaymentKey) => PaymentKey | undefined;
  /** Canonical name of an account or a transaction of any network; unchanged if no rail spells it otherwise. */
  readonly identifier: (text: string) => string;
  /** What a text names by its form, on whatever network; undefined: neither. */
  readonly formOf: (text: string) => 'account' | 'transaction' | undefined;
};

/** Request as the ledger knows it. The query stays out of it: a digest of the target stands for it. */
export type ChargedRequest = ClaimPart<'request'>;

/** Everything that a restart needs to take a payment over, or to tell its payer what became of it. */
export type Claim = ClaimValues & {
  /** The header's value as it was presented. */
  readonly credential: string;
};

/** Flows by their names in x402: `upfront` takes the money before anything is done for it. */
export const FLOWS = ['authorization', 'upfront'] as const;

/** The flow of a charge, by when it is settled. */
export const FLOW_OF = { before_forward: 'upfront', before_response: 'authorization' } as const satisfies Record<
  Claim['settle'],
  (typeof FLOWS)[number]
>;

/** Place on the chain where the money moved. */
export type Proof = ProgressPart<'proof'>;

/** An upstream's answer that its payer did not get whole. */
export type KeptAnswer = ProgressPart<'answer'>;

/**
 * Record of what a rail searched for a proof, in its own words: the next look goes on from there. Members `round` and
 * `next` are whole numbers that a rail counts up as a search goes on (payment/search.ts).
 */
export type Search = Readonly<Record<string, string>>;

export type UndeliveredCause = (typeof UNDELIVERED)[number];

/** Numbers of times that the upstream was asked for a charge. */
export type AskCounts = ProgressPart<'asks'>;

/** A claim and what became of it since. */
export type Charge = ClaimValues & ProgressValues;

/** A payment that names no deadline counts as ending so long after its claim. */
export const NO_DEADLINE_MS = 150_000;

/** Time at which the payment of a charge ends, milliseconds since the epoch. */
export function endsAt({ deadline, claimedAt }: Pick<Charge, 'deadline' | 'claimedAt'>): number {
  return deadline === null ? claimedAt + NO_DEADLINE_MS : Number(deadline) * 1000;
}

export const CHARGE_ID = /^chg_[A-Za-z0-9_-]{1,124}$/;

/** Receipt that a client is shown. It is public: no text of a facilitator or a node is in it. */
export type Receipt = {
  readonly payment: Pick<PaymentKey, 'network' | 'payer'>;
  readonly amount: bigint;
  /** Transaction; empty if nothing was settled. */
  readonly transaction: string;
  /** Why nothing was settled; undefined: it was. */
  readonly reason: string | undefined;
};

/** The receipt of a charge that was settled; undefined for any other. */
export function receiptOf({ payment, amount, proof }: Charge): Receipt | undefined {
  return proof === null ? undefined : { payment, amount, transaction: proof.transaction, reason: undefined };
}
