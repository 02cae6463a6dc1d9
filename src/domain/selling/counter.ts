// Counters of requests by identity and window, for free requests and quotas of customers. One change is one atomic, durable
// write of the ledger, exact across all processes that share it. `decideTake` says what becomes of a request to count; the
// stores keep what it says. An identity is a keyed digest: the store never learns whose it is.
import type { CountingWindow } from './window.ts';

/** Name of what is counted and when: equal ones share their counters. */
export type CounterWindow = CountingWindow & {
  /** The kind of counter and its plan or entry: `free PLAN`, `quota ENTRY`. */
  readonly scope: string;
};

export type CounterChange = CounterWindow & {
  readonly identity: string;
  /** Names this change: one that is sent again is the same. */
  readonly changeId: string;
} & (
    | {
        readonly kind: 'take';
        /** Requests that one identity may take in the window. */
        readonly limit: number;
        /** Identities that there may be in the window. */
        readonly identities: number;
        /** Group that the identity belongs to, and how many identities of it there may be. */
        readonly group: string | null;
        readonly groupIdentities: number;
      }
    /** What a change took is given back. */
    | { readonly kind: 'give_back' }
  );

export type CounterTake = Extract<CounterChange, { kind: 'take' }>;

export type CounterResult =
  /** `used`: requests of this identity in the window, this one included. */
  | { readonly kind: 'counted'; readonly used: number }
  | { readonly kind: 'used_up' }
  /** There are as many identities as there may be, in all or of this group. */
  | { readonly kind: 'full' }
  | { readonly kind: 'given_back' };

export const COUNTER_RESULTS = ['counted', 'used_up', 'full', 'given_back'] as const;

/** What a store knows that a request to count depends on. */
export type CounterState = {
  /** Requests that the identity took; undefined: it is new in the window. */
  readonly used: number | undefined;
  readonly identities: number;
  readonly groupIdentities: number;
};

export function decideTake(take: CounterTake, { used, identities, groupIdentities }: CounterState): CounterResult {
  if (used === undefined) {
    if (take.limit === 0) return { kind: 'used_up' };
    if (identities >= take.identities) return { kind: 'full' };
    if (take.group !== null && groupIdentities >= take.groupIdentities) return { kind: 'full' };
    return { kind: 'counted', used: 1 };
  }
  return used >= take.limit ? { kind: 'used_up' } : { kind: 'counted', used: used + 1 };
}

/** Changes that one call carries at most. */
export const MOST_COUNTER_CHANGES = 100;
/** Time for which a change is known by its name. */
export const COUNTER_CHANGES_KEPT_MS = 600_000;

/**
 * Makes changes. An implementation MUST write each change atomically and durably before it resolves, in the order given, and
 * answer a change that it knows as it did before. It rejects with LedgerUnavailable if it cannot say.
 */
export type CounterChanger = {
  readonly change: (changes: readonly CounterChange[]) => Promise<readonly CounterResult[]>;
};

/** Keeps counters, and tells how many there are. */
export type CounterStore = CounterChanger & {
  /** Counts the identities of each scope in the windows that go on. */
  readonly identities: () => Promise<ReadonlyMap<string, number>>;
};
