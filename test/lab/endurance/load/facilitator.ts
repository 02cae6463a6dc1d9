// A facilitator that refuses every payment, or takes calls and never answers, whichever it was told last by `POST /stall`
// and `POST /refuse` on its second port.
import { createServer, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

let stalling = false;
const held = new Set<ServerResponse>();

const facilitator = createServer((req, res) => {
  req.resume();
  req.on('end', () => {
    if (stalling) {
      held.add(res);
      res.on('close', () => held.delete(res));
    } else refuse(res);
  });
});
const control = createServer((req, res) => {
  stalling = req.url === '/stall';
  if (!stalling) for (const waiting of held) refuse(waiting);
  res.end();
});
announce(facilitator, 'facilitator');
announce(control, 'control');
process.on('SIGTERM', () => process.exit(0));

function refuse(res: ServerResponse): void {
  res.setHeader('content-type', 'application/json');
  res.end(JSON.stringify({ isValid: false, invalidReason: 'invalid_exact_evm_signature' }));
}

function announce(server: Server, listener: string): void {
  server.listen(0, '127.0.0.1', () => {
    const { port } = server.address() as AddressInfo;
    process.stdout.write(`${JSON.stringify({ msg: 'listening', listener, address: '127.0.0.1', port })}\n`);
  });
}
