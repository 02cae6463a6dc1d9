// The networks that Tollgate knows by name, and their tokens, as the folders of the chain families list them.
// Configuration and commands are handed this list, so that only those folders know a chain.
import type { Way } from './way.ts';

export type KnownToken = {
  readonly symbol: string;
  readonly address: string;
  readonly decimals: number;
  /** The terms of a way that pays with it. */
  readonly terms: Way['terms'];
};

export type KnownNetwork = {
  /** As configuration names it. */
  readonly name: string;
  /** Names of other programs for it. */
  readonly aliases?: readonly string[];
  /** Its name in the enum of x402 1.x, or undefined: clients of that version throw away everything if they read another. */
  readonly v1: string | undefined;
  readonly caip2: string;
  readonly testnet: boolean;
  readonly nativeCurrency: { readonly name: string; readonly symbol: string; readonly decimals: number };
  /** Nodes that answer anybody, in the order in which they are asked. */
  readonly rpcUrls: readonly string[];
  readonly explorer: string;
  /** Those that can be paid with; the first is the one that is meant if none is named. */
  readonly tokens: readonly KnownToken[];
};

/** What a configuration says of one way to pay, as it is written; undefined if it is left out. */
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
  /** Undefined: not known. */
  readonly testnet: boolean | undefined;
  readonly rpcUrls: readonly string[];
  /** Whether all of these answer anybody. */
  readonly rpcPublic: boolean;
};

/**
 * What is wrong with a way, or odd about it, at which key. `message` says what is there and what would be right, and begins
 * with a verb.
 */
export type WayIssue = { readonly field: string; readonly message: string };

export type WayReading =
  | { readonly kind: 'way'; readonly way: ReadWay; readonly warnings: readonly WayIssue[] }
  /** `whole`: nothing else about this way needs to be said. */
  | { readonly kind: 'issues'; readonly issues: readonly WayIssue[]; readonly whole: boolean };

export type Networks = {
  readonly known: readonly KnownNetwork[];
  /** By its name, its x402 v1 name or its CAIP-2 name. */
  readonly find: (name: string) => KnownNetwork | undefined;
  /** The name that was probably meant. */
  readonly suggest: (name: string) => string | undefined;
  readonly readWay: (input: WayInput) => WayReading;
};
