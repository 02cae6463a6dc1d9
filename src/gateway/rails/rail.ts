// The port between the payment journey and whatever moves the money. The journey knows payments as a key that can be
// used once, as something to check, verify and settle, and as a receipt; it never sees a signature, a chain or a
// facilitator. A rail never writes to the ledger and never decides what a client is told: it says what is known, and
// keeps "no" and "nobody knows" apart, because mistaking the second for the first makes a payer pay twice.
import { findNetwork, type Receiver } from '../../domain/receiver.ts';
import type { PaymentKey, Terms } from '../../domain/charge.ts';
import type { Credential } from '../../domain/decide.ts';
import type { Offer } from '../../domain/offer.ts';
import type { Problem } from '../../domain/problem.ts';

/** What a payment has to meet: an Offer, or what a stored charge says that one was (`storedOffer`). */
export type RailOffer = Pick<Offer, 'receiver' | 'atomic' | 'description'> & {
  /** Public URL of what is paid for, as we know it; facilitators are told. */
  readonly resource?: string | undefined;
};

/** A credential, read. Everything in it is the client's claim until it was checked and verified. */
export type Presented = {
  readonly version: Credential['version'];
  readonly key: PaymentKey;
  /** SHA-256 of the credential as it was sent, in hex: the same payment in another spelling has another one. */
  readonly sha256: string;
  /** As written by the client. */
  readonly scheme: string;
  readonly network: string;
  /** The charge id that the client gives back, where the protocol has a place for it. */
  readonly externalRef: string | undefined;
  /** The terms that the client says it accepted, where the protocol echoes them. */
  readonly accepted: AcceptedTerms | undefined;
  /** The URL that the client says it pays for, where the protocol echoes it. */
  readonly resource: string | undefined;
  /** What was signed: the smallest unit of the asset, the receiving address (lower-case), seconds since the epoch. */
  readonly amount: bigint;
  readonly payTo: string;
  readonly validAfter: bigint;
  readonly validBefore: bigint;
  /** What only the rail reads; plain JSON. */
  readonly payload: unknown;
};

/** As written by the client, not canonical. */
export type AcceptedTerms = {
  readonly asset: string;
  readonly payTo: string;
  readonly amount: string;
  readonly assetName: string | undefined;
  readonly assetVersion: string | undefined;
};

export type Verification =
  | { readonly kind: 'valid'; readonly payer: string }
  /** The payment is no good. `reason` is public: lower-case words joined by `_`. */
  | { readonly kind: 'refused'; readonly reason: string }
  /** Nobody could say. `detail` is for the log. */
  | { readonly kind: 'unavailable'; readonly detail: string };

export type Settlement =
  | { readonly kind: 'settled'; readonly receipt: Receipt }
  /**
   * The payment was not taken. `final`: the rail knows this reason to be decided before any money can move, so the charge
   * may be marked failed. Otherwise the words are unknown here: the charge stays settling until the chain or time says.
   */
  | { readonly kind: 'refused'; readonly reason: string; readonly final: boolean; readonly receipt: Receipt }
  /**
   * The money may have moved. `sent` false: not a byte of the call left, so this attempt itself cannot have moved it.
   * `transaction`: one that was named on the way, as a hint; it proves nothing. `via`: who was asked, opaque.
   */
  | {
      readonly kind: 'unknown';
      readonly reason: string;
      readonly sent: boolean;
      readonly transaction: string | undefined;
      readonly via: string | undefined;
      /** For the log. */
      readonly detail: string;
    };

/** What came before this attempt to settle. */
export type SettleHistory = {
  /** An earlier attempt ended `unknown` with `sent`: any refusal from now on may hide its success, so none is believed. */
  readonly afterUnknown: boolean;
  /** The `via` of that attempt: only who was asked then may remember it, so nobody else is asked while it is configured. */
  readonly via?: string | undefined;
};

/** What a client is shown. Public: no text of a facilitator or a node is in it. */
export type Receipt = {
  readonly success: boolean;
  readonly network: string;
  readonly payer: string;
  readonly amount: string;
  /** Empty where nothing was settled. */
  readonly transaction: string;
  readonly reason: string | undefined;
};

