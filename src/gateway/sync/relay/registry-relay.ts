// Carries one request after the other to the registry with http-proxy-3, each on a connection of its own, and its
// response back as a stream. The head of a response is written here, because the status must be seen before a byte of
// it is sent. A response that breaks off never looks whole to the caller. http-proxy-3 is used only for a peer that is
// trusted and seldom asked.
import type { ClientRequest, IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http';
import { createProxyServer, type ProxyServer } from 'http-proxy-3';
import { breakOff } from '../../client-response.ts';
import { HOP_BY_HOP } from '../../header-rules.ts';
import { hasBody, namedByConnection } from '../../headers.ts';

export type RelayTimeouts = {
  /** Longest wait until the registry takes the connection. */
  readonly connectMs: number;
  /** Longest wait from the request's last byte to the head of the response. */
  readonly headersMs: number;
  /** Longest silence, without a byte either way. */
  readonly idleMs: number;
};

type RelayOptions = {
  readonly registryUrl: URL;
  readonly timeouts: RelayTimeouts;
  /** Limit of a request body, in bytes. */
  readonly bodyLimit: number;
};

/** Events for the caller of `send`; nothing of a response was sent before `onAway` and `onTooLarge`. */
type RelayEvents = {
  /** The registry gave no response, or one that says that it is not there. */
  readonly onAway: () => void;
  /** The body has more bytes than the limit. */
  readonly onTooLarge: () => void;
  /** The registry has answered. */
  readonly onThere: () => void;
};

type Relay = {
  readonly send: (req: IncomingMessage, res: ServerResponse, events: RelayEvents) => void;
  /** Requests and event streams on their way. */
  readonly inFlight: () => number;
  readonly endStreams: () => void;
  /** Destroys every connection to the registry. */
  readonly close: () => void;
};

type RelayedRequest = {
  readonly events: RelayEvents;
  /** The request to the registry, once it has a socket. */
  call: ClientRequest | undefined;
  /** The registry's, while it is passed on. */
  response: IncomingMessage | undefined;
};

/** Statuses that say that the registry cannot answer, or that a gateway has no registry behind it. */
const AWAY: ReadonlySet<number> = new Set([502, 503, 504]);
/** Headers that are not passed on: the connection's own, the engine's, and claims about who is calling. */
const NOT_RELAYED: ReadonlySet<string> = new Set([
  ...HOP_BY_HOP,
  ...['host', 'content-length', 'expect', 'forwarded', 'x-real-ip'],
  // A sidecar takes no session of the desk, and hands none on.
  ...['cookie', 'tollgate-desk'],
  ...['x-forwarded-for', 'x-forwarded-host', 'x-forwarded-proto', 'x-forwarded-port', 'x-forwarded-prefix'],
]);
const NOT_RETURNED: ReadonlySet<string> = new Set(HOP_BY_HOP);

export function createRelay({ registryUrl, timeouts, bodyLimit }: RelayOptions): Relay {
  const inFlight = new Map<ServerResponse, RelayedRequest>();
  const engine = createEngine(registryUrl, timeouts);

  /** Ends a relayed request, so that later events of the engine mean nothing for it; undefined if it was over before. */
  const finish = (req: IncomingMessage, res: ServerResponse): RelayedRequest | undefined => {
    const relayed = inFlight.get(res);
    inFlight.delete(res);
    relayed?.response?.unpipe(res);
    relayed?.call?.destroy();
    // The rest of an upload is read and dropped; the listener bounds how long that may take.
    if (relayed !== undefined && !req.complete) req.unpipe().resume();
    return relayed;
  };

  const fail = (req: IncomingMessage, res: ServerResponse, event: 'onAway' | 'onTooLarge'): void => {
    const relayed = finish(req, res);
    if (relayed === undefined) return;
    if (res.headersSent) breakOff(req, res);
    else relayed.events[event]();
  };

  engine.on('proxyReq', (call, req, res) => {
    const relayed = inFlight.get(res);
    if (relayed === undefined) {
      call.destroy();
      return;
    }
    relayed.call = call;
    let headTimer: NodeJS.Timeout | undefined;
    call.once('finish', () => {
      if (relayed.response === undefined) headTimer = setTimeout(fail, timeouts.headersMs, req, res, 'onAway');
    });
    call.once('response', () => clearTimeout(headTimer));
    call.once('close', () => {
      clearTimeout(headTimer);
      // A 101 that was not asked for ends without a response and without an error.
      if (relayed.response?.complete !== true) fail(req, res, 'onAway');
    });
  });

  engine.on('proxyRes', (response, req, res) => {
    const relayed = inFlight.get(res);
    if (relayed === undefined) return;
    const status = response.statusCode ?? 0;
    if (AWAY.has(status)) {
      fail(req, res, 'onAway');
      return;
    }
    relayed.events.onThere();
    relayed.response = response;
    try {
      res.writeHead(status, returnedHeaders(response.rawHeaders));
      // The headers leave in latin1, as they came; flushHeaders would write them as UTF-8.
      res.write('', 'latin1');
    } catch {
      finish(req, res);
      res.destroy();
      return;
    }
    response.pipe(res);
  });

  return {
    send: (req, res, events) => {
      inFlight.set(res, { events, call: undefined, response: undefined });
      res.on('close', () => finish(req, res));
      if (hasBody(req)) {
        let size = 0;
        req.on('data', (chunk: Buffer) => {
          size += chunk.length;
          if (size > bodyLimit) fail(req, res, 'onTooLarge');
        });
        if (req.headers.expect !== undefined && req.httpVersionMinor === 1) res.writeContinue();
      }
      // The engine takes the headers from the request; `events` may read the caller's own there.
      const { headers } = req;
      engine.web(req, res, () => fail(req, res, 'onAway'));
      req.headers = headers;
    },
    inFlight: () => inFlight.size,
    endStreams: () => {
      for (const [res, { response }] of inFlight) {
        if (response === undefined || !isEventStream(response)) continue;
        finish(res.req, res);
        res.end();
      }
    },
    close: () => {
      for (const res of inFlight.keys()) fail(res.req, res, 'onAway');
    },
  };
}

/**
 * http-proxy-3 with what it gets wrong put right. It gives a chunked DELETE an empty length and sends the body all the
 * same. It joins repeated headers and passes hop-by-hop ones on. So a pass of ours, in front of its last one, writes
 * the headers anew. The head of a response is written here, after a look at the status.
 */
function createEngine(registryUrl: URL, { connectMs, idleMs }: RelayTimeouts): ProxyServer {
  // The client reads this variable at every request; fetch would follow redirects, with the caller's credentials.
  delete process.env['FORCE_FETCH_PATH'];
  const engine = createProxyServer({
    target: registryUrl,
    // The target goes out as it came, below the path of the registry.
    toProxy: true,
    changeOrigin: true,
    selfHandleResponse: true,
    connectTimeout: connectMs,
    proxyTimeout: idleMs,
  });
  engine.before('web', 'stream', (req) => void (req.headers = requestHeaders(req)));
  return engine;
}

/** Reads the request's headers from the raw ones; a repeated name stands once, with its values in order. */
function requestHeaders({ rawHeaders, headersDistinct }: IncomingMessage): IncomingHttpHeaders {
  const raw = endToEnd(rawHeaders, NOT_RELAYED, headersDistinct['connection']?.join(','));
  const [length] = headersDistinct['content-length'] ?? [];
  if (headersDistinct['transfer-encoding'] !== undefined) raw.push('Transfer-Encoding', 'chunked');
  else if (length !== undefined) raw.push('Content-Length', length);
  const headers = new Map<string, [name: string, values: string[]]>();
  for (let i = 0; i + 1 < raw.length; i += 2) {
    const [name = '', value = ''] = raw.slice(i, i + 2);
    const known = headers.get(name.toLowerCase());
    if (known === undefined) headers.set(name.toLowerCase(), [name, [value]]);
    else known[1].push(value);
  }
  return Object.fromEntries(headers.values());
}

function returnedHeaders(raw: readonly string[]): string[] {
  const connection = raw.filter((_, i) => i % 2 === 1 && raw[i - 1]?.toLowerCase() === 'connection').join(',');
  return endToEnd(raw, NOT_RETURNED, connection === '' ? undefined : connection);
}

/** Leaves out the headers of one connection: those with such a name, and those that `connection` names. */
function endToEnd(raw: readonly string[], dropped: ReadonlySet<string>, connection: string | undefined): string[] {
  const named = namedByConnection(connection);
  const out: string[] = [];
  for (let i = 0; i + 1 < raw.length; i += 2) {
    const name = (raw[i] ?? '').toLowerCase();
    if (!dropped.has(name) && named?.has(name) !== true) out.push(raw[i] ?? '', raw[i + 1] ?? '');
  }
  return out;
}

function isEventStream({ headers }: IncomingMessage): boolean {
  return headers['content-type']?.toLowerCase().startsWith('text/event-stream') === true;
}
