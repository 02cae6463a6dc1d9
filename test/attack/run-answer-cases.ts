// Runs one answer case: an upstream that misbehaves towards one client, and what this client and the next ones get of it.
// The client's token has to be the only one in what it receives, bytes that are nobody's reach nobody, and a connection
// that carried something wrong is closed and never used again.
import { expect, vi } from 'vitest';
import { headerOf, openRaw, type RawAnswer, type RawClient } from '../support/raw-client.ts';
import { foreignTokens, turn, type WireLab } from '../support/wire-lab.ts';
import type { AnswerCase } from './answer-cases.ts';

export type Way = {
  /** By which request: an ordinary one, an ordinary one of HTTP/1.0, or the handshake of a WebSocket. */
  readonly by: 'forward' | 'http10' | 'upgrade';
  /** Where the answer is cut into packets: positions in it, or after every byte. */
  readonly cut: readonly number[] | 'everywhere';
};

const HANDSHAKE =
  'Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n';

export async function runAnswerCase(lab: WireLab, wanted: AnswerCase, way: Way): Promise<void> {
  const token = lab.token();
  let place = 0;
  const answer = wanted.answer.replace(/@/g, () => token[place++ % token.length] ?? '');
  const gone = !staysOpen(wanted);
  // The connection closes before a byte of an answer: a GET may be sent once more.
  if (answer === '') lab.mayRepeat(token);
  lab.plan(token, ({ connection: { socket, spoil } }) => {
    void (async () => {
      const packets = cutUp(answer, wanted.stray ?? '', way.cut);
      for (const [i, packet] of packets.entries()) {
        if (i > 0) await turn();
        if (gone && (wanted.stray === undefined || i === packets.length - 1)) spoil();
        if (socket.writable) socket.write(Buffer.from(packet, 'latin1'));
      }
      if (wanted.end === undefined) return;
      await turn();
      if (wanted.end === 'fin') socket.end();
      else socket.resetAndDestroy();
    })();
  });

  const client = await openRaw(lab.gateway.port);
  const method = wanted.method ?? 'GET';
  const version = way.by === 'http10' ? 'HTTP/1.0' : 'HTTP/1.1';
  client.send(`${method} /free/${token} ${version}\r\nHost: h\r\n${way.by === 'upgrade' ? HANDSHAKE : ''}\r\n`);
  const stays = await expectAnswer(client, wanted, way, token, answer);
  if (gone) {
    const sockets = lab.requestsOf(token).map(({ connection }) => connection);
    await vi.waitFor(() => expect(sockets.every(({ closed }) => closed)).toBe(true), { interval: 2, timeout: 30_000 });
  }

  // The same client and another one ask again: each gets its own answer.
  const own = [token];
  if (stays) {
    const again = lab.token();
    own.push(again);
    client.send(`GET /free/${again} HTTP/1.1\r\nHost: h\r\n\r\n`);
    expect((await client.answer()).body.toString(), client.received()).toBe(again);
  }
  const next = await openRaw(lab.gateway.port);
  const other = lab.token();
  next.send(`GET /free/${other} HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n`);
  expect((await next.answer()).body.toString(), next.received()).toBe(other);
  await next.closed;
  client.close();
  expect(foreignTokens(client.received(), own)).toEqual([]);
  expect(client.received()).not.toContain('stray');
  expect(next.received()).not.toContain('stray');
}

/** What the client has to get; whether its connection goes on. */
async function expectAnswer(
  client: RawClient,
  { comes, method }: AnswerCase,
  { by }: Way,
  token: string,
  sent: string,
): Promise<boolean> {
  const read = (): Promise<RawAnswer> => client.answer(method === 'HEAD');
  switch (comes.to) {
    case 'whole': {
      for (const status of (by === 'forward' ? comes.before : undefined) ?? [])
        expect((await read()).status, client.received()).toBe(status);
      const answer = await read();
      expect([answer.status, answer.body.toString('latin1')], client.received().slice(0, 2000)).toEqual([
        comes.status,
        comes.body.replaceAll('@@@@@@@@', token),
      ]);
      for (const [name, value] of Object.entries(comes.headers ?? {})) expect(headerOf(answer, name), name).toBe(value);
      // A header that came is there as often as it came: none was dropped silently.
      const many = sent.match(/^X-Many:/gm)?.length ?? 0;
      expect(answer.headers.filter(([name]) => name === 'X-Many')).toHaveLength(many);
      if (by === 'forward') return true;
      expect(await client.closed).toBe('fin');
      return false;
    }
    case 'refused': {
      const answer = await read();
      expect([answer.status, headerOf(answer, 'content-type')], client.received().slice(0, 2000)).toEqual([
        502,
        'application/problem+json',
      ]);
      return by === 'forward';
    }
    case 'broken': {
      const answer = await read().catch((error: Error) => error);
      if (answer instanceof Error) {
        expect(answer.message).toMatch(/^closed/);
        return false;
      }
      // For a client of HTTP/1.0 an orderly end would be the end of the body.
      if (by === 'http10' && answer.framing === 'close') {
        expect(await client.closed).toBe('reset');
        return false;
      }
      expect(answer.status, client.received().slice(0, 2000)).toBe(502);
      return by === 'forward';
    }
    default:
      return comes satisfies never;
  }
}

/** Whether the upstream's connection may carry another request after this answer. */
function staysOpen({ answer, stray, end, comes }: AnswerCase): boolean {
  if (comes.to !== 'whole' || stray !== undefined || end !== undefined) return false;
  return !/^Connection: close\r$/m.test(answer) && (!answer.startsWith('HTTP/1.0') || answer.includes('keep-alive'));
}

/** The packets of an answer. What is nobody's stands in one packet with the answer's last byte. */
function cutUp(answer: string, stray: string, cut: Way['cut']): readonly string[] {
  const all = answer + stray;
  const latest = stray === '' ? all.length : answer.length - 1;
  const places = (cut === 'everywhere' ? Array.from(all, (_, i) => i + 1) : cut).filter(
    (at) => at > 0 && at < all.length && (at <= latest || (cut !== 'everywhere' && at > answer.length)),
  );
  const edges = [0, ...places, all.length];
  return edges.slice(1).map((end, i) => all.slice(edges[i], end));
}
