// A model of what decision-handler.ts does with a question: those who ask the same at once are judged once, an allow counts as
// delivered when it was handed over, and there is an answer in time. Payments and reports are the real ones.
import { hash } from 'node:crypto';
import type { End, Outcome, RequestFacts, ResponseOutcome } from '../../../src/gateway/outcome.ts';
import type { Paywall } from '../../../src/gateway/paywall.ts';
import type { TakeReport } from '../../../src/gateway/decision/failure-report.ts';
import type { PaymentKey } from '../../../src/domain/payment/charge.ts';
import type { Offer } from '../../../src/domain/payment/offer.ts';
import type { Actor, Scheduler } from './scheduler.ts';
import type { Watch } from './watch.ts';
import type { Weather } from './weather.ts';

export const DIALECT = 'haproxy';
export type Question = {
  readonly method: string;
  readonly target: string;
  readonly credential: string | undefined;
  readonly key: PaymentKey | undefined;
  /** Name that the front made for its client's request; undefined: it names none. */
  readonly requestId: string | undefined;
  /** The client's request, by the simulation's own count. */
  readonly request: number;
};

/** The connection of one question. */
export type Asking = {
  /** Who asked is gone. */
  gone: boolean;
  reply: (decided: Decided) => void;
};

export type Decided =
  | { readonly kind: 'allow'; readonly chargeId: string }
  | {
      readonly kind: 'answer';
      readonly status: number;
      readonly reason: string | undefined;
      readonly chargeId: string | undefined;
      readonly retrySeconds: number;
    }
  | { readonly kind: 'broken' };

export type Decision = {
  readonly ask: (question: Question, asking: Asking) => Promise<void>;
  /** Says that the upstream gave no usable answer to what was allowed. */
  readonly report: (about: Pick<Question, 'method' | 'target'> & { readonly chargeId: string }) => Promise<void>;
};

type DecisionDeps = {
  readonly scheduler: Scheduler;
  readonly weather: Weather;
  readonly watch: Watch;
  readonly actor: Actor;
  readonly offer: Offer;
  readonly now: () => number;
  readonly perform: Paywall['perform'];
  readonly takeReport: TakeReport;
  /** Runs what is done for one question. */
  readonly within: <T>(task: () => T) => T;
  /** Looks at an answer of ours before it is given. */
  readonly seen: (key: PaymentKey | undefined, status: number, reason: string | undefined) => void;
};

/** Shorter than a lease and two calls that take long. */
const ANSWER_WITHIN_MS = 25_000;
const REPEAT_WINDOW_MS = 60_000;
const LATE: Said = { response: { status: 503, headers: [], body: '' }, reason: 'late', chargeId: undefined };
const HANDED_OVER: End = { kind: 'delivered', status: 200, upstreamMs: 0, kept: undefined };

/** An answer that is no allow. */
type Said = Pick<ResponseOutcome, 'response' | 'reason' | 'chargeId'>;
type Asked = Pick<Question, 'request' | 'key'> & {
  readonly asking: Asking;
  isAnswered: boolean;
  stopTimer: () => void;
};
type Judged = { readonly asked: Asked[]; state: (() => ResponseOutcome) | undefined };

const isGone = ({ asking, isAnswered }: Asked): boolean => asking.gone || isAnswered;

