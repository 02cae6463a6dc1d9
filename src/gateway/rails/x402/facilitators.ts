// Asks facilitators: to verify in the order in which they are configured, to settle the one that verified before the
// others. If one cannot say whether a payment is valid, the next one is asked. Settling goes on to the next one only if the
// call was certainly not carried out. Otherwise one lost answer could make two transactions. A malformed answer counts as
// no answer.
import type { RailOffer, Way } from '../../../domain/payment/way.ts';
import type { Facilitator } from '../../../domain/payment/offer.ts';
import {
  createCalls,
  leftAlone,
  type FacilitatorCalls,
  type CallAttempt,
  type CallResult,
  type FacilitatorDeps,
} from './facilitator-calls.ts';
import { createWriteRequest, readSettleAnswer, readVerifyAnswer } from './facilitator-wire.ts';
import type { ChainWords } from './chain-words.ts';
import type { PresentedPayment, Rail, Refusal, Settlement } from '../rail.ts';
import { createHash } from 'node:crypto';
import { LRUCache } from 'lru-cache';

export type Facilitators = Pick<FacilitatorCalls, 'standing' | 'healthOf' | 'revision'> & {
  /** Asks about payments that `chain` has words for. */
  readonly askFor: (chain: ChainWords, options?: SettleOrder) => Pick<Rail, 'verify' | 'settle' | 'firstVia'>;
};

export function createFacilitators(deps: FacilitatorDeps): Facilitators {
  const calls = createCalls(deps);
  return {
    askFor: (chain, options = { settles: 'in_order' }) => createAsking(deps, calls, chain, options),
    revision: calls.revision,
    standing: calls.standing,
    healthOf: calls.healthOf,
  };
}

function createAsking(
  { clock, log, services }: FacilitatorDeps,
  { stateOf, call, shortestRest, note }: FacilitatorCalls,
  chain: ChainWords,
  { settles }: SettleOrder,
): Pick<Rail, 'verify' | 'settle' | 'firstVia'> {
  const facilitatorsOf = (way: Way): readonly Facilitator[] => services(way)?.facilitators ?? [];
  const writeRequest = createWriteRequest(chain);
  // Verifying and settling send the same words, so that what is settled is what was verified.
  const written = new WeakMap<PresentedPayment, { readonly offer: RailOffer; readonly body: string }>();
  const bodyOf = (presented: PresentedPayment, offer: RailOffer): string => {
    const known = written.get(presented);
    if (known !== undefined && known.offer === offer) return known.body;
    const body = writeRequest(presented, offer);
    written.set(presented, { offer, body });
    return body;
  };

  const { judged, mayBeAsked } = createSettlers(facilitatorsOf, settles);

  return {
    verify: async (presented, offer) => {
      const facilitators = facilitatorsOf(offer.way);
      const declined: Refusal[] = [];
      const body = bodyOf(presented, offer);
      const said: string[] = [];
      // Word of the last facilitator, if it is not known here.
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
            judged(presented, facilitator);
            return { kind: 'valid', payer: presented.key.payer };
          case 'refused':
            note('verify', facilitator, since, 'refused');
            // A payment that was used already may be settled all the same, if the ledger knows that it was released.
            judged(presented, facilitator);
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
        // A facilitator that was not asked may take the payment.
        declined: refusalOfAll(declined, facilitatorsOf(offer.way)),
      };
    },

    firstVia: (presented, offer) => {
      const [first] = mayBeAsked(presented, offer, undefined);
      return first && nameOf(first);
    },
  };
}

/** Conclusion from a call. `settlement` undefined: it was not carried out, and the next facilitator may be asked. */
type Conclusion = {
  readonly settlement: Settlement | undefined;
  readonly result: CallResult;
  readonly why?: string;
  readonly declined?: Refusal | undefined;
};

/** Concludes from the end of a call what it says about the money. */
function conclude(
  reply: CallAttempt,
  via: string,
  presented: PresentedPayment,
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

/** The refusal that a payer gets if no facilitator takes such a payment. */
function refusalOfAll(declined: readonly Refusal[], facilitators: readonly Facilitator[]): Refusal | undefined {
  return declined.length === facilitators.length ? declined[0] : undefined;
}

// Orders the facilitators that may be asked to settle a payment: first the one that was asked to settle it before,
// because no other may remember that attempt; else the one that judged it. Only this process remembers which one that
// was. The charge holds what a restart has to know.

/** Order of settling. `who_verified`: only the facilitator that verified it, if it is known which one did. */
type SettleOrder = { readonly settles: 'in_order' | 'who_verified' };

/** Number of payments whose judge is remembered. */
const JUDGES = 10_000;

type Settlers = {
  /** Remembers who gave a verdict on a payment. */
  readonly judged: (presented: PresentedPayment, by: Facilitator) => void;
  /** Lists the facilitators that may be asked. `via` is the one that was asked first before. */
  readonly mayBeAsked: (
    presented: PresentedPayment,
    offer: RailOffer,
    via: string | undefined,
  ) => readonly Facilitator[];
};

function createSettlers(
  facilitatorsOf: (way: Way) => readonly Facilitator[],
  settles: SettleOrder['settles'],
): Settlers {
  const judges = new LRUCache<string, string>({ maxSize: JUDGES, sizeCalculation: () => 1 });
  return {
    judged: ({ key }, by) => void judges.set(nameOfPayment(key), nameOf(by)),
    mayBeAsked: ({ key }, { way }, via) => {
      const facilitators = facilitatorsOf(way);
      const first = via ?? judges.get(nameOfPayment(key));
      if (first === undefined) return facilitators;
      const isFirst = (facilitator: Facilitator): boolean => nameOf(facilitator) === first;
      const asked = facilitators.filter(isFirst);
      return settles === 'who_verified' ? asked : [...asked, ...facilitators.filter((each) => !isFirst(each))];
    },
  };
}

function nameOfPayment({ network, asset, payer, unique }: PresentedPayment['key']): string {
  return `${network} ${asset} ${payer} ${unique}`;
}

/** Stands for a facilitator in a ledger row: its URL may hold a secret. */
function nameOf({ url, account }: Facilitator): string {
  const name = account === undefined ? url : `${url} ${account}`;
  return createHash('sha256').update(name).digest('hex').slice(0, 16);
}
