// The upstream of the bench: one constant answer, as lean as can be, so that what is measured is what stands in front of
// it. Reads requests off the wire itself (it shares a core with the load). Beside the port for traffic it has one for the
// bench, where `GET /seen` says how many requests came and what the last one was: answers are checked before speed.
import { createHash, type Hash } from 'node:crypto';
import { createServer as createHttpServer } from 'node:http';
import { createServer, type Server, type Socket } from 'node:net';
import type { AddressInfo } from 'node:net';
import { DOWNLOAD, DOWNLOAD_BYTES, HASH_HEADER, UPSTREAM_BODY, type Seen } from './upstream-answers.ts';

/** A request whose body is being read. `left` is -1 until the last chunk of a chunked one came. */
type Pending = {
  readonly head: string;
  readonly chunked: boolean;
  readonly hash: Hash | undefined;
  left: number;
  received: number;
};

const SMALL = Buffer.from(answerHead(UPSTREAM_BODY.length, 'application/json') + UPSTREAM_BODY);
const LARGE = Buffer.concat([Buffer.from(answerHead(DOWNLOAD_BYTES, 'application/octet-stream')), DOWNLOAD()]);
const CLOSING = /\r\nconnection: *close/i;
const LENGTH = /\r\ncontent-length: *(\d+)/i;
const CHUNKED = /\r\ntransfer-encoding: *chunked/i;

let requests = 0;
let bodyBytes = 0;
let last: { head: string; hash: string | undefined } | undefined;

const traffic = createServer({ noDelay: true }, serve);
const control = createHttpServer((_, res) => {
  res.setHeader('Content-Type', 'application/json');
  res.end(JSON.stringify(describe()));
});
announce(traffic, 'upstream');
announce(control, 'control');
process.on('SIGTERM', () => process.exit(0));

function serve(socket: Socket): void {
  let data: Buffer = Buffer.alloc(0);
  let pending: Pending | undefined;
  socket.on('error', () => socket.destroy());
  socket.on('data', (chunk: Buffer) => {
    data = data.length === 0 ? chunk : Buffer.concat([data, chunk]);
    for (;;) {
      if (pending === undefined) {
        const end = data.indexOf('\r\n\r\n');
        if (end < 0) return;
        pending = readHead(data.toString('latin1', 0, end));
        data = data.subarray(end + 4);
      }
      data = pending.chunked ? takeChunks(pending, data) : takeBytes(pending, data);
      if (pending.left !== 0) return;
      finish(socket, pending);
      pending = undefined;
      if (data.length === 0) return;
    }
  });
}

function readHead(head: string): Pending {
  const chunked = CHUNKED.test(head);
  const left = chunked ? -1 : Number(LENGTH.exec(head)?.[1] ?? 0);
  const hash = head.toLowerCase().includes(`\r\n${HASH_HEADER}:`) ? createHash('sha256') : undefined;
  return { head, chunked, hash, left, received: 0 };
}

function takeBytes(pending: Pending, data: Buffer): Buffer {
  const taken = data.subarray(0, pending.left);
  pending.hash?.update(taken);
  pending.left -= taken.length;
  pending.received += taken.length;
  return data.subarray(taken.length);
}

/** Whole chunks only; what is left of one waits for the rest. `left` turns 0 with the last one. Trailers are not expected. */
function takeChunks(pending: Pending, data: Buffer): Buffer {
  let rest = data;
  for (;;) {
    const line = rest.indexOf('\r\n');
    if (line < 0) return rest;
    const size = Number.parseInt(rest.toString('latin1', 0, line), 16);
    const end = line + 2 + size + 2;
    if (rest.length < end) return rest;
    pending.hash?.update(rest.subarray(line + 2, end - 2));
    pending.received += size;
    rest = rest.subarray(end);
    if (size === 0) {
      pending.left = 0;
      return rest;
    }
  }
}

function finish(socket: Socket, { head, hash, received }: Pending): void {
  requests++;
  bodyBytes += received;
  last = { head, hash: hash?.digest('hex') };
  socket.write(head.startsWith('GET /download') ? LARGE : SMALL);
  if (CLOSING.test(head)) socket.end();
}

function describe(): Seen {
  const [line = '', ...fields] = last?.head.split('\r\n') ?? [];
  const [method = '', target = ''] = line.split(' ');
  const headers = Object.fromEntries(
    fields.map((field) => [
      field.slice(0, field.indexOf(':')).toLowerCase(),
      field.slice(field.indexOf(':') + 1).trim(),
    ]),
  );
  return { requests, bodyBytes, method, target, headers, hash: last?.hash };
}

function answerHead(length: number, type: string): string {
  return `HTTP/1.1 200 OK\r\nServer: bench\r\nContent-Type: ${type}\r\nContent-Length: ${length}\r\n\r\n`;
}

function announce(server: Server, listener: string): void {
  server.listen(0, '127.0.0.1', () => {
    const address: AddressInfo | string | null = server.address();
    const port = typeof address === 'object' && address !== null ? address.port : 0;
    process.stdout.write(`${JSON.stringify({ msg: 'listening', listener, address: '127.0.0.1', port })}\n`);
  });
}
