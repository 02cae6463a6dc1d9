// The connections of a listener, as node:http leaves them to us. On each, requests are handled one after the other,
// however many a client sends at once. So one packet cannot start a thousand of them, and an upgrade never meets an
// answer that is still being written. A request that the parser refuses is answered after those that were read whole.
// No socket error reaches the process.
import type { IncomingMessage, ServerResponse, Server } from 'node:http';
import { Socket } from 'node:net';
import type { Log } from './log.ts';
import { respond, type OwnResponse } from './respond.ts';
import { http } from './node-http.ts';

/** Told of the events of a response. An object and not two listeners: a connection has one for all of its responses. */
export type ResponseWatcher = {
  /** Its last byte was handed to the socket. */
  onFinish(): void;
  /** Nothing more happens on it. */
  onClose(): void;
};

export type ListenerHandlers = {
  /** Has to answer each request, also one with `Expect: 100-continue`: no 100 was sent. May return who watches its response. */
  readonly request: (req: IncomingMessage, res: ServerResponse) => ResponseWatcher | void;
  /** A GET with `Upgrade: websocket`, without a body. Absent: it is a request like others. */
  readonly upgrade?: (req: IncomingMessage, socket: Socket, head: Buffer) => void;
};

/** What the connections of one listener share. */
export type ListenerState = {
  readonly name: string;
  readonly handlers: ListenerHandlers;
  readonly refusals: Refusals;
  readonly log: Log;
  /** Without a byte of an upload or of an answer that is ready: closed. */
  readonly idleMs: number;
  /** To take in and drop what a client still sends after its answer. */
  readonly lingerMs: number;
  /** Requests being answered and upgraded connections. */
  inFlight: number;
  phase: 'open' | 'draining' | 'closing';
};

// Longer than the idle time-out of common load balancers, so that it is never us who close first under a request.
const KEEP_ALIVE_MS = 65_000;
const PIPELINED = 64;

/** The request being handled. */
type Current = {
  readonly req: IncomingMessage;
  readonly res: ServerResponse;
  watcher: ResponseWatcher | undefined;
};

export class ClientConnection {
  private readonly socket: Socket;
  private readonly listener: ListenerState;
  private current: Current | undefined;
  /** Requests that wait for the current one. */
  private readonly queue: Current[] = [];
  private upgraded = false;
  /** It has not brought a request yet. */
  isFresh = true;
  /** What the parser found wrong after the current request. */
  private refusal: RefusalKind | undefined;
  private readonly onResponseFinish = (): void => this.current?.watcher?.onFinish();
  private readonly onResponseClose = (): void => {
    const watcher = this.current?.watcher;
    this.next();
    watcher?.onClose();
  };
  /** Bytes that had passed either way when it was last looked at, and since when they have not become more. */
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
    // Behind the last answer of a connection nothing is handled: its response could not be sent.
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

  /** The parser gave the connection up. */
  onParserError(error: ParserError): void {
    const { socket, current } = this;
    // Behind the last answer whatever comes is dropped.
    if (this.refusal !== undefined || socket.writableEnded) return;
    this.refusal = refusalOf(error);
    socket.pause();
    if (current === undefined) {
      this.refuse(this.refusal);
    } else if (!current.req.complete) {
      // The current request is the one that is broken. Its upload must not end as if it were whole.
      if (current.res.headersSent) socket.destroy();
      else this.refuse(this.refusal);
    }
    // Else an earlier request is being answered: `next` refuses when that is through.
  }

  /** Called now and then: closes a connection on which nothing moves any more. */
  closeIfIdle(now: number): void {
    const { socket, current } = this;
    const bytes = socket.bytesRead + socket.bytesWritten;
    if (bytes !== this.bytes || this.upgraded) {
      this.bytes = bytes;
      this.idleSince = now;
    } else if (now - this.idleSince >= (current === undefined ? KEEP_ALIVE_MS : this.listener.idleMs)) {
      // Else we or the upstream take long, and both have time-outs of their own.
      const uploadStopped = current !== undefined && !current.req.complete && current.req.readableFlowing === true;
      if (current === undefined || uploadStopped || socket.writableLength > 0) socket.destroy();
    }
  }

