// Polls: what the registry answered to one, and what follows from that for the stream and for the next poll.
import type { FetchResult, FoundSet, SetName } from '../follow/route-source.ts';
import type { Taken } from '../../routes/snapshot-compiler.ts';
import { planPoll, reconnect, startStream, takeWhole } from './calls.ts';
import { judge, takeCompiled } from './set-in-force.ts';
import type { PollResult } from './state.ts';
import { tell, type Turn } from './turn.ts';

/** How long a stream may tell nothing of a change that polls know of. */
const STREAM_LAG_MS = 10_000;

export function pollAnswered(turn: Turn, found: FetchResult): void {
  const wasAway = turn.set.away;
  if (found.kind === 'named') {
    const result = judgeName(turn, found);
    endPoll(turn, { result, wasAway, isWhole: false });
    return;
  }
  const result = judge(turn, found);
  if (result === undefined) return;
  const retryAfterMs = found.kind === 'unavailable' ? found.retryAfterMs : undefined;
  endPoll(turn, { result, wasAway, isWhole: true, retryAfterMs });
}

/** The set that a poll found was compiled. */
export function pollCompiled(turn: Turn, set: FoundSet, waited: boolean, taken: Taken): void {
  const wasAway = turn.set.away;
  endPoll(turn, { result: takeCompiled(turn, set, waited, taken), wasAway, isWhole: true });
}

/** A defect of ours: the routes stay, and so does the polling. */
export function pollFailed(turn: Turn, error: unknown): void {
  tell(turn, 'error', 'a poll of the registry failed', { error });
  turn.polls.failures++;
  turn.polls.flight = undefined;
  planPoll(turn);
}

type EndedPoll = {
  /** Undefined: an answer, and no word yet on the set in force. */
  readonly result: PollResult | undefined;
  readonly wasAway: boolean;
  /** The answer speaks of a whole set and not of its name alone. */
  readonly isWhole: boolean;
  readonly retryAfterMs?: number | undefined;
};

function endPoll(turn: Turn, { result, wasAway, isWhole, retryAfterMs }: EndedPoll): void {
  const { moment, set, polls, stream, effects } = turn;
  const { flight } = polls;
  if (result !== undefined) effects.push({ kind: 'count', result });
  polls.failures = set.away || result === 'unauthorized' ? polls.failures + 1 : 0;
  polls.flight = undefined;
  if (flight !== undefined) polls.last = { endedMs: moment.monotonicMs, tookMs: moment.monotonicMs - flight.startedMs };
  if (result === 'updated' || (result === 'unchanged' && isWhole)) {
    if (flight?.want === 'anew') stream.isUnproven = true;
    polls.whole = undefined;
    startStream(turn);
  }
  if (wasAway && !set.away) reconnect(turn);
  planPoll(turn, retryAfterMs);
}

/** The registry told only which set it has. */
function judgeName(turn: Turn, name: SetName): PollResult | undefined {
  turn.set.away = false;
  const comparison = compareName(turn, name);
  switch (comparison) {
    case 'same':
      return judge(turn, { kind: 'unchanged' });
    case 'gap':
      reconnect(turn);
      return undefined;
    case 'differs':
      takeWhole(turn, 'changed');
      return undefined;
    default:
      return comparison satisfies never;
  }
}

function compareName(
  { set, polls, stream, moment }: Turn,
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
