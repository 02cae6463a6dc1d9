// The data of the page for people. The gateway writes it into the document as JSON, and
// the page's program reads it. Public facts of the offer and of known networks alone. Amounts of tokens are spelled
// here for both.

export type PageData = {
  /** Those of the 402 that a wallet in a browser can be asked for, in its order. */
  readonly ways: readonly PageWay[];
};

export type PageWay = {
  /** CAIP-2. */
  readonly network: string;
  readonly asset: string;
  readonly payTo: string;
  /** In the smallest unit, as it is shown: what is signed is what a new 402 asks for. */
  readonly amount: string;
  readonly decimals: number;
  readonly symbol: string;
  /** Of the network, as people call it. */
  readonly chainName: string;
  readonly testnet: boolean;
  /** Undefined: no page is known that shows transactions. */
  readonly explorer?: string;
  /** For a wallet that does not know the network; undefined: we do not know it either. */
  readonly chain?: PageChain;
};

type PageChain = {
  readonly nativeCurrency: { readonly name: string; readonly symbol: string; readonly decimals: number };
  readonly rpcUrls: readonly string[];
};

/** `atomic` smallest units as a decimal with at least two places: 100000 of 6 decimals is 0.10. */
export function tokenAmount(atomic: bigint, decimals: number): string {
  if (decimals === 0) return atomic.toString();
  const digits = atomic.toString().padStart(decimals + 1, '0');
  const fraction = digits.slice(-decimals).replace(/0+$/, '').padEnd(2, '0');
  return `${digits.slice(0, -decimals)}.${fraction}`;
}
