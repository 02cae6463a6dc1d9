// The health of the services behind a receiver: how its facilitators and nodes answer, as far as the processes of one proxy know.
// Words and times alone: nothing of a URL, a header or a key is in it.
import type { Facilitator } from './offer.ts';

/**
 * The ways in which a facilitator may stand. `resting`: it is left alone, one call at a time tries; `unauthorized`: it takes no
 * call of this account; `failing`: the last call got no usable answer; `unasked`: nothing is known of it yet.
 */
export const FACILITATOR_STATUSES = ['ok', 'resting', 'unauthorized', 'failing', 'unasked'] as const;
export type FacilitatorStatus = (typeof FACILITATOR_STATUSES)[number];

export type FacilitatorHealth = {
  readonly status: FacilitatorStatus;
  /** Since when, in milliseconds since the epoch; null if nothing is known. */
  readonly sinceMs: number | null;
  /** When the last call ended; null if there was none. */
  readonly askedMs: number | null;
  /** Why the last call failed, in words of ours; null if it did not. */
  readonly lastError: string | null;
  /** How long the last answers took, in milliseconds. */
  readonly durationsMs: readonly number[];
};

export const NODE_STATUSES = ['ok', 'failing', 'unasked'] as const;
export type NodeStatus = (typeof NODE_STATUSES)[number];

/** Health of each facilitator by `facilitatorKey`. */
export type FacilitatorHealths = Readonly<Record<string, FacilitatorHealth>>;

export const UNASKED: FacilitatorHealth = {
  status: 'unasked',
  sinceMs: null,
  askedMs: null,
  lastError: null,
  durationsMs: [],
};

/** Stands for a facilitator inside of one proxy. Never shown: a URL may hold a secret. */
export function facilitatorKey({ url, account }: Pick<Facilitator, 'url' | 'account'>): string {
  return `${url} ${account ?? ''}`;
}

/** The health of one facilitator by what several processes know of it: the last call says how it stands. */
export function joinHealth(known: readonly FacilitatorHealth[]): FacilitatorHealth {
  const [latest = UNASKED] = known.toSorted((a, b) => (b.askedMs ?? 0) - (a.askedMs ?? 0));
  return { ...latest, durationsMs: known.flatMap(({ durationsMs }) => durationsMs) };
}

/** The time in milliseconds within which half of the answers came; null without any. */
export function medianMs(durationsMs: readonly number[]): number | null {
  const sorted = durationsMs.toSorted((a, b) => a - b);
  const middle = sorted[Math.floor((sorted.length - 1) / 2)];
  return middle === undefined ? null : Math.round(middle * 10) / 10;
}
