// Serves `sync.listen`: the interface's endpoints on the sidecar, so that SDKs beside it need to know one address.
// Requests go to the registry as they are, with the caller's own credentials and never with ours, and come back as a
// stream, events included. While the registry is away offline-responses.ts answers what it can; the rest is 503. Knows
// nothing of traffic that costs money: it has no way to the customer's API.
import type { IncomingMessage, ServerResponse } from 'node:http';
import { problem, renderProblem, type Problem } from '../../../domain/problem.ts';
import { respond, type OwnResponse } from '../../../host/respond.ts';
import { inspectInbound } from '../../headers.ts';
import { createRelay, type RelayTimeouts } from './registry-relay.ts';
import type { OfflineResponses } from './offline-responses.ts';
import type { Sync } from '../sync.ts';

type RelayApiOptions = {
  readonly registryUrl: URL;
  readonly offlineResponses: OfflineResponses;
  readonly sync: Pick<Sync, 'status' | 'nudge'>;
  readonly limits?: Partial<RelayApiLimits>;
  readonly timeouts?: Partial<RelayTimeouts>;
};

export type RelayApiLimits = {
  /** Requests and event streams at a time; one more is 503. */
  readonly relayed: number;
  /** Limit of a request body in bytes; one more is 413. It is above what our registry takes, which says so itself. */
  readonly body: number;
};

const RELAY_API_LIMITS: RelayApiLimits = { relayed: 500, body: 1024 * 1024 };
const TIMEOUTS: RelayTimeouts = { connectMs: 3_000, headersMs: 10_000, idleMs: 60_000 };

export type RelayApi = {
  readonly handle: (req: IncomingMessage, res: ServerResponse) => void;
  /** Requests and event streams that are relayed now. */
  readonly inFlight: () => number;
  /** Ends the event streams, so that the process can stop without waiting for them. */
  readonly endStreams: () => void;
  /** Destroys every connection to the registry. */
  readonly close: () => void;
};

const PATH = /^\/(?:v1(?:\/[A-Za-z0-9_~.-]+)+|openapi\.json)\/?$/;
const DOTS = /\/\.\.?(?:\/|$)/;
const RETRY_SECONDS = 5;

export function createRelayApi(options: RelayApiOptions): RelayApi {
  const { registryUrl, offlineResponses, sync } = options;
  const limits = { ...RELAY_API_LIMITS, ...options.limits };
  const timeouts = { ...TIMEOUTS, ...options.timeouts };
  const relay = createRelay({ registryUrl, timeouts, bodyLimit: limits.body });

  const answer = (req: IncomingMessage, res: ServerResponse, given: OwnResponse): void => {
    if (!req.complete) req.resume();
    respond(res, given, req.method === 'HEAD');
  };
  const refuse = (req: IncomingMessage, res: ServerResponse, refusal: Problem): void =>
    answer(req, res, renderProblem(refusal));

  /** Responds from the last good set; false if it cannot. */
  const standFor = (req: IncomingMessage, res: ServerResponse, path: string, query: string): boolean => {
    const own = offlineResponses.answer(req, path, query);
    own?.then(
      (given) => answer(req, res, given),
      () => refuse(req, res, registryAway()),
    );
    return own !== undefined;
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
      if (sync.status().away && standFor(req, res, path, query)) return;
      if (relay.inFlight() >= limits.relayed) return refuse(req, res, tooMany(limits.relayed));
      relay.send(req, res, {
        onAway: () => {
          if (!standFor(req, res, path, query)) refuse(req, res, registryAway());
        },
        onTooLarge: () => refuse(req, res, tooLarge(limits.body)),
        // The registry is there again, and the sync may not know yet.
        onThere: () => {
          if (sync.status().away) sync.nudge();
        },
      });
    },
    inFlight: relay.inFlight,
    endStreams: relay.endStreams,
    close: relay.close,
  };
}

function registryAway(): Problem {
  return problem('registry_unavailable', 'The registry does not answer; try again later.', {
    retryAfter: RETRY_SECONDS,
  });
}

function tooMany(limit: number): Problem {
  return problem('registry_unavailable', `More than ${limit} requests are on their way to the registry; try again.`, {
    retryAfter: 1,
  });
}

function tooLarge(limit: number): Problem {
  return problem('body_too_large', `The body is larger than ${limit} bytes.`);
}
