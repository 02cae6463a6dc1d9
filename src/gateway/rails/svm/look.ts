// Asks a Solana chain what became of a payment. The proof is a confirmed transaction without an error that has the
// payment's message. It is searched among the transactions of the paying account. Each is named by its fee payer's
// signature, which is checked against the message, so that only the right one is read. Two things show that it never
// will be there. Its blockhash is too old at a finalized height, and a search of what was finalized by then finds
// nothing. A node that is away, of another chain, behind or short of history is never taken for "not there".
import { z } from 'zod';
import type { Search } from '../../../domain/payment/charge.ts';
import { AFTER_END_PUBLIC_SECONDS, away, failed, type NodeOutage } from '../away.ts';
import { createNodes, type ChainNode, type Identity, type NodesDeps, type Turn } from '../nodes.ts';
import { createPayerLooks, type LookStarter } from '../payer-looks.ts';
import type { Look, LookSubject, Rail } from '../rail.ts';
import { readBase58 } from './addresses.ts';
import { caip2OfGenesis } from './known-networks.ts';
import { isSignedBy, readTransaction, SIGNATURE_BYTES, type Transaction } from './transaction.ts';

/** Facts about the payment of a charge. */
export type SoughtPayment = {
  readonly transaction: Transaction;
  /** The token account that pays. */
  readonly source: string;
  readonly amount: bigint;
};

type SvmLookDeps = NodesDeps & {
  /** The nodes of a charge's way, and which of them answer anybody. */
  readonly nodesOf: (charge: LookSubject) => {
    readonly urls: readonly string[];
    readonly isPublic: (url: string) => boolean;
  };
  /** Finds the facts of a payment; undefined: they are not known any more. */
  readonly seek: (charge: LookSubject) => SoughtPayment | undefined;
};

export const SVM_IDENTITY: Identity = { method: 'getGenesisHash', caip2: z.string().max(64).transform(caip2OfGenesis) };
/** Blocks that a transaction can be younger than when it lands. */
const BLOCKHASH_BLOCKS = 150;
const PAGE = 100;
const PAGES_PER_LOOK = 10;
const CALLS_PER_LOOK = PAGES_PER_LOOK + 6;
/** Clocks of chains and of ours differ: proof is looked for from a little before the claim. */
const BEFORE_CLAIM_SECONDS = 120;
/** Seconds after a claim from which its payment counts as ended. */
const END_SECONDS = 150;

const whole = z.number().int().min(0);
const signature = z.string().regex(/^[1-9A-HJ-NP-Za-km-z]{64,88}$/);
const epochSchema = z.object({ absoluteSlot: whole, blockHeight: whole });
const pageSchema = z.array(z.object({ signature, blockTime: z.number().int().nullish() })).max(PAGE);
const transactionSchema = z
  .object({
    transaction: z.tuple([z.string().max(2000), z.literal('base64')]),
    meta: z.object({ err: z.unknown() }).nullable(),
  })
  .nullable();

/** Progress of looks, as it is kept with the charge. */
type Progress = {
  /** Height above which no finalized block can hold the payment any more. */
  lastValid: number | undefined;
  /** The search under way is the last one: it began above that height. It is the reconciler's alone. */
  final: boolean;
  /** Searches before the one under way, which went back to before the claim and found nothing. */
  round: number;
  /** Transactions that the search under way has passed, back to the one of this signature. */
  passed: number;
  before: string | undefined;
};

/** One node that is asked about one charge. */
type View = {
  readonly node: ChainNode;
  readonly turn: Turn;
  readonly charge: LookSubject;
  readonly sought: SoughtPayment;
  readonly isPublic: boolean;
  readonly progress: Progress;
};

const NOTHING_SEARCHED: Pick<Progress, 'passed' | 'before'> = { passed: 0, before: undefined };
/** Number of the last search, which comes after all others (`furtherSearch`). */
const FINAL_ROUND = 1_000_000;

