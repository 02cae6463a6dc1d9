// Examples of charges for the OpenAPI document: one payment as it is claimed, settled and delivered. The claim and the proof
// come from the rows of `charge-fields.ts`, what becomes of them from the rules that real charges follow. So a new field is
// in every example, and none shows a state that cannot be.
import { createCopy } from '../../domain/payment/charge-copy.ts';
import { CLAIM_ROWS, PROGRESS_ROWS, type ChargeRow } from '../../domain/payment/charge-fields.ts';
import { claimFromWire, claimWire } from '../../domain/payment/charge-wire.ts';
import { historyOf } from '../../domain/payment/charge-history.ts';
import type { Charge } from '../../domain/payment/charge.ts';
import { decideClaim } from '../../domain/payment/claim-policy.ts';
import { eventFromWire, eventWire } from '../../domain/payment/ledger-wire.ts';
import type { ListedCharge } from '../../domain/payment/reports.ts';
import { transition, type ChargeEvent } from '../../domain/payment/transition.ts';
import type { NamedNetworks } from './charge-view.ts';

const CLAIMED_AT = Date.parse('2026-01-31T12:00:00.000Z');
const SETTLED_AT = CLAIMED_AT + 1_500;

export const EXAMPLE_OWNER = 'sidecar-1';
export const EXAMPLE_LEASE_MS = 60_000;
export const EXAMPLE_MAX_UNSETTLED = 64;

const proofRows = PROGRESS_ROWS.flatMap((row): ChargeRow[] =>
  row.part === 'proof' ? [{ ...row, part: undefined }] : [],
);
const credential = PROGRESS_ROWS.find(({ member }) => member === 'credential')?.example;

/** A claim on the ledger's wire. */
export const EXAMPLE_CLAIM = claimWire.parse({ ...exampleOf(CLAIM_ROWS), credential });

const claim = claimFromWire(EXAMPLE_CLAIM);
const lease = { owner: EXAMPLE_OWNER, leaseMs: EXAMPLE_LEASE_MS };
const claimed = decideClaim(
  undefined,
  claim,
  { ...lease, maxUnsettledPerPayer: EXAMPLE_MAX_UNSETTLED },
  CLAIMED_AT,
).charge;

/** Change that turns the claimed charge into the one that is being settled. */
export const EXAMPLE_CHANGE = {
  kind: 'settle_started',
  via: 'https://facilitator.example',
  leaseMs: EXAMPLE_LEASE_MS,
} as const satisfies ChargeEvent;

const settling = after(claimed, EXAMPLE_CHANGE, CLAIMED_AT);
const proven = eventWire.parse({ kind: 'settled', proof: exampleOf(proofRows), lease_ms: EXAMPLE_LEASE_MS });
const settled = after(settling, eventFromWire(proven), SETTLED_AT);
const ended = after(settled, { kind: 'delivered', partial: false }, SETTLED_AT);
const delivered: ListedCharge = { ...ended, retryUntil: null, owed: null };

const failed = after(settled, { kind: 'undelivered', because: 'upstream_failed', headSent: false }, SETTLED_AT);
const owed: ListedCharge = { ...failed, retryUntil: null, owed: 'upstream' };
const transfer = {
  transaction: `0x${'9b'.repeat(32)}`,
  logIndex: 0,
  amount: claim.amount,
  reason: 'the report was empty',
};
const returned = after(ended, { kind: 'refunded', note: '', transfer }, SETTLED_AT + 60_000);
const refunded: ListedCharge = { ...returned, retryUntil: null, owed: null };

/** The charge of `EXAMPLE_CLAIM`, state by state. */
export const EXAMPLE_CHARGES = { claimed, settling, delivered, owed, refunded } as const;

/** History of the delivered charge. */
export const EXAMPLE_HISTORY = historyOf(ended, ended.events);

/** The network of the examples alone. */
export const EXAMPLE_NETWORKS: NamedNetworks = {
  find: () => ({ name: 'base-sepolia', explorer: 'https://sepolia.basescan.org', tokens: [] }),
};

function exampleOf(rows: readonly ChargeRow[]): object {
  return createCopy(rows, 'wire', { partOf: (source) => source, valueOf: ({ example }) => example ?? null })({});
}

function after(charge: Charge, event: ChargeEvent, now: number): Charge {
  const changed = transition(charge, event, { owner: EXAMPLE_OWNER }, now);
  if (!changed.ok) throw new Error(`the example of a charge takes no ${event.kind}: ${changed.because}`);
  return changed.charge;
}
