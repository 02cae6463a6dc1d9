// The books of a pass by uses or credit: what was sold, drawn and reserved, in its own unit, and each draw. Pure: the stores
// keep what stands here, in one durable change. What is left and what has lapsed is never written down: both follow from the
// rest, so that sold = drawn + left + reserved + lapsed holds at every moment. A use is reserved before its request goes on,
// and taken before the client hears of its answer: no more is delivered than was bought.
import { parsePrice, toAtomic } from '../payment/money.ts';

/** Decimals of a currency in the books of a pass by credit: a price has no more, so that every price is a whole number. */
export const CREDIT_SCALE = 18;

/** Amount of a currency in the unit of books by credit. */
export function creditUnits(amount: string): bigint {
  const price = parsePrice(amount);
  return (price && toAtomic(price, CREDIT_SCALE)) ?? 0n;
}

/** What a draw has to know of the terms of a pass. */
export type BookTerms = {
  readonly planId: string;
  /** Id of the terms in their plan. */
  readonly termsId: string;
  readonly kind: 'seconds' | 'uses' | 'credit';
  readonly scope: 'plan' | 'route';
  /** The route that it was bought on. */
  readonly routeId: string;
  /** Price of the sale. */
  readonly amount: string;
  readonly currency: string;
};

/** What a pass by uses or credit holds. Amounts are uses, or a currency's units of 10^-18. Times are milliseconds since the epoch. */
export type PassBook = {
  readonly id: string;
  readonly terms: BookTerms;
  readonly sold: bigint;
  readonly drawn: bigint;
  readonly reserved: bigint;
  readonly endsAt: number;
  /** Time from which nothing is drawn any more, though the end has not come; null: it is good. */
  readonly revokedAt: number | null;
  /** Number of draws that were taken. */
  readonly uses: number;
  /** Reservations that were given back because nobody ended them. */
  readonly lost: number;
  /** Reservations that were given back because the client went before the status line. */
  readonly left: number;
};

/** An `Idempotency-Key`: requests with the same one draw once. Both digests are SHA-256 in lower-case hex. */
export type DrawKey = { readonly sha256: string; readonly method: string; readonly targetSha256: string };

/** The key of a request, and what it stands for. */
export type AskedKey = DrawKey & {
  /** Time for which it stands for its first request, at most DRAW_KEY_MS, which it is if left out. */
  readonly forMs?: number | undefined;
  /** Times that the upstream is asked for it, the first one included; ASKS_OF_A_KEY if left out. */
  readonly asks?: number | undefined;
};

/** A draw on a pass, from its reservation on. */
export type PassDraw = {
  /** The id of the use, which the upstream is told. */
  readonly id: string;
  readonly passId: string;
  /** Amount that is reserved; of a draw that was taken the one that was taken. */
  readonly amount: bigint;
  readonly state: (typeof DRAW_STATES)[number];
  /** The request that works on it, or did last (`ownerOf`). */
  readonly owner: string;
  readonly leaseUntil: number;
  readonly key: DrawKey | null;
  /** Number of times that the upstream was asked for it. */
  readonly asks: number;
  /** Time from which its key counts DRAW_KEY_MS: its first reservation, or earlier if the key stands for less. */
  readonly at: number;
  /** Time until which a store keeps it; null while it is reserved. */
  readonly keptUntil: number | null;
};

/**
 * States of a draw. Nobody ended these in time: `run_out` was given back, and its owner may still take it; `forfeited` counts
 * as drawn, because that had happened too often, and its owner may still give it back, until its key is asked for again.
 */
export const DRAW_STATES = ['reserved', 'taken', 'given_back', 'run_out', 'forfeited'] as const;

/**
 * Why a reservation is given back. `left`: the client went before the status line; `unasked`: nothing was sent upstream;
 * `unheard`: the ledger did not say that it was taken, so that the client was refused. That one also undoes a take.
 */
export const GIVE_BACK_REASONS = ['not_charged', 'left', 'unasked', 'unheard'] as const;

/** A change of a pass's books. One that is sent again is the same change: it names its owner. */
export type DrawChange = { readonly passId: string; readonly useId: string; readonly owner: string } & (
  | {
      readonly kind: 'reserve';
      readonly amount: bigint;
      readonly leaseMs: number;
      readonly key: AskedKey | null;
      /** What is asked for: of another plan, route, kind or currency the pass is no good. */
      readonly of: Pick<BookTerms, 'planId' | 'routeId' | 'kind' | 'currency'>;
    }
  /** `amount`: what is taken of the reservation, the rest is given back; null: all of it. */
  | { readonly kind: 'take'; readonly amount: bigint | null }
  /** `keySha256`: the key that it was reserved under, if the ledger never told the id that the use has. */
  | {
      readonly kind: 'give_back';
      readonly because: (typeof GIVE_BACK_REASONS)[number];
      readonly keySha256?: string | undefined;
    }
);

