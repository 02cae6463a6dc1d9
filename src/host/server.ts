// A listener: node:http with every limit set, used alike by the proxy, the registry and the admin port. Requests of one
// connection are handled one after the other, however many a client sends at once, so that one packet cannot start a
// thousand of them and an upgrade never meets an answer that is still being written. No socket error reaches the
// process. Knows no domain word.
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import type { Log } from './log.ts';
import { http } from './node-http.ts';
import { answerOf, bytesOf, refusalOf, REFUSALS, type ParserError, type Refusal } from './refusal.ts';
import { respond } from './respond.ts';

export type ListenerOptions = {
  /** For the log. */
  readonly name: string;
  readonly listen: { readonly host: string; readonly port: number };
  readonly limits: {
    /** Bytes of request line and headers; one more is 431, or 414 where the target alone is longer. */
    readonly headers: number;
    /** Connections at a time; one more is closed at once. */
    readonly connections: number;
  };
  readonly timeouts: {
    /** For a client to send its headers: 408. */
    readonly headersMs: number;
    /** Without a byte of an upload or of an answer that is ready: closed. */
    readonly idleMs: number;
    /** To take in and drop what a client still sends after its answer: 5 s. */
    readonly lingerMs?: number;
  };
  readonly log: Log;
};

export type ListenerHandlers = {
  /** Has to answer each request, also one with `Expect: 100-continue`: no 100 was sent. */
  readonly request: (req: IncomingMessage, res: ServerResponse) => void;
  /** A GET with `Upgrade: websocket`, without a body. Absent: it is a request like others. */
  readonly upgrade?: (req: IncomingMessage, socket: Socket, head: Buffer) => void;
};

export type Listener = {
  /** Rejects where the port cannot be bound. */
  readonly start: () => Promise<{ readonly address: string; readonly port: number }>;
  /**
   * From now on answers carry `Connection: close`; after `delayMs` nothing is accepted any more and idle connections are
   * closed; `totalMs` after the call whatever is left is destroyed. Resolves when all are closed.
   */
  readonly drain: (delayMs: number, totalMs: number) => Promise<void>;
  /** Requests being answered and upgraded connections. */
  readonly inFlight: () => number;
};

type Connection = {
  readonly socket: Socket;
  /** The request being handled; others of this connection wait in `queue`. */
  req: IncomingMessage | undefined;
  res: ServerResponse | undefined;
  queue: { readonly req: IncomingMessage; readonly res: ServerResponse }[];
  upgraded: boolean;
  /** What the parser found wrong after the request being handled. */
  refusal: Refusal | undefined;
  readonly onResponseClose: () => void;
  /** Bytes that had passed either way when it was last looked at, and since when they have not become more. */
  bytes: number;
  quietSince: number;
};

// Longer than the idle time-out of common load balancers, so that it is never us who close first under a request.
const KEEP_ALIVE_MS = 65_000;
const PIPELINED = 64;
const LINGER_MS = 5000;

