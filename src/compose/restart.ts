// What a reload cannot change: what was bound, opened or begun at the start. Such a setting keeps the value of the start
// and is named, so that its user knows that the value is not in force. The table in config/README.md says the same.
import { isDeepStrictEqual } from 'node:util';
import type { Config, ProxyConfig, RegistryConfig } from '../config/config.ts';

export type AppliedConfig = {
  /** `next`, with the values of the start where only a restart changes them. */
  readonly config: Config;
  /** Names of the settings that differ from the start and are not taken on. */
  readonly restart: readonly string[];
};

/** Throws a sentence where `next` is another kind of Tollgate than the one that runs. */
export function applyConfig(started: Config, next: Config): AppliedConfig {
  if (started.shape !== next.shape) {
    throw new Error(
      `the sections make another shape: ${started.shape} runs, ${next.shape} is configured; restart to change it`,
    );
  }
  const restart = watched(started).flatMap(([name, value], index) =>
    isDeepStrictEqual(value, watched(next)[index]?.[1]) ? [] : [name],
  );
  return {
    restart,
    config: {
      ...next,
      proxy: keepProxy(started.proxy, next.proxy),
      registry: keepRegistry(started.registry, next.registry),
      sync: started.sync,
      admin: started.admin,
      charges: { ...next.charges, store: started.charges.store },
    },
  };
}

function watched({ proxy, registry, sync, admin, charges }: Config): (readonly [string, unknown])[] {
  return [
    ['proxy.listen', proxy?.listen],
    ['proxy.limits.headers', proxy?.limits.headerBytes],
    ['proxy.limits.connections', proxy?.limits.connections],
    ['proxy.timeouts.headers (towards clients)', proxy?.timeouts.headersMs],
    ['proxy.timeouts.idle (towards clients)', proxy?.timeouts.idleMs],
    ['registry.listen', registry?.listen],
    ['registry.store', registry?.store],
    ['registry.limits', registry?.limits],
    ['sync.registry_url', sync?.registryUrl],
    ['sync.api_key', sync?.apiKey],
    ['sync.poll_interval', sync?.pollIntervalMs],
    ['sync.snapshot_file', sync?.snapshotFile],
    ['sync.snapshot_max_age', sync?.snapshotMaxAgeMs],
    ['sync.empty_after', sync?.emptyAfterMs],
    ['sync.when_absent', sync?.whenAbsent],
    ['sync.listen', sync?.listen],
    ['admin.listen', admin.listen],
    ['charges.store', charges.store],
  ];
}

/** The upstream's time-outs are those of `next`: only the listener keeps its own. */
function keepProxy(started: ProxyConfig | undefined, next: ProxyConfig | undefined): ProxyConfig | undefined {
  if (started === undefined || next === undefined) return next;
  const { headerBytes, connections } = started.limits;
  return { ...next, listen: started.listen, limits: { ...next.limits, headerBytes, connections } };
}

function keepRegistry(
  started: RegistryConfig | undefined,
  next: RegistryConfig | undefined,
): RegistryConfig | undefined {
  if (started === undefined || next === undefined) return next;
  return { ...next, listen: started.listen, store: started.store, limits: started.limits };
}
