// `sync.listen` as a stage: the sidecar's listener over real HTTP in front of a registry at some URL, with a last good set
// of its own to answer from while that registry is away.
import { LISTENER_REFUSALS } from '../../../../src/domain/problem.ts';
import { allowedMethods } from '../../../../src/domain/routing/method.ts';
import { FULL_FOLDING } from '../../../../src/domain/routing/profile.ts';
import { compileSnapshot } from '../../../../src/domain/routing/snapshot.ts';
import { createRelayApi, type RelayApi, type RelayApiLimits } from '../../../../src/gateway/sync/relay/relay-api.ts';
import type { RelayTimeouts } from '../../../../src/gateway/sync/relay/registry-relay.ts';
import { createOfflineResponses } from '../../../../src/gateway/sync/relay/offline-responses.ts';
import type { LastGoodSet } from '../../../../src/gateway/sync/sync.ts';
import { systemClock } from '../../../../src/host/clock.ts';
import { createLog } from '../../../../src/host/log.ts';
import { createListener } from '../../../../src/host/server.ts';
import { route } from '../../../cases/routes.ts';
import { SDK_KEY, send, type Ask, type Reply } from '../../../registry/kit.ts';

export const CONFIRMED = 90_000;
export const ROUTES = [
  route('GET /reports/* 0.10'),
  route('POST /reports/:id 0.50'),
  route('GET /café 0.20', { status: 'paused' }),
];

export type RelayStageOptions = {
  readonly good?: boolean;
  readonly limits?: Partial<RelayApiLimits>;
  readonly timeouts?: Partial<RelayTimeouts>;
};

export type RelayStage = {
  readonly port: number;
  readonly api: RelayApi;
  readonly nudges: () => number;
  readonly ask: (method: string, path: string, ask?: Ask) => Promise<Reply>;
  /** What the sync believes. */
  away: boolean;
  readonly close: () => Promise<void>;
};

export async function startRelayStage(
  registryUrl: string,
  { good = true, limits = {}, timeouts = {} }: RelayStageOptions = {},
): Promise<RelayStage> {
  const snapshot = compileSnapshot(
    { registryId: 'reg-a', revision: 7, routes: ROUTES },
    { encodedSlashes: 'refuse', doubleSlashes: 'merge', folding: FULL_FOLDING },
  );
  const lastGood: LastGoodSet = {
    set: { registryId: 'reg-a', revision: 7, etag: '"seven"', digest: 'd', routes: ROUTES },
    confirmedAt: systemClock.now() - CONFIRMED,
  };
  const offlineResponses = createOfflineResponses({
    apiKey: SDK_KEY,
    lastGood: () => (good ? lastGood : undefined),
    snapshot: () => (good ? snapshot : undefined),
    rules: () => ({ undeclaredMethods: 'forward', methods: allowedMethods(), targetBytes: 8192 }),
    clock: systemClock,
  });
  let nudges = 0;
  const status = (): never => ({ away: relay.away }) as never;
  const api = createRelayApi({
    registryUrl: new URL(registryUrl),
    timeouts: { connectMs: 500, headersMs: 30_000, idleMs: 5000, ...timeouts },
    offlineResponses,
    sync: { status, nudge: () => void nudges++ },
    limits,
  });
  const log = createLog('error', () => undefined, systemClock.now);
  const listener = createListener(
    {
      name: 'sync',
      listen: { host: '127.0.0.1', port: 0 },
      limits: { headers: 16_384, connections: 100 },
      timeouts: { headersMs: 5000, idleMs: 5000 },
      refusals: LISTENER_REFUSALS,
      log,
    },
    { request: api.handle },
  );
  const { port } = await listener.start();
  const relay: RelayStage = {
    port,
    api,
    nudges: () => nudges,
    ask: (method, path, ask = {}) => send(port, method, path, ask),
    away: false,
    close: async () => {
      api.close();
      await listener.drain(0, 0);
    },
  };
  return relay;
}