export const DRAW_REFUSALS = [
  'in_use',
  'used_up',
  'unknown',
  'expired',
  'revoked',
  'scope',
  'conflict',
  'lost',
] as const;
export const DRAW_ENDS = ['reserved', 'repeated', 'taken', 'given_back'] as const;

export type DrawResult =
  /**
   * `left`: what may be drawn still. `useId`: the id that the use has from now on. `repeated`: it was drawn before, and the
   * upstream may be asked again.
   */
  | {
      readonly kind: (typeof DRAW_ENDS)[number];
      readonly useId: string;
      readonly left: bigint;
      /** Id of the terms in their plan. */
      readonly termsId: string;
      /** What the sale's price comes to for the amount that was taken, in units of 10^-18 of its currency; 0 unless `taken`. */
      readonly worth: bigint;
    }
  /**
   * `in_use`: too little is left while others are reserved, or the same key is being worked on; `conflict`: the key stands for
   * another request, or was used too often; `lost`: the use is not the caller's any more.
   */
  | { readonly kind: (typeof DRAW_REFUSALS)[number] };

/** Time for which a key stands for its first request. */
export const DRAW_KEY_MS = 24 * 3_600_000;
/** Times that the upstream is asked for one key: once, and three times again. */
export const ASKS_OF_A_KEY = 4;
/** Reservations of a pass that are given back though their answer may have been had, of each reason. */
export const GIVEN_BACK_AT_MOST = 3;
/** Time for which a draw is known after its end: a change that is sent again finds it. */
export const DRAWS_KEPT_MS = 120_000;

/** What stands in a store, and what a change writes there: all in one transaction. */
export type DrawRows = {
  readonly book: (passId: string) => PassBook | undefined;
  readonly draw: (useId: string) => PassDraw | undefined;
  readonly drawByKey: (passId: string, keySha256: string) => PassDraw | undefined;
  /** Lists reserved draws of a pass whose lease ran out. */
  readonly lost: (passId: string, now: number) => readonly PassDraw[];
  readonly putBook: (book: PassBook) => void;
  /** Writes a draw over one of the same id. */
  readonly putDraw: (draw: PassDraw) => void;
  readonly dropDraw: (useId: string) => void;
};

/** Amount that may still be drawn, and amount that nobody can draw any more, at `now`. */
export function standingOfBook(
  { sold, drawn, reserved, endsAt, revokedAt }: PassBook,
  now: number,
): { readonly left: bigint; readonly lapsed: bigint } {
  const rest = sold - drawn - reserved;
  return revokedAt !== null || now >= endsAt ? { left: 0n, lapsed: rest } : { left: rest, lapsed: 0n };
}

/** Makes one change, and answers it as before if it was made already. */
export function changeDraws(rows: DrawRows, change: DrawChange, now: number): DrawResult {
  const book = rows.book(change.passId);
  if (book === undefined) return { kind: 'unknown' };
  switch (change.kind) {
    case 'reserve':
      return reserve(rows, book, change, now);
    case 'take':
      return take(rows, book, change, now);
    case 'give_back':
      return giveBack(rows, book, change, now);
    default:
      return change satisfies never;
  }
}

/** Ends a reservation whose lease ran out without a word: given back three times a pass, then taken. */
export function endLost(rows: DrawRows, draw: PassDraw, now: number): void {
  const book = rows.book(draw.passId);
  if (book === undefined) rows.dropDraw(draw.id);
  else if (isLost(draw, now)) endUnanswered(rows, book, draw, { because: 'lost', now });
}

function isLost({ state, leaseUntil }: PassDraw, now: number): boolean {
  return state === 'reserved' && leaseUntil <= now;
}

type Of<K extends DrawChange['kind']> = Extract<DrawChange, { kind: K }>;

