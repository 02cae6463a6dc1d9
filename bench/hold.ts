// Holds connections that do nothing, in a process of its own: `node bench/hold.ts JOB` opens them, makes one request on each
// and then says that it listens; its own port answers how many are still open. Ends when it is told to.
import { connect, type Socket } from 'node:net';
import { createServer } from 'node:http';
import { announce } from './peers/announce.ts';
import { readStatus, type Reader } from './wire.ts';

export type HoldJob = {
  readonly port: number;
  readonly path: string;
  readonly connections: number;
};

/** Opened at a time: below the backlog of any server. */
const WAVE = 100;

const { port, path, connections }: HoldJob = JSON.parse(process.argv[2] ?? '{}');
const request = Buffer.from(`GET ${path} HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\n\r\n`);
const open = new Set<Socket>();
for (let opened = 0; opened < connections; opened += WAVE)
  await Promise.all(Array.from({ length: Math.min(WAVE, connections - opened) }, use));
announce(createServer((_, res) => res.end(JSON.stringify({ open: open.size }))));

function use(): Promise<void> {
  return new Promise((resolve, reject) => {
    const reader: Reader = { pending: undefined };
    const socket = connect({ port, host: '127.0.0.1' }, () => {
      open.add(socket);
      socket.write(request);
    });
    socket.on('data', (chunk: Buffer) => {
      const status = readStatus(reader, chunk);
      if (status === 200) resolve();
      else if (status !== undefined) reject(new Error(`${status} instead of 200`));
    });
    socket.on('close', () => void open.delete(socket)).on('error', reject);
  });
}
