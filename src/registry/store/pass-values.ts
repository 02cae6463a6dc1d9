// Passes and draws on them as the columns of a store and back, the same for every kind of store. Column names stand here
// once, in the order in which values are bound. Amounts are decimal digits: they may be larger than a store's integers.
import type { AuditCause } from '../../domain/audit.ts';
import type { Charge } from '../../domain/payment/charge.ts';
import { DRAW_STATES, type BookTerms, type PassBook, type PassDraw } from '../../domain/selling/pass-book.ts';
import { openPass, type KeptPass } from '../../domain/selling/pass-opening.ts';
import type { ListedPass, RevokedPass } from '../../domain/selling/pass-store.ts';
import { PASS_KINDS, PASS_SCOPES, readPassInSale, writePassInSale, type SoldPass } from '../../domain/selling/pass.ts';
import { auditValues, type AuditValues } from './audit-values.ts';
import { integer, nullableInteger, nullableText, text, type Row } from './rows.ts';

type Value = string | number | null;
export type ColumnType = 'text' | 'int8';

/** Columns of a pass, but its number. */
export const PASS_COLUMNS = [
  ...([
    'id',
    'plan',
    'terms_id',
    'kind',
    'scope',
    'route_id',
    'payer',
    'network',
    'amount',
    'currency',
    'terms',
  ] as const),
  ...(['sold', 'drawn', 'reserved', 'uses', 'lost', 'gone', 'sold_at', 'ends_at', 'revoked_at', 'is_used_up'] as const),
] as const;
/** Columns of its books that draws change. */
export const BOOK_COLUMNS = ['drawn', 'reserved', 'uses', 'lost', 'gone', 'is_used_up'] as const;
export const DRAW_COLUMNS = [
  ...(['id', 'pass_id', 'amount', 'state', 'owner', 'lease_until', 'key_sha256', 'method', 'target_sha256'] as const),
  ...(['asks', 'at', 'kept_until'] as const),
] as const;

const NUMBERS: ReadonlySet<string> = new Set([
  ...['uses', 'lost', 'gone', 'sold_at', 'ends_at', 'revoked_at', 'is_used_up'],
  ...['lease_until', 'asks', 'at', 'kept_until'],
]);

/** The type of a column, as a parameter has it. */
export function typeOf(column: string): ColumnType {
  return NUMBERS.has(column) ? 'int8' : 'text';
}

/** A pass that a change of a charge opens. It crosses to a thread as JSON. */
export type PassOpening = {
  readonly pass: readonly Value[];
  /** The use of the request that bought it, if it goes on or may be asked for again. */
  readonly first: readonly Value[] | null;
};

/** The opening that goes with a change of a charge, if this is the change that settled it. */
export function openingOf(before: Charge, after: Charge): PassOpening | null {
  if (before.settledAt !== null || after.settledAt === null) return null;
  const opened = openPass(after);
  if (opened === undefined) return null;
  return { pass: passValues(opened.pass, opened.book), first: opened.first ? drawValues(opened.first) : null };
}

function passValues(pass: SoldPass, book: PassBook): Value[] {
  const { sold, drawn, reserved, uses, lost, left, endsAt, revokedAt } = book;
  return [
    ...[pass.passId, pass.planId, pass.termsId, pass.kind, pass.scope, pass.routeId, pass.payer, pass.network],
    ...[pass.amount, pass.currency, JSON.stringify(writePassInSale(pass))],
    ...[sold.toString(), drawn.toString(), reserved.toString(), uses, lost, left],
    ...[pass.soldAtMs, endsAt, revokedAt, isUsedUp(pass.kind, book)],
  ];
}

/** Values of BOOK_COLUMNS. */
export function bookValues(book: PassBook): Value[] {
  const { drawn, reserved, uses, lost, left, sold } = book;
  return [drawn.toString(), reserved.toString(), uses, lost, left, sold > 0n && drawn >= sold ? 1 : 0];
}

