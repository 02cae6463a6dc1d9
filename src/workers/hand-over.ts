// The port of the proxy where workers serve it: accepts connections and hands each to the worker that has the fewest. One
// connection at a time is on its way to a worker, so that a worker that stands still or dies holds up no other one.
import { createServer, type Server, type Socket } from 'node:net';
import { setImmediate } from 'node:timers/promises';
import type { Clock, Schedule } from '../host/clock.ts';
import type { Member } from './member.ts';

type HandOverOptions = {
  /** Names the listener to the workers. */
  readonly listener: string;
  readonly listen: { readonly host: string; readonly port: number };
  readonly members: () => readonly Member[];
  readonly clock: Pick<Clock, 'monotonic'>;
  readonly schedule: Schedule;
  /** Connections that wait for a worker at most; one more is closed at once. */
  readonly maxWaiting: number;
};

type HandOver = {
  /** Rejects if the port cannot be bound. */
  readonly bind: () => Promise<{ readonly address: string; readonly port: number }>;
  /** Says that some worker may be able to take one. */
  readonly able: () => void;
  /** Accepts nothing any more; resolves when those that were accepted are with a worker, or closed. */
  readonly close: () => Promise<void>;
};

type QueuedSocket = { readonly socket: Socket; readonly since: number };

/** Queue of connections that the system lets in for us; Node's own. */
const BACKLOG = 511;
/** A worker that has not taken a connection for so long is passed over. */
const SLOW_MS = 200;
/** Longest wait of a connection without any worker that takes it. */
const WAIT_MS = 5_000;

export function createHandOver({ listener, listen, members, clock, schedule, maxWaiting }: HandOverOptions): HandOver {
  let waiting: QueuedSocket[] = [];
  let timed = false;
  let accepted = 0;
  let emptied: (() => void) | undefined;
  // The worker reads what is sent; half-open connections are its affair.
  const server = createServer({ pauseOnConnect: true, noDelay: true, allowHalfOpen: true });

  const later = (): void => {
    if (timed) return;
    timed = true;
    schedule(SLOW_MS, () => {
      timed = false;
      const now = clock.monotonic();
      for (const { socket } of waiting.filter(({ since }) => now - since > WAIT_MS)) socket.resetAndDestroy();
      waiting = waiting.filter(({ since }) => now - since <= WAIT_MS);
      able();
    });
  };

  /** Chooses a worker. Undefined: none, or the one whose turn it is has yet to take another. */
  const choose = (now: number): Member | undefined => {
    let chosen: Member | undefined;
    for (const member of members()) {
      if (member.life === 'starting' || member.waitingMs(now) > SLOW_MS) continue;
      if (chosen === undefined || comesBefore(member, chosen)) chosen = member;
    }
    return chosen?.isFree === true ? chosen : undefined;
  };

  const able = (): void => {
    const now = clock.monotonic();
    for (let next = waiting[0]; next !== undefined; next = waiting[0]) {
      const member = choose(now);
      if (member === undefined) break;
      waiting.shift();
      member.give(next.socket, now, listener);
    }
    if (waiting.length > 0) later();
    else emptied?.();
  };

  server.on('connection', (socket) => {
    accepted++;
    socket.on('error', () => undefined);
    if (waiting.length >= maxWaiting) {
      socket.destroy();
      return;
    }
    waiting.push({ socket, since: clock.monotonic() });
    able();
  });

  return {
    bind: () => bind(server, listen),
    able,
    close: async () => {
      // Clients that the system let in already are accepted first: one with each turn.
      for (let seen = -1, left = BACKLOG; seen < accepted && left > 0; left--) {
        seen = accepted;
        for (let turns = 0; turns < 2; turns++) await setImmediate();
      }
      server.close();
      if (waiting.length > 0) await new Promise<void>((resolve) => (emptied = resolve));
    },
  };
}

/** Whether `a` has its turn before `b`: fewer connections first, and of as many the one that waits longest. */
function comesBefore(a: Member, b: Member): boolean {
  return a.load < b.load || (a.load === b.load && a.givenAt < b.givenAt);
}

function bind(
  server: Server,
  { host, port }: HandOverOptions['listen'],
): Promise<{ readonly address: string; readonly port: number }> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, host, () => {
      server.removeListener('error', reject);
      server.on('error', () => undefined);
      const bound = server.address();
      if (bound === null || typeof bound === 'string') reject(new Error('the proxy has no address'));
      else resolve({ address: bound.address, port: bound.port });
    });
  });
}
