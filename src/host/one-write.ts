// Sends a complete response in one write to its socket. node:http would check each header again, store the head, queue
// the body and end the response a turn later: more work than most responses of ours are. What it does between two
// responses of a connection stays its own; the event that it waits for tells it. Only the usual case is taken; every
// other goes through `writeHead` and `end`.
import type { ServerResponse } from 'node:http';
import { http } from './node-http.ts';

/**
 * Whether `res` takes its answer as one text. Not if the connection ends with it, the client speaks HTTP/1.0 or
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

/** `lines` and `body`: characters up to U+00FF, one byte each. */
export function oneWriteText(status: number, lines: string, body: string): string {
  return `${statusLine(status)}${lines}Connection: keep-alive\r\n\r\n${body}`;
}

function statusLine(status: number): string {
  return `HTTP/1.1 ${status} ${http.STATUS_CODES[status] ?? 'unknown'}\r\n`;
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
