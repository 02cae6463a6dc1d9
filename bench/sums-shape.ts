// What `node bench/sums.ts` fills a store with: sums of ten million charges over 90 days (482 routes, three networks), counts of
// requests of as many routes, and a million charges beside them that no question may read.

export const DAYS = 90;
export const HOURS = DAYS * 24;
export const ROUTES = 482;
export const CHARGES = 10_000_000;
/** Charges that stand there themselves. */
export const ROWS = 1_000_000;
/** Networks and assets. */
export const WAYS = [
  ['eip155:8453', '0xa'],
  ['eip155:137', '0xb'],
  ['solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp', 'E'],
] as const;

/** A store that is filled, behind the registry of this checkout at a port of this machine. */
export type FilledSums = {
  readonly port: number;
  /** Number of sums of money by the hour. */
  readonly sums: number;
  readonly close: () => Promise<void>;
};
