// Hands counts of requests to the registry over HTTP. A registry that does not want them, because the key lacks the scope or it
// is no Tollgate, is left alone for a while: this sidecar then counts for itself alone, and says so.
import { batchToWire } from '../../domain/totals/totals-wire.ts';
import type { TotalsBatch } from '../../domain/totals/totals-store.ts';
import type { Clock, Schedule } from '../../host/clock.ts';
import type { Log } from '../../host/log.ts';
import { createWriteBatch } from '../../host/write-batch.ts';
import { createJsonCall } from '../../http/json-call.ts';
import { createPool } from '../../http/pool.ts';
import type { TakeBatch } from './delivery.ts';

type RemoteTotalsOptions = {
  /** URL of the registry, without a slash at its end. */
  readonly registryUrl: string;
  /** Key of scope `ledger`. */
  readonly apiKey: string;
  /** The version of Tollgate that User-Agent names. */
  readonly version: string;
  readonly schedule: Schedule;
  readonly clock: Pick<Clock, 'monotonic'>;
  readonly log: Log;
};

type RemoteTotals = { readonly take: TakeBatch; readonly close: () => Promise<void> };

const WITHIN_MS = 5_000;
const MAX_BYTES = 64 * 1024;
/** Pause after a registry said that it wants no counts: its operator may have given the key the scope. */
const REFUSED_MS = 5 * 60_000;
/** The key is unknown, lacks the scope, or the registry has no such endpoint. */
const UNWANTED: ReadonlySet<number> = new Set([401, 403, 404, 405]);

export function createRemoteTotals(options: RemoteTotalsOptions): RemoteTotals {
  const { apiKey, version, schedule, clock, log } = options;
  const registry = new URL(options.registryUrl);
  const target = `${registry.pathname.replace(/\/$/, '')}/v1/ledger/totals`;
  const headers = ['Host', registry.host, 'Authorization', `Bearer ${apiKey}`, 'User-Agent', `tollgate/${version}`];
  const transport = createPool({
    ...{ upstream: registry, writeBatch: createWriteBatch(), maxSockets: 1, now: clock.monotonic },
    timeouts: { connectMs: WITHIN_MS, headersMs: WITHIN_MS, idleMs: WITHIN_MS },
  });
  const callJson = createJsonCall({ transport, maxBytes: MAX_BYTES, schedule });
  let askAgainAt = -Infinity;

  const take = async (batch: TotalsBatch): Promise<'taken' | 'refused'> => {
    if (clock.monotonic() < askAgainAt) return 'refused';
    const response = await callJson({ method: 'POST', target, headers, json: batchToWire(batch), withinMs: WITHIN_MS });
    if (response.kind === 'failed') throw new Error(`the registry took no counts: ${response.detail}`);
    const { status } = response;
    if (status === 204) return 'taken';
    if (UNWANTED.has(status)) {
      if (askAgainAt === -Infinity) log.warn(ALONE, { status });
      askAgainAt = clock.monotonic() + REFUSED_MS;
      return 'refused';
    }
    // It would refuse the same words again.
    if (status === 413 || status === 422) {
      log.error('the registry does not understand the counts of this sidecar; they are dropped', { status });
      return 'refused';
    }
    throw new Error(`the registry took no counts: it answered ${status}`);
  };
  return { take, close: transport.close };
}

const ALONE =
  'the registry takes no counts of requests from this sidecar, which counts for itself alone: sync.api_key needs the scope ledger';
