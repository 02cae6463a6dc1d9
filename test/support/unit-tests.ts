// The rule for `npm run test:unit`, and for which files share a process in every run: a test of a folder of `src` is a unit test
// unless it, or anything of `test` that it imports, starts a process, a chain, a database server or a browser. A new test is in
// or out by what it imports.
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';

const TEST = path.resolve(import.meta.dirname, '..');
/** Modules of `src` that bundle what browsers get, in a process each. */
const BUNDLERS = ['gateway/page/assets.ts', 'registry/desk/desk-files.ts', 'pack-desk.ts'].map((name) =>
  path.resolve(TEST, '../src', name),
);

/** Folders of `test` that are called as those of `src`. */
const FOLDERS = [
  'cli',
  'compose',
  'config',
  'desk',
  'domain',
  'gateway',
  'host',
  'http',
  'page',
  'registry',
  'workers',
];

/** Modules by which a test starts something: PostgreSQL and anvil are child processes too, and so are the bundlers. */
const STARTERS: ReadonlySet<string> = new Set([
  'node:child_process',
  'node:cluster',
  'litesvm',
  'playwright-core',
  ...BUNDLERS,
]);

/** Would be unit tests, but count what happens in one turn: other files leave work behind in a process. */
const ALONE: ReadonlySet<string> = new Set(['registry/disk.test.ts'].map((name) => path.join(TEST, name)));

/** Test files of `FOLDERS` from the root of the repository, and whether the rule takes them. */
export function sortTests(): { readonly unit: readonly string[]; readonly others: readonly string[] } {
  const starts = new Map<string, boolean>();
  const startsSomething = (file: string): boolean => {
    const known = starts.get(file);
    if (known !== undefined) return known;
    starts.set(file, false);
    const found = importsOf(file).some(
      (name) => STARTERS.has(name) || (path.isAbsolute(name) && startsSomething(name)),
    );
    starts.set(file, found);
    return found;
  };
  const files = FOLDERS.flatMap((folder) =>
    readdirSync(path.join(TEST, folder), { recursive: true, encoding: 'utf8' })
      .filter((name) => name.endsWith('.test.ts'))
      .map((name) => path.join(TEST, folder, name)),
  ).toSorted();
  const isUnit = (file: string): boolean => !ALONE.has(file) && !startsSomething(file);
  const names = (which: boolean): readonly string[] =>
    files.filter((file) => isUnit(file) === which).map((file) => path.relative(path.dirname(TEST), file));
  return { unit: names(true), others: names(false) };
}

/** Packages and files of `test` that `file` loads; what is imported as a type alone is not loaded. */
function importsOf(file: string): readonly string[] {
  const text = readFileSync(file, 'utf8');
  const found = [
    ...text.matchAll(/^(?:import|export)(?! type\b)[^;]*?'([^']+)'/gm),
    ...text.matchAll(/\bimport\('([^']+)'\)/g),
  ].map(([, name = '']) => name);
  return found
    .map((name) => (name.startsWith('.') ? path.resolve(path.dirname(file), name) : name))
    .filter(
      (name) => !path.isAbsolute(name) || STARTERS.has(name) || (name.startsWith(`${TEST}/`) && name.endsWith('.ts')),
    );
}
