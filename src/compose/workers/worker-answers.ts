// A worker's answers to the questions of its primary, from what it alone knows, and what the primary makes of them.
import { z } from 'zod';
import { explainMatch } from '../../domain/explanation.ts';
import { joinHealth, UNASKED, type FacilitatorHealths } from '../../domain/payment/service-health.ts';
import type { Config } from '../../config/config.ts';
import { makeOffer } from '../../domain/payment/offer.ts';
import type { CurrentSnapshot } from '../../gateway/routes/current-snapshot.ts';
import type { Trial, TrialOutcome } from '../../registry/trying/trial.ts';
import type { Clock } from '../../host/clock.ts';
import { matchRules, receiversById } from '../part.ts';
import type { OwnTrial } from '../trial.ts';
import type { RefusalFinder } from '../why.ts';
import type { WorkerQuestion } from './worker-questions.ts';

type WorkerFacts = {
  readonly findRefusals: RefusalFinder;
  readonly healths: () => FacilitatorHealths;
  readonly trial: (origin: string) => OwnTrial;
  readonly current: Pick<CurrentSnapshot, 'snapshot'>;
  readonly clock: Pick<Clock, 'now'>;
  readonly config: () => Config;
};

/** Answers `text`, which `WorkerQuestion` describes, as JSON. */
export async function answerPrimary(text: string, facts: WorkerFacts): Promise<string> {
  const question = readQuestion(text);
  switch (question.kind) {
    case 'refusals':
      return JSON.stringify(await facts.findRefusals(question.id));
    case 'healths':
      return JSON.stringify(facts.healths());
    case 'trial':
      return JSON.stringify(tryHere(question, facts));
    default:
      return question satisfies never;
  }
}

/** Reads what a primary of the same program wrote. */
function readQuestion(text: string): WorkerQuestion {
  return JSON.parse(text) as WorkerQuestion;
}

function tryHere(
  { method, path, origin }: TrialQuestion,
  { trial, current, clock, config }: WorkerFacts,
): TrialOutcome {
  const { snapshot } = current;
  if (snapshot === undefined) return { kind: 'silent' };
  const { offer, answer } = trial(origin);
  const { verdict } = explainMatch(snapshot, { method, path, rules: matchRules(config()), nowMs: clock.now(), offer });
  return 'code' in verdict ? { kind: 'forwarded' } : answer(verdict, { method, path });
}

type TrialQuestion = WorkerQuestion & { readonly kind: 'trial' };
type AskAny = (question: WorkerQuestion) => Promise<string | undefined>;

const outcome: z.ZodType<TrialOutcome> = z.discriminatedUnion('kind', [
  z.object({
    kind: z.literal('answer'),
    answer: z.object({ status: z.int(), headers: z.array(z.string()), body: z.string() }),
  }),
  z.object({ kind: z.enum(['forwarded', 'silent']) }),
]);

/** A trial whose answers workers write: they know which facilitators rest, and what the networks ask for. */
export function createWorkersTrial(config: Pick<Config, 'receivers'>, origin: string, askAny: AskAny): Trial {
  const receivers = receiversById(config);
  return {
    origin,
    offer: (route) => makeOffer(route, receivers),
    answer: async (verdict, { method, path }) => {
      if (verdict.kind === 'pass' || verdict.kind === 'sell') return { kind: 'forwarded' };
      const told = await askAny({ kind: 'trial', method, path, origin });
      return told === undefined ? { kind: 'silent' } : outcome.parse(JSON.parse(told));
    },
  };
}

/** The health of facilitators by what each of several workers told. */
export function joinHealths(told: readonly string[]): FacilitatorHealths {
  const all = told.map((text) => JSON.parse(text) as FacilitatorHealths);
  const keys = new Set(all.flatMap((healths) => Object.keys(healths)));
  return Object.fromEntries([...keys].map((key) => [key, joinHealth(all.map((healths) => healths[key] ?? UNASKED))]));
}
