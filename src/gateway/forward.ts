// Sends a permitted request upstream. http-proxy-3 is the engine, but none of its own passes runs: they parse the path
// again, let hop-by-hop headers through, take a chunked DELETE for an empty one and hang on an upstream that dies. Ours
// stands in front of the first of them and ends the chain; a version without that pass does not start.
// It has no way of its own to the upstream: what may be sent is in the order, and an order needs a Permit.
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createProxyServer } from 'http-proxy-3';
import { systemClock, type Clock } from '../host/clock.ts';
import type { Log } from '../host/log.ts';
import { createOutbox, type Outbox } from '../host/outbox.ts';
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
  readonly outbox?: Outbox;
};

export type Forwarder = {
  readonly forward: (req: IncomingMessage, res: ServerResponse, order: ForwardOrder) => void;
  /** The same connections, for upgrade.ts. */
  readonly transport: Transport;
  /** Destroys every connection to the upstream. */
  readonly close: () => void;
};

export function createForwarder(options: ForwarderOptions): Forwarder {
  const { upstream, timeouts, maxSockets = 10_000, log, clock = systemClock, outbox = createOutbox() } = options;
  const transport = createPool({ upstream, timeouts, maxSockets, outbox, now: clock.monotonic });
  const context = { transport, outbox, clock, log };

  // `web` runs its passes before it returns, so the order is handed over without a look-up.
  let handed: ForwardOrder | undefined;
  const proxy = createProxyServer({ target: upstream });
  proxy.before('web', 'deleteLength', (req, res) => {
    const order = handed;
    handed = undefined;
    if (order !== undefined) relay(context, req, res, order);
    return true;
  });
  proxy.on('error', (error) => log.error('the proxy engine reported an error', { error }));

  return {
    forward: (req, res, order) => {
      handed = order;
      proxy.web(req, res);
    },
    transport,
    close: transport.close,
  };
}
