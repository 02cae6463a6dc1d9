// One request and its answer: where the answer goes, the record that is counted and logged, and that both happen once.
// A client that asked for a WebSocket is answered through a response made on its bare socket, so that there is one way
// to answer. Knows nothing of routes or money.
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { problem, type Problem } from '../domain/problem.ts';
import type { Clock } from '../host/clock.ts';
import type { Log } from '../host/log.ts';
import type { WriteBatch } from '../host/outbox.ts';
import { respond } from '../host/respond.ts';
import { responseOn } from '../host/server.ts';
import type { ReleasePlace } from './client-places.ts';
import type { Collector } from './collect.ts';
import type { ForwardOutcome } from './forward-order.ts';
import { hasBody } from './headers.ts';
import type { AnswerOutcome } from './outcome.ts';
import type { RequestRecord, Telemetry } from './telemetry.ts';
import { NO_TRACE, type Trace } from './trace.ts';

export type Client =
  | { readonly kind: 'response'; readonly res: ServerResponse }
  | { readonly kind: 'socket'; readonly socket: Socket; readonly head: Buffer };

export type Exchange = {
  readonly req: IncomingMessage;
  readonly client: Client;
  readonly record: RequestRecord;
  trace: Trace;
  /** The peer may speak for others. */
  trusted: boolean;
  /** Some route protects its path; so until it is known. */
  protectedPath: boolean;
  /** Gives the client's place back, where it holds one. */
  release: ReleasePlace | undefined;
};

export type ExchangeDeps = {
  readonly telemetry: Telemetry;
  readonly clock: Clock;
  readonly log: Log;
  readonly refuse: Collector['refuse'];
  readonly outbox: WriteBatch;
};

export type Exchanges = {
  readonly begin: (req: IncomingMessage, client: Client) => Exchange;
  readonly answer: (exchange: Exchange, outcome: AnswerOutcome) => void;
  /** What forwarding came to; answers with a Problem where nothing reached the client yet. */
  readonly finish: (exchange: Exchange, forwarded: ForwardOutcome) => void;
};

/** The client closed the request first: sent to nobody, it only names the case in logs and metrics. */
const CLIENT_CLOSED_REQUEST = 499;
/** An unread request body up to this size is read to its end and dropped; for a larger one the connection is closed. */
const DRAINED_BODY_BYTES = 64 * 1024;
const SHOWN_TARGET = 256;

const UPSTREAM_FAILED = {
  upstream_unreachable: 'The upstream could not be reached, or its answer could not be read.',
  upstream_timeout: 'The upstream did not answer in time.',
};

export function createExchanges({ telemetry, clock, log, refuse, outbox }: ExchangeDeps): Exchanges {
  const end = (exchange: Exchange): void => {
    exchange.release?.();
    exchange.release = undefined;
    telemetry.end(exchange.record, clock.monotonic());
  };

  const answer = (exchange: Exchange, outcome: AnswerOutcome, closes = leavesBodyUnread(exchange.req)): void => {
    const { req, client, record } = exchange;
    // Refused before it had a canonical path.
    if (record.path === '') record.path = shownTarget(req.url ?? '');
    record.outcome = outcome.outcome;
    record.reason = outcome.reason;
    record.chargeId = outcome.chargeId;
    record.routeId ??= outcome.routeId;
    record.status = outcome.answer.status;
    const res = client.kind === 'response' ? client.res : responseOn(req, client.socket);
    const { delivered } = outcome;
    if (delivered !== undefined) tellDelivery(req, res, delivered);
    const added = ['X-Request-Id', record.requestId];
    if (closes) added.push('Connection', 'close');
    // What is wrong with a body ends the connection: the answer has to be out before it is read.
    respond(res, outcome.answer, req.method === 'HEAD', added, hasBody(req) ? undefined : outbox);
    end(exchange);
  };

  return {
    answer: (exchange, outcome) => answer(exchange, outcome),
    begin: (req, client) => {
      telemetry.begin();
      const record: RequestRecord = {
        startedAt: clock.monotonic(),
        method: req.method ?? '',
        requestId: '',
        traceId: undefined,
        path: '',
        target: '',
        routeId: undefined,
        outcome: 'free',
        status: 0,
        reason: undefined,
        chargeId: undefined,
        customerId: undefined,
        payer: undefined,
        amount: undefined,
        currency: undefined,
        upstreamMs: undefined,
        client: req.socket.remoteAddress,
        ended: false,
      };
      return { req, client, record, trace: NO_TRACE, trusted: false, protectedPath: true, release: undefined };
    },
    finish: (exchange, forwarded) => {
      const { record } = exchange;
      switch (forwarded.kind) {
        case 'delivered':
        case 'replaced':
          record.status = forwarded.status;
          record.upstreamMs = forwarded.upstreamMs;
          return end(exchange);
        case 'client_gone':
          if (forwarded.upload === 'stalled')
            return answer(exchange, refuse(uploadStalled(), exchange.req.headers.origin), true);
          record.status = forwarded.status ?? CLIENT_CLOSED_REQUEST;
          record.reason = 'client_gone';
          return end(exchange);
        case 'not_sent':
          record.status = CLIENT_CLOSED_REQUEST;
          record.reason = 'client_gone';
          return end(exchange);
        case 'failed':
          log.warn('upstream failed', { request_id: record.requestId, code: forwarded.code, detail: forwarded.detail });
          if (!forwarded.headersSent) {
            return answer(
              exchange,
              refuse(problem(forwarded.code, UPSTREAM_FAILED[forwarded.code]), exchange.req.headers.origin),
            );
          }
          record.outcome = 'error';
          record.reason = forwarded.code;
          return end(exchange);
        default:
          return forwarded satisfies never;
      }
    },
  };
}

/**
 * A raw target for the log: up to its query, visible ASCII, without a user's name and password, 256 characters at most.
 */
function shownTarget(target: string): string {
  const [path = ''] = target.split('?', 1);
  const shown = path
    .slice(0, 4 * SHOWN_TARGET)
    .replace(/^([A-Za-z][A-Za-z0-9+.-]*:)?\/\/[^/]*@/, '$1//')
    .replace(/[^\x21-\x7e]/g, (character) => `%${character.charCodeAt(0).toString(16).toUpperCase().padStart(2, '0')}`);
  return shown.length <= SHOWN_TARGET ? shown : shown.slice(0, SHOWN_TARGET).replace(/%[0-9A-Fa-f]?$/, '');
}

function uploadStalled(): Problem {
  return problem('request_timeout', 'Nothing of the request body arrived for too long.');
}

function tellDelivery(req: IncomingMessage, res: ServerResponse, delivered: (whole: boolean) => void): void {
  let finished = false;
  res.once('finish', () => (finished = true));
  res.once('close', () => delivered(finished && !req.socket.destroyed));
}

/**
 * Whether answering now leaves a body on the connection that nobody will read: one that waits for `100 Continue`, one
 * of unknown length, or a large one.
 */
function leavesBodyUnread({ headers, complete }: IncomingMessage): boolean {
  if (headers['transfer-encoding'] !== undefined || headers.expect !== undefined) return !complete;
  return Number(headers['content-length'] ?? 0) > DRAINED_BODY_BYTES && !complete;
}