export function createLook(deps: SvmLookDeps): Rail['look'] {
  const nodes = createNodes(deps, SVM_IDENTITY);
  let looks = 0;

  const lookThrough = async (charge: LookSubject, asker: Parameters<LookStarter>[1]): Promise<Look> => {
    const { urls, isPublic } = deps.nodesOf(charge);
    if (urls.length === 0) return { kind: 'unavailable', detail: 'no node is configured for this network' };
    const sought = deps.seek(charge);
    if (sought === undefined)
      return { kind: 'unavailable', detail: 'the transaction of this payment is not kept any more' };

    const first = asker === 'payer';
    const turn: Turn = { first, number: looks++, left: CALLS_PER_LOOK };
    const progress = readProgress(charge.search);
    // The end of a charge is searched as of a height, which a payer's look does not ask for: it begins a search of its
    // own.
    const isOwn = first && progress.final;
    if (isOwn) Object.assign(progress, NOTHING_SEARCHED);
    const said: string[] = [];
    for (const url of urls) {
      const node = nodes(url);
      const release = first ? await node.semaphore.wait() : () => undefined;
      if (release === undefined) {
        said.push(`${new URL(url).host}: too many payers are waiting for it`);
        break;
      }
      const view: View = { node, turn, charge, sought, isPublic: isPublic(url), progress };
      const seen = await lookAt(view, asker).finally(release);
      if (!('away' in seen)) return isOwn && seen.kind === 'open' ? { ...seen, search: null } : seen;
      said.push(`${new URL(url).host}: ${seen.away}`);
      if (turn.left <= 0) break;
    }
    // New progress is kept, even if a later call failed.
    const isNew = !isOwn && JSON.stringify(writeProgress(progress)) !== JSON.stringify(charge.search);
    if (isNew) return open(progress);
    return { kind: 'unavailable', detail: said.join('; ') };
  };

  return createPayerLooks(
    (charge, asker) => ({
      end: lookThrough(charge, asker),
      soFar: () => ({ kind: 'unavailable', detail: 'no end within the time that a payer waits' }),
    }),
    deps.schedule,
  );
}

async function lookAt(view: View, asker: 'payer' | 'reconciler'): Promise<Look | NodeOutage> {
  const { node, turn, charge, progress } = view;
  const fault = await node.findFault(turn, charge.payment.network);
  if (fault !== undefined) return away(fault);
  // The time until which the payment could still come is nothing to make a payer wait for.
  const end = asker === 'payer' ? undefined : await readEnd(view);
  if (end !== undefined && 'away' in end) return end;
  const overAt = end?.overAt;
  const searched = await search(view, asker, overAt);
  if ('away' in searched) return searched;
  if (searched.signature !== undefined) {
    const proof = await prove(view, searched.signature);
    if (proof !== 'failed') return proof;
    // The payment is used up. What a node alone says ends nothing while the payment could still be made.
    return overAt === undefined ? open(progress) : { kind: 'impossible', reason: 'transaction_failed' };
  }
  if (overAt === undefined || !searched.whole) return open(progress);
  const gap = await findGap(view, overAt);
  if (gap === undefined) return { kind: 'impossible', reason: 'transaction_expired' };
  return gap === 'too_soon' ? open(progress) : gap;
}

function open(progress: Progress): Look {
  return { kind: 'open', used: false, search: writeProgress(progress) };
}

/** End of a payment. `overAt` is the finalized slot by which it can land no more; undefined: it still can. */
type End = { readonly overAt: number | undefined };

async function readEnd({ node, turn, progress }: View): Promise<End | NodeOutage> {
  if (progress.lastValid === undefined) {
    const height = await node.ask(turn, 'getBlockHeight', [{ commitment: 'processed' }], whole);
    if (height.kind !== 'result') return failed(height, 'getBlockHeight');
    progress.lastValid = height.value + BLOCKHASH_BLOCKS;
  }
  const epoch = await node.ask(turn, 'getEpochInfo', [{ commitment: 'finalized' }], epochSchema);
  if (epoch.kind !== 'result') return failed(epoch, 'getEpochInfo');
  if (epoch.value.blockHeight <= progress.lastValid) return { overAt: undefined };
  // A search that began before the end may have missed what landed since: the last one begins anew.
  if (!progress.final) Object.assign(progress, { ...NOTHING_SEARCHED, final: true, round: FINAL_ROUND });
  return { overAt: epoch.value.absoluteSlot };
}

/** Result of a search. `whole`: it went back to before the claim. */
type SearchResult = { readonly signature: string | undefined; readonly whole: boolean };

/** Searches for the payment. With `overAt` only finalized blocks count, of a node that has come to this slot. */
async function search(
  view: View,
  asker: 'payer' | 'reconciler',
  overAt: number | undefined,
): Promise<SearchResult | NodeOutage> {
  const { charge, progress } = view;
  const asOf = overAt === undefined ? { commitment: 'confirmed' } : { commitment: 'finalized', minContextSlot: overAt };
  // A payer is told what is there: what landed since the search began, before what is left of it.
  let isNewest = asker === 'payer' && progress.before !== undefined;
  for (let pages = 0; pages < PAGES_PER_LOOK; pages++) {
    const page = await readPage(view, isNewest ? asOf : { ...asOf, before: progress.before });
    if ('away' in page) return page;
    switch (page.kind) {
      case 'spent':
        return { signature: undefined, whole: false };
      case 'found':
        return { signature: page.signature, whole: false };
      case 'last':
        // The next search begins at the newest transaction again. Only a search that is kept has to be replaced.
        if (charge.search?.['before'] !== undefined) progress.round += 1;
        Object.assign(progress, NOTHING_SEARCHED);
        return { signature: undefined, whole: true };
      case 'passed':
        if (!isNewest) Object.assign(progress, { before: page.back, passed: progress.passed + page.transactions });
        isNewest = false;
        break;
      default:
        return page satisfies never;
    }
  }
  return { signature: undefined, whole: false };
}

