// Asks facilitators, in the order in which they are configured. Verifying may go on to the next one whenever one does not
// know; settling only where not a byte of the call was sent, because a second facilitator asked to move money that the
// first may be moving turns one lost answer into two transactions. What does not have the form of an answer is no answer.
// Never logs a URL, a header or a word of theirs but a checked reason.
import { createHash } from 'node:crypto';
import type { Facilitator } from '../../domain/receiver.ts';
import type { Clock, Schedule } from '../../host/clock.ts';
import type { Log } from '../../host/log.ts';
import { createBreaker, type Breaker, type Operation } from './breaker.ts';
import { startDeadline } from './deadline.ts';
import { createWriteRequest, readSettleAnswer, readVerifyAnswer } from './facilitator-wire.ts';
import type { JsonReply } from './http-json.ts';
import { createPlaces, type Places } from './places.ts';
import { createJsonPosts, type JsonPosts } from './post-json.ts';
import { refusedReceipt, settledReceipt, type Presented, type Rail, type Settlement, type RailOffer } from './rail.ts';
import { readSigned } from './x402-wire.ts';

export type Facilitators = Pick<Rail, 'verify' | 'settle'>;

export type FacilitatorDeps = {
  readonly schedule: Schedule;
  readonly clock: Pick<Clock, 'monotonic'>;
  readonly log: Log;
  /** One call that was made, or skipped because the facilitator is left alone or busy. */
  readonly observe: (operation: Operation, result: CallResult, durationMs: number) => void;
};

export type CallResult = 'ok' | 'refused' | 'unknown' | 'nonsense' | 'failed' | 'skipped';

export const MAX_ANSWER_BYTES = 64 * 1024;
export const ANSWER_LIMITS = { depth: 16, nodes: 8192, string: 16_384 } as const;

type Skipped = { readonly kind: 'skipped'; readonly why: string };
type Known = {
  /** For the log. */
  readonly host: string;
  readonly breaker: Breaker;
  readonly places: Readonly<Record<Operation, Places>>;
  readonly posts: JsonPosts;
};

export function createFacilitators(deps: FacilitatorDeps): Facilitators {
  const { clock, log, observe } = deps;
  // By URL and limits: several receivers may share a facilitator, and a reloaded configuration finds the state it left.
  const known = new Map<string, Known>();

  const stateOf = ({ url, limits: { calls, waiting } }: Facilitator): Known => {
    const name = `${calls} ${waiting} ${url}`;
    let state = known.get(name);
    if (state === undefined) {
      // What was verified is not turned away for the length of a queue, because it is too late to say that nothing happened:
      // it waits as long as its time lasts, and there are no more of them than payments may be taken at a time.
      const places = { verify: createPlaces(calls, waiting), settle: createPlaces(calls, Infinity) };
      const { host } = new URL(url);
      known.set(name, (state = { host, breaker: createBreaker(clock), places, posts: createJsonPosts(url, deps) }));
    }
    return state;
  };

  const ask = async (facilitator: Facilitator, operation: Operation, body: string): Promise<JsonReply | Skipped> => {
    const { breaker, places, posts } = stateOf(facilitator);
    const end = breaker.admit(operation);
    if (end === undefined) return { kind: 'skipped', why: 'it is left alone for a while, after slow answers' };
    const { verifyMs, settleMs } = facilitator.timeouts;
    const deadline = startDeadline(deps.schedule, operation === 'verify' ? verifyMs : settleMs);
    const place = places[operation].take(deadline);
    const release = place instanceof Promise ? await place : place;
    if (release === undefined) {
      deadline.cancel();
      end('none');
      return { kind: 'skipped', why: 'too many calls are waiting for it' };
    }
    try {
      const { headers } = facilitator;
      const call = { headers, body, maxBytes: MAX_ANSWER_BYTES, limits: ANSWER_LIMITS, deadline };
      const reply = await posts(operation, call);
      end(reply.kind === 'failed' && reply.slow ? 'slow' : 'answered');
      return reply;
    } finally {
      deadline.cancel();
      release();
    }
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
    const { host } = stateOf(facilitator);
    if (result === 'nonsense' || result === 'failed' || result === 'skipped' || result === 'unknown') {
      log.warn('facilitator', { facilitator: host, operation, result, why });
    }
    return `${host}: ${why}`;
  };

  const writeRequest = createWriteRequest();
  // What is verified is what is settled: the same words for both.
  const written = new WeakMap<Presented, { readonly offer: RailOffer; readonly body: string }>();
  const bodyOf = (presented: Presented, offer: RailOffer): string => {
    const known = written.get(presented);
    if (known !== undefined && known.offer === offer) return known.body;
    const body = writeRequest(presented, readSigned(presented.payload), offer);
    written.set(presented, { offer, body });
    return body;
  };

  return {
    verify: async (presented, offer) => {
      const body = bodyOf(presented, offer);
      const said: string[] = [];
      for (const facilitator of offer.receiver.facilitators) {
        const since = clock.monotonic();
        const reply = await ask(facilitator, 'verify', body);
        if (reply.kind !== 'reply') {
          said.push(note('verify', facilitator, since, reply.kind, reply.why));
          continue;
        }
        const answer = readVerifyAnswer(reply.status, reply.body, presented);
        switch (answer.kind) {
          case 'valid':
            note('verify', facilitator, since, 'ok');
            return { kind: 'valid', payer: presented.key.payer };
          case 'refused':
            note('verify', facilitator, since, 'refused');
            return answer;
          case 'nonsense':
            said.push(note('verify', facilitator, since, 'nonsense', answer.why));
            break;
          default:
            answer satisfies never;
        }
      }
      return { kind: 'unavailable', detail: said.join('; ') };
    },

    settle: async (presented, offer, history) => {
      const body = bodyOf(presented, offer);
      const said: string[] = [];
      for (const facilitator of whomToAsk(offer.receiver.facilitators, history.via)) {
        const since = clock.monotonic();
        const reply = await ask(facilitator, 'settle', body);
        if (reply.kind === 'skipped' || (reply.kind === 'failed' && !reply.sent)) {
          said.push(note('settle', facilitator, since, reply.kind, reply.why));
          continue;
        }
        const { settlement, result, why } = conclude(reply, presented, offer, history.afterUnknown);
        const detail = note('settle', facilitator, since, result, why);
        return settlement.kind === 'unknown' ? { ...settlement, via: nameOf(facilitator), detail } : settlement;
      }
      const detail = said.join('; ');
      return {
        kind: 'unknown',
        reason: 'facilitator_unavailable',
        sent: false,
        transaction: undefined,
        via: undefined,
        detail,
      };
    },
  };
}

