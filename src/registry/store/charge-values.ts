// Charges, and changes of them, as the columns of a store and back, the same for every kind of store. Column names
// stand here once, in the order in which values are bound. A row that is not a whole charge throws: a charge half read
// must not decide about money.
import {
  isUnsettled,
  type Charge,
  type KeptAnswer,
  type Search,
  type ChargeState,
  type PaymentKey,
} from '../../domain/payment/charge.ts';
import { CHARGE_ROWS, CHARGE_STATES, chargeValuesOf, type ChargeRow } from '../../domain/payment/charge-fields.ts';
import type { ListedCharge } from '../../domain/payment/reports.ts';
import type { StoredCharge, Change, Entry, Inserted, Updated } from '../../domain/payment/ledger.ts';
import { leavesToOwner } from '../../domain/payment/transition.ts';
import type { ClaimOptions } from '../../domain/payment/claim-policy.ts';
import { standingOf } from '../../domain/payment/whereabouts.ts';
import { bytes, integer, nullableInteger, nullableText, text, type Row } from './rows.ts';

export type Value = string | number | null;
/** `columns` are positions of ALL. */
type Changed = { readonly columns: readonly number[]; readonly values: readonly Value[] };

/** What a claim fixes; a claim after a release writes them again, all but the id. */
const CLAIM_COLUMNS = [
  ...['network', 'asset', 'payer', 'unique_key', 'credential_sha256', 'x402_version', 'receiver_id', 'scheme'],
  ...['way_asset', 'asset_decimals', 'pay_to_address', 'max_timeout_seconds', 'terms', 'amount', 'deadline'],
  ...['route_id', 'route_method', 'route_pattern', 'request_method', 'request_path', 'target_sha256', 'request_id'],
  ...['price_amount', 'price_currency', 'customer_id', 'settle'],
];
/** Columns that change and hold no single value of the charge. */
const COMPOSED_COLUMNS = [
  ...['search', 'settled_transaction', 'settled_log_index', 'asks', 'asks_after_lost_answer'],
  ...['asks_after_failure', 'asks_after_upload', 'asks_after_death'],
];
export const ALL = ['id', ...CLAIM_COLUMNS, ...COMPOSED_COLUMNS, ...CHARGE_ROWS.map(({ wire }) => wire)];
const COMPOSED_FROM = 1 + CLAIM_COLUMNS.length;
const ROWS_FROM = COMPOSED_FROM + COMPOSED_COLUMNS.length;
const ROW_POSITIONS = CHARGE_ROWS.map(({ name }, index) => ({ name, position: ROWS_FROM + index }));
/** Held as bytes, written and read as hexadecimal. */
export const DIGESTS: ReadonlySet<string> = new Set(['credential_sha256', 'target_sha256']);
function allValues(charge: Charge): Value[] {
  const { payment, way, route, request, price } = charge;
  return [
    charge.id,
    payment.network,
    payment.asset,
    payment.payer,
    payment.unique,
    charge.credentialSha256,
    charge.x402Version,
    way.receiverId,
    way.scheme,
    way.asset,
    way.decimals,
    way.payTo,
    way.timeoutSeconds,
    JSON.stringify(way.terms),
    charge.amount.toString(),
    charge.deadline === null ? null : Number(charge.deadline),
    route.id,
    route.method,
    route.pattern,
    request.method,
    request.path,
    request.targetSha256,
    charge.requestId,
    price.amount,
    price.currency,
    charge.customerId,
    charge.settle,
    ...composedValues(charge),
    ...CHARGE_ROWS.map(({ name }) => bindable(charge[name])),
  ];
}

/** What a claim after a release writes: all but the id. */
function rewrittenOf(charge: Charge): Changed {
  return { columns: ALL.slice(1).map((_, index) => index + 1), values: allValues(charge).slice(1) };
}

/** What an event changed: nothing of what the claim fixed. */
function changedOf(before: Charge, after: Charge): Changed {
  const columns: number[] = [];
  const values: Value[] = [];
  if (before.search !== after.search || before.proof !== after.proof || before.asks !== after.asks) {
    const old = composedValues(before);
    for (const [index, value] of composedValues(after).entries()) {
      if (value === old[index]) continue;
      columns.push(COMPOSED_FROM + index);
      values.push(value);
    }
  }
  for (const { name, position } of ROW_POSITIONS) {
    if (before[name] === after[name]) continue;
    columns.push(position);
    values.push(bindable(after[name]));
  }
  return { columns, values };
}

/** Of COMPOSED_COLUMNS. */
function composedValues({ search, proof, asks }: Charge): Value[] {
  return [
    search === null ? null : JSON.stringify(search),
    proof?.transaction ?? null,
    proof?.logIndex ?? null,
    asks.all,
    asks.afterLostAnswer,
    asks.afterFailure,
    asks.afterUpload,
    asks.afterDeath,
  ];
}

function bindable(value: Value | boolean): Value {
  return typeof value === 'boolean' ? Number(value) : value;
}

