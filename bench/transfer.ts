// Large bodies, in a process of its own: `node bench/transfer.ts JOB` prints a TransferResult. Counts bytes and nothing
// else, so that the client is no slower than what it measures: autocannon turns every body into a string, which at 10 MB
// makes a slow reader of it and measures back-pressure instead.
import { connect, type Socket } from 'node:net';
import { readCpuUs } from './process.ts';

export type TransferJob = {
  readonly port: number;
  readonly direction: 'download' | 'upload';
  readonly path: string;
  /** Of one body. */
  readonly bytes: number;
  readonly connections: number;
  readonly burstSeconds: number;
  readonly seconds: number;
  readonly pid: number;
};

export type TransferResult = {
  readonly transfers: number;
  readonly seconds: number;
  readonly cpuUs: number;
  readonly faults: readonly string[];
};

/** How long one transfer may take before it counts as stuck. */
const STUCK_MS = 10_000;

const job: TransferJob = JSON.parse(process.argv[2] ?? '{}');
const payload = Buffer.alloc(job.direction === 'upload' ? job.bytes : 0, 0x61);
const head = Buffer.from(
  job.direction === 'upload'
    ? `POST ${job.path} HTTP/1.1\r\nHost: 127.0.0.1:${job.port}\r\nContent-Type: application/octet-stream\r\nContent-Length: ${job.bytes}\r\n\r\n`
    : `GET ${job.path} HTTP/1.1\r\nHost: 127.0.0.1:${job.port}\r\n\r\n`,
);
const faults: string[] = [];
await transferFor(job.burstSeconds);
const before = readCpuUs(job.pid);
const startedAt = performance.now();
const transfers = await transferFor(job.seconds);
const seconds = (performance.now() - startedAt) / 1000;
const result: TransferResult = { transfers, seconds, cpuUs: readCpuUs(job.pid) - before, faults };
process.stdout.write(`${JSON.stringify(result)}\n`);

/** Keeps every connection busy for that long and lets the last transfers finish, so that whole bodies are counted. */
async function transferFor(seconds: number): Promise<number> {
  const until = performance.now() + seconds * 1000;
  const counts = await Promise.all(Array.from({ length: job.connections }, () => useConnection(until)));
  return counts.reduce((sum, count) => sum + count, 0);
}

async function useConnection(until: number): Promise<number> {
  const socket = connect({ port: job.port, host: '127.0.0.1', noDelay: true });
  let count = 0;
  try {
    while (performance.now() < until) {
      await transferOnce(socket);
      count++;
    }
  } catch (error) {
    faults.push(error instanceof Error ? error.message : 'a transfer failed');
  }
  socket.destroy();
  return count;
}

function transferOnce(socket: Socket): Promise<void> {
  return new Promise((resolve, reject) => {
    // Until the head was read it is not known how much is to come.
    let left = -1;
    let text = '';
    const read = (chunk: Buffer): void => {
      let size = chunk.length;
      if (left < 0) {
        text += chunk.toString('latin1');
        const end = text.indexOf('\r\n\r\n');
        if (end < 0) return;
        const length = Number(/\r\ncontent-length: *(\d+)/i.exec(text)?.[1] ?? Number.NaN);
        if (!text.startsWith('HTTP/1.1 200 ') || Number.isNaN(length))
          return finish(`another answer: ${text.slice(0, 80)}`);
        if (job.direction === 'download' && length !== job.bytes) return finish(`a body of ${length} bytes`);
        left = length;
        size = text.length - end - 4;
      }
      left -= size;
      if (left < 0) finish('more bytes than announced');
      else if (left === 0) finish();
    };
    const broken = (): void => finish('a connection broke under a transfer');
    const stuck = setTimeout(() => finish(`a transfer took more than ${STUCK_MS / 1000} s`), STUCK_MS);
    const finish = (fault?: string): void => {
      clearTimeout(stuck);
      socket.off('data', read).off('close', broken).off('error', broken);
      if (fault === undefined) resolve();
      else reject(new Error(fault));
    };
    socket.on('data', read).on('close', broken).on('error', broken);
    socket.write(head);
    if (payload.length > 0) socket.write(payload);
  });
}
