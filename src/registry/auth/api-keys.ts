// Finds the API key of a request: keys of the configuration and keys of the store. Digests are compared in constant time,
// with the same work for an unknown key: an answer's delay says nothing about how near a guess was. Keys themselves are
// neither kept nor logged.
import { hash, timingSafeEqual } from 'node:crypto';
import type { AuditCause } from '../../domain/audit.ts';
import type { Random } from '../../host/clock.ts';
import { SCOPES, type Scope } from '../../domain/scope.ts';
import type { ApiKeyStore, StoredKey } from '../store/ports.ts';

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
  readonly find: (key: string) => Promise<KeyHolder | undefined>;
  /** Whether the key that was found once would still be found: streams outlive revocations. */
  readonly stillValid: (holder: KeyHolder) => Promise<boolean>;
};

/** Names that a key may have. */
export const KEY_NAME = /^[\x20-\x7e]{1,64}$/;
/** Keys that may be live in a store. */
const MAX_LIVE_KEYS = 200;
const NO_DIGEST = Buffer.alloc(32);

/** Error: as many keys are live as the limit allows. */
export class TooManyKeys extends Error {
  override readonly name = 'TooManyKeys';
  constructor() {
    super(`${MAX_LIVE_KEYS} API keys are live, and no more may be; revoke one that nobody uses.`);
  }
}

export function createKeyCheck(configured: readonly ConfiguredKey[], store: Pick<ApiKeyStore, 'find'>): KeyCheck {
  const known = configured.map(({ name, key, scopes }) => ({ name, scopes, digest: digestKey(key) }));

  const findDigest = async (digest: Buffer): Promise<KeyHolder | undefined> => {
    let holder: KeyHolder | undefined;
    for (const candidate of known) {
      if (timingSafeEqual(digest, candidate.digest)) holder = { kind: 'api_key', id: undefined, ...candidate };
    }
    const stored = await store.find(digest);
    const same = timingSafeEqual(digest, stored?.digest ?? NO_DIGEST);
    if (stored !== undefined && same && stored.revokedAt === null) {
      holder = { kind: 'api_key', id: stored.id, name: stored.name, scopes: stored.scopes, digest };
    }
    return holder;
  };

  return {
    find: (key) => findDigest(digestKey(key)),
    stillValid: async ({ digest }) => (await findDigest(digest)) !== undefined,
  };
}

export function digestKey(key: string): Buffer {
  return hash('sha256', key, 'buffer');
}

/** `by`: who it was made by, for lists; `cause`: the same for the audit log. */
type WantedKey = {
  readonly name: string;
  readonly scopes: readonly Scope[];
  readonly by?: string;
  readonly cause?: AuditCause;
};

/**
 * A new key: `tg_`, its id, `_` and 256 random bits. The key alone is secret; it cannot be had again. Rejects with
 * TooManyKeys, and with another sentence if name or scopes are not usable.
 */
export async function createApiKey(
  store: Pick<ApiKeyStore, 'insert'>,
  { name, scopes, by, cause }: WantedKey,
  { random, now }: { readonly random: Random; readonly now: () => number },
): Promise<{ readonly key: string; readonly stored: StoredKey }> {
  if (!KEY_NAME.test(name)) throw new Error('The name of an API key is 1 to 64 visible ASCII characters.');
  const wanted = SCOPES.filter((scope) => scopes.includes(scope));
  if (wanted.length === 0) throw new Error(`An API key needs at least one scope of: ${SCOPES.join(', ')}.`);
  const id = random(8).toString('hex');
  const key = `tg_${id}_${random(32).toString('base64url')}`;
  const made = { id, name, scopes: wanted, createdAt: new Date(now()).toISOString(), createdBy: by ?? null };
  const inserted = await store.insert({ ...made, digest: digestKey(key) }, MAX_LIVE_KEYS, cause);
  if (inserted === 'full') throw new TooManyKeys();
  return { key, stored: { ...made, revokedAt: null } };
}
