// One turn of the machine: the state as this turn has made it so far, and the effects that it asks for so far. The turn
// belongs to one call of `step`, which hands out neither before the turn is over.
import type { LogFields } from '../../../host/log.ts';
import type { Effect, Moment, SyncOptions, SyncState } from './state.ts';

type Writable<T> = { -readonly [K in keyof T]: T[K] };

export type Turn = {
  readonly options: SyncOptions;
  readonly moment: Moment;
  readonly set: Writable<SyncState['set']>;
  readonly polls: Writable<SyncState['polls']>;
  readonly stream: Writable<SyncState['stream']>;
  readonly effects: Effect[];
};

export function beginTurn({ options, set, polls, stream }: SyncState, moment: Moment): Turn {
  return { options, moment, set: { ...set }, polls: { ...polls }, stream: { ...stream }, effects: [] };
}

export function endTurn({ options, set, polls, stream, effects }: Turn): [SyncState, readonly Effect[]] {
  return [{ options, set, polls, stream }, effects];
}

type LogEffect = Extract<Effect, { readonly kind: 'log' }>;

export function tell(turn: Turn, level: LogEffect['level'], msg: string, fields: LogFields = {}): void {
  turn.effects.push({ kind: 'log', level, msg, fields });
}
