// A charge: one price taken once. What a claim fixes, and what the ledger keeps beside it; how it changes is in
// transition.ts. A payment is known by what can move money only once on its chain, in one canonical spelling, so that
// fifty encodings of one payment are one payment. Amounts are integers of the asset's smallest unit, never rounded.
import { findNetwork } from './receiver.ts';

/** `claimed -> settling -> settled -> delivered`, or `released`, `failed`. CONTRACT section 6. */
export const CHARGE_STATES = ['claimed', 'settling', 'settled', 'delivered', 'released', 'failed'] as const;
export type ChargeState = (typeof CHARGE_STATES)[number];

/** Whether somebody may still have to settle it: its credential is kept for as long. */
export function isUnsettled(state: ChargeState): boolean {
  return state === 'claimed' || state === 'settling';
}

/** Canonical; made by `canonicalPayment` alone. No two payments that can both move money share one. */
export type PaymentKey = {
  /** CAIP-2. */
  readonly network: string;
  /** Lower case. */
  readonly asset: string;
  readonly payer: string;
  /** `0x` and 64 lower-case hex digits. */
  readonly nonce: string;
};

/** What the payer signed for, as it was verified: whoever takes the charge over settles exactly this. */
export type Terms = {
  readonly scheme: string;
  /** CAIP-2. */
  readonly network: string;
  readonly asset: string;
  readonly payTo: string;
  readonly amount: bigint;
  readonly maxTimeoutSeconds: number;
  readonly assetName: string;
  readonly assetVersion: string;
  readonly assetDecimals: number;
  /** Seconds since the epoch, as signed: any uint256. */
  readonly validAfter: bigint;
  readonly validBefore: bigint;
};

/** Everything that a restart needs to take a payment on, or to tell its payer what became of it. */
export type Claim = {
  /** The charge id. */
  readonly id: string;
  readonly payment: PaymentKey;
  /** The header's value as it was presented. */
  readonly credential: string;
  /** Of `credential`: 64 lower-case hex digits. */
  readonly credentialSha256: string;
  readonly x402Version: 1 | 2;
  readonly terms: Terms;
  readonly route: { readonly id: string; readonly method: string; readonly pattern: string };
  /** `target`: canonical path and query. */
  readonly request: { readonly method: string; readonly target: string };
  /** As quoted: a decimal and its currency. */
  readonly price: { readonly amount: string; readonly currency: string };
  readonly receiverId: string;
  readonly customerId: string | null;
  /** The settle mode that this request is served in; `auto` is resolved before the claim. */
  readonly settle: 'before_response' | 'before_forward';
  /** The chain's block at the claim: proof can only stand in later ones. Null where nobody reads the chain. */
  readonly fromBlock: number | null;
};

/** Where the money moved. `logIndex` is null where only a facilitator says so. */
export type Proof = {
  readonly transaction: string;
  readonly logIndex: number | null;
  readonly amount: bigint;
  readonly payer: string;
};

/** An upstream's answer that its payer did not get whole. `headers`: flat name, value pairs. */
export type KeptAnswer = { readonly status: number; readonly headers: readonly string[]; readonly body: Uint8Array };

export type Charge = Omit<Claim, 'credential'> & {
  /** Null once nobody may need it again: a store holds no authorization that is good for nothing but theft. */
  readonly credential: string | null;
  readonly state: ChargeState;
  /** Who works on it; null where nobody does. */
  readonly owner: string | null;
  /** Milliseconds since the epoch, by the ledger's clock: the owner is believed to be alive until then. */
  readonly leaseUntil: number;
  /** How often it was claimed. */
  readonly claims: number;
  /** Settlements sent or perhaps sent whose end is not known. */
  readonly attempts: number;
  /** When the reconciler looks again, by the ledger's clock; set while `settling` and owned by nobody. */
  readonly nextTryAt: number | null;
  readonly proof: Proof | null;
  /** The last thing said about it: why it was released, is not known, or failed. */
  readonly reason: string | null;
  readonly failedBy: 'operator' | 'chain' | 'refusal' | null;
  /** How often the upstream was asked again after settling. */
  readonly asks: number;
  /** How many of them because an answer was lost, not because the upstream failed. */
  readonly repeats: number;
  readonly undelivered: Undelivered | null;
  /** Since when nobody is delivering it any more, first time. */
  readonly undeliveredAt: number | null;
  readonly answer: KeptAnswer | null;
  /** Of the last change that carried one: a call that is repeated after a lost answer is recognised by it. */
  readonly changeId: string | null;
  readonly createdAt: number;
  readonly updatedAt: number;
  readonly settledAt: number | null;
  readonly deliveredAt: number | null;
};

/** `upstream_failed`: it gave no usable answer. `answer_lost`: it did, and the answer did not arrive and was not kept. */
export type Undelivered = 'upstream_failed' | 'answer_lost';

export const CHARGE_ID = /^chg_[A-Za-z0-9_-]{1,124}$/;

const ADDRESS = /^0x[0-9a-f]{40}$/;
const NONCE = /^0x[0-9a-f]{64}$/;

/** The one spelling of a payment on an EVM network, or undefined where the parts name none. */
export function canonicalPayment(raw: PaymentKey): PaymentKey | undefined {
  const network = findNetwork(raw.network)?.caip2;
  const [asset, payer, nonce] = [raw.asset.toLowerCase(), raw.payer.toLowerCase(), raw.nonce.toLowerCase()];
  if (network === undefined || !ADDRESS.test(asset) || !ADDRESS.test(payer) || !NONCE.test(nonce)) return undefined;
  return { network, asset, payer, nonce };
}

/** Why `claim` cannot be written, or undefined. Whoever made it has a defect: a ledger refuses it, whatever it says. */
export function findClaimFault(claim: Claim): string | undefined {
  const { payment, terms } = claim;
  const canonical = canonicalPayment(payment);
  if (canonical === undefined) return 'the payment is not one of an EVM network';
  if (!samePayment(canonical, payment)) return 'the payment is not in its canonical spelling';
  if (terms.network !== payment.network || terms.asset.toLowerCase() !== payment.asset)
    return 'the terms are of another network or asset than the payment';
  if (terms.amount <= 0n) return 'the amount is not greater than 0';
  if (!CHARGE_ID.test(claim.id)) return 'the charge id is malformed';
  if (claim.credential === '') return 'the credential is empty';
  return undefined;
}

export function samePayment(a: PaymentKey, b: PaymentKey): boolean {
  return a.network === b.network && a.asset === b.asset && a.payer === b.payer && a.nonce === b.nonce;
}

/** A transaction's one spelling: two spellings of one transaction must not prove two charges. */
export function canonicalTransaction(transaction: string): string {
  return /^0x[0-9a-f]+$/i.test(transaction) ? transaction.toLowerCase() : transaction;
}