type Page =
  | { readonly kind: 'found'; readonly signature: string }
  /** The page goes back to before the claim. */
  | { readonly kind: 'last' }
  /** The page held so many transactions, back to one of this signature. */
  | { readonly kind: 'passed'; readonly transactions: number; readonly back: string }
  | { readonly kind: 'spent' };

async function readPage({ node, turn, charge, sought }: View, asOf: object): Promise<Page | NodeOutage> {
  const since = Math.floor(charge.createdAt / 1000) - BEFORE_CLAIM_SECONDS;
  const options = { limit: PAGE, ...asOf };
  const answer = await node.ask(turn, 'getSignaturesForAddress', [sought.source, options], pageSchema);
  if (answer.kind === 'spent') return { kind: 'spent' };
  if (answer.kind !== 'result') return failed(answer, 'getSignaturesForAddress');
  for (const { signature, blockTime } of answer.value) {
    if (typeof blockTime === 'number' && blockTime < since) return { kind: 'last' };
    if (isSignedBy(sought.transaction, 0, readBase58(signature, SIGNATURE_BYTES))) return { kind: 'found', signature };
  }
  // A page may be short for reasons of the node's own: only an empty one is the last.
  const back = answer.value.at(-1)?.signature;
  return back === undefined ? { kind: 'last' } : { kind: 'passed', transactions: answer.value.length, back };
}

async function prove({ node, turn, charge, sought }: View, signature: string): Promise<Look | NodeOutage | 'failed'> {
  const options = { commitment: 'confirmed', encoding: 'base64', maxSupportedTransactionVersion: 0 };
  const answer = await node.ask(turn, 'getTransaction', [signature, options], transactionSchema);
  if (answer.kind !== 'result') return failed(answer, 'getTransaction');
  if (answer.value === null || answer.value.meta === null) return away('getTransaction: it lists more than it has');
  const { transaction, meta } = answer.value;
  const reading = readTransaction(transaction[0]);
  if (!reading.ok || reading.transaction.messageHash !== charge.payment.unique)
    return away('getTransaction: another transaction than asked for');
  if (meta.err !== null) return 'failed';
  // The transaction has one transfer in it, so its place is always the same.
  const proof = { transaction: signature, logIndex: 0, amount: sought.amount, payer: charge.payment.payer };
  return { kind: 'proven', proof };
}

/** Finds what speaks against believing a node that a payment never came; undefined: nothing does. */
async function findGap(view: View, overAt: number): Promise<NodeOutage | 'too_soon' | undefined> {
  const { node, turn, charge, isPublic } = view;
  const claimed = Math.floor(charge.createdAt / 1000);
  if (isPublic) {
    const now = await node.ask(turn, 'getBlockTime', [overAt], whole);
    if (now.kind !== 'result') return failed(now, 'getBlockTime');
    if (now.value < claimed + END_SECONDS + AFTER_END_PUBLIC_SECONDS) return 'too_soon';
  }
  const first = await node.ask(turn, 'getFirstAvailableBlock', [], whole);
  if (first.kind !== 'result') return failed(first, 'getFirstAvailableBlock');
  // The first block of all has no time that means anything.
  if (first.value === 0) return undefined;
  const oldest = await node.ask(turn, 'getBlockTime', [first.value], whole);
  if (oldest.kind !== 'result') return failed(oldest, 'getBlockTime');
  return oldest.value < claimed - BEFORE_CLAIM_SECONDS ? undefined : away('its history is too short');
}

const DIGITS = /^\d{1,15}$/;

function readProgress(search: Search | null): Progress {
  const { last_valid: lastValid = '', final, round = '', next = '', before } = search ?? {};
  const isFinal = final === 'yes';
  return {
    lastValid: DIGITS.test(lastValid) ? Number(lastValid) : undefined,
    final: isFinal,
    round: DIGITS.test(round) ? Number(round) : isFinal ? FINAL_ROUND : 0,
    passed: DIGITS.test(next) ? Number(next) : 0,
    before,
  };
}

function writeProgress({ lastValid, final, round, passed, before }: Progress): Search | null {
  if (lastValid === undefined && round === 0 && before === undefined) return null;
  return {
    ...(lastValid === undefined ? {} : { last_valid: String(lastValid) }),
    ...(final ? { final: 'yes' } : {}),
    ...(round === 0 ? {} : { round: String(round) }),
    ...(before === undefined ? {} : { next: String(passed), before }),
  };
}
