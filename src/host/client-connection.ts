// The connections of a listener, as node:http leaves them to us. On each, requests are handled one after the other,
// however many a client sends at once. So one packet cannot start a thousand of them, and an upgrade never meets an
// answer that is still being written. A request that the parser refuses is answered after those that were read whole.
// No socket error reaches the process.
import type { IncomingMessage, ServerResponse, Server } from 'node:http';
import { Socket } from 'node:net';
import type { Log } from './log.ts';
import { bytesOf, closing, refusalOf, type ParserError, type RefusalKind, type Refusals } from './listener-refusals.ts';
import { respond } from './respond.ts';

/** Watches the events of a response. An object and not two listeners: a connection has one for all of its responses. */
export type ResponseWatcher = {
  /** Hears that the last byte was handed to the socket. */
  onFinish(): void;
  /** Hears that nothing more happens on the response. */
  onClose(): void;
  /**
   * Hears that the rest of the request cannot be read, while nothing of its response was sent. True: it is answered by whom
   * that concerns, else it is refused here. The connection ends with the answer.
   */
  onUnreadable?(refusal: RefusalKind): boolean;
};

export type ListenerHandlers = {
  /** Answers each request, also one with `Expect: 100-continue`: no 100 was sent. May return a watcher of its response. */
  readonly request: (req: IncomingMessage, res: ServerResponse) => ResponseWatcher | void;
  /** Answers a GET with `Upgrade: websocket`, without a body. Absent: it is a request like others. */
  readonly upgrade?: (req: IncomingMessage, socket: Socket, head: Buffer) => void;
};

/** State that the connections of one listener share. */
export type ListenerState = {
  readonly name: string;
  readonly handlers: ListenerHandlers;
  readonly refusals: Refusals;
  readonly log: Log;
  /** Time after which a connection is closed if no byte of an upload, or of an answer that is ready, moves. */
  readonly idleMs: number;
  /** Time in which what a client still sends after its answer is taken in and dropped. */
  readonly lingerMs: number;
  /** Requests being answered and upgraded connections. */
  inFlight: number;
  phase: 'open' | 'draining' | 'closing';
};

/** Idle time of a kept connection: longer than that of common load balancers, so that we never close first under a request. */
const KEEP_ALIVE_MS = 65_000;
/** Requests that may wait behind the current one of a connection. */
const PIPELINED = 64;

/** The request being handled. */
type CurrentRequest = {
  readonly req: IncomingMessage;
  readonly res: ServerResponse;
  watcher: ResponseWatcher | undefined;
};

export class ClientConnection {
  private readonly socket: Socket;
  private readonly listener: ListenerState;
  private current: CurrentRequest | undefined;
  /** Requests that wait for the current one. */
  private readonly queue: CurrentRequest[] = [];
  private upgraded = false;
  /** The connection has not brought a request yet. */
  isFresh = true;
  /** Fault that the parser found after the current request. */
  private refusal: RefusalKind | undefined;
  private readonly onResponseFinish = (): void => this.current?.watcher?.onFinish();
  private readonly onResponseClose = (): void => {
    const watcher = this.current?.watcher;
    this.next();
    watcher?.onClose();
  };
  /** Number of bytes that had passed either way at the last look, and time since which there are no more. */
  private bytes = 0;
  private idleSince = performance.now();

  constructor(socket: Socket, listener: ListenerState) {
    this.socket = socket;
    this.listener = listener;
    socket.destroySoon = () => this.endGently();
  }

  get isFree(): boolean {
    return this.current === undefined;
  }

  accept(req: IncomingMessage, res: ServerResponse): void {
    this.isFresh = false;
    // No request is handled behind the last answer of a connection: its response could not be sent.
    if (this.refusal !== undefined || this.socket.writableEnded) res.destroy();
    else if (this.current === undefined) this.handle({ req, res, watcher: undefined });
    else if (this.queue.length < PIPELINED) this.queue.push({ req, res, watcher: undefined });
    else this.socket.destroy();
  }

