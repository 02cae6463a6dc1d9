// A question to all workers, and the answers that come in time: some facts only workers know.
import type { Schedule } from '../../host/clock.ts';
import type { Report } from '../../workers/channel.ts';
import type { Member } from '../../workers/member.ts';
import type { Supervisor } from '../../workers/supervisor.ts';

type WorkerQuestions = {
  /** Asks the workers; never rejects. */
  readonly ask: (question: string) => Promise<readonly string[]>;
  readonly answered: (member: Member, message: Report & { readonly kind: 'answer' }) => void;
  readonly died: (member: Member) => void;
};

const ANSWER_MS = 1_000;

type Round = { readonly waiting: Set<Member>; readonly answers: string[]; readonly over: () => void };

export function createAsking({ members }: Pick<Supervisor, 'members'>, schedule: Schedule): WorkerQuestions {
  const rounds = new Map<number, Round>();
  let last = 0;

  const leave = ({ waiting, over }: Round, member: Member): void => {
    if (waiting.delete(member) && waiting.size === 0) over();
  };

  return {
    ask: async (question) => {
      const ask = ++last;
      const all = Promise.withResolvers<void>();
      const round: Round = {
        waiting: new Set(members().filter(({ life }) => life !== 'starting')),
        answers: [],
        over: all.resolve,
      };
      if (round.waiting.size === 0) return [];
      rounds.set(ask, round);
      for (const member of round.waiting) member.send({ kind: 'ask', ask, question });
      const cancel = schedule(ANSWER_MS, all.resolve);
      await all.promise;
      cancel();
      rounds.delete(ask);
      return round.answers;
    },
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