export function createListener(options: ListenerOptions, handlers: ListenerHandlers): Listener {
  const { name, limits, timeouts, log } = options;
  const { lingerMs = LINGER_MS } = timeouts;
  const connections = new Map<Socket, Connection>();
  let inFlight = 0;
  let draining = false;
  let closing = false;
  let full = false;
  let emptied: (() => void) | undefined;

  const server: Server = http.createServer({
    // Set here, so that --insecure-http-parser cannot weaken it.
    httpValidation: 'strict',
    maxHeaderSize: limits.headers,
    // Answered below, with a body that says why.
    requireHostHeader: false,
    headersTimeout: timeouts.headersMs,
    // A large upload takes as long as it takes; one that stops is ended by the idle time-out.
    requestTimeout: 0,
    connectionsCheckingInterval: Math.min(1000, Math.max(20, timeouts.headersMs / 4)),
    // Quiet connections are found by `sweep`: a timer of each socket's own would be set again with every request.
    keepAliveTimeout: 0,
    // A request without a body has nothing that would have to be read to its end.
    optimizeEmptyRequests: true,
    shouldUpgradeCallback: (req) => handlers.upgrade !== undefined && isWebSocket(req) && isFree(req.socket),
  });
  server.maxConnections = limits.connections;
  server.timeout = 0;
  const sweeper = setInterval(sweep, Math.min(1000, Math.max(10, timeouts.idleMs / 8))).unref();

  server.on('connection', (socket: Socket) => {
    const connection: Connection = {
      socket,
      req: undefined,
      res: undefined,
      queue: [],
      upgraded: false,
      refusal: undefined,
      onResponseClose: () => finish(connection),
      bytes: 0,
      quietSince: performance.now(),
    };
    connections.set(socket, connection);
    socket.destroySoon = endGently;
    socket.on('close', () => {
      connections.delete(socket);
      if (connections.size === 0) emptied?.();
      if (connections.size < limits.connections * 0.9) full = false;
    });
  });
  server.on('request', accept);
  server.on('checkContinue', accept);
  server.on('checkExpectation', accept);
  server.on('upgrade', (req, socket, head) => {
    if (socket instanceof Socket) upgrade(req, socket, head);
    else socket.destroy();
  });
  server.on('connect', (_req, socket) => {
    socket.on('error', () => socket.destroy());
    // An answer to an earlier request may be half written; nothing may be put into it.
    if (socket instanceof Socket && isFree(socket)) refuse(socket, REFUSALS.methodUnsupported);
    else socket.destroy();
  });
  server.on('clientError', onClientError);
  server.on('drop', () => {
    if (!full) log.warn('connection limit reached', { listener: name, limit: limits.connections });
    full = true;
  });

  function isFree(socket: Socket): boolean {
    return connections.get(socket)?.res === undefined;
  }

  /**
   * In place of a socket's own: node:http calls it behind the last answer of a connection. Where the client is still
   * sending, closing would be a reset, and a reset takes away what it has not read of the answer yet.
   */
  function endGently(this: Socket): void {
    if (connections.get(this)?.req?.complete === false) endAndDrop(this, lingerMs);
    else Socket.prototype.destroySoon.call(this);
  }

  function refuse(socket: Socket, refusal: Refusal): void {
    socket.write(bytesOf(refusal));
    endAndDrop(socket, lingerMs);
  }

  function accept(req: IncomingMessage, res: ServerResponse): void {
    const connection = connections.get(req.socket);
    // Behind the last answer of a connection nothing is handled: its response could not be sent.
    if (connection === undefined || connection.refusal !== undefined || connection.socket.writableEnded) {
      res.destroy();
    } else if (connection.res === undefined) {
      handle(connection, req, res);
    } else if (connection.queue.length < PIPELINED) {
      connection.queue.push({ req, res });
    } else {
      connection.socket.destroy();
    }
  }

  function handle(connection: Connection, req: IncomingMessage, res: ServerResponse): void {
    connection.req = req;
    connection.res = res;
    inFlight++;
    res.on('close', connection.onResponseClose);
    if (draining || isUpgradeNotTaken(req)) res.shouldKeepAlive = false;
    const refusal = refuseInbound(req);
    if (refusal !== undefined) {
      respond(res, answerOf(refusal));
      return;
    }
    try {
      handlers.request(req, res);
    } catch (error) {
      log.error('a request handler failed', { listener: name, error });
      respond(res, answerOf(REFUSALS.internal));
    }
  }

  function finish(connection: Connection): void {
    const { socket, req } = connection;
    inFlight--;
    connection.req = undefined;
    connection.res = undefined;
    if (socket.destroyed || socket.writableEnded) return;
    const next = connection.queue.shift();
    // Whatever is wrong comes after the requests that were read whole.
    if (connection.refusal !== undefined && next?.req.complete !== true) {
      refuse(socket, connection.refusal);
      return;
    }
    // Answered before the whole request was read: what follows is thrown away, but not for ever.
    if (req?.complete === false) setTimeout(linger, lingerMs, req).unref();
    if (next !== undefined) handle(connection, next.req, next.res);
    else if (closing) socket.destroySoon();
  }

  function upgrade(req: IncomingMessage, socket: Socket, head: Buffer): void {
    const connection = connections.get(socket);
    socket.on('error', () => socket.destroy());
    if (connection === undefined || handlers.upgrade === undefined) {
      socket.destroy();
      return;
    }
    connection.upgraded = true;
    inFlight++;
    socket.on('close', () => inFlight--);
    const refusal = refuseInbound(req);
    if (refusal !== undefined) {
      refuse(socket, refusal);
      return;
    }
    try {
      handlers.upgrade(req, socket, head);
    } catch (error) {
      log.error('an upgrade handler failed', { listener: name, error });
      socket.destroy();
    }
  }

  function onClientError(error: ParserError, socket: Socket): void {
    const connection = connections.get(socket);
    if (connection === undefined || socket.destroyed || error.code === 'ECONNRESET') {
      socket.destroy();
      return;
    }
    // Behind the last answer whatever comes is dropped.
    if (connection.refusal !== undefined || socket.writableEnded) return;
    connection.refusal = refusalOf(error);
    socket.pause();
    if (connection.res === undefined) {
      refuse(socket, connection.refusal);
    } else if (connection.req?.complete === false) {
      // The request being handled is the one that is broken. Its upload must not end as if it were whole.
      if (connection.res.headersSent) socket.destroy();
      else refuse(socket, connection.refusal);
    }
    // Else an earlier request is being answered: `finish` refuses when that is through.
  }

  function sweep(): void {
    const now = performance.now();
    for (const connection of connections.values()) {
      const { socket, upgraded } = connection;
      const bytes = socket.bytesRead + socket.bytesWritten;
      if (bytes !== connection.bytes || upgraded) {
        connection.bytes = bytes;
        connection.quietSince = now;
      } else if (now - connection.quietSince >= (connection.res === undefined ? KEEP_ALIVE_MS : timeouts.idleMs)) {
        onQuiet(connection);
      }
    }
  }

  function onQuiet({ socket, req, res }: Connection): void {
    // What is left is us or the upstream who take long, and they have time-outs of their own.
    const uploadStopped = req?.complete === false && req.readableFlowing === true;
    if (res === undefined || uploadStopped || socket.writableLength > 0) socket.destroy();
  }

  async function drain(delayMs: number, totalMs: number): Promise<void> {
    draining = true;
    for (const { res } of connections.values()) {
      if (res?.headersSent === false) res.shouldKeepAlive = false;
    }
    const deadline = setTimeout(() => {
      for (const socket of connections.keys()) socket.destroy();
    }, totalMs);
    if (delayMs > 0) await new Promise((resolve) => setTimeout(resolve, Math.min(delayMs, totalMs)));
    closing = true;
    const closed = new Promise<void>((resolve) => server.close(() => resolve()));
    for (const { socket, res, upgraded } of connections.values()) {
      if (res === undefined && !upgraded) socket.destroy();
    }
    await closed;
    clearTimeout(deadline);
    clearInterval(sweeper);
    // The sockets' own `close` comes a moment later; then nothing is in flight any more.
    if (connections.size > 0) await new Promise<void>((resolve) => (emptied = resolve));
  }

  return {
    start: () =>
      new Promise((resolve, reject) => {
        server.once('error', reject);
        server.listen(options.listen.port, options.listen.host, () => {
          server.removeListener('error', reject);
          server.on('error', (error) => log.error('a listener failed', { listener: name, error }));
          const bound = server.address();
          if (bound === null || typeof bound === 'string') {
            reject(new Error(`listener ${name} has no address`));
            return;
          }
          log.info('listening', { listener: name, address: bound.address, port: bound.port });
          resolve({ address: bound.address, port: bound.port });
        });
      }),
    drain,
    inFlight: () => inFlight,
  };
}

