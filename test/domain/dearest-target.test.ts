// What the dearest target costs that a search finds: bounded, whatever a client sends; and the search would find it if it
// were not. Steps are letters that string functions were given; 100,000 of them are about 100 microseconds.
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { afterAll, describe, expect, test } from 'vitest';
import { canonicalPath } from '../../src/domain/routing/target.ts';
import { FULL_FOLDING } from '../../src/domain/routing/profile.ts';
import type { Dearest } from './dearest-target.ts';

const ROOT = path.resolve(import.meta.dirname, '../..');
const MOST = 100_000;

const folders: string[] = [];
afterAll(() => {
  for (const folder of folders) rmSync(folder, { recursive: true });
});

/** In a process of its own, because it counts by replacing what strings can do. */
async function search(root: string, evaluations: number, seed: number): Promise<Dearest> {
  const file = path.join(import.meta.dirname, 'dearest-target.ts');
  const { stdout } = await promisify(execFile)(process.execPath, [file, root, String(evaluations), String(seed)]);
  return JSON.parse(stdout) as Dearest;
}

/** A copy of the source in which `text` of fold.ts is another. */
function changed(text: string, by: string): string {
  const root = mkdtempSync(path.join(tmpdir(), 'tollgate-dearest-'));
  folders.push(root);
  cpSync(path.join(ROOT, 'src/domain'), path.join(root, 'src/domain'), { recursive: true });
  symlinkSync(path.join(ROOT, 'node_modules'), path.join(root, 'node_modules'));
  const file = path.join(root, 'src/domain/routing/fold.ts');
  const source = readFileSync(file, 'utf8');
  expect(source.split(text)).toHaveLength(2);
  writeFileSync(file, source.replace(text, by));
  return root;
}

describe('the dearest target', () => {
  test.each([1, 2, 3])(
    'attack: a search with seed %i finds no target that costs much',
    async (seed) => {
      expect((await search(ROOT, 1200, seed)).steps).toBeLessThan(MOST);
    },
    60_000,
  );

  test('attack: without the budget the same search finds a target that costs much', async () => {
    const root = changed('return readings.left >= 0;', 'readings.left = 1e9;\n  return true;');
    expect((await search(root, 240, 1)).steps).toBeGreaterThan(2 * MOST);
  }, 600_000);

  test('attack: combining marks without end are refused before they are sorted', () => {
    const paths = { encodedSlashes: 'refuse', doubleSlashes: 'merge', folding: FULL_FOLDING } as const;
    expect(canonicalPath(`/a${'%CC%80%CC%96'.repeat(15)}`, paths).ok).toBe(true);
    expect(canonicalPath(`/a${'%CC%80%CC%96'.repeat(16)}`, paths)).toMatchObject({ ok: false });
  });

  test('attack: a letter that grows is counted as grown', () => {
    const paths = { encodedSlashes: 'refuse', doubleSlashes: 'merge', folding: FULL_FOLDING } as const;
    expect(canonicalPath(`/${'%EF%B7%BA'.repeat(10)}`, paths).ok).toBe(true);
    expect(canonicalPath(`/${'%EF%B7%BA'.repeat(100)}`, paths)).toMatchObject({ ok: false });
  });

  test.each([
    ['plain', `/${'a'.repeat(8190)}`],
    ['many segments', `/${'abcdefg/'.repeat(1000)}x`],
    ['one escape', `/${'a'.repeat(2500)}%20x`],
    ['a file', `/${'a'.repeat(2500)}.pdf`],
    ['ids', `/v1/users/${Array.from({ length: 500 }, (_, id) => 1000 + id).join(',')}`],
    ['Chinese', `/wiki/${'%E4%BA%AC'.repeat(100)}`],
  ])('behaviour: a long ordinary path is read: %s', (_, raw) => {
    const paths = { encodedSlashes: 'refuse', doubleSlashes: 'merge', folding: FULL_FOLDING } as const;
    expect(canonicalPath(raw, paths)).toMatchObject({ ok: true });
  });
});
