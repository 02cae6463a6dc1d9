// Says whose API key a request carries: keys of the configuration and keys of the store. Digests are compared in constant
// time and with the same work for a key that is not known, so that an answer's delay says nothing about how near a guess
// was. Keys themselves are neither kept nor logged.
import { timingSafeEqual } from 'node:crypto';
import type { Scope } from '../domain/scope.ts';
import type { ApiKeyStore } from './store/ports.ts';
import { digestKey } from './store/sqlite/api-keys.ts';

export type ConfiguredKey = { readonly name: string; readonly key: string; readonly scopes: readonly Scope[] };

export type KeyHolder = {
  readonly kind: 'api_key';
  /** The id of a stored key, or undefined for one of the configuration. */
  readonly id: string | undefined;
  readonly name: string;
  readonly scopes: readonly Scope[];
  readonly digest: Buffer;
};

export type KeyCheck = {
  readonly find: (key: string) => KeyHolder | undefined;
  /** Whether the key that was found once would still be found: streams outlive revocations. */
  readonly stillValid: (holder: KeyHolder) => boolean;
};

const NO_DIGEST = Buffer.alloc(32);

export function createKeyCheck(configured: readonly ConfiguredKey[], store: Pick<ApiKeyStore, 'find'>): KeyCheck {
  const known = configured.map(({ name, key, scopes }) => ({ name, scopes, digest: digestKey(key) }));

  const findDigest = (digest: Buffer): KeyHolder | undefined => {
    let holder: KeyHolder | undefined;
    for (const candidate of known) {
      if (timingSafeEqual(digest, candidate.digest)) holder = { kind: 'api_key', id: undefined, ...candidate };
    }
    const stored = store.find(digest);
    const same = timingSafeEqual(digest, stored?.digest ?? NO_DIGEST);
    if (stored !== undefined && same && stored.revokedAt === null) {
      holder = { kind: 'api_key', id: stored.id, name: stored.name, scopes: stored.scopes, digest };
    }
    return holder;
  };

  return {
    find: (key) => findDigest(digestKey(key)),
    stillValid: ({ digest }) => findDigest(digest) !== undefined,
  };
}
