// Calls of facilitators: what is known of each, whether it may be called now, and how a call ends. A call waits for a
// place, says who calls, and takes what was sent as a secret out of the answer. Never logs a URL, a header or a word of
// theirs, except a checked reason and what they say of extensions.
import type { Way } from '../../../domain/payment/way.ts';
import type { Facilitator, WayServices } from '../../../domain/payment/offer.ts';
import { UNASKED, type FacilitatorHealth, type FacilitatorStatus } from '../../../domain/payment/service-health.ts';
import type { Clock, Schedule } from '../../../host/clock.ts';
import type { Log } from '../../../host/log.ts';
import type { Metrics } from '../../../host/metrics.ts';
import { readExtensionResponses, speaksOfPayment } from './facilitator-wire.ts';
import { readNotTaken, type CallRejection, type NotTakenReply } from './not-taken.ts';
import { createSemaphore, type Release, type Semaphore } from '../semaphore.ts';
import {
  callService,
  urlBelow,
  type Fetch,
  type JsonReply,
  type ReplyHeaders,
  type ServiceCall,
} from '../service-call.ts';
import type { Authorizer } from './auth.ts';
import { isListed } from './reasons.ts';
import { createSecretFilter, type SecretFilter } from './secrets.ts';
import { type Operation, type CallEnd, type Breaker, type OpenReason, createBreaker } from './circuit-breaker.ts';

export type FacilitatorStanding = {
  /** The host and, if one URL is called with several keys, whose key. */
  readonly name: string;
  /** Reason why the facilitator is left alone; undefined: it is not. */
  readonly open: OpenReason | undefined;
};

export type FacilitatorDeps = {
  readonly fetch: Fetch;
  /** Calls nodes, if not `fetch` does. */
  readonly chainFetch?: Fetch | undefined;
  readonly schedule: Schedule;
  readonly clock: Clock;
  readonly log: Log;
  readonly authorize: Authorizer;
  /** Services of a way, as configured now. */
  readonly services: (way: Way) => WayServices | undefined;
  /** Hears of a call that was made, or skipped because the facilitator is left alone or busy. */
  readonly observe: (ended: EndedCall) => void;
};

/** How a call of a facilitator ended. */
export type EndedCall = {
  /** Host of the facilitator. */
  readonly facilitator: string;
  readonly operation: Operation;
  readonly result: CallResult;
  readonly durationMs: number;
};

export type CallResult = 'ok' | 'refused' | CallRejection['reason'] | 'unknown' | 'nonsense' | 'failed' | 'skipped';

/** Observes calls in a histogram, by operation, result and the facilitator's host. */
export function observeFacilitators(metrics: Metrics): FacilitatorDeps['observe'] {
  const calls = metrics.duration('facilitator_duration_seconds', 'Calls to facilitators, by their end.', [
    'operation',
    'result',
    'facilitator',
  ]);
  return ({ operation, result, facilitator, durationMs }) => calls(operation, result, facilitator)(durationMs / 1000);
}

type SkippedCall = { readonly kind: 'skipped'; readonly why: string };
type KnownFacilitator = {
  /** Names for the log: the host and, if there is one, whose key is used. */
  readonly named: { readonly facilitator: string; readonly account?: string };
  readonly breaker: Breaker;
  readonly semaphores: Readonly<Record<Operation, Semaphore>>;
  /** Replaced by every call that was made. */
  health: FacilitatorHealth;
};

/** Calls of facilitators, and how each stands. */
export type FacilitatorCalls = {
  /** State of each of these, one entry a facilitator. */
  readonly standing: (facilitators: readonly Facilitator[]) => readonly FacilitatorStanding[];
  readonly healthOf: (facilitator: Facilitator) => FacilitatorHealth;
  /** Counter that is raised whenever a facilitator is left alone, or no more. */
  readonly revision: () => number;
  readonly stateOf: (facilitator: Facilitator) => KnownFacilitator;
  readonly call: (
    facilitator: Facilitator,
    operation: Operation,
    body: string,
    end: (how: CallEnd) => void,
  ) => Promise<CallAttempt>;
  readonly shortestRest: (facilitators: readonly Facilitator[]) => number | undefined;
  readonly note: (
    operation: Operation,
    facilitator: Facilitator,
    since: number,
    result: CallResult,
    why?: string,
  ) => string;
};

/** An end of a call, or why none was made. */
export type CallAttempt = JsonReply | SkippedCall | ({ readonly kind: 'not_taken' } & NotTakenReply);

export function leftAlone(breaker: Breaker): SkippedCall {
  return { kind: 'skipped', why: `it is left alone for a while (${breaker.reason()})` };
}

