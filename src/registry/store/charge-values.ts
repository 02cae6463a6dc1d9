// Charges, and changes of them, as the columns of a store and back, the same for every kind of store. Column names
// stand here once, in the order in which values are bound. A row that is not a whole charge throws: a charge half read
// must not decide about money.
import {
  isUnsettled,
  type Charge,
  type KeptAnswer,
  type ChargeState,
  type PaymentKey,
} from '../../domain/payment/charge.ts';
import { createCopy, type CopyRules, type ChargeSource } from '../../domain/payment/charge-copy.ts';
import {
  CHARGE_ROWS,
  CHARGE_STATES,
  CLAIM_ROWS,
  isNullablePart,
  PROGRESS_ROWS,
  type ChargeRow,
} from '../../domain/payment/charge-fields.ts';
import { historyOf, type ChargeHistoryEntry } from '../../domain/payment/charge-history.ts';
import type { ChargeChange, ListedCharge } from '../../domain/payment/reports.ts';
import type { ChargeEventType } from '../../domain/webhooks/event-types.ts';
import type { StoredCharge, Change, Entry, InsertResult, UpdateResult } from '../../domain/payment/ledger.ts';
import { leavesToOwner } from '../../domain/payment/transition.ts';
import { auditValues, type AuditValues } from './audit-values.ts';
import { auditOfCharge } from './charge-audit.ts';
import type { ClaimOptions } from '../../domain/payment/claim-policy.ts';
import { standingOf } from '../../domain/payment/whereabouts.ts';
import { openingOf, type PassOpening } from './pass-values.ts';
import { refundChangeOf, type TransferPlace } from './refund-change.ts';
import { bytes, integer, text, type Row } from './rows.ts';

export type Value = string | number | null;
/** Change of a row. `columns` are positions of ALL. */
type ColumnValues = { readonly columns: readonly number[]; readonly values: readonly Value[] };

const isColumn = ({ sharesColumn, isKeptAside }: ChargeRow): boolean => !sharesColumn && !isKeptAside;
const ROWS = CHARGE_ROWS.filter(isColumn);
export const ALL = ROWS.map(({ column }) => column);
const PROGRESS_FROM = CLAIM_ROWS.filter(isColumn).length;
/** Rows that an event may change, and the positions of their columns. */
const CHANGING = PROGRESS_ROWS.filter(isColumn).map((row, index) => ({
  row,
  top: row.part ?? row.member,
  position: PROGRESS_FROM + index,
}));

/** Columns that no list reads. */
export const UNLISTED: ReadonlySet<string> = new Set(['credential_sha256', 'events']);

/** Columns that are held as bytes, written and read as hexadecimal. */
export const DIGESTS: ReadonlySet<string> = new Set(
  ROWS.filter(({ kind }) => kind === 'digest').map(({ column }) => column),
);

function allValues(charge: Charge): Value[] {
  return ROWS.map((row) => valueIn(charge, row));
}

/** Values that a claim after a release writes: all but the id. */
function rewrittenOf(charge: Charge): ColumnValues {
  return { columns: ALL.slice(1).map((_, index) => index + 1), values: allValues(charge).slice(1) };
}

/** Values that an event changed: nothing of what the claim fixed. */
function changedOf(before: ChargeSource, after: ChargeSource): ColumnValues {
  const columns: number[] = [];
  const values: Value[] = [];
  for (const { row, top, position } of CHANGING) {
    // A part that is the same object has the same members.
    if (before[top] === after[top]) continue;
    const value = valueIn(after, row);
    if (value === valueIn(before, row)) continue;
    columns.push(position);
    values.push(value);
  }
  return { columns, values };
}

/** The value of a row in a charge, as a store binds it; null if the charge is without its part. */
function valueIn(charge: ChargeSource, { part, member, kind }: ChargeRow): Value {
  const from = part === undefined ? charge : (charge[part] as ChargeSource | null);
  return from === null ? null : bindable(kind, from[member]);
}

function bindable(kind: ChargeRow['kind'], value: unknown): Value {
  if (value === null || typeof value === 'string' || typeof value === 'number') return value;
  if (typeof value === 'boolean') return Number(value);
  if (typeof value === 'bigint') return kind === 'seconds' ? Number(value) : value.toString();
  return JSON.stringify(value);
}

export function readStored(row: Row): StoredCharge {
  return { charge: readCharge(row), version: integer(row, 'version') };
}

const FROM_ROW: CopyRules = {
  partOf: (row, part, first) => (isNullablePart(part) && row[first.column] === null ? null : row),
  valueOf: readValue,
};
const readWhole = createCopy(CHARGE_ROWS, 'member', FROM_ROW);

