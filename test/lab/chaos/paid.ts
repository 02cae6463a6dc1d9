// The payments that reached an address, by the chain's own logs: an authorization that was used, and the transfer to it in
// the very next log.
import { encodeEventTopics, pad, parseAbi, type Hex } from 'viem';
import { USDC, type Chain } from '../../support/chain/chain.ts';

const EVENTS = parseAbi([
  'event Transfer(address indexed from, address indexed to, uint256 value)',
  'event AuthorizationUsed(address indexed authorizer, bytes32 indexed nonce)',
]);

type Log = { readonly topics: readonly Hex[]; readonly transactionHash: Hex; readonly logIndex: Hex };

/** Nonce -> transaction. */
export async function readPaid(chain: Chain, payTo: Hex): Promise<ReadonlyMap<string, Hex>> {
  const query = async (topics: readonly (Hex | null)[]): Promise<Log[]> =>
    (await chain.rpc('eth_getLogs', [{ fromBlock: '0x0', toBlock: 'latest', address: USDC, topics }])) as Log[];
  const [used] = encodeEventTopics({ abi: EVENTS, eventName: 'AuthorizationUsed' });
  const [transfer] = encodeEventTopics({ abi: EVENTS, eventName: 'Transfer' });
  const place = ({ transactionHash, logIndex }: Log, next: bigint): string =>
    `${transactionHash} ${BigInt(logIndex) + next}`;
  const transfers = new Set((await query([transfer, null, pad(payTo)])).map((log) => place(log, 0n)));
  const uses = await query([used]);
  return new Map(
    uses
      .filter((log) => transfers.has(place(log, 1n)))
      .map((log) => [log.topics[2] ?? '', log.transactionHash] as const),
  );
}
