// The table of keys in config/README.md says what the schema says.
import { expect, test } from 'vitest';
import { describedKeys } from '../../src/config/keys.ts';
import { createConfigSchema } from '../../src/config/schema.ts';
import { takesOf } from '../../src/config/fields.ts';
import { listRows } from '../support/config-lists.ts';
import { readConfigReadme, renderConfigReadme } from '../support/config-table.ts';

const LEAVES = describedKeys(createConfigSchema('')).filter(({ isLeaf }) => isLeaf);

test('behaviour: config/README.md lists every key as it is (npm run map writes it)', () => {
  expect(readConfigReadme()).toBe(renderConfigReadme());
});

test('behaviour: every key of receivers and routes has a row of its own, with what it takes and a sentence', () => {
  const rows = [...listRows('receivers'), ...listRows('routes')];
  expect(rows.length).toBeGreaterThan(30);
  for (const { path, takes, sentence } of rows) {
    expect([path, takes]).not.toEqual([path, '']);
    expect([path, sentence]).toEqual([path, expect.stringMatching(/^[^a-z].*\.$/)]);
    expect(readConfigReadme()).toContain(`\n| \`${path}\` | `);
  }
});

test('behaviour: every key has a sentence, and says what it takes', () => {
  expect(LEAVES.length).toBeGreaterThan(60);
  for (const { path, sentence, schema } of LEAVES) {
    expect([path, sentence]).toEqual([path, expect.stringMatching(/^[^a-z].*\.$/)]);
    expect([path, takesOf(schema)]).not.toEqual([path, '']);
  }
});
