// The draft of one step of the machine: the state as the step has made it so far, and the effects that it asks for. It
// belongs to one call of `step`, which hands out neither before the step is over.
import type { LogFields } from '../../../host/log.ts';
import type { Effect, Moment, SyncOptions, SyncState } from './state.ts';

type Writable<T> = { -readonly [K in keyof T]: T[K] };

export type StepDraft = {
  readonly options: SyncOptions;
  readonly moment: Moment;
  readonly set: Writable<SyncState['set']>;
  readonly polls: Writable<SyncState['polls']>;
  readonly stream: Writable<SyncState['stream']>;
  readonly effects: Effect[];
};

export function draftOf({ options, set, polls, stream }: SyncState, moment: Moment): StepDraft {
  return { options, moment, set: { ...set }, polls: { ...polls }, stream: { ...stream }, effects: [] };
}

export function resultOf({ options, set, polls, stream, effects }: StepDraft): [SyncState, readonly Effect[]] {
  return [{ options, set, polls, stream }, effects];
}

type LogEffect = Extract<Effect, { readonly kind: 'log' }>;

export function tell(draft: StepDraft, level: LogEffect['level'], msg: string, fields: LogFields = {}): void {
  draft.effects.push({ kind: 'log', level, msg, fields });
}
