// The upstream of the differential test: strict about what it reads (support/strict-upstream.ts), and answering each
// request with the bytes that were drawn for its token.
import type { Socket } from 'node:net';
import { startStrictUpstream, type StrictRequest } from '../../support/strict-upstream.ts';
import { TURN, type Exchange, type Pieces } from './plan.ts';

export type DrawnUpstream = {
  readonly url: URL;
  /** From now on it answers these as well. */
  readonly add: (exchange: Exchange) => void;
  readonly seen: (token: string) => readonly StrictRequest[];
  /** What no careful sender would have sent, and requests that nobody drew. */
  readonly violations: () => readonly string[];
  readonly close: () => Promise<void>;
};

export async function startDrawnUpstream(): Promise<DrawnUpstream> {
  const drawn = new Map<string, Exchange>();
  const seen = new Map<string, StrictRequest[]>();
  const strangers: string[] = [];
  const answer = (request: StrictRequest, when: 'early' | 'whole'): void => {
    const exchange = drawn.get(tokenOf(request));
    if (exchange !== undefined && (exchange.answer.when === 'early' ? 'early' : 'whole') === when)
      void send(request.connection.socket, exchange);
  };
  const upstream = await startStrictUpstream((request) => answer(request, 'whole'));
  upstream.onHead((request) => {
    const token = tokenOf(request);
    const known = seen.get(token);
    if (known === undefined) seen.set(token, [request]);
    else known.push(request);
    if (!drawn.has(token)) {
      strangers.push(`a request that nobody sent: ${JSON.stringify(request.head.slice(0, 300))}`);
      request.connection.socket.destroy();
    }
    answer(request, 'early');
  });
  return {
    url: upstream.url,
    add: (exchange) => void drawn.set(exchange.token, exchange),
    seen: (token) => seen.get(token) ?? [],
    violations: () => [...upstream.violations, ...strangers],
    close: upstream.close,
  };
}

function tokenOf({ target }: StrictRequest): string {
  return target.slice(target.lastIndexOf('/') + 1);
}

async function send(socket: Socket, { answer }: Exchange): Promise<void> {
  if (answer.deaf) socket.pause();
  await writePieces(socket, answer.pieces);
  if (answer.afterwards === 'fin') socket.end();
  else if (answer.afterwards === 'reset') socket.resetAndDestroy();
}

/** Resolves when all was handed over, or the socket takes no more. */
export async function writePieces(socket: Socket, pieces: Pieces): Promise<void> {
  for (const { bytes, waitMs } of pieces) {
    if (waitMs === TURN) await turn();
    else if (waitMs > 0) await new Promise((resolve) => void setTimeout(resolve, waitMs));
    if (!socket.writable) return;
    if (!socket.write(bytes)) await drained(socket);
  }
}

/** The loop has polled its sockets in between: two writes with a turn in between are two reads. */
async function turn(): Promise<void> {
  await new Promise(setImmediate);
  await new Promise(setImmediate);
}

function drained(socket: Socket): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      socket.off('drain', done);
      socket.off('close', done);
      resolve();
    };
    socket.on('drain', done);
    socket.on('close', done);
  });
}
