// Looks on the chain for the proof of a payment. The proof: the token's AuthorizationUsed(payer, nonce), and in the very
// next log its Transfer(payer -> pay_to, amount), deep enough not to be undone. A used nonce proves nothing by itself: it
// may have been cancelled, or spent on another payee. A node that is away, on another chain, behind or talking nonsense
// is `unavailable`, which is never taken for "not there". The nonce's state is asked first, logs only of a used one.
import { z } from 'zod';
import type { PaymentKey, Search } from '../../../domain/payment/charge.ts';
import type { Way } from '../../../domain/payment/way.ts';
import type { WayServices } from '../../../domain/payment/offer.ts';
import { findEvmNetwork } from './spelling.ts';
import { AFTER_END_PUBLIC_SECONDS, away, failed, type NodeOutage } from '../away.ts';
import { createNodes, type ChainNode, type Identity, type NodesDeps, type Turn } from '../nodes.ts';
import { createPayerLooks } from '../payer-looks.ts';
import type { Clock } from '../../../host/clock.ts';
import type { Look, LookSubject, Rail } from '../rail.ts';

// Numbers, words of 32 bytes and addresses, as nodes write them. Source: the Ethereum JSON-RPC specification.
export const quantity = z
  .string()
  .regex(/^0x(?:0|[1-9a-f][0-9a-f]{0,15})$/i)
  .transform(BigInt);
const word = z
  .string()
  .regex(/^0x[0-9a-f]{64}$/i)
  .toLowerCase();
const address = z
  .string()
  .regex(/^0x[0-9a-f]{40}$/i)
  .toLowerCase();

export type LookDeps = NodesDeps & {
  readonly clock: Pick<Clock, 'now'>;
  /** Services of a way, as configured now. */
  readonly services: (way: Way) => WayServices | undefined;
};

// Event topics and function selectors are Keccak-256 of the signatures beside them, as EIP-3009 and ERC-20 name them;
// the tests compute them again.
/** Topic of AuthorizationUsed(address,bytes32). */
export const AUTHORIZATION_USED = '0x98de503528ee59b575ef0c0a2576a82497bfc029a5685b209e9ec333479b10a5';
/** Topic of AuthorizationCanceled(address,bytes32). */
export const AUTHORIZATION_CANCELED = '0x1cdd46ff242716cdaa72d159d339a485b3438398348d68f09d7c8c0a59353d81';
/** Transfer(address,address,uint256) */
export const TRANSFER = '0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef';
/** authorizationState(address,bytes32) */
export const AUTHORIZATION_STATE = '0xe94a0102';

export const EVM_IDENTITY: Identity = { method: 'eth_chainId', caip2: quantity.transform((id) => `eip155:${id}`) };
const CALLS_PER_LOOK = 8;
/** Blocks of one call for logs: public nodes refuse much more. Halved if even that is refused. */
const LOG_RANGE = 1000n;
/** Clocks of chains and of ours differ: proof is looked for from a little before the claim. */
const BEFORE_CLAIM_SECONDS = 600n;
/** Distance before the claim if the chain's head is as old as our clock has it: most proofs are found with the first call for logs. */
const NEAR_CLAIM_SECONDS = 60n;
const CLOCKS_AGREE_SECONDS = 30n;
/** A node's logs may be behind its states. A search that found nothing begins anew, every third time from far before. */
const ROUNDS = 3n;
/** Seconds past the end of an authorization after which the chain is believed to have seen the last of it. */
const AFTER_END_SECONDS = 60n;
/** Blocks that are read to find where to start looking. */
const START_READS = 3;

export const blockSchema = z.object({ number: quantity, timestamp: quantity });
const logSchema = z.object({
  address,
  topics: z.array(word).max(4),
  data: z
    .string()
    .regex(/^0x[0-9a-f]*$/i)
    .toLowerCase(),
  blockNumber: quantity,
  transactionHash: word,
  logIndex: quantity,
  removed: z.literal(false).optional(),
});
const logsSchema = z.array(logSchema).max(1000);
export const receiptSchema = z.object({
  transactionHash: word,
  blockNumber: quantity,
  status: quantity,
  logs: z.array(logSchema).max(20_000),
});
type Log = z.output<typeof logSchema>;
type Block = { readonly number: bigint; readonly time: bigint };

/** Knowledge of a look so far; it survives a node that fails in the middle. */
type Progress = {
  used: boolean;
  /** Searches before this one that found nothing. */
  round: bigint;
  next: bigint | undefined;
  range: bigint;
};

