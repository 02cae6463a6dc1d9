// Large sets go out a few at a time, small ones always; and what a registry answers while too many are on their way.
import { connect, type Socket } from 'node:net';
import { afterEach, describe, expect, test } from 'vitest';
import { createWholeSets, WHOLE_SETS } from '../../../src/registry/stream/feed-queue.ts';
import { fakeTime } from '../../gateway/sync/fakes.ts';
import { declared, FEED, SDK_KEY, startRegistry, type Kit } from '../kit.ts';

type Release = () => void;

const MIB = 1024 * 1024;

describe('places for whole sets', () => {
  const setUp = (drawn = 0) => {
    const time = fakeTime();
    return { time, sets: createWholeSets(time.schedule, (size) => Buffer.alloc(size, drawn)) };
  };
  const taken = async (asked: ReturnType<ReturnType<typeof setUp>['sets']['take']>): Promise<Release> => {
    const given = await asked;
    if (typeof given !== 'function') throw new Error(given.code);
    return given;
  };

  test('behaviour: eight sets above a mebibyte go out at a time; the ninth goes when one of them has left', async () => {
    const { sets, time } = setUp();
    const [first, ...others] = await Promise.all(
      Array.from({ length: WHOLE_SETS.atOnce }, () => taken(sets.take(MIB + 1))),
    );
    let ninth: Release | undefined;
    const waiting = taken(sets.take(MIB + 1)).then((release) => (ninth = release));
    await time.advance(9_999);
    expect(ninth).toBeUndefined();
    first?.();
    first?.();
    await waiting;
    expect(ninth).toBeTypeOf('function');
    for (const release of [...others, ninth]) release?.();
    await Promise.all(Array.from({ length: WHOLE_SETS.atOnce }, () => taken(sets.take(MIB + 1))));
  });

  test('behaviour: a set of a mebibyte is never refused, however many there are', async () => {
    const { sets } = setUp();
    await Promise.all(Array.from({ length: 1000 }, () => taken(sets.take(MIB))));
    await Promise.all(Array.from({ length: WHOLE_SETS.atOnce }, () => taken(sets.take(MIB + 1))));
    await taken(sets.take(MIB));
  });

  test.each([
    [0, 1],
    [9, 10],
    [10, 1],
    [255, 6],
  ])(
    'refuses: a reader that waited ten seconds for its place, with a time of one to ten seconds that is drawn: %i',
    async (drawn, retry) => {
      const { sets, time } = setUp(drawn);
      for (let i = 0; i < WHOLE_SETS.atOnce; i++) await sets.take(MIB + 1);
      const refused = sets.take(MIB + 1);
      await time.advance(10_000);
      expect(await refused).toMatchObject({ code: 'registry_unavailable', retryAfter: retry });
    },
  );

  test('attack: readers that never take their set keep others waiting for two minutes at most', async () => {
    const { sets, time } = setUp();
    for (let i = 0; i < WHOLE_SETS.atOnce; i++) await sets.take(MIB + 1);
    await time.advance(119_000);
    const waiting = taken(sets.take(MIB + 1));
    await time.advance(1_000);
    await waiting;
  });
});

describe('a registry with a large set', () => {
  let kit: Kit;
  const sockets: Socket[] = [];
  afterEach(async () => {
    for (const socket of sockets.splice(0)) socket.destroy();
    await kit.close();
  });

  test('behaviour: while eight readers are stuck in a set, a reader that has it is told so, and a place that one leaves is the next one’s', async () => {
    kit = await startRegistry();
    // Larger than what the kernel takes off our hands.
    const description = 'x'.repeat(1000);
    const routes = Array.from({ length: 12_000 }, (_, index) => ({
      route_pattern: `/r/${index}`,
      amount: '1',
      description,
    }));
    await kit.registry.declare(declared(routes), 'start');
    const stuck = await Promise.all(Array.from({ length: 8 }, beginToRead));
    const etag = (await kit.sdk('HEAD', FEED, { headers: { 'If-None-Match': '*' } })).headers.etag ?? '';
    expect((await kit.sdk('GET', FEED, { headers: { 'If-None-Match': etag } })).status).toBe(304);
    const waiting = kit.sdk('GET', FEED);
    stuck[0]?.destroy();
    const { status, list } = await waiting;
    expect([status, list.length]).toEqual([200, 12_000]);
  });

  async function beginToRead(): Promise<Socket> {
    const socket = connect(kit.port, '127.0.0.1');
    sockets.push(socket);
    socket.on('error', () => undefined);
    socket.write(`GET ${FEED} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${SDK_KEY}\r\n\r\n`);
    await new Promise<void>((resolve) => socket.once('readable', resolve));
    return socket;
  }
});