function isUsedUp(kind: SoldPass['kind'], { sold, drawn }: PassBook): number {
  return kind !== 'seconds' && drawn >= sold ? 1 : 0;
}

export function readBook(row: Row): PassBook {
  return {
    id: text(row, 'id'),
    terms: readTerms(row),
    sold: BigInt(text(row, 'sold')),
    drawn: BigInt(text(row, 'drawn')),
    reserved: BigInt(text(row, 'reserved')),
    endsAt: integer(row, 'ends_at'),
    revokedAt: nullableInteger(row, 'revoked_at'),
    uses: integer(row, 'uses'),
    lost: integer(row, 'lost'),
    left: integer(row, 'gone'),
  };
}

function readTerms(row: Row): BookTerms {
  return {
    planId: text(row, 'plan'),
    termsId: text(row, 'terms_id'),
    kind: oneOf(row, 'kind', PASS_KINDS),
    scope: oneOf(row, 'scope', PASS_SCOPES),
    routeId: text(row, 'route_id'),
    amount: text(row, 'amount'),
    currency: text(row, 'currency'),
  };
}

function oneOf<T extends string>(row: Row, column: string, known: readonly T[]): T {
  const written = text(row, column);
  const found = known.find((each) => each === written);
  if (found === undefined) throw new TypeError(`the store holds a pass whose ${column} is ${written}`);
  return found;
}

export function readPass(row: Row): ListedPass {
  return { seq: integer(row, 'seq'), ...readKept(row) };
}

function readKept(row: Row): KeptPass {
  const terms = readPassInSale(JSON.parse(text(row, 'terms')) as Readonly<Record<string, string>>);
  if (terms === undefined) throw new TypeError('the store holds a pass without terms');
  const book = readBook(row);
  const passId = book.id;
  return {
    book,
    pass: {
      ...terms,
      ...{ passId, chargeId: passId.replace(/^pass_/, 'chg_'), routeId: text(row, 'route_id') },
      ...{ payer: text(row, 'payer'), network: text(row, 'network') },
      ...{ soldAtMs: integer(row, 'sold_at'), endsAtMs: book.endsAt },
      ...{ amount: text(row, 'amount'), currency: text(row, 'currency') },
    },
  };
}

/** Entry of the audit log about a pass that is revoked; null: nobody is named. */
export function revocationValues(id: string, at: number, cause: AuditCause | undefined): AuditValues | null {
  if (cause === undefined) return null;
  const revoked = new Date(at).toISOString();
  return auditValues({
    ...{ ...cause, at, kind: 'pass.revoked', subject: id },
    ...{ from: { revoked_at: null }, to: { revoked_at: revoked } },
  });
}

export function readRevoked(row: Row): RevokedPass {
  return { id: text(row, 'id'), revokedAt: integer(row, 'revoked_at'), endsAt: integer(row, 'ends_at') };
}

/** Values of DRAW_COLUMNS. */
export function drawValues({
  id,
  passId,
  amount,
  state,
  owner,
  leaseUntil,
  key,
  asks,
  at,
  keptUntil,
}: PassDraw): Value[] {
  return [
    ...[id, passId, amount.toString(), state, owner, leaseUntil],
    ...[key?.sha256 ?? null, key?.method ?? null, key?.targetSha256 ?? null, asks, at, keptUntil],
  ];
}

export function readDraw(row: Row): PassDraw {
  const state = oneOf(row, 'state', DRAW_STATES);
  const sha256 = nullableText(row, 'key_sha256');
  return {
    id: text(row, 'id'),
    passId: text(row, 'pass_id'),
    amount: BigInt(text(row, 'amount')),
    state,
    owner: text(row, 'owner'),
    leaseUntil: integer(row, 'lease_until'),
    key: sha256 === null ? null : { sha256, method: text(row, 'method'), targetSha256: text(row, 'target_sha256') },
    asks: integer(row, 'asks'),
    at: integer(row, 'at'),
    keptUntil: nullableInteger(row, 'kept_until'),
  };
}
