// An answer that is there whole, as one text on the response's socket. node:http would check each header again, store the
// head, queue the body behind it and take the end of the write for the end of the answer a turn later: more work than
// most answers of ours are. What it does between one answer and the next of a connection stays its own; it is told by the
// event that it waits for. Only the usual case is taken: whoever is refused here goes through `writeHead` and `end`.
import type { ServerResponse } from 'node:http';
import { http } from './node-http.ts';

export type WholeAnswer = {
  readonly status: number;
  /** Flat name, value pairs, with the length that the client is told. */
  readonly headers: readonly string[];
  /** Characters up to U+00FF, one byte each. */
  readonly body: string;
  /** The headers were read by a strict parser or are made of parts that cannot break a head: they are not checked again. */
  readonly checked: boolean;
};

/**
 * Head and body as they go over the wire; undefined where the answer has to go through `writeHead` and `end`: the
 * connection ends with it, the client speaks HTTP/1.0, something was sent already, or a header is not plain.
 * `date`: for the Date header, where `headers` have none.
 */
export function wholeText(res: ServerResponse, answer: WholeAnswer, date: () => string): string | undefined {
  if (!isUsual(res)) return undefined;
  const { status, headers, checked } = answer;
  let head = `HTTP/1.1 ${status} ${http.STATUS_CODES[status] ?? 'unknown'}\r\n`;
  let dated = false;
  for (let i = 0; i + 1 < headers.length; i += 2) {
    const name = headers[i] ?? '';
    const value = headers[i + 1] ?? '';
    if (!checked && (NOT_A_NAME.test(name) || NOT_A_VALUE.test(value))) return undefined;
    if (name.length === 4 && name.toLowerCase() === 'date') dated = true;
    else if (name.length === 10 && name.toLowerCase() === 'connection') return undefined;
    head += `${name}: ${value}\r\n`;
  }
  if (!dated) head += `Date: ${date()}\r\n`;
  return `${head}Connection: keep-alive\r\n\r\n${answer.body}`;
}

/**
 * Sends a text of `wholeText`, unless another answer or the end of the connection came before it. Afterwards the response
 * is through, as after `end`, and the connection's next request is taken up.
 */
export function sendWhole(res: ServerResponse, text: string): void {
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

// RFC 9110 sections 5.1 and 5.5.
const NOT_A_NAME = /[^!#$%&'*+.^_`|~0-9A-Za-z-]|^$/;
const NOT_A_VALUE = /[^\t\x20-\x7e\x80-\xff]/;

function isUsual(res: ServerResponse): boolean {
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
