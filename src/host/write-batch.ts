// Batches the writes of one turn of the event loop and sends them at its end. A write to a socket wakes the process
// that reads it. On a virtual machine that costs more than the write itself. If the writes follow each other at once,
// the first one wakes the reader for all. Nothing waits longer than the turn, and each socket gets its bytes in the
// order given here.
import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { systemClock } from './clock.ts';
import { http } from './node-http.ts';

export type WriteBatch = {
  /**
   * Head and body as one text, if `takesOneWrite` says so. `lines`: of `linesOf`. Nothing else may be written
   * to the response after this.
   */
  readonly oneWrite: (res: ServerResponse, status: number, lines: string, body: string) => void;
  /** Time for the Date header. */
  readonly date: () => string;
  /** Calls `res.end(text, encoding)` if the response is still there. Nothing else may be written to it after this. */
  readonly end: (res: ServerResponse, text: string | Buffer, encoding: BufferEncoding) => void;
  /** Calls `socket.write(text, encoding)`, if the socket is still there by then; `sender` is told just before. */
  readonly write: (socket: Socket, text: string, encoding: BufferEncoding, sender?: Sender) => void;
};

/** An object and not a function: most writes are of a request, which then needs no closure of its own. */
type Sender = { onLeaving(): void };

type QueuedWrite =
  | { readonly whole: string; readonly res: ServerResponse }
  | { readonly res: ServerResponse; readonly text: string | Buffer; readonly encoding: BufferEncoding }
  | {
      readonly socket: Socket;
      readonly text: string;
      readonly encoding: BufferEncoding;
      readonly sender: Sender | undefined;
    };

/** A list that grew beyond this in a burst is not kept. */
const MOST_ROOM = 1024;

/** Makes a batch. `atEnd` runs what it is given at the end of the turn; `now` is in milliseconds since the epoch. */
export function createWriteBatch(
  atEnd: (run: () => void) => void = setImmediate,
  now: () => number = systemClock.now,
): WriteBatch {
  const date = createDate(now);
  // Two lists that take turns, and keep their room: a list of each turn's own is a twentieth of a request's garbage.
  let waiting: (QueuedWrite | undefined)[] = [];
  let spare: (QueuedWrite | undefined)[] = [];
  let count = 0;

  const add = (leaving: QueuedWrite): void => {
    if (count === 0) atEnd(flush);
    waiting[count++] = leaving;
  };

  const flush = (): void => {
    const [all, ofAll] = [waiting, count];
    waiting = spare;
    spare = ofAll > MOST_ROOM ? [] : all;
    count = 0;
    for (let i = 0; i < ofAll; i++) {
      const leaving = all[i];
      all[i] = undefined;
      try {
        if (leaving !== undefined) send(leaving);
      } catch (error) {
        // The other writes leave all the same.
        process.nextTick(rethrow, error);
      }
    }
  };

  return {
    oneWrite: (res, status, lines, body) => add({ whole: oneWriteText(status, lines, body), res }),
    date,
    end: (res, text, encoding) => add({ res, text, encoding }),
    write: (socket, text, encoding, sender) => add({ socket, text, encoding, sender }),
  };
}

function send(leaving: QueuedWrite): void {
  if ('whole' in leaving) {
    sendInOneWrite(leaving.res, leaving.whole);
  } else if ('socket' in leaving) {
    if (leaving.socket.destroyed) return;
    leaving.sender?.onLeaving();
    leaving.socket.write(leaving.text, leaving.encoding);
  } else if (!leaving.res.destroyed) {
    leaving.res.end(leaving.text, leaving.encoding);
  }
}

function rethrow(error: unknown): never {
  throw error;
}

// A complete response in one write to its socket. node:http would check each header again, store the head, queue the
// body and end the response a turn later: a 402 then takes 1.08 to 1.23 times the CPU (`npm run bench -- --only
// payment-required --checkout ../without`, `takesOneWrite` always false). What it does between two responses of a
// connection stays its own; the event that it waits for tells it. Only the usual case is taken; every other goes through
// `writeHead` and `end`.

/**
 * Whether `res` takes its response as one text. Not if the connection ends with it, the client speaks HTTP/1.0 or
 * something was sent already.
 */
export function takesOneWrite(res: ServerResponse): boolean {
  const { req } = res;
  return (
    res.shouldKeepAlive &&
    !res.headersSent &&
    res.socket !== null &&
    !res.destroyed &&
    req.httpVersionMinor === 1 &&
    req.httpVersionMajor === 1
  );
}

/**
 * Flat name, value pairs as they go over the wire, each line ended, with a Date if `date` is given and they have
 * none. Undefined if they say something about the connection. They are not checked: see `arePlain`.
 */
export function linesOf(headers: readonly string[], date?: () => string): string | undefined {
  let lines = '';
  let dated = false;
  for (let i = 0; i + 1 < headers.length; i += 2) {
    const name = headers[i] ?? '';
    if (name.length === 4 && name.toLowerCase() === 'date') dated = true;
    else if (name.length === 10 && name.toLowerCase() === 'connection') return undefined;
    lines += `${name}: ${headers[i + 1]}\r\n`;
  }
  return dated || date === undefined ? lines : `${lines}Date: ${date()}\r\n`;
}

// RFC 9110 sections 5.1 and 5.5.
const NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
const NOT_A_VALUE = /[^\t\x20-\x7e\x80-\xff]/;

/** Whether names and values can stand in a head, one byte a character. */
export function arePlain(headers: readonly string[]): boolean {
  for (let i = 0; i + 1 < headers.length; i += 2) {
    if (!NAME.test(headers[i] ?? '') || NOT_A_VALUE.test(headers[i + 1] ?? '')) return false;
  }
  return true;
}

/** Writes a whole response as one text. `lines` and `body` hold characters up to U+00FF, one byte each. */
export function oneWriteText(status: number, lines: string, body: string): string {
  return `${statusLine(status)}${lines}Connection: keep-alive\r\n\r\n${body}`;
}

const STATUS_LINES = new Map(
  Object.entries(http.STATUS_CODES).map(([status, phrase]) => [Number(status), `HTTP/1.1 ${status} ${phrase}\r\n`]),
);

function statusLine(status: number): string {
  return STATUS_LINES.get(status) ?? `HTTP/1.1 ${status} unknown\r\n`;
}

/**
 * Sends a text of `oneWriteText`, unless another answer or the end of the connection came before it. Afterwards the response
 * is through, as after `end`, and the connection's next request is taken up.
 */
export function sendInOneWrite(res: ServerResponse, text: string): void {
  const { socket } = res;
  if (socket === null || socket.destroyed || res.headersSent) return;
  socket.write(text, 'latin1');
  // A write that failed ends the connection, and with it the response.
  if (socket.errored !== null) return;
  if (socket.writableLength === 0) {
    res.emit('finish');
    return;
  }
  socket.write('', 'latin1', (error) => {
    if (error === null || error === undefined) res.emit('finish');
  });
}

/** The Date header's value, made once a second. `now` in milliseconds since the epoch. */
export function createDate(now: () => number): () => string {
  let second = NaN;
  let text = '';
  return () => {
    const current = Math.floor(now() / 1000);
    if (current !== second) {
      second = current;
      text = new Date(current * 1000).toUTCString();
    }
    return text;
  };
}
