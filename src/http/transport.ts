// The seam between what a request means (forward, upgrade) and how bytes reach the upstream. A transport sends one
// request, with the target and the headers exactly as given, and reports what came back. It never looks at a client,
// never rewrites a header and never delivers one call's bytes to another. pool.ts implements it.
import type { Socket } from 'node:net';
import type { Readable } from 'node:stream';

/** A stream of bytes; of a server's request also its socket, which is paused while very many pieces come at once. */
export type RequestBody = Readable & { readonly socket?: Socket; readonly complete?: boolean };

export type UpstreamRequest = {
  readonly method: string;
  /** Origin-form, sent byte for byte. */
  readonly target: string;
  /** Flat name, value pairs; framing included. */
  readonly headers: readonly string[];
  /**
   * Body of the request, streamed with back-pressure; undefined if there is none. A connection is taken when the first
   * of it is there, or after a second. A string is all of it, one character a byte and as long as the headers say.
   */
  readonly body: RequestBody | string | undefined;
  /** A 101 is expected; without this one it is a failure. */
  readonly upgrade: boolean;
};

export type UpstreamTimeouts = {
  /** Time until a connection is there, waiting for a free one included. */
  readonly connectMs: number;
  /** Time from the request's last byte to the answer's head. */
  readonly headersMs: number;
  /** Time between two bytes of a body, either way. */
  readonly idleMs: number;
  /** Time without a byte of the request's body, while the upstream takes what comes; by default 30 s. */
  readonly uploadMs?: number;
  /** Time from sending to the last byte of the answer; absent: as long as bytes flow. */
  readonly totalMs?: number | undefined;
};

/** Writes `text` to `socket` at the end of the event loop's turn, unless it is destroyed by then; `sender` is told just before. */
export type BatchedWrites = {
  readonly write: (socket: Socket, text: string, encoding: BufferEncoding, sender?: { onLeaving(): void }) => void;
};

export type UpstreamFault = {
  readonly code: 'upstream_unreachable' | 'upstream_timeout';
  /** Words for the log, not for the client. */
  readonly detail: string;
};
/** Failure that is not the upstream's: the body ended before it was whole, or nothing of it came for `uploadMs`. */
export type UploadFault = { readonly code: 'upload_broken_off' | 'upload_stalled'; readonly detail: string };
export type CallFault = UpstreamFault | UploadFault;

type UpstreamFailure = CallFault & {
  /** Says whether the request may have reached the upstream; false: it is certain that nothing did. */
  readonly sent: boolean;
};

/**
 * Listener of a call. None of these is called before `send` returned or after `abort`; the last one is onEnd, onUpgrade
 * or onFailure. They are called on the listener. The listener may keep and change what it is given.
 */
export type UpstreamListener = {
  /** Hears of a response with 1xx other than 100 and 101. */
  onInformation(status: number, headers: readonly string[]): void;
  /** The final status, 200..999. `followed`: onData or onEnd comes right behind it, unless the call is paused. */
  onHead(status: number, headers: string[], followed: boolean): void;
  onData(chunk: Buffer): void;
  /** The response is whole. `trailers`: flat name, value pairs, which came behind a chunked body. */
  onEnd(trailers: readonly string[]): void;
  /** Hears of 101 on a call with `upgrade`: the socket is the listener's now, and `head` was already read from it. */
  onUpgrade(headers: string[], socket: Socket, head: Buffer): void;
  /** Says that the call failed, before the head or in the middle of the body. */
  onFailure(failure: UpstreamFailure): void;
};

export type UpstreamCall = {
  /** Whether a byte of the request may have left. */
  readonly sent: boolean;
  /** Stops onData and the idle time-out. A response without a body may end all the same. */
  pause(): void;
  resume(): void;
  /** Ends the call and its connection, unless the response is whole already. */
  abort(): void;
};

/** A connection that is kept for one request; `release` gives it back unused, once: it is others' from then on. */
export type ReservedConnection = { readonly release: () => void };

export type Transport = {
  /** Sends a request. `reserved`: the connection that was kept for it, which the call now has to use or give back. */
  readonly send: (request: UpstreamRequest, listener: UpstreamListener, reserved?: ReservedConnection) => UpstreamCall;
  /** Reserves a connection for one request, kept or new, before it is sent. Resolves with the fault if none can be had. */
  readonly reserve: (upgrade: boolean) => Promise<ReservedConnection | UpstreamFault>;
  /** Fails every call and destroys every connection; resolves when all are closed. */
  readonly close: () => Promise<void>;
};

export type PoolOptions = {
  /** URL of the upstream. Its host is also the name that TLS asks for and verifies. */
  readonly upstream: URL;
  /** A Unix socket that is connected to in place of the host and port. */
  readonly socketPath?: string;
  readonly timeouts: UpstreamTimeouts;
  /** Connections at most, idle ones and tunnels included; further requests wait for one up to `timeouts.connectMs`. */
  readonly maxSockets: number;
  readonly writeBatch: BatchedWrites;
  /** Clock that only ever grows, in milliseconds. */
  readonly now?: () => number;
};
