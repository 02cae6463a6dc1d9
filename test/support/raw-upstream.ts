// An upstream that is only a socket: it counts every request that it can read off the wire, as a plain server would
// frame them, and answers with whatever bytes a script says. A request too many is how smuggling shows.
import { createServer, type Server, type Socket } from 'node:net';
import { headerOf, readChunks } from './raw-client.ts';

export type SeenRequest = {
  readonly method: string;
  readonly target: string;
  readonly version: string;
  /** Name, value pairs as they arrived. */
  readonly headers: readonly (readonly [string, string])[];
  /** The whole head as it arrived. */
  readonly head: string;
  /** Complete where `whole` is true. */
  body: Buffer;
  whole: boolean;
  /** Number of the connection it came on, from 1. */
  readonly connection: number;
};

/** Called when a request was read whole. */
export type Script = (request: SeenRequest, socket: Socket) => void;

export type RawUpstream = {
  readonly url: URL;
  readonly port: number;
  readonly requests: readonly SeenRequest[];
  /** Sockets in the order in which they were accepted. */
  readonly sockets: readonly Socket[];
  /** Replaces what is done with further requests. */
  readonly script: (script: Script) => void;
  /** Called as soon as a head was read, before its body. */
  readonly onHead: (script: Script | undefined) => void;
  /** Stops reading requests: bytes go to `sockets` only. */
  readonly ignore: () => void;
  readonly close: () => Promise<void>;
};

export const OK = 'HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 2\r\n\r\nok';

export async function startRawUpstream(initial: Script = (_, socket) => void socket.write(OK)): Promise<RawUpstream> {
  let script = initial;
  let headScript: Script | undefined;
  let ignoring = false;
  const requests: SeenRequest[] = [];
  const sockets: Socket[] = [];

  const server: Server = createServer({ allowHalfOpen: false, noDelay: true }, (socket) => {
    const connection = sockets.push(socket);
    let buffer = Buffer.alloc(0);
    let pending: SeenRequest | undefined;
    socket.on('error', () => undefined);
    socket.on('data', (chunk: Buffer) => {
      if (ignoring) return;
      buffer = Buffer.concat([buffer, chunk]);
      for (;;) {
        if (pending === undefined) {
          const end = buffer.indexOf('\r\n\r\n');
          if (end < 0) return;
          pending = parseHead(buffer.subarray(0, end + 4).toString('latin1'), connection);
          buffer = buffer.subarray(end + 4);
          requests.push(pending);
          headScript?.(pending, socket);
        }
        const body = readBody(pending, buffer);
        if (body === undefined) return;
        pending.body = body.body;
        pending.whole = true;
        buffer = buffer.subarray(body.size);
        const whole = pending;
        pending = undefined;
        script(whole, socket);
      }
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('no port');

  return {
    url: new URL(`http://127.0.0.1:${address.port}`),
    port: address.port,
    requests,
    sockets,
    script: (next) => {
      script = next;
    },
    onHead: (next) => {
      headScript = next;
    },
    ignore: () => {
      ignoring = true;
    },
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        for (const socket of sockets) socket.destroy();
      }),
  };
}

function parseHead(head: string, connection: number): SeenRequest {
  const [line = '', ...lines] = head.slice(0, -4).split('\r\n');
  const [method = '', target = '', version = ''] = line.split(' ');
  const headers = lines.map((text): readonly [string, string] => {
    const colon = text.indexOf(':');
    return [text.slice(0, colon), text.slice(colon + 1).trim()];
  });
  return { method, target, version, headers, head, body: Buffer.alloc(0), whole: false, connection };
}

function readBody(request: SeenRequest, buffer: Buffer): { body: Buffer; size: number } | undefined {
  if (headerOf(request, 'transfer-encoding') !== undefined) return readChunks(buffer);
  const size = Number(headerOf(request, 'content-length') ?? 0);
  return buffer.length < size ? undefined : { body: buffer.subarray(0, size), size };
}
