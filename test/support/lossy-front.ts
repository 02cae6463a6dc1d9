// What stands between a sidecar and its registry in tests: every call goes through a function that may lose its answer, hold it
// back, or answer in the registry's place.
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { once } from 'node:events';

/** Answers a call. Where it throws, the connection ends. */
export type Front = (request: Request) => Promise<Response>;

/** Starts a front; what it lets through goes to `port`. */
export async function startFront(
  front: Front,
  port: () => number,
): Promise<{ readonly url: string; readonly close: () => void }> {
  const server = createServer((req, res) => void relay(front, port(), req, res).catch(() => res.destroy()));
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('no port');
  return {
    url: `http://127.0.0.1:${address.port}`,
    close: () => {
      server.closeAllConnections();
      server.close();
    },
  };
}

async function relay(front: Front, port: number, req: IncomingMessage, res: ServerResponse): Promise<void> {
  const chunks: Buffer[] = [];
  for await (const chunk of req) chunks.push(chunk as Buffer);
  const url = `http://127.0.0.1:${port}${req.url}`;
  const headers = Object.entries(req.headers).map(([name, value]): [string, string] => [name, String(value)]);
  const passed = headers.filter(([name]) => !['host', 'connection', 'content-length'].includes(name));
  const body = chunks.length > 0 ? { body: Buffer.concat(chunks) } : {};
  const response = await front(new Request(url, { method: req.method ?? '', headers: passed, ...body }));
  res.writeHead(response.status, [...response.headers].flat());
  if (response.body !== null) for await (const chunk of response.body) res.write(chunk);
  res.end();
}

/** The registry does what it was asked; the answers to the first `times` writes are lost on the way. */
export function losing(
  times: number,
  lose: (response: Response) => Promise<Response>,
): { front: Front; calls: () => number } {
  let calls = 0;
  return {
    calls: () => calls,
    front: async (request) => {
      const isWrite = request.method !== 'GET';
      const lost = isWrite && calls++ < times;
      const response = await fetch(request);
      return lost ? lose(response) : response;
    },
  };
}

export const LOSSES: Record<string, (response: Response) => Promise<Response>> = {
  'the connection ends': async (response) => {
    await response.arrayBuffer();
    throw new Error('the connection ends');
  },
  'the answer never comes': async (response) => {
    await response.arrayBuffer();
    return new Promise<Response>(() => undefined);
  },
  'the answer ends half way': async (response) => {
    const bytes = new Uint8Array(await response.arrayBuffer());
    const body = new ReadableStream({
      start: (controller) => controller.enqueue(bytes.subarray(0, 10)),
      pull: (controller) => controller.error(new Error('reset')),
    });
    return new Response(body, { status: 200 });
  },
  'a gateway in between gives up': async (response) => {
    await response.arrayBuffer();
    return new Response('bad gateway', { status: 502 });
  },
};
