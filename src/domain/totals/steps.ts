// The steps in which sums are kept: minutes for two days, hours for months, days for years, all of UTC. Any time between two
// moments is a few spans of such steps: minutes and hours at its ends, days in its middle.

export const TOTALS_STEPS = ['minute', 'hour', 'day'] as const;
export type TotalsStep = (typeof TOTALS_STEPS)[number];

export const STEP_MS: Readonly<Record<TotalsStep, number>> = { minute: 60_000, hour: 3_600_000, day: 86_400_000 };

/** How long minutes are kept, and shown. */
export const MINUTES_KEPT_MS = 48 * STEP_MS.hour;

/** Steps from `from` up to and without `to`, numbered since the epoch. */
export type Span = { readonly step: TotalsStep; readonly from: number; readonly to: number };

/** A time in milliseconds since the epoch, `to` not included. */
export type TimeRange = { readonly fromMs: number; readonly toMs: number };

/** The first moments of which minutes and hours are kept: the beginning of an hour and of a day. */
export type RetentionStarts = { readonly minuteMs: number; readonly hourMs: number };

export function keptSince(nowMs: number, hoursMs: number): RetentionStarts {
  return { minuteMs: floorTo(nowMs - MINUTES_KEPT_MS, 'hour'), hourMs: floorTo(nowMs - hoursMs, 'day') };
}

/** The step of that kind that holds the moment. */
export function stepOf(ms: number, step: TotalsStep): number {
  return Math.floor(ms / STEP_MS[step]);
}

export function floorTo(ms: number, step: TotalsStep): number {
  return stepOf(ms, step) * STEP_MS[step];
}

export function ceilTo(ms: number, step: TotalsStep): number {
  return Math.ceil(ms / STEP_MS[step]) * STEP_MS[step];
}

/** `range` widened to whole steps of the finest kind that is kept at each of its ends; `finest` is the finest that is asked for. */
export function widen({ fromMs, toMs }: TimeRange, kept: RetentionStarts, finest: 'minute' | 'hour'): TimeRange {
  const grain = (ms: number): TotalsStep => {
    if (finest === 'minute' && ms >= kept.minuteMs) return 'minute';
    return ms >= kept.hourMs ? 'hour' : 'day';
  };
  return { fromMs: floorTo(fromMs, grain(fromMs)), toMs: ceilTo(toMs, grain(toMs)) };
}

/** Spans that together are exactly `range`, whose ends are those of whole steps. */
export function spansOf({ fromMs, toMs }: TimeRange): readonly Span[] {
  return split(fromMs, toMs, 'day');
}

/** The same for a look at sums at `nowMs`: a day that goes on is one step, of what there is of it, and not its hours. */
export function spansBy({ fromMs, toMs }: TimeRange, nowMs: number): readonly Span[] {
  return spansOf({ fromMs, toMs: toMs > nowMs ? ceilTo(toMs, 'day') : toMs });
}

const FINER = { day: 'hour', hour: 'minute', minute: undefined } as const;

function split(fromMs: number, toMs: number, step: TotalsStep): readonly Span[] {
  const [first, last] = [ceilTo(fromMs, step), floorTo(toMs, step)];
  const finer = FINER[step];
  if (first >= last) return finer === undefined || fromMs >= toMs ? [] : split(fromMs, toMs, finer);
  const middle = { step, from: stepOf(first, step), to: stepOf(last, step) };
  if (finer === undefined) return [middle];
  return [...split(fromMs, first, finer), middle, ...split(last, toMs, finer)];
}
