// What kill -9 leaves: after it, every change that a store holds has its entry in the audit log, and every entry its change. A
// process changes a store of each kind without a pause and is killed again and again, each time somewhere else.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { afterAll, expect, test } from 'vitest';
import type { Store } from '../../src/registry/store/ports.ts';
import { hasPostgres } from '../postgres/server.ts';
import { freshDatabase, stopSharedPostgres } from '../postgres/store.ts';
import { openStoreAt } from '../support/store-at.ts';
import { temporaryFolder } from './kit.ts';

afterAll(stopSharedPostgres);

const CHANGER = new URL('../support/store-changer.ts', import.meta.url).pathname;
const KILLS = 3;
const BIG = 1_000_000;

/** Lets a process change the store, and kills it in the middle of its `round`th round. */
async function changeAndKill(url: string, round: number): Promise<void> {
  const child = spawn(process.execPath, [CHANGER, url], { stdio: ['ignore', 'pipe', 'inherit'] });
  const exited = once(child, 'exit');
  for await (const line of createInterface(child.stdout)) if (Number(line) >= round) break;
  child.kill('SIGKILL');
  expect((await exited)[1]).toBe('SIGKILL');
}

/** What the store holds and what its audit log says of it, as lines that must be the same. */
async function compare({ routes, apiKeys, desk, audit }: Store): Promise<{ held: string[]; told: string[] }> {
  const entries = await audit.list({ limit: BIG });
  const of = (kinds: string): typeof entries => entries.filter(({ kind }) => kind.startsWith(kinds));
  const changes = await routes.changesAfter(0, BIG);
  if (changes === 'too_old') throw new Error(changes);
  const keys = await apiKeys.list();
  const ended = new Set(of('session.ended').map(({ subject }) => subject));
  const open = await desk.listSessions({ createdAfter: 0, seenAfter: 0, now: 0 });
  return {
    held: [
      ...changes.map(({ kind, route }) => `route.${kind} ${route.id}`),
      ...keys.map(({ id }) => `api_key.created ${id}`),
      ...keys.flatMap(({ id, revokedAt }) => (revokedAt === null ? [] : [`api_key.revoked ${id}`])),
      ...open.map(({ id }) => `open ${id}`),
    ].toSorted(),
    told: [
      ...[...of('route.'), ...of('api_key.')].map(({ kind, subject }) => `${kind} ${subject}`),
      ...of('session.created').flatMap(({ subject }) => (ended.has(subject) ? [] : [`open ${subject}`])),
    ].toSorted(),
  };
}

const sameIn = ({ held, told }: Awaited<ReturnType<typeof compare>>): boolean => held.join() === told.join();

const STORES: readonly (readonly [string, () => Promise<{ url: string; remove: () => void }>])[] = [
  [
    'SQLite',
    async () => {
      const { folder, remove } = temporaryFolder();
      return { url: `sqlite:${join(folder, 'tollgate.db')}`, remove };
    },
  ],
  ...(hasPostgres
    ? ([['PostgreSQL', async () => ({ url: await freshDatabase(), remove: () => undefined })]] as const)
    : []),
];

test.each(STORES)(
  'behaviour: kill -9 loses no entry of a change that happened and leaves none for one that did not, %s',
  async (_name, make) => {
    const { url, remove } = await make();
    let before = 0;
    for (let kill = 0; kill < KILLS; kill++) {
      await changeAndKill(url, kill * 4);
      const store = await openStoreAt(url);
      // The database may still be ending what the killed process had begun.
      await expect.poll(async () => sameIn(await compare(store))).toBe(true);
      const { held, told } = await compare(store);
      await store.close();
      expect(held.length).toBeGreaterThan(before);
      before = held.length;
      expect(told).toEqual(held);
    }
    remove();
  },
);
