// Load without a pause over plain sockets, in a process of its own: `node bench/closed.ts JOB` prints a ClosedResult. For
// machines without wrk: it takes a few times less CPU than autocannon, whose place is where bodies are looked at. Every
// answer's status is; a connection that breaks is a fault.
import { connect } from 'node:net';
import { readCpuUs } from './process.ts';
import { headLines, lineOf, linesOf, type Asked, type Line } from './question.ts';
import { POST_BODY } from './upstream-answers.ts';
import { readStatus, type Reader } from './wire.ts';

export type ClosedJob = {
  readonly port: number;
  readonly method: 'GET' | 'POST';
  /** Asked for one after another; or `prefix`, and every request asks for a path below it that nobody asked for before. */
  readonly paths: readonly string[] | { readonly prefix: string };
  readonly body: 'none' | 'small';
  /** Left out: the request itself. */
  readonly asked?: Asked;
  /** Every answer has this status and a body of at least so many bytes. */
  readonly expect: { readonly status: number; readonly bytes: number };
  readonly connections: number;
  readonly seconds: number;
  /** Whose CPU counts. */
  readonly pid: number;
};

export type ClosedResult = {
  readonly requests: number;
  readonly seconds: number;
  readonly cpuUs: number;
  /** What went wrong, in words; empty where every answer was as expected. */
  readonly faults: readonly string[];
};

process.stdout.write(`${JSON.stringify(await run(JSON.parse(process.argv[2] ?? '{}')))}\n`);

async function run(job: ClosedJob): Promise<ClosedResult> {
  const next = requestsOf(job);
  const wrong = new Map<string, number>();
  const before = readCpuUs(job.pid);
  const startedAt = performance.now();
  const until = startedAt + job.seconds * 1000;
  const counts = await Promise.all(
    Array.from({ length: job.connections }, () => useConnection(job, next, until, wrong)),
  );
  const seconds = (performance.now() - startedAt) / 1000;
  const cpuUs = readCpuUs(job.pid) - before;
  const faults = [...wrong].map(([what, count]) => `${count} times: ${what}`);
  return { requests: counts.reduce((sum, count) => sum + count, 0), seconds, cpuUs, faults };
}

/** One request after the other until the time is up; resolves with how many were answered. */
function useConnection(
  { port, expect }: ClosedJob,
  next: () => Buffer,
  until: number,
  wrong: Map<string, number>,
): Promise<number> {
  return new Promise((resolve) => {
    const reader: Reader = { pending: undefined };
    let count = 0;
    const fail = (what: string): void => void wrong.set(what, (wrong.get(what) ?? 0) + 1);
    const socket = connect({ port, host: '127.0.0.1', noDelay: true }, () => socket.write(next()));
    socket.on('data', (chunk: Buffer) => {
      const status = readStatus(reader, chunk);
      if (status === undefined) return;
      count++;
      if (status !== expect.status) fail(`${status} instead of ${expect.status}`);
      if (performance.now() < until) socket.write(next());
      else {
        socket.destroy();
        resolve(count);
      }
    });
    const broken = (): void => {
      if (!socket.destroyed || performance.now() < until) fail('a connection broke');
      resolve(count);
    };
    socket.on('error', broken).on('end', broken);
  });
}

function requestsOf({ port, method, paths, body, asked = 'request' }: ClosedJob): () => Buffer {
  const fields =
    body === 'none' ? '' : `Content-Type: application/json\r\nContent-Length: ${Buffer.byteLength(POST_BODY)}\r\n`;
  const make = (line: Line): Buffer =>
    Buffer.from(
      `${method} ${line.path} HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\n${headLines(line)}${fields}\r\n${body === 'none' ? '' : POST_BODY}`,
    );
  let n = 0;
  if ('prefix' in paths) {
    const { prefix } = paths;
    return () => make(lineOf(asked, `${prefix}${process.pid.toString(36)}-${(n++).toString(36)}`));
  }
  const made = linesOf(asked, paths).map(make);
  return () => made[n++ % made.length] ?? make(lineOf(asked, '/'));
}
