// The map of src/README.md, made of the tree itself: a table a folder, a row a file, with the first sentence of the
// file's own comment. `npm run map` writes it, and the types of the client; test/architecture.test.ts holds the README against it.
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';

const SRC = path.resolve(import.meta.dirname, '../../src');
const README = path.join(SRC, 'README.md');
const MARK = '## The map\n';

/** src/README.md as it should be: its prose as written, its map as the tree is. */
export function renderReadme(): string {
  const prose = readFileSync(README, 'utf8').split(MARK)[0] ?? '';
  return `${prose}${MARK}${renderFolder('')}`;
}

export function readReadme(): string {
  return readFileSync(README, 'utf8');
}

function renderFolder(folder: string): string {
  const entries = readdirSync(path.join(SRC, folder), { withFileTypes: true }).toSorted((a, b) =>
    a.name < b.name ? -1 : 1,
  );
  const rows = entries
    .filter((entry) => entry.isFile() && /\.(tsx?|sql)$/.test(entry.name))
    .map(
      (entry) =>
        `| [\`${entry.name}\`](${path.join(folder, entry.name)}) | ${firstSentence(path.join(SRC, folder, entry.name))} |\n`,
    );
  const table =
    rows.length === 0
      ? ''
      : `\n### ${folder === '' ? 'src' : folder}\n\n| file | what it is for |\n|---|---|\n${rows.join('')}`;
  const below = entries
    .filter((entry) => entry.isDirectory())
    .map((entry) => renderFolder(path.join(folder, entry.name)));
  return table + below.join('');
}

function firstSentence(file: string): string {
  const lines = readFileSync(file, 'utf8')
    .replace(/^#!.*\n/, '')
    .split('\n');
  const end = lines.findIndex((line) => !/^(\/\/|--)/.test(line));
  const comment = lines
    .slice(0, end)
    .map((line) => line.replace(/^(\/\/|--) ?/, ''))
    .join(' ');
  return (/^.*?[.:](?= |$)/.exec(comment)?.[0] ?? comment).replace(/:$/, '.').replaceAll('|', '\\|');
}

if (process.argv[1] === import.meta.filename && process.argv.includes('--write')) {
  const { CLIENT_SCHEMA, renderClientSchema } = await import('./client-schema.ts');
  writeFileSync(CLIENT_SCHEMA, renderClientSchema());
  writeFileSync(README, renderReadme());
}
