// How an exchange that was forwarded ends, and what that is in its record. Each has exactly one end: its payment, the
// log and the metrics are told that.
import { problem, type Problem } from '../domain/problem.ts';
import type { UpstreamFault } from '../http/transport.ts';
import type { KeptResponse } from './kept-responses.ts';
import type { RequestOutcome, RequestRecord } from './telemetry.ts';

export type End =
  /** The last byte was handed to the client's socket without error; of a tunnel its 101. */
  | {
      readonly kind: 'delivered';
      readonly status: number;
      /** Until the response was there whole; the time for which it was held does not count. */
      readonly upstreamMs: number;
      /** The response, if it was kept: the receiver's to drop. */
      readonly kept: KeptResponse | undefined;
    }
  /** The client got a response of ours in place of the upstream's. */
  | { readonly kind: 'replaced'; readonly status: number; readonly upstreamMs: number }
  | ClientGone
  /** The client went away before anything was sent upstream. */
  | { readonly kind: 'not_sent' }
  /**
   * `headersSent` false: nothing was written, the client is told. True: its connection was destroyed. `status`: the
   * upstream's, if its head was there.
   */
  | ({ readonly kind: 'failed'; readonly headersSent: boolean; readonly status: number | undefined } & UpstreamFault);

/** The client went away first. */
export type ClientGone = {
  readonly kind: 'client_gone';
  /** The upstream's, or of what replaced its response; undefined: there was none yet. */
  readonly status: number | undefined;
  /** The client was sent a head. */
  readonly headSent: boolean;
  /** The upstream failed afterwards, while its response was read on. */
  readonly failed: boolean;
  /**
   * `broken_off`: it left in the middle of its upload, which no upstream can answer. `stalled`: it sent nothing of it for
   * too long; it got nothing yet, and is told so.
   */
  readonly upload: 'whole' | 'broken_off' | 'stalled';
  /** The response that it would have had, whole: the receiver's to drop. */
  readonly kept: KeptResponse | undefined;
};

/** The client closed the request first: never sent, it only names the case in logs and metrics. */
const CLIENT_CLOSED_REQUEST = 499;

const UPSTREAM_FAILED = {
  upstream_unreachable: 'The upstream could not be reached, or its answer could not be read.',
  upstream_timeout: 'The upstream did not answer in time.',
};

/**
 * Writes `end` into `record`. `tookMoney`: of a claimed charge. Returns what the client is still to be told, if it was told
 * nothing.
 */
export function noteEnd(record: RequestRecord, end: End, tookMoney: boolean | undefined): Problem | undefined {
  if (tookMoney !== undefined) record.outcome = paidOutcome(end, tookMoney);
  switch (end.kind) {
    case 'delivered':
    case 'replaced':
      record.status = end.status;
      record.upstreamMs = end.upstreamMs;
      return undefined;
    case 'client_gone':
      if (end.upload === 'stalled')
        return problem('request_timeout', 'Nothing of the request body arrived for too long.');
      record.status = end.status ?? CLIENT_CLOSED_REQUEST;
      record.reason = 'client_gone';
      return undefined;
    case 'not_sent':
      record.status = CLIENT_CLOSED_REQUEST;
      record.reason = 'client_gone';
      return undefined;
    case 'failed':
      if (!end.headersSent) return problem(end.code, UPSTREAM_FAILED[end.code]);
      record.outcome = 'error';
      record.reason = end.code;
      return undefined;
    default:
      return end satisfies never;
  }
}

/** What a request came to for which a charge was claimed. A failure that its client is told is an error anyway. */
function paidOutcome(end: End, tookMoney: boolean): RequestOutcome {
  switch (end.kind) {
    case 'replaced':
      return end.status === 402 ? 'payment_required' : 'error';
    case 'delivered':
      return tookMoney ? 'paid' : 'released';
    case 'client_gone':
      return !tookMoney ? 'released' : end.headSent ? 'paid' : 'error';
    case 'not_sent':
      return tookMoney ? 'error' : 'released';
    case 'failed':
      return 'error';
    default:
      return end satisfies never;
  }
}
