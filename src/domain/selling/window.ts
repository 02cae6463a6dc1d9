// Windows of time in which requests are counted: hours, days and months of UTC. All processes that share a ledger name a
// window by its start, so that they count in the same one.

export const WINDOW_LENGTHS = ['hour', 'day', 'month'] as const;
export type WindowLength = (typeof WINDOW_LENGTHS)[number];

/** A window, from `startMs` up to `endMs`; milliseconds since the epoch. */
export type CountingWindow = { readonly startMs: number; readonly endMs: number };

/** The window of this length that `nowMs` lies in. */
export function windowAt(length: WindowLength, nowMs: number): CountingWindow {
  const at = new Date(nowMs);
  const [year, month, day] = [at.getUTCFullYear(), at.getUTCMonth(), at.getUTCDate()];
  switch (length) {
    case 'hour': {
      const startMs = Date.UTC(year, month, day, at.getUTCHours());
      return { startMs, endMs: startMs + HOUR_MS };
    }
    case 'day': {
      const startMs = Date.UTC(year, month, day);
      return { startMs, endMs: startMs + 24 * HOUR_MS };
    }
    case 'month':
      return { startMs: Date.UTC(year, month), endMs: Date.UTC(year, month + 1) };
    default:
      return length satisfies never;
  }
}

const HOUR_MS = 3_600_000;
