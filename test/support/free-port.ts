// A port that is free now, for what has to be named before it listens, to come back at the same address, or to answer nobody.
import { createServer } from 'node:net';

/** Where the kernel takes none for connections and for who asks for any: nobody else has it while its own are away. */
const PORTS = { first: 12_000, count: 20_000 } as const;

export function freePort(): Promise<number> {
  return new Promise((resolve) => {
    const port = PORTS.first + Math.floor(Math.random() * PORTS.count);
    const server = createServer();
    server.once('error', () => resolve(freePort()));
    server.listen(port, '127.0.0.1', () => server.close(() => resolve(port)));
  });
}
