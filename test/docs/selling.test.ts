// docs/selling.md as an owner copies it: its configurations load, and its command makes a line of a file of keys.
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { afterAll, expect, test } from 'vitest';
import { readKeyTableAtOnce } from '../../src/domain/selling/key-table.ts';
import { readText as readFile } from '../deploy/support.ts';
import { readText } from '../selling/kit.ts';
import { temporaryFolder } from '../support/process.ts';

const files = temporaryFolder();
afterAll(files.remove);
const PLAIN = [
  'proxy: { upstream: "http://127.0.0.1:3000" }',
  'registry: {}',
  `receivers: [{ id: default, network: base-sepolia, pay_to_address: "0x${'1'.repeat(40)}", facilitators: ["http://127.0.0.1:1"] }]`,
].join('\n');

/** Fenced blocks, also those within a list. */
const blocks = [...readFile('docs/selling.md').matchAll(/^( *)```(yaml|sh)\n([\s\S]*?)^ *```$/gm)].map(
  ([, indent = '', language, text = '']) => ({
    language,
    text: text
      .split('\n')
      .map((line) => line.slice(indent.length))
      .join('\n'),
  }),
);

test('behaviour: the configurations of docs/selling.md load, a part of one in the place that it is of', () => {
  files.write('partners.txt', `${'ab'.repeat(32)} acme\n`);
  const texts = blocks.filter(({ language }) => language === 'yaml').map(({ text }) => text);
  expect(texts.length).toBeGreaterThan(4);
  for (const text of texts) {
    const isPart = text.startsWith(' ');
    const config = readText(
      `${PLAIN}\n${isPart ? `selling:\n  plans:\n    - id: default\n      price:\n${text}` : text}`,
      files.folder,
    );
    expect(config.selling.plans.byId.size).toBeGreaterThan(0);
  }
});

test('behaviour: the command of docs/selling.md writes a key that is found under the name of its customer', () => {
  const [command, ...others] = blocks.filter(({ language }) => language === 'sh');
  expect(others).toEqual([]);
  const key = 'a-key-of-a-customer-of-mine';
  files.write('partners.txt', '');
  execFileSync('sh', ['-e', '-c', command?.text ?? ''], { cwd: files.folder, env: { ...process.env, KEY: key } });
  const table = readKeyTableAtOnce(readFileSync(`${files.folder}/partners.txt`));
  expect(table.find(createHash('sha256').update(key).digest())).toBe('acme');
});
