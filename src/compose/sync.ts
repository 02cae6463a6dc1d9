// The sidecar's part in place of a registry of its own: routes come over HTTP. The last good set stays in force
// whatever happens to the registry. It resolves as soon as the snapshot file was read; the registry may take as long as
// it likes.
import type { Config, SyncConfig } from '../config/config.ts';
import { createCompiler } from '../gateway/routes/snapshot-compiler.ts';
import type { CurrentSnapshot } from '../gateway/routes/current-snapshot.ts';
import { createSnapshotFile } from '../gateway/sync/keep/snapshot-file.ts';
import { createRelayApi } from '../gateway/sync/relay/relay-api.ts';
import { createRegistrySource } from '../gateway/sync/follow/registry-source.ts';
import { createSocketFetch } from '../gateway/sync/follow/socket-fetch.ts';
import { createOfflineResponses } from '../gateway/sync/relay/offline-responses.ts';
import { checkRoutes } from '../gateway/sync/status.ts';
import { createSync, type Sync } from '../gateway/sync/sync.ts';
import type { Check } from '../host/admin.ts';
import { systemSchedule, type Clock, type Random } from '../host/clock.ts';
import type { Log } from '../host/log.ts';
import type { Metrics } from '../host/metrics.ts';
import { createListener } from '../host/server.ts';
import { publishKeys } from './assertion-signing.ts';
import { INTERNAL, matchRules, pathOptions, type Part } from './part.ts';

type SyncPartDeps = {
  readonly metrics: Metrics;
  readonly log: Log;
  readonly clock: Clock;
  readonly random: Random;
  readonly version: string;
};

/**
 * A registry that does not answer for this long is away; one that is polled often is given up sooner. One that sends large sets
 * to others keeps us waiting for ten seconds before it says so.
 */
const ANSWER_MS = { min: 1_000, max: 12_000 };
/** The host of a Unix socket has no name that matters. */
export const PRIMARY_URL = 'http://primary';
const PRIMARY_POLL_MS = 15_000;
const NO_FILE = { read: async () => undefined, keep: () => undefined, settled: async () => undefined };

/** Follows the process that started this worker: what is in force there is right, whatever it is. */
export async function followPrimary(
  config: () => Config,
  current: CurrentSnapshot,
  { socketPath, key }: { readonly socketPath: string; readonly key: string },
  { metrics, log, clock, random, version }: SyncPartDeps,
): Promise<{ readonly recompile: () => void } & Pick<Sync, 'nudge' | 'close'>> {
  // The primary says in its log what there is to say of the registry.
  const quiet: Log = { ...log, info: log.debug, warn: log.debug };
  const compiler = createCompiler(current, () => pathOptions(config()), log);
  const sync = createSync(
    { pollIntervalMs: PRIMARY_POLL_MS, emptyAfterMs: 0 },
    {
      source: createRegistrySource({
        ...{ registryUrl: PRIMARY_URL, apiKey: key, version, fetch: createSocketFetch(socketPath) },
        schedule: systemSchedule,
      }),
      snapshotFile: NO_FILE,
      compiler,
      ...{ metrics, clock, schedule: systemSchedule, random, log: quiet },
    },
  );
  await sync.start();
  return { recompile: compiler.recompile, nudge: sync.nudge, close: sync.close };
}

export type SyncPart = Part & {
  readonly check: Check;
  readonly endStreams: () => void;
  readonly recompile: () => void;
  /** Names this life of the sidecar to its registry. */
  readonly instance: string;
  readonly status: Sync['status'];
};

export async function startSync(
  { charges }: Config,
  section: SyncConfig,
  config: () => Config,
  current: CurrentSnapshot,
  { metrics, log, clock, random, version }: SyncPartDeps,
): Promise<SyncPart> {
  const { registryUrl, apiKey, pollIntervalMs, emptyAfterMs, whenAbsent } = section;
  if (whenAbsent === 'forward') {
    log.warn('sync.when_absent is forward: before the first routes are there everything passes, free');
  }
  const instance = Buffer.from(random(12)).toString('base64url');
  const answerMs = Math.min(ANSWER_MS.max, Math.max(ANSWER_MS.min, pollIntervalMs));
  const compiler = createCompiler(current, () => pathOptions(config()), log);
  const { recompile } = compiler;
  const sync = createSync(
    { pollIntervalMs, emptyAfterMs },
    {
      source: createRegistrySource({
        ...{ registryUrl, apiKey, version, fetch: globalThis.fetch, schedule: systemSchedule },
        instance,
        limits: { answerMs },
      }),
      snapshotFile: createSnapshotFile({
        ...{ file: section.snapshotFile, maxAgeMs: section.snapshotMaxAgeMs, registryUrl },
        ...{ secrets: charges.secrets, clock, schedule: systemSchedule, log },
      }),
      compiler,
      ...{ metrics, clock, schedule: systemSchedule, random, log },
    },
  );
  await sync.start();
  const check: Check = { name: 'routes', run: () => checkRoutes(sync.status(), whenAbsent) };
  if (section.listen === undefined)
    return {
      ...{ listener: undefined, check, endStreams: () => undefined, recompile, close: sync.close },
      ...{ instance, status: sync.status },
    };

  const { lastGood } = sync;
  const offlineResponses = createOfflineResponses({
    ...{ apiKey, lastGood, snapshot: () => current.snapshot, rules: () => matchRules(config()), clock },
  });
  const relay = createRelayApi({ registryUrl: new URL(registryUrl), offlineResponses, sync });
  const listener = createListener(
    { name: 'sync', listen: section.listen, ...INTERNAL, log },
    { request: publishKeys('registry', config, relay.handle) },
  );
  const close = async (): Promise<void> => {
    relay.close();
    await sync.close();
  };
  return { listener, check, endStreams: relay.endStreams, recompile, close, instance, status: sync.status };
}