/** One node that is asked about one charge. */
type View = {
  readonly node: ChainNode;
  readonly turn: Turn;
  readonly charge: LookSubject;
  /** Blocks on top of one that is believed. */
  readonly depth: bigint;
  readonly afterEnd: bigint;
  readonly isPublic: boolean;
  /** Our clock, in seconds. */
  readonly now: () => bigint;
  readonly progress: Progress;
};

const isAway = (value: object): value is NodeOutage => 'away' in value;

export function createLook(deps: LookDeps): Rail['look'] {
  const nodes = createNodes(deps, EVM_IDENTITY);
  let looks = 0;

  const lookThrough = async (charge: LookSubject, first: boolean, progress: Progress): Promise<Look> => {
    const { network } = charge.payment;
    const known = findEvmNetwork(network)?.rpcUrls ?? [];
    const services = deps.services(charge.way);
    const urls = services?.rpcUrls ?? known;
    if (urls.length === 0) return { kind: 'unavailable', detail: 'no node is configured for this network' };

    const turn: Turn = { first, number: looks++, left: CALLS_PER_LOOK };
    const depth = BigInt(services?.confirmations ?? 1) - 1n;
    const now = (): bigint => BigInt(Math.floor(deps.clock.now() / 1000));
    const said: string[] = [];
    for (const url of urls) {
      const isPublic = known.includes(url);
      const afterEnd = isPublic ? BigInt(AFTER_END_PUBLIC_SECONDS) : AFTER_END_SECONDS;
      const node = nodes(url);
      const release = first ? await node.semaphore.wait() : () => undefined;
      if (release === undefined) {
        said.push(`${new URL(url).host}: too many payers are waiting for it`);
        break;
      }
      const view: View = { node, turn, charge, depth, afterEnd, isPublic, now, progress };
      const seen = await lookAt(view).finally(release);
      if (!isAway(seen)) return seen;
      said.push(`${new URL(url).host}: ${seen.away}`);
      if (turn.left <= 0) break;
    }
    return usedOr(progress, said.join('; '));
  };

  return createPayerLooks((charge, asker) => {
    const progress = readSearch(charge.search);
    return {
      end: lookThrough(charge, asker === 'payer', progress),
      soFar: () => usedOr(progress, 'no end within the time that a payer waits'),
    };
  }, deps.schedule);
}

/** Answers that the payment was used up, if that is known, even if a later call failed. */
function usedOr(progress: Progress, detail: string): Look {
  return progress.used ? { kind: 'open', used: true, search: writeSearch(progress) } : { kind: 'unavailable', detail };
}

/** Later than any block. */
const NEVER = 2n ** 256n;

async function lookAt(view: View): Promise<Look | NodeOutage> {
  const { node, turn, charge, depth, afterEnd, isPublic, progress } = view;
  const { payment, deadline } = charge;
  const until = deadline ?? NEVER;
  const fault = await node.findFault(turn, payment.network);
  if (fault !== undefined) return away(fault);
  const head = await readBlock(view, 'latest');
  if (isAway(head)) return head;
  if (head.number < depth) return away('the chain is shorter than the confirmations');
  const used = await readNonce(view, head.number);
  if (typeof used !== 'boolean') return used;
  const isOver = async (): Promise<boolean | NodeOutage> => {
    if (head.time <= until + afterEnd) return false;
    const deep = depth === 0n ? head : await readBlock(view, head.number - depth);
    return isAway(deep) ? deep : deep.time > until + afterEnd;
  };
  if (!used) {
    const over = await isOver();
    if (typeof over !== 'boolean') return over;
    return over
      ? { kind: 'impossible', reason: 'authorization_expired_unused' }
      : { kind: 'open', used: false, search: null };
  }
  progress.used = true;

  const spent = await findSpending(view, head);
  if ('away' in spent) return spent;
  switch (spent.kind) {
    case 'paid':
      return spent.block + depth > head.number ? open(progress) : { kind: 'proven', proof: spent.proof };
    case 'not_paid': {
      if (spent.block + depth > head.number) return open(progress);
      // Anybody can run a public node: what it alone says ends nothing while the payment could still be made.
      const over = isPublic ? await isOver() : true;
      if (typeof over !== 'boolean') return over;
      return over ? { kind: 'impossible', reason: spent.reason } : open(progress);
    }
    case 'not_found':
      Object.assign(progress, { round: progress.round + 1n, next: undefined });
      return open(progress);
    default:
      return spent satisfies never;
  }
}

function open(progress: Progress): Look {
  return { kind: 'open', used: true, search: writeSearch(progress) };
}

