// A configuration for all workers, in two steps: each of them prepares the same text, and when all have, it is put in force
// everywhere. If one cannot, none does. A worker that does not answer in time is replaced, and starts with what is in force.
import type { Schedule } from '../../host/clock.ts';
import type { Report } from '../../workers/channel.ts';
import type { Member } from '../../workers/member.ts';
import type { Supervisor } from '../../workers/supervisor.ts';

type WorkerReloads = {
  /** Rejects with the sentence of one that cannot. What it resolves with cannot fail. */
  readonly prepare: (given: string) => Promise<() => void>;
  readonly prepared: (member: Member, message: Report & { readonly kind: 'prepared' }) => void;
  readonly died: (member: Member) => void;
};

/** Time that a worker has to prepare a configuration. */
const ANSWER_MS = 5_000;

type Round = {
  readonly reload: number;
  readonly waiting: Set<Member>;
  readonly problems: string[];
  readonly over: () => void;
};

export function createWorkerReloads(
  { members, tell, replace }: Pick<Supervisor, 'members' | 'tell' | 'replace'>,
  schedule: Schedule,
  answerMs = ANSWER_MS,
): WorkerReloads {
  let last = 0;
  let round: Round | undefined;

  const leave = (member: Member): void => {
    if (round?.waiting.delete(member) === true && round.waiting.size === 0) round.over();
  };

  return {
    prepare: async (given) => {
      const reload = ++last;
      const all = Promise.withResolvers<void>();
      const asked = members();
      round = { reload, waiting: new Set(asked), problems: [], over: all.resolve };
      const { waiting, problems } = round;
      for (const member of asked) member.send({ kind: 'prepare', reload, given });
      if (asked.length > 0) {
        const cancel = schedule(answerMs, () => {
          for (const member of waiting) replace(member);
          all.resolve();
        });
        await all.promise;
        cancel();
      }
      round = undefined;
      const [problem] = problems;
      if (problem !== undefined) throw new Error(problem);
      return () => {
        // A worker that started meanwhile was given what was in force then.
        for (const member of members()) if (!asked.includes(member)) member.send({ kind: 'prepare', reload, given });
        tell({ kind: 'commit', reload });
      };
    },
    prepared: (member, { reload, problem }) => {
      if (round?.reload !== reload) return;
      if (problem !== null) round.problems.push(problem);
      leave(member);
    },
    died: leave,
  };
}
