// A receiver for tests: USDC on Base Sepolia, as a configuration would make it. Tests change it by plain fields.
import type { Way } from '../../src/domain/payment/way.ts';
import type { Receiver, ReceiverWay } from '../../src/domain/payment/offer.ts';
import { EVM_WORDS } from '../../src/gateway/rails/evm/evm-rail.ts';
import { createRequirement } from '../../src/gateway/rails/x402/accepts-entry.ts';

/** A receiver of one way. */
export type PlainReceiver = Pick<Receiver, 'id' | 'currencies' | 'settle'> &
  Omit<Way, 'receiverId' | 'terms'> &
  Omit<ReceiverWay, 'way'> & { readonly assetName: string; readonly assetVersion: string };

export const PLAIN: PlainReceiver = {
  id: 'default',
  scheme: 'exact',
  networkName: 'base-sepolia',
  network: 'eip155:84532',
  testnet: true,
  asset: '0x036CbD53842c5426634e7929541eC2318f3dCF7e',
  decimals: 6,
  assetName: 'USDC',
  assetVersion: '2',
  payTo: '0x1111111111111111111111111111111111111111',
  timeoutSeconds: 300,
  currencies: ['USD', 'USDC'],
  facilitators: [],
  rpcUrls: [],
  rpcPublic: false,
  confirmations: 1,
  settle: 'auto',
};

export function receiverOf(changes: Partial<PlainReceiver> = {}): Receiver {
  const plain = { ...PLAIN, ...changes };
  const { id, currencies, settle, networkName, testnet, facilitators, rpcUrls, rpcPublic, confirmations } = plain;
  const { scheme, network, asset, decimals, payTo, timeoutSeconds, assetName, assetVersion } = plain;
  const terms = { name: assetName, version: assetVersion };
  const way = { receiverId: id, network, scheme, asset, decimals, payTo, timeoutSeconds, terms };
  const services = { facilitators, rpcUrls, rpcPublic, confirmations };
  return { id, currencies, settle, ways: [{ way, networkName, testnet, ...services }] };
}

export function wayOf({ ways }: Receiver): ReceiverWay {
  const [first] = ways;
  if (first === undefined) throw new Error('a receiver without a way');
  return first;
}

export const RECEIVER: Receiver = receiverOf();
export const WAY: Way = wayOf(RECEIVER).way;
export const RECEIVERS: ReadonlyMap<string, Receiver> = new Map([[RECEIVER.id, RECEIVER]]);
/** What a 402 says of ways on these networks. */
export const requirement = createRequirement(EVM_WORDS);
