// What a chain says about a payment, read from a node over JSON-RPC. The proof is CONTRACT section 6.7's: the token's
// AuthorizationUsed(payer, nonce), and in the very next log its Transfer(payer -> pay_to, amount), deep enough not to be
// undone. A used nonce proves nothing by itself: it may have been cancelled, or spent on somebody else. A node that is
// away, on another chain, behind or talking nonsense is `unavailable`, which is never taken for "not there".
import { z } from 'zod';
import type { PaymentKey } from '../../domain/charge.ts';
import type { Receiver } from '../../domain/receiver.ts';
import { createRpc, type Rpc, type RpcDeps, type RpcResult } from './json-rpc.ts';
import type { Evidence, ProofResult, ProofSearch, Unavailable } from './rail.ts';

export type EvidenceDeps = RpcDeps;

// Event topics and function selectors are Keccak-256 of the signatures beside them, as EIP-3009 and ERC-20 name them;
// test/gateway/rails/settle.test.ts computes them again.
/** AuthorizationUsed(address,bytes32) */
export const AUTHORIZATION_USED = '0x98de503528ee59b575ef0c0a2576a82497bfc029a5685b209e9ec333479b10a5';
/** Transfer(address,address,uint256) */
export const TRANSFER = '0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef';
/** authorizationState(address,bytes32) */
export const AUTHORIZATION_STATE = '0xe94a0102';

/** Blocks per eth_getLogs: public nodes refuse much more. Halved where even that is refused. */
const LOG_RANGE = 1000n;
/** Calls of eth_getLogs per search; the next search goes on where this one stopped. */
const MAX_LOG_CALLS = 20;

const quantity = z
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
const blockSchema = z.object({ number: quantity, timestamp: quantity });
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
const receiptSchema = z.object({
  transactionHash: word,
  blockNumber: quantity,
  status: quantity,
  logs: z.array(logSchema).max(20_000),
});
type Log = z.output<typeof logSchema>;

/** `rpcUrl`: a node of the chain `caip2`. */
export function createEvidence(
  receiver: Pick<Receiver, 'caip2' | 'confirmations'>,
  rpcUrl: string,
  deps: RpcDeps,
): Evidence {
  const rpc = createRpc(rpcUrl, deps);
  const depth = BigInt(receiver.confirmations) - 1n;
  let chainChecked = false;

  /** A node of another chain would prove and disprove everything. */
  const onChain = async (): Promise<Unavailable | undefined> => {
    if (chainChecked) return undefined;
    const answer = await rpc('eth_chainId', [], quantity);
    if (answer.kind !== 'result') return unavailable(answer, 'eth_chainId');
    if (`eip155:${answer.value}` !== receiver.caip2)
      return away(`the node is of eip155:${answer.value}, not of ${receiver.caip2}`);
    chainChecked = true;
    return undefined;
  };

  const readBlock = async (block: bigint | 'latest'): Promise<{ block: bigint; time: bigint } | Unavailable> => {
    const tag = block === 'latest' ? block : toHex(block);
    const answer = await rpc('eth_getBlockByNumber', [tag, false], blockSchema);
    if (answer.kind !== 'result') return unavailable(answer, 'eth_getBlockByNumber');
    const { number, timestamp } = answer.value;
    return block === 'latest' || number === block
      ? { block: number, time: timestamp }
      : away('another block than asked for');
  };

  const newest = async (): Promise<{ block: bigint; time: bigint } | Unavailable> =>
    (await onChain()) ?? (await readBlock('latest'));

  const head: Evidence['head'] = async () => {
    const found = await newest();
    return 'kind' in found ? found : { kind: 'head', ...found };
  };

  const blockAt: Evidence['blockAt'] = async (time) => {
    const last = await newest();
    if ('kind' in last) return last;
    if (last.time <= time) return { kind: 'block', block: last.block };
    let [low, high] = [0n, last.block];
    // `low` is at `time` or before it, or the first block; `high` is after it.
    while (high - low > 1n) {
      const middle = await readBlock((low + high) / 2n);
      if ('kind' in middle) return middle;
      if (middle.time <= time) low = middle.block;
      else high = middle.block;
    }
    return { kind: 'block', block: low };
  };

  const nonceState: Evidence['nonceState'] = async (key) => {
    const last = await newest();
    if ('kind' in last) return last;
    if (last.block < depth) return away('the chain is shorter than the confirmations');
    const at = depth === 0n ? last : await readBlock(last.block - depth);
    if ('kind' in at) return at;
    const call = { to: key.asset, data: `${AUTHORIZATION_STATE}${padAddress(key.payer)}${key.nonce.slice(2)}` };
    const answer = await rpc('eth_call', [call, toHex(at.block)], word);
    if (answer.kind !== 'result') return unavailable(answer, 'eth_call');
    const state = BigInt(answer.value);
    return state <= 1n ? { kind: 'state', used: state === 1n, ...at } : away('eth_call: an answer of another form');
  };

  const findProof = async (search: ProofSearch): Promise<ProofResult> => {
    const last = await newest();
    if ('kind' in last) return last;
    if (last.block < search.fromBlock) return away('the node is behind');
    const found = await findUse(rpc, search, last.block);
    if (found.kind !== 'use') return found;
    const { transactionHash: transaction, blockNumber: block } = found.log;
    const answer = await rpc('eth_getTransactionReceipt', [transaction], receiptSchema);
    if (answer.kind !== 'result') return unavailable(answer, 'eth_getTransactionReceipt');
    const receipt = answer.value;
    if (receipt.transactionHash !== transaction || receipt.blockNumber !== block)
      return away('the node contradicts itself');
    const transfer = receipt.logs.find(({ logIndex }) => logIndex === found.log.logIndex + 1n);
    const used = receipt.logs.find(({ logIndex }) => logIndex === found.log.logIndex);
    if (used === undefined || !isUse(used, search.key)) return away('the node contradicts itself');
    // What is not deep enough can still be undone, and said otherwise.
    if (last.block < block + depth) return { kind: 'unconfirmed', transaction, block };
    if (receipt.status !== 1n || transfer === undefined || !isTransfer(transfer, search)) {
      return { kind: 'contradicted', transaction };
    }
    return { kind: 'found', transaction, logIndex: Number(transfer.logIndex), block };
  };

  return { head, blockAt, nonceState, findProof };
}

