// Receivers: where money goes. They come only from the process's own configuration, never from the network, because
// whoever can change a receiver can redirect every payment. Networks are known by their x402 v1 name and by their
// CAIP-2 name; either may be written, the other is derived.
import type { KeyObject } from 'node:crypto';

export type ReceiverSettle = 'auto' | 'before_response' | 'before_forward';

/** How a facilitator is told who calls. Nothing of it but a key id may stand in a log, an error or a metric. */
export type FacilitatorAuth = { readonly kind: 'bearer'; readonly token: string } | SigningAuth;
/** A key of an account: EC P-256 or Ed25519. */
export type SigningAuth = { readonly kind: 'cdp' | 'payai'; readonly keyId: string; readonly key: KeyObject };

export type Facilitator = {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly timeouts: { readonly verifyMs: number; readonly settleMs: number };
  /** Of each operation: calls at a time, and how many more may wait for one of them to end. */
  readonly limits: { readonly calls: number; readonly waiting: number };
  readonly auth: FacilitatorAuth | undefined;
  /** Who is known there: the key id, or of a token the receiver. With the URL it says which facilitator this is. */
  readonly account: string | undefined;
};

export type Receiver = {
  readonly id: string;
  readonly scheme: string;
  /** As configured: what the interface's `rail_config.network` answers. */
  readonly network: string;
  /** CAIP-2, such as `eip155:84532`. */
  readonly caip2: string;
  /** The x402 v1 name, or undefined where v1 has none for this network. */
  readonly v1Network: string | undefined;
  /** Undefined: nobody here knows. */
  readonly testnet: boolean | undefined;
  readonly asset: string;
  readonly assetDecimals: number;
  /** EIP-712 domain of the token. */
  readonly assetName: string;
  readonly assetVersion: string;
  readonly payTo: string;
  readonly maxTimeoutSeconds: number;
  /** Route currencies this receiver takes, at par. */
  readonly currencies: readonly string[];
  readonly facilitators: readonly Facilitator[];
  /** Nodes that are asked about settlements of unknown end, in this order; none: nobody is asked. */
  readonly rpcUrls: readonly string[];
  /** Whether all of these are public endpoints, whose word alone ends a payment later than that of a node of one's own. */
  readonly rpcPublic: boolean;
  readonly confirmations: number;
  readonly settle: ReceiverSettle;
};

export type KnownAsset = {
  readonly address: string;
  readonly decimals: number;
  readonly name: string;
  readonly version: string;
};
export type Network = {
  readonly caip2: string;
  readonly v1: string;
  readonly testnet: boolean;
  readonly usdc?: KnownAsset;
  /** Nodes that answer anybody. */
  readonly publicRpc?: readonly string[];
};

/** EVM networks of the x402 v1 enum, and USDC with its EIP-712 name where it is known for certain. */
export const NETWORKS: readonly Network[] = [
  {
    caip2: 'eip155:8453',
    v1: 'base',
    testnet: false,
    usdc: { address: '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913', decimals: 6, name: 'USD Coin', version: '2' },
    publicRpc: ['https://mainnet.base.org', 'https://base-rpc.publicnode.com'],
  },
  {
    caip2: 'eip155:84532',
    v1: 'base-sepolia',
    testnet: true,
    usdc: { address: '0x036CbD53842c5426634e7929541eC2318f3dCF7e', decimals: 6, name: 'USDC', version: '2' },
    publicRpc: ['https://sepolia.base.org', 'https://base-sepolia-rpc.publicnode.com'],
  },
  {
    caip2: 'eip155:137',
    v1: 'polygon',
    testnet: false,
    publicRpc: ['https://polygon.drpc.org', 'https://polygon-bor-rpc.publicnode.com'],
  },
  { caip2: 'eip155:80002', v1: 'polygon-amoy', testnet: true, publicRpc: ['https://polygon-amoy.drpc.org'] },
  { caip2: 'eip155:43114', v1: 'avalanche', testnet: false, publicRpc: ['https://api.avax.network/ext/bc/C/rpc'] },
  {
    caip2: 'eip155:43113',
    v1: 'avalanche-fuji',
    testnet: true,
    publicRpc: ['https://api.avax-test.network/ext/bc/C/rpc'],
  },
  { caip2: 'eip155:1329', v1: 'sei', testnet: false },
  { caip2: 'eip155:1328', v1: 'sei-testnet', testnet: true },
  { caip2: 'eip155:2741', v1: 'abstract', testnet: false },
  { caip2: 'eip155:11124', v1: 'abstract-testnet', testnet: true },
  { caip2: 'eip155:4689', v1: 'iotex', testnet: false },
  { caip2: 'eip155:3338', v1: 'peaq', testnet: false },
];

/** The network that `name` means: its v1 name, or `eip155:<chain id>` for any EVM chain. Undefined: not an EVM network we know. */
export function findNetwork(
  name: string,
): { caip2: string; v1: string | undefined; known: Network | undefined } | undefined {
  const known = NETWORKS.find((network) => network.caip2 === name || network.v1 === name);
  if (known) return { caip2: known.caip2, v1: known.v1, known };
  return /^eip155:[1-9]\d{0,17}$/.test(name) ? { caip2: name, v1: undefined, known: undefined } : undefined;
}