/** Makes the calls, and keeps what is known of each facilitator, whichever chain it was asked about. */
export function createCalls(deps: FacilitatorDeps): FacilitatorCalls {
  const { schedule, clock, log, observe } = deps;
  // Facilitators by URL, account and limits: several receivers may share one, and a reloaded configuration finds the
  // state it left.
  const known = new Map<string, KnownFacilitator>();
  let revision = 0;

  const stateOf = ({ url, account, limits: { calls, waiting } }: Facilitator): KnownFacilitator => {
    const name = `${calls} ${waiting} ${url} ${account ?? ''}`;
    let state = known.get(name);
    if (state === undefined) {
      // A verified payment is never turned away because a queue is long: it is too late to say that nothing happened.
      // It waits until its time is over. The limit of payments at a time bounds how many wait.
      const semaphores = { verify: createSemaphore(calls, waiting), settle: createSemaphore(calls, Infinity) };
      const named = { facilitator: new URL(url).host, ...(account === undefined ? {} : { account }) };
      known.set(name, (state = { named, breaker: createBreaker(clock), semaphores, health: UNASKED }));
    }
    return state;
  };

  const sayExtensions = (headers: ReplyHeaders | undefined, about: object): void => {
    const extensions = readExtensionResponses(headers);
    if (extensions !== undefined) log.info('a facilitator says what became of extensions', { ...about, extensions });
  };

  /** Makes the call that `end`'s breaker admitted. */
  const call = async (
    facilitator: Facilitator,
    operation: Operation,
    body: string,
    end: (how: CallEnd) => void,
  ): Promise<CallAttempt> => {
    const { semaphores, named, breaker } = stateOf(facilitator);
    const { verifyMs, settleMs } = facilitator.timeouts;
    let timeoutMs = operation === 'verify' ? verifyMs : settleMs;
    const semaphore = semaphores[operation];
    let release = semaphore.take();
    if (release === undefined) {
      const since = clock.monotonic();
      release = await waitFor(semaphore, timeoutMs, schedule);
      timeoutMs -= Math.floor(clock.monotonic() - since);
    }
    if (release === undefined || timeoutMs <= 0) {
      release?.();
      end('none');
      return { kind: 'skipped', why: 'too many calls are waiting for it' };
    }
    try {
      const reply = await requestFacilitator(facilitator, { name: operation, body, timeoutMs }, deps);
      sayExtensions(reply.headers, { ...named, operation });
      const isAnswer = reply.kind === 'reply' && speaksOfPayment(operation, reply.body);
      const notTaken = isAnswer ? undefined : readNotTaken(reply, clock.now());
      if (notTaken?.secondsAhead !== undefined) {
        const seconds_ahead = notTaken.secondsAhead;
        log.error('the clock of this machine is not that of the facilitator', { ...named, seconds_ahead });
      }
      const before = breaker.reason();
      end(notTaken ?? (reply.slow && !isAnswer ? 'slow' : 'answered'));
      const reason = breaker.reason();
      if ((before === undefined) !== (reason === undefined)) revision++;
      if (before === undefined && reason !== undefined) log.error('a facilitator is left alone', { ...named, reason });
      if (before !== undefined && reason === undefined) log.info('a facilitator is back', named);
      return notTaken === undefined ? reply : { ...notTaken, kind: 'not_taken' };
    } catch (error) {
      end('none');
      throw error;
    } finally {
      release();
    }
  };

  /** Milliseconds until the first of them is asked again; undefined if none is left alone. */
  const shortestRest = (facilitators: readonly Facilitator[]): number | undefined => {
    const rests = facilitators.map((facilitator) => stateOf(facilitator).breaker.rest());
    const shortest = Math.min(...rests);
    return shortest > 0 ? shortest : undefined;
  };

  /** Counts and logs how a call to `facilitator` ended; returns what to say of it. */
  const note = (
    operation: Operation,
    facilitator: Facilitator,
    since: number,
    result: CallResult,
    why = '',
  ): string => {
    const durationMs = clock.monotonic() - since;
    const state = stateOf(facilitator);
    const { named, breaker } = state;
    observe({ facilitator: named.facilitator, operation, result, durationMs });
    if (result !== 'skipped') {
      const end = { result, why, durationMs, reason: breaker.reason(), nowMs: clock.now() };
      state.health = healthAfter(state.health, end);
    }
    if (result !== 'ok' && result !== 'refused') log.warn('facilitator', { ...named, operation, result, why });
    return `${named.facilitator}: ${why}`;
  };

  return {
    stateOf,
    call,
    shortestRest,
    note,
    revision: () => revision,
    healthOf: (facilitator) => stateOf(facilitator).health,
    standing: (facilitators) => {
      const byState = new Map(facilitators.map((facilitator) => [stateOf(facilitator), facilitator]));
      const urls = [...byState.values()].map(({ url }) => url);
      return [...byState].map(([{ named, breaker }, { url, account }]) => {
        const several = account !== undefined && urls.filter((other) => other === url).length > 1;
        return { name: several ? `${named.facilitator} ${account}` : named.facilitator, open: breaker.reason() };
      });
    },
  };
}

