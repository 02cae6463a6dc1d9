// What people read leads to what is there: every relative link of the documents beside the program.
import { existsSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, test } from 'vitest';
import { readText, ROOT } from './support.ts';

const DOCUMENTS = [
  ...['README.md', 'SECURITY.md', 'CHANGELOG.md', 'docs/paying.md', 'docs/operating.md', 'config/README.md'],
  ...['docs/assertion.md', 'docs/selling.md'],
  ...[
    'docs/package.md',
    'src/README.md',
    'src/DECISIONS.md',
    'test/README.md',
    'test/lab/README.md',
    'bench/README.md',
  ],
];
/** As headings are addressed on the web. */
const anchorOf = (heading: string): string =>
  heading
    .toLowerCase()
    .replaceAll(/[^\w\s-]/g, '')
    .trim()
    .replaceAll(/\s/g, '-');
const anchorsOf = (file: string): string[] =>
  [...readText(file).matchAll(/^#+ (.*)$/gm)].map(([, heading = '']) => anchorOf(heading));

describe.each(DOCUMENTS)('%s', (file) => {
  test('behaviour: every link of a document leads to a file and a heading that are there', () => {
    const links = [...readText(file).matchAll(/\]\(([^)\s]+)\)/g)]
      .map(([, link = '']) => link)
      .filter((link) => !/^[a-z]+:/.test(link));
    for (const link of links) {
      const [name = '', anchor] = link.split('#');
      const target = name === '' ? file : path.join(path.dirname(file), name);
      expect.soft(existsSync(path.join(ROOT, target)), link).toBe(true);
      if (anchor !== undefined) expect.soft(anchorsOf(target), link).toContain(anchor);
    }
  });
});

test('behaviour: the README leads to every document for users', () => {
  const text = readText('README.md');
  const files = ['docs/paying.md', 'docs/operating.md', 'docs/assertion.md', 'config/README.md', 'SECURITY.md'];
  for (const file of [...files, 'CHANGELOG.md']) expect.soft(text).toContain(`](${file}`);
});

test('behaviour: the README is read in one go', () => {
  expect(Buffer.byteLength(readText('README.md'))).toBeLessThanOrEqual(20_000);
});
