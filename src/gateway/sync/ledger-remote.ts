// The ledger of the registry, over HTTP: the port of domain/payment/ledger for a sidecar without a store of its own. Every call
// carries an id of its change, so that one whose answer was lost is sent again and is the same call; whatever else goes
// wrong is LedgerUnavailable. An answer is believed only where it is about the charge that was asked about.
import type { z } from 'zod';
import { CHARGE_ID, findClaimFault, samePayment, type Charge } from '../../domain/charge.ts';
import { ANSWER_BYTES, chargeFromWire, claimToWire } from '../../domain/charge-wire.ts';
import { LedgerUnavailable, type Advanced, type Ledger } from '../../domain/payment/ledger.ts';
import { advancedWire, chargesWire, claimedWire, eventToWire, renewedWire } from '../../domain/ledger-wire.ts';
import type { Claimed } from '../../domain/payment/claim-policy.ts';
import type { Actor, ChargeEvent } from '../../domain/payment/transition.ts';
import type { Clock, Random, Schedule } from '../../host/clock.ts';
import { createOutbox } from '../../host/outbox.ts';
import { createJsonCall } from '../../http/json-call.ts';
import { createPool } from '../../http/pool.ts';

export type RemoteLedgerOptions = {
  /** Without a slash at its end. */
  readonly registryUrl: string;
  /** Of scope `ledger`. */
  readonly apiKey: string;
  /** Named to the registry. */
  readonly version: string;
  readonly schedule: Schedule;
  readonly clock: Pick<Clock, 'monotonic'>;
  readonly random: Random;
  readonly limits?: Partial<RemoteLedgerLimits>;
};

export type RemoteLedgerLimits = {
  /** For one attempt, its answer included. */
  readonly attemptMs: number;
  /** For a call with all its attempts. */
  readonly totalMs: number;
  /** Between attempts; as many attempts follow the first. */
  readonly pausesMs: readonly number[];
  readonly bodyBytes: number;
};

