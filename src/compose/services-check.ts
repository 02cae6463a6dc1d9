// The services that a proxy needs elsewhere (facilitators, nodes, the upstream), asked once in the background at every
// start and reload. What is wrong is one warning each and stands in /readyz?verbose until it is mended. Nothing waits for
// it. Whether it is mended is learnt when /readyz is asked: then what was wrong, and nothing else, is asked again in the
// background, at most every 10 s and ever more seldom, up to 5 minutes. A process that nobody asks, asks nobody.
import type { Config } from '../config/config.ts';
import type { AttentionFinding } from '../domain/attention/attention.ts';
import { judgeService } from '../domain/attention/judgements.ts';
import type { Receiver } from '../domain/payment/offer.ts';
import {
  findServiceFaults,
  startQuestions,
  type ServiceAnswer,
  type ServiceFault,
  type ServiceQuestions,
  type StartCheckDeps,
} from '../gateway/rails/start-check.ts';
import type { Check } from '../host/admin.ts';
import { messageOf } from '../host/error-message.ts';
import type { Log } from '../host/log.ts';
import { reachUpstream } from './upstream-check.ts';

/** What a service answered last, and since when it answers so, in milliseconds since the epoch. */
export type KnownAnswer = { readonly answer: ServiceAnswer; readonly sinceMs: number };

export type ServicesCheck = {
  readonly check: Check;
  /** What is known by the name of its question. Asks everything again in the background if that was long ago. */
  readonly look: () => ReadonlyMap<string, KnownAnswer>;
  /** Asks everything; resolves when all have answered. */
  readonly ask: () => Promise<void>;
  /** What needs somebody. */
  readonly findings: () => readonly AttentionFinding[];
  readonly close: () => void;
};

type ServicesDeps = StartCheckDeps & { readonly log: Log };

const FIRST_AGAIN_MS = 10_000;
const LONGEST_AGAIN_MS = 300_000;
/** Answers that are older are asked for again when somebody looks. */
const OLD_MS = 60_000;

/** Checks the services. `config` gives the one in force. */
export function checkServices(
  config: () => Pick<Config, 'receivers' | 'proxy' | 'x402'>,
  deps: ServicesDeps,
): ServicesCheck {
  const { log, clock } = deps;
  let answers = new Map<string, ServiceAnswer>();
  let known: ReadonlyMap<string, KnownAnswer> = new Map();
  let faults: readonly ServiceFault[] = [];
  /** Sentences of faults that were warned of and are not mended. */
  const told = new Set<string>();
  let askedAt: number | undefined;
  let lookedAt = -Infinity;
  let againMs = FIRST_AGAIN_MS;
  let againAt = Infinity;
  let closed = false;
  /** Counts rounds: the answers of one that a later one overtook say nothing. */
  let round = 0;

  const askThese = async (questions: ServiceQuestions, kept: ReadonlyMap<string, ServiceAnswer>): Promise<void> => {
    const own = ++round;
    againAt = Infinity;
    const learned = new Map(kept);
    const find = (): readonly ServiceFault[] => findServiceFaults(config().receivers, learned, config().x402.v1);
    await Promise.all(
      [...questions].map(async ([name, question]) => {
        learned.set(name, await question().catch(toFault));
        // A fault is told as it comes, and what is mended when all have answered.
        if (!closed && own === round) tell(find());
      }),
    );
    if (closed || own !== round) return;
    answers = learned;
    askedAt = clock.now();
    known = sinceWhen(learned, known, askedAt);
    againAt = clock.monotonic() + againMs;
    faults = find();
    for (const sentence of told) {
      if (faults.some((fault) => fault.sentence === sentence)) continue;
      told.delete(sentence);
      log.info('mended', { what: sentence });
    }
  };

  const tell = (found: readonly ServiceFault[]): void => {
    for (const fault of found) {
      if (told.has(fault.sentence)) continue;
      told.add(fault.sentence);
      faults = [...faults, fault];
      log.warn(fault.sentence);
    }
  };

  const ask = (): Promise<void> => {
    againMs = FIRST_AGAIN_MS;
    return askThese(questionsOf(config(), deps), new Map());
  };

  const askAgain = (): void => {
    if (faults.length === 0 || clock.monotonic() < againAt) return;
    const wrong = new Set(faults.flatMap(({ questions }) => questions));
    againMs = Math.min(againMs * 2, LONGEST_AGAIN_MS);
    const questions = new Map([...questionsOf(config(), deps)].filter(([name]) => wrong.has(name)));
    void askThese(questions, answers);
  };

  return {
    ask,
    look: () => {
      const now = clock.now();
      if (askedAt !== undefined && now - Math.max(askedAt, lookedAt) > OLD_MS) {
        lookedAt = now;
        void ask();
      }
      return known;
    },
    findings: () =>
      faults.filter(({ sentence }) => told.has(sentence)).flatMap(({ sentence, of }) => judgeService(sentence, of)),
    close: () => {
      closed = true;
    },
    check: {
      name: 'services',
      run: () => {
        askAgain();
        const at = askedAt === undefined ? undefined : new Date(askedAt).toISOString();
        if (told.size > 0) {
          const when = at === undefined ? '' : ` (asked at ${at})`;
          return { ok: false, isTolerated: true, detail: `${[...told].join('; ')}${when}` };
        }
        const all = 'facilitators, nodes and upstream';
        return {
          ok: true,
          detail: at === undefined ? `${all} have not all answered yet` : `${all} were as they should be at ${at}`,
        };
      },
    },
  };
}

/** A service that answers as it did before has done so since then. */
function sinceWhen(
  answers: ReadonlyMap<string, ServiceAnswer>,
  before: ReadonlyMap<string, KnownAnswer>,
  nowMs: number,
): ReadonlyMap<string, KnownAnswer> {
  const known = [...answers].map(([name, answer]): [string, KnownAnswer] => {
    const earlier = before.get(name);
    const sinceMs = earlier?.answer.kind === answer.kind ? earlier.sinceMs : nowMs;
    return [name, { answer, sinceMs }];
  });
  return new Map(known);
}

function questionsOf(
  { receivers, proxy }: { readonly receivers: readonly Receiver[]; readonly proxy: Config['proxy'] },
  deps: StartCheckDeps,
): ServiceQuestions {
  const questions = new Map(startQuestions(receivers, deps));
  if (proxy !== undefined) questions.set(`upstream ${proxy.upstream.origin}`, () => askUpstream(proxy));
  return questions;
}

async function askUpstream(proxy: NonNullable<Config['proxy']>): Promise<ServiceAnswer> {
  const sentence = await reachUpstream(proxy);
  if (sentence === undefined) return { kind: 'fine' };
  return { kind: 'fault', sentence: `${sentence}; requests are answered 502 until it does` };
}

function toFault(error: unknown): ServiceAnswer {
  return { kind: 'fault', sentence: `a service could not be asked: ${messageOf(error)}` };
}
