// A bloom filter of the payments that this process has seen, so that a new one needs no look-up. With a look-up each, a
// paid request takes 1.06 to 1.1 times the CPU with two workers, and 1.01 with one process
// (`node bench/paid.ts --paid --workers 2 --root . --root ../without`). A payment that came before a restart or through
// another process is not seen here, and the ledger says so when it is claimed or refused.
import type { PaymentKey } from '../../domain/payment/charge.ts';

export type SeenPayments = {
  /** Whether a payment was added: false is certain, true is now and then wrong, so the ledger is asked. */
  readonly has: (payment: PaymentKey) => boolean;
  readonly add: (payment: PaymentKey) => void;
};

/** Number of payments of one generation. Two are remembered: at 1,000 payments a second those of the last 17 to 33 minutes. */
const CAPACITY = 1_000_000;
/** Bits of the filter for each payment. With four of them set, two of a thousand others look the same at capacity. */
const BITS_PER_PAYMENT = 16;
/** The 128 bits at the end of a payment's name that are looked at: random if payers are well advised. */
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

/** One of the four parts of 32 bits. */
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
