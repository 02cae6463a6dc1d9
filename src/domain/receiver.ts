// Receivers: where money goes. They come only from the process's own configuration, never from the network, because
// who can change a receiver can redirect every payment. Networks are known by their x402 v1 name and by their
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
  /** The x402 v1 name, or undefined if v1 has none for this network. */
  readonly v1Network: string | undefined;
  /** Undefined: not known. */
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
  /** Nodes that are asked about settlements of unknown end, in this order; none: no node is asked. */
  readonly rpcUrls: readonly string[];
  /** Whether all of these are public endpoints, whose word alone ends a payment later than that of a node of one's own. */
  readonly rpcPublic: boolean;
  readonly confirmations: number;
  readonly settle: ReceiverSettle;
};