  /** The answer being written is the last one. */
  closeAfterCurrent(): void {
    if (this.current?.res.headersSent === false) this.current.res.shouldKeepAlive = false;
  }

  closeUnlessBusy(): void {
    if (this.current === undefined && !this.upgraded) this.socket.destroy();
  }

  destroy(): void {
    this.socket.destroy();
  }

  private handle(current: Current): void {
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

  /** The current request is over. */
  private next(): void {
    const { socket, listener } = this;
    const req = this.current?.req;
    listener.inFlight--;
    this.current = undefined;
    if (socket.destroyed || socket.writableEnded) return;
    const next = this.queue.shift();
    // Whatever is wrong comes after the requests that were read whole.
    if (this.refusal !== undefined && next?.req.complete !== true) {
      this.refuse(this.refusal);
      return;
    }
    // Answered before the whole request was read: what follows is thrown away, but not for ever.
    if (req?.complete === false) setTimeout(destroyIfIncomplete, listener.lingerMs, req).unref();
    if (next !== undefined) this.handle(next);
    else if (listener.phase === 'closing') socket.destroySoon();
  }

  /**
   * In place of a socket's own `destroySoon`: node:http calls it behind the last answer of a connection. While the client
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

// Refusals of a listener itself, before any handler sees the request. Its owner says in what words. Every refusal closes
// the connection.

type RefusalKind =
  | 'malformed'
  | 'targetAmbiguous'
  | 'hostMissing'
  | 'timeout'
  | 'targetTooLong'
  | 'expectationFailed'
  | 'headersTooLarge'
  | 'internal'
  | 'methodUnsupported';
export type Refusals = Readonly<Record<RefusalKind, OwnResponse & { readonly body: string }>>;

/** An error of Node's parser: what was read last, and how much of that was parsed. */
type ParserError = NodeJS.ErrnoException & { readonly rawPacket?: Buffer; readonly bytesParsed?: number };

function refusalOf(error: ParserError): RefusalKind {
  switch (error.code ?? '') {
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return 'timeout';
    case 'HPE_HEADER_OVERFLOW':
      return endsInRequestLine(error) ? 'targetTooLong' : 'headersTooLarge';
    case 'HPE_INVALID_URL':
      return 'targetAmbiguous';
    case 'HPE_INVALID_METHOD':
      // The parser knows a fixed list; what is no request at all, such as TLS, ends here too.
      return REQUEST_LINE.test(lineOf(error)) ? 'methodUnsupported' : 'malformed';
    default:
      return 'malformed';
  }
}

const REQUEST_LINE = /^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,32} [\x21-\x7e]+ HTTP\/1\.[01]\r\n/;

/** The line that the parser stopped in, and what follows. */
function lineOf({ rawPacket, bytesParsed = 0 }: ParserError): string {
  if (rawPacket === undefined) return '';
  const start = bytesParsed === 0 ? 0 : rawPacket.lastIndexOf(0x0a, bytesParsed - 1) + 1;
  return rawPacket.toString('latin1', start, start + 1024);
}

function endsInRequestLine({ rawPacket, bytesParsed }: ParserError): boolean {
  if (rawPacket === undefined || !/^[A-Z]+ /.test(rawPacket.toString('latin1', 0, 32))) return false;
  return !rawPacket.subarray(0, bytesParsed).includes(0x0a);
}

function closing(refusal: OwnResponse): OwnResponse {
  return { ...refusal, headers: [...refusal.headers, 'Connection', 'close'] };
}

/** The whole answer, for a socket that has no response object. */
function bytesOf(refusal: Refusals[RefusalKind]): string {
  const { status, headers } = closing(refusal);
  let text = `HTTP/1.1 ${status} ${http.STATUS_CODES[status]}\r\n`;
  for (let i = 0; i + 1 < headers.length; i += 2) text += `${headers[i]}: ${headers[i + 1]}\r\n`;
  return `${text}Content-Length: ${Buffer.byteLength(refusal.body)}\r\n\r\n${refusal.body}`;
}
