// A node of the model chain, as a look asks it: JSON-RPC over a `fetch` that takes its time. Its ranges of logs are bounded,
// as public nodes bound theirs, and it counts how often a process asked it within a second.
import { AUTHORIZATION_STATE, AUTHORIZATION_USED, TRANSFER } from '../../../src/gateway/rails/evm/look.ts';
import type { Fetch } from '../../../src/gateway/rails/service-call.ts';
import type { ModelChain, Transfer } from './chain.ts';
import type { Actor, Scheduler } from './scheduler.ts';

export type NodeTerms = { readonly payTo: string; readonly amount: bigint };

type Call = { readonly id: number; readonly method: string; readonly params: readonly unknown[] };
type Filter = {
  readonly fromBlock: string;
  readonly toBlock: string;
  readonly topics: readonly [unknown, string, string];
};

const MOST_BLOCKS = 1_000;
const CHAIN_ID = '0x14a34';
const TOO_FAR = -32_005;

/** `asked` hears of each call, when it was made. */
export function modelNode(
  { scheduler, chain, terms }: { readonly scheduler: Scheduler; readonly chain: ModelChain; readonly terms: NodeTerms },
  asker: Actor,
  asked: (at: number) => void,
): Fetch {
  const word = (address: string): string => `0x${address.slice(2).padStart(64, '0')}`;
  const logsOf = (transfer: Transfer): object[] => {
    const log = (topics: readonly string[], data: string, logIndex: number): object => ({
      ...{ address: transfer.key.asset, topics, data, blockNumber: hex(transfer.block), logIndex: hex(logIndex) },
      transactionHash: transfer.transaction,
    });
    const { payer, unique } = transfer.key;
    const amount = `0x${terms.amount.toString(16).padStart(64, '0')}`;
    const used = log([AUTHORIZATION_USED, word(payer), unique], '0x', 0);
    return transfer.paid ? [used, log([TRANSFER, word(payer), word(terms.payTo)], amount, 1)] : [used];
  };
  const findUsed = (test: (transfer: Transfer) => boolean): Transfer | undefined =>
    chain.transfers.find((transfer) => transfer.block <= chain.head() && test(transfer));

  const answer = ({ method, params }: Call): object => {
    const [first] = params;
    switch (method) {
      case 'eth_chainId':
        return { result: CHAIN_ID };
      case 'eth_getBlockByNumber': {
        const number = first === 'latest' ? chain.head() : Number(first);
        return { result: { number: hex(number), timestamp: hex(chain.timeOf(number)) } };
      }
      case 'eth_call': {
        const { data } = first as { readonly data: string };
        const [payer, unique] = [data.slice(AUTHORIZATION_STATE.length + 24, -64), data.slice(-64)];
        const asOf = Number(params[1]);
        const used = findUsed(
          ({ key, block }) => block <= asOf && key.payer === `0x${payer}` && key.unique === `0x${unique}`,
        );
        return { result: word(used === undefined ? '0x0' : '0x1') };
      }
      case 'eth_getLogs': {
        const { fromBlock, toBlock, topics } = first as Filter;
        const [from, to] = [Number(fromBlock), Number(toBlock)];
        if (to - from >= MOST_BLOCKS) return { error: { code: TOO_FAR, message: 'too many blocks' } };
        const used = findUsed(
          ({ key, block }) => from <= block && block <= to && word(key.payer) === topics[1] && key.unique === topics[2],
        );
        return { result: used === undefined ? [] : logsOf(used).slice(0, 1) };
      }
      case 'eth_getTransactionReceipt': {
        const used = findUsed(({ transaction }) => transaction === first);
        if (used === undefined) return { result: null };
        const { transaction: transactionHash, block } = used;
        return { result: { transactionHash, blockNumber: hex(block), status: '0x1', logs: logsOf(used) } };
      }
      default:
        return { error: { code: -32_601, message: 'no such method' } };
    }
  };

  return async (input, init) => {
    const call = (await new Request(input, init).json()) as Call;
    asked(scheduler.now());
    await scheduler.point(asker, `asks the node: ${call.method}`, 10 + scheduler.draw.below(60));
    const said = answer(call);
    await scheduler.point(asker, `hears of the node: ${call.method}`, 10 + scheduler.draw.below(60));
    return Response.json({ jsonrpc: '2.0', id: call.id, ...said });
  };
}

function hex(value: number | bigint): string {
  return `0x${value.toString(16)}`;
}
