// Exchanges that seeds draw, through everything that forwards bodies: what the upstream received and what the client got
// is held against what was sent, byte for byte. Longer, or with another seed: main.ts.
import { describe, expect, it } from 'vitest';
import { PAID } from './front-paid.ts';
import { PROXY, SYNC } from './front-proxy.ts';
import { EXCHANGES, runRound } from './run.ts';

/** Rounds that found something: a defect, or that the mend of one was taken out. A seed that finds another joins them. */
const FOUND = {
  proxy: [1, 2, 3],
  sync: [1, 10, 17, 1043, 1058, 1142],
  paid: [1],
};
const FROM = 100;

const rounds = (known: readonly number[], count: number): number[] => [
  ...known,
  ...Array.from({ length: count - known.length }, (_, i) => FROM + i),
];

describe.each([
  [PROXY, rounds(FOUND.proxy, 10), EXCHANGES],
  [SYNC, rounds(FOUND.sync, 9), EXCHANGES],
  [PAID, FOUND.paid, EXCHANGES],
])('$name', (front, seeds, exchanges) => {
  it.each(seeds)(
    'behaviour: the bytes that are sent arrive, seed %i',
    async (seed) => {
      expect((await runRound(front, seed, exchanges)).faults.join('\n')).toBe('');
    },
    60_000,
  );
});
