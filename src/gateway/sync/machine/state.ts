// The words of the machine that keeps a sidecar's routes in step with its registry: the state that it is in, the inputs
// that move it, and the effects that it asks for. step.ts moves it and sync.ts runs it.
import type { LogFields } from '../../../host/log.ts';
import type { CompileResult, FeedChange } from '../../routes/snapshot-compiler.ts';
import type { Route } from '../../../domain/routing/route.ts';
import type { SetProof } from '../../../domain/routing/set-proof.ts';
import type { RegistryEvent, SetHead } from '../follow/event-reader.ts';
import type { FetchResult, FollowedName, FoundSet, OpenedEvents, SetRequest } from '../follow/route-source.ts';
import type { HeldSet } from '../keep/acceptance.ts';
import type { StoredSet } from '../keep/snapshot-file.ts';

export type SyncOptions = {
  readonly pollIntervalMs: number;
  /** Milliseconds for which a registry must go on saying what a set is held back for. */
  readonly emptyAfterMs: number;
};

/** The moment of an input. `chance` is a number from 0 to 1, 1 left out, for the jitter of what follows from it. */
export type Moment = { readonly monotonicMs: number; readonly epochMs: number; readonly chance: number };

/** The set in force. `confirmedAt`: when its registry last confirmed it, milliseconds since the epoch. */
export type SetInForce = {
  readonly set: FoundSet;
  readonly size: number;
  readonly source: 'registry' | 'disk';
  readonly confirmedAt: number;
};

export type SetState = {
  readonly good: SetInForce | undefined;
  /** The set that is held back. */
  readonly holding: HeldSet | undefined;
  /** Reason why the last poll came to nothing. */
  readonly lastError: string | undefined;
  /** The registry did not answer the last poll. */
  readonly away: boolean;
};

type PollState = {
  /** Polls that came to nothing, one after the other. */
  readonly failures: number;
  /** The poll that runs. `asked`: the revision that was in force when it was sent. */
  readonly flight: { readonly want: Want; readonly asked: number | undefined; readonly startedMs: number } | undefined;
  readonly last: { readonly endedMs: number; readonly tookMs: number };
  readonly lastWant: Want;
  /** The registry is to be asked now, or once more when the poll that runs is over. */
  readonly isRung: boolean;
  /** The whole set is to be taken before anything else. `anew`: whatever is known of it. */
  readonly whole: 'changed' | 'anew' | undefined;
};

type Want = SetRequest['want'];

/** Place of the stream. `expected`: changes will come by it once it is open again. */
type StreamPlace =
  | { readonly at: 'stopped' }
  | { readonly at: 'waiting'; readonly expected: boolean }
  | { readonly at: 'opening'; readonly id: number }
  | { readonly at: 'open'; readonly id: number; readonly openedMs: number };

type StreamState = {
  readonly place: StreamPlace;
  /** Streams that were opened so far; each has its number as its id. */
  readonly opened: number;
  readonly failures: number;
  /** The registry has had a stream: what it answers in its place is passing trouble. */
  readonly hasFollowed: boolean;
  /** The revision that polls have found the registry ahead of, and since when. */
  readonly ahead: { readonly of: number; readonly sinceMs: number } | undefined;
  /** The revision after which something was missing last. */
  readonly gapAfter: number | undefined;
  /** The set is what the registry sent as a whole, and its digest is still to be compared. */
  readonly isUnproven: boolean;
};

export type SyncState = {
  readonly options: SyncOptions;
  readonly set: SetState;
  readonly polls: PollState;
  readonly stream: StreamState;
};

export type Input =
  /** The snapshot file was read. */
  | { readonly kind: 'started'; readonly stored: StoredSet | undefined }
  | { readonly kind: 'stored_compiled'; readonly stored: StoredSet; readonly taken: CompileResult }
  | { readonly kind: 'nudged' }
  | { readonly kind: 'poll_due' }
  | { readonly kind: 'polled'; readonly found: FetchResult }
  | { readonly kind: 'poll_failed'; readonly error: unknown }
  | { readonly kind: 'set_compiled'; readonly set: FoundSet; readonly waited: boolean; readonly taken: CompileResult }
  | { readonly kind: 'stream_due' }
  | { readonly kind: 'stream_opened'; readonly id: number; readonly opened: OpenedEvents }
  | { readonly kind: 'event'; readonly id: number; readonly event: RegistryEvent }
  | { readonly kind: 'change_compiled'; readonly revision: number; readonly taken: CompiledChange }
  | { readonly kind: 'proven'; readonly head: SetHead; readonly proof: SetProof }
  /** The stream ended, broke off or went quiet. */
  | { readonly kind: 'stream_ended'; readonly id: number; readonly error: unknown };

/** A change that is in force now, with the set that it made. */
export type CompiledChange =
  | { readonly ok: true; readonly size: number; readonly list: () => readonly Route[] }
  | Exclude<CompileResult, { readonly ok: true }>;

/** Result of a poll. */
export type PollResult = 'updated' | 'unchanged' | 'held' | 'invalid' | 'unauthorized' | 'unavailable';

/** Work whose result is the very next input: until then the set in force is what it was. A step asks for one at most. */
export type Work =
  | { readonly kind: 'compile_stored'; readonly stored: StoredSet }
  | { readonly kind: 'compile_set'; readonly set: FoundSet; readonly waited: boolean }
  | { readonly kind: 'compile_change'; readonly change: FeedChange }
  | { readonly kind: 'prove'; readonly head: SetHead };

export type Effect =
  | Work
  | { readonly kind: 'fetch'; readonly request: SetRequest }
  /** The next poll, in place of one that waits. */
  | { readonly kind: 'poll_in'; readonly ms: number }
  | { readonly kind: 'open_stream'; readonly id: number; readonly after: FollowedName }
  | { readonly kind: 'open_stream_in'; readonly ms: number }
  /** Ends the stream that is open, being opened or waited for. */
  | { readonly kind: 'end_stream' }
  | { readonly kind: 'keep'; readonly set: FoundSet; readonly confirmedAt: number }
  | { readonly kind: 'count'; readonly result: PollResult }
  | {
      readonly kind: 'log';
      readonly level: 'debug' | 'info' | 'warn' | 'error';
      readonly msg: string;
      readonly fields: LogFields;
    };

export function firstState(options: SyncOptions): SyncState {
  return {
    options,
    set: { good: undefined, holding: undefined, lastError: undefined, away: false },
    polls: {
      failures: 0,
      flight: undefined,
      last: { endedMs: -Infinity, tookMs: 0 },
      lastWant: 'changed',
      isRung: false,
      whole: undefined,
    },
    stream: {
      place: { at: 'stopped' },
      opened: 0,
      failures: 0,
      hasFollowed: false,
      ahead: undefined,
      gapAfter: undefined,
      isUnproven: false,
    },
  };
}
