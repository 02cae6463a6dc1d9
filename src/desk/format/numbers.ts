// Counts, shares and changes for people.

export function countText(value: number): string {
  return String(Math.round(value)).replace(/\B(?=(\d{3})+$)/g, ',');
}

/** A count in four characters or so, for a narrow place: `12.4k`. */
export function shortCount(value: number): string {
  if (value < 1_000) return String(Math.round(value));
  if (value < 999_500) return `${short(value / 1_000)}k`;
  if (value < 999_500_000) return `${short(value / 1_000_000)}M`;
  return `${short(value / 1_000_000_000)}G`;
}

function short(value: number): string {
  return value < 99.95 ? String(Number(value.toFixed(1))) : String(Math.round(value));
}

/** `0.1234` -> `12.3 %`. */
export function shareText(share: number): string {
  const percent = share * 100;
  if (percent === 0) return '0 %';
  if (percent < 0.1) return 'under 0.1 %';
  return `${percent < 10 ? percent.toFixed(1) : Math.min(percent, 100).toFixed(percent > 99.9 ? 0 : 1)} %`;
}

export type Shift = { readonly direction: 'up' | 'down' | 'same'; readonly text: string };

/** The change from `before` to `now`; null if there was nothing before, so that no share can be said. */
export function changeOf(now: number, before: number): Shift | null {
  if (before === 0) return now === 0 ? { direction: 'same', text: 'no change' } : null;
  const share = (now - before) / Math.abs(before);
  if (Math.abs(share) < 0.0005) return { direction: 'same', text: 'no change' };
  const percent = Math.abs(share) * 100;
  const text = percent >= 1000 ? 'over 10 times' : `${percent >= 100 ? percent.toFixed(0) : percent.toFixed(1)} %`;
  return { direction: share > 0 ? 'up' : 'down', text };
}

export function millisecondsText(ms: number): string {
  if (ms < 1) return `${Number(ms.toFixed(2))} ms`;
  if (ms < 100) return `${Number(ms.toFixed(1))} ms`;
  return ms < 10_000 ? `${Math.round(ms)} ms` : `${(ms / 1000).toFixed(1)} s`;
}