  upgrade(req: IncomingMessage, head: Buffer): void {
    const { socket, listener } = this;
    const { handlers, log, name } = listener;
    if (handlers.upgrade === undefined) {
      socket.destroy();
      return;
    }
    this.upgraded = true;
    listener.inFlight++;
    socket.on('close', () => listener.inFlight--);
    const refusal = refuseInbound(req);
    if (refusal !== undefined) {
      this.refuse(refusal);
      return;
    }
    try {
      handlers.upgrade(req, socket, head);
    } catch (error) {
      log.error('an upgrade handler failed', { listener: name, error });
      socket.destroy();
    }
  }

  /** Answers in the place of a handler, and ends the connection. */
  refuse(refusal: RefusalKind): void {
    this.socket.write(bytesOf(this.listener.refusals[refusal]));
    endAndDrop(this.socket, this.listener.lingerMs);
  }

  /** Handles that the parser gave the connection up. */
  onParserError(error: ParserError): void {
    const { socket, current } = this;
    // A request behind the last answer is dropped.
    if (this.refusal !== undefined || socket.writableEnded) return;
    this.refusal = refusalOf(error);
    socket.pause();
    if (current === undefined) {
      this.refuse(this.refusal);
    } else if (!current.req.complete) {
      // The current request is the one that is broken. Its upload must not end as if it were whole.
      current.res.shouldKeepAlive = false;
      if (current.res.headersSent) socket.destroy();
      else if (current.watcher?.onUnreadable?.(this.refusal) !== true) this.refuse(this.refusal);
    }
    // An earlier request is being answered otherwise: `next` refuses when that is through.
  }

  /** Closes the connection if nothing moves on it any more; called now and then. */
  closeIfIdle(now: number): void {
    const { socket, current } = this;
    const bytes = socket.bytesRead + socket.bytesWritten;
    if (bytes !== this.bytes || this.upgraded) {
      this.bytes = bytes;
      this.idleSince = now;
    } else if (now - this.idleSince >= (current === undefined ? KEEP_ALIVE_MS : this.listener.idleMs)) {
      // A stalled upload is the client's; else we or the upstream take long, and both have time-outs of their own.
      const uploadStopped = current !== undefined && !current.req.complete && current.req.readableFlowing === true;
      if (current === undefined || uploadStopped || socket.writableLength > 0) socket.destroy();
    }
  }

  /** Makes the answer being written the last one. */
  closeAfterCurrent(): void {
    if (this.current?.res.headersSent === false) this.current.res.shouldKeepAlive = false;
  }

  closeUnlessBusy(): void {
    if (this.current === undefined && !this.upgraded) this.socket.destroy();
  }

  destroy(): void {
    this.socket.destroy();
  }

  private handle(current: CurrentRequest): void {
    const { listener } = this;
    const { req, res } = current;
    this.current = current;
    listener.inFlight++;
    res.on('close', this.onResponseClose);
    if (listener.phase !== 'open' || isUpgradeNotTaken(req)) res.shouldKeepAlive = false;
    const refusal = refuseInbound(req);
    if (refusal !== undefined) {
      respond(res, closing(listener.refusals[refusal]));
      return;
    }
    try {
      const watcher = listener.handlers.request(req, res) ?? undefined;
      if (watcher === undefined) return;
      current.watcher = watcher;
      res.on('finish', this.onResponseFinish);
    } catch (error) {
      listener.log.error('a request handler failed', { listener: listener.name, error });
      respond(res, closing(listener.refusals.internal));
    }
  }

  /** Ends the current request and begins the one that waits behind it. */
  private next(): void {
    const { socket, listener } = this;
    const req = this.current?.req;
    listener.inFlight--;
    this.current = undefined;
    if (socket.destroyed || socket.writableEnded) return;
    const next = this.queue.shift();
    // A fault is told after the requests that were read whole.
    if (this.refusal !== undefined && next?.req.complete !== true) {
      this.refuse(this.refusal);
      return;
    }
    // The answer left before the whole request was read: what follows is thrown away, but not for ever.
    if (req?.complete === false) setTimeout(destroyIfIncomplete, listener.lingerMs, req).unref();
    if (next !== undefined) this.handle(next);
    else if (listener.phase === 'closing') socket.destroySoon();
  }

