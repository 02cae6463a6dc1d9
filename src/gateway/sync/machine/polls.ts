// Polls: what the registry answered to one, and what follows from that for the stream and for the next poll.
import type { FetchResult, FoundSet, SetName } from '../follow/route-source.ts';
import type { CompileResult } from '../../routes/snapshot-compiler.ts';
import { planPoll, reconnect, startStream, takeWhole } from './calls.ts';
import { judge, takeCompiled } from './set-in-force.ts';
import type { PollResult } from './state.ts';
import { tell, type StepDraft } from './step-draft.ts';

/** Milliseconds for which a stream may tell nothing of a change that polls know of. */
const STREAM_LAG_MS = 10_000;

export function pollAnswered(draft: StepDraft, found: FetchResult): void {
  const wasAway = draft.set.away;
  if (found.kind === 'named') {
    const result = judgeName(draft, found);
    endPoll(draft, { result, wasAway, isWhole: false });
    return;
  }
  const result = judge(draft, found);
  if (result === undefined) return;
  const retryAfterMs = found.kind === 'unavailable' ? found.retryAfterMs : undefined;
  endPoll(draft, { result, wasAway, isWhole: true, retryAfterMs });
}

/** The set that a poll found was compiled. */
export function pollCompiled(draft: StepDraft, set: FoundSet, waited: boolean, taken: CompileResult): void {
  const wasAway = draft.set.away;
  endPoll(draft, { result: takeCompiled(draft, set, waited, taken), wasAway, isWhole: true });
}

/** A defect of ours: the routes stay, and so does the polling. */
export function pollFailed(draft: StepDraft, error: unknown): void {
  tell(draft, 'error', 'a poll of the registry failed', { error });
  draft.polls.failures++;
  draft.polls.flight = undefined;
  planPoll(draft);
}

type EndedPoll = {
  /** Result of the poll; undefined: an answer, and no word yet on the set in force. */
  readonly result: PollResult | undefined;
  readonly wasAway: boolean;
  /** The answer speaks of a whole set and not of its name alone. */
  readonly isWhole: boolean;
  readonly retryAfterMs?: number | undefined;
};

function endPoll(draft: StepDraft, { result, wasAway, isWhole, retryAfterMs }: EndedPoll): void {
  const { moment, set, polls, stream, effects } = draft;
  const { flight } = polls;
  if (result !== undefined) effects.push({ kind: 'count', result });
  polls.failures = set.away || result === 'unauthorized' ? polls.failures + 1 : 0;
  polls.flight = undefined;
  if (flight !== undefined) polls.last = { endedMs: moment.monotonicMs, tookMs: moment.monotonicMs - flight.startedMs };
  if (result === 'updated' || (result === 'unchanged' && isWhole)) {
    if (flight?.want === 'anew') stream.isUnproven = true;
    polls.whole = undefined;
    startStream(draft);
  }
  if (wasAway && !set.away) reconnect(draft);
  planPoll(draft, retryAfterMs);
}

/** The registry told only which set it has. */
function judgeName(draft: StepDraft, name: SetName): PollResult | undefined {
  draft.set.away = false;
  const comparison = compareName(draft, name);
  switch (comparison) {
    case 'same':
      return judge(draft, { kind: 'unchanged' });
    case 'gap':
      reconnect(draft);
      return undefined;
    case 'differs':
      takeWhole(draft, 'changed');
      return undefined;
    default:
      return comparison satisfies never;
  }
}

function compareName(
  { set, polls, stream, moment }: StepDraft,
  { registryId, revision }: SetName,
): 'same' | 'gap' | 'differs' {
  const known = set.good?.set;
  if (known?.revision === undefined || registryId !== known.registryId || revision === undefined) return 'differs';
  if (revision < (polls.flight?.asked ?? 0)) return 'differs';
  if (revision <= known.revision) return 'same';
  // The stream tells it, or will; one that has told nothing for a while does not.
  if (stream.ahead?.of !== known.revision) stream.ahead = { of: known.revision, sinceMs: moment.monotonicMs };
  return moment.monotonicMs - stream.ahead.sinceMs >= STREAM_LAG_MS ? 'differs' : 'gap';
}
