// The port to where a sidecar's routes come from, and the words that the files of this folder share. A source only says
// what it found. The machine decides whether to take it. registry-source.ts implements it.
import type { Route } from '../../../domain/routing/route.ts';

/** Name of a set. A registry that serves no more than the interface names neither an id nor a revision. */
export type SetName = { readonly registryId: string | undefined; readonly revision: number | undefined };

export type FoundSet = SetName & {
  readonly etag: string | undefined;
  /** Hash of the bytes, which recognises a set if the registry gives no tag. Empty if the set came by changes. */
  readonly digest: string;
  /** The very array of the set that was asked about if the bytes are the same. */
  readonly routes: readonly Route[];
};

export type SetRequest = {
  /** The set in force. */
  readonly known: FoundSet | undefined;
  /** Part that is wanted. `name`: which set there is, if the registry can say so. `anew`: its bytes in any case. */
  readonly want: 'changed' | 'name' | 'anew';
};

export type FetchResult =
  | { readonly kind: 'set'; readonly set: FoundSet }
  /** The set is the one that was asked about, by every name. */
  | { readonly kind: 'unchanged' }
  /** The set was not sent. */
  | ({ readonly kind: 'named' } & SetName)
  /** An answer, but no set of routes. */
  | { readonly kind: 'invalid'; readonly reason: string }
  /** The registry does not let us in. */
  | { readonly kind: 'unauthorized'; readonly reason: string }
  /** No answer, or one that says that it cannot be given now. */
  | { readonly kind: 'unavailable'; readonly reason: string; readonly retryAfterMs: number | undefined };

/** Name of a set whose changes can be followed. */
export type FollowedName = { readonly registryId: string; readonly revision: number };

/**
 * A stream of changes after the set that was named. `refused`: there may be one later, until then there is none;
 * `unavailable`: it is not known; `isThere`: an answer came.
 */
export type OpenedEvents =
  | { readonly kind: 'open'; readonly chunks: AsyncIterable<Uint8Array> }
  /** The set is of another registry. */
  | { readonly kind: 'stranger' }
  | { readonly kind: 'not_offered' }
  | { readonly kind: 'refused'; readonly reason: string; readonly retryAfterMs: number | undefined }
  | { readonly kind: 'unavailable'; readonly reason: string; readonly isThere: boolean };

/** Source of routes. Neither call rejects, whatever the other side does: what went wrong is a value. */
export type RouteSource = {
  readonly fetchSet: (request: SetRequest, signal: AbortSignal) => Promise<FetchResult>;
  /** Iterating `chunks` throws if the stream breaks off or goes quiet. */
  readonly openEvents: (after: FollowedName, signal: AbortSignal) => Promise<OpenedEvents>;
};
