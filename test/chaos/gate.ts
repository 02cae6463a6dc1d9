// A TCP relay in front of a server that can be shut: connections are refused and open ones end, as if the server's
// machine were gone. What was not accepted was not sent.
import { connect, createServer, type Socket } from 'node:net';

export type Gate = {
  readonly port: number;
  readonly shut: () => Promise<void>;
  readonly open: () => Promise<void>;
  readonly close: () => Promise<void>;
};

export async function startGate(target: number): Promise<Gate> {
  const sockets = new Set<Socket>();
  const begin = (client: Socket): void => {
    const server = connect(target, '127.0.0.1');
    for (const [socket, other] of [
      [client, server],
      [server, client],
    ] as const) {
      sockets.add(socket);
      socket.on('error', () => undefined);
      socket.on('close', () => {
        sockets.delete(socket);
        other.destroy();
      });
    }
    client.pipe(server).pipe(client);
  };
  let server = createServer(begin);
  const listen = (port: number): Promise<void> =>
    new Promise((resolve, reject) => {
      server = createServer(begin);
      server.once('error', reject);
      server.listen(port, '127.0.0.1', resolve);
    });
  const shut = (): Promise<void> =>
    new Promise((resolve) => {
      server.close(() => resolve());
      for (const socket of sockets) socket.destroy();
    });
  await listen(0);
  const address = server.address();
  const port = typeof address === 'object' && address !== null ? address.port : 0;
  return { port, shut, open: () => listen(port), close: shut };
}
