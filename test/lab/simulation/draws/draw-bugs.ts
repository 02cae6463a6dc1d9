// Planted faults of draws: each is a mistake that somebody could make in the books or on the way to them, as a small change around
// the real thing. The rules are worth as much as they find of these.
import { decideClaim } from '../../../../src/domain/payment/claim-policy.ts';
import { LedgerUnavailable } from '../../../../src/domain/payment/ledger.ts';
import { transition } from '../../../../src/domain/payment/transition.ts';
import {
  changeDraws,
  endLost,
  type DrawChange,
  type DrawResult,
  type DrawRows,
} from '../../../../src/domain/selling/pass-book.ts';
import type { PassLedger } from '../../../../src/domain/selling/pass-store.ts';
import type { DrawBug } from './draw-process.ts';

export const DRAW_BUGS: Readonly<Record<string, DrawBug>> = {
  'what is left of a pass is not looked at': rows((given) => ({
    ...given,
    book: (id) => {
      const book = given.book(id);
      return book && { ...book, sold: book.sold + 1_000_000_000_000_000_000n };
    },
    putBook: (book) => given.putBook({ ...book, sold: book.sold - 1_000_000_000_000_000_000n }),
  })),
  'an answer goes out before its use is taken': {
    ledger: ({ change, ...ledger }, { scheduler, actor }) => ({
      ...ledger,
      change: async (wanted) => {
        if (wanted.kind !== 'take') return change(wanted);
        void change(wanted).catch(() => undefined);
        await scheduler.point(actor, 'goes on before the use is taken');
        return made('taken', wanted);
      },
    }),
  },
  'a take that nobody heard of stays': {
    books: {
      endLost,
      changeDraws: (given, change, now) =>
        changeDraws(given, change.kind === 'give_back' ? { ...change, because: 'not_charged' } : change, now),
    },
  },
  'a take that was heard is undone': {
    ledger: ({ change, ...ledger }) => ({
      ...ledger,
      change: async (wanted) => {
        const result = await change(wanted);
        const { passId, useId, owner } = wanted;
        if (wanted.kind === 'take')
          void change({ passId, useId, owner, kind: 'give_back', because: 'unheard' }).catch(() => undefined);
        return result;
      },
    }),
  },
  'a reservation that was given up is made when it arrives': rows((given) => ({
    ...given,
    putDraw: (draw) => (draw.amount === 0n ? undefined : given.putDraw(draw)),
  })),
  'a late take takes what was given back': rows((given, change) => ({
    ...given,
    draw: (id) => {
      const draw = given.draw(id);
      return change?.kind === 'take' && draw?.state === 'given_back' ? { ...draw, state: 'run_out' } : draw;
    },
  })),
  'what nobody ends stays reserved': { books: { changeDraws, endLost: () => undefined } },
  'what nobody ends is given back for ever': rows((given) => {
    const lost = (id: string): number => given.book(id)?.lost ?? 0;
    return {
      ...given,
      book: (id) => {
        const book = given.book(id);
        return book && { ...book, lost: 0 };
      },
      putBook: (book) => given.putBook({ ...book, lost: lost(book.id) + book.lost }),
    };
  }),
  'a ledger that does not answer says that a pass is used up': unanswered(() => ({ kind: 'used_up' })),
  'a ledger that does not answer lets a request pass': unanswered((wanted) => made('reserved', wanted)),
  'a key draws for each of its requests': rows((given) => ({ ...given, drawByKey: () => undefined })),
  'a pass is drawn on after it was revoked': rows((given) => ({
    ...given,
    book: (id) => {
      const book = given.book(id);
      return book && { ...book, revokedAt: null };
    },
    putBook: (book) => given.putBook({ ...book, revokedAt: given.book(book.id)?.revokedAt ?? null }),
  })),
  'a pass is drawn on after its end': rows((given) => ({
    ...given,
    book: (id) => {
      const book = given.book(id);
      return book && { ...book, endsAt: Infinity };
    },
    putBook: (book) => given.putBook({ ...book, endsAt: given.book(book.id)?.endsAt ?? 0 }),
  })),
  'asks of a key are not counted': rows((given) => ({
    ...given,
    putDraw: (draw) => given.putDraw({ ...draw, asks: Math.min(1, draw.asks) }),
  })),
  'leases of uses are not renewed': { ledger: (ledger) => ({ ...ledger, renew: async () => [] }) },
  'a take forgets to draw': rows((given) => ({
    ...given,
    putBook: (book) => given.putBook({ ...book, drawn: given.book(book.id)?.drawn ?? 0n }),
  })),
  'what is given back is gone': rows((given, change) => ({
    ...given,
    putBook: (book) =>
      given.putBook(
        change?.kind === 'give_back'
          ? { ...book, drawn: given.book(book.id)?.drawn ?? 0n, reserved: given.book(book.id)?.reserved ?? 0n }
          : book,
      ),
  })),
  'a pass of which a use ran out is not found any more': rows((given, change) => ({
    ...given,
    book: (id) => {
      const book = given.book(id);
      return change?.kind === 'reserve' && book !== undefined && book.lost > 0 ? undefined : book;
    },
  })),
  'a pass that was refunded stays good': {
    charges: {
      decideClaim,
      transition: (charge, event, actor, now) => {
        const next = transition(charge, event, actor, now);
        return next.ok && event.kind === 'refunded' ? { ok: true, charge: { ...next.charge, refundedAt: null } } : next;
      },
    },
  },
};

/** Puts other rows before the rules. `change`: undefined where a lease ran out. */
function rows(around: (given: DrawRows, change: DrawChange | undefined) => DrawRows): DrawBug {
  return {
    books: {
      changeDraws: (given, change, now) => changeDraws(around(given, change), change, now),
      endLost: (given, draw, now) => endLost(around(given, undefined), draw, now),
    },
  };
}

/** Has an answer of its own to a reservation that the ledger does not answer. */
function unanswered(answer: (wanted: DrawChange) => DrawResult): DrawBug {
  return {
    ledger: ({ change, ...ledger }): PassLedger => ({
      ...ledger,
      change: async (wanted) => {
        try {
          return await change(wanted);
        } catch (error) {
          if (!(error instanceof LedgerUnavailable) || wanted.kind !== 'reserve') throw error;
          return answer(wanted);
        }
      },
    }),
  };
}

function made(kind: 'reserved' | 'taken', { useId }: DrawChange): DrawResult {
  return { kind, useId, left: 0n, termsId: 'terms', worth: 0n };
}