function readCharge(row: Row): Charge {
  const charge = readWhole(row) as Charge;
  const { state, credential } = charge;
  if ((credential !== null) !== isUnsettled(state))
    throw new TypeError(`the store holds a charge that is ${state} ${credential ? 'with' : 'without'} a credential`);
  return charge;
}

/** Stands for what a list does not read. */
const HIDDEN = { credential: null, credentialSha256: '', changeId: null, search: null, events: null, answer: null };
const NO_ANSWER: KeptAnswer = { status: 0, headers: [], body: new Uint8Array() };
const readOpen = createCopy(
  CHARGE_ROWS.filter(({ part, member }) => !Object.hasOwn(HIDDEN, part ?? member)),
  'member',
  FROM_ROW,
);

export function readListed(row: Row, now: number): ListedCharge {
  const { owner, ...charge } = readOpen(row) as Omit<Charge, keyof typeof HIDDEN>;
  const answer = integer(row, 'has_answer') === 1 ? NO_ANSWER : null;
  return { ...charge, ...standingOf({ ...charge, ...HIDDEN, answer, owner }, now) };
}

/** Reads a row that names `events` beside what lists read. */
export function readHistory(row: Row, now: number): readonly ChargeHistoryEntry[] {
  return historyOf(readListed(row, now), row['events'] === null ? null : text(row, 'events'));
}

export function readChange(row: Row): ChargeChange {
  return {
    n: integer(row, 'n'),
    id: text(row, 'charge_id'),
    routeId: text(row, 'route_id'),
    state: stateOf(row),
    at: integer(row, 'at'),
  };
}

export function stateOf(row: Row): ChargeState {
  return oneOf('state', text(row, 'state'), CHARGE_STATES);
}

type Texts = Readonly<Record<string, string>>;

/** Reads texts that only a rail understands. */
function readTexts(written: string): Texts {
  const texts: unknown = JSON.parse(written);
  if (!isTexts(texts)) throw new TypeError('the store holds words of a rail that are no record of texts');
  return texts;
}

function isTexts(value: unknown): value is Texts {
  return (
    typeof value === 'object' &&
    value !== null &&
    !Array.isArray(value) &&
    Object.values(value).every((each) => typeof each === 'string')
  );
}

function readHeaders(written: string): readonly string[] {
  const headers: unknown = JSON.parse(written);
  if (!Array.isArray(headers) || !headers.every((each) => typeof each === 'string'))
    throw new TypeError('the store holds an answer whose headers are not text');
  return headers;
}

function oneOf<T>(column: string, value: unknown, known: readonly T[]): T {
  const found = known.find((each) => each === value);
  if (found === undefined) throw new TypeError(`the column ${column} of the store holds ${String(value)}`);
  return found;
}

function readValue({ kind, column, words, isNullable }: ChargeRow, row: Row): unknown {
  if (isNullable && row[column] === null) return null;
  switch (kind) {
    case 'text':
      return words === undefined ? text(row, column) : oneOf(column, text(row, column), words);
    case 'charge id':
    case 'digest':
      return text(row, column);
    case 'integer':
      return words === undefined ? integer(row, column) : oneOf(column, integer(row, column), words);
    case 'flag':
      return integer(row, column) === 1;
    case 'units':
      return BigInt(text(row, column));
    case 'seconds':
      return BigInt(integer(row, column));
    case 'texts':
      return readTexts(text(row, column));
    case 'headers':
      return readHeaders(text(row, column));
    case 'bytes':
      return new Uint8Array(bytes(row, column));
    default:
      return kind satisfies never;
  }
}

// Changes of the ledger as rows of a store. They are made on the side that decided, so that what writes has only statements
// left to do. They cross to a thread as JSON.

export type InsertRefusal = Exclude<InsertResult, { readonly kind: 'written' }>;
export type UpdateRefusal = Exclude<UpdateResult, { readonly kind: 'written' }>;

/** A charge that the store does not have. */
export type RowInsert = {
  readonly payment: PaymentKey;
  readonly id: string;
  readonly room: Room;
  readonly state: Charge['state'];
  readonly values: readonly Value[];
  readonly credential: string;
};

/** A payer's unsettled claims on one network, and passes of one plan. */
export type Room = {
  readonly network: string;
  readonly payer: string;
  /** Id of the charge that claims, and the plan of which it buys a pass; null: it buys none. */
  readonly charge: string;
  readonly plan: string | null;
  readonly maxUnsettled: number;
  readonly now: number;
};

