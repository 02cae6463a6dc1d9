// Sends one draft on a connection of its own and waits until the other side has answered or has nothing to say. What
// was answered is only used to know when to stop: nothing is concluded from it.
import { connect } from 'node:net';
import { bytesOf, type Draft } from './draft.ts';

/** Without an answer for so long the connection is given up: some cases are requests that never end. */
export const SILENCE_MS = 1500;
/** The same once something was answered: what follows is ready or will not come. */
const PAUSE_MS = 100;
const PIECES = 5;

/** Resolves to what came back, as latin1. */
export function sendDraft(port: number, draft: Draft, silenceMs = SILENCE_MS): Promise<string> {
  return new Promise((resolve) => {
    const bytes = bytesOf(draft);
    const chunks: Buffer[] = [];
    const socket = connect({ port, host: '127.0.0.1', noDelay: true });
    socket.setTimeout(silenceMs, () => socket.destroy());
    socket.on('error', () => undefined);
    socket.on('data', (chunk: Buffer) => {
      if (chunks.push(chunk) === 1) socket.setTimeout(PAUSE_MS);
    });
    socket.on('close', () => resolve(Buffer.concat(chunks).toString('latin1')));
    socket.on('connect', () => void write(bytes));

    const write = async (all: Buffer): Promise<void> => {
      const size =
        draft.writes === 'whole' ? all.length : draft.writes === 'bytes' ? 1 : Math.ceil(all.length / PIECES);
      for (let at = 0; at < all.length && socket.writable; at += size) {
        socket.write(all.subarray(at, at + size));
        if (size < all.length) await new Promise(setImmediate);
      }
    };
  });
}

/** Sends all of `drafts`, `width` at a time. */
export async function sendAll(port: number, drafts: readonly Draft[], width: number, silenceMs: number): Promise<void> {
  let next = 0;
  const worker = async (): Promise<void> => {
    for (let index = next++; index < drafts.length; index = next++) {
      const draft = drafts[index];
      if (draft === undefined) return;
      await sendDraft(port, draft, silenceMs);
    }
  };
  await Promise.all(Array.from({ length: width }, worker));
}
