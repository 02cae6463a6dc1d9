// `sync.listen`: the interface's endpoints on the sidecar, so that SDKs beside it need to know one address. Requests go to
// the registry as they are, with the caller's own credentials and never with ours, and come back as a stream, events
// included. While the registry is away stand-in.ts answers what it can; the rest is 503. Knows nothing of traffic that
// costs money: it has no way to the customer's API.
import type { IncomingMessage, ServerResponse } from 'node:http';
import { problem, type Problem } from '../../domain/problem.ts';
import { respond, type Answer } from '../../host/respond.ts';
import type { Transport, UpstreamCall } from '../../http/transport.ts';
import { breakOff } from '../client-answer.ts';
import { problemAnswer } from '../collect.ts';
import { HOP_BY_HOP } from '../header-rules.ts';
import { hasBody, inspectInbound, namedByConnection } from '../headers.ts';
import type { StandIn } from './stand-in.ts';
import type { Sync } from './sync.ts';

export type RelayApiOptions = {
  /** To the registry's host. */
  readonly transport: Transport;
  readonly registryUrl: URL;
  readonly standIn: StandIn;
  readonly sync: Pick<Sync, 'status' | 'nudge'>;
  readonly limits?: Partial<RelayApiLimits>;
};

export type RelayApiLimits = {
  /** Requests and event streams at a time; one more is 503. */
  readonly relayed: number;
  /** Bytes of a request body; one more is 413. Above what our registry takes, which says so itself. */
  readonly body: number;
};

export const RELAY_API_LIMITS: RelayApiLimits = { relayed: 500, body: 1024 * 1024 };

export type RelayApi = {
  readonly handle: (req: IncomingMessage, res: ServerResponse) => void;
  /** Ends the event streams, so that nobody waits for them when the process stops. */
  readonly endStreams: () => void;
};

const PATH = /^\/(?:v1(?:\/[A-Za-z0-9_~.-]+)+|openapi\.json)\/?$/;
const DOTS = /\/\.\.?(?:\/|$)/;
const RETRY_SECONDS = '5';
/** How a gateway in front of the registry says that nobody is behind it, and how the registry says that it cannot. */
const AWAY: ReadonlySet<number> = new Set([502, 503, 504]);
/** Not ours to pass on: the connection's own, what Node writes itself, and claims about who is calling. */
const NOT_RELAYED: ReadonlySet<string> = new Set([
  ...HOP_BY_HOP,
  ...['host', 'content-length', 'expect', 'forwarded', 'x-real-ip'],
  ...['x-forwarded-for', 'x-forwarded-host', 'x-forwarded-proto', 'x-forwarded-port', 'x-forwarded-prefix'],
]);
const NOT_RETURNED: ReadonlySet<string> = new Set(HOP_BY_HOP);

