// The charges of the registry over HTTP: the port of the ledger's store for a sidecar without one of its own. An insert is a
// POST and an update a PATCH with its event; the registry decides again, so what is decided here never counts against it.
// Every change carries an id, so that one whose answer was lost is sent again and is the same change; whatever else goes
// wrong is LedgerUnavailable. An answer is believed only if it is about the charge that was asked about.
import type { z } from 'zod';
import { CHARGE_ID, type Charge, type Claim } from '../../domain/payment/charge.ts';
import { ANSWER_BYTES } from '../../domain/payment/charge-fields.ts';
import { chargeFromWire, claimToWire } from '../../domain/payment/charge-wire.ts';
import {
  LedgerUnavailable,
  samePayment,
  type Change,
  type ChargeStore,
  type InsertResult,
  type StoredCharge,
  type UpdateResult,
} from '../../domain/payment/ledger.ts';
import { advancedWire, chargesWire, claimedWire, eventToWire, renewedWire } from '../../domain/payment/ledger-wire.ts';
import type { ClaimOptions } from '../../domain/payment/claim-policy.ts';
import type { Actor, ChargeEvent } from '../../domain/payment/transition.ts';
import type { Clock, Random, Schedule } from '../../host/clock.ts';
import { createWriteBatch } from '../../host/write-batch.ts';
import { createJsonCall, type JsonCall } from '../../http/json-call.ts';
import { createPool } from '../../http/pool.ts';
import type { CounterChanger } from '../../domain/selling/counter.ts';
import { counterResultsWire, counterToWire, resultFromWire } from '../../domain/selling/counter-wire.ts';
import { createRemoteClock, type RemoteClock } from './remote-clock.ts';

type RemoteChargesOptions = {
  /** URL of the registry, without a slash at its end. */
  readonly registryUrl: string;
  /** Key of scope `ledger`. */
  readonly apiKey: string;
  /** The version of Tollgate that User-Agent names. */
  readonly version: string;
  readonly schedule: Schedule;
  readonly clock: Clock;
  readonly random: Random;
  /** A Unix socket that stands for the host of `registryUrl`. */
  readonly socketPath?: string;
  /** Names this run of the process; drawn if left out. */
  readonly run?: string;
  readonly limits?: Partial<RemoteChargesLimits>;
  /** Put around every call of `registry`. */
  readonly aroundCalls?: ((call: JsonCall, registry: URL) => JsonCall) | undefined;
};

export type RemoteChargesLimits = {
  /** Time that one attempt may take, its answer included. */
  readonly attemptMs: number;
  /** Time that a call may take with all its attempts: as long as a call of a store may by default. */
  readonly totalMs: number;
  /** Pauses between attempts; as many attempts follow the first. */
  readonly pausesMs: readonly number[];
  readonly bodyBytes: number;
};

const REMOTE_CHARGES_LIMITS: RemoteChargesLimits = {
  attemptMs: 3_000,
  totalMs: 5_000,
  pausesMs: [50, 500],
  bodyBytes: 8 * 1024 * 1024,
};

const CLAIMS = 'v1/ledger/claims';
const MAX_DUE = 20;
/** Connections to the registry at most. */
const MAX_SOCKETS = 256;
/** An id that no charge has. */
const NO_CHARGE = 'chg_none';

type Request = { readonly method: 'GET' | 'POST' | 'PATCH'; readonly path: string; readonly json?: unknown };

