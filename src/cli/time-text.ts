// Times as sentences write them: the time itself, and how far from now it is.

/** Writes the time `at`, RFC 3339, as a date and how long ago it is. */
export function when(at: string, now: number): string {
  return `${at} (${ago(Date.parse(at), now)})`;
}

const UNITS: readonly (readonly [name: string, ms: number])[] = [
  ['day', 86_400_000],
  ['hour', 3_600_000],
  ['minute', 60_000],
  ['second', 1000],
];

/** Writes how far `at` is from now, such as `3 minutes ago` or `in 1 hour`. */
export function ago(at: number, now: number): string {
  const distance = Math.abs(now - at);
  const [name, ms] = UNITS.find(([, each]) => distance >= each) ?? ['second', 1000];
  const count = Math.floor(distance / ms);
  if (count === 0) return 'now';
  const told = `${count} ${name}${count === 1 ? '' : 's'}`;
  return at <= now ? `${told} ago` : `in ${told}`;
}
