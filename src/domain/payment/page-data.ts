// The data of the page for people. The gateway writes it into the document as JSON, and
// the page's program reads it. Public facts of the offer and of known networks alone. Amounts of tokens are spelled
// here for both.

export type PageData = {
  /** Ways of the 402 that a wallet in a browser can be asked for, in its order: of its first price, then of each pass. */
  readonly ways: readonly PageWay[];
  /** How long the price and the charge id of a 402 hold, in milliseconds. */
  readonly quoteTtlMs: number;
};

export type PageWay = {
  /** Network in CAIP-2. */
  readonly network: string;
  readonly asset: string;
  readonly payTo: string;
  /** Amount in the smallest unit, as the page shows it. A payer signs the amount of a new 402. */
  readonly amount: string;
  readonly decimals: number;
  readonly symbol: string;
  /** Id of the pass that is bought; left out: a single request. */
  readonly pass?: string;
  /** Words behind the price that say what is bought; left out: there is nothing else to be mistaken for. */
  readonly gives?: string;
  /** Words about a pass that the browser keeps, for whoever bought it. */
  readonly keeps?: string;
  /** Name that people have for the network. */
  readonly chainName: string;
  readonly testnet: boolean;
  /** Explorer's page for a transaction; undefined if none is known. */
  readonly explorer?: string;
  /** Facts for a wallet that does not know the network; undefined if we do not know it either. */
  readonly chain?: PageChain;
};

type PageChain = {
  readonly nativeCurrency: { readonly name: string; readonly symbol: string; readonly decimals: number };
  readonly rpcUrls: readonly string[];
};

/** Writes `atomic` smallest units as a decimal with at least two places: 100000 of 6 decimals is 0.10. */
export function tokenAmount(atomic: bigint, decimals: number): string {
  if (decimals === 0) return atomic.toString();
  const digits = atomic.toString().padStart(decimals + 1, '0');
  const fraction = digits.slice(-decimals).replace(/0+$/, '').padEnd(2, '0');
  return `${digits.slice(0, -decimals)}.${fraction}`;
}
