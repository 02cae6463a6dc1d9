// A small HTTP API to put behind Tollgate: it counts what reached it, which is where "nothing got through" is measured,
// and answers with what it was asked. Routes for bodies that flow, events, and delays belong to the tests that need them.
import { createServer, type IncomingMessage, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';

export type SeenRequest = {
  readonly method: string;
  readonly url: string;
  readonly headers: IncomingMessage['headers'];
  readonly rawHeaders: readonly string[];
};

export type Upstream = {
  readonly url: string;
  readonly port: number;
  readonly server: Server;
  /** Every request that arrived, oldest first. */
  readonly seen: SeenRequest[];
  readonly close: () => Promise<void>;
};

export async function startUpstream(handle?: RequestListener): Promise<Upstream> {
  const seen: SeenRequest[] = [];
  const server = createServer((req, res) => {
    seen.push({ method: req.method ?? '', url: req.url ?? '', headers: req.headers, rawHeaders: [...req.rawHeaders] });
    if (handle !== undefined) {
      handle(req, res);
      return;
    }
    req.resume();
    res.setHeader('content-type', 'application/json');
    res.end(JSON.stringify({ upstream: true, method: req.method, url: req.url }));
  });
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  const { port } = server.address() as AddressInfo;
  return {
    port,
    url: `http://127.0.0.1:${port}`,
    server,
    seen,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}
