// The range of time that a view looks at, as it stands in the address. It ends at a whole second.

export const RANGES = ['24h', '7d', '30d', '90d'] as const;
export type RangeName = (typeof RANGES)[number];

const MS: Readonly<Record<RangeName, number>> = {
  '24h': 86_400_000,
  '7d': 7 * 86_400_000,
  '30d': 30 * 86_400_000,
  '90d': 90 * 86_400_000,
};

export const RANGE_WORDS: Readonly<Record<RangeName, string>> = {
  '24h': '24 hours',
  '7d': '7 days',
  '30d': '30 days',
  '90d': '90 days',
};

export function readRange(text: string | null): RangeName {
  return RANGES.find((each) => each === text) ?? '24h';
}

/** `from` and `to` of a range that ends about now. */
export function boundsOf(range: RangeName, now: number): { readonly from: string; readonly to: string } {
  const step = 1_000;
  const to = Math.ceil(now / step) * step;
  return { from: new Date(to - MS[range]).toISOString(), to: new Date(to).toISOString() };
}
