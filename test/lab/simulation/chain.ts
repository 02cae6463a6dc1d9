// A model of a token's chain: a nonce moves money once or never, whoever sends the transaction; blocks come at one pace; a
// transaction waits in the pool for as long as the schedule says. What it says is the truth about the money.
import type { PaymentKey } from '../../../src/domain/payment/charge.ts';
import { samePayment } from '../../../src/domain/payment/ledger.ts';
import type { LookSubject, Rail, PartialLook } from '../../../src/gateway/rails/rail.ts';
import type { Actor, Scheduler } from './scheduler.ts';

export type Transfer = {
  readonly key: PaymentKey;
  readonly transaction: string;
  readonly block: number;
  /** False: the payer used the nonce up in another way. */
  readonly paid: boolean;
};

export type ModelChain = {
  readonly actor: Actor;
  readonly used: (key: PaymentKey) => Transfer | undefined;
  /** A transaction of it may yet be taken up. */
  readonly pending: (key: PaymentKey) => boolean;
  readonly head: () => number;
  readonly timeOf: (block: number) => bigint;
  /** Sends a transaction; resolves when it was taken up, undefined where it failed. */
  readonly send: (
    key: PaymentKey,
    validBefore: bigint,
    delayMs: number,
    paid?: boolean,
  ) => Promise<Transfer | undefined>;
  readonly transfers: readonly Transfer[];
};

const BLOCK_MS = 2_000;
const CONFIRMATIONS = 2;

/** What a chain is like: how long a block takes, how many it has at `start`, and how far its clock is behind the world's. */
export type ChainPace = { readonly blockMs: number; readonly height: number; readonly behindMs: number };
const PACE: ChainPace = { blockMs: BLOCK_MS, height: 1_000, behindMs: 0 };

export function createModelChain(
  scheduler: Scheduler,
  start: number,
  { blockMs, height, behindMs }: ChainPace = PACE,
): ModelChain {
  const actor = { name: 'chain', alive: true };
  const transfers: Transfer[] = [];
  const pool: PaymentKey[] = [];
  const used = (key: PaymentKey): Transfer | undefined => transfers.find((transfer) => samePayment(transfer.key, key));
  const head = (): number => Math.floor((scheduler.now() - start) / blockMs) + height;
  const timeOf = (block: number): bigint => BigInt(Math.floor((start - behindMs + (block - height) * blockMs) / 1000));
  return {
    actor,
    used,
    head,
    timeOf,
    transfers,
    pending: (key) => pool.some((other) => samePayment(other, key)),
    send: async (key, validBefore, delayMs, paid = true) => {
      pool.push(key);
      await scheduler.point(actor, `takes ${key.unique.slice(-4)} up`, delayMs);
      pool.splice(pool.indexOf(key), 1);
      const block = head() + 1;
      if (used(key) !== undefined || timeOf(block) >= validBefore) return undefined;
      const transaction = `0x${(transfers.length + 1).toString(16).padStart(64, '0')}`;
      const transfer = { key, transaction, block, paid };
      transfers.push(transfer);
      scheduler.say(
        paid ? `chain: moved the money of ${key.unique.slice(-4)}` : `chain: ${key.unique.slice(-4)} is void`,
      );
      return transfer;
    },
  };
}

/** A look asks for logs so often, and a proof is found with so many calls: not in one look. */
const CALLS_A_LOOK = 2;
const CALLS_TO_PROOF = 3;

/** What `asker` sees of the chain; `away` says whether a question goes unanswered. */
export function modelLook(scheduler: Scheduler, chain: ModelChain, asker: Actor, away: () => boolean): Rail['look'] {
  const asked = async <T>(label: string, look: () => T): Promise<T | undefined> => {
    await scheduler.point(asker, `asks the chain: ${label}`, scheduler.draw.below(30));
    if (away()) return undefined;
    const seen = look();
    await scheduler.point(asker, `hears of the chain: ${label}`, scheduler.draw.below(30));
    return seen;
  };
  /** What is left of a look whose payer was told already. */
  const goOn = async (charge: LookSubject, transfer: Transfer, from: number): Promise<PartialLook> => {
    const { payment, amount } = charge;
    let next = from;
    for (let calls = 0; calls < CALLS_A_LOOK && next < CALLS_TO_PROOF; calls++, next++)
      if ((await asked('logs', () => true)) === undefined) break;
    const search = { next: String(next) };
    if (next < CALLS_TO_PROOF) return { kind: 'open', used: true, search };
    const { transaction, paid } = transfer;
    return paid
      ? { kind: 'proven', proof: { transaction, logIndex: 0, amount, payer: payment.payer } }
      : { kind: 'impossible', reason: 'authorization_spent_elsewhere' };
  };
  return async (charge, who): Promise<PartialLook> => {
    const { payment, deadline, search } = charge;
    const seen = await asked('nonce', () => {
      const deep = chain.head() - CONFIRMATIONS;
      const transfer = chain.used(payment);
      return { transfer: transfer && transfer.block <= deep ? transfer : undefined, time: chain.timeOf(deep) };
    });
    if (seen === undefined) return { kind: 'unavailable', detail: 'no answer' };
    if (seen.transfer === undefined) {
      return seen.time > (deadline ?? 0n)
        ? { kind: 'impossible', reason: 'authorization_expired_unused' }
        : { kind: 'open', used: false, search: null };
    }
    const end = goOn(charge, seen.transfer, Number(search?.['next'] ?? 0));
    // The payer is told before it ends.
    return who === 'payer' && scheduler.draw.chance(0.3) ? { kind: 'open', used: true, search, end } : end;
  };
}
