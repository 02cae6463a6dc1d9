// Times for people, in the zone of who reads. A browser may name a language that is none (`en-US@posix`): then its own default
// speaks.

const HOUR_MS = 3_600_000;

export type TimeWords = {
  /** `12:03:09`. */
  readonly clock: (at: number) => string;
  /** `25 Nov, 12:03`; with the year if it is another than that of `now`. */
  readonly moment: (at: number, now: number) => string;
  /** `25 Nov`. */
  readonly day: (at: number) => string;
  /** `25 November 2026, 12:03:09 UTC`: everything, for a title. */
  readonly whole: (at: number) => string;
};

export function createTimeWords(language: string | undefined, timeZone?: string): TimeWords {
  const form = (options: Intl.DateTimeFormatOptions): Intl.DateTimeFormat => {
    const all = timeZone === undefined ? options : { ...options, timeZone };
    try {
      return new Intl.DateTimeFormat(language, all);
    } catch {
      return new Intl.DateTimeFormat(undefined, all);
    }
  };
  const clock = form({ hour: '2-digit', minute: '2-digit', second: '2-digit', hourCycle: 'h23' });
  const near = form({ day: 'numeric', month: 'short', hour: '2-digit', minute: '2-digit', hourCycle: 'h23' });
  const far = form({ day: 'numeric', month: 'short', year: 'numeric' });
  const day = form({ day: 'numeric', month: 'short' });
  const whole = form({ dateStyle: 'long', timeStyle: 'long' });
  const year = form({ year: 'numeric' });
  return {
    clock: (at) => clock.format(at),
    moment: (at, now) => (year.format(at) === year.format(now) ? near.format(at) : far.format(at)),
    day: (at) => day.format(at),
    whole: (at) => whole.format(at),
  };
}

/** How long ago, in one unit: `3 min ago`. */
export function agoText(at: number, now: number): string {
  const seconds = Math.round((now - at) / 1000);
  if (seconds < 5) return 'just now';
  return `${spanText(seconds * 1000)} ago`;
}

/** How long ago something was of which the hour is known: `at` is where that hour begins. */
export function hourAgoText(at: number, now: number): string {
  return now - at < HOUR_MS ? 'within the hour' : agoText(at, now);
}

/** A length of time in one unit: `3 min`. */
function spanText(ms: number): string {
  const seconds = Math.round(ms / 1000);
  if (seconds < 60) return `${seconds} s`;
  const minutes = Math.round(seconds / 60);
  if (minutes < 60) return `${minutes} min`;
  const hours = Math.round(minutes / 60);
  if (hours < 48) return `${hours} h`;
  return `${Math.round(hours / 24)} days`;
}
