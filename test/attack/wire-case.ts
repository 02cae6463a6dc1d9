// One request or a few, as bytes, and what has to come of them: the words that the tables of wire cases share. `/free/...`
// costs nothing, `/v1/export` costs something with any method, and nobody pays. run-wire-cases.ts runs them.
import { headerOf } from '../support/raw-client.ts';

/** A request as whatever upstream read it. */
export type Seen = {
  readonly method: string;
  readonly target: string;
  readonly headers: readonly (readonly [string, string])[];
  readonly body: Buffer;
};

export type WireCase = {
  readonly name: string;
  /** latin1. `@@@@@@@@` stands for a token that makes the target unique. */
  readonly send: string;
  /** The statuses that each answer may have, in order; no more answers may come. */
  readonly answers: readonly (readonly number[])[];
  /** How many whole requests the upstream sees: neither more nor fewer. */
  readonly upstream: number;
  /** The body breaks off: the upstream may see the beginning of the request, and must never see its end. */
  readonly broken?: boolean;
  /** The server closes the connection by itself. */
  readonly closes?: boolean;
  /** The last message is not at its end, or is none: what is sent behind it belongs to it. */
  readonly open?: boolean;
  /** The server may close the connection by itself, or go on. */
  readonly mayClose?: boolean;
  /** Comes behind the last answer: the end is a reset where it arrives later, and a reset may overtake the answer. */
  readonly behindEnd?: boolean;
  /** What is wrong with the (last) request that the upstream saw, or nothing. */
  readonly wrong?: (seen: Seen) => string | undefined;
};

export const HOST = 'Host: api.example.com\r\n';
export const FREE = `GET /free/@@@@@@@@ HTTP/1.1\r\n${HOST}`;
export const PAID = `GET /v1/export HTTP/1.1\r\n${HOST}`;
export const POST = `POST /free/@@@@@@@@ HTTP/1.1\r\n${HOST}`;
export const CHUNKED = `${POST}Transfer-Encoding: chunked\r\n\r\n`;
export const HIDDEN = `GET /v1/export HTTP/1.1\r\n${HOST}\r\n`;
export const HIDDEN_CHUNK = `${HIDDEN.length.toString(16)}\r\n${HIDDEN}\r\n0\r\n\r\n`;

/**
 * `expected`: the answers in order, each `200` or `400|431`; `!` at the end: the server closes, `?`: it may. As many whole
 * requests have to reach the upstream as there are 200s and 101s, where `more.upstream` does not say otherwise.
 */
export function wire(name: string, send: string, expected: string, more: Partial<WireCase> = {}): WireCase {
  const answers = expected
    .replace(/[!?]$/, '')
    .split(' ')
    .filter((text) => text !== '')
    .map((text) => text.split('|').map(Number));
  const upstream = answers.filter(([status]) => status === 200 || status === 101).length;
  return {
    name,
    send,
    answers,
    upstream,
    ...(expected.endsWith('!') ? { closes: true } : {}),
    ...(expected.endsWith('?') ? { mayClose: true } : {}),
    ...more,
  };
}

/** A chunked body that breaks off in the middle. */
export function brokenChunks(name: string, body: string): WireCase {
  return wire(name, CHUNKED + body, '400!', { broken: true });
}

export const keeps =
  (name: string, value: string | undefined) =>
  (seen: Seen): string | undefined =>
    headerOf(seen, name) === value ? undefined : `${name} is ${headerOf(seen, name)}`;

export const carries =
  (method: string, body: string) =>
  (seen: Seen): string | undefined =>
    seen.method === method && seen.body.toString('latin1') === body
      ? undefined
      : `${seen.method} with ${JSON.stringify(seen.body.toString('latin1'))}`;

/** None of these names reached the upstream. */
export const lacks =
  (...names: readonly string[]) =>
  (seen: Seen): string | undefined =>
    names.find((name) => headerOf(seen, name) !== undefined);
