// The snapshot file, on a real disk: what it survives, and what is not read from it.
import { chmodSync, mkdirSync, readdirSync, readFileSync, renameSync, statSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { createSnapshotFile, type SnapshotFileOptions } from '../../../../src/gateway/sync/keep/snapshot-file.ts';
import type { FoundSet } from '../../../../src/gateway/sync/follow/route-source.ts';
import { temporaryFolder } from '../../../support/process.ts';
import { route } from '../../../cases/routes.ts';
import { collectLog, fakeTime, found } from '../fakes.ts';

const SECRET = 'the first secret, of more than 32 bytes';
const OLD_SECRET = 'the secret before it, of 32 bytes and more';
const REGISTRY = 'https://registry.example.com';
const HOUR = 3_600_000;

let temporary: ReturnType<typeof temporaryFolder>;
let file: string;
beforeEach(() => {
  temporary = temporaryFolder();
  file = path.join(temporary.folder, 'data/routes.json');
});
afterEach(() => temporary.remove());

function setUp(options: Partial<SnapshotFileOptions> = {}) {
  const time = fakeTime();
  const { log, lines } = collectLog();
  const snapshotFile = createSnapshotFile({
    file,
    registryUrl: REGISTRY,
    secrets: [SECRET],
    maxAgeMs: 24 * HOUR,
    clock: time,
    schedule: time.schedule,
    log,
    ...options,
  });
  const save = async (set: FoundSet = SET): Promise<void> => {
    snapshotFile.keep(set, time.now());
    await snapshotFile.settled();
  };
  const why = (): unknown => lines.findLast(({ msg }) => msg === 'the snapshot file is not used')?.['reason'];
  return { snapshotFile, save, time, lines, why };
}

const SET: FoundSet = {
  ...found('registry-a', 7, []).set,
  routes: [route('GET /a/:id 0.10', { description: ',"routes":[ \\ "é' }), route('* /b/* 2')],
};

describe('what is kept', () => {
  test('behaviour: a set that changes all the time is written a tenth of the time, as it is by then', async () => {
    let now = 0;
    const time = fakeTime();
    // Each write takes a second of this clock: it is read before and after.
    const clock = { now: time.now, monotonic: () => (now += 500) };
    const waits: number[] = [];
    let due = (): void => undefined;
    const { snapshotFile } = setUp({
      clock,
      schedule: (ms, run) => {
        waits.push(ms);
        due = run;
        return () => undefined;
      },
    });
    const revision = (): unknown => JSON.parse(readFileSync(file, 'utf8')).revision;
    const until = (check: () => void): Promise<void> => vi.waitFor(check, { timeout: 30_000, interval: 5 });
    for (const next of [1, 2, 3, 4]) snapshotFile.keep({ ...SET, revision: next }, clock.now());
    await until(() => expect(waits).toHaveLength(1));
    expect([waits[0], revision()]).toEqual([expect.toSatisfy((ms) => Number(ms) > 3000), 1]);
    due();
    await until(() => expect(revision()).toBe(4));
    snapshotFile.keep({ ...SET, revision: 5 }, clock.now());
    await until(() => expect(waits).toHaveLength(2));
    // At its end it is written at once.
    snapshotFile.keep({ ...SET, revision: 6 }, clock.now());
    await snapshotFile.settled();
    expect(revision()).toBe(6);
  });

  test('behaviour: a set is read back as it was, with the names the registry gave it', async () => {
    const { snapshotFile, save, time } = setUp();
    await save();
    expect(await snapshotFile.read()).toEqual({ set: SET, savedAt: time.now() });
    expect(statSync(file).mode & 0o777).toBe(0o600);
    expect(JSON.parse(readFileSync(file, 'utf8'))).toMatchObject({
      version: 1,
      registry_url: REGISTRY,
      routes: [{ route_pattern: '/a/:id' }, {}],
    });
  });

  test('behaviour: a bare set, which has no names, and an empty one are read back as they were', async () => {
    const { snapshotFile, save } = setUp();
    const bare: FoundSet = { registryId: undefined, revision: undefined, etag: undefined, digest: 'd', routes: [] };
    await save(bare);
    expect((await snapshotFile.read())?.set).toEqual(bare);
  });

  test('behaviour: the snapshot file is 0600 and whole whatever stood there before; nothing is left beside it', async () => {
    const { snapshotFile, save } = setUp();
    mkdirSync(path.dirname(file));
    writeFileSync(file, 'older', { mode: 0o666 });
    writeFileSync(`${file}.draft`, 'what a crash left', { mode: 0o666 });
    await save();
    expect(statSync(file).mode & 0o777).toBe(0o600);
    expect(readdirSync(path.dirname(file))).toEqual(['routes.json']);
    expect((await snapshotFile.read())?.set.revision).toBe(7);
  });

  test('behaviour: a set that stays the same is written again when a tenth of its life is over, so that it does not age while confirmed', async () => {
    const { snapshotFile, save, time } = setUp();
    await save();
    const first = readFileSync(file, 'utf8');
    await time.advance(2 * HOUR);
    await save();
    expect(readFileSync(file, 'utf8')).toBe(first);
    await time.advance(HOUR);
    await save();
    expect(await snapshotFile.read()).toEqual({ set: SET, savedAt: time.now() });
  });

  test('behaviour: the last of many sets in a row stands in the file', async () => {
    const { snapshotFile } = setUp();
    for (let revision = 1; revision <= 50; revision++) snapshotFile.keep({ ...SET, revision }, revision);
    await snapshotFile.settled();
    expect(JSON.parse(readFileSync(file, 'utf8'))).toMatchObject({ revision: 50, saved_at: 50 });
  });

  test('behaviour: a folder that cannot be written is told of once, and written to when it can be', async () => {
    const { save, lines } = setUp();
    writeFileSync(path.dirname(file), 'a file where the folder should be');
    await save();
    await save();
    expect(lines.filter(({ level }) => level === 'warn')).toHaveLength(1);
    renameSync(path.dirname(file), path.join(temporary.folder, 'aside'));
    await save();
    expect(readdirSync(path.dirname(file))).toEqual(['routes.json']);
  });

  test('behaviour: a snapshot_max_age of 0 keeps nothing', async () => {
    const { snapshotFile, save } = setUp({ maxAgeMs: 0 });
    await save();
    expect(readdirSync(temporary.folder)).toEqual([]);
    expect(await snapshotFile.read()).toBeUndefined();
  });
});

describe('what is not read', () => {
  test('behaviour: a missing file is no reason to say anything', async () => {
    const { snapshotFile, lines } = setUp();
    expect(await snapshotFile.read()).toBeUndefined();
    expect(lines).toEqual([]);
  });

  test('attack: a file of which any byte was changed, added or cut off is not read', async () => {
    const { snapshotFile, save, why } = setUp();
    await save();
    const whole = readFileSync(file);
    for (let at = 0; at < whole.length; at += 7) {
      const changed = Buffer.from(whole);
      changed[at] = (changed[at] ?? 0) ^ 1;
      writeFileSync(file, changed);
      expect(await snapshotFile.read(), `byte ${at}`).toBeUndefined();
    }
    for (const changed of [
      whole.subarray(0, -1),
      whole.subarray(0, 40),
      Buffer.alloc(0),
      Buffer.concat([whole, whole]),
      Buffer.concat([whole, Buffer.from('\n')]),
    ]) {
      writeFileSync(file, changed);
      expect(await snapshotFile.read()).toBeUndefined();
      expect(why()).toMatch(/not whole|does not verify/);
    }
    writeFileSync(file, whole);
    expect(await snapshotFile.read()).toBeDefined();
  });

  test('attack: a file with a cheaper price, signed with another secret, is not read', async () => {
    await setUp({ secrets: ['a secret of the attacker, 32 bytes long'] }).save({
      ...SET,
      routes: [route('GET /a/:id 0.000001')],
    });
    const { snapshotFile, why } = setUp();
    expect(await snapshotFile.read()).toBeUndefined();
    expect(why()).toMatch(/signature does not verify/);
  });

  test('behaviour: the secrets of the file rotate: the first signs, all verify', async () => {
    await setUp({ secrets: [OLD_SECRET] }).save();
    expect(await setUp({ secrets: [SECRET, OLD_SECRET] }).snapshotFile.read()).toBeDefined();
    await setUp({ secrets: [SECRET, OLD_SECRET] }).save();
    expect(await setUp({ secrets: [SECRET] }).snapshotFile.read()).toBeDefined();
    expect(await setUp({ secrets: [OLD_SECRET] }).snapshotFile.read()).toBeUndefined();
  });

  test('refuses: a file with the set of another registry', async () => {
    await setUp({ registryUrl: 'https://other.example.com' }).save();
    const { snapshotFile, why } = setUp();
    expect(await snapshotFile.read()).toBeUndefined();
    expect(why()).toBe('it is of another registry, https://other.example.com');
  });

  test('refuses: a file that is older than snapshot_max_age, or from the future', async () => {
    const { snapshotFile, save, time, why } = setUp();
    await save();
    await time.advance(24 * HOUR);
    expect(await snapshotFile.read()).toBeDefined();
    await time.advance(1);
    expect(await snapshotFile.read()).toBeUndefined();
    expect(why()).toMatch(/older than sync.snapshot_max_age/);
    const early = setUp({ clock: fakeTime(1_800_000_000_000 - HOUR) });
    expect(await early.snapshotFile.read()).toBeUndefined();
    expect(early.why()).toMatch(/future/);
  });

  test('refuses: a file that cannot be read, without ending the start', async () => {
    const { snapshotFile, save, why } = setUp();
    await save();
    renameSync(file, `${file}.aside`);
    mkdirSync(file);
    chmodSync(file, 0o700);
    expect(await snapshotFile.read()).toBeUndefined();
    expect(why()).toMatch(/EISDIR/);
  });
});