type Spending =
  | { readonly kind: 'paid'; readonly block: bigint; readonly proof: Extract<Look, { kind: 'proven' }>['proof'] }
  | { readonly kind: 'not_paid'; readonly block: bigint; readonly reason: string }
  /** Nowhere between the start and the authorization's end, or the head: the node's logs are behind its states. */
  | { readonly kind: 'not_found' };

/** Finds the transaction that used the nonce up. */
async function findSpending(view: View, head: Block): Promise<Spending | NodeOutage> {
  const { charge, progress } = view;
  const { payment, amount, deadline, createdAt } = charge;
  const until = deadline ?? NEVER;
  if (progress.next === undefined) {
    const since = BigInt(Math.floor(createdAt / 1000)) - secondsBefore(view, head);
    const start = await findStart(view, head, since);
    if (typeof start !== 'bigint') return start;
    progress.next = start;
  }
  if (head.number < progress.next) return away('the node is behind');
  let { range } = progress;
  while (progress.next <= head.number) {
    const from: bigint = progress.next;
    const to = from + range - 1n < head.number ? from + range - 1n : head.number;
    const found = await findUse(view, from, to);
    if (found === 'refused') {
      if (range === 1n) return away('eth_getLogs: it refuses every range');
      range /= 2n;
      continue;
    }
    if (found === 'none') {
      progress.range = range;
      progress.next = to + 1n;
      if (head.time <= until || to === head.number) continue;
      const last = await readBlock(view, to);
      if (isAway(last)) return last;
      if (last.time >= until) break;
      continue;
    }
    if (isAway(found)) return found;
    const block = found.blockNumber;
    if (found.topics[0] === AUTHORIZATION_CANCELED)
      return { kind: 'not_paid', block, reason: 'authorization_cancelled' };
    const transfer = await findTransfer(view, found);
    if (transfer === undefined) return { kind: 'not_paid', block, reason: 'authorization_spent_elsewhere' };
    if (typeof transfer !== 'number') return transfer;
    const proof = { transaction: found.transactionHash, logIndex: transfer, amount, payer: payment.payer };
    return { kind: 'paid', block, proof };
  }
  return { kind: 'not_found' };
}

/** Seconds before the claim at which a search begins. */
function secondsBefore({ now, progress }: View, head: Block): bigint {
  if (progress.round % ROUNDS === ROUNDS - 1n) return BEFORE_CLAIM_SECONDS;
  const apart = now() - head.time;
  return apart <= CLOCKS_AGREE_SECONDS && -apart <= CLOCKS_AGREE_SECONDS ? NEAR_CLAIM_SECONDS : BEFORE_CLAIM_SECONDS;
}

/**
 * A block of `time` or a little before it, by interpolation: blocks come at about the same pace. A chain may have stood
 * still, so a block counts only if its own time was read. Chains are not searched from their first block.
 */
async function findStart(view: View, head: Block, time: bigint): Promise<bigint | NodeOutage> {
  let later = head;
  let guess = head.number >= LOG_RANGE ? head.number - LOG_RANGE + 1n : 0n;
  for (let reads = 0; reads < START_READS && guess > 0n && later.time > time; reads++) {
    const read = await readBlock(view, guess);
    if (isAway(read)) return read;
    if (read.time <= time) {
      if (later.number - read.number <= LOG_RANGE || reads === START_READS - 1) return read.number;
      // The guess lies between the two, and rather too early.
      const between = ((later.number - read.number) * (time - read.time)) / (later.time - read.time) - LOG_RANGE / 2n;
      if (between <= 0n) return read.number;
      const nearer = await readBlock(view, read.number + between);
      if (isAway(nearer)) return nearer;
      return nearer.time <= time ? nearer.number : read.number;
    }
    const blocks = later.number - read.number;
    const seconds = later.time - read.time;
    const back = seconds > 0n ? ((read.time - time) * blocks * 11n) / (seconds * 10n) + 1n : blocks * 10n;
    later = read;
    guess = read.number > back ? read.number - back : 0n;
  }
  return later.time <= time ? later.number : guess;
}

async function readBlock({ node, turn }: View, block: bigint | 'latest'): Promise<Block | NodeOutage> {
  const tag = block === 'latest' ? block : toHex(block);
  const answer = await node.ask(turn, 'eth_getBlockByNumber', [tag, false], blockSchema);
  if (answer.kind !== 'result') return failed(answer, 'eth_getBlockByNumber');
  const { number, timestamp } = answer.value;
  return block === 'latest' || number === block
    ? { number, time: timestamp }
    : away('eth_getBlockByNumber: another block than asked for');
}