export function createRelayApi(options: RelayApiOptions): RelayApi {
  const { transport, registryUrl, standIn, sync } = options;
  const limits = { ...RELAY_API_LIMITS, ...options.limits };
  const base = registryUrl.pathname.replace(/\/+$/, '');
  const streams = new Set<ServerResponse>();
  let relayed = 0;

  const answer = (req: IncomingMessage, res: ServerResponse, given: Answer): void => {
    if (!req.complete) req.resume();
    respond(res, given, req.method === 'HEAD');
  };
  const refuse = (req: IncomingMessage, res: ServerResponse, refusal: Problem): void =>
    answer(req, res, problemAnswer(refusal));

  /** The last good set's answer where there is one, else that the registry is away. */
  const standFor = (req: IncomingMessage, res: ServerResponse, path: string, query: string): void => {
    const own = standIn.answer(req, path, query);
    if (own === undefined) return refuse(req, res, registryAway());
    own.then(
      (given) => answer(req, res, given),
      () => refuse(req, res, registryAway()),
    );
  };

  const relay = (req: IncomingMessage, res: ServerResponse, target: string, away: () => void): void => {
    relayed++;
    let call: UpstreamCall | undefined;
    let over = false;
    const finish = (): void => {
      if (over) return;
      over = true;
      relayed--;
      streams.delete(res);
      call?.abort();
      // What is left of an upload that nobody reads any more; the listener bounds how long that may take.
      if (!req.complete) req.resume();
    };
    const body = hasBody(req) ? req : undefined;
    let size = 0;
    const onBody = (chunk: Buffer): void => {
      size += chunk.length;
      if (size <= limits.body || over) return;
      finish();
      if (res.headersSent) breakOff(req, res);
      else refuse(req, res, tooLarge(limits.body));
    };
    res.on('close', finish);
    if (body !== undefined && req.headers.expect !== undefined && req.httpVersionMinor === 1) res.writeContinue();
    call = transport.send(
      { method: req.method ?? 'GET', target, headers: requestHeaders(req, registryUrl.host), body, upgrade: false },
      {
        onInformation: () => undefined,
        onHead: (status, raw) => {
          if (over) return;
          if (AWAY.has(status)) {
            finish();
            away();
            return;
          }
          // It is there again, and the sync may not know yet.
          if (sync.status().away) sync.nudge();
          const headers = returnedHeaders(raw);
          if (isEventStream(headers)) streams.add(res);
          try {
            res.writeHead(status, headers);
            // As latin1, as they came; flushHeaders would write them as UTF-8.
            res.write('', 'latin1');
          } catch {
            finish();
            res.destroy();
          }
        },
        onData: (chunk, release) => {
          if (over || res.write(release === undefined ? Buffer.from(chunk) : chunk, release)) return;
          call?.pause();
          res.once('drain', () => call?.resume());
        },
        onEnd: () => {
          if (!over) res.end();
        },
        onUpgrade: (_headers, socket) => void socket.destroy(),
        onFailure: () => {
          if (over) return;
          finish();
          if (res.headersSent) breakOff(req, res);
          else away();
        },
      },
    );
    body?.on('data', onBody);
  };

  return {
    handle: (req, res) => {
      const malformed = inspectInbound(req);
      if (malformed !== undefined) return refuse(req, res, malformed);
      const url = req.url ?? '';
      const mark = url.indexOf('?');
      const rawPath = mark < 0 ? url : url.slice(0, mark);
      if (!PATH.test(rawPath) || DOTS.test(rawPath)) {
        return refuse(req, res, problem('not_found', 'There is nothing at this path.'));
      }
      if (Number(req.headers['content-length'] ?? 0) > limits.body) return refuse(req, res, tooLarge(limits.body));
      const path = rawPath.replace(/\/$/, '');
      const query = mark < 0 ? '' : url.slice(mark + 1);
      // A registry that accepts and says nothing would cost every caller its time-out; the polls find out when it is back.
      const known = sync.status().away ? standIn.answer(req, path, query) : undefined;
      if (known !== undefined) {
        known.then(
          (given) => answer(req, res, given),
          () => refuse(req, res, registryAway()),
        );
        return;
      }
      if (relayed >= limits.relayed) return refuse(req, res, tooMany(limits.relayed));
      relay(req, res, base + url, () => standFor(req, res, path, query));
    },
    endStreams: () => {
      for (const res of streams) res.end();
    },
  };
}

function requestHeaders(req: IncomingMessage, host: string): string[] {
  const out = ['Host', host, ...endToEnd(req.rawHeaders, NOT_RELAYED, req.headers.connection)];
  if (req.headers['transfer-encoding'] !== undefined) out.push('Transfer-Encoding', 'chunked');
  else if (req.headers['content-length'] !== undefined) out.push('Content-Length', req.headers['content-length']);
  return out;
}

function returnedHeaders(raw: readonly string[]): string[] {
  const connection = raw.filter((_, i) => i % 2 === 1 && raw[i - 1]?.toLowerCase() === 'connection').join(',');
  return endToEnd(raw, NOT_RETURNED, connection === '' ? undefined : connection);
}

/** Without what belongs to one connection, by name or because `connection` names it. */
function endToEnd(raw: readonly string[], dropped: ReadonlySet<string>, connection: string | undefined): string[] {
  const named = namedByConnection(connection);
  const out: string[] = [];
  for (let i = 0; i + 1 < raw.length; i += 2) {
    const name = (raw[i] ?? '').toLowerCase();
    if (!dropped.has(name) && named?.has(name) !== true) out.push(raw[i] ?? '', raw[i + 1] ?? '');
  }
  return out;
}

function isEventStream(headers: readonly string[]): boolean {
  return headers.some((name, i) => i % 2 === 0 && isTypeOfEvents(name, headers[i + 1]));
}

function isTypeOfEvents(name: string, value: string | undefined): boolean {
  return name.toLowerCase() === 'content-type' && value?.toLowerCase().startsWith('text/event-stream') === true;
}

function registryAway(): Problem {
  return problem('registry_unavailable', 'The registry does not answer; try again later.', {
    headers: { 'Retry-After': RETRY_SECONDS },
  });
}

function tooMany(limit: number): Problem {
  return problem('registry_unavailable', `More than ${limit} requests are on their way to the registry; try again.`, {
    headers: { 'Retry-After': '1' },
  });
}

function tooLarge(limit: number): Problem {
  return problem('body_too_large', `The body is larger than ${limit} bytes.`);
}