/** A response to write on a socket that asked for an upgrade and does not get it: the connection ends with it. */
export function responseOn(req: IncomingMessage, socket: Socket): ServerResponse {
  const res = new http.ServerResponse(req);
  res.shouldKeepAlive = false;
  res.assignSocket(socket);
  socket.on('drain', () => res.emit('drain'));
  res.on('finish', () => {
    res.detachSocket(socket);
    process.nextTick(() => res.emit('close'));
    // Bytes that were sent in the hope of a tunnel are read and dropped; left unread they would turn the end into a reset.
    socket.resume();
    socket.destroySoon();
  });
  return res;
}

/** Ends our side, and drops what still comes until the client has ended its own, for `ms` at most. */
function endAndDrop(socket: Socket, ms: number): void {
  socket.end();
  socket.resume();
  const timer = setTimeout(() => socket.destroy(), ms).unref();
  socket.on('close', () => clearTimeout(timer));
}

function linger(req: IncomingMessage): void {
  if (!req.complete) req.socket.destroy();
}

function refuseInbound(req: IncomingMessage): Refusal | undefined {
  if (req.httpVersionMajor !== 1 || req.httpVersionMinor !== 1) return undefined;
  if (req.headers.host === undefined) return REFUSALS.hostMissing;
  const { expect } = req.headers;
  return expect === undefined || expect.toLowerCase() === '100-continue' ? undefined : REFUSALS.expectationFailed;
}

/**
 * The parser stops behind a request that offers an upgrade and drops the rest of the packet, also where the offer is not
 * taken. The requests in there must not be waited for, and no later answer may be taken for theirs.
 */
function isUpgradeNotTaken({ headers }: IncomingMessage): boolean {
  return headers.upgrade !== undefined && headers.connection?.toLowerCase().includes('upgrade') === true;
}

function isWebSocket(req: IncomingMessage): boolean {
  const { headers } = req;
  return (
    req.method === 'GET' &&
    req.httpVersionMajor === 1 &&
    req.httpVersionMinor === 1 &&
    headers.upgrade?.toLowerCase() === 'websocket' &&
    headers['content-length'] === undefined &&
    headers['transfer-encoding'] === undefined
  );
}
