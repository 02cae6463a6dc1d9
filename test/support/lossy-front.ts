// What stands between a sidecar and its registry in tests: every call goes through a function that may lose its answer, hold it
// back, or answer in the registry's place.
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { once } from 'node:events';
import type { Clock, Schedule } from '../../src/host/clock.ts';

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

/** Loses an answer. `timeOut` has the calls that wait for one wait for too long. */
type Lose = (response: Response, timeOut: () => void) => Promise<Response>;

/** Time as the caller sees it. */
export type CallerTime = { readonly clock: Clock; readonly schedule: Schedule };

/**
 * The registry does what it was asked; the answers to the first `times` writes are lost on the way. `time` stands still, so that
 * no other answer is late: it goes on by pauses of up to 1 ms, and by the time-out of a call whose answer never comes.
 */
export function losing(times: number, lose: Lose): { front: Front; calls: () => number; time: CallerTime } {
  let calls = 0;
  let now = 0;
  const waiting = new Set<() => void>();
  const schedule: Schedule = (ms, run) => {
    const isOver = (): void => {
      if (!waiting.delete(isOver)) return;
      now += ms;
      run();
    };
    waiting.add(isOver);
    if (ms <= 1) setImmediate(isOver);
    return () => void waiting.delete(isOver);
  };
  const timeOut = (): void => {
    for (const isOver of waiting) isOver();
  };
  return {
    calls: () => calls,
    time: { schedule, clock: { now: Date.now, monotonic: () => now } },
    front: async (request) => {
      const isWrite = request.method !== 'GET';
      const lost = isWrite && calls++ < times;
      const response = await fetch(request);
      return lost ? lose(response, timeOut) : response;
    },
  };
}

export const LOSSES: Record<string, Lose> = {
  'the connection ends': async (response) => {
    await response.arrayBuffer();
    throw new Error('the connection ends');
  },
  'the answer never comes': async (response, timeOut) => {
    await response.arrayBuffer();
    timeOut();
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