export type Rail = {
  /** Reads what a client presents. The offer's receiver says what the protocol leaves out. Problem: `payment_malformed`. */
  readonly read: (credential: Credential, offer: Pick<RailOffer, 'receiver'>) => Presented | Problem;
  /** Everything that can be known without asking anybody; a public reason, or undefined where it is fine so far. */
  readonly check: (presented: Presented, offer: RailOffer, nowMs: number) => string | undefined;
  readonly verify: (presented: Presented, offer: RailOffer) => Promise<Verification>;
  readonly settle: (presented: Presented, offer: RailOffer, history: SettleHistory) => Promise<Settlement>;
  readonly receiptHeader: (version: Credential['version'], receipt: Receipt) => readonly [name: string, value: string];
  /** What can prove payments to `receiver` without trusting whoever settles them; undefined where nothing is configured. */
  readonly evidence: (receiver: Receiver) => Evidence | undefined;
};

/** Reads the public record of payments. Every answer can be `unavailable`, which never means "no". */
export type Evidence = {
  /** The newest block. */
  readonly head: () => Promise<{ readonly kind: 'head'; readonly block: bigint; readonly time: bigint } | Unavailable>;
  /** The last block of `time` (seconds since the epoch) or earlier: where to start looking. */
  readonly blockAt: (time: bigint) => Promise<{ readonly kind: 'block'; readonly block: bigint } | Unavailable>;
  /** Whether the payer's nonce is used, as of a block that is `confirmations` deep and has `time`. */
  readonly nonceState: (
    key: PaymentKey,
  ) => Promise<
    { readonly kind: 'state'; readonly used: boolean; readonly block: bigint; readonly time: bigint } | Unavailable
  >;
  readonly findProof: (search: ProofSearch) => Promise<ProofResult>;
};

export type Unavailable = { readonly kind: 'unavailable'; readonly detail: string };

export type ProofSearch = {
  readonly key: PaymentKey;
  /** Any case. */
  readonly payTo: string;
  readonly amount: bigint;
  readonly fromBlock: bigint;
};

export type ProofResult =
  /** (network, transaction, logIndex) belongs to one charge: the ledger holds that, not the rail. */
  | { readonly kind: 'found'; readonly transaction: string; readonly logIndex: number; readonly block: bigint }
  /** The nonce was used, not deep enough yet to say more. */
  | { readonly kind: 'unconfirmed'; readonly transaction: string; readonly block: bigint }
  /** The nonce was used by `transaction`, which did not pay these terms: it proves nothing, and no proof will come. */
  | { readonly kind: 'contradicted'; readonly transaction: string }
  /** Not in the blocks up to `scannedTo`; where that is below the head, go on from the next one. */
  | { readonly kind: 'absent'; readonly scannedTo: bigint; readonly complete: boolean }
  | Unavailable;

/** The receipt of a payment of `amount` that was settled by `transaction`. */
export function settledReceipt(key: PaymentKey, amount: bigint, transaction: string): Receipt {
  return {
    success: true,
    network: key.network,
    payer: key.payer,
    amount: amount.toString(),
    transaction,
    reason: undefined,
  };
}

/** The receipt that says that nothing was taken. */
export function refusedReceipt(key: PaymentKey, amount: bigint, reason: string): Receipt {
  return { success: false, network: key.network, payer: key.payer, amount: amount.toString(), transaction: '', reason };
}

/** The offer that a charge was claimed under, to be verified, settled or proven again, whatever is configured by now. */
export function storedOffer(terms: Terms, receiver: Receiver, description: string): RailOffer {
  const { network, amount, scheme, asset, payTo, maxTimeoutSeconds, assetName, assetVersion, assetDecimals } = terms;
  const fixed = { scheme, asset, payTo, maxTimeoutSeconds, assetName, assetVersion, assetDecimals };
  const v1Network = findNetwork(network)?.v1;
  return { receiver: { ...receiver, ...fixed, network, caip2: network, v1Network }, atomic: amount, description };
}
