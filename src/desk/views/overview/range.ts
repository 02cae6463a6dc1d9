// The range of time that a view looks at, as it stands in the address. The minute that goes on is part of it.

export const RANGES = ['24h', '7d', '30d', '90d'] as const;
type RangeName = (typeof RANGES)[number];

const MINUTE_MS = 60_000;
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

/** Bounds of a range that ends with the minute of `now`, so that what was paid a moment ago counts. */
export function boundsOf(range: RangeName, now: number): { readonly from: string; readonly to: string } {
  const to = (Math.floor(now / MINUTE_MS) + 1) * MINUTE_MS;
  return { from: new Date(to - MS[range]).toISOString(), to: new Date(to).toISOString() };
}
