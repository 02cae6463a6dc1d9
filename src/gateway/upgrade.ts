// WebSocket through the same journey: the upstream's 101 is held, settled and passed on like any other answer, and only
// then do the two sockets speak to each other. Nothing that the client sent after its handshake reaches the upstream
// before that 101, so that no byte can be taken for a second request; an answer other than 101 is an ordinary answer
// with `Connection: close`.
import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { systemClock, type Clock } from '../host/clock.ts';
import type { Log } from '../host/log.ts';
import { createOutbox, type WriteBatch } from '../host/outbox.ts';
import { responseOn } from '../host/server.ts';
import type { Transport } from '../http/transport.ts';
import type { ForwardOrder, Tunnel } from './forward-order.ts';
import { relay } from './relay.ts';

export type UpgraderOptions = {
  /** The forwarder's. */
  readonly transport: Transport;
  /** A tunnel without a byte for so long is closed. */
  readonly idleMs: number;
  readonly log: Log;
  readonly clock?: Pick<Clock, 'monotonic'>;
  readonly outbox?: WriteBatch;
};

export type Upgrader = {
  /** `order.done` is called when the 101 was handed to the client, or when there will be none; `req.socket` must be `socket`. */
  readonly forwardUpgrade: (req: IncomingMessage, socket: Socket, head: Buffer, order: ForwardOrder) => void;
};

export function createUpgrader(options: UpgraderOptions): Upgrader {
  const { transport, idleMs, log, clock = systemClock, outbox = createOutbox() } = options;
  const context = { transport, outbox, clock, log };
  return {
    forwardUpgrade: (req, socket, head, order) =>
      relay(context, req, responseOn(req, socket), order, tunnelTo(socket, head, idleMs)),
  };
}

function tunnelTo(client: Socket, clientHead: Buffer, idleMs: number): Tunnel {
  return {
    // Hop-by-hop headers ended at the border (headers.ts), so the offer to the upstream is our own.
    offer: ['Connection', 'Upgrade', 'Upgrade', 'websocket'],
    accepts: (headers) => headers.some((name, i) => i % 2 === 0 && isUpgrade(name) && isWebSocket(headers[i + 1])),
    open: (headers, upstream, upstreamHead, handed) => {
      const close = (): void => {
        client.destroy();
        upstream.destroy();
      };
      let told = false;
      const tell = (delivered: boolean): void => {
        if (!told) handed(delivered);
        told = true;
      };
      client.on('close', () => {
        tell(false);
        upstream.destroySoon();
      });
      upstream.on('close', () => client.destroySoon());
      client.setTimeout(idleMs, close);
      upstream.setTimeout(idleMs, close);
      client.write(switching(headers), 'latin1', (error) => tell(!error));
      if (upstreamHead.length > 0) client.write(upstreamHead);
      if (clientHead.length > 0) upstream.write(clientHead);
      upstream.pipe(client);
      client.pipe(upstream);
    },
  };
}

function switching(headers: readonly string[]): string {
  let text = 'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n';
  for (let i = 0; i + 1 < headers.length; i += 2) text += `${headers[i]}: ${headers[i + 1]}\r\n`;
  return `${text}\r\n`;
}

function isUpgrade(name: string): boolean {
  return name.toLowerCase() === 'upgrade';
}

function isWebSocket(value: string | undefined): boolean {
  return value?.toLowerCase() === 'websocket';
}
