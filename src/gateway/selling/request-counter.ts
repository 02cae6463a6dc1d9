// Counts requests in the ledger before they go on, and gives back those that are not charged for. Who is counted is told to
// the ledger as a keyed digest, a new one for each window. Changes that come while a call is under way go together in the
// next one. A change whose end is not known is taken back as soon as the ledger answers.
import { createHmac, createSecretKey } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import { REPEATS } from '../../domain/payment/claim-policy.ts';
import {
  MOST_COUNTER_CHANGES,
  type CounterChange,
  type CounterResult,
  type CounterChanger,
  type CounterTake,
} from '../../domain/selling/counter.ts';
import type { CountingWindow } from '../../domain/selling/window.ts';
import type { Schedule } from '../../host/clock.ts';
import type { Log } from '../../host/log.ts';

/** Request that is to be counted. `subject`: whose it is; `group`: what the subject belongs to. */
export type WantedCount = CountingWindow & {
  readonly scope: string;
  readonly subject: string;
  readonly group: string | undefined;
  readonly limit: number;
  readonly identities: number;
  /** Name by which the request is known if it comes again (`nameOfQuestion`): it is counted once. */
  readonly name: string | undefined;
};

export type CountedRequest = { readonly kind: 'counted'; readonly used: number; readonly take: CounterTake };
export type Taken = CountedRequest | { readonly kind: 'used_up' } | { readonly kind: 'full' } | 'unavailable';

export type RequestCounter = {
  readonly take: (wanted: WantedCount) => Promise<Taken>;
  /** Gives a counted request back; nobody waits for it. */
  readonly giveBack: (counted: CountedRequest) => void;
};

export type RequestCounterDeps = {
  /** Undefined: there is no ledger to count in. */
  readonly store: CounterChanger | undefined;
  readonly newId: () => string;
  readonly schedule: Schedule;
  readonly log: Log;
};

/** Identities of one group, such as the networks of one subscriber, in a window. */
const GROUP_IDENTITIES = 16;
const IDENTITY_BYTES = 18;
/** Number of named requests of which it is known how often they came. */
const NAMES = 10_000;
const PAUSES_MS = [100, 500, 2_000, 10_000, 30_000];

export function createRequestCounter(
  secret: string,
  { store, newId, schedule, log }: RequestCounterDeps,
): RequestCounter {
  const key = createSecretKey(createHmac('sha256', secret).update('tollgate counters').digest());
  const digest = (...parts: readonly (string | number)[]): string =>
    createHmac('sha256', key).update(JSON.stringify(parts)).digest().toString('base64url', 0, IDENTITY_BYTES);
  const change = store && inBatches(store);
  const asks = new LRUCache<string, number>({ max: NAMES });
  /** Notes that the request of `changeId` came; whether it came so often that it is taken for a new one. */
  const comesTooOften = (changeId: string): boolean => {
    const times = (asks.get(changeId) ?? 0) + 1;
    asks.set(changeId, times);
    return times > 1 + REPEATS;
  };

  const giveBack = (take: CounterTake, tries = 0): void => {
    const { scope, startMs, endMs, identity, changeId } = take;
    change?.({ kind: 'give_back', scope, startMs, endMs, identity, changeId }).catch((error: unknown) => {
      const pauseMs = PAUSES_MS[tries];
      if (pauseMs === undefined) log.warn('a counted request could not be given back', { scope, error });
      else schedule(pauseMs, () => giveBack(take, tries + 1));
    });
  };

  return {
    giveBack: ({ take }) => giveBack(take),
    take: async ({ scope, startMs, endMs, subject, group, limit, identities, name }) => {
      if (change === undefined) return 'unavailable';
      const takeAs = async (changeId: string): Promise<Taken | 'given_back'> => {
        const take: CounterTake = {
          ...{ kind: 'take', scope, startMs, endMs, limit, identities, changeId },
          identity: digest(scope, startMs, subject),
          group: group === undefined ? null : digest(scope, startMs, 'group', group),
          groupIdentities: GROUP_IDENTITIES,
        };
        try {
          const result = await change(take);
          if (result.kind === 'given_back') return result.kind;
          return result.kind === 'counted' ? { ...result, take } : result;
        } catch (error) {
          log.warn('a request could not be counted', { scope, error });
          giveBack(take);
          return 'unavailable';
        }
      };
      const named = name === undefined ? undefined : digest(scope, startMs, subject, name);
      if (named !== undefined && !comesTooOften(named)) {
        const known = await takeAs(named);
        // What was given back meanwhile is counted anew.
        if (known !== 'given_back') return known;
      }
      const taken = await takeAs(newId());
      return taken === 'given_back' ? 'unavailable' : taken;
    },
  };
}

type PendingChange = {
  readonly change: CounterChange;
  readonly resolve: (result: CounterResult) => void;
  readonly reject: (error: unknown) => void;
};

/** Makes changes, those that wait together in one call. */
function inBatches(store: CounterChanger): (change: CounterChange) => Promise<CounterResult> {
  const waiting: PendingChange[] = [];
  let busy = false;
  const send = async (): Promise<void> => {
    busy = true;
    while (waiting.length > 0) {
      const batch = waiting.splice(0, MOST_COUNTER_CHANGES);
      try {
        const results = await store.change(batch.map(({ change }) => change));
        for (const [index, { resolve, reject }] of batch.entries()) {
          const result = results[index];
          if (result === undefined) reject(new Error('the ledger answered fewer changes than it was sent'));
          else resolve(result);
        }
      } catch (error) {
        for (const { reject } of batch) reject(error);
      }
    }
    busy = false;
  };
  return (change) =>
    new Promise((resolve, reject) => {
      waiting.push({ change, resolve, reject });
      if (!busy) void send();
    });
}
