// The calls of the registry: when it is asked next and for what, and when its stream is opened, left or waited for.
import { backOffMs, eventWaitMs, pollWaitMs } from '../follow/poll-schedule.ts';
import type { StepDraft } from './step-draft.ts';

const FIRST_STREAM_WAIT_MS = 500;
const LONGEST_STREAM_WAIT_MS = 60_000;

/** Asks the registry now, or once more when the poll that runs is over. */
export function nudge(draft: StepDraft): void {
  const { polls } = draft;
  if (polls.isRung) return;
  polls.isRung = true;
  // A poll that runs may have read the state before the one we hear of: it is followed by another.
  if (polls.flight === undefined) planPoll(draft);
}

/** Plans the next poll. `retryAfterMs`: how long the registry asks to be left alone. */
export function planPoll({ options, moment, set, polls, effects }: StepDraft, retryAfterMs = 0): void {
  const { pollIntervalMs } = options;
  const { failures, isRung, last } = polls;
  const waitMs = isRung
    ? eventWaitMs({ ms: last.tookMs, endedMs: moment.monotonicMs - last.endedMs })
    : pollWaitMs({ pollIntervalMs, failures, hasRoutes: set.good !== undefined }, moment.chance);
  effects.push({ kind: 'poll_in', ms: Math.max(isRung ? 0 : retryAfterMs, waitMs) });
}

/** Sends a poll, unless one runs. Beside a stream it asks only which set there is. */
export function poll({ moment, set, polls, stream, effects }: StepDraft): void {
  if (polls.flight !== undefined) return;
  const { place } = stream;
  const isFollowing = place.at === 'waiting' ? place.expected : place.at !== 'stopped';
  const want = polls.whole ?? (isFollowing ? 'name' : 'changed');
  const known = set.good?.set;
  polls.isRung = false;
  polls.lastWant = want;
  polls.flight = { want, asked: known?.revision, startedMs: moment.monotonicMs };
  effects.push({ kind: 'fetch', request: { known, want } });
}

/** Has the whole set taken before anything is followed again. */
export function takeWhole(draft: StepDraft, want: 'changed' | 'anew'): void {
  draft.polls.whole = want;
  leaveStream(draft);
  nudge(draft);
}

/** Follows the set in force if it can be followed and nothing is under way. */
export function startStream(draft: StepDraft): void {
  if (draft.stream.place.at === 'stopped') openStream(draft);
}

export function openStream({ set, stream, effects }: StepDraft): void {
  const { registryId, revision } = set.good?.set ?? {};
  if (registryId === undefined || revision === undefined) {
    stream.place = { at: 'stopped' };
    return;
  }
  const id = ++stream.opened;
  stream.place = { at: 'opening', id };
  effects.push({ kind: 'open_stream', id, after: { registryId, revision } });
}

/** Opens a stream that is waited for at once: the registry is there again. */
export function reconnect(draft: StepDraft): void {
  const { stream } = draft;
  if (stream.place.at !== 'waiting' || stream.failures === 0) return;
  stream.failures = 0;
  leaveStream(draft);
  openStream(draft);
}

/** Leaves the stream until `startStream`. */
function leaveStream({ stream, effects }: StepDraft): void {
  if (stream.place.at === 'stopped') return;
  stream.place = { at: 'stopped' };
  effects.push({ kind: 'end_stream' });
}

/** Waits for a stream. If none is `expected`, polls fetch the set meanwhile. */
export function waitForStream(draft: StepDraft, waitMs: number, { expected }: { readonly expected: boolean }): void {
  const { polls, stream, effects } = draft;
  effects.push({ kind: 'end_stream' }, { kind: 'open_stream_in', ms: waitMs });
  stream.place = { at: 'waiting', expected };
  if (!expected && polls.lastWant === 'name') nudge(draft);
}

/** Notes a failure of the stream; gives how long to wait after it. */
export function streamBackOffMs({ stream, moment }: StepDraft): number {
  stream.failures++;
  return backOffMs(stream.failures, FIRST_STREAM_WAIT_MS, LONGEST_STREAM_WAIT_MS, moment.chance);
}
