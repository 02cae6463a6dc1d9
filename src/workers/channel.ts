// The messages between a process and its workers, over the channel that Node opens between them. Control alone, and texts
// that only their sender and their reader understand: requests, routes and charges take other ways.

export type Order =
  /** Comes first. `given` is all that a worker needs; `run` names this life of it. */
  | { readonly kind: 'start'; readonly worker: number; readonly run: string; readonly given: string }
  /** Comes with a socket that `listener` accepted; answered by `taken`. */
  | { readonly kind: 'connection'; readonly listener: string }
  /** A new configuration; answered by `prepared`. Nothing of it is in force before `commit`. */
  | { readonly kind: 'prepare'; readonly reload: number; readonly given: string }
  | { readonly kind: 'commit'; readonly reload: number }
  /** News in force at once, which nobody waits for. */
  | { readonly kind: 'notice'; readonly text: string }
  /** Asks a worker, which replies with `answer`. */
  | { readonly kind: 'ask'; readonly ask: number; readonly question: string }
  /** Answers carry `Connection: close` from now on. */
  | { readonly kind: 'drain' }
  /** No further connection comes: what is in flight is finished within that time, then it ends. */
  | { readonly kind: 'close'; readonly withinMs: number };

export type Report =
  /** The worker can answer requests. */
  | { readonly kind: 'ready' }
  /** The worker lacks nothing any more. One that is ready before may answer that something is absent. */
  | { readonly kind: 'complete' }
  /** The worker cannot start, and ends by itself. */
  | { readonly kind: 'failed'; readonly reason: string }
  | { readonly kind: 'taken'; readonly open: number }
  /** Every second: its event loop goes round. `open`: connections; `says`: a text for who composes it. */
  | { readonly kind: 'alive'; readonly open: number; readonly says: string }
  /** Replies to a reload. `problem`: why the configuration cannot be taken. */
  | { readonly kind: 'prepared'; readonly reload: number; readonly problem: string | null }
  | { readonly kind: 'answer'; readonly ask: number; readonly answer: string }
  /** Tells what was counted since the last one, every second and at the end. */
  | { readonly kind: 'metrics'; readonly report: string };

export const ALIVE_MS = 1_000;
