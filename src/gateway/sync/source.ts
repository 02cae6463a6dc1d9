// The port to where a sidecar's routes come from, and the words that the files of this folder share. A source only says
// what it found; whether that is taken is for accept.ts and the compilation to decide. remote.ts implements it.
import type { Route } from '../../domain/route.ts';

/** Which set it is. A registry that serves no more than the interface names neither an id nor a revision. */
export type SetName = { readonly registryId: string | undefined; readonly revision: number | undefined };

export type FoundSet = SetName & {
  readonly etag: string | undefined;
  /** A hash of the bytes: recognises a set if the registry gives no tag. */
  readonly digest: string;
  /** The very array of the set that was asked about if the bytes are the same. */
  readonly routes: readonly Route[];
};

export type FetchResult =
  | { readonly kind: 'set'; readonly set: FoundSet }
  /** It is the set that was asked about, by every name. */
  | { readonly kind: 'unchanged' }
  /** An answer, but no set of routes. */
  | { readonly kind: 'invalid'; readonly reason: string }
  /** The registry does not let us in. */
  | { readonly kind: 'unauthorized'; readonly reason: string }
  /** No answer, or one that says that it cannot be given now. */
  | { readonly kind: 'unavailable'; readonly reason: string; readonly retryAfterMs: number | undefined };

/** A stream of changes. Its bytes say when something changed and from where to resume, never what. */
export type OpenedEvents =
  | { readonly kind: 'open'; readonly chunks: AsyncIterable<Uint8Array> }
  | { readonly kind: 'not_offered' }
  | { readonly kind: 'unavailable'; readonly reason: string };

/** Neither rejects, whatever the other side does: what went wrong is a value. */
export type RouteSource = {
  readonly fetchSet: (known: FoundSet | undefined, signal: AbortSignal) => Promise<FetchResult>;
  /** Iterating `chunks` throws if the stream breaks off or goes quiet. */
  readonly openEvents: (lastEventId: string | undefined, signal: AbortSignal) => Promise<OpenedEvents>;
};