function reserve(rows: DrawRows, given: PassBook, change: Of<'reserve'>, now: number): DrawResult {
  if (!isFor(given.terms, change.of)) return { kind: 'scope' };
  if (given.revokedAt !== null) return { kind: 'revoked' };
  if (now >= given.endsAt) return { kind: 'expired' };
  const own = rows.draw(change.useId);
  // It arrived late: its request gave it up, or another one has it.
  if (own !== undefined && (own.owner !== change.owner || isBack(own))) return { kind: 'lost' };
  const known = own ?? (change.key === null ? undefined : rows.drawByKey(given.id, change.key.sha256));
  if (known === undefined) return open(rows, given, change, now, undefined);
  if (known.owner === givenUpBy(change.owner) || (known.owner === change.owner && isBack(known)))
    return { kind: 'lost' };
  if (known.owner === change.owner)
    return done(known.state === 'reserved' ? 'reserved' : 'repeated', known.id, given, now);
  if (known.state === 'reserved' && known.leaseUntil > now) return { kind: 'in_use' };
  if (isLost(known, now)) endLost(rows, known, now);
  const book = rows.book(given.id) ?? given;
  const draw = rows.draw(known.id) ?? known;
  const { key } = change;
  if (key === null || draw.key === null) return { kind: 'lost' };
  if (now - draw.at >= DRAW_KEY_MS) {
    rows.dropDraw(draw.id);
    return open(rows, book, change, now, undefined);
  }
  const isSame = draw.key.method === key.method && draw.key.targetSha256 === key.targetSha256;
  if (!isSame || draw.asks >= (key.asks ?? ASKS_OF_A_KEY)) return { kind: 'conflict' };
  if (isBack(draw)) return open(rows, book, change, now, draw);
  // From here on its answer may be had again and again: no request of the key gives it back.
  rows.putDraw({ ...draw, state: 'taken', owner: change.owner, asks: draw.asks + 1 });
  return done('repeated', draw.id, book, now);
}

function isFor(terms: BookTerms, of: Of<'reserve'>['of']): boolean {
  if (terms.planId !== of.planId || terms.kind !== of.kind) return false;
  if (terms.scope === 'route' && terms.routeId !== of.routeId) return false;
  return terms.kind !== 'credit' || terms.currency === of.currency;
}

/** Owner of a draw whose request sent nothing upstream: what that request still says comes late. */
function givenUpBy(owner: string): string {
  return `-${owner}`;
}

function isBack({ state }: PassDraw): boolean {
  return state === 'given_back' || state === 'run_out';
}

/** Reserves a use; `again`: one of the same key, which was given back. */
function open(
  rows: DrawRows,
  given: PassBook,
  change: Of<'reserve'>,
  now: number,
  again: PassDraw | undefined,
): DrawResult {
  const { amount, owner, leaseMs, key } = change;
  let book = given;
  if (standingOfBook(book, now).left < amount && book.reserved > 0n) {
    for (const lost of rows.lost(book.id, now)) endLost(rows, lost, now);
    book = rows.book(book.id) ?? book;
  }
  const { left } = standingOfBook(book, now);
  if (left < amount) return { kind: left + book.reserved < amount ? 'used_up' : 'in_use' };
  const id = again?.id ?? change.useId;
  const next = { ...book, reserved: book.reserved + amount };
  const asks = (again?.asks ?? 0) + 1;
  const at = again?.at ?? now - DRAW_KEY_MS + (key?.forMs ?? DRAW_KEY_MS);
  rows.putBook(next);
  rows.putDraw({
    ...{ id, passId: book.id, amount, owner, key, asks, at },
    ...{ state: 'reserved', leaseUntil: now + leaseMs, keptUntil: null },
  });
  return done('reserved', id, next, now);
}

function take(rows: DrawRows, book: PassBook, { useId, owner, amount }: Of<'take'>, now: number): DrawResult {
  const draw = rows.draw(useId);
  if (draw === undefined || draw.passId !== book.id || draw.owner !== owner) return { kind: 'lost' };
  if (draw.state === 'taken')
    return done('taken', useId, book, now, worthOf(book, book.drawn - draw.amount, book.drawn));
  // Its request gave it back, and this word comes late.
  if (draw.state === 'given_back') return { kind: 'lost' };
  const wanted = amount === null || amount > draw.amount ? draw.amount : amount;
  // The lease ran out, and the use was given back: it is taken all the same if nobody else has it.
  if (draw.state === 'run_out' && standingOfBook(book, now).left < wanted) return { kind: 'lost' };
  const before = withoutDraw(book, draw);
  const next = { ...before, drawn: before.drawn + wanted, uses: before.uses + 1 };
  rows.putBook(next);
  rows.putDraw(endedDraw({ ...draw, amount: wanted }, 'taken', now));
  return done('taken', useId, next, now, worthOf(book, before.drawn, next.drawn));
}

