// The books of a pass under any order of changes: sold = drawn + left + reserved + lapsed at every moment, and nobody has more
// than was bought.
import { expect, test } from 'vitest';
import {
  GIVEN_BACK_AT_MOST,
  changeDraws,
  endLost,
  standingOfBook,
  type DrawChange,
  type DrawRows,
  type PassBook,
  type PassDraw,
} from '../../src/domain/selling/pass-book.ts';
import { createRng } from '../support/random.ts';

const END = 1_000_000;
const OF = { planId: 'p', routeId: 'r', kind: 'uses', currency: 'USD' } as const;

type Model = { readonly rows: DrawRows; readonly books: Map<string, PassBook>; readonly draws: Map<string, PassDraw> };

function openModel(sold: bigint): Model {
  const books = new Map<string, PassBook>();
  const draws = new Map<string, PassDraw>();
  const empty = { drawn: 0n, reserved: 0n, endsAt: END, revokedAt: null, uses: 0, lost: 0, left: 0 };
  const terms = { ...OF, termsId: 't', scope: 'plan', amount: '1.00' } as const;
  books.set('pass_a', { id: 'pass_a', terms, sold, ...empty });
  const rows: DrawRows = {
    book: (id) => books.get(id),
    draw: (id) => draws.get(id),
    drawByKey: (_passId, sha256) => draws.values().find(({ key }) => key?.sha256 === sha256),
    lost: (_passId, now) =>
      [...draws.values()].filter(({ state, leaseUntil }) => state === 'reserved' && leaseUntil <= now),
    putBook: (book) => void books.set(book.id, book),
    putDraw: (draw) => void draws.set(draw.id, draw),
    dropDraw: (id) => void draws.delete(id),
  };
  return { rows, books, draws };
}

test('behaviour: whatever draws on a pass in whatever order, its sum holds, and what is taken is no more than was sold', () => {
  for (let seed = 1; seed <= 150; seed++) {
    const { int: below } = createRng(seed, 0);
    const sold = BigInt(1 + below(8));
    const { rows, books, draws } = openModel(sold);
    const wanted: DrawChange[] = [];
    let now = 0;
    for (let step = 0; step < 60; step++) {
      now += below(4);
      if (below(200) === 0) now = END;
      const kind = below(8);
      const [some] = [wanted[below(wanted.length)]];
      const name = { passId: 'pass_a', useId: `use_${step}`, owner: `run/${step}` };
      if (kind < 4 || some === undefined) {
        const key = below(3) === 0 ? { sha256: `k${below(3)}`, method: 'GET', targetSha256: `t${below(2)}` } : null;
        const change: DrawChange = {
          ...name,
          kind: 'reserve',
          amount: BigInt(1 + below(3)),
          leaseMs: below(6),
          key,
          of: OF,
        };
        const before = books.get('pass_a');
        const result = changeDraws(rows, change, now);
        if ('useId' in result) wanted.push({ ...change, useId: result.useId });
        // What is refused changes no sum but that of lost reservations.
        else expect(books.get('pass_a')?.uses ?? 0).toBeGreaterThanOrEqual(before?.uses ?? 0);
      } else if (kind === 4) for (const draw of rows.lost('pass_a', now)) endLost(rows, draw, now);
      else {
        const { useId, owner } = some;
        const amount = below(2) === 0 ? null : BigInt(below(3));
        const because = (['not_charged', 'left', 'unasked', 'unheard'] as const)[below(4)] ?? 'left';
        const change: DrawChange =
          kind < 7
            ? { kind: 'take', passId: 'pass_a', useId, owner, amount }
            : { kind: 'give_back', passId: 'pass_a', useId, owner, because };
        const first = changeDraws(rows, change, now);
        const between = books.get('pass_a');
        // Said again, it changes nothing. An ask that never left has no owner any more.
        const again = changeDraws(rows, change, now);
        expect(again).toEqual(change.kind === 'give_back' && because === 'unasked' ? { kind: 'lost' } : first);
        expect(books.get('pass_a')).toEqual(between);
      }
      const book = books.get('pass_a');
      if (book === undefined) throw new Error('the pass is gone');
      const { left, lapsed } = standingOfBook(book, now);
      expect(book.drawn + left + book.reserved + lapsed).toBe(sold);
      for (const part of [book.drawn, left, book.reserved, lapsed]) expect(part >= 0n).toBe(true);
      const sum = (...states: PassDraw['state'][]): bigint =>
        [...draws.values()].reduce((total, draw) => total + (states.includes(draw.state) ? draw.amount : 0n), 0n);
      expect(sum('reserved')).toBe(book.reserved);
      expect(sum('taken', 'forfeited')).toBe(book.drawn);
      expect(Math.max(book.lost, book.left)).toBeLessThanOrEqual(GIVEN_BACK_AT_MOST);
    }
  }
});

test('attack: a use that was lost once too often, and whose answer its key had since, is not given back by a request that fails', () => {
  const { rows, books } = openModel(10n);
  const key = { sha256: 'k', method: 'GET', targetSha256: 't' };
  const ask = (n: number, keyed: typeof key | null, now: number): string => {
    const name = { passId: 'pass_a', useId: `use_${n}`, owner: `run/${n}` };
    return changeDraws(rows, { ...name, kind: 'reserve', amount: 1n, leaseMs: 10, key: keyed, of: OF }, now).kind;
  };
  const LAST = GIVEN_BACK_AT_MOST + 1;
  for (let n = 1; n <= LAST; n++) {
    expect(ask(n, n === LAST ? key : null, n * 100)).toBe('reserved');
    for (const draw of rows.lost('pass_a', n * 100 + 10)) endLost(rows, draw, n * 100 + 10);
  }
  expect(books.get('pass_a')).toMatchObject({ drawn: 1n, lost: GIVEN_BACK_AT_MOST });
  expect(ask(7, key, 1_000)).toBe('repeated');
  expect(ask(8, key, 1_001)).toBe('repeated');
  const failed = { passId: 'pass_a', useId: `use_${LAST}`, owner: 'run/8', kind: 'give_back' } as const;
  for (const because of ['not_charged', 'unasked'] as const)
    expect(changeDraws(rows, { ...failed, because }, 1_002)).toMatchObject({ kind: 'taken' });
  expect(books.get('pass_a')).toMatchObject({ drawn: 1n, reserved: 0n, uses: 1 });
});
