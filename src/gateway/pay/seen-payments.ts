// Remembers payments this process has seen, so that new ones skip a look-up. A payment that came before a restart or through
// another process is not seen here, and the ledger says so when it is claimed or refused.
import type { PaymentKey } from '../../domain/charge.ts';

export type SeenPayments = {
  /** False: never added. True also now and then for one that was not: it says no more than that the ledger is worth asking. */
  readonly has: (payment: PaymentKey) => boolean;
  readonly add: (payment: PaymentKey) => void;
};

/** Payments of one generation. Two are remembered: at 1,000 payments a second those of the last 17 to 33 minutes. */
const CAPACITY = 1_000_000;
/** With four bits set for each payment, two of a thousand others look the same when a generation is full. */
const BITS_PER_PAYMENT = 16;
/** Random if payers are well advised: 128 bits at its end are looked at. */
const HEX = /[0-9a-f]{32}$/;

export function createSeenPayments(capacity = CAPACITY): SeenPayments {
  // A power of two; memory that no bit was set in is not taken yet.
  const words = 2 ** Math.ceil(Math.log2((capacity * BITS_PER_PAYMENT) / 32));
  let young = new Uint32Array(words);
  let old: Uint32Array | undefined;
  let added = 0;

  return {
    has: ({ unique }) => {
      if (!HEX.test(unique)) return true;
      return holds(young, unique) || (old !== undefined && holds(old, unique));
    },
    add: ({ unique }) => {
      if (!HEX.test(unique)) return;
      if (added === capacity) {
        old = young;
        young = new Uint32Array(words);
        added = 0;
      }
      added += 1;
      for (let part = 0; part < PARTS; part++) {
        const at = partOf(unique, part);
        const word = wordOf(young, at);
        young[word] = (young[word] ?? 0) | bitOf(at);
      }
    },
  };
}

const PARTS = 4;
const PART_DIGITS = 8;

function holds(bits: Uint32Array, unique: string): boolean {
  for (let part = 0; part < PARTS; part++) {
    const at = partOf(unique, part);
    if (((bits[wordOf(bits, at)] ?? 0) & bitOf(at)) === 0) return false;
  }
  return true;
}

/** 32 bits of it. */
function partOf(unique: string, part: number): number {
  const from = unique.length - (PARTS - part) * PART_DIGITS;
  return Number.parseInt(unique.slice(from, from + PART_DIGITS), 16);
}

function wordOf(bits: Uint32Array, at: number): number {
  return (at >>> 5) & (bits.length - 1);
}

function bitOf(at: number): number {
  return 1 << (at & 31);
}
