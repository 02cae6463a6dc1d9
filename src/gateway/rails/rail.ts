// The port between the payment journey and whatever moves the money. The journey knows a payment as a key that can be
// used once, as something to check, verify and settle, and as a receipt. It never sees a signature, a chain or a
// facilitator. A rail never writes to the ledger and never decides what a client is told. It says what is known. It
// keeps "no" and "not known" apart, because mistaking the second for the first makes a payer pay twice.
import type { Charge, PaymentKey, Proof, Receipt, Search } from '../../domain/payment/charge.ts';
import type { Credential } from '../../domain/decide.ts';
import type { RailOffer, Requirement, Way } from '../../domain/payment/way.ts';
import type { Problem } from '../../domain/problem.ts';
import type { Envelope } from './x402/client-wire.ts';

/** A credential, read. Everything in it is the client's claim until it was checked and verified. */
export type PresentedPayment = {
  readonly version: Credential['version'];
  readonly key: PaymentKey;
  /** Way that the payment names among those that it was read for, or what it is told if it names none. */
  readonly way: Way | Refusal;
  /** SHA-256 of the credential's decoded bytes, in hex: the same payment in another spelling has another one. */
  readonly sha256: string;
  /** The charge id that the client gives back, if the protocol has a place for it. */
  readonly chargeId: string | undefined;
  /** Amount as signed: in the smallest unit of the asset, and until when, in seconds since the epoch. */
  readonly amount: bigint;
  readonly deadline: bigint | undefined;
  /** Payload that only the rail reads; plain JSON. */
  readonly payload: unknown;
};

/** Payment without the way. */
type ReadPayment = Omit<PresentedPayment, 'way'>;

/** Public: lower-case words joined by `_`, and what would have been right, for people. */
export type Refusal = { readonly reason: string; readonly expected?: string };

export type Verification =
  | { readonly kind: 'valid'; readonly payer: string }
  /** The payment is no good. */
  | ({ readonly kind: 'refused' } & Refusal)
  /** No verdict. `detail` is for the log; `retryAfterMs` if it is known when a facilitator is asked again. */
  | { readonly kind: 'unavailable'; readonly detail: string; readonly retryAfterMs: number | undefined };

export type Settlement =
  | { readonly kind: 'settled'; readonly transaction: string; readonly via: string }
  /** The payment was not taken, and never will be by this attempt. `reason` is public. */
  | { readonly kind: 'refused'; readonly reason: string; readonly via: string }
  /**
   * The attempt moved nothing and never will, for certain: no facilitator was asked, or none took the call. `declined`:
   * no facilitator takes such a payment.
   */
  | {
      readonly kind: 'not_carried_out';
      readonly reason: string;
      readonly retryAfterMs: number | undefined;
      readonly declined?: Refusal | undefined;
    }
  /** The money may have moved, or may yet. `detail` is for the log. */
  | { readonly kind: 'unknown'; readonly reason: string; readonly via: string; readonly detail: string };

/** Earlier attempts to settle the payment. */
export type SettleHistory = {
  /** An earlier attempt ended unknown: any refusal from now on may hide its success, so none is believed. */
  readonly afterUnknown: boolean;
  /** The facilitator that was asked first then. It is asked first now: no other may remember that attempt. */
  readonly via: string | undefined;
};

/**
 * Called before each facilitator is called: it writes down what must be durable before that. False: the call is not
 * made, nor any other.
 */
export type SendGuard = (via: string) => Promise<boolean>;

export type Rail = {
  /** An entry of `accepts`. */
  readonly requirement: Requirement;
  /**
   * Reads what a client presents for one of `ways`, which say what the protocol leaves out. Problem:
   * `payment_malformed`. Refusal: it names none of them, and too little to identify the payment.
   */
  readonly read: (credential: Credential, ways: readonly Way[]) => PresentedPayment | Refusal | Problem;
  /** Checks what can be checked without a call; undefined: no fault so far. */
  readonly check: (presented: PresentedPayment, offer: RailOffer, nowMs: number) => Refusal | undefined;
  readonly verify: (presented: PresentedPayment, offer: RailOffer) => Promise<Verification>;
  readonly settle: (
    presented: PresentedPayment,
    offer: RailOffer,
    history: SettleHistory,
    sending: SendGuard,
  ) => Promise<Settlement>;
  /** Whether some facilitator of the way may be called now. */
  readonly isCallable: (way: Way) => boolean;
  /** The facilitator that is asked to settle first if none was asked before. */
  readonly firstVia: (presented: PresentedPayment, offer: RailOffer) => string | undefined;
  readonly receiptHeader: (version: Credential['version'], receipt: Receipt) => readonly [name: string, value: string];
  /**
   * Asks the chain about a charge whose settlement has no known end. A payer who waits is told what is known within two
   * seconds, and is served before the reconciler.
   */
  readonly look: (charge: LookSubject, asker: 'payer' | 'reconciler') => Promise<PartialLook>;
};

/** The rail of some networks, which reads what was signed there out of an envelope. */
export type NetworkRail = Omit<Rail, 'read' | 'isCallable'> & {
  /** Counter that is raised whenever an entry of `accepts` has become another, or can or cannot be written. */
  readonly revision: () => number;
  /** Begins to ask what has to be known before `ways`, which may change, are offered; what is returned ends it. */
  readonly watch: (ways: () => readonly Way[]) => () => void;
  /** Whether the rail serves a network: CAIP-2, or a name of x402 v1. */
  readonly serves: (network: string) => boolean;
  /**
   * Reads a payment. `way` is the one that it names; undefined: none. Problem: `payment_malformed`. Undefined: beside
   * its network it names nothing of this rail's.
   */
  readonly read: (envelope: Envelope, way: Way | undefined) => ReadPayment | Problem | undefined;
};

export type LookSubject = Pick<
  Charge,
  'payment' | 'way' | 'amount' | 'deadline' | 'createdAt' | 'search' | 'credential' | 'x402Version'
>;

export type Look =
  | { readonly kind: 'proven'; readonly proof: Proof }
  /** The payment did not pay and never can: expired unused, cancelled, or spent on something else. */
  | { readonly kind: 'impossible'; readonly reason: string }
  /**
   * The end is not certain. `used`: the payment was used up, and by what is not known yet. `search` goes back with the
   * next look.
   */
  | { readonly kind: 'open'; readonly used: boolean; readonly search: Search | null }
  /** No answer. `detail` is for the log. */
  | RailOutage;

/** Look as far as it got. `end` is what it finds in the end, for the request that began it and waits no longer. */
export type PartialLook = Look & { readonly end?: Promise<Look> };

export type RailOutage = { readonly kind: 'unavailable'; readonly detail: string };