  /**
   * Stands in for a socket's own `destroySoon`, which node:http calls behind the last answer of a connection. While the client
   * is still sending, closing would be a reset, and a reset takes away what it has not read of the answer yet.
   */
  private endGently(): void {
    if (this.current?.req.complete === false) endAndDrop(this.socket, this.listener.lingerMs);
    else Socket.prototype.destroySoon.call(this.socket);
  }
}

/** Hands what happens on `server` to its connections. `closed` resolves when none is left. */
export function followConnections(
  server: Server,
  connections: Map<Socket, ClientConnection>,
  state: ListenerState,
  limit: number,
): { readonly closed: () => Promise<void> } {
  let full = false;
  let emptied: (() => void) | undefined;
  const accept = (req: IncomingMessage, res: ServerResponse): void => {
    const connection = connections.get(req.socket);
    if (connection === undefined) res.destroy();
    else connection.accept(req, res);
  };

  server.on('connection', (socket: Socket) => {
    connections.set(socket, new ClientConnection(socket, state));
    socket.on('close', () => {
      connections.delete(socket);
      if (connections.size === 0) emptied?.();
      if (connections.size < limit * 0.9) full = false;
    });
  });
  server.on('request', accept);
  server.on('checkContinue', accept);
  server.on('checkExpectation', accept);
  server.on('upgrade', (req, socket, head) => {
    socket.on('error', () => socket.destroy());
    const connection = socket instanceof Socket ? connections.get(socket) : undefined;
    if (connection === undefined) socket.destroy();
    else connection.upgrade(req, head);
  });
  server.on('connect', (_req, socket) => {
    socket.on('error', () => socket.destroy());
    const connection = socket instanceof Socket ? connections.get(socket) : undefined;
    // An answer to an earlier request may be half written; nothing may be put into it.
    if (connection?.isFree === true) connection.refuse('methodUnsupported');
    else socket.destroy();
  });
  server.on('clientError', (error: ParserError, socket: Socket) => {
    const connection = connections.get(socket);
    if (connection === undefined || socket.destroyed || error.code === 'ECONNRESET') socket.destroy();
    else connection.onParserError(error);
  });
  server.on('drop', () => {
    if (!full) state.log.warn('connection limit reached', { listener: state.name, limit });
    full = true;
  });
  return {
    closed: async () => {
      if (connections.size > 0) await new Promise<void>((resolve) => (emptied = resolve));
    },
  };
}

/** Ends our side, and drops what still comes until the client has ended its own, for `ms` at most. */
function endAndDrop(socket: Socket, ms: number): void {
  socket.end();
  socket.resume();
  const timer = setTimeout(() => socket.destroy(), ms).unref();
  socket.on('close', () => clearTimeout(timer));
}

function destroyIfIncomplete(req: IncomingMessage): void {
  if (!req.complete) req.socket.destroy();
}

function refuseInbound(req: IncomingMessage): RefusalKind | undefined {
  if (req.httpVersionMajor !== 1 || req.httpVersionMinor !== 1) return undefined;
  if (req.headers.host === undefined) return 'hostMissing';
  const { expect } = req.headers;
  return expect === undefined || expect.toLowerCase() === '100-continue' ? undefined : 'expectationFailed';
}

/**
 * The parser stops behind a request that offers an upgrade and drops the rest of the packet, also if the offer is not
 * taken. The requests in there must not be waited for, and no later answer may be taken for theirs.
 */
function isUpgradeNotTaken({ headers }: IncomingMessage): boolean {
  return headers.upgrade !== undefined && headers.connection?.toLowerCase().includes('upgrade') === true;
}
