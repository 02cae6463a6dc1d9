// A TCP relay in front of a server, or of several, that does what networks do: it can be shut (connections are refused and
// open ones end, as if the server's machine were gone), cut what is open, pass on late, and end or hold a connection around a
// word that passes. Several servers take new connections in turn; one that refuses is passed over.
import { connect, createServer, type Socket } from 'node:net';

export type Gate = {
  readonly port: number;
  readonly shut: () => Promise<void>;
  readonly open: () => Promise<void>;
  /** Ends the connections that are open, wherever they stand; how many. */
  readonly cut: () => number;
  /**
   * The next connection on which a client says `word` within so long (by default a second) ends before that arrives, or before an
   * answer with it does.
   */
  readonly cutAt: (word: string, when: 'asked' | 'answered', withinMs?: number) => void;
  /**
   * The next connection on which a client soon says `word` passes nothing on for so long, and then all of it: what a client said that
   * has given up meanwhile arrives all the same.
   */
  readonly holdAt: (word: string, ms: number) => void;
  /** From now on each piece is passed on so much later. */
  readonly delay: (ms: number) => void;
  /** Nothing is late or held any more, and nothing will be cut. */
  readonly calm: () => void;
  readonly close: () => Promise<void>;
};

type Trap = { readonly word: string; readonly until: number } & (
  | { readonly when: 'asked' | 'answered' }
  | { readonly when: 'held'; readonly ms: number }
);

/** For who is busy. Who comes back after an outage would meet one at every attempt. */
const TRAP_MS = 1_000;

/** `targets`: ports, asked anew for each connection. */
export async function startGate(targets: () => readonly number[]): Promise<Gate> {
  const sockets = new Set<Socket>();
  const holds = new Set<() => void>();
  let delayMs = 0;
  let trap: Trap | undefined;
  let turn = 0;

  const reach = (ports: readonly number[], reached: (server: Socket | undefined) => void): void => {
    const [first, ...others] = ports;
    if (first === undefined) return reached(undefined);
    const server = connect(first, '127.0.0.1');
    const refused = (): void => reach(others, reached);
    server.once('error', refused);
    server.once('connect', () => {
      server.off('error', refused);
      reached(server);
    });
  };

  const join = (client: Socket, server: Socket): void => {
    let sprung: Trap | undefined;
    /** What waits until the connection is held no more, in order. */
    let held: (() => void)[] | undefined;
    const release = (): void => {
      const waiting = held ?? [];
      held = undefined;
      for (const pass of waiting) pass();
    };
    const hold = (ms: number): void => {
      held = [];
      // It is cut no more: what it holds is to arrive.
      for (const socket of [client, server]) sockets.delete(socket);
      const over = (): void => {
        clearTimeout(timer);
        holds.delete(over);
        release();
      };
      const timer = setTimeout(over, ms);
      holds.add(over);
    };
    const end = (): void => {
      client.destroy();
      server.destroy();
    };
    keep(sockets, server);
    for (const [from, to] of [
      [client, server],
      [server, client],
    ] as const) {
      from.setNoDelay(true);
      from.on('end', () => (held === undefined ? to.end() : held.push(() => to.end())));
      from.on('close', (failed) => {
        if (held !== undefined) held.push(() => to.end());
        else if (failed) to.destroy();
        else to.end();
      });
      from.on('data', (chunk: Buffer) => {
        if (from === client && sprung === undefined && isSprung(trap, chunk)) {
          sprung = trap;
          trap = undefined;
          if (sprung.when === 'asked') return end();
          if (sprung.when === 'held') hold(sprung.ms);
        } else if (from === server && sprung?.when === 'answered') {
          if (chunk.includes(sprung.word)) end();
          return;
        }
        if (held !== undefined) held.push(() => to.write(chunk));
        else if (delayMs > 0) {
          from.pause();
          setTimeout(() => {
            to.write(chunk);
            from.resume();
          }, delayMs);
        } else if (!to.write(chunk)) {
          from.pause();
          to.once('drain', () => from.resume());
        }
      });
    }
  };

  const begin = (client: Socket): void => {
    keep(sockets, client);
    const all = targets();
    const at = turn++ % Math.max(1, all.length);
    reach([...all.slice(at), ...all.slice(0, at)], (server) => {
      if (server === undefined || client.destroyed) {
        server?.destroy();
        client.destroy();
      } else join(client, server);
    });
  };

  let server = createServer(begin);
  const listen = (port: number): Promise<void> =>
    new Promise((resolve, reject) => {
      server = createServer(begin);
      server.once('error', reject);
      server.listen(port, '127.0.0.1', resolve);
    });
  const cut = (): number => {
    const count = sockets.size;
    for (const socket of sockets) socket.destroy();
    return count;
  };
  const shut = (): Promise<void> =>
    new Promise((resolve) => {
      server.close(() => resolve());
      cut();
    });
  await listen(0);
  const address = server.address();
  const port = typeof address === 'object' && address !== null ? address.port : 0;
  return {
    port,
    shut,
    open: () => listen(port),
    cut,
    cutAt: (word, when, withinMs = TRAP_MS) => void (trap = { word, when, until: performance.now() + withinMs }),
    holdAt: (word, ms) => void (trap = { word, when: 'held', ms, until: performance.now() + TRAP_MS }),
    delay: (ms) => void (delayMs = ms),
    calm: () => {
      delayMs = 0;
      trap = undefined;
      for (const release of holds) release();
    },
    close: shut,
  };
}

function isSprung(trap: Trap | undefined, chunk: Buffer): trap is Trap {
  return trap !== undefined && performance.now() < trap.until && chunk.includes(trap.word);
}

function keep(sockets: Set<Socket>, socket: Socket): void {
  sockets.add(socket);
  socket.on('error', () => undefined);
  socket.on('close', () => void sockets.delete(socket));
}
