// Asks facilitators, in the order in which they are configured. Verifying may go on to the next one whenever one does not
// know; settling only if the call was certainly not carried out, because a second facilitator asked to move money that
// the first may be moving turns one lost answer into two transactions. What does not have the form of an answer is none.
// Never logs a URL, a header or a word of theirs but a checked reason and what they say of extensions.
import type { RailOffer, Way } from '../../../domain/payment/way.ts';
import type { Facilitator, WayServices } from '../../../domain/receiver.ts';
import type { Clock, Schedule } from '../../../host/clock.ts';
import type { Log } from '../../../host/log.ts';
import {
  createBreaker,
  type Breaker,
  type CallEnd,
  type NotTaken,
  type OpenReason,
  type Operation,
} from './breaker.ts';
import {
  createWriteRequest,
  readExtensionResponses,
  readSettleAnswer,
  readVerifyAnswer,
  speaksOfPayment,
  readNotTaken,
  type NotTakenReply,
} from './facilitator-wire.ts';
import type { ChainWords } from './chain-words.ts';
import type { Presented, Rail, Refusal, Settlement } from '../rail.ts';
import { createSemaphore, type Release, type Semaphore } from '../semaphore.ts';
import { callService, urlBelow, type Fetch, type JsonReply } from '../service-call.ts';
import type { Authorize } from './auth.ts';
import { createSettlers, nameOf, type SettleOrder } from './settlers.ts';

export type Facilitators = {
  /** For payments that `chain` has words for. */
  readonly askFor: (chain: ChainWords, options?: SettleOrder) => Pick<Rail, 'verify' | 'settle' | 'firstVia'>;
  /** How each of these stands, one entry a facilitator. */
  readonly standing: (facilitators: readonly Facilitator[]) => readonly Standing[];
  /** Raised whenever one is left alone, or no more. */
  readonly revision: () => number;
};

export type Standing = {
  /** The host and, if one URL is called with several keys, whose key. */
  readonly name: string;
  /** Why it is left alone; undefined: it is not. */
  readonly open: OpenReason | undefined;
};

export type FacilitatorDeps = {
  readonly fetch: Fetch;
  readonly schedule: Schedule;
  readonly clock: Clock;
  readonly log: Log;
  readonly authorize: Authorize;
  /** As configured now. */
  readonly services: (way: Way) => WayServices | undefined;
  /** One call that was made, or skipped because the facilitator is left alone or busy. */
  readonly observe: (operation: Operation, result: CallResult, durationMs: number) => void;
};

export type CallResult = 'ok' | 'refused' | NotTaken['reason'] | 'unknown' | 'nonsense' | 'failed' | 'skipped';

export const MAX_ANSWER_BYTES = 64 * 1024;
export const ANSWER_LIMITS = { depth: 16, nodes: 8192, string: 16_384 } as const;

type Skipped = { readonly kind: 'skipped'; readonly why: string };
type Known = {
  /** For the log: the host and, if there is one, whose key is used. */
  readonly named: { readonly facilitator: string; readonly account?: string };
  readonly breaker: Breaker;
  readonly semaphores: Readonly<Record<Operation, Semaphore>>;
  readonly urls: Readonly<Record<Operation, string>>;
};

