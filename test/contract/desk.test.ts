// The contract of stores for the desk, over every kind: a ticket is good once and for its holder, sessions are known to all
// who share the store, and neither is kept beyond its number and its time.
import { createHash } from 'node:crypto';
import { join } from 'node:path';
import { afterAll, afterEach, beforeEach, describe, expect, test } from 'vitest';
import { createRandom } from '../../src/host/clock.ts';
import type { DeskStore, NewSession, NewTicket } from '../../src/registry/store/desk-ports.ts';
import { openStore } from '../../src/registry/store/sqlite/store.ts';
import { hasPostgres } from '../postgres/server.ts';
import { freshDatabase, openTestStore, stopSharedPostgres } from '../postgres/store.ts';
import { temporaryFolder } from '../registry/kit.ts';

type Opened = { readonly desk: DeskStore; readonly close: () => void | Promise<void> };
/** Two processes on one store. */
type OpenTwo = () => Promise<readonly [Opened, Opened]>;

afterAll(stopSharedPostgres);

const IMPLEMENTATIONS: readonly (readonly [string, OpenTwo])[] = [
  [
    'SQLite',
    async () => {
      const { folder, remove } = temporaryFolder();
      const open = (): Opened => openStore(join(folder, 'tollgate.db'), { random: createRandom(), busyMs: 5_000 });
      const [first, second] = [open(), open()];
      const close = async (): Promise<void> => {
        await first.close();
        remove();
      };
      return [{ desk: first.desk, close }, second];
    },
  ],
  ...(hasPostgres
    ? ([
        [
          'PostgreSQL',
          async () => {
            const url = await freshDatabase();
            return [await openTestStore(url), await openTestStore(url)] as const;
          },
        ],
      ] as const)
    : []),
];

const NOW = 1_800_000_000_000;
const HOUR = 3_600_000;
const digestOf = (text: string): Buffer => createHash('sha256').update(text).digest();
const ticket = (name: string, rest: Partial<NewTicket> = {}): NewTicket => ({
  ...{ kind: 'link', digest: digestOf(name), holder: '', content: `content of ${name}`, endsAt: NOW + HOUR },
  ...rest,
});
const session = (id: string, rest: Partial<NewSession> = {}): NewSession => ({
  ...{ id, digest: digestOf(id), keyDigest: digestOf(`key of ${id}`), subject: `ö ${id}`, role: 'admin', via: 'oidc' },
  ...{ members: ['ops@example.com', 'other'], createdAt: NOW, seenAt: NOW, notAfter: null },
  ...rest,
});
const END = { actor: 'ann', via: 'session', requestId: null, at: NOW } as const;
const HOLDING = { createdAfter: NOW - 24 * HOUR, seenAfter: NOW - 8 * HOUR, now: NOW };

describe.each(IMPLEMENTATIONS)('the desk: %s', (_name, openTwo) => {
  let both: readonly Opened[] = [];
  let desk: DeskStore;
  let other: DeskStore;
  beforeEach(async () => {
    const [first, second] = await openTwo();
    both = [second, first];
    [desk, other] = [first.desk, second.desk];
  });
  afterEach(async () => {
    for (const { close } of both) await close();
  });

  test('behaviour: a ticket is good once, whichever process is asked, and for its kind and holder alone', async () => {
    await desk.addTicket(ticket('a', { kind: 'download', holder: 's1' }), 10, NOW);
    const wanted = { kind: 'download', digest: digestOf('a'), holder: 's1' } as const;
    expect(await other.takeTicket({ ...wanted, holder: 's2' }, NOW)).toBeUndefined();
    expect(await other.takeTicket({ ...wanted, kind: 'link' }, NOW)).toBeUndefined();
    const taken = await Promise.all([desk, other, desk, other].map((each) => each.takeTicket(wanted, NOW)));
    expect(taken.filter((content) => content !== undefined)).toEqual(['content of a']);
  });

  test('behaviour: a ticket is good up to its end, and tickets beyond their number are refused until one is over', async () => {
    expect(await desk.addTicket(ticket('a', { endsAt: NOW + 5 }), 2, NOW)).toBe('added');
    expect(await other.addTicket(ticket('b'), 2, NOW)).toBe('added');
    expect(await desk.addTicket(ticket('c'), 2, NOW)).toBe('full');
    expect(await desk.addTicket(ticket('d', { kind: 'flow' }), 2, NOW)).toBe('added');
    expect(await desk.takeTicket(ticket('a'), NOW + 5)).toBeUndefined();
    expect(await desk.addTicket(ticket('c'), 2, NOW + 5)).toBe('added');
    expect(await other.takeTicket(ticket('c'), NOW + 6)).toBe('content of c');
  });

  test('behaviour: a session is known to every process as it was made, until one of them ends it', async () => {
    await desk.addSession(session('s1', { notAfter: NOW + HOUR }), 10, HOLDING);
    const { digest, ...stored } = session('s1', { notAfter: NOW + HOUR });
    expect(await other.findSession(digest)).toEqual(stored);
    expect(await other.findSession(digestOf('else'))).toBeUndefined();
    await other.seeSession('s1', NOW + 7);
    await desk.seeSession('s1', NOW + 3);
    expect((await desk.findSession(digest))?.seenAt).toBe(NOW + 7);
    expect(await other.endSession('s2', END)).toBe(false);
    expect(await other.endSession('s1', END)).toBe(true);
    expect(await desk.findSession(digest)).toBeUndefined();
  });

  test('behaviour: sessions that hold are listed newest first and counted; those that are over make room', async () => {
    const over = [
      session('old', { createdAt: NOW - 25 * HOUR }),
      session('idle', { createdAt: NOW - 10 * HOUR, seenAt: NOW - 9 * HOUR }),
      session('expired', { notAfter: NOW }),
    ];
    for (const each of over) {
      const then = { createdAfter: 0, seenAfter: 0, now: each.notAfter === null ? NOW : NOW - 1 };
      expect(await desk.addSession(each, 5, then)).toBe('added');
    }
    expect(await desk.listSessions(HOLDING)).toEqual([]);
    expect(await desk.addSession(session('s1', { createdAt: NOW - 2 }), 2, HOLDING)).toBe('added');
    expect(await desk.addSession(session('s2', { createdAt: NOW - 1, role: 'viewer', via: 'token' }), 2, HOLDING)).toBe(
      'added',
    );
    expect(await other.addSession(session('s3'), 2, HOLDING)).toBe('full');
    expect((await other.listSessions(HOLDING)).map(({ id, role, via }) => [id, role, via])).toEqual([
      ['s2', 'viewer', 'token'],
      ['s1', 'admin', 'oidc'],
    ]);
    expect(await other.endAllSessions(END)).toBe(2);
    expect(await desk.listSessions(HOLDING)).toEqual([]);
  });

  test('attack: the last place for a session goes to one of many that ask for it at once at two processes', async () => {
    await desk.addSession(session('first'), 2, HOLDING);
    const asked = ['a', 'b', 'c', 'd'].map((id, index) =>
      (index % 2 === 0 ? desk : other).addSession(session(id), 2, HOLDING),
    );
    expect((await Promise.all(asked)).toSorted((a, b) => a.localeCompare(b))).toEqual([
      'added',
      'full',
      'full',
      'full',
    ]);
  });
});
