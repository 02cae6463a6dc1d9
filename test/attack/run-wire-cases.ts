// Runs wire cases against a proxy in front of an upstream that tells what it saw: alone, in pieces, behind a free request
// and in front of one, and on a connection that served before. After each case one more request goes through on a
// connection of its own: if anything had been left over on a pooled connection, it would get a foreign answer.
import { expect } from 'vitest';
import { headerOf, openRaw, type RawClient } from '../support/raw-client.ts';
import { turn } from '../support/wire-lab.ts';
import { HOST, type Seen, type WireCase } from './wire-case.ts';

/** An upstream that says which requests with a token it saw. */
export type Witness = { readonly requestsOf: (token: string) => readonly (Seen & { readonly whole: boolean })[] };

export type Front = {
  readonly port: number;
  readonly witness: Witness;
  readonly token: () => string;
};

/** How the bytes are put on the wire; a number: in two packets, cut there. */
export type How = 'whole' | 'byte by byte' | 'behind' | 'in front' | 'kept alive' | number;

const PIECES = 60;
const TRICKLED_BYTES = 2000;

const free = (token: string): string => `GET /free/${token} HTTP/1.1\r\n${HOST}\r\n`;

export async function runWireCase(front: Front, wire: WireCase, how: How, fenced = true): Promise<void> {
  const { witness } = front;
  const token = front.token();
  const before = front.token();
  const after = front.token();
  const bytes = wire.send.replaceAll('@@@@@@@@', token);
  const client = await openRaw(front.port);
  // Until the connection is accepted what is sent in two packets would be read as one.
  await turn();
  const expectOwn = async (own: string): Promise<void> => {
    const answer = await client.answer();
    expect([answer.status, answer.body.toString()], client.received()).toEqual([200, own]);
  };

  const split = how === 'byte by byte' || typeof how === 'number';
  let answers = wire.answers.length;
  if (how === 'kept alive') {
    client.send(free(before));
    await expectOwn(before);
    answers++;
  }
  await put(client, how === 'behind' ? free(before) + bytes : how === 'in front' ? bytes + free(after) : bytes, how);
  if (how === 'behind') {
    await expectOwn(before);
    answers++;
  }
  for (const statuses of wire.answers) {
    const answer = await client.answer(bytes.startsWith('HEAD ')).catch((error: Error) => {
      if (wire.behindEnd === true && split) return undefined;
      throw error;
    });
    if (answer === undefined) {
      answers--;
      continue;
    }
    expect(statuses, client.received().slice(0, 2000)).toContain(answer.status);
    if (answer.status >= 400 && answer.status !== 402)
      expect(headerOf(answer, 'content-type'), client.received()).toBe('application/problem+json');
  }
  const closes = wire.closes === true;
  let went = false;
  if (how === 'in front' && !closes) {
    went = await expectOwn(after).then(
      () => true,
      (error: Error) => {
        if (wire.mayClose === true && error.message.startsWith('closed')) return false;
        throw error;
      },
    );
    if (went) answers++;
  }
  if (closes) await client.closed;
  const received = client.received();
  client.close();
  if (fenced) await fence(front);

  expect(received.match(/HTTP\/1\.1 \d{3} /g)?.length ?? 0, received).toBe(answers);
  const seen = witness.requestsOf(token);
  expect(seen.filter(({ whole }) => whole)).toHaveLength(wire.upstream);
  if (wire.broken !== true) expect(seen).toHaveLength(wire.upstream);
  expect(witness.requestsOf(before)).toHaveLength(how === 'behind' || how === 'kept alive' ? 1 : 0);
  expect(witness.requestsOf(after)).toHaveLength(went ? 1 : 0);
  const last = seen.at(-1);
  if (last !== undefined && wire.wrong !== undefined) expect(wire.wrong(last)).toBeUndefined();
}

/** The next client gets its own answer. */
export async function fence(front: Front): Promise<void> {
  const token = front.token();
  const client = await openRaw(front.port);
  client.send(`GET /free/${token} HTTP/1.1\r\n${HOST}Connection: close\r\n\r\n`);
  expect((await client.answer()).body.toString(), 'the next request got its own answer').toBe(token);
  await client.closed;
}

async function put(client: RawClient, bytes: string, how: How): Promise<void> {
  if (how === 'byte by byte' && bytes.length <= TRICKLED_BYTES) return client.trickle(bytes);
  const places =
    how === 'byte by byte'
      ? Array.from({ length: PIECES }, (_, i) => Math.floor((bytes.length * (i + 1)) / (PIECES + 1)))
      : typeof how === 'number'
        ? [how]
        : [];
  const edges = [0, ...places, bytes.length];
  for (const [i, end] of edges.slice(1).entries()) {
    if (i > 0) await turn();
    if (client.socket.writable) client.send(bytes.slice(edges[i], end));
  }
}
