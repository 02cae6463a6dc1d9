// The words between whoever decides about a request and whoever carries it: what is to be sent, what may be said about the
// answer before the client gets it, and the one outcome that each order ends in.
import type { Socket } from 'node:net';
import type { Answer } from '../host/respond.ts';
import type { UpstreamFault } from '../http/transport.ts';
import type { KeptResponse } from './kept-responses.ts';
import type { Permit } from './permit.ts';

export type ResponseVerdict =
  | {
      readonly kind: 'stream';
      /** Added to the answer's head: flat name, value pairs. */
      readonly headers: readonly string[];
      /** As in the order, from here on. */
      readonly keep?: KeptResponse;
    }
  /** The upstream's answer is dropped for this one. */
  | {
      readonly kind: 'replace';
      readonly answer: Answer;
      /** It is read into this all the same; `ended` is told once whether it is whole. */
      readonly keep?: { readonly response: KeptResponse; readonly ended: (whole: boolean) => void };
    };

export type ForwardOutcome =
  /** The last byte was handed to the client's socket without error. `upstreamMs`: to the answer's end, holding not counted. */
  | {
      readonly kind: 'delivered';
      readonly status: number;
      readonly upstreamMs: number;
      /** The response, where `keep` held it: the receiver's to drop. */
      readonly kept: KeptResponse | undefined;
    }
  | { readonly kind: 'replaced'; readonly status: number; readonly upstreamMs: number }
  | ClientGone
  /** The client went away before anything was sent upstream. */
  | { readonly kind: 'not_sent' }
  /**
   * `headersSent` false: nothing was written, the caller answers. True: the client's connection was destroyed. `status`: the
   * upstream's, where its head was there.
   */
  | ({
      readonly kind: 'failed';
      readonly headersSent: boolean;
      readonly status: number | undefined;
    } & UpstreamFault);

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
   * too long; it got nothing yet, and is told so by the caller.
   */
  readonly upload: 'whole' | 'broken_off' | 'stalled';
  /** The response that it would have had, whole: the receiver's to drop. */
  readonly kept: KeptResponse | undefined;
};

export type ForwardOrder = {
  /** Nothing goes upstream without one. */
  readonly permit: Permit;
  /** Canonical path and query, sent byte for byte. */
  readonly target: string;
  /** Complete, from headers.ts: flat name, value pairs. */
  readonly headers: readonly string[];
  /** From headers.ts: what of the answer's head crosses back to the client. `raw` may become the result. */
  responseHeaders(status: number, raw: string[]): string[];
  /**
   * For a request that is paid already: where the response is kept until it is delivered; if the client goes first the
   * upstream is not aborted until the response is whole or too large.
   */
  readonly keep?: KeptResponse | undefined;
  /** Told the upstream's final status (or 101) before anything of it reaches the client. Absent: no await. Must not reject. */
  readonly beforeResponse?: BeforeResponse | undefined;
  /** Exactly once, when all is over; for an upgrade when the 101 was handed over. */
  done(outcome: ForwardOutcome): void;
};

export type BeforeResponse = (head: { status: number; headers: readonly string[] }) => Promise<ResponseVerdict>;

/** What becomes of an upstream's 101; see upgrade.ts. */
export type Tunnel = {
  /** The offer to the upstream, added to the order's headers. */
  readonly offer: readonly string[];
  readonly accepts: (headers: readonly string[]) => boolean;
  /** Takes both sockets over; `handed` tells once whether the client has the 101. */
  readonly open: (
    headers: readonly string[],
    upstream: Socket,
    head: Buffer,
    handed: (delivered: boolean) => void,
  ) => void;
};