/** The books as they are without a draw. */
function withoutDraw(book: PassBook, { state, amount }: PassDraw): PassBook {
  switch (state) {
    case 'reserved':
      return { ...book, reserved: book.reserved - amount };
    case 'taken':
    case 'forfeited':
      return { ...book, drawn: book.drawn - amount, uses: book.uses - 1 };
    case 'given_back':
    case 'run_out':
      return book;
    default:
      return state satisfies never;
  }
}

/** Part of the sale's price between two sums of what was drawn: all parts together are the price, to the last unit. */
function worthOf({ sold, terms }: PassBook, before: bigint, after: bigint): bigint {
  const price = creditUnits(terms.amount);
  return sold === 0n ? 0n : (price * after) / sold - (price * before) / sold;
}

function giveBack(rows: DrawRows, book: PassBook, change: Of<'give_back'>, now: number): DrawResult {
  const { useId, owner, because } = change;
  const own = rows.draw(useId);
  const draw = own ?? heldByKey(rows, change);
  // A reservation that is still on its way finds that it was given up.
  if (own === undefined) rows.putDraw(givenUp(change, now));
  if (draw === undefined) return done('given_back', useId, book, now);
  if (draw.passId !== book.id || draw.owner !== owner) return { kind: 'lost' };
  // An ask that never left counts for nothing. The next request with the key is another owner, so it is not undone twice.
  const given = because === 'unasked' ? { ...draw, asks: Math.max(0, draw.asks - 1), owner: givenUpBy(owner) } : draw;
  switch (draw.state) {
    case 'reserved': {
      const ended = endUnanswered(rows, book, given, { because, now });
      return done(ended.state === 'taken' ? 'taken' : 'given_back', draw.id, rows.book(book.id) ?? book, now);
    }
    case 'taken':
    case 'forfeited': {
      const isUndone = because === 'unheard' || (draw.state === 'forfeited' && because !== 'left');
      if (!isUndone) {
        rows.putDraw({ ...given, state: 'taken' });
        return done('taken', draw.id, book, now);
      }
      const before = withoutDraw(book, draw);
      rows.putBook(before);
      rows.putDraw(endedDraw(given, 'given_back', now));
      return done('given_back', draw.id, before, now);
    }
    case 'run_out':
    case 'given_back':
      rows.putDraw({ ...given, state: 'given_back' });
      return done('given_back', draw.id, book, now);
    default:
      return draw.state satisfies never;
  }
}

/** The draw that a request has under its key, though it was never told so. */
function heldByKey(rows: DrawRows, { passId, owner, keySha256 }: Of<'give_back'>): PassDraw | undefined {
  const draw = keySha256 === undefined ? undefined : rows.drawByKey(passId, keySha256);
  return draw?.owner === owner ? draw : undefined;
}

function givenUp({ passId, useId: id, owner }: Of<'give_back'>, now: number): PassDraw {
  const nothing = { amount: 0n, key: null, asks: 0, leaseUntil: now, keptUntil: now + DRAWS_KEPT_MS } as const;
  return { id, passId, owner, state: 'given_back', at: now, ...nothing };
}

/** Ends a reservation whose answer nobody was sent, as far as is known. */
function endUnanswered(
  rows: DrawRows,
  book: PassBook,
  draw: PassDraw,
  { because, now }: { readonly because: 'lost' | Of<'give_back'>['because']; readonly now: number },
): PassDraw {
  const counter = because === 'lost' || because === 'left' ? because : undefined;
  const isTaken = counter !== undefined && book[counter] >= GIVEN_BACK_AT_MOST;
  const isLate = because === 'lost';
  const ended = endedDraw(draw, isTaken ? (isLate ? 'forfeited' : 'taken') : isLate ? 'run_out' : 'given_back', now);
  const before = withoutDraw(book, draw);
  if (isTaken) rows.putBook({ ...before, drawn: book.drawn + draw.amount, uses: book.uses + 1 });
  else rows.putBook({ ...before, ...(counter === undefined ? {} : { [counter]: book[counter] + 1 }) });
  rows.putDraw(ended);
  return ended;
}

function endedDraw(draw: PassDraw, state: Exclude<PassDraw['state'], 'reserved'>, now: number): PassDraw {
  const keptUntil = Math.max(now + DRAWS_KEPT_MS, draw.key === null ? 0 : draw.at + DRAW_KEY_MS);
  return { ...draw, state, leaseUntil: Math.min(draw.leaseUntil, now), keptUntil };
}

function done(
  kind: (typeof DRAW_ENDS)[number],
  useId: string,
  book: PassBook,
  now: number,
  worth = 0n,
): Extract<DrawResult, { readonly useId: string }> {
  return { kind, useId, left: standingOfBook(book, now).left, termsId: book.terms.termsId, worth };
}