/** The decision listener of one process. */
export function createDecision(deps: DecisionDeps): Decision {
  const { scheduler, weather, watch, actor, offer, now, perform, takeReport, within, seen } = deps;
  const judging = new Map<string, Judged>();

  const give = async (asked: Asked, decided: Decided, label: string): Promise<boolean> => {
    asked.isAnswered = true;
    asked.stopTimer();
    await scheduler.point(actor, label, weather.delay());
    if (asked.asking.gone) return false;
    if (decided.kind === 'allow') watch.allowed(decided.chargeId, asked.request);
    asked.asking.reply(decided);
    await scheduler.point(actor, `handed over: ${label}`);
    return true;
  };
  const say = (asked: Asked, said: Said): Promise<boolean> => {
    const { status, headers } = said.response;
    const at = headers.indexOf('Retry-After');
    const retrySeconds = at < 0 ? 0 : Number(headers[at + 1]);
    seen(asked.key, status, said.reason);
    const { reason, chargeId } = said;
    return give(asked, { kind: 'answer', status, reason, chargeId, retrySeconds }, `answers ${status}`);
  };
  const watchTime = (asked: Asked, judged: Judged): void => {
    asked.stopTimer = scheduler.timer(actor, 'has to answer', ANSWER_WITHIN_MS, () => {
      if (!isGone(asked)) void say(asked, judged.state?.() ?? LATE);
    });
  };

  const conclude = async ({ asked }: Judged, outcome: Outcome): Promise<void> => {
    const waiting = asked.filter((each) => !isGone(each));
    if (outcome.kind === 'gone' || outcome.kind === 'granted') return;
    if (outcome.kind === 'response') {
      await Promise.all(waiting.map((each) => say(each, outcome)));
      return;
    }
    const { paid } = outcome;
    const { id } = paid.grant;
    const verdict = await paid.beforeResponse({ status: 200, headers: [] });
    const left = asked.filter((each) => !isGone(each));
    if (verdict.kind === 'replace') {
      paid.done({ kind: 'not_sent' });
      const said = { response: verdict.response, reason: 'replaced', chargeId: id };
      await Promise.all(left.map((each) => say(each, said)));
      return;
    }
    const allow: Decided = { kind: 'allow', chargeId: id };
    // The first one decides at once.
    const handed = left.map(async (each) => {
      if (!(await give(each, allow, `allows ${id.slice(-4)}`))) throw new Error('not whole');
    });
    await Promise.any(handed).then(
      () => paid.done(HANDED_OVER),
      () => paid.done({ kind: 'not_sent' }),
    );
  };

  return {
    ask: ({ method, target, credential, key, requestId, request }, asking) =>
      within(async () => {
        const asked: Asked = { asking, request, key, isAnswered: false, stopTimer: () => undefined };
        const name = requestId === undefined ? undefined : `${requestId} ${method} ${target} ${credential ?? ''}`;
        const running = name === undefined ? undefined : judging.get(name);
        if (running !== undefined) {
          running.asked.push(asked);
          return watchTime(asked, running);
        }
        const judged: Judged = { asked: [asked], state: undefined };
        const askSha256 = requestId === undefined ? null : hash('sha256', requestId);
        const facts: RequestFacts = {
          ...{ requestId: 'question', method, path: target, target, publicOrigin: 'http://api', origin: undefined },
          ...{ nowMs: now(), conditionalWrite: false, customerTrusted: false },
          asker: { dialect: DIALECT, askSha256, repeatWindowMs: REPEAT_WINDOW_MS },
          left: () => judged.asked.every(isGone),
          notePayer: () => undefined,
          noteCharge: (state) => {
            judged.state = state;
          },
          asksForPage: () => false,
          connect: async () => undefined,
        };
        const caller = { customerId: undefined, credential: undefined };
        if (name !== undefined && credential !== undefined) judging.set(name, judged);
        if (credential !== undefined) watchTime(asked, judged);
        const outcome = await perform(
          credential === undefined
            ? { kind: 'demand', offer, caller, because: 'payment_required' }
            : { kind: 'verify', route: offer.route, offer, caller, credential: { version: 2, value: credential } },
          facts,
        );
        if (name !== undefined) judging.delete(name);
        await conclude(judged, outcome);
      }),
    report: async ({ method, target, chargeId }) => {
      const told = await takeReport({ dialect: DIALECT, method, target, chargeId });
      scheduler.say(`${actor.name}: a report about ${chargeId.slice(-4)} is ${told.isAccepted ? 'taken' : 'refused'}`);
      if (!told.isAccepted) watch.refusedReport(chargeId);
    },
  };
}
