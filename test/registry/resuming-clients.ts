// A thread with clients of an event stream that resume at once. It reads all of them, looks through a few of them event
// by event, and says what they got. A thread of its own: reading a gigabyte must not be taken for the server's work.
import { connect } from 'node:net';
import { parentPort, workerData } from 'node:worker_threads';

export type Resuming = {
  readonly port: number;
  readonly key: string;
  readonly streams: number;
  readonly lastSeen: number;
  /** They are done once they have this revision, or were told to read the set. */
  readonly until: number;
};
/** `wrong`: revisions that came out of order, of those streams that were looked through. */
export type Resumed = {
  readonly done: number;
  readonly resets: number;
  readonly bytes: number;
  readonly wrong: number;
};

const LOOKED_THROUGH = 20;
const { port, key, streams, lastSeen, until } = workerData as Resuming;
const end = Buffer.from(`\nid: ${until}\n`);
const result = { done: 0, resets: 0, bytes: 0, wrong: 0 };

const open = (index: number): Promise<void> => {
  const { promise, resolve } = Promise.withResolvers<void>();
  const socket = connect(port, '127.0.0.1');
  let tail = Buffer.alloc(0);
  let last = lastSeen;
  socket.write(
    `GET /v1/protected-routes/events HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${key}\r\nLast-Event-ID: ${lastSeen}\r\n\r\n`,
  );
  socket.on('data', (chunk: Buffer) => {
    result.bytes += chunk.length;
    const text = Buffer.concat([tail, chunk]);
    tail = text.subarray(-64);
    if (index < LOOKED_THROUGH) {
      for (const [, id] of text.toString('latin1').matchAll(/\nid: (\d+)\n/g)) {
        // The end of the chunk before is looked at again; the head has the revision of the last change.
        if (Number(id) <= last) continue;
        if (Number(id) !== last + 1) result.wrong++;
        last = Number(id);
      }
    }
    const isReset = text.includes('event: reset');
    if (!isReset && !text.includes(end)) return;
    result.done++;
    if (isReset) result.resets++;
    socket.removeAllListeners('data');
    socket.resume();
    resolve();
  });
  socket.on('error', () => undefined);
  socket.on('close', resolve);
  return promise;
};

await Promise.all(Array.from({ length: streams }, (_, index) => open(index)));
parentPort?.postMessage(result satisfies Resumed, []);
