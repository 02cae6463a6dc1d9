// The commands that the documents name are there: a word behind `tollgate` or `npm start --` is one of the program's.
import { describe, expect, test } from 'vitest';
import { COMMANDS } from '../../src/cli/commands.ts';
import { readText } from '../deploy/support.ts';

const DOCUMENTS = [
  'README.md',
  'docs/paying.md',
  'docs/operating.md',
  'config/README.md',
  'SECURITY.md',
  'CHANGELOG.md',
];
const KNOWN = new Set(['help', ...COMMANDS.map(({ name }) => name)]);

describe.each(DOCUMENTS)('%s', (file) => {
  test('behaviour: a document names commands that there are', () => {
    const code = [...readText(file).matchAll(/`([^`\n]+)`|^```sh\n([^]*?)^```$/gm)].map(
      ([, inline = '', block = '']) => inline + block,
    );
    const named = code.flatMap((text) =>
      [...text.matchAll(/(?:^|[\n(;&|] *|exec (?:--\S+ |-\S+ )*tollgate )(?:tollgate|npm start --) ([a-z]+)/g)].map(
        ([, word = '']) => word,
      ),
    );
    expect(named.filter((word) => !KNOWN.has(word))).toEqual([]);
  });
});