/** The log that says that the nonce was used, or how far there is none. */
async function findUse(
  rpc: Rpc,
  { key, fromBlock }: ProofSearch,
  last: bigint,
): Promise<{ readonly kind: 'use'; readonly log: Log } | ProofResult> {
  const topics = [AUTHORIZATION_USED, `0x${padAddress(key.payer)}`, key.nonce];
  let from = fromBlock;
  let range = LOG_RANGE;
  for (let calls = 0; calls < MAX_LOG_CALLS && from <= last; calls++) {
    const to = from + range - 1n < last ? from + range - 1n : last;
    const filter = { address: key.asset, topics, fromBlock: toHex(from), toBlock: toHex(to) };
    const answer = await rpc('eth_getLogs', [filter], logsSchema);
    if (answer.kind === 'error' && range > 1n) {
      range /= 2n;
      continue;
    }
    if (answer.kind !== 'result') return unavailable(answer, 'eth_getLogs');
    // An authorization is used at most once, whatever a node says.
    const [log, ...more] = answer.value;
    if (more.length > 0) return away('eth_getLogs: one nonce used twice');
    if (log !== undefined) {
      const asked = isUse(log, key) && log.blockNumber >= from && log.blockNumber <= to;
      return asked ? { kind: 'use', log } : away('eth_getLogs: a log that was not asked for');
    }
    from = to + 1n;
  }
  return { kind: 'absent', scannedTo: from - 1n, complete: from > last };
}

function isUse({ address, topics }: Log, { asset, payer, nonce }: PaymentKey): boolean {
  return (
    address === asset &&
    topics.length === 3 &&
    topics[0] === AUTHORIZATION_USED &&
    topics[1] === `0x${padAddress(payer)}` &&
    topics[2] === nonce
  );
}

function isTransfer({ address, topics, data }: Log, { key, payTo, amount }: ProofSearch): boolean {
  return (
    address === key.asset &&
    topics.length === 3 &&
    topics[0] === TRANSFER &&
    topics[1] === `0x${padAddress(key.payer)}` &&
    topics[2] === `0x${padAddress(payTo)}` &&
    data === `0x${amount.toString(16).padStart(64, '0')}`
  );
}

function padAddress(value: string): string {
  return value.slice(2).toLowerCase().padStart(64, '0');
}

function toHex(block: bigint): string {
  return `0x${block.toString(16)}`;
}

function away(detail: string): Unavailable {
  return { kind: 'unavailable', detail };
}

function unavailable(answer: Exclude<RpcResult<unknown>, { kind: 'result' }>, method: string): Unavailable {
  return away(answer.kind === 'error' ? `${method}: error ${answer.code}` : answer.detail);
}