/** With what is known of each facilitator, whichever chain it was asked about. */
export function createFacilitators(deps: FacilitatorDeps): Facilitators {
  const { fetch, schedule, clock, log, authorize, observe } = deps;
  // By URL, account and limits: several receivers may share a facilitator, and a reloaded configuration finds the state it left.
  const known = new Map<string, Known>();
  let revision = 0;

  const stateOf = ({ url, account, limits: { calls, waiting } }: Facilitator): Known => {
    const name = `${calls} ${waiting} ${url} ${account ?? ''}`;
    let state = known.get(name);
    if (state === undefined) {
      // What was verified is not turned away for the length of a queue, because it is too late to say that nothing happened:
      // it waits as long as its time lasts, and there are no more of them than payments may be taken at a time.
      const semaphores = { verify: createSemaphore(calls, waiting), settle: createSemaphore(calls, Infinity) };
      const urls = { verify: urlBelow(url, 'verify'), settle: urlBelow(url, 'settle') };
      const named = { facilitator: new URL(url).host, ...(account === undefined ? {} : { account }) };
      known.set(name, (state = { named, breaker: createBreaker(clock), semaphores, urls }));
    }
    return state;
  };

  /** A place of `semaphore` within `waitMs`. */
  const waitFor = async (semaphore: Semaphore, waitMs: number): Promise<Release | undefined> => {
    const late = new AbortController();
    const cancel = schedule(waitMs, () => late.abort());
    return semaphore.wait(late.signal).finally(cancel);
  };

  const sayExtensions = (headers: Headers | undefined, about: object): void => {
    const extensions = readExtensionResponses(headers);
    if (extensions !== undefined) log.info('a facilitator says what became of extensions', { ...about, extensions });
  };

  /** Makes the call that `end`'s breaker admitted. */
  const call = async (
    facilitator: Facilitator,
    operation: Operation,
    body: string,
    end: (how: CallEnd) => void,
  ): Promise<Called> => {
    const { semaphores, urls, named, breaker } = stateOf(facilitator);
    const { verifyMs, settleMs } = facilitator.timeouts;
    let timeoutMs = operation === 'verify' ? verifyMs : settleMs;
    const semaphore = semaphores[operation];
    let release = semaphore.take();
    if (release === undefined) {
      const since = clock.monotonic();
      release = await waitFor(semaphore, timeoutMs);
      timeoutMs -= Math.floor(clock.monotonic() - since);
    }
    if (release === undefined || timeoutMs <= 0) {
      release?.();
      end('none');
      return { kind: 'skipped', why: 'too many calls are waiting for it' };
    }
    try {
      const { auth } = facilitator;
      const url = urls[operation];
      const headers =
        auth === undefined
          ? facilitator.headers
          : { ...facilitator.headers, Authorization: await authorize(auth, 'POST', new URL(url)) };
      const limits = { maxBytes: MAX_ANSWER_BYTES, limits: ANSWER_LIMITS };
      const reply = await callService({ method: 'POST', url, headers, body, timeoutMs, ...limits }, fetch);
      sayExtensions(reply.headers, { ...named, operation });
      const notTaken = readNotTaken(reply, (answer) => speaksOfPayment(operation, answer), clock.now());
      if (notTaken?.secondsAhead !== undefined) {
        const seconds_ahead = notTaken.secondsAhead;
        log.error('the clock of this machine is not that of the facilitator', { ...named, seconds_ahead });
      }
      const before = breaker.reason();
      end(notTaken ?? (reply.slow ? 'slow' : 'answered'));
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

  /** How long until the first of them is asked again; undefined if none is left alone. */
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
    observe(operation, result, clock.monotonic() - since);
    const { named } = stateOf(facilitator);
    if (result !== 'ok' && result !== 'refused') log.warn('facilitator', { ...named, operation, result, why });
    return `${named.facilitator}: ${why}`;
  };

  const calls: Calls = { stateOf, call, shortestRest, note };
  return {
    askFor: (chain, options = { settles: 'in_order' }) => createAsking(deps, calls, chain, options),
    revision: () => revision,
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

type Calls = {
  readonly stateOf: (facilitator: Facilitator) => Known;
  readonly call: (
    facilitator: Facilitator,
    operation: Operation,
    body: string,
    end: (how: CallEnd) => void,
  ) => Promise<Called>;
  readonly shortestRest: (facilitators: readonly Facilitator[]) => number | undefined;
  readonly note: (
    operation: Operation,
    facilitator: Facilitator,
    since: number,
    result: CallResult,
    why?: string,
  ) => string;
};

function createAsking(
  { clock, log, services }: FacilitatorDeps,
  { stateOf, call, shortestRest, note }: Calls,
  chain: ChainWords,
  { settles }: SettleOrder,
): Pick<Rail, 'verify' | 'settle' | 'firstVia'> {
  const facilitatorsOf = (way: Way): readonly Facilitator[] => services(way)?.facilitators ?? [];
  const writeRequest = createWriteRequest(chain);
  // What is verified is what is settled: the same words for both.
  const written = new WeakMap<Presented, { readonly offer: RailOffer; readonly body: string }>();
  const bodyOf = (presented: Presented, offer: RailOffer): string => {
    const known = written.get(presented);
    if (known !== undefined && known.offer === offer) return known.body;
    const body = writeRequest(presented, offer);
    written.set(presented, { offer, body });
    return body;
  };

  const { verified, mayBeAsked } = createSettlers(facilitatorsOf, settles);

  return {
    verify: async (presented, offer) => {
      const facilitators = facilitatorsOf(offer.way);
      const declined: Refusal[] = [];
      const body = bodyOf(presented, offer);
      const said: string[] = [];
      // What the last one said, by a word that is not known here.
      let unlisted: string | undefined;
      for (const facilitator of facilitators) {
        const since = clock.monotonic();
        unlisted = undefined;
        const { breaker } = stateOf(facilitator);
        const end = breaker.admit('verify');
        const reply = end === undefined ? leftAlone(breaker) : await call(facilitator, 'verify', body, end);
        if (reply.kind !== 'reply') {
          const result = reply.kind === 'not_taken' ? reply.reason : reply.kind;
          said.push(note('verify', facilitator, since, result, reply.why));
          continue;
        }
        const answer = readVerifyAnswer(reply.status, reply.body, presented, chain);
        switch (answer.kind) {
          case 'valid':
            note('verify', facilitator, since, 'ok');
            verified(presented, facilitator);
            return { kind: 'valid', payer: presented.key.payer };
          case 'refused':
            note('verify', facilitator, since, 'refused');
            return answer;
          case 'declined':
            declined.push(answer.refusal);
            said.push(note('verify', facilitator, since, 'refused', answer.refusal.reason));
            break;
          case 'unlisted':
            unlisted = answer.reason;
            said.push(note('verify', facilitator, since, 'unknown', `a word that is on no list: ${answer.reason}`));
            break;
          case 'nonsense':
            said.push(note('verify', facilitator, since, 'nonsense', answer.why));
            break;
          default:
            answer satisfies never;
        }
      }
      const refusal = refusalOfAll(declined, facilitators);
      if (refusal !== undefined) return { kind: 'refused', ...refusal };
      if (unlisted !== undefined) return { kind: 'refused', reason: unlisted };
      return { kind: 'unavailable', detail: said.join('; '), retryAfterMs: shortestRest(facilitators) };
    },

    settle: async (presented, offer, history, sending) => {
      const facilitators = mayBeAsked(presented, offer, history.via);
      const body = bodyOf(presented, offer);
      const declined: Refusal[] = [];
      const said: string[] = [];
      for (const facilitator of facilitators) {
        const since = clock.monotonic();
        const via = nameOf(facilitator);
        const { breaker } = stateOf(facilitator);
        const end = breaker.admit('settle');
        if (end === undefined) {
          said.push(note('settle', facilitator, since, 'skipped', leftAlone(breaker).why));
          continue;
        }
        const goesOn = await sending(via).catch((error: unknown) => {
          end('none');
          throw error;
        });
        if (!goesOn) {
          end('none');
          return { kind: 'not_carried_out', reason: 'stopped', retryAfterMs: undefined };
        }
        const reply = await call(facilitator, 'settle', body, end);
        const concluded = conclude(reply, via, presented, offer, history.afterUnknown, chain);
        const { settlement, result, why } = concluded;
        const detail = note('settle', facilitator, since, result, why);
        if (settlement === undefined) {
          said.push(detail);
          if (concluded.declined !== undefined) declined.push(concluded.declined);
          continue;
        }
        return settlement.kind === 'unknown' ? { ...settlement, detail } : settlement;
      }
      log.warn('no facilitator settles', { why: said.join('; ') });
      return {
        kind: 'not_carried_out',
        reason: 'facilitator_unavailable',
        retryAfterMs: shortestRest(facilitators),
        // One that was not asked may take it.
        declined: refusalOfAll(declined, facilitatorsOf(offer.way)),
      };
    },

    firstVia: (presented, offer) => {
      const [first] = mayBeAsked(presented, offer, undefined);
      return first && nameOf(first);
    },
  };
}

/** An end of a call, or why none was made. */
type Called = JsonReply | Skipped | ({ readonly kind: 'not_taken' } & NotTakenReply);

function leftAlone(breaker: Breaker): Skipped {
  return { kind: 'skipped', why: `it is left alone for a while (${breaker.reason()})` };
}

/** `settlement` undefined: this facilitator did not carry the call out, and the next one may be asked. */
type Conclusion = {
  readonly settlement: Settlement | undefined;
  readonly result: CallResult;
  readonly why?: string;
  readonly declined?: Refusal | undefined;
};

/** What the end of a call says about the money. */
function conclude(
  reply: Called,
  via: string,
  presented: Presented,
  offer: RailOffer,
  afterUnknown: boolean,
  chain: ChainWords,
): Conclusion {
  const unknown = (reason: string, result: CallResult, why: string): Conclusion => ({
    settlement: { kind: 'unknown', reason, via, detail: why },
    result,
    why,
  });
  if (reply.kind === 'not_taken') return { settlement: undefined, result: reply.reason, why: reply.why };
  if (reply.kind === 'skipped') return { settlement: undefined, result: 'skipped', why: reply.why };
  if (reply.kind === 'failed' && !reply.sent) return { settlement: undefined, result: 'failed', why: reply.why };
  if (reply.kind === 'failed' && reply.status === undefined)
    return unknown('facilitator_no_answer', 'failed', reply.why);
  const body = reply.kind === 'reply' ? reply.body : undefined;
  const answer = readSettleAnswer(reply.status ?? 0, body, presented, offer, chain);
  switch (answer.kind) {
    case 'settled':
      return { settlement: { kind: 'settled', transaction: answer.transaction, via }, result: 'ok' };
    case 'refused': {
      const { reason } = answer;
      if (afterUnknown) return unknown(reason, 'unknown', `${reason}, after an attempt with an unknown end`);
      return { settlement: { kind: 'refused', reason, via }, result: 'refused' };
    }
    case 'not_carried_out':
      return { settlement: undefined, result: 'not_carried_out', why: answer.why, declined: answer.declined };
    case 'unknown':
      return unknown(answer.reason, 'unknown', answer.reason);
    case 'nonsense':
      return unknown('facilitator_answer_invalid', 'nonsense', answer.why);
    default:
      return answer satisfies never;
  }
}

/** What a payer is told if not one of them takes such a payment. */
function refusalOfAll(declined: readonly Refusal[], facilitators: readonly Facilitator[]): Refusal | undefined {
  return declined.length === facilitators.length ? declined[0] : undefined;
}
