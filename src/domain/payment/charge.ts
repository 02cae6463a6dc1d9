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
import type { Receipt } from './way.ts';

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

/** The flow that a charge was paid in. */
export function flowOf({ settle }: Pick<Claim, 'settle'>): (typeof FLOWS)[number] {
  return settle === 'before_forward' ? 'upfront' : 'authorization';
}

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

/** Owner of a charge: one request of one run of a process. Leases are renewed for the run. */
export function ownerOf(run: string, request: string): string {
  return `${run}/${request}`;
}

/**
 * Prefix of the runs of a process that holds the store itself. When it starts, no process is left with a lease of an
 * earlier run. A ledger takes no such owner from elsewhere.
 */
export const LOCAL_RUN = 'local-';

/** Prefix of the runs of workers. They reach the store through its process and end with it. */
export const WORKER_RUN = 'worker-';

/** Prefix of the runs of all workers of the process whose run is `run`. */
export function workersOfRun(run: string): string {
  return `${WORKER_RUN}${run.slice(LOCAL_RUN.length)}.`;
}

export const CHARGE_ID = /^chg_[A-Za-z0-9_-]{1,124}$/;

/** Latest deadline: its milliseconds are still an integer of JavaScript and of a store. */
const LATEST_DEADLINE = 2n ** 40n;

/** Finds why `claim` cannot be written; undefined if it can. Its caller has a defect: the ledger refuses the claim. */
export function findClaimFault(claim: Claim): string | undefined {
  if (claim.amount <= 0n) return 'the amount is not greater than 0';
  if (claim.deadline !== null && (claim.deadline < 0n || claim.deadline > LATEST_DEADLINE))
    return 'the deadline is further than any clock goes';
  if (!CHARGE_ID.test(claim.id)) return 'the charge id is malformed';
  if (claim.credential === '') return 'the credential is empty';
  return undefined;
}

/** One change of a charge: when, to which state, what happened, who did it, and what is to be said of it. */
export type ChargeLine = readonly [at: number, state: ChargeState, event: string, owner: string, detail: string | null];

/** Lines of a charge at most. Of more the first stays, and the newest. */
export const MAX_LINES = 64;
const LINE = '\n';
/** No line is shorter: fewer characters hold fewer lines than there may be. */
const LEAST_LINE = 30;
const LOOKED = ',"looked",';

/** Appends a line to those of a charge. Looks at the chain that follow one another are one line, that of the last. */
export function appendLine(lines: string | null, line: ChargeLine): string {
  const [at, state, event, owner, detail] = line;
  const added = JSON.stringify([at, state, event, whoIs(owner), detail]);
  if (lines === null || lines === '') return added;
  const last = lines.lastIndexOf(LINE);
  if (event === 'looked' && last >= 0 && lines.includes(LOOKED, last)) return lines.slice(0, last + 1) + added;
  const all = lines + LINE + added;
  if (all.length < MAX_LINES * LEAST_LINE) return all;
  const each = all.split(LINE);
  return each.length > MAX_LINES ? [...each.slice(0, 1), ...each.slice(1 - MAX_LINES)].join(LINE) : all;
}

/** An owner names a request of a run, which is nobody's business, or who else acts. */
function whoIs(owner: string): string {
  if (owner.startsWith('operator')) return 'operator';
  return owner === 'reconciler' || owner === 'store' ? owner : 'request';
}

export function samePayment(a: PaymentKey, b: PaymentKey): boolean {
  return a.network === b.network && a.asset === b.asset && a.payer === b.payer && a.unique === b.unique;
}

/** The receipt of a charge that was settled; undefined for any other. */
export function receiptOf(charge: Charge): Receipt | undefined {
  return charge.proof === null ? undefined : settledReceipt(charge.payment, charge.amount, charge.proof.transaction);
}

/** The receipt that says that `amount` was taken. */
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
