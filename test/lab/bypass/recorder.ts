// The API behind the proxies: it notes each request that arrives, and hands it on to every router of the suite, whose counters say
// whether something protected ran.
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { connect, type AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';
import type { Running, UpstreamSpec } from './upstream.ts';

export type Recorder = {
  readonly port: number;
  /** `METHOD TARGET` of everything that arrived. */
  readonly arrived: readonly string[];
  /** Requests that could not be read as HTTP. */
  readonly unreadable: () => number;
  readonly inFlight: () => number;
  /** Protected handlers that ran, in all routers together. */
  readonly executions: () => number;
  /** Names of the routers in which something protected ran since the start. */
  readonly reached: () => readonly string[];
  readonly close: () => Promise<void>;
};

/** Left out of what routers get: the connection's own, and framing, which is written anew. */
const OWN = new Set(['connection', 'keep-alive', 'content-length', 'transfer-encoding', 'expect', 'upgrade', 'te']);
const PATIENCE_MS = 5_000;

export async function startRecorder(specs: readonly UpstreamSpec[]): Promise<Recorder> {
  const routers: { readonly name: string; readonly running: Running }[] = [];
  for (const spec of specs) routers.push({ name: spec.name, running: await spec.start() });
  const arrived: string[] = [];
  let inFlight = 0;
  let unreadable = 0;
  const server = createServer();
  const record = async (req: IncomingMessage, res: ServerResponse): Promise<void> => {
    arrived.push(`${req.method} ${req.url}`);
    inFlight++;
    try {
      const body = await buffer(req).catch(() => Buffer.alloc(0));
      const lines = [`${req.method} ${req.url} HTTP/1.1`];
      for (let i = 0; i + 1 < req.rawHeaders.length; i += 2) {
        const name = req.rawHeaders[i] ?? '';
        if (!OWN.has(name.toLowerCase())) lines.push(`${name}: ${req.rawHeaders[i + 1]}`);
      }
      if (req.headers.host === undefined) lines.push('Host: localhost');
      lines.push('Connection: close', `Content-Length: ${body.length}`);
      const bytes = Buffer.concat([Buffer.from(`${lines.join('\r\n')}\r\n\r\n`, 'latin1'), body]);
      await Promise.all(routers.map(({ running }) => deliver(running.port, bytes)));
    } finally {
      inFlight--;
      res.end('recorded');
    }
  };
  server.on('request', (req, res) => void record(req, res));
  server.on('connect', (req, socket) => {
    arrived.push(`${req.method} ${req.url}`);
    socket.destroy();
  });
  server.on('clientError', (error: NodeJS.ErrnoException, socket) => {
    if (error.code?.startsWith('HPE_') === true && error.code !== 'HPE_INVALID_EOF_STATE') unreadable++;
    socket.destroy();
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    port,
    arrived,
    unreadable: () => unreadable,
    inFlight: () => inFlight,
    executions: () => routers.reduce((sum, { running }) => sum + running.executions(), 0),
    reached: () => routers.filter(({ running }) => running.executions() > 0).map(({ name }) => name),
    close: async () => {
      server.closeAllConnections();
      server.close();
      await Promise.all(routers.map(({ running }) => running.close()));
    },
  };
}

/** Resolves when the router has answered and closed. */
function deliver(port: number, bytes: Buffer): Promise<void> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1');
    socket.setTimeout(PATIENCE_MS, () => socket.destroy());
    socket.on('error', () => undefined);
    socket.on('close', () => resolve());
    socket.resume();
    socket.write(bytes);
  });
}