export function readStored(row: Row): StoredCharge {
  return { charge: readCharge(row), version: integer(row, 'version') };
}

function readCharge(row: Row): Charge {
  const listed = readOpen(row);
  const credential = nullableText(row, 'credential');
  if ((credential !== null) !== isUnsettled(listed.state))
    throw new TypeError(
      `the store holds a charge that is ${listed.state} ${credential ? 'with' : 'without'} a credential`,
    );
  return {
    ...listed,
    credential,
    credentialSha256: text(row, 'credential_sha256'),
    search: readSearch(row),
    answer: readAnswer(row),
  };
}

export function readListed(row: Row, now: number): ListedCharge {
  const { owner, changeId: _changeId, ...charge } = readOpen(row);
  const answer = integer(row, 'has_answer') === 1 ? NO_ANSWER : null;
  return { ...charge, ...standingOf({ ...charge, ...HIDDEN, answer, owner }, now) };
}

/** Stands for what a list does not read. */
const NO_ANSWER: KeptAnswer = { status: 0, headers: [], body: new Uint8Array() };
const HIDDEN = { credential: null, credentialSha256: '', changeId: null, search: null };

function readOpen(row: Row): Omit<Charge, 'credential' | 'credentialSha256' | 'search' | 'answer'> {
  const amount = BigInt(text(row, 'amount'));
  const [network, payer] = [text(row, 'network'), text(row, 'payer')];
  const transaction = nullableText(row, 'settled_transaction');
  const deadline = nullableInteger(row, 'deadline');
  return {
    ...chargeValuesOf((field) => readValue(row, field)),
    id: text(row, 'id'),
    payment: { network, asset: text(row, 'asset'), payer, unique: text(row, 'unique_key') },
    x402Version: integer(row, 'x402_version') === 1 ? 1 : 2,
    way: {
      receiverId: text(row, 'receiver_id'),
      network,
      scheme: text(row, 'scheme'),
      asset: text(row, 'way_asset'),
      decimals: integer(row, 'asset_decimals'),
      payTo: text(row, 'pay_to_address'),
      timeoutSeconds: integer(row, 'max_timeout_seconds'),
      terms: readTexts(text(row, 'terms')),
    },
    amount,
    deadline: deadline === null ? null : BigInt(deadline),
    route: { id: text(row, 'route_id'), method: text(row, 'route_method'), pattern: text(row, 'route_pattern') },
    request: {
      method: text(row, 'request_method'),
      path: text(row, 'request_path'),
      targetSha256: text(row, 'target_sha256'),
    },
    requestId: nullableText(row, 'request_id'),
    price: { amount: text(row, 'price_amount'), currency: text(row, 'price_currency') },
    customerId: nullableText(row, 'customer_id'),
    settle: oneOf(row, 'settle', ['before_response', 'before_forward']),
    proof:
      transaction === null ? null : { transaction, logIndex: nullableInteger(row, 'settled_log_index'), amount, payer },
    asks: {
      all: integer(row, 'asks'),
      afterLostAnswer: integer(row, 'asks_after_lost_answer'),
      afterFailure: integer(row, 'asks_after_failure'),
      afterUpload: integer(row, 'asks_after_upload'),
      afterDeath: integer(row, 'asks_after_death'),
    },
  };
}

export function stateOf(row: Row): ChargeState {
  return oneOf(row, 'state', CHARGE_STATES);
}

function readSearch(row: Row): Search | null {
  const written = nullableText(row, 'search');
  return written === null ? null : readTexts(written);
}

type Texts = Readonly<Record<string, string>>;

/** What only a rail reads. */
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

function readAnswer(row: Row): KeptAnswer | null {
  if (row['answer_status'] === null) return null;
  const headers: unknown = JSON.parse(text(row, 'answer_headers'));
  if (!Array.isArray(headers) || !headers.every((each) => typeof each === 'string'))
    throw new TypeError('the store holds an answer whose headers are not text');
  return { status: integer(row, 'answer_status'), headers, body: new Uint8Array(bytes(row, 'answer_body')) };
}

function oneOf<T extends string>(row: Row, column: string, known: readonly T[]): T {
  const value = text(row, column);
  const found = known.find((each) => each === value);
  if (found === undefined) throw new TypeError(`the column ${column} of the store holds ${value}`);
  return found;
}

function readValue(row: Row, { wire, column, words }: ChargeRow): unknown {
  switch (column) {
    case 'text':
      return words === undefined ? text(row, wire) : oneOf(row, wire, words);
    case 'nullable text':
      return words === undefined || row[wire] === null ? nullableText(row, wire) : oneOf(row, wire, words);
    case 'integer':
      return integer(row, wire);
    case 'nullable integer':
      return nullableInteger(row, wire);
    case 'flag':
      return integer(row, wire) === 1;
    default:
      return column satisfies never;
  }
}

// Changes of the ledger as rows of a store. They are made on the side that decided, so that what writes has only statements
// left to do. They cross to a thread as JSON.

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
    leaseUntil: before.owner === actor.owner || leavesToOwner(before, after) ? null : before.leaseUntil,
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
