// Durations as people write them: a whole number and its unit. A number without a unit is refused, because 30 could mean
// seconds or milliseconds.

const UNITS: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 };

export const DURATION_ADVICE = 'a duration: a whole number with its unit, such as 500ms, 5s, 15m, 24h or 7d';

/** The longest delay that a timer of Node can hold; everything that becomes a timer stays under it. */
export const LONGEST_TIMER_MS = 2 ** 31 - 1;

/** Reads a duration in milliseconds; undefined if `text` is none. */
export function parseDuration(text: string): number | undefined {
  const [, digits, unit] = /^(\d{1,12})(ms|s|m|h|d)$/.exec(text) ?? [];
  const factor = unit === undefined ? undefined : UNITS[unit];
  return digits === undefined || factor === undefined ? undefined : Number(digits) * factor;
}

/** The shortest exact way to write `ms`, for messages. */
export function formatDuration(ms: number): string {
  const unit =
    ['d', 'h', 'm', 's'].find((name) => ms % (UNITS[name] ?? 1) === 0 && ms > 0 && (name !== 'd' || ms > 86_400_000)) ??
    'ms';
  return `${ms / (UNITS[unit] ?? 1)}${unit}`;
}
