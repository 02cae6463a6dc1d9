// Calls of the ledger of a registry over HTTP: JSON with our key, tried again for as long as a call may take. What is known by then
// is answered; whatever else is LedgerUnavailable, whether the call was carried out or not.
import type { z } from 'zod';
import { LedgerUnavailable } from '../../domain/payment/ledger.ts';
import type { Clock, Schedule } from '../../host/clock.ts';
import { createWriteBatch } from '../../host/write-batch.ts';
import { createJsonCall, type JsonCall } from '../../http/json-call.ts';
import { createPool } from '../../http/pool.ts';
import type { RemoteClock } from './remote-clock.ts';

export type RegistryCallOptions = {
  /** URL of the registry, without a slash at its end. */
  readonly registryUrl: string;
  /** Key of scope `ledger`. */
  readonly apiKey: string;
  /** The version of Tollgate that User-Agent names. */
  readonly version: string;
  readonly schedule: Schedule;
  readonly clock: Clock;
  /** A Unix socket that stands for the host of `registryUrl`. */
  readonly socketPath?: string;
  readonly limits?: Partial<RegistryCallLimits>;
  /** Put around every call of `registry`. */
  readonly aroundCalls?: ((call: JsonCall, registry: URL) => JsonCall) | undefined;
};

export type RegistryCallLimits = {
  /** Time that one attempt may take, its answer included. */
  readonly attemptMs: number;
  /** Time that a call may take with all its attempts: as long as a call of a store may by default. */
  readonly totalMs: number;
  /** Pauses between attempts; as many attempts follow the first. */
  readonly pausesMs: readonly number[];
  readonly bodyBytes: number;
};

const LIMITS: RegistryCallLimits = {
  attemptMs: 3_000,
  totalMs: 5_000,
  pausesMs: [50, 500],
  bodyBytes: 8 * 1024 * 1024,
};

/** Connections to the registry at most. */
const MAX_SOCKETS = 256;

type RegistryRequest = { readonly method: 'GET' | 'POST' | 'PATCH'; readonly path: string; readonly json?: unknown };

/** Makes a call of the registry. `pauses` stand before each further attempt. */
export type RegistryCall = <S extends z.ZodType>(
  request: RegistryRequest,
  schema: S,
  pauses?: readonly number[],
) => Promise<z.output<S>>;

type RegistryCalls = { readonly call: RegistryCall; readonly close: () => Promise<void> };

/** Makes calls of the registry, tried again for as long as a call may take. */
export function createRegistryCalls(options: RegistryCallOptions, theirs: RemoteClock): RegistryCalls {
  const { apiKey, version, schedule, clock } = options;
  const limits = { ...LIMITS, ...options.limits };
  const { attemptMs, totalMs, pausesMs, bodyBytes: maxBytes } = limits;
  const registry = new URL(options.registryUrl);
  const base = registry.pathname.replace(/\/$/, '');
  const transport = createPool({
    ...{ upstream: registry, writeBatch: createWriteBatch(), maxSockets: MAX_SOCKETS, now: clock.monotonic },
    ...(options.socketPath === undefined ? {} : { socketPath: options.socketPath }),
    timeouts: { connectMs: attemptMs, headersMs: attemptMs, idleMs: attemptMs },
  });
  const plainCall = createJsonCall({ transport, maxBytes, schedule });
  const callJson = options.aroundCalls?.(plainCall, registry) ?? plainCall;
  const headers = ['Host', registry.host, 'Authorization', `Bearer ${apiKey}`, 'User-Agent', `tollgate/${version}`];

  const attempt = async <S extends z.ZodType>(
    request: RegistryRequest,
    schema: S,
    withinMs: number,
  ): Promise<z.output<S>> => {
    const { method, path, json } = request;
    const since = clock.monotonic();
    const response = await callJson({ method, target: `${base}/${path}`, headers, json, withinMs });
    if (response.kind === 'failed') throw new PassingFailure(response.detail);
    if (response.status !== 200) throw refusalOf(response.status);
    if (response.kind === 'unusable') throw new LedgerUnavailable(`The registry answered ${response.detail}.`);
    if (response.dateMs !== undefined) theirs.heard(response.dateMs, since);
    const parsed = schema.safeParse(response.json);
    if (!parsed.success) throw new LedgerUnavailable('The registry answered something else than a ledger does.');
    return parsed.data;
  };

  const call: RegistryCall = async (request, schema, pauses = pausesMs) => {
    const endsAt = clock.monotonic() + totalMs;
    for (let attempts = 1; ; attempts++) {
      try {
        return await attempt(request, schema, Math.min(attemptMs, Math.ceil(endsAt - clock.monotonic())));
      } catch (error) {
        if (!(error instanceof PassingFailure)) throw error;
        const pauseMs = pauses[attempts - 1];
        if (pauseMs === undefined || clock.monotonic() + pauseMs >= endsAt) throw unavailable(error, attempts);
        await new Promise<void>((resolve) => void schedule(pauseMs, resolve));
      }
    }
  };

  return { call, close: transport.close };
}

/** Failure after which the call may be sent again: nothing is known about this one. */
class PassingFailure extends Error {}

function unavailable(cause: unknown, attempts: number): LedgerUnavailable {
  const why = cause instanceof Error ? cause.message : 'nothing is known';
  return new LedgerUnavailable(`The ledger of the registry is away after ${attempts} attempts: ${why}.`, { cause });
}

function refusalOf(status: number): Error {
  // A gateway in front of the registry lost it; the registry itself says 503 if its store is away.
  if (status === 502 || status === 504) return new PassingFailure(`it answered ${status}`);
  if (status === 403) {
    return new LedgerUnavailable(
      'The registry answered 403 where its ledger was asked: the key lacks the scope ledger.',
    );
  }
  const hint = status === 401 ? ' It does not know sync.api_key, which needs the scope ledger.' : '';
  const absent = status === 404 ? ' It may not be Tollgate; set charges.store.' : '';
  return new LedgerUnavailable(`The registry answered ${status} where its ledger was asked.${hint}${absent}`);
}
