// The ledger of the registry, over HTTP: the port of domain/ledger for a sidecar without a store of its own. Every call
// carries an id of its change, so that one whose answer was lost is sent again and is the same call; whatever else goes
// wrong is LedgerUnavailable. An answer is believed only where it is about the charge that was asked about.
import type { z } from 'zod';
import { CHARGE_ID, findClaimFault, samePayment, type Charge } from '../../domain/charge.ts';
import { ANSWER_BYTES, chargeFromWire, claimToWire } from '../../domain/charge-wire.ts';
import { LedgerUnavailable, type Advanced, type Ledger } from '../../domain/ledger.ts';
import { advancedWire, chargesWire, claimedWire, eventToWire, renewedWire } from '../../domain/ledger-wire.ts';
import type { Claimed } from '../../domain/standing.ts';
import type { Actor, ChargeEvent } from '../../domain/transition.ts';
import type { Random, Schedule } from '../../host/clock.ts';
import { createDeadline, type Deadline } from './deadline.ts';
import { createRegistryClient } from './registry-client.ts';

export type RemoteLedgerOptions = {
  /** Without a slash at its end. */
  readonly registryUrl: string;
  /** Of scope `ledger`. */
  readonly apiKey: string;
  /** Named to the registry. */
  readonly version: string;
  readonly fetch: typeof globalThis.fetch;
  readonly schedule: Schedule;
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
/** An id that no charge has. */
const NO_CHARGE = 'chg_none';

type Request = { readonly method: 'get' | 'post' | 'patch'; readonly path: string; readonly json?: unknown };

export type RemoteLedger = Ledger & {
  /** Resolves where the ledger answers our key; rejects with LedgerUnavailable. For readiness. */
  readonly check: () => Promise<void>;
};

export function createRemoteLedger(options: RemoteLedgerOptions): RemoteLedger {
  const { schedule, random } = options;
  const limits = { ...REMOTE_LEDGER_LIMITS, ...options.limits };
  const http = createRegistryClient(options);

  const attempt = async <S extends z.ZodType>(request: Request, schema: S, outer: Deadline): Promise<z.output<S>> => {
    const deadline = createDeadline(outer.signal, limits.attemptMs, schedule);
    try {
      const { method, path, json } = request;
      const body = json === undefined ? {} : { json };
      const response = await deadline.race(http(path, { method, ...body, signal: deadline.signal }));
      if (response.status !== 200) throw refusalOf(response);
      const bytes = await readBody(response, limits, deadline);
      const parsed = schema.safeParse(JSON.parse(bytes.toString()));
      if (!parsed.success) throw new LedgerUnavailable('The registry answered something else than a ledger does.');
      return parsed.data;
    } catch (error) {
      if (error instanceof LedgerUnavailable || error instanceof Passing) throw error;
      if (error instanceof SyntaxError) throw new LedgerUnavailable('The registry answered no JSON.', { cause: error });
      throw new Passing(deadline.passed() ? 'it did not answer in time' : 'the connection failed', { cause: error });
    } finally {
      deadline.clear();
    }
  };

  const call = async <S extends z.ZodType>(request: Request, schema: S): Promise<z.output<S>> => {
    const outer = createDeadline(new AbortController().signal, limits.totalMs, schedule);
    try {
      for (const [index, pauseMs] of [...limits.pausesMs, undefined].entries()) {
        try {
          return await attempt(request, schema, outer);
        } catch (error) {
          if (!(error instanceof Passing)) throw error;
          if (pauseMs === undefined || outer.passed()) throw unavailable(error, index + 1);
          await outer.race(new Promise<void>((resolve) => void schedule(pauseMs, resolve))).catch((late: unknown) => {
            throw unavailable(late, index + 1);
          });
        }
      }
    } finally {
      outer.clear();
    }
    throw new LedgerUnavailable('The registry was not asked.');
  };

  const once = async <S extends z.ZodType>(request: Request, schema: S): Promise<z.output<S>> => {
    const outer = createDeadline(new AbortController().signal, limits.attemptMs, schedule);
    try {
      return await attempt(request, schema, outer);
    } catch (error) {
      throw error instanceof Passing ? unavailable(error, 1) : error;
    } finally {
      outer.clear();
    }
  };

  const findOne = async (search: Readonly<Record<string, string>>): Promise<Charge | undefined> => {
    const { data } = await call(
      { method: 'get', path: `${CLAIMS}?${new URLSearchParams(search).toString()}` },
      chargesWire,
    );
    return data[0] && chargeFromWire(data[0]);
  };

  const advance = async (id: string, event: ChargeEvent, actor: Actor): Promise<Advanced> => {
    if (!CHARGE_ID.test(id)) return { kind: 'conflict', because: 'unknown_charge', charge: undefined };
    const json = { event: eventToWire(event), owner: actor.owner, change_id: actor.changeId ?? drawId(random) };
    const answer = await call({ method: 'patch', path: `${CLAIMS}/${encodeURIComponent(id)}`, json }, advancedWire);
    const charge = answer.charge === null ? undefined : about(chargeFromWire(answer.charge), (each) => each.id === id);
    if (answer.kind === 'conflict') return { kind: 'conflict', because: answer.because, charge };
    if (charge === undefined) throw new LedgerUnavailable('The registry answered about no charge.');
    return { kind: 'ok', charge };
  };

  return {
    answerLimitBytes: ANSWER_BYTES,
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
      const answer = await call({ method: 'post', path: CLAIMS, json }, claimedWire);
      if (!('charge' in answer)) return answer;
      const charge = about(chargeFromWire(answer.charge), (each) => samePayment(each.payment, claim.payment));
      // Whoever else owns it would settle and deliver it too.
      if (answer.kind === 'claimed') about(charge, (each) => each.state === 'claimed' && each.owner === owner);
      return { kind: answer.kind, charge };
    },
    advance,
    due: async (limit) => {
      const due = Math.min(limit, MAX_DUE);
      const { data } = await call({ method: 'get', path: `${CLAIMS}?due=true&limit=${due}` }, chargesWire);
      return data.map(chargeFromWire);
    },
    // Not tried again: the next one is on its way.
    renew: async (run, ids, leaseMs) => {
      const json = { owner: run, ids, lease_ms: leaseMs };
      const { ids: ours } = await once({ method: 'post', path: 'v1/ledger/renewals', json }, renewedWire);
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

function refusalOf(response: Response): Error {
  response.body?.cancel().catch(() => undefined);
  const { status } = response;
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

async function readBody(response: Response, limits: RemoteLedgerLimits, deadline: Deadline): Promise<Buffer> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  if (response.body === null) return Buffer.alloc(0);
  for await (const chunk of deadline.read(response.body, limits.attemptMs)) {
    size += chunk.length;
    if (size > limits.bodyBytes)
      throw new LedgerUnavailable(`The registry answered more than ${limits.bodyBytes} bytes.`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

function about(charge: Charge, holds: (charge: Charge) => boolean): Charge {
  if (!holds(charge)) throw new LedgerUnavailable('The registry answered about another charge than was asked.');
  return charge;
}

function drawId(random: Random): string {
  return random(16).toString('base64url');
}