export const REMOTE_LEDGER_LIMITS: RemoteLedgerLimits = {
  attemptMs: 3_000,
  totalMs: 8_000,
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

export type RemoteLedger = Ledger & {
  /** Resolves where the ledger answers our key; rejects with LedgerUnavailable. For readiness. */
  readonly check: () => Promise<void>;
  /** Ends every connection. */
  readonly close: () => void;
};

export function createRemoteLedger(options: RemoteLedgerOptions): RemoteLedger {
  const { apiKey, version, schedule, clock, random } = options;
  const limits = { ...REMOTE_LEDGER_LIMITS, ...options.limits };
  const { attemptMs, totalMs, pausesMs, bodyBytes: maxBytes } = limits;
  const registry = new URL(options.registryUrl);
  const base = registry.pathname.replace(/\/$/, '');
  const transport = createPool({
    ...{ upstream: registry, outbox: createOutbox(), maxSockets: MAX_SOCKETS, now: clock.monotonic },
    timeouts: { connectMs: attemptMs, headersMs: attemptMs, idleMs: attemptMs },
  });
  const callJson = createJsonCall({ transport, maxBytes, schedule });
  const headers = ['Host', registry.host, 'Authorization', `Bearer ${apiKey}`, 'User-Agent', `tollgate/${version}`];

  const attempt = async <S extends z.ZodType>(request: Request, schema: S, withinMs: number): Promise<z.output<S>> => {
    const { method, path, json } = request;
    const response = await callJson({ method, target: `${base}/${path}`, headers, json, withinMs });
    if (response.kind === 'failed') throw new Passing(response.detail);
    if (response.status !== 200) throw refusalOf(response.status);
    if (response.kind === 'unusable') throw new LedgerUnavailable(`The registry answered ${response.detail}.`);
    const parsed = schema.safeParse(response.json);
    if (!parsed.success) throw new LedgerUnavailable('The registry answered something else than a ledger does.');
    return parsed.data;
  };

  const call = async <S extends z.ZodType>(request: Request, schema: S, pauses = pausesMs): Promise<z.output<S>> => {
    const endsAt = clock.monotonic() + totalMs;
    for (let attempts = 1; ; attempts++) {
      try {
        return await attempt(request, schema, Math.min(attemptMs, Math.ceil(endsAt - clock.monotonic())));
      } catch (error) {
        if (!(error instanceof Passing)) throw error;
        const pauseMs = pauses[attempts - 1];
        if (pauseMs === undefined || clock.monotonic() + pauseMs >= endsAt) throw unavailable(error, attempts);
        await new Promise<void>((resolve) => void schedule(pauseMs, resolve));
      }
    }
  };

  const findOne = async (search: Readonly<Record<string, string>>): Promise<Charge | undefined> => {
    const { data } = await call(
      { method: 'GET', path: `${CLAIMS}?${new URLSearchParams(search).toString()}` },
      chargesWire,
    );
    return data[0] && chargeFromWire(data[0]);
  };

  const advance = async (id: string, event: ChargeEvent, actor: Actor): Promise<Advanced> => {
    if (!CHARGE_ID.test(id)) return { kind: 'conflict', because: 'unknown_charge', charge: undefined };
    const json = { event: eventToWire(event), owner: actor.owner, change_id: actor.changeId ?? drawId(random) };
    const answer = await call({ method: 'PATCH', path: `${CLAIMS}/${encodeURIComponent(id)}`, json }, advancedWire);
    const charge = answer.charge === null ? undefined : about(chargeFromWire(answer.charge), (each) => each.id === id);
    if (answer.kind === 'conflict') return { kind: 'conflict', because: answer.because, charge };
    if (charge === undefined) throw new LedgerUnavailable('The registry answered about no charge.');
    return { kind: 'ok', charge };
  };

  return {
    answerLimitBytes: ANSWER_BYTES,
    close: transport.close,
    check: async () => {
      await findOne({ id: NO_CHARGE });
    },
    run: `sidecar-${drawId(random)}`,
    find: async (payment) => {
      const charge = await findOne(payment);
      return charge && about(charge, (each) => samePayment(each.payment, payment));
    },
    findByChargeId: async (id) => {
      if (!CHARGE_ID.test(id)) return undefined;
      const charge = await findOne({ id });
      return charge && about(charge, (each) => each.id === id);
    },
    claim: async (claim, { owner, leaseMs, maxUnsettledPerPayer, changeId }): Promise<Claimed> => {
      const fault = findClaimFault(claim);
      if (fault !== undefined) throw new TypeError(`a claim that cannot be written: ${fault}`);
      const json = {
        ...claimToWire(claim),
        owner,
        lease_ms: leaseMs,
        max_unsettled_per_payer: maxUnsettledPerPayer,
        change_id: changeId ?? drawId(random),
      };
      const answer = await call({ method: 'POST', path: CLAIMS, json }, claimedWire);
      if (!('charge' in answer)) return answer;
      const charge = about(chargeFromWire(answer.charge), (each) => samePayment(each.payment, claim.payment));
      // Whoever else owns it would settle and deliver it too.
      if (answer.kind === 'claimed') about(charge, (each) => each.state === 'claimed' && each.owner === owner);
      return { kind: answer.kind, charge };
    },
    advance,
    due: async (limit) => {
      const due = Math.min(limit, MAX_DUE);
      const { data } = await call({ method: 'GET', path: `${CLAIMS}?due=true&limit=${due}` }, chargesWire);
      return data.map(chargeFromWire);
    },
    // Not tried again: the next one is on its way.
    renew: async (run, ids, leaseMs) => {
      const json = { owner: run, ids, lease_ms: leaseMs };
      const { ids: ours } = await call({ method: 'POST', path: 'v1/ledger/renewals', json }, renewedWire, []);
      return ours;
    },
  };
}

/** The same call may be sent again: nothing is known about this one. */
class Passing extends Error {}

function unavailable(cause: unknown, attempts: number): LedgerUnavailable {
  const why = cause instanceof Error ? cause.message : 'nothing is known';
  return new LedgerUnavailable(`The ledger of the registry is away after ${attempts} attempts: ${why}.`, { cause });
}

function refusalOf(status: number): Error {
  // A gateway in front of the registry lost it; the registry itself says 503 where its store is away.
  if (status === 502 || status === 504) return new Passing(`it answered ${status}`);
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
