// Webhooks of a process that keeps charges: declares the endpoints of its configuration to the store, sends their events, and
// takes away what is kept no longer. A process without endpoints loads and asks nothing for them but, at its start, that what
// earlier endpoints left goes away.
import { lookup } from 'node:dns/promises';
import type { Config } from '../config/config.ts';
import { typesOf } from '../domain/webhooks/event-types.ts';
import type { WebhookStore } from '../domain/webhooks/webhook-store.ts';
import { NETWORKS } from '../gateway/rails/rails.ts';
import { systemSchedule, type Clock, type Random } from '../host/clock.ts';
import type { Log } from '../host/log.ts';
import type { Metrics } from '../host/metrics.ts';
import { createWebhooks, type Webhooks } from '../registry/webhooks/webhook-standings.ts';
import type { WebhookSender } from '../registry/webhooks/sender.ts';
import { keepPruning } from './pruning.ts';

export type WebhooksDeps = {
  readonly store: WebhookStore;
  /** Whether other processes may name endpoints too. */
  readonly isShared: boolean;
  /** Names this run of the process. */
  readonly run: string;
  /** The registry that charges belong to; null while it is not known. */
  readonly registryId: () => string | null;
  readonly config: () => Pick<Config, 'webhooks'>;
  readonly metrics: Metrics;
  readonly log: Log;
  readonly clock: Clock;
  readonly random: Random;
  readonly version: string;
};

export type RunningWebhooks = {
  readonly webhooks: Webhooks;
  readonly close: () => Promise<void>;
};

const MINUTE_MS = 60_000;
/** Time within which endpoints of a new configuration are in force. */
const LOOK_MS = 1_000;
/** On a shared store an endpoint is forgotten when no process has named it for so long. */
const UNNAMED_MS = 10 * MINUTE_MS;

/** Resolves when the store knows the endpoints. No start waits for a store that others share, or to say that there are none. */
export async function startWebhooks(deps: WebhooksDeps): Promise<RunningWebhooks> {
  const { store, isShared, config, log, clock } = deps;
  const startedAt = clock.monotonic();
  let declared: Config['webhooks'] | undefined;
  let declaring: Promise<void> | undefined;
  let sender: WebhookSender | undefined;
  let isAway = false;

  const declare = async (): Promise<void> => {
    const { webhooks } = config();
    const endpoints = webhooks.map(({ id, events }) => ({ id, types: typesOf(events) }));
    // Others on the store may just be starting, each with endpoints of its own.
    const isSettled = clock.monotonic() - startedAt > UNNAMED_MS;
    const forgetBefore = isShared ? (isSettled ? store.now() - UNNAMED_MS : undefined) : store.now();
    if (endpoints.length > 0 || forgetBefore !== undefined) await store.declare(endpoints, forgetBefore);
    declared = webhooks;
    if (endpoints.length === 0 || sender !== undefined) return;
    observeWebhooks(deps);
    sender = await createSender(deps);
  };
  const declareOnce = (): Promise<void> =>
    (declaring ??= declare()
      .then(() => void (isAway = false))
      .catch((error: unknown) => {
        if (!isAway) log.warn('webhooks wait: the store does not take their endpoints', { error });
        isAway = true;
      })
      .finally(() => void (declaring = undefined)));
  const first = declareOnce();
  if (!isShared && config().webhooks.length > 0) await first;
  const stopLooking = repeatedly(LOOK_MS, () => {
    if (config().webhooks !== declared) void declareOnce();
  });
  const stopKeeping = keepPruning({
    ...{ schedule: systemSchedule, log, firstMs: MINUTE_MS, seldomMs: MINUTE_MS, what: 'deliveries of webhooks' },
    prune: async () => {
      if (isShared) await declareOnce();
      return store.prune();
    },
  });
  return {
    webhooks: createWebhooks(
      store,
      () => config().webhooks,
      () => sender?.wake(),
    ),
    close: async () => {
      stopLooking();
      stopKeeping();
      await declaring;
      await sender?.close();
    },
  };
}

function repeatedly(everyMs: number, run: () => void): () => void {
  let cancel = (): void => undefined;
  const turn = (): void => {
    run();
    cancel = systemSchedule(everyMs, turn);
  };
  cancel = systemSchedule(everyMs, turn);
  return () => cancel();
}

async function createSender(deps: WebhooksDeps): Promise<WebhookSender> {
  const { store, run, config, metrics, log, clock, random, version, registryId } = deps;
  const [{ startSender }, { bodyOf }, { createPublicPost }] = await Promise.all([
    import('../registry/webhooks/sender.ts'),
    import('../registry/webhooks/event-body.ts'),
    import('../host/public-post.ts'),
  ]);
  const help =
    'Attempts to deliver events to an endpoint, by result; a failed one is made again unless it is given up.';
  const count = metrics.counter('webhook_deliveries_total', help, ['webhook_id', 'result']);
  return startSender({
    ...{ store, run, log, random, schedule: systemSchedule, monotonic: clock.monotonic },
    targets: () => config().webhooks,
    bodyOf: (event) => bodyOf(event, { networks: NETWORKS, registryId }),
    post: createPublicPost({ resolve: (name) => lookup(name, { all: true }), schedule: systemSchedule }),
    userAgent: `Tollgate/${version}`,
    observe: (webhookId, result) => count(webhookId, result)(1),
  });
}

/** Exports what waits for each endpoint of the configuration, as the store has it. */
function observeWebhooks({ store, config, metrics }: WebhooksDeps): void {
  const states = async (): Promise<Awaited<ReturnType<WebhookStore['endpoints']>>> => {
    // While the store is away nobody knows, and the other metrics are told all the same.
    const all = await store.endpoints().catch(() => []);
    return all.filter(({ id }) => config().webhooks.some((each) => each.id === id));
  };
  metrics.observed('gauge', 'webhook_waiting', 'Events that wait for an endpoint.', ['webhook_id'], async (set) => {
    for (const { id, waiting } of await states()) set({ webhook_id: id }, waiting);
  });
  const help = 'Age of the oldest event that waits for an endpoint; 0 if none does.';
  metrics.observed('gauge', 'webhook_oldest_seconds', help, ['webhook_id'], async (set) => {
    const now = store.now();
    for (const { id, oldestWaitingAt } of await states())
      set({ webhook_id: id }, oldestWaitingAt === null ? 0 : Math.max(0, (now - oldestWaitingAt) / 1000));
  });
}
