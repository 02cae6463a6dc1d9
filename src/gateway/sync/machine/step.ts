// One step of the machine that keeps a sidecar's routes in step with its registry: a state and an input give the next state
// and what is to be done. Pure: time and chance come with the input, and sync.ts performs the effects.
import { nudge, poll, startStream } from './calls.ts';
import { pollAnswered, pollCompiled, pollFailed } from './polls.ts';
import { takeStored } from './set-in-force.ts';
import type { Effect, Input, Moment, SyncState } from './state.ts';
import { changeCompiled, eventCame, setProven, streamDue, streamEnded, streamOpened } from './stream.ts';
import { beginTurn, endTurn, type Turn } from './turn.ts';

export function step(state: SyncState, input: Input, moment: Moment): [SyncState, readonly Effect[]] {
  const turn = beginTurn(state, moment);
  move(turn, input);
  return endTurn(turn);
}

function move(turn: Turn, input: Input): void {
  switch (input.kind) {
    case 'started':
      if (input.stored === undefined) start(turn);
      else turn.effects.push({ kind: 'compile_stored', stored: input.stored });
      return;
    case 'stored_compiled':
      takeStored(turn, input.stored, input.taken);
      start(turn);
      return;
    case 'nudged':
      nudge(turn);
      return;
    case 'poll_due':
      poll(turn);
      return;
    case 'polled':
      pollAnswered(turn, input.found);
      return;
    case 'poll_failed':
      pollFailed(turn, input.error);
      return;
    case 'set_compiled':
      pollCompiled(turn, input.set, input.waited, input.taken);
      return;
    case 'stream_due':
      streamDue(turn);
      return;
    case 'stream_opened':
      streamOpened(turn, input.id, input.opened);
      return;
    case 'event':
      eventCame(turn, input.id, input.event);
      return;
    case 'change_compiled':
      changeCompiled(turn, input.revision, input.taken);
      return;
    case 'proven':
      setProven(turn, input.head, input.proof);
      return;
    case 'stream_ended':
      streamEnded(turn, input.id, input.error);
      return;
    default:
      input satisfies never;
  }
}

function start(turn: Turn): void {
  startStream(turn);
  poll(turn);
}
