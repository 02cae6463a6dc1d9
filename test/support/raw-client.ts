// An HTTP client that is only a socket: sends bytes as they are given, reads answers by their own framing, and says how
// the connection ended. What a real client library would never send is what the tests are about.
import { connect, type Socket } from 'node:net';
import { keepRawRequest } from './canaries.ts';

export type RawAnswer = {
  readonly status: number;
  readonly reason: string;
  /** Name, value pairs as they arrived. */
  readonly headers: readonly (readonly [string, string])[];
  readonly body: Buffer;
  /** `length`, `chunked`, `close` (to the end of the connection) or `none`. */
  readonly framing: 'length' | 'chunked' | 'close' | 'none';
};

export type RawClient = {
  readonly socket: Socket;
  readonly send: (bytes: string | Buffer) => void;
  /** Writes every byte by itself. */
  readonly trickle: (bytes: string) => Promise<void>;
  /** Everything received so far, as latin1. */
  readonly received: () => string;
  /** The next answer (1xx included) that is there as a whole; `head`: it answers a HEAD. */
  readonly answer: (head?: boolean) => Promise<RawAnswer>;
  /** What was received and is no whole answer yet. */
  readonly rest: () => Buffer;
  /** Resolves when `text` was received, behind the first `from` bytes. */
  readonly until: (text: string, from?: number) => Promise<void>;
  /** Resolves when the connection is closed: `fin`, or `reset` where it was cut off. */
  readonly closed: Promise<'fin' | 'reset'>;
  readonly close: () => void;
};

const WAIT_MS = 30_000;

export function headerOf(
  answer: { readonly headers: readonly (readonly [string, string])[] },
  name: string,
): string | undefined {
  const values = answer.headers.filter(([key]) => key.toLowerCase() === name.toLowerCase()).map(([, value]) => value);
  return values.length === 0 ? undefined : values.join(', ');
}

export async function openRaw(port: number): Promise<RawClient> {
  const socket = connect({ port, host: '127.0.0.1' });
  socket.setNoDelay(true);
  let buffer = Buffer.alloc(0);
  let all = Buffer.alloc(0);
  let ended = false;
  let reset = false;
  const waiting = new Set<() => void>();
  const wake = (): void => {
    for (const waiter of waiting) waiter();
  };
  socket.on('data', (chunk: Buffer) => {
    buffer = Buffer.concat([buffer, chunk]);
    all = Buffer.concat([all, chunk]);
    wake();
  });
  socket.on('end', () => {
    ended = true;
    wake();
  });
  socket.on('error', () => {
    reset = true;
  });
  const closed = new Promise<'fin' | 'reset'>((resolve) => {
    socket.on('close', () => {
      resolve(ended && !reset ? 'fin' : 'reset');
      ended = true;
      wake();
    });
  });
  await new Promise<void>((resolve, reject) => {
    socket.once('connect', resolve);
    socket.once('error', reject);
  });

  const wait = <T>(what: string, look: () => T | undefined): Promise<T> =>
    new Promise((resolve, reject) => {
      const finish = (): void => {
        clearTimeout(timer);
        waiting.delete(attempt);
      };
      const timer = setTimeout(() => {
        finish();
        reject(new Error(`waited for ${what}; received: ${JSON.stringify(all.toString('latin1').slice(0, 500))}`));
      }, WAIT_MS);
      const attempt = (): void => {
        let found: T | undefined;
        try {
          found = look();
        } catch (error) {
          finish();
          reject(error instanceof Error ? error : new Error(String(error)));
          return;
        }
        if (found !== undefined) {
          finish();
          resolve(found);
        } else if (ended) {
          finish();
          reject(
            new Error(
              `closed while waiting for ${what}; received: ${JSON.stringify(all.toString('latin1').slice(0, 500))}`,
            ),
          );
        }
      };
      waiting.add(attempt);
      attempt();
    });

  return {
    socket,
    closed,
    received: () => all.toString('latin1'),
    send: (bytes) => {
      keepRawRequest(bytes.toString('latin1'));
      socket.write(typeof bytes === 'string' ? Buffer.from(bytes, 'latin1') : bytes);
    },
    trickle: async (bytes) => {
      for (const byte of Buffer.from(bytes, 'latin1')) {
        if (!socket.writable) return;
        socket.write(Buffer.of(byte));
        await new Promise(setImmediate);
      }
    },
    answer: (head = false) =>
      wait('an answer', () => {
        const parsed = parseAnswer(buffer, head, ended);
        if (parsed === undefined) return undefined;
        buffer = buffer.subarray(parsed.size);
        return parsed.answer;
      }),
    rest: () => buffer,
    until: async (text, from = 0) => {
      await wait(text, () => (all.includes(Buffer.from(text, 'latin1'), from) ? true : undefined));
    },
    close: () => void socket.destroy(),
  };
}

function parseAnswer(buffer: Buffer, head: boolean, ended: boolean): { answer: RawAnswer; size: number } | undefined {
  const end = buffer.indexOf('\r\n\r\n');
  if (end < 0) return undefined;
  const [statusLine = '', ...lines] = buffer.subarray(0, end).toString('latin1').split('\r\n');
  const [, digits, reason = ''] = /^HTTP\/1\.1 (\d{3}) ?(.*)$/.exec(statusLine) ?? [];
  if (digits === undefined) throw new Error(`not a status line: ${JSON.stringify(statusLine)}`);
  const status = Number(digits);
  const headers = lines.map((line): readonly [string, string] => {
    const colon = line.indexOf(':');
    return [line.slice(0, colon), line.slice(colon + 1).trim()];
  });
  const start = end + 4;
  const done = (framing: RawAnswer['framing'], body: Buffer, size: number): { answer: RawAnswer; size: number } => ({
    answer: { status, reason, headers, body, framing },
    size,
  });
  const length = headerOf({ headers }, 'content-length');
  const coding = headerOf({ headers }, 'transfer-encoding');
  if (length !== undefined && coding !== undefined) throw new Error('an answer with a length and a coding');
  if (head || status < 200 || status === 204 || status === 304) return done('none', Buffer.alloc(0), start);
  if (coding !== undefined) {
    const chunks = readChunks(buffer.subarray(start));
    return chunks && done('chunked', chunks.body, start + chunks.size);
  }
  if (length !== undefined) {
    const size = start + Number(length);
    return buffer.length >= size ? done('length', buffer.subarray(start, size), size) : undefined;
  }
  return ended ? done('close', buffer.subarray(start), buffer.length) : undefined;
}

/** A chunked body from its beginning; undefined while it is not whole. */
export function readChunks(buffer: Buffer): { body: Buffer; size: number } | undefined {
  const parts: Buffer[] = [];
  let at = 0;
  for (;;) {
    const line = buffer.indexOf('\r\n', at);
    if (line < 0) return undefined;
    const size = Number.parseInt(buffer.subarray(at, line).toString('latin1'), 16);
    if (Number.isNaN(size)) throw new Error('not a chunk size');
    at = line + 2;
    if (size === 0) {
      const end = buffer.indexOf('\r\n', at);
      if (end !== at) return end < 0 ? undefined : skipTrailers(buffer, at, parts);
      return { body: Buffer.concat(parts), size: end + 2 };
    }
    if (buffer.length < at + size + 2) return undefined;
    parts.push(buffer.subarray(at, at + size));
    at += size + 2;
  }
}

function skipTrailers(buffer: Buffer, at: number, parts: Buffer[]): { body: Buffer; size: number } | undefined {
  const end = buffer.indexOf('\r\n\r\n', at);
  return end < 0 ? undefined : { body: Buffer.concat(parts), size: end + 4 };
}
