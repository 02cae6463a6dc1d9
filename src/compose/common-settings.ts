// Settings that all registries on one store should share. With the same receivers, none refuses a route that another
// took. With the same API keys, a key is known wherever it is presented. With the same webhooks, an endpoint is told of what
// happens whoever sends it. They are compared by digest, and a difference is only a warning: files change one after the other.
import { createHash } from 'node:crypto';
import type { Config, RegistryConfig } from '../config/config.ts';
import type { Log } from '../host/log.ts';
import type { CommonSettings, Store } from '../registry/store/ports.ts';

type SharedSettings = {
  /** Resolves when this process has said what it goes by; a store that could not be asked is told of, and no more. */
  readonly share: (config: Config, section: RegistryConfig) => Promise<void>;
  /** Settings that another process has otherwise, as far as it was told since this one said its own. */
  readonly differing: () => readonly (keyof CommonSettings)[];
};

export function createSharedSettings({ share }: Pick<Store, 'share'>, log: Log): SharedSettings {
  const differing = new Set<keyof CommonSettings>();
  const warn = (setting: keyof CommonSettings): void => {
    differing.add(setting);
    const key = setting === 'api_keys' ? 'registry.api_keys' : setting;
    // The process that said it last may be gone by now, or have been this one before a restart.
    log.warn('the registry that started last on this store has other settings: all need the same', { setting: key });
  };
  return {
    differing: () => [...differing],
    share: async (config, section) => {
      if (share === undefined) return;
      try {
        differing.clear();
        await share(digestsOf(config, section), warn);
      } catch (error) {
        log.warn('settings were not compared with those of other registries on this store', { error });
      }
    },
  };
}

/** Digests of where money goes, without the services that are asked about it, of which keys are let in, and of who is told. */
export function digestsOf(
  { receivers, webhooks }: Pick<Config, 'receivers' | 'webhooks'>,
  { apiKeys }: RegistryConfig,
): CommonSettings {
  const where = receivers.map(({ id, currencies, settle, ways }) => ({
    ...{ id, currencies, settle },
    ways: ways.map(({ way }) => way),
  }));
  const keys = apiKeys.map(({ name, key, scopes }) => ({ name, key: sha256(key), scopes: scopes.toSorted() }));
  // Events are signed with all secrets, in whatever order.
  const endpoints = webhooks.map(({ secrets, events, ...each }) => ({
    ...each,
    ...{ secrets: secrets.map(sha256).toSorted(), events: events.toSorted() },
  }));
  return {
    receivers: sha256(JSON.stringify(where.toSorted((a, b) => compare(a.id, b.id)))),
    api_keys: sha256(JSON.stringify(keys.toSorted((a, b) => compare(a.name, b.name)))),
    webhooks: sha256(JSON.stringify(endpoints.toSorted((a, b) => compare(a.id, b.id)))),
  };
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

function sha256(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}
