// Changes of the ledger as rows of a store: made on the side that decided, so that what writes has nothing left to do but
// statements. Crosses to a thread as JSON.
import type { Charge, KeptAnswer, PaymentKey } from '../../domain/charge.ts';
import type { ClaimOptions } from '../../domain/payment/claim-policy.ts';
import type { Change, Entry, Inserted, Updated } from '../../domain/payment/ledger.ts';
import { allValues, changedOf, rewrittenOf, type Value } from './charge-values.ts';

export type NotInserted = Exclude<Inserted, { readonly kind: 'written' }>;
export type NotUpdated = Exclude<Updated, { readonly kind: 'written' }>;

/** A charge that the store does not have. */
export type RowInsert = {
  readonly payment: PaymentKey;
  readonly id: string;
  readonly room: Room;
  readonly state: Charge['state'];
  readonly values: readonly Value[];
  readonly credential: string;
};

/** A payer's unsettled claims on one network. */
export type Room = {
  readonly network: string;
  readonly payer: string;
  readonly maxUnsettled: number;
  readonly now: number;
};

/** A change of the row that still has this version, and this lease if one is given. */
export type RowChange = {
  readonly id: string;
  readonly version: number;
  readonly leaseUntil: number | null;
  /** Of a claim. */
  readonly room: Room | null;
  readonly before: Charge['state'];
  readonly after: Charge['state'];
  /** Positions of the columns that change, and what they hold from now on. */
  readonly columns: readonly number[];
  readonly values: readonly Value[];
  /** Null: it is no longer needed. Undefined: as it is. */
  readonly credential?: string | null;
  readonly dropsAnswer: boolean;
  /** Money that moved with this change. */
  readonly settled: Settled | null;
};

/** What the sums are made of. */
export type Settled = {
  readonly routeId: string;
  readonly currency: string;
  readonly network: string;
  readonly asset: string;
  readonly assetDecimals: number;
  readonly settledAt: number;
  /** Decimal digits. */
  readonly amount: string;
};

export function toRowInsert({ charge, claim, options }: Entry, now: number): RowInsert {
  return {
    payment: charge.payment,
    id: charge.id,
    room: roomFor(charge, options, now),
    state: charge.state,
    values: allValues(charge),
    credential: claim.credential,
  };
}

export function toRowChange(
  { before: { charge: before, version }, after, actor, because }: Change,
  now: number,
): RowChange {
  const claimed = 'claim' in because ? because : undefined;
  return {
    ...{ id: before.id, version },
    leaseUntil: before.owner === actor.owner ? null : before.leaseUntil,
    room: claimed ? roomFor(after, claimed.options, now) : null,
    ...{ before: before.state, after: after.state },
    ...(claimed ? rewrittenOf(after) : changedOf(before, after)),
    ...(before.credential === after.credential ? {} : { credential: after.credential }),
    dropsAnswer: before.answer !== null && after.answer === null,
    settled: before.settledAt === null && after.settledAt !== null ? settledOf(after) : null,
  };
}

function roomFor({ payment: { network, payer } }: Charge, options: ClaimOptions, now: number): Room {
  return { network, payer, maxUnsettled: options.maxUnsettledPerPayer, now };
}

/** An answer that this change keeps. */
export function keptBy({ before, after }: Change): KeptAnswer | undefined {
  if (after.answer === null || after.answer === before.charge.answer) return undefined;
  const { status, headers, body } = after.answer;
  // A clone of a view takes all of the memory behind it along; a kept answer takes its own bytes alone.
  return { status, headers, body: new Uint8Array(body) };
}

function settledOf({ route, price, payment, way, amount, settledAt }: Charge): Settled {
  return {
    routeId: route.id,
    currency: price.currency,
    network: payment.network,
    asset: payment.asset,
    assetDecimals: way.decimals,
    settledAt: settledAt ?? 0,
    amount: amount.toString(),
  };
}
