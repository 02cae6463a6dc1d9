// Planted faults of draws: each is a mistake that somebody could make in the books or on the way to them, as a small change around
// the real thing. The rules are worth as much as they find of these.
import { decideClaim } from '../../../../src/domain/payment/claim-policy.ts';
import { LedgerUnavailable } from '../../../../src/domain/payment/ledger.ts';
import { transition } from '../../../../src/domain/payment/transition.ts';
import {
  changeDraws,
  CREDIT_SCALE,
  endLost,
  GIVEN_BACK_AT_MOST,
  type DrawChange,
  type DrawResult,
  type DrawRows,
} from '../../../../src/domain/selling/pass-book.ts';
import type { PassLedger } from '../../../../src/domain/selling/pass-store.ts';
import type { MeteredUse, MeterRequests, PriceLimit } from '../../../../src/gateway/selling/metering.ts';
import { BUYS, type DrawBug } from './draw-process.ts';

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
  'a response that costs nothing takes its price': {
    ledger: ({ change, ...ledger }) => ({
      ...ledger,
      change: (wanted) => change(wanted.kind === 'take' ? { ...wanted, amount: wanted.amount || null } : wanted),
    }),
  },
  'a take that is said again takes all that was reserved': {
    ledger: ({ change, ...ledger }) => {
      const said = new Set<string>();
      return {
        ...ledger,
        change: (wanted) => {
          const isSaidAgain = said.has(wanted.owner);
          if (wanted.kind !== 'take') return change(wanted);
          said.add(wanted.owner);
          return change({ ...wanted, amount: isSaidAgain ? null : wanted.amount });
        },
      };
    },
  },
  'a take that nobody answered is not said again': {
    ledger: ({ change, ...ledger }) => ({
      ...ledger,
      change: (wanted) =>
        change(wanted).catch((error: unknown) => {
          if (wanted.kind === 'take') return made('taken', wanted);
          throw error;
        }),
    }),
  },
  'a take after its response is said twice at most': {
    ledger: ({ change, ...ledger }) => {
      const tries = new Map<string, number>();
      return {
        ...ledger,
        change: async (wanted) => {
          if (wanted.kind !== 'take') return change(wanted);
          const tried = (tries.get(wanted.owner) ?? 0) + 1;
          tries.set(wanted.owner, tried);
          return tried > 2 ? made('taken', wanted) : change(wanted);
        },
      };
    },
  },
  'a take that comes again draws again': rows((given, change) => ({
    ...given,
    draw: (id) => {
      const draw = given.draw(id);
      return change?.kind === 'take' && draw?.state === 'taken' ? { ...draw, state: 'run_out' } : draw;
    },
  })),
  'a take that comes again takes what is missing of it': {
    books: {
      endLost,
      changeDraws: (given, change, now) => {
        const draw = given.draw(change.useId);
        if (change.kind !== 'take' || draw?.state !== 'taken') return changeDraws(given, change, now);
        const missing = (change.amount ?? draw.amount) - draw.amount;
        const view: DrawRows = { ...given, draw: () => ({ ...draw, state: 'forfeited' }) };
        return changeDraws(view, { ...change, amount: missing }, now);
      },
    },
  },
  'the rest of a reservation stays reserved': rows((given, change) => ({
    ...given,
    putBook: (book) => {
      const rest =
        change?.kind === 'take' && change.amount !== null
          ? (given.draw(change.useId)?.amount ?? 0n) - change.amount
          : 0n;
      given.putBook({ ...book, reserved: book.reserved + (rest > 0n ? rest : 0n) });
    },
  })),
  'half of the price is reserved': {
    ledger: ({ change, ...ledger }) => ({
      ...ledger,
      change: (wanted) =>
        change(wanted.kind === 'reserve' && wanted.amount > 1n ? { ...wanted, amount: wanted.amount / 2n } : wanted),
    }),
  },
  'the first use that nobody ends is taken': {
    books: {
      changeDraws,
      endLost: (given, draw, now) => {
        const lost = given.book(draw.passId)?.lost ?? 0;
        const asLast: DrawRows = {
          ...given,
          book: (id) => {
            const book = given.book(id);
            return book && { ...book, lost: GIVEN_BACK_AT_MOST };
          },
          putBook: (book) => given.putBook({ ...book, lost }),
        };
        endLost(asLast, draw, now);
      },
    },
  },
  'the fourth use that nobody ends is taken for nothing': {
    books: {
      changeDraws,
      endLost: (given, draw, now) => {
        endLost(given, draw, now);
        const [book, ended] = [given.book(draw.passId), given.draw(draw.id)];
        if (book === undefined || ended?.state !== 'forfeited') return;
        given.putBook({ ...book, drawn: book.drawn - ended.amount });
        given.putDraw({ ...ended, amount: 0n });
      },
    },
  },
  'what is missing is taken the other way': {
    meter: (hear) => (meter, request) => hear({ ...meter, missing: meter.missing === 'max' ? 'zero' : 'max' }, request),
  },
  'what costs more than its price is not known': metered(({ amount }) => ({
    amount: (limit, end) => {
      const said = amount({ ...limit, price: { ...limit.price, units: limit.price.units * 1_000_000n } }, end);
      return said > unitsOf(limit) ? 0n : said;
    },
  })),
  'what costs more than its price takes that': {
    ...metered(({ amount }) => ({
      amount: (limit, end) => amount({ ...limit, price: { ...limit.price, units: limit.price.units * 2n } }, end),
    })),
    ...rows((given, change) => ({
      ...given,
      draw: (id) => {
        const draw = given.draw(id);
        const amount = change?.kind === 'take' ? change.amount : null;
        return draw && amount !== null && amount > draw.amount ? { ...draw, amount } : draw;
      },
    })),
  },
  'what a response costs is rounded up': metered(({ amount }) => ({
    amount: (limit, end) => {
      const step = 10n ** BigInt(CREDIT_SCALE - 6 + 1);
      const said = amount(limit, end);
      const rounded = ((said + step - 1n) / step) * step;
      return rounded > unitsOf(limit) ? said : rounded;
    },
  })),
  'what a response says is heard for the one after it': {
    meter: (hear) => {
      let before: MeteredUse | undefined;
      return (meter, request) => {
        const use = hear(meter, request);
        const { amount } = before ?? use;
        before = use;
        return { ...use, amount };
      };
    },
  },
  'a response is taken before it has said what it costs': metered(() => ({ head: () => true })),
  'a client that leaves takes what was said with it': metered(({ amount, hearer }) => ({
    amount: (limit, end) => (end?.kind === 'client_gone' && hearer.needs !== 'nothing' ? 0n : amount(limit, end)),
  })),
  'a response that breaks off takes nothing': metered(({ amount }) => ({
    amount: (limit, end) => (end?.kind === 'failed' ? 0n : amount(limit, end)),
  })),
  'the request that buys takes its price under a meter': metered(({ amount }, { requestId }) => ({
    amount: (limit, end) => (requestId === BUYS ? unitsOf(limit) : amount(limit, end)),
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

/** Changes what a metered request does. */
function metered(change: (use: MeteredUse, request: Parameters<MeterRequests>[1]) => Partial<MeteredUse>): DrawBug {
  return {
    meter: (hear) => (meter, request) => {
      const use = hear(meter, request);
      return { ...use, ...change(use, request) };
    },
  };
}

/** The price of a request in the unit of the books. */
function unitsOf({ price: { units, scale } }: PriceLimit): bigint {
  return units * 10n ** BigInt(CREDIT_SCALE - scale);
}

function made(kind: 'reserved' | 'taken', { useId }: DrawChange): DrawResult {
  return { kind, useId, left: 0n, termsId: 'terms', worth: 0n };
}
