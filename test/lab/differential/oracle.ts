// What an answer is, by the word of node:http's own client: the same bytes, read by somebody else's parser. What it takes
// for a whole answer Tollgate has to deliver, byte for byte; what it does not must never look whole.
import { request, type IncomingMessage } from 'node:http';
import { Duplex } from 'node:stream';
import type { Exchange } from './plan.ts';

export type Verdict =
  | { readonly kind: 'whole'; readonly status: number; readonly headers: readonly string[]; readonly body: Buffer }
  /** It broke off; `head`: behind its head. */
  | { readonly kind: 'broken'; readonly head: boolean };

export function judge({ method, answer }: Exchange): Promise<Verdict> {
  return new Promise((resolve) => {
    const socket = new Duplex({ read: () => undefined, write: (_chunk, _encoding, done) => done() });
    let head = false;
    const broken = (): void => resolve({ kind: 'broken', head });
    socket.on('error', () => undefined);
    const asked = request({ method, host: 'oracle', createConnection: () => socket });
    asked.on('error', broken);
    asked.on('response', (response: IncomingMessage) => {
      head = true;
      const pieces: Buffer[] = [];
      response.on('data', (piece: Buffer) => void pieces.push(piece));
      response.on('error', broken);
      response.on('end', () => {
        if (!response.complete) return broken();
        const { statusCode = 0, rawHeaders } = response;
        resolve({ kind: 'whole', status: statusCode, headers: rawHeaders, body: Buffer.concat(pieces) });
      });
    });
    asked.end();
    process.nextTick(() => {
      socket.push(answer.bytes);
      // A reset in the middle of a body takes it away, however much was read before.
      if (answer.afterwards === 'reset') setImmediate(setImmediate, () => socket.destroy(new Error('reset')));
      else if (answer.afterwards === 'fin') socket.push(null);
    });
  });
}
