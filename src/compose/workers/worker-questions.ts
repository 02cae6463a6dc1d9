// A question to all workers, and the answers that come in time: some facts only workers know, and only they write a 402.
import type { Schedule } from '../../host/clock.ts';
import type { Report } from '../../workers/channel.ts';
import type { Member } from '../../workers/member.ts';
import type { Supervisor } from '../../workers/supervisor.ts';

/** `trial`: what is answered to a request without a payment that comes to `origin`. */
export type WorkerQuestion =
  | { readonly kind: 'refusals'; readonly id: string }
  | { readonly kind: 'trial'; readonly method: string; readonly path: string; readonly origin: string }
  | { readonly kind: 'healths' };

type WorkerQuestions = {
  /** Asks the workers; never rejects. */
  readonly ask: (question: WorkerQuestion) => Promise<readonly string[]>;
  /** The answer of the worker that is quickest; undefined if none comes in time. */
  readonly askAny: (question: WorkerQuestion) => Promise<string | undefined>;
  readonly answered: (member: Member, message: Report & { readonly kind: 'answer' }) => void;
  readonly died: (member: Member) => void;
};

const ANSWER_MS = 1_000;

type Round = {
  readonly waiting: Set<Member>;
  readonly answers: string[];
  /** Number of answers that are enough. */
  readonly enough: number;
  readonly over: () => void;
};

export function createAsking({ members }: Pick<Supervisor, 'members'>, schedule: Schedule): WorkerQuestions {
  const rounds = new Map<number, Round>();
  let last = 0;

  const leave = ({ waiting, answers, enough, over }: Round, member: Member): void => {
    if (waiting.delete(member) && (waiting.size === 0 || answers.length >= enough)) over();
  };

  const askFor = async (asked: WorkerQuestion, enough: number): Promise<readonly string[]> => {
    const ask = ++last;
    const question = JSON.stringify(asked);
    const over = Promise.withResolvers<void>();
    const waiting = new Set(members().filter(({ life }) => life !== 'starting'));
    if (waiting.size === 0) return [];
    const round: Round = { waiting, answers: [], enough, over: over.resolve };
    rounds.set(ask, round);
    for (const member of waiting) member.send({ kind: 'ask', ask, question });
    const cancel = schedule(ANSWER_MS, over.resolve);
    await over.promise;
    cancel();
    rounds.delete(ask);
    return round.answers;
  };

  return {
    ask: (question) => askFor(question, Infinity),
    askAny: async (question) => (await askFor(question, 1))[0],
    answered: (member, { ask, answer }) => {
      const round = rounds.get(ask);
      if (round?.waiting.has(member) !== true) return;
      round.answers.push(answer);
      leave(round, member);
    },
    died: (member) => {
      for (const round of rounds.values()) leave(round, member);
    },
  };
}
