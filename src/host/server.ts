// A listener: node:http with every limit set, used alike by the proxy, the registry and the admin port. What happens on one
// connection is client-connection.ts'. Knows no domain word.
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { Server as NetServer, type Socket } from 'node:net';
import {
  followConnections,
  type ClientConnection,
  type ListenerHandlers,
  type ListenerState,
} from './client-connection.ts';
import type { Refusals } from './listener-refusals.ts';
import type { Log } from './log.ts';
import { http } from './node-http.ts';

export type ListenerOptions = {
  /** Name of the listener in the log. */
  readonly name: string;
  readonly listen: { readonly host: string; readonly port: number };
  readonly limits: {
    /** Limit of request line and headers in bytes; one more is 431, or 414 if the target alone is longer. */
    readonly headers: number;
    /** Connections at a time; one more is closed at once. */
    readonly connections: number;
  };
  readonly timeouts: {
    /** Time for a client to send its headers; then 408. */
    readonly headersMs: number;
    /** Time without a byte of an upload, or of an answer that is ready, after which a connection is closed. */
    readonly idleMs: number;
    /** Time in which what a client still sends after its answer is dropped: 5 s. */
    readonly lingerMs?: number;
    /** Time in a drain for a connection without a request yet, whose client may be about to send one: 1 s. */
    readonly freshMs?: number;
  };
  /** The words in which it refuses by itself. */
  readonly refusals: Refusals;
  readonly log: Log;
};

export type Listener = {
  /** Rejects if the port cannot be bound. */
  readonly start: () => Promise<{ readonly address: string; readonly port: number }>;
  /**
   * Drains the listener. From now on answers carry `Connection: close`; after `delayMs` nothing is accepted any more
   * and idle connections are closed; `totalMs` after the call what is left is destroyed. Resolves when all are closed.
   */
  readonly drain: (delayMs: number, totalMs: number) => Promise<void>;
  /** Makes answers carry `Connection: close` from now on. */
  readonly announceEnd: () => void;
  /** Opens without `start`: connections come by `take`, from a process that accepts them. */
  readonly open: () => void;
  readonly take: (socket: Socket) => void;
  /** Connections that are open. */
  readonly connections: () => number;
  /** Requests being answered and upgraded connections. */
  readonly inFlight: () => number;
};

const LINGER_MS = 5000;
const FRESH_MS = 1000;

export function createListener(options: ListenerOptions, handlers: ListenerHandlers): Listener {
  const { name, limits, timeouts, refusals, log } = options;
  const { idleMs, lingerMs = LINGER_MS, freshMs = FRESH_MS } = timeouts;
  const state: ListenerState = { name, handlers, refusals, log, idleMs, lingerMs, inFlight: 0, phase: 'open' };
  const connections = new Map<Socket, ClientConnection>();
  const server = createServer(options, (req) => {
    return handlers.upgrade !== undefined && isWebSocket(req) && connections.get(req.socket)?.isFree !== false;
  });
  const all = followConnections(server, connections, state, limits.connections);
  const sweeper = setInterval(
    () => {
      const now = performance.now();
      for (const connection of connections.values()) connection.closeIfIdle(now);
    },
    Math.min(1000, Math.max(10, idleMs / 8)),
  ).unref();

  const announceEnd = (): void => {
    state.phase = 'draining';
    for (const connection of connections.values()) connection.closeAfterCurrent();
  };

  return {
    start: () => listen(server, options),
    // The watch for slow headers begins with this event.
    open: () => void server.emit('listening'),
    take: (socket) => {
      if (connections.size >= limits.connections) {
        server.emit('drop');
        socket.destroy();
        return;
      }
      // The socket is set as those that the server accepts itself.
      socket.allowHalfOpen = true;
      server.emit('connection', socket);
    },
    connections: () => connections.size,
    announceEnd,
    drain: async (delayMs, totalMs) => {
      announceEnd();
      const deadline = setTimeout(() => {
        for (const connection of connections.values()) connection.destroy();
      }, totalMs);
      if (delayMs > 0) await new Promise((resolve) => setTimeout(resolve, Math.min(delayMs, totalMs)));
      state.phase = 'closing';
      // An HTTP server's own would also close connections that have not brought a request.
      NetServer.prototype.close.call(server);
      for (const connection of connections.values()) if (!connection.isFresh) connection.closeUnlessBusy();
      const grace = setTimeout(() => {
        for (const connection of connections.values()) connection.closeUnlessBusy();
      }, freshMs);
      await all.closed();
      server.close();
      clearInterval(sweeper);
      clearTimeout(deadline);
      clearTimeout(grace);
    },
    inFlight: () => state.inFlight,
  };
}

/** Makes the server. `takesUpgrade` tells whether a request becomes an upgrade; else it is a request like others. */
function createServer({ limits, timeouts }: ListenerOptions, takesUpgrade: (req: IncomingMessage) => boolean): Server {
  const server = http.createServer({
    // Set here, so that --insecure-http-parser cannot weaken it.
    httpValidation: 'strict',
    maxHeaderSize: limits.headers,
    // A missing Host is answered by us, with a body that says why.
    requireHostHeader: false,
    headersTimeout: timeouts.headersMs,
    // A large upload takes as long as it takes; one that stops is ended by the idle time-out.
    requestTimeout: 0,
    connectionsCheckingInterval: Math.min(1000, Math.max(20, timeouts.headersMs / 4)),
    // Idle connections are found by one timer for all: one of each socket's own would be set again with every request.
    keepAliveTimeout: 0,
    // A request without a body has nothing that would have to be read to its end.
    optimizeEmptyRequests: true,
    shouldUpgradeCallback: takesUpgrade,
  });
  server.maxConnections = limits.connections;
  server.timeout = 0;
  return server;
}

function listen(
  server: Server,
  { name, listen: { host, port }, log }: ListenerOptions,
): Promise<{ readonly address: string; readonly port: number }> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, host, () => {
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
  });
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
    // The bytes that were sent in the hope of a tunnel are read and dropped; left unread they would turn the end into a
    // reset.
    socket.resume();
    socket.destroySoon();
  });
  return res;
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