async function readNonce({ node, turn, charge }: View, block: bigint): Promise<boolean | NodeOutage> {
  const { asset, payer, unique: nonce } = charge.payment;
  const call = { to: asset, data: `${AUTHORIZATION_STATE}${padAddress(payer)}${nonce.slice(2)}` };
  const answer = await node.ask(turn, 'eth_call', [call, toHex(block)], word);
  if (answer.kind !== 'result') return failed(answer, 'eth_call');
  const state = BigInt(answer.value);
  return state <= 1n ? state === 1n : away('eth_call: an answer of another form');
}

/** The log that says that the nonce was used or cancelled. */
async function findUse(
  { node, turn, charge }: View,
  from: bigint,
  to: bigint,
): Promise<Log | 'none' | 'refused' | NodeOutage> {
  const { payment: key } = charge;
  const topics = [[AUTHORIZATION_USED, AUTHORIZATION_CANCELED], `0x${padAddress(key.payer)}`, key.unique];
  const filter = { address: key.asset, topics, fromBlock: toHex(from), toBlock: toHex(to) };
  const answer = await node.ask(turn, 'eth_getLogs', [filter], logsSchema);
  if (answer.kind === 'error') return 'refused';
  if (answer.kind !== 'result') return failed(answer, 'eth_getLogs');
  // An authorization is used at most once, whatever a node says.
  const [log, ...more] = answer.value;
  if (log === undefined) return 'none';
  if (more.length > 0) return away('eth_getLogs: one nonce used twice');
  const isAsked =
    (isUse(log, key, AUTHORIZATION_USED) || isUse(log, key, AUTHORIZATION_CANCELED)) &&
    log.blockNumber >= from &&
    log.blockNumber <= to;
  return isAsked ? log : away('eth_getLogs: a log that was not asked for');
}

/**
 * The place of this payment's transfer among the logs of its transaction. It tells the payments of one transaction
 * apart. Nodes agree about the order of logs, but not about the number that they begin with. Undefined: it did not pay.
 */
async function findTransfer({ node, turn, charge }: View, use: Log): Promise<number | undefined | NodeOutage> {
  const { payment: key } = charge;
  const { transactionHash: transaction, blockNumber: block } = use;
  const answer = await node.ask(turn, 'eth_getTransactionReceipt', [transaction], receiptSchema);
  if (answer.kind !== 'result') return failed(answer, 'eth_getTransactionReceipt');
  const { transactionHash, blockNumber, status, logs } = answer.value;
  const used = logs.findIndex((log) => isUse(log, key, AUTHORIZATION_USED));
  const inOrder = logs.every(({ logIndex }, at) => logIndex === (logs[0]?.logIndex ?? 0n) + BigInt(at));
  if (transactionHash !== transaction || blockNumber !== block || status !== 1n || used < 0 || !inOrder) {
    return away('the node contradicts itself');
  }
  const next = logs[used + 1];
  return next !== undefined && isTransfer(next, charge) ? used + 1 : undefined;
}

function isUse({ address: at, topics }: Log, { asset, payer, unique }: PaymentKey, event: string): boolean {
  return (
    at === asset &&
    topics.length === 3 &&
    topics[0] === event &&
    topics[1] === `0x${padAddress(payer)}` &&
    topics[2] === unique
  );
}

function isTransfer(
  { address: at, topics, data }: Log,
  { payment: { asset, payer }, way: { payTo }, amount }: LookSubject,
): boolean {
  return (
    at === asset &&
    topics.length === 3 &&
    topics[0] === TRANSFER &&
    topics[1] === `0x${padAddress(payer)}` &&
    topics[2] === `0x${padAddress(payTo)}` &&
    data === `0x${amount.toString(16).padStart(64, '0')}`
  );
}

const DIGITS = /^\d{1,20}$/;

function readSearch(search: Search | null | undefined): Progress {
  const { round = '', next = '', range = '' } = search ?? {};
  return {
    used: false,
    round: DIGITS.test(round) ? BigInt(round) : 0n,
    next: DIGITS.test(next) ? BigInt(next) : undefined,
    range: DIGITS.test(range) && range !== '0' ? BigInt(range) : LOG_RANGE,
  };
}

function writeSearch({ round, next, range }: Progress): Search | null {
  if (round === 0n && next === undefined) return null;
  return {
    ...(round === 0n ? {} : { round: round.toString() }),
    ...(next === undefined ? {} : { next: next.toString() }),
    range: range.toString(),
  };
}

export function padAddress(value: string): string {
  return value.slice(2).toLowerCase().padStart(64, '0');
}

export function toHex(block: bigint): string {
  return `0x${block.toString(16)}`;
}
