// Starts a peer's server and says where it listens, in the words that Tollgate uses, so that one reader starts them all.
import type { Server } from 'node:http';

export function announce(server: Server): void {
  server.listen(0, '127.0.0.1', () => {
    const address = server.address();
    const port = typeof address === 'object' && address !== null ? address.port : 0;
    process.stdout.write(`${JSON.stringify({ msg: 'listening', listener: 'proxy', address: '127.0.0.1', port })}\n`);
  });
  process.on('SIGTERM', () => process.exit(0));
}
