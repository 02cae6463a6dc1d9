// Many clients over few connections to an upstream that misbehaves now and then: whoever asks gets the answer with its
// own token, or visibly none. Seeded, so that what fails fails again.
import { describe, expect, it, vi } from 'vitest';
import { createLabs } from '../support/labs.ts';
import { openRaw } from '../support/raw-client.ts';
import { answerWith, foreignTokens, inParallel, LONG, turn } from '../support/wire-lab.ts';
import { ANSWER_CASES, type AnswerCase } from './answer-cases.ts';

const { lab, client } = createLabs();

/** Numbers from 0 up to `below`, the same ones for the same seed (a linear congruential generator). */
function numbers(seed: number): (below: number) => number {
  let state = seed >>> 0;
  return (below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

/** What misbehaves in the middle of others, without the ones that are large. */
const ODD: readonly AnswerCase[] = ANSWER_CASES.filter(
  ({ answer, method }) => answer.length > 0 && answer.length < 1000 && method === undefined,
);

describe('connections to the upstream that many clients share', () => {
  it.each(LONG ? Array.from({ length: 40 }, (_, i) => i + 1) : [1, 2, 3])(
    'attack: whatever the upstream says to others, a client gets its own answer (seed %i)',
    async (seed) => {
      const made = await lab();
      const next = numbers(seed);
      const misbehave = (wanted: AnswerCase, token: string): void => {
        let at = 0;
        const answer = wanted.answer.replace(/@/g, () => token[at++ % token.length] ?? '');
        // What is nobody's comes with the last byte of the answer: no earlier than that can anybody know it.
        const place = next(answer.length);
        made.plan(token, ({ connection: { socket } }) => {
          void (async () => {
            if (place > 0) socket.write(Buffer.from(answer.slice(0, place), 'latin1'));
            await turn();
            if (socket.writable) socket.write(Buffer.from(answer.slice(place) + (wanted.stray ?? ''), 'latin1'));
            await turn();
            if (wanted.end === 'fin') socket.end();
            if (wanted.end === 'rst') socket.resetAndDestroy();
          })();
        });
      };

      const oneClient = async (): Promise<void> => {
        let own: string[] = [];
        let connection = await openRaw(made.gateway.port);
        for (let i = 0; i < 25; i++) {
          const token = made.token();
          own.push(token);
          const odd = next(10) < 4 ? ODD[next(ODD.length)] : undefined;
          const upload = odd === undefined && next(3) === 0;
          if (odd !== undefined) misbehave(odd, token);
          if (upload) made.plan(token, ({ body, connection: { socket } }) => socket.write(answerWith(body.toString())));
          connection.send(
            upload
              ? `POST /free/${token} HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n8\r\n${token}\r\n0\r\n\r\n`
              : `GET /free/${token} HTTP/1.1\r\nHost: h\r\n\r\n`,
          );
          const read = async (): Promise<number | undefined> => {
            const answer = await connection.answer();
            if (answer.status === 103) return read();
            if (odd === undefined) expect([answer.status, answer.body.toString()]).toEqual([200, token]);
            return answer.status;
          };
          const status = await read().catch((error: Error) => {
            if (odd?.comes.to !== 'broken' || !error.message.startsWith('closed')) throw error;
            return undefined;
          });
          if (odd?.comes.to === 'whole') expect(status, odd.name).toBe(odd.comes.status);
          if (odd?.comes.to === 'refused') expect(status, odd.name).toBe(502);
          expect(foreignTokens(connection.received(), own)).toEqual([]);
          expect(connection.received()).not.toContain('stray');
          if (status !== undefined && next(5) > 0) continue;
          connection.close();
          connection = await openRaw(made.gateway.port);
          own = [];
        }
        connection.close();
      };
      await inParallel(Array.from({ length: 24 }), 24, oneClient);
      made.check();
    },
    LONG ? 60_000 : undefined,
  );

  it.each(['second answer', 'H', '\0', 'stray stray', 'HTTP/1.1 100 Continue\r\n\r\n', 'HTTP/1.1 200 OK\r\nX-A: '])(
    'attack: %j on a connection that nobody uses ends it',
    async (said) => {
      const made = await lab();
      const one = await client(made);
      for (let i = 0; i < 3; i++) {
        const token = made.token();
        one.send(`GET /free/${token} HTTP/1.1\r\nHost: h\r\n\r\n`);
        expect((await one.answer()).body.toString()).toBe(token);
        const connection = made.requestsOf(token)[0]?.connection;
        if (connection === undefined) throw new Error('no request');
        await turn();
        connection.spoil();
        connection.socket.write(said === 'second answer' ? answerWith('stray') : said);
        await vi.waitFor(() => expect(connection.closed).toBe(true), { interval: 2 });
      }
      made.check();
      expect(made.upstream.connections).toHaveLength(3);
      expect(one.received()).not.toContain('stray');
    },
  );

  it.each(['GET', 'POST'])(
    'behaviour: a connection that the upstream ended is not used for the next %s',
    async (method) => {
      const made = await lab();
      const one = await client(made);
      for (const how of ['end', 'resetAndDestroy', 'end'] as const) {
        const token = made.token();
        one.send(`${method} /free/${token} HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n`);
        expect((await one.answer()).body.toString()).toBe(token);
        const connection = made.requestsOf(token)[0]?.connection;
        if (connection === undefined) throw new Error('no request');
        connection.spoil();
        connection.socket[how]();
        await vi.waitFor(() => expect(connection.closed).toBe(true), { interval: 2 });
        for (let i = 0; i < 4; i++) await turn();
      }
      made.check();
      expect(made.upstream.requests).toHaveLength(3);
    },
  );

  it('behaviour: a connection whose answers were good is used again', async () => {
    const made = await lab();
    const good = ANSWER_CASES.filter(
      ({ comes, stray, end, answer, method }) =>
        comes.to === 'whole' &&
        stray === undefined &&
        end === undefined &&
        method === undefined &&
        answer.startsWith('HTTP/1.1') &&
        !answer.includes('Connection: close'),
    );
    expect(good.length).toBeGreaterThan(25);
    const one = await client(made);
    for (const { answer, comes } of good) {
      const token = made.token();
      made.plan(
        token,
        ({ connection: { socket } }) => void socket.write(Buffer.from(answer.replaceAll('@', 'x'), 'latin1')),
      );
      one.send(`GET /free/${token} HTTP/1.1\r\nHost: h\r\n\r\n`);
      for (const _ of (comes.to === 'whole' && comes.before) || []) await one.answer();
      await one.answer();
      await turn();
    }
    made.check();
    expect(made.upstream.connections).toHaveLength(1);
  });

  it('attack: requests that a client sent at once are answered in order, also if an answer is followed by a stray one', async () => {
    const made = await lab();
    const tokens = Array.from({ length: 6 }, made.token);
    for (const token of tokens.slice(0, 3))
      made.plan(token, ({ connection: { socket, spoil } }) => {
        spoil();
        socket.write(answerWith(token) + answerWith('stray'));
      });
    const one = await client(made);
    one.send(tokens.map((token) => `GET /free/${token} HTTP/1.1\r\nHost: h\r\n\r\n`).join(''));
    for (const token of tokens) expect((await one.answer()).body.toString()).toBe(token);
    expect(one.received()).not.toContain('stray');
    made.check();
  });

  it('attack: an answer that breaks off never has the next answers on its connection taken for its rest', async () => {
    const made = await lab();
    const [first = '', ...others] = Array.from({ length: 4 }, made.token);
    made.plan(first, ({ connection: { socket } }) => {
      socket.write(`HTTP/1.1 200 OK\r\nContent-Length: 9999\r\n\r\n${first}`);
      setImmediate(() => socket.end());
    });
    const one = await client(made);
    one.send([first, ...others].map((token) => `GET /free/${token} HTTP/1.1\r\nHost: h\r\n\r\n`).join(''));
    await one.closed;
    expect(foreignTokens(one.received(), [first])).toEqual([]);
    expect(made.upstream.requests).toHaveLength(1);
    made.check();
  });
});