export function createRemoteCharges(
  options: RemoteChargesOptions,
): ChargeStore & { readonly counters: CounterChanger } {
  const { clock, random } = options;
  const theirs = createRemoteClock(clock);
  const { call, close } = createCalls(options, theirs);

  const read = (wire: Parameters<typeof chargeFromWire>[0]): Charge => {
    const charge = chargeFromWire(wire);
    theirs.passed(charge.updatedAt);
    return charge;
  };

  const findOne = async (search: Readonly<Record<string, string>>): Promise<Charge | undefined> => {
    const { data } = await call(
      { method: 'GET', path: `${CLAIMS}?${new URLSearchParams(search).toString()}` },
      chargesWire,
    );
    return data[0] && read(data[0]);
  };

  const post = async (claim: Claim, options: ClaimOptions): Promise<z.output<typeof claimedWire>> => {
    const { owner, leaseMs, maxUnsettledPerPayer, changeId } = options;
    const json = {
      ...claimToWire(claim),
      owner,
      lease_ms: leaseMs,
      max_unsettled_per_payer: maxUnsettledPerPayer,
      change_id: changeId ?? drawId(random),
    };
    return call({ method: 'POST', path: CLAIMS, json }, claimedWire);
  };

  const insert = async (claim: Claim, options: ClaimOptions): Promise<InsertResult> => {
    const answer = await post(claim, options);
    if (answer.kind === 'quote_already_used') return { kind: 'id_taken' };
    if (!('charge' in answer)) return { kind: answer.kind };
    const charge = about(read(answer.charge), (each) => samePayment(each.payment, claim.payment));
    if (answer.kind !== 'claimed') return { kind: 'payment_known', charge: stored(charge) };
    // Another owner would settle and deliver the charge too.
    about(charge, (each) => each.state === 'claimed' && each.owner === options.owner);
    return { kind: 'written', charge: stored(charge) };
  };

  const patch = async (id: string, event: ChargeEvent, actor: Actor): Promise<UpdateResult> => {
    const json = { event: eventToWire(event), owner: actor.owner, change_id: actor.changeId ?? drawId(random) };
    const answer = await call({ method: 'PATCH', path: `${CLAIMS}/${encodeURIComponent(id)}`, json }, advancedWire);
    const charge = answer.charge === null ? undefined : about(read(answer.charge), (each) => each.id === id);
    if (answer.kind === 'ok') {
      if (charge === undefined) throw new LedgerUnavailable('The registry answered about no charge.');
      return { kind: 'written', charge: stored(charge) };
    }
    if (answer.because === 'proof_used') return { kind: 'proof_used' };
    return { kind: 'stale', charge: charge && stored(charge) };
  };

  const update = async ({ before, actor, because }: Change): Promise<UpdateResult> => {
    if ('event' in because) return patch(before.charge.id, because.event, actor);
    const inserted = await insert(because.claim, because.options);
    switch (inserted.kind) {
      case 'payment_known':
        return { kind: 'stale', charge: inserted.charge };
      case 'id_taken':
        return { kind: 'stale', charge: undefined };
      case 'written':
        return inserted;
      case 'too_many_unsettled':
      case 'too_many_passes':
        return { kind: inserted.kind };
      default:
        return inserted satisfies never;
    }
  };

  return {
    keptBodyBytes: ANSWER_BYTES,
    run: options.run ?? `sidecar-${drawId(random)}`,
    now: theirs.now,
    find: async (by) => {
      if ('id' in by && !CHARGE_ID.test(by.id)) return undefined;
      const charge = await findOne('id' in by ? by : by.payment);
      if (charge === undefined) return undefined;
      return stored(about(charge, (each) => ('id' in by ? each.id === by.id : samePayment(each.payment, by.payment))));
    },
    insert: ({ claim, options }) => insert(claim, options),
    update,
    due: async (limit) => {
      const due = Math.min(limit, MAX_DUE);
      const { data } = await call({ method: 'GET', path: `${CLAIMS}?due=true&limit=${due}` }, chargesWire);
      return data.map((each) => stored(read(each)));
    },
    // A renewal is not tried again: the next one is on its way.
    renew: async (run, ids, leaseMs) => {
      const json = { owner: run, ids, lease_ms: leaseMs };
      const { ids: ours } = await call({ method: 'POST', path: 'v1/ledger/renewals', json }, renewedWire, []);
      return ours;
    },
    counters: {
      change: async (changes) => {
        const json = { changes: changes.map(counterToWire) };
        const { results } = await call({ method: 'POST', path: 'v1/ledger/counters', json }, counterResultsWire);
        const read = results.flatMap((each) => resultFromWire(each) ?? []);
        if (read.length !== changes.length)
          throw new LedgerUnavailable('The registry answered about other counters than were asked.');
        return read;
      },
    },
    // The registry answers our key, which a call that needs the scope `ledger` shows.
    check: async () => {
      await findOne({ id: NO_CHARGE });
    },
    close,
  };
}

type Calls = {
  /** Makes a call. `pauses` stand before each further attempt. */
  readonly call: <S extends z.ZodType>(request: Request, schema: S, pauses?: readonly number[]) => Promise<z.output<S>>;
  readonly close: () => Promise<void>;
};

/** Calls of the registry, tried again for as long as a call may take. */
function createCalls(options: RemoteChargesOptions, theirs: RemoteClock): Calls {
  const { apiKey, version, schedule, clock } = options;
  const limits = { ...REMOTE_CHARGES_LIMITS, ...options.limits };
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

  const attempt = async <S extends z.ZodType>(request: Request, schema: S, withinMs: number): Promise<z.output<S>> => {
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

  const call: Calls['call'] = async (request, schema, pauses = pausesMs) => {
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

/** The registry decides on the version that it has. */
function stored(charge: Charge): StoredCharge {
  return { charge, version: 0 };
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

function about(charge: Charge, holds: (charge: Charge) => boolean): Charge {
  if (!holds(charge)) throw new LedgerUnavailable('The registry answered about another charge than was asked.');
  return charge;
}

function drawId(random: Random): string {
  return random(16).toString('base64url');
}
