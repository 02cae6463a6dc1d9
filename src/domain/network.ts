// The networks that Tollgate knows by name, and their tokens, as the folders of the chain families list them. Configuration
// and commands are handed this list, so that nothing outside those folders knows a chain.

export type KnownToken = {
  readonly symbol: string;
  readonly address: string;
  readonly decimals: number;
  /** EIP-712 domain, where payments are signed in one. */
  readonly domain: { readonly name: string; readonly version: string } | undefined;
};

export type KnownNetwork = {
  /** As configuration names it. */
  readonly name: string;
  /** Its name in the enum of x402 1.x, or undefined: clients of that version throw away everything where they read another. */
  readonly v1: string | undefined;
  readonly caip2: string;
  readonly testnet: boolean;
  readonly nativeCurrency: { readonly name: string; readonly symbol: string; readonly decimals: number };
  /** Nodes that answer anybody, in the order in which they are asked. */
  readonly rpcUrls: readonly string[];
  readonly explorer: string;
  /** Those that can be paid with; the first is the one that is meant where none is named. */
  readonly tokens: readonly KnownToken[];
};
