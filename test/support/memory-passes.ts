// Passes in memory, by the same rules as those of the stores.
import type { Charge } from '../../src/domain/payment/charge.ts';
import {
  changeDraws,
  creditUnits,
  endLost,
  standingOfBook,
  type DrawRows,
  type PassBook,
  type PassDraw,
} from '../../src/domain/selling/pass-book.ts';
import { openPass } from '../../src/domain/selling/pass-opening.ts';
import type { ListedPass, PassStore } from '../../src/domain/selling/pass-store.ts';
import { passIdOf, type SoldPass } from '../../src/domain/selling/pass.ts';

export type MemoryPasses = PassStore & {
  /** Opens the pass of a charge that is settled for the first time. */
  readonly opened: (before: Charge, after: Charge) => void;
  /** Passes of a payer and plan that are good. */
  readonly good: (payer: string, plan: string) => number;
  readonly endRun: (run: string) => void;
  readonly books: () => readonly PassBook[];
  readonly draws: () => readonly PassDraw[];
};

/** Rules that decide draws. */
export type PassRules = { readonly changeDraws: typeof changeDraws; readonly endLost: typeof endLost };
const PASS_RULES: PassRules = { changeDraws, endLost };

/** `rules` decide; the simulation plants faults there. */
export function createMemoryPasses(now: () => number, rules: PassRules = PASS_RULES, run = 'memory'): MemoryPasses {
  const passes: SoldPass[] = [];
  const books = new Map<string, PassBook>();
  const draws = new Map<string, PassDraw>();
  const lost = (at: number): PassDraw[] =>
    [...draws.values()].filter(({ state, leaseUntil }) => state === 'reserved' && leaseUntil <= at);
  const rows: DrawRows = {
    book: (id) => books.get(id),
    draw: (id) => draws.get(id),
    drawByKey: (passId, sha256) => draws.values().find((each) => each.passId === passId && each.key?.sha256 === sha256),
    lost: (passId, at) => lost(at).filter((each) => each.passId === passId),
    putBook: (book) => void books.set(book.id, book),
    putDraw: (draw) => void draws.set(draw.id, draw),
    dropDraw: (id) => void draws.delete(id),
  };
  const listed = (): ListedPass[] =>
    passes.flatMap((pass, index) => {
      const book = books.get(pass.passId);
      return book === undefined ? [] : [{ pass, book, seq: index + 1 }];
    });
  const isLive = ({ pass, book }: ListedPass): boolean =>
    book.revokedAt === null && book.endsAt > now() && (pass.kind === 'seconds' || book.drawn < book.sold);
  return {
    run,
    books: () => [...books.values()],
    draws: () => [...draws.values()],
    opened: (before, after) => {
      const sold = books.get(passIdOf(after.id));
      if (sold !== undefined && before.refundedAt === null && after.refundedAt !== null)
        books.set(sold.id, { ...sold, revokedAt: sold.revokedAt ?? after.refundedAt });
      if (before.settledAt !== null || after.settledAt === null) return;
      const opened = openPass(after);
      if (opened === undefined) return;
      passes.push(opened.pass);
      books.set(opened.book.id, opened.book);
      if (opened.first !== undefined) draws.set(opened.first.id, opened.first);
    },
    good: (payer, plan) =>
      listed().filter((each) => each.pass.payer === payer && each.pass.planId === plan && isLive(each)).length,
    endRun: (gone) => {
      for (const draw of draws.values())
        if (draw.state === 'reserved' && draw.owner.startsWith(`${gone}/`) && draw.leaseUntil > now())
          draws.set(draw.id, { ...draw, leaseUntil: now() });
    },
    change: async (change) => rules.changeDraws(rows, change, now()),
    renew: async (owner, ids, leaseMs) =>
      ids.filter((id) => {
        const draw = draws.get(id);
        if (draw?.state !== 'reserved' || !draw.owner.startsWith(`${owner}/`)) return false;
        draws.set(id, { ...draw, leaseUntil: now() + leaseMs });
        return true;
      }),
    ofPayer: async (payer) =>
      listed()
        .filter(({ pass, book }) => pass.payer === payer && book.endsAt > now() && book.revokedAt === null)
        .toSorted((a, b) => Number(isLive(b)) - Number(isLive(a)) || a.book.endsAt - b.book.endsAt),
    revoked: async (after, limit) =>
      listed()
        .flatMap(({ book: { id, revokedAt, endsAt } }) => (revokedAt === null ? [] : [{ id, revokedAt, endsAt }]))
        .filter(({ revokedAt, endsAt }) => revokedAt > after && endsAt > now())
        .toSorted((a, b) => a.revokedAt - b.revokedAt)
        .slice(0, limit),
    list: async ({ plan, terms, payer, live, before = Infinity, limit }) =>
      listed()
        .filter(
          (each) =>
            (plan === undefined || each.pass.planId === plan) &&
            (terms === undefined || each.pass.termsId === terms) &&
            (payer === undefined || each.pass.payer === payer) &&
            (live === undefined || isLive(each) === live) &&
            each.seq < before,
        )
        .toReversed()
        .slice(0, limit),
    get: async (id) => listed().find(({ book }) => book.id === id),
    revoke: async (id) => {
      const book = books.get(id);
      if (book !== undefined) books.set(id, { ...book, revokedAt: book.revokedAt ?? now() });
      return listed().find((each) => each.book.id === id);
    },
    outstanding: async () => {
      const sums = new Map<string, bigint>();
      for (const { pass, book } of listed()) {
        if (book.sold === 0n || standingOfBook(book, now()).left + book.reserved === 0n) continue;
        const rest = (creditUnits(pass.amount) * (book.sold - book.drawn)) / book.sold;
        sums.set(pass.currency, (sums.get(pass.currency) ?? 0n) + rest);
      }
      return [...sums].map(([currency, units]) => ({ currency, units }));
    },
    endLost: async (limit) => {
      const found = lost(now()).slice(0, limit);
      for (const draw of found) rules.endLost(rows, draw, now());
      return found.length === limit;
    },
  };
}