type Conclusion = { readonly settlement: Settlement; readonly result: CallResult; readonly why?: string };

/** What a call that was sent says about the money. */
function conclude(reply: JsonReply, presented: Presented, offer: RailOffer, afterUnknown: boolean): Conclusion {
  const { key } = presented;
  const answer =
    reply.kind === 'reply'
      ? readSettleAnswer(reply.status, reply.body, presented, offer)
      : ({ kind: 'failed', why: reply.why } as const);
  switch (answer.kind) {
    case 'settled':
      return {
        settlement: { kind: 'settled', receipt: settledReceipt(key, offer.atomic, answer.transaction) },
        result: 'ok',
      };
    case 'refused': {
      const { reason, final } = answer;
      if (afterUnknown) return unknown(reason, undefined, 'unknown', `${reason}, after an attempt with an unknown end`);
      const receipt = refusedReceipt(key, offer.atomic, reason);
      return { settlement: { kind: 'refused', reason, final, receipt }, result: 'refused' };
    }
    case 'unknown':
      return unknown(answer.reason, answer.transaction, 'unknown', answer.reason);
    case 'nonsense':
      return unknown('facilitator_answer_invalid', undefined, 'nonsense', answer.why);
    case 'failed':
      return unknown('facilitator_no_answer', undefined, 'failed', answer.why);
    default:
      return answer satisfies never;
  }
}

function unknown(reason: string, transaction: string | undefined, result: CallResult, why: string): Conclusion {
  const settlement = { kind: 'unknown', reason, sent: true, transaction, via: undefined, detail: why } as const;
  return { settlement, result, why };
}

function whomToAsk(facilitators: readonly Facilitator[], via: string | undefined): readonly Facilitator[] {
  if (via === undefined) return facilitators;
  const asked = facilitators.filter((facilitator) => nameOf(facilitator) === via);
  return asked.length > 0 ? asked : facilitators;
}

/** Stands for a facilitator in a ledger row: its URL may hold a secret. */
function nameOf({ url }: Facilitator): string {
  return createHash('sha256').update(url).digest('hex').slice(0, 16);
}