// How a facilitator answers, for people: by its last call, unless it is left alone.

/** Answers whose durations are kept. */
const KEPT_DURATIONS = 100;

type LastCall = {
  readonly result: Exclude<CallResult, 'skipped'>;
  readonly why: string;
  readonly durationMs: number;
  /** Reason why the circuit breaker is open after the call. */
  readonly reason: OpenReason | undefined;
  readonly nowMs: number;
};

function healthAfter(before: FacilitatorHealth, end: LastCall): FacilitatorHealth {
  const { result, why, durationMs, reason, nowMs } = end;
  const isAnswer = result === 'ok' || result === 'refused';
  const left = reason === undefined || reason === 'slow' ? undefined : statusAfter(reason);
  const status = reason === undefined ? statusAfter(result) : left === 'unauthorized' ? left : 'resting';
  return {
    status,
    sinceMs: status === before.status ? before.sinceMs : nowMs,
    askedMs: nowMs,
    lastError: isAnswer ? null : why || result,
    durationsMs: isAnswer ? [...before.durationsMs.slice(1 - KEPT_DURATIONS), durationMs] : before.durationsMs,
  };
}

function statusAfter(result: LastCall['result']): FacilitatorStatus {
  switch (result) {
    case 'ok':
    case 'refused':
      return 'ok';
    case 'unauthorized':
    case 'forbidden':
    case 'payment_required':
    case 'clock_skew':
      return 'unauthorized';
    case 'rate_limited':
    case 'not_carried_out':
    case 'unknown':
    case 'nonsense':
    case 'failed':
      return 'failing';
    default:
      return result satisfies never;
  }
}

/** A place of `semaphore` within `waitMs`. */
async function waitFor(semaphore: Semaphore, waitMs: number, schedule: Schedule): Promise<Release | undefined> {
  const late = new AbortController();
  const cancel = schedule(waitMs, () => late.abort());
  return semaphore.wait(late.signal).finally(cancel);
}

// Makes one request to a facilitator: it says who calls, and what comes back holds nothing of what was sent as a
// secret. A caller may show what an answer says.

type FacilitatorRequest = Pick<ServiceCall, 'timeoutMs'> & {
  readonly name: 'verify' | 'settle' | 'supported';
  /** JSON; undefined: it is a GET. */
  readonly body: string | undefined;
};

const MAX_BYTES = 64 * 1024;
const LIMITS = { depth: 16, nodes: 8192, string: 16_384 } as const;
/** A list of everything that a facilitator supports may be longer than an answer about one payment. */
const OF_LISTS = 16;

export async function requestFacilitator(
  { url: base, auth, headers: own }: Facilitator,
  { name, body, timeoutMs }: FacilitatorRequest,
  { fetch, authorize }: { readonly fetch: Fetch; readonly authorize: Authorizer },
): Promise<JsonReply> {
  const url = urlBelow(base, name);
  const method = body === undefined ? 'GET' : 'POST';
  const token = auth && { Authorization: await authorize(auth, method, new URL(url)) };
  const headers = { ...own, ...token };
  const scale = name === 'supported' ? OF_LISTS : 1;
  const limits = { maxBytes: MAX_BYTES * scale, limits: { ...LIMITS, nodes: LIMITS.nodes * scale } };
  // Asking for a list moves nothing. A token is for one call.
  const repeat = name === 'supported' && auth === undefined ? { mayRepeat: () => true } : {};
  const reply = await callService({ method, url, headers, body, timeoutMs, ...limits, ...repeat }, fetch);
  const secrets = [...Object.values(headers), ...keysIn(base)];
  return secrets.length === 0 ? reply : withoutSecrets(reply, createSecretFilter(secrets, isListed));
}

/** A part of a URL's path this long may be a key; a shorter one is a name. */
const KEY_IN_PATH = 12;

function keysIn(url: string): readonly string[] {
  return new URL(url).pathname.split('/').filter((part) => part.length >= KEY_IN_PATH);
}

function withoutSecrets(reply: JsonReply, filter: SecretFilter): JsonReply {
  const answered = reply.headers;
  const get = (name: string): string | null => {
    const value = answered?.get(name) ?? null;
    return value === null ? null : filter.text(value);
  };
  const headers = answered && { get };
  return reply.kind === 'reply' ? { ...reply, headers, body: filter.json(reply.body) } : { ...reply, headers };
}
