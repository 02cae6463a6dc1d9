// Receivers: where money goes. They come only from the process's own configuration, never from the network, because
// who can change a receiver can redirect every payment.
import type { KeyObject } from 'node:crypto';
import type { Way } from './payment/way.ts';

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

/** Who is asked about payments that are made in a way. */
export type WayServices = {
  readonly facilitators: readonly Facilitator[];
  /** Nodes that are asked about settlements of unknown end, in this order; none: no node is asked. */
  readonly rpcUrls: readonly string[];
  /** Whether all of these are public endpoints, whose word alone ends a payment later than that of a node of one's own. */
  readonly rpcPublic: boolean;
  readonly confirmations: number;
};

export type ReceiverWay = WayServices & {
  readonly way: Way;
  /** The network as configured: what the interface's `rail_config.network` answers. */
  readonly networkName: string;
  /** Undefined: not known. */
  readonly testnet: boolean | undefined;
};

export type Receiver = {
  readonly id: string;
  /** In order of preference, at least one. */
  readonly ways: readonly ReceiverWay[];
  /** Route currencies this receiver takes, at par. */
  readonly currencies: readonly string[];
  readonly settle: ReceiverSettle;
};

/** Whether a request is settled before it is forwarded if nothing about it or its payer asks for that. */
export function settlesFirst(settle: ReceiverSettle, method: string): boolean {
  return settle === 'auto' ? method !== 'GET' && method !== 'HEAD' : settle === 'before_forward';
}

/** Of the same way, or of another one on its network if that is configured no more; undefined: none can be asked. */
export function findServices(receivers: ReadonlyMap<string, Receiver>, way: Way): WayServices | undefined {
  const ways = receivers.get(way.receiverId)?.ways.filter((each) => each.way.network === way.network);
  return ways?.find((each) => each.way.asset === way.asset && each.way.payTo === way.payTo) ?? ways?.[0];
}
