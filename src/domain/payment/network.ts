// The networks that Tollgate knows by name, and their tokens, as the folders of the chain families list them.
// Configuration and commands are handed this list, so that only those folders know a chain.
import type { Way } from './way.ts';

export type KnownToken = {
  readonly symbol: string;
  readonly address: string;
  readonly decimals: number;
  /** Terms of a way that pays with the token. */
  readonly terms: Way['terms'];
};

export type KnownNetwork = {
  /** Name in a configuration. */
  readonly name: string;
  /** Names that other programs have for it. */
  readonly aliases?: readonly string[];
  /** Name in the enum of x402 1.x, or undefined: clients of that version throw away everything if they read another. */
  readonly v1: string | undefined;
  readonly caip2: string;
  readonly testnet: boolean;
  readonly nativeCurrency: { readonly name: string; readonly symbol: string; readonly decimals: number };
  /** Nodes that answer anybody, in the order in which they are asked. */
  readonly rpcUrls: readonly string[];
  readonly explorer: string;
  /** Tokens that can be paid with; the first is meant if none is named. */
  readonly tokens: readonly KnownToken[];
};

/** One way to pay as a configuration writes it; a member is undefined if it is left out. */
export type WayInput = {
  readonly network: string;
  readonly asset: string | undefined;
  readonly asset_decimals: number | undefined;
  readonly pay_to_address: string | undefined;
  readonly rpc_url: readonly string[] | undefined;
  /** Keys that only some chain families have. */
  readonly own: Readonly<Record<string, string | undefined>>;
};

/** A way as its rail reads it; the rest of it is not the rail's. */
export type ReadWay = Pick<Way, 'network' | 'asset' | 'decimals' | 'payTo' | 'terms'> & {
  /** Says whether the network is a testnet; undefined if that is not known. */
  readonly testnet: boolean | undefined;
  readonly rpcUrls: readonly string[];
  /** Says whether all of these nodes answer anybody. */
  readonly rpcPublic: boolean;
};

/**
 * Fault or oddity of a way, and its key. `message` says what is there and what would be right, and begins with a verb.
 */
export type WayIssue = { readonly field: string; readonly message: string };

export type WayReading =
  | { readonly kind: 'way'; readonly way: ReadWay; readonly warnings: readonly WayIssue[] }
  /** The way has issues. If `whole`, nothing else about it needs to be said. */
  | { readonly kind: 'issues'; readonly issues: readonly WayIssue[]; readonly whole: boolean };

export type Networks = {
  readonly known: readonly KnownNetwork[];
  /** Finds a network by its name, its x402 v1 name or its CAIP-2 name. */
  readonly find: (name: string) => KnownNetwork | undefined;
  /** Suggests the name that was probably meant. */
  readonly suggest: (name: string) => string | undefined;
  readonly readWay: (input: WayInput) => WayReading;
};
