// A TCP proxy that counts what comes from behind it, and whose way a test may change: connections that are open then are cut.
import { connect, createServer, type Socket } from 'node:net';
import type { AddressInfo } from 'node:net';

export type CountingPipe = {
  readonly port: number;
  /** Bytes that came from behind it so far. */
  readonly received: () => number;
  /** Connections that were opened so far. */
  readonly opened: () => number;
  readonly leadTo: (port: number) => void;
  readonly close: () => Promise<void>;
};

export async function startCountingPipe(to: number): Promise<CountingPipe> {
  const sockets = new Set<Socket>();
  let target = to;
  let received = 0;
  let opened = 0;
  const cut = (): void => {
    for (const socket of sockets) socket.destroy();
  };
  const server = createServer((client) => {
    opened++;
    const behind = connect(target, '127.0.0.1');
    behind.on('data', (bytes) => (received += bytes.length));
    for (const [one, other] of [
      [client, behind],
      [behind, client],
    ] as const) {
      sockets.add(one);
      one.setNoDelay(true);
      one.on('error', () => undefined);
      one.on('close', () => {
        sockets.delete(one);
        other.destroy();
      });
      one.pipe(other);
    }
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    port: (server.address() as AddressInfo).port,
    received: () => received,
    opened: () => opened,
    leadTo: (port) => {
      target = port;
      cut();
    },
    close: async () => {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      cut();
      await closed;
    },
  };
}
