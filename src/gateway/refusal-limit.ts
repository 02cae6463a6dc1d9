// Limits the payments of one client that a facilitator refuses within a minute. Each of them costs a call that the
// facilitator counts, and any client can make up such payments. Beyond the limit no facilitator is asked: the client is told
// to wait for what is left of its minute. Payments that are good count for nothing here.
import { LRUCache } from 'lru-cache';
import { problem, secondsToWait, type Problem } from '../domain/problem.ts';

type RefusalLimit = {
  /** The Problem to answer instead, if `client` has had its share. */
  readonly findExcess: (client: string) => Problem | undefined;
  readonly refused: (client: string) => void;
};

/** Words for a payment that is turned away before the ledger is asked: an earlier request with it may have been charged. */
export const NOT_LOOKED_AT = 'so this one was not looked at. Send the same request with the same payment again';

const MINUTE_MS = 60_000;
/** Clients that are remembered, so that strangers cannot fill memory. One that is forgotten begins anew. */
const CLIENTS = 65_536;

type Minute = { readonly endsAt: number; refusals: number };

/** The limit of `perMinute` refusals; undefined if that is 0, which is no limit. */
export function createRefusalLimit(perMinute: number, monotonic: () => number): RefusalLimit | undefined {
  if (perMinute === 0) return undefined;
  // The cache has no `max`, with which it would make room for all of them at once: 1.4 MB.
  const minutes = new LRUCache<string, Minute>({ maxSize: CLIENTS, sizeCalculation: () => 1 });
  const current = (client: string): Minute | undefined => {
    const minute = minutes.get(client);
    return minute !== undefined && minute.endsAt > monotonic() ? minute : undefined;
  };
  return {
    findExcess: (client) => {
      const minute = current(client);
      if (minute === undefined || minute.refusals < perMinute) return undefined;
      const waitMs = minute.endsAt - monotonic();
      return problem(
        'too_many_payments',
        `${perMinute} payments of this client were refused within a minute, ${NOT_LOOKED_AT} when the minute is over.`,
        { retryAfter: secondsToWait(waitMs) },
      );
    },
    refused: (client) => {
      const minute = current(client);
      if (minute === undefined) minutes.set(client, { endsAt: monotonic() + MINUTE_MS, refusals: 1 });
      else minute.refusals++;
    },
  };
}
