// Makes one step of the machine that keeps a sidecar's routes in step with its registry: a state and an input give the
// next state and what is to be done. Pure: time and chance come with the input, and sync.ts performs the effects.
import { nudge, poll, startStream } from './calls.ts';
import { pollAnswered, pollCompiled, pollFailed } from './polls.ts';
import { takeStored } from './set-in-force.ts';
import type { Effect, Input, Moment, SyncState } from './state.ts';
import { changeCompiled, eventCame, setProven, streamDue, streamEnded, streamOpened } from './stream.ts';
import { draftOf, resultOf, type StepDraft } from './step-draft.ts';

export function step(state: SyncState, input: Input, moment: Moment): [SyncState, readonly Effect[]] {
  const draft = draftOf(state, moment);
  move(draft, input);
  return resultOf(draft);
}

function move(draft: StepDraft, input: Input): void {
  switch (input.kind) {
    case 'started':
      if (input.stored === undefined) start(draft);
      else draft.effects.push({ kind: 'compile_stored', stored: input.stored });
      return;
    case 'stored_compiled':
      takeStored(draft, input.stored, input.taken);
      start(draft);
      return;
    case 'nudged':
      nudge(draft);
      return;
    case 'poll_due':
      poll(draft);
      return;
    case 'polled':
      pollAnswered(draft, input.found);
      return;
    case 'poll_failed':
      pollFailed(draft, input.error);
      return;
    case 'set_compiled':
      pollCompiled(draft, input.set, input.waited, input.taken);
      return;
    case 'stream_due':
      streamDue(draft);
      return;
    case 'stream_opened':
      streamOpened(draft, input.id, input.opened);
      return;
    case 'event':
      eventCame(draft, input.id, input.event);
      return;
    case 'change_compiled':
      changeCompiled(draft, input.revision, input.taken);
      return;
    case 'proven':
      setProven(draft, input.head, input.proof);
      return;
    case 'stream_ended':
      streamEnded(draft, input.id, input.error);
      return;
    default:
      input satisfies never;
  }
}

function start(draft: StepDraft): void {
  startStream(draft);
  poll(draft);
}
