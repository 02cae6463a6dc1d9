// The phases of an exchange, from its arrival to its one end. Types only: exchange.ts goes from one to the next.
import type { CallFault } from '../http/transport.ts';
import type { ClientResponse } from './client-response.ts';
import type { End } from './outcome.ts';

/** The head waits for a settlement. `ended`, `failure`: what became of the response meanwhile. */
export type HeldResponse = {
  readonly at: 'held';
  readonly since: number;
  ended: boolean;
  failure: CallFault | undefined;
};

/** The phase of an exchange. */
export type Phase =
  /** The exchange is being decided on, or its payment taken. */
  | { readonly at: 'deciding' }
  /** Sent; no head of a response is there. */
  | { readonly at: 'waiting' }
  | HeldResponse
  | { readonly at: 'streaming'; readonly response: ClientBody }
  /** The rest of the upstream's response, or ours in its place, is on its way to the client. */
  | { readonly at: 'ending'; readonly as: 'delivered' | 'replaced'; readonly upstreamMs: number; handedOver: boolean }
  /** The client left; what it paid for is read on. */
  | { readonly at: 'keeping' }
  /** The sockets of client and upstream speak to each other. */
  | { readonly at: 'tunnel' }
  /** The exchange is over. `end` says how, if it was decided to be forwarded. */
  | { readonly at: 'done'; readonly end: End | undefined };

/** Receiver of the upstream's response on its way to the client. */
export type ClientBody = Pick<ClientResponse, 'write' | 'end'>;
