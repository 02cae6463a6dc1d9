// The table of payments in test/README.md: every row names a test that is there.
import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';

const FOLDER = import.meta.dirname;
const [, section = ''] = readFileSync(path.join(FOLDER, 'README.md'), 'utf8').split('\n## What was paid\n');
const ROWS = (section.split('\n## ')[0] ?? '')
  .split('\n')
  .map((line) => line.split('|').map((cell) => cell.trim()))
  .filter((cells) => cells.length === 8 && !/^(?:network|-+)$/.test(cells[1] ?? ''));

test('behaviour: the table of payments has a row for each network', () => {
  expect(ROWS.length).toBeGreaterThan(8);
  expect(new Set(ROWS.map(([, network]) => network))).toEqual(new Set(['Base Sepolia', 'Base', 'Solana devnet']));
});

test.each(ROWS.map((cells) => [cells.slice(1, 6).join(', '), cells[6] ?? '']))(
  'behaviour: %s: its test is there',
  (_, shown) => {
    const [, file = '', title = ''] = /^`([\w/-]+)`: (.+)$/.exec(shown) ?? [];
    const found = ['.test.ts', '.suite.ts']
      .map((end) => path.join(FOLDER, file + end))
      .find((name) => existsSync(name));
    expect(found, shown).toBeDefined();
    const titles = readFileSync(found ?? '', 'utf8').match(/(?<=['"`(: ])[^'"`\n]{4,}(?=['"`])/g) ?? [];
    expect(title.length).toBeGreaterThan(8);
    expect(
      titles.some((each) => each.endsWith(title)),
      shown,
    ).toBe(true);
  },
);
