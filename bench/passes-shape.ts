// What `node bench/passes.ts` fills a store with: a million passes of a quarter as many payers, nine of ten of one plan; some ended,
// used up or revoked; and draws on them, of which some are due. One text of SQL for both kinds of store makes the values from a
// number `n`.
import type { Store } from '../src/registry/store/ports.ts';

export const PASSES = 1_000_000;
export const PAYERS = PASSES / 4;
export const DRAWS_MADE = 200_000;
/** The first has nearly all passes, the last very few. */
export const PLANS = ['common', 'some', 'rare'] as const;
/** Numbers of passes by uses of the first plan from and to which all can be drawn on, and of one with uses for all. */
export const OPEN = [900_000, 999_000] as const;
export const HOT = 999_999;

const DAY_MS = 86_400_000;

export type FilledPasses = { readonly store: Store; readonly close: () => Promise<void> };

/** Columns of a pass and their values for the number `n`, in either SQL; `text` casts to text. */
export function passColumns(now: number, text: (sql: string) => string): readonly (readonly [string, string])[] {
  const open = `n BETWEEN ${OPEN[0]} AND ${OPEN[1]}`;
  const terms = (values: string): string => `'${values}'`;
  const isUses = `(${open} OR n % 10 < 5)`;
  const sold = `CASE WHEN n = ${HOT} THEN '1000000' WHEN ${open} THEN '1000' WHEN n % 10 < 5 THEN '100' WHEN n % 10 < 9 THEN '5000000000000000000' ELSE '0' END`;
  return [
    ['id', `'pass_' || ${text('n')}`],
    [
      'plan',
      `CASE WHEN ${open} OR n = ${HOT} OR n % 10 < 9 THEN 'common' WHEN n % 10000 = 9 THEN 'rare' ELSE 'some' END`,
    ],
    ['terms_id', `CASE WHEN ${isUses} OR n = ${HOT} THEN 'hundred' WHEN n % 10 < 9 THEN 'top-up' ELSE 'day' END`],
    ['kind', `CASE WHEN ${isUses} OR n = ${HOT} THEN 'uses' WHEN n % 10 < 9 THEN 'credit' ELSE 'seconds' END`],
    ['scope', "'plan'"],
    ['route_id', "'route'"],
    ['payer', `'payer-' || ${text(`n % ${PAYERS}`)}`],
    ['network', "'eip155:8453'"],
    ['amount', "'5.00'"],
    ['currency', "'USD'"],
    [
      'terms',
      `CASE WHEN ${isUses} OR n = ${HOT} THEN ${terms('{"plan":"common","id":"hundred","scope":"plan","valid_ms":"86400000","first":"1","uses":"100"}')} ELSE ${terms('{"plan":"common","id":"top-up","scope":"plan","valid_ms":"86400000","first":"1","credit":"5.00"}')} END`,
    ],
    ['sold', sold],
    [
      'drawn',
      `CASE WHEN n = ${HOT} OR ${open} THEN '0' WHEN n % 10 < 5 THEN ${text('n % 101')} WHEN n % 10 < 9 THEN ${text('n % 997')} || '000000000000000' ELSE '0' END`,
    ],
    ['reserved', "'0'"],
    ['uses', 'n % 101'],
    ['lost', '0'],
    ['gone', '0'],
    ['sold_at', `${now - 60 * DAY_MS} + n`],
    // A twentieth ended during the last month.
    [
      'ends_at',
      `CASE WHEN n % 20 = 6 AND NOT (${open}) THEN ${now - 30 * DAY_MS} + n * 2 ELSE ${now + DAY_MS} + n * 1000 END`,
    ],
    ['revoked_at', `CASE WHEN n % 1000 = 7 AND NOT (${open}) THEN ${now - 2 * DAY_MS} + n ELSE NULL END`],
    ['is_used_up', `CASE WHEN n % 10 < 5 AND n % 101 = 100 AND NOT (${open}) THEN 1 ELSE 0 END`],
  ];
}

/** Columns of a draw and their values for the number `n`: one of a hundred is reserved by nobody who works on it any more. */
export function drawColumns(now: number, text: (sql: string) => string): readonly (readonly [string, string])[] {
  const isOpen = 'n % 100 = 3';
  return [
    ['id', `'old-' || ${text('n')}`],
    ['pass_id', `'pass_' || ${text('n * 4 + 1')}`],
    ['amount', "'1'"],
    ['state', `CASE WHEN ${isOpen} THEN 'reserved' ELSE 'taken' END`],
    ['owner', "'gone/1'"],
    ['lease_until', `${now - 3_600_000}`],
    ['key_sha256', `CASE WHEN n % 2 = 0 THEN 'key-' || ${text('n')} ELSE NULL END`],
    ['method', "'GET'"],
    ['target_sha256', "'target'"],
    ['asks', '1'],
    ['at', `${now - 7_200_000}`],
    ['kept_until', `CASE WHEN ${isOpen} THEN NULL ELSE ${now - 3_600_000} + n * 36 END`],
  ];
}
