// A model of a token's chain: a nonce moves money once or never, whoever sends the transaction; blocks come every two
// seconds; a transaction waits in the pool for as long as the schedule says. What it says is the truth about the money.
import { samePayment, type PaymentKey } from '../../src/domain/charge.ts';
import type { Look, Rail } from '../../src/gateway/rails/rail.ts';
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

export function createModelChain(scheduler: Scheduler, start: number): ModelChain {
  const actor = { name: 'chain', alive: true };
  const transfers: Transfer[] = [];
  const pool: PaymentKey[] = [];
  const used = (key: PaymentKey): Transfer | undefined => transfers.find((transfer) => samePayment(transfer.key, key));
  const head = (): number => Math.floor((scheduler.now() - start) / BLOCK_MS) + 1_000;
  const timeOf = (block: number): bigint => BigInt(Math.floor((start + (block - 1_000) * BLOCK_MS) / 1000));
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

/** What `asker` sees of the chain; `away` says whether a question goes unanswered. */
export function modelLook(scheduler: Scheduler, chain: ModelChain, asker: Actor, away: () => boolean): Rail['look'] {
  const asked = async <T>(label: string, look: () => T): Promise<T | undefined> => {
    await scheduler.point(asker, `asks the chain: ${label}`, scheduler.draw.below(30));
    if (away()) return undefined;
    const seen = look();
    await scheduler.point(asker, `hears of the chain: ${label}`, scheduler.draw.below(30));
    return seen;
  };
  return async ({ payment, amount, deadline }): Promise<Look> => {
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
    const { transaction, paid } = seen.transfer;
    const found = await asked('proof', () => true);
    if (found === undefined) return { kind: 'unavailable', detail: 'no answer' };
    return paid
      ? { kind: 'proven', proof: { transaction, logIndex: 0, amount, payer: payment.payer } }
      : { kind: 'impossible', reason: 'authorization_spent_elsewhere' };
  };
}
