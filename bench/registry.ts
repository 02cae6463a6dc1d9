// A registry's side of a sync, in a process of its own: `node bench/registry.ts COUNT` serves COUNT routes as a feed and an
// event stream, and at each POST /swap puts the other edition of them in their place and says so on the stream. Both
// bodies, plain and compressed, are made before it listens: a swap costs the core of the load no more than sending one.
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { gzipSync } from 'node:zlib';
import { toWire } from '../src/domain/routing/route.ts';
import { announce } from './peers/announce.ts';
import { EDITIONS, makeRoutes } from './routes.ts';

const HEARTBEAT_MS = 15_000;

const count = Number(process.argv[2]);
const bodies = EDITIONS.map((edition) => {
  const plain = Buffer.from(JSON.stringify(makeRoutes(count, edition).map(toWire)));
  return { plain, zipped: gzipSync(plain) };
});
const listeners = new Set<ServerResponse>();
/** The edition in force is told by it: every swap makes it one more. */
let revision = 0;

announce(createServer(serve));
setInterval(() => listeners.forEach((res) => res.write(': still here\n\n')), HEARTBEAT_MS);

function serve(req: IncomingMessage, res: ServerResponse): void {
  req.resume();
  const name = { 'Tollgate-Registry': 'bench', 'Tollgate-Revision': String(revision) };
  switch (`${req.method} ${req.url}`) {
    case 'GET /v1/protected-routes/routes':
      return serveFeed(req, res, name);
    case 'GET /v1/protected-routes/events':
      res.writeHead(200, { ...name, 'Content-Type': 'text/event-stream' }).flushHeaders();
      listeners.add(res);
      res.on('close', () => listeners.delete(res));
      return;
    case 'POST /swap':
      revision++;
      listeners.forEach((listener) => listener.write(`event: reset\nid: ${revision}\ndata: {}\n\n`));
      res.writeHead(204).end();
      return;
    default:
      res.writeHead(404).end();
  }
}

function serveFeed({ headers }: IncomingMessage, res: ServerResponse, name: Readonly<Record<string, string>>): void {
  const body = bodies[revision % bodies.length];
  const etag = `"${revision}"`;
  const known = headers['if-none-match'];
  if (known === etag || known === '*' || body === undefined) return void res.writeHead(304, name).end();
  const zips = headers['accept-encoding']?.includes('gzip') === true;
  const coding = zips ? { 'Content-Encoding': 'gzip' } : {};
  const bytes = zips ? body.zipped : body.plain;
  res
    .writeHead(200, {
      ...name,
      ...coding,
      ETag: etag,
      'Content-Type': 'application/json',
      'Content-Length': bytes.length,
    })
    .end(bytes);
}
