// A TCP relay in front of a database that does what networks do: loses the answer of a commit, or everything for a while.
import { connect, createServer, type Socket } from 'node:net';

export type Tap = {
  readonly port: number;
  /** The next commit is carried out; its connection ends before its answer arrives. Resolves when that has happened. */
  readonly loseCommit: () => Promise<void>;
  /** The next commit waits here, until what is resolved with is called. */
  readonly holdCommit: () => Promise<() => void>;
  /** Ends the connections that there are; later ones are served. */
  readonly cut: () => void;
  /** From now on nothing arrives on the connections that there are. */
  readonly swallow: () => void;
  /** Once so many bytes more have gone through, both ways together, all else waits for `release`. */
  readonly holdAfter: (bytes: number) => { readonly held: Promise<void>; readonly release: () => void };
  /** Bytes that went through so far. */
  readonly carried: () => number;
  /** Later connections lead there. */
  readonly aim: (target: number) => void;
  readonly close: () => Promise<void>;
};

export async function startTap(first: number): Promise<Tap> {
  let target = first;
  const sockets = new Set<Socket>();
  let lost: (() => void) | undefined;
  let held: ((letGo: () => void) => void) | undefined;
  let generation = 0;
  let carried = 0;
  let hold: { readonly at: number; readonly begin: () => void; readonly waiting: (() => void)[] } | undefined;
  const carry = (chunk: Buffer | string, on: () => void): void => {
    carried += chunk.length;
    if (hold === undefined || carried < hold.at) on();
    else {
      hold.waiting.push(on);
      hold.begin();
    }
  };
  const server = createServer((client) => {
    const own = generation;
    const upstream = connect(target, '127.0.0.1');
    let losing = false;
    for (const [socket, other] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      sockets.add(socket);
      socket.setNoDelay(true);
      socket.on('error', () => undefined);
      socket.on('close', () => {
        sockets.delete(socket);
        other.destroy();
      });
    }
    client.on('data', (chunk) =>
      carry(chunk, () => {
        if (own < generation) return;
        if (held !== undefined && chunk.includes('COMMIT')) {
          held(() => upstream.write(chunk));
          held = undefined;
          return;
        }
        if (lost !== undefined && chunk.includes('COMMIT')) losing = true;
        upstream.write(chunk);
      }),
    );
    upstream.on('data', (chunk) =>
      carry(chunk, () => {
        if (own < generation) return;
        // The tag of the answer: it was carried out.
        if (losing && chunk.includes('COMMIT')) {
          client.destroy();
          lost?.();
          lost = undefined;
        } else if (!losing) client.write(chunk);
      }),
    );
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('no port is free');
  return {
    port: address.port,
    loseCommit: () => new Promise((resolve) => void (lost = resolve)),
    holdCommit: () => new Promise((resolve) => void (held = resolve)),
    cut: () => {
      for (const socket of sockets) socket.destroy();
    },
    holdAfter: (bytes) => {
      const { promise: held, resolve: begin } = Promise.withResolvers<void>();
      const waiting: (() => void)[] = [];
      hold = { at: carried + bytes, begin, waiting };
      const release = (): void => {
        hold = undefined;
        for (const on of waiting) on();
      };
      return { held, release };
    },
    carried: () => carried,
    aim: (next) => void (target = next),
    swallow: () => void (generation += 1),
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        for (const socket of sockets) socket.destroy();
      }),
  };
}
