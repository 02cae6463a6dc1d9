// What stands behind Tollgate in `bench/paid.ts`, in a process of its own: a facilitator that says yes at once and an
// upstream that answers at once. Both count, so that the bench can tell that every paid request was verified once, settled
// once and forwarded once; GET /counts of the upstream says how often.
import { createServer, type IncomingMessage, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { UPSTREAM_BODY } from './upstream-answers.ts';

type Call = {
  readonly paymentPayload: {
    readonly payload: { readonly authorization: { readonly from: string; readonly nonce: string } };
  };
};

const counts = { verify: 0, settle: 0, upstream: 0 };

const facilitator = createServer((req, res) => {
  whole(req, (text) => {
    // What it supports: asked at a start.
    if (req.method === 'GET') {
      res.writeHead(200, ['Content-Type', 'application/json']).end('{"kinds":[]}');
      return;
    }
    const { from, nonce } = (JSON.parse(text) as Call).paymentPayload.payload.authorization;
    const operation = req.url?.endsWith('/verify') ? 'verify' : 'settle';
    counts[operation]++;
    const answer =
      operation === 'verify'
        ? { isValid: true, payer: from }
        : { success: true, transaction: nonce, network: 'eip155:84532', payer: from };
    const body = JSON.stringify(answer);
    res.writeHead(200, ['Content-Type', 'application/json', 'Content-Length', String(body.length)]).end(body);
  });
});

const upstream = createServer((req, res) => {
  whole(req, () => {
    const asked = req.url === '/counts';
    if (!asked) counts.upstream++;
    const body = asked ? JSON.stringify(counts) : UPSTREAM_BODY;
    res.writeHead(200, ['Content-Type', 'application/json', 'Content-Length', String(body.length)]).end(body);
  });
});

serve('facilitator', facilitator);
serve('upstream', upstream);

function whole(req: IncomingMessage, run: (text: string) => void): void {
  let text = '';
  req.setEncoding('utf8').on('data', (chunk: string) => (text += chunk));
  req.on('end', () => run(text));
}

function serve(listener: string, server: Server): void {
  server.keepAliveTimeout = 60_000;
  server.listen(0, '127.0.0.1', () => {
    const { port } = server.address() as AddressInfo;
    process.stdout.write(`${JSON.stringify({ msg: 'listening', listener, port })}\n`);
  });
}