/** A change of the row that still has this version, and this lease if one is given. */
export type RowChange = {
  readonly id: string;
  readonly version: number;
  readonly leaseUntil: number | null;
  /** Room of a claim. */
  readonly room: Room | null;
  readonly before: Charge['state'];
  readonly after: Charge['state'];
  /** Positions of the columns that change, and what they hold from now on. */
  readonly columns: readonly number[];
  readonly values: readonly Value[];
  /** Credential. Null: it is no longer needed. Undefined: as it is. */
  readonly credential?: string | null;
  readonly dropsAnswer: boolean;
  /** Money that moved with this change. */
  readonly settled: SumFacts | null;
  /** Pass that was sold with it. */
  readonly opens: PassOpening | null;
  /** When the pass that it sold is revoked with this change, because all its money was given back. */
  readonly revokesPassAt: number | null;
  /** Transfer that proves this change, and proves nothing else from now on. */
  readonly proof: TransferPlace | null;
  /** Money whose way back is recorded with this change. */
  readonly refunded: SumFacts | null;
  /** Type of the event that webhooks tell of it. */
  readonly tells: ChargeEventType | null;
  /** Entry of the audit log that goes with it. */
  readonly audit: AuditValues | null;
};

/** Facts that the sums are made of. */
export type SumFacts = {
  readonly routeId: string;
  readonly currency: string;
  readonly network: string;
  readonly asset: string;
  readonly assetDecimals: number;
  /** Milliseconds since the epoch. */
  readonly at: number;
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

export function toRowChange(change: Change, now: number): RowChange {
  const { after, actor, because } = change;
  const { charge: before, version } = change.before;
  // A request passes no word of an operator.
  const entry = change.actor.cause === undefined || after === before ? undefined : auditOfCharge(change, now);
  const claimed = 'claim' in because ? because : undefined;
  const refund = refundIn(before, after);
  return {
    ...{ id: before.id, version },
    leaseUntil: before.owner === actor.owner || leavesToOwner(before, after) ? null : before.leaseUntil,
    room: claimed ? roomFor(after, claimed.options, now) : null,
    ...{ before: before.state, after: after.state },
    ...(claimed ? rewrittenOf(after) : changedOf(before, after)),
    ...(before.credential === after.credential ? {} : { credential: after.credential }),
    dropsAnswer: before.answer !== null && after.answer === null,
    settled:
      before.settledAt === null && after.settledAt !== null ? sumFacts(after, after.settledAt, after.amount) : null,
    proof: refund === undefined ? paymentProofOf(before, after) : refund.proof,
    refunded: refund !== undefined && refund.amount > 0n ? sumFacts(after, now, refund.amount) : null,
    opens: after.pass === null ? null : openingOf(before, after),
    revokesPassAt: after.pass !== null && before.refundedAt === null ? after.refundedAt : null,
    tells: refund?.isNew === true ? 'charge.refunded' : eventOf(before, after),
    audit: entry === undefined ? null : auditValues(entry),
  };
}

/** What a change says about refunds; undefined: nothing, as that of any request. */
export function refundIn(before: Charge, after: Charge): ReturnType<typeof refundChangeOf> | undefined {
  if (before.refunds === after.refunds && before.refundedAt === after.refundedAt) return undefined;
  return refundChangeOf(before, after);
}

/** The transfer by which the chain proves that a charge was paid; null if none is known, or none with this change. */
export function paymentProofOf(
  before: Charge,
  { settledAt, proof, payment: { network } }: Charge,
): TransferPlace | null {
  if (before.settledAt !== null || settledAt === null || proof === null || proof.logIndex === null) return null;
  return { network, transaction: proof.transaction, logIndex: proof.logIndex };
}

/**
 * A charge that is settling tells of itself once: when its end is unknown for the first time. A claim may begin with settling.
 */
function eventOf(before: Charge, after: Charge): ChargeEventType | null {
  if (before.state === 'released' && isUnsettled(after.state)) return 'charge.claimed';
  if (after.state === 'settling') return before.attempts === 0 && after.attempts > 0 ? 'charge.unknown' : null;
  return before.state === after.state ? null : `charge.${after.state}`;
}

function roomFor({ id, payment, pass }: Charge, options: ClaimOptions, now: number): Room {
  const { network, payer } = payment;
  return { network, payer, charge: id, plan: pass?.['plan'] ?? null, maxUnsettled: options.maxUnsettledPerPayer, now };
}

/** An answer that this change keeps. */
export function keptBy({ before, after }: Change): KeptAnswer | undefined {
  if (after.answer === null || after.answer === before.charge.answer) return undefined;
  const { status, headers, body } = after.answer;
  // A clone of a view takes all of the memory behind it along; a kept answer takes its own bytes alone.
  return { status, headers, body: new Uint8Array(body) };
}

function sumFacts({ route, price, payment, way }: Charge, at: number, amount: bigint): SumFacts {
  return {
    routeId: route.id,
    currency: price.currency,
    network: payment.network,
    asset: payment.asset,
    assetDecimals: way.decimals,
    at,
    amount: amount.toString(),
  };
}
