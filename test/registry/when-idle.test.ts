import { createConnection, createServer, type AddressInfo } from 'node:net';
import { once } from 'node:events';
import { describe, expect, it } from 'vitest';
import { createWhenIdle } from '../../src/registry/store/call-queue.ts';

/** A loop whose turns are made by hand; each brings as many events as it is told. */
function fakeLoop() {
  let [events, now] = [0, 0];
  let next: (() => void)[] = [];
  return {
    loop: { afterTurn: (run: () => void) => void next.push(run), events: () => events, now: () => now },
    turn: (brought: number, ms = 0) => {
      events += brought;
      now += ms;
      const due = next;
      next = [];
      for (const run of due) run();
    },
    waiting: () => next.length,
  };
}

describe('what waits for a quiet event loop', () => {
  it('runs once, after the first turn that brought nothing', () => {
    const { loop, turn, waiting } = fakeLoop();
    let ran = 0;
    createWhenIdle(8, loop)(() => ran++);
    expect(ran).toBe(0);
    turn(3);
    turn(2);
    turn(1);
    expect(ran).toBe(0);
    turn(0);
    expect([ran, waiting()]).toEqual([1, 0]);
    turn(0);
    expect(ran).toBe(1);
  });

  it('takes the turn that it was given in for busy: what came with it may bring more', () => {
    const { loop, turn } = fakeLoop();
    let ran = 0;
    createWhenIdle(8, loop)(() => ran++);
    turn(0);
    expect(ran).toBe(0);
    turn(0);
    expect(ran).toBe(1);
  });

  it.each([
    { ms: 7.9, ran: false },
    { ms: 8, ran: true },
  ])('after $ms of 8 ms of turns that all bring something: $ran', ({ ms, ran }) => {
    const { loop, turn } = fakeLoop();
    let did = false;
    createWhenIdle(8, loop)(() => (did = true));
    turn(1, ms / 2);
    turn(1, ms / 2);
    expect(did).toBe(ran);
  });

  it('each has a time of its own', () => {
    const { loop, turn } = fakeLoop();
    const ran: string[] = [];
    const whenIdle = createWhenIdle(8, loop);
    whenIdle(() => ran.push('first'));
    turn(1, 5);
    whenIdle(() => ran.push('second'));
    turn(1, 5);
    expect(ran).toEqual(['first']);
    turn(1, 5);
    expect(ran).toEqual(['first', 'second']);
  });

  it('on the real loop: at once where nothing happens, and in the end where a socket never rests', async () => {
    const whenIdle = createWhenIdle(50);
    await new Promise<void>((resolve) => whenIdle(resolve));

    const server = createServer((socket) => socket.on('error', () => undefined).pipe(socket)).listen(0, '127.0.0.1');
    await once(server, 'listening');
    const client = createConnection((server.address() as AddressInfo).port, '127.0.0.1');
    try {
      await once(client, 'connect');
      // What comes back is sent again, so that every turn of the loop brings something.
      client.pipe(client);
      for (let i = 0; i < 64; i++) client.write('x');
      await once(client, 'data');
      const before = performance.nodeTiming.uvMetricsInfo.events;
      await new Promise<void>((resolve) => whenIdle(resolve));
      expect(performance.nodeTiming.uvMetricsInfo.events).toBeGreaterThan(before);
    } finally {
      client.destroy();
      server.close();
    }
  });
});
