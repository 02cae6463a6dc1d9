// Money per currency. Amounts are integers of an asset's smallest unit: two assets of one currency may have different
// decimals, and are added as exact decimals. Amounts of two currencies are never added.
import { formatPrice } from '../payment/money.ts';

export type Money = { readonly currency: string; readonly assetDecimals: number; readonly amount: bigint };

/** Sums per currency, exact. */
export type Revenue = {
  readonly add: (money: Money) => void;
  readonly currencies: () => readonly string[];
  /** The decimal that writes the sum; "0" if nothing of this currency was added. */
  readonly text: (currency: string) => string;
  /** The sum in units of the finest asset that there may be, to compare it with others. */
  readonly weight: (currency: string) => bigint;
};

/** Decimals that no asset exceeds. */
const MOST_DECIMALS = 255;

export function createRevenue(): Revenue {
  const sums = new Map<string, { amount: bigint; decimals: number }>();
  const units = (currency: string, decimals: number): bigint => {
    const sum = sums.get(currency);
    return sum === undefined ? 0n : sum.amount * 10n ** BigInt(decimals - sum.decimals);
  };
  return {
    add: ({ currency, assetDecimals, amount }) => {
      const known = sums.get(currency);
      const decimals = Math.max(known?.decimals ?? 0, assetDecimals);
      const added = amount * 10n ** BigInt(decimals - assetDecimals);
      sums.set(currency, { amount: units(currency, decimals) + added, decimals });
    },
    currencies: () => [...sums.keys()].toSorted(),
    text: (currency) => {
      const sum = sums.get(currency);
      return formatPrice({ units: sum?.amount ?? 0n, scale: sum?.decimals ?? 0 });
    },
    weight: (currency) => units(currency, MOST_DECIMALS),
  };
}
