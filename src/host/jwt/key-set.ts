// The keys at the one URL that the configuration names, as they rotate there. Only this file fetches them, at most once
// in the cool-down whatever tokens say, by one call for all requests that wait. A set that cannot be used never
// replaces a good one. Each key is checked when it is fetched: one that is private, weak, broken or for another use
// does not count.
import { createPublicKey, type KeyObject } from 'node:crypto';
import { z } from 'zod';
import { readBoundedText } from '../../host/bounded-body.ts';
import type { Clock } from '../clock.ts';
import { algorithmsOf } from './key-algorithms.ts';

export type FetchKeys = (url: string, init: RequestInit) => Promise<Response>;

export type KeySet = {
  /** Finds a key. `unknown`: a set that was fetched lacks it. `unavailable`: not known, because no set could be had. */
  readonly find: (algorithm: string, id: string | undefined) => Promise<KeyObject | 'unknown' | 'unavailable'>;
};

type KeySetTimes = {
  /** Milliseconds for which a set is taken as it is. */
  readonly freshMs: number;
  /** Milliseconds for which the last good set serves while no other can be had. */
  readonly staleMs: number;
  /** Milliseconds between two attempts to fetch, also for a key that the set does not hold. */
  readonly cooldownMs: number;
  readonly timeoutMs: number;
};

export const KEY_SET_TIMES: KeySetTimes = {
  freshMs: 10 * 60_000,
  staleMs: 24 * 60 * 60_000,
  cooldownMs: 30_000,
  timeoutMs: 5_000,
};
/** Issuers publish a handful of keys in a few kilobytes. */
const MAX_BYTES = 256 * 1024;
const MAX_KEYS = 100;
/** RFC 7518 section 6: a set with one of these has published the key that signs. */
const PRIVATE = ['d', 'p', 'q', 'dp', 'dq', 'qi', 'oth', 'k'];

type Key = { readonly id: string | undefined; readonly key: KeyObject; readonly algorithms: readonly string[] };

const keySet = z.object({ keys: z.array(z.unknown()).max(MAX_KEYS) });
const text = z.string().exactOptional();
const material = z.object({ kty: z.enum(['RSA', 'EC', 'OKP']), n: text, e: text, crv: text, x: text, y: text });
const usage = z.object({
  kid: z.string().optional(),
  alg: z.string().optional(),
  use: z.literal('sig').optional(),
  key_ops: z
    .array(z.string())
    .refine((operations) => operations.includes('verify'))
    .optional(),
});

export function createKeySet(url: string, clock: Clock, fetch: FetchKeys, times: KeySetTimes = KEY_SET_TIMES): KeySet {
  let keys: readonly Key[] | undefined;
  let fetchedAt = -Infinity;
  let triedAt = -Infinity;
  let failed = false;
  let pending: Promise<void> | undefined;

  // Fetches once for all who wait: the time-out ends a call long before the next may begin.
  const refresh = (): Promise<void> => {
    if (clock.monotonic() - triedAt >= times.cooldownMs) {
      triedAt = clock.monotonic();
      pending = fetchKeys(url, fetch, times.timeoutMs)
        .then((next) => {
          keys = next;
          fetchedAt = clock.monotonic();
          failed = false;
        })
        .catch(() => void (failed = true))
        .finally(() => void (pending = undefined));
    }
    return pending ?? Promise.resolve();
  };
  const age = (): number => clock.monotonic() - fetchedAt;

  return {
    find: async (algorithm, id) => {
      if (age() >= times.freshMs) {
        const refreshed = refresh();
        // If the set was away once, only a key that the last good one lacks is worth waiting for again.
        if (!failed || age() > times.staleMs) await refreshed;
      }
      let found = choose(keys, algorithm, id);
      if (found === undefined) {
        await refresh();
        found = choose(keys, algorithm, id);
      }
      if (age() > times.staleMs) return 'unavailable';
      // If the last attempt failed, a key that is not here may be a new one: that is not for the token to pay for.
      return found ?? (failed ? 'unavailable' : 'unknown');
    },
  };
}

/** Chooses the key that is meant; a token without a key id means the only one that fits, and none if two do. */
function choose(keys: readonly Key[] = [], algorithm: string, id: string | undefined): KeyObject | undefined {
  const fitting = keys.filter((key) => (id === undefined || key.id === id) && key.algorithms.includes(algorithm));
  return fitting.length === 1 ? fitting[0]?.key : undefined;
}

/** Rejects if there is no set with at least one key that can be used. */
async function fetchKeys(url: string, fetch: FetchKeys, timeoutMs: number): Promise<readonly Key[]> {
  // A redirect would let the server choose where keys come from: it is an answer that is not 200.
  const response = await fetch(url, {
    redirect: 'manual',
    headers: { Accept: 'application/jwk-set+json, application/json' },
    signal: AbortSignal.timeout(timeoutMs),
  });
  if (response.status !== 200) {
    await response.body?.cancel();
    throw new Error(`the key set answered ${response.status}`);
  }
  // The media type is not looked at: issuers send many. What counts is that it is a key set.
  const { keys } = keySet.parse(JSON.parse(await readBoundedText(response, MAX_BYTES, 'the key set is too large')));
  const usable = new Map<string, Key>();
  for (const given of keys) {
    const key = readKey(given);
    if (key !== undefined) usable.set(identityOf(key), key);
  }
  if (usable.size === 0) throw new Error('the key set holds no key that can be used');
  return [...usable.values()];
}

/** Reads a public key to verify signatures with; undefined if it is none. */
function readKey(given: unknown): Key | undefined {
  const [key, used] = [material.safeParse(given), usage.safeParse(given)];
  if (!key.success || !used.success || PRIVATE.some((member) => Object.hasOwn(Object(given), member))) return undefined;
  const { kid, alg } = used.data;
  try {
    const publicKey = createPublicKey({ key: key.data, format: 'jwk' });
    const possible = algorithmsOf(publicKey);
    // The key's word about its algorithm is final; without one its type and size decide. Never the token alone.
    const algorithms = alg === undefined ? possible : possible.filter((name) => name === alg);
    return algorithms.length === 0 ? undefined : { id: kid, key: publicKey, algorithms };
  } catch {
    return undefined;
  }
}

/** Identity of a key: one that is named twice in the same way is one key. */
function identityOf({ id, key, algorithms }: Key): string {
  return JSON.stringify([id, algorithms, key.export({ format: 'jwk' })]);
}
