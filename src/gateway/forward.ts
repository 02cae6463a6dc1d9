// Sends a permitted request upstream over a transport of our own: target and headers go out as the order says, byte for
// byte. It has no way of its own to the upstream: what may be sent is in the order, and an order needs a Permit.
import type { IncomingMessage, ServerResponse } from 'node:http';
import { systemClock, type Clock } from '../host/clock.ts';
import type { Log } from '../host/log.ts';
import { createOutbox, type WriteBatch } from '../host/outbox.ts';
import { createPool } from '../http/pool.ts';
import type { Transport, UpstreamTimeouts } from '../http/transport.ts';
import type { ForwardOrder } from './forward-order.ts';
import { relay } from './relay.ts';

export type ForwarderOptions = {
  /** Scheme, host and port; its path is not used. */
  readonly upstream: URL;
  readonly timeouts: UpstreamTimeouts;
  /** Connections to the upstream at most; further requests wait for one up to `timeouts.connectMs`. */
  readonly maxSockets?: number;
  readonly log: Log;
  readonly clock?: Pick<Clock, 'monotonic'>;
  readonly outbox?: WriteBatch;
};

export type Forwarder = {
  readonly forward: (req: IncomingMessage, res: ServerResponse, order: ForwardOrder) => void;
  /** The same connections, for upgrade.ts. */
  readonly transport: Transport;
  /** Destroys every connection to the upstream. */
  readonly close: () => Promise<void>;
};

export function createForwarder(options: ForwarderOptions): Forwarder {
  const { upstream, timeouts, maxSockets = 10_000, log, clock = systemClock, outbox = createOutbox() } = options;
  const transport = createPool({ upstream, timeouts, maxSockets, outbox, now: clock.monotonic });
  const context = { transport, outbox, clock, log };
  return {
    forward: (req, res, order) => relay(context, req, res, order),
    transport,
    close: transport.close,
  };
}
