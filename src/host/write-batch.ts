// Batches the writes of one turn of the event loop and sends them at its end. A write to a socket wakes the process that
// reads it, which on a virtual machine costs more than the write itself; written one behind the other, the first write
// wakes the reader for all. Nothing waits longer than the turn, and each socket gets its bytes in the order given here.
import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { systemClock } from './clock.ts';
import { createDate, sendInOneWrite, oneWriteText } from './one-write.ts';

export type WriteBatch = {
  /**
   * Head and body as one text, if `takesOneWrite` (one-write.ts) says so. `lines`: of `linesOf`. Nothing else may be written
   * to the response after this.
   */
  readonly oneWrite: (res: ServerResponse, status: number, lines: string, body: string) => void;
  /** For the Date header. */
  readonly date: () => string;
  /** `res.end(text, encoding)`, if the response is still there by then. Nothing else may be written to it after this. */
  readonly end: (res: ServerResponse, text: string | Buffer, encoding: BufferEncoding) => void;
  /** `socket.write(text, encoding)`, if the socket is still there by then; `left` is called just before. */
  readonly write: (socket: Socket, text: string, encoding: BufferEncoding, left?: () => void) => void;
};

type Leaving =
  | { readonly whole: string; readonly res: ServerResponse }
  | { readonly res: ServerResponse; readonly text: string | Buffer; readonly encoding: BufferEncoding }
  | {
      readonly socket: Socket;
      readonly text: string;
      readonly encoding: BufferEncoding;
      readonly left: (() => void) | undefined;
    };

/** `atEnd` runs what it is given at the end of the turn; `now`: milliseconds since the epoch. */
export function createWriteBatch(
  atEnd: (run: () => void) => void = setImmediate,
  now: () => number = systemClock.now,
): WriteBatch {
  const date = createDate(now);
  let waiting: Leaving[] = [];

  const add = (leaving: Leaving): void => {
    if (waiting.length === 0) atEnd(flush);
    waiting.push(leaving);
  };

  const flush = (): void => {
    const all = waiting;
    waiting = [];
    for (const leaving of all) {
      try {
        send(leaving);
      } catch (error) {
        // The others leave all the same.
        process.nextTick(rethrow, error);
      }
    }
  };

  return {
    oneWrite: (res, status, lines, body) => add({ whole: oneWriteText(status, lines, body), res }),
    date,
    end: (res, text, encoding) => add({ res, text, encoding }),
    write: (socket, text, encoding, left) => add({ socket, text, encoding, left }),
  };
}

function send(leaving: Leaving): void {
  if ('whole' in leaving) {
    sendInOneWrite(leaving.res, leaving.whole);
  } else if ('socket' in leaving) {
    if (leaving.socket.destroyed) return;
    leaving.left?.();
    leaving.socket.write(leaving.text, leaving.encoding);
  } else if (!leaving.res.destroyed) {
    leaving.res.end(leaving.text, leaving.encoding);
  }
}

function rethrow(error: unknown): never {
  throw error;
}
