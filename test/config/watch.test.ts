// How changed files are noticed, look by look, with a schedule that the tests turn by hand.
import {
  mkdirSync,
  mkdtempSync,
  renameSync,
  rmSync,
  symlinkSync,
  unlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { watchFiles, type Watch } from '../../src/config/watch.ts';

let folder: string;
let watch: Watch | undefined;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'tollgate-watch-'));
});
afterEach(() => {
  watch?.close();
  rmSync(folder, { recursive: true, force: true });
});

/** Watches `files`; `look` lets it look once and says how often it told of a change since the last look. */
function watching(...files: string[]): () => Promise<number> {
  let told = 0;
  const waiting: (() => void)[] = [];
  let scheduled = Promise.withResolvers<void>();
  watch = watchFiles(
    files,
    () => told++,
    (_ms, run) => {
      waiting.push(run);
      scheduled.resolve();
      return () => undefined;
    },
  );
  return async () => {
    told = 0;
    scheduled = Promise.withResolvers();
    waiting.shift()?.();
    await scheduled.promise;
    return told;
  };
}

describe('a file that is followed', () => {
  test('behaviour: a change of a file is told once, when two looks saw the same; no change is not told', async () => {
    const file = join(folder, 'a.yaml');
    writeFileSync(file, 'one');
    const look = watching(file);
    expect([await look(), await look(), await look()]).toEqual([0, 0, 0]);
    writeFileSync(file, 'two');
    expect([await look(), await look(), await look(), await look()]).toEqual([0, 1, 0, 0]);
  });

  test('behaviour: a file that is still being written is waited for', async () => {
    const file = join(folder, 'a.yaml');
    writeFileSync(file, '');
    const look = watching(file);
    const told: number[] = [];
    for (const text of ['p', 'pr', 'proxy', 'proxy:', 'proxy: {}']) {
      writeFileSync(file, text);
      told.push(await look());
    }
    expect(told).toEqual([0, 0, 0, 0, 0]);
    expect(await look()).toBe(1);
  });

  test('behaviour: an editor that writes beside the file and renames over it, again and again, is followed', async () => {
    const file = join(folder, 'a.yaml');
    writeFileSync(file, '0');
    const look = watching(file);
    for (const text of ['1', '2', '3']) {
      writeFileSync(`${file}~`, text);
      // As old and as long as the one before: it is another file all the same.
      utimesSync(`${file}~`, 1, 1);
      renameSync(`${file}~`, file);
      expect([await look(), await look()]).toEqual([0, 1]);
    }
  });

  test('behaviour: the symlink swap of a ConfigMap is followed', async () => {
    const publish = (version: string, text: string): void => {
      mkdirSync(join(folder, version));
      writeFileSync(join(folder, version, 'tollgate.yaml'), text);
      symlinkSync(version, join(folder, '..data_tmp'));
      renameSync(join(folder, '..data_tmp'), join(folder, '..data'));
    };
    publish('..1', 'one');
    const file = join(folder, 'tollgate.yaml');
    symlinkSync('..data/tollgate.yaml', file);
    const look = watching(file);
    publish('..2', 'two');
    rmSync(join(folder, '..1'), { recursive: true });
    expect([await look(), await look()]).toEqual([0, 1]);
    publish('..3', 'six');
    expect([await look(), await look(), await look()]).toEqual([0, 1, 0]);
  });

  test('behaviour: a file gone for a moment and back is one change; gone for good is one, too', async () => {
    const file = join(folder, 'a.yaml');
    writeFileSync(file, 'one');
    const look = watching(file);
    unlinkSync(file);
    expect(await look()).toBe(0);
    writeFileSync(file, 'two');
    expect([await look(), await look()]).toEqual([0, 1]);
    unlinkSync(file);
    expect([await look(), await look(), await look()]).toEqual([0, 1, 0]);
  });

  test('behaviour: a watch may follow other files later, and a change between reading and following is not lost', async () => {
    const [config, secret] = [join(folder, 'a.yaml'), join(folder, 'secret')];
    writeFileSync(config, 'one');
    writeFileSync(secret, 'one');
    const look = watching(config);
    writeFileSync(secret, 'two');
    writeFileSync(config, 'two');
    watch?.follow([config, secret]);
    expect([await look(), await look()]).toEqual([0, 1]);
    writeFileSync(secret, 'three');
    expect([await look(), await look()]).toEqual([0, 1]);
  });

  test('behaviour: a change that was read for another reason is not told again, and one after it is', async () => {
    const file = join(folder, 'a.yaml');
    writeFileSync(file, 'one');
    const look = watching(file);
    writeFileSync(file, 'two');
    watch?.accept();
    expect([await look(), await look(), await look()]).toEqual([0, 0, 0]);
    writeFileSync(file, 'three');
    watch?.accept();
    writeFileSync(file, 'seven');
    expect([await look(), await look()]).toEqual([0, 1]);
  });
});
