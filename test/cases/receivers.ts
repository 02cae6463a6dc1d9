// A receiver for tests: USDC on Base Sepolia, as a configuration would make it.
import type { Receiver } from '../../src/domain/receiver.ts';

export const RECEIVER: Receiver = {
  id: 'default',
  scheme: 'exact',
  network: 'base-sepolia',
  caip2: 'eip155:84532',
  v1Network: 'base-sepolia',
  testnet: true,
  asset: '0x036CbD53842c5426634e7929541eC2318f3dCF7e',
  assetDecimals: 6,
  assetName: 'USDC',
  assetVersion: '2',
  payTo: '0x1111111111111111111111111111111111111111',
  maxTimeoutSeconds: 300,
  currencies: ['USD', 'USDC'],
  facilitators: [],
  rpcUrls: [],
  rpcPublic: false,
  confirmations: 1,
  settle: 'auto',
};

export const RECEIVERS: ReadonlyMap<string, Receiver> = new Map([[RECEIVER.id, RECEIVER]]);
