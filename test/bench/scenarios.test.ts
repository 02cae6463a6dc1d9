// What the bench's help and README name is what can be run, and what its loads ask for is what they think it is.
import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { helpText, readOptions } from '../../bench/flags.ts';
import { EDITIONS, freePaths, freshPaidPath, FRESH_FREE, makeRoutes, paidPaths } from '../../bench/routes.ts';
import { SCENARIOS } from '../../bench/scenarios.ts';
import { DOWNLOAD_PATH, UPSTREAM_BODY } from '../../bench/upstream-answers.ts';
import { profileFolding } from '../../src/domain/routing/profile.ts';
import { compileSnapshot, type Snapshot } from '../../src/domain/routing/snapshot.ts';

const NAMES = SCENARIOS.map(({ name }) => name);

describe('names', () => {
  test('behaviour: the help names every scenario, and no two are called alike', () => {
    for (const name of NAMES) expect(helpText()).toMatch(new RegExp(`^  ${name} `, 'm'));
    expect(new Set(NAMES).size).toBe(NAMES.length);
  });

  test.each(['../../bench/README.md', '../../README.md'])(
    'behaviour: every scenario that %s names exists, and the bench names all of them',
    (file) => {
      const text = readIfThere(new URL(file, import.meta.url));
      const named = [...text.matchAll(/--only ([a-z0-9-]+)/g), ...text.matchAll(/^\| `([a-z0-9-]+)` \| measures /gm)];
      expect(named.map(([, name]) => name).filter((name) => !NAMES.includes(name ?? ''))).toEqual([]);
      if (file.includes('bench/')) for (const name of NAMES) expect(text).toContain(`| \`${name}\` | measures `);
    },
  );

  test('behaviour: every flag of the help is described in the README of the bench', () => {
    const text = readFileSync(new URL('../../bench/README.md', import.meta.url), 'utf8');
    const flags = [...helpText().matchAll(/^  (--[a-z]+)/gm)].map(([, flag]) => flag ?? '');
    expect(flags.length).toBeGreaterThan(5);
    expect(flags.filter((flag) => flag !== '--help' && !text.includes(flag))).toEqual([]);
  });
});

describe('the command line', () => {
  test('behaviour: the bench measures everything without flags; --only keeps the order of the table', () => {
    const all = readOptions([]);
    expect(all.ok && all.options.only).toEqual(NAMES);
    const some = readOptions(['--only', 'free', '--only', 'matcher', '--rounds', '7']);
    expect(some.ok && some.options.only).toEqual(['matcher', 'free']);
    expect(some.ok && some.options.plan.rounds).toBe(7);
  });

  test('behaviour: a bench beside other checkouts has no peer unless it is named', () => {
    const wanted = (argv: readonly string[]): readonly string[] | undefined => {
      const read = readOptions(argv);
      if (!read.ok) throw new Error(read.problems.join());
      return read.options.peersWanted;
    };
    expect(wanted([])).toBeUndefined();
    expect(wanted(['--checkout', '/somewhere'])).toEqual([]);
    expect(wanted(['--against', 'HEAD~1'])).toEqual([]);
    expect(wanted(['--against', 'HEAD~1', '--peer', 'nginx'])).toEqual(['nginx']);
    expect(wanted(['--quick'])).toContain('nginx');
  });

  test.each([
    [['--only', 'fre'], 'is not one of'],
    [['--rounds', '0'], '--rounds'],
    [['--seconds', 'x'], '--seconds'],
    [['--routes', '10,0'], '--routes'],
    [['--fast'], '--fast'],
  ])('refuses: a bench with the flags %j', (argv, complaint) => {
    const read = readOptions(argv);
    expect(read.ok).toBe(false);
    expect(read.ok ? '' : read.problems.join('\n')).toContain(complaint);
  });
});

describe.each([10, 1000].flatMap((count) => EDITIONS.map((edition) => ({ count, edition }))))(
  'what is asked for at $count routes of the $edition edition',
  ({ count, edition }) => {
    const snapshot: Snapshot = compileSnapshot(
      { registryId: 'bench', revision: 1, routes: makeRoutes(count, edition) },
      { encodedSlashes: 'refuse', doubleSlashes: 'merge', folding: profileFolding('unknown') },
    );
    const kindOf = (path: string): string => {
      const resolution = snapshot.resolve('GET', path);
      return resolution.ok ? resolution.match.kind : 'refused';
    };

    test('behaviour: paid paths meet a route, no two alike', () => {
      const paths = paidPaths(count, 200);
      expect(new Set(paths).size).toBe(paths.length);
      expect(paths.filter((path) => kindOf(path) !== 'route')).toEqual([]);
      expect(kindOf(`${freshPaidPath(count).prefix}2026/anything`)).toBe('route');
    });

    test('behaviour: free paths meet no route', () => {
      const paths = [...freePaths(count, 200), `${FRESH_FREE.prefix}anything`, DOWNLOAD_PATH];
      expect(paths.filter((path) => kindOf(path) !== 'none')).toEqual([]);
    });
  },
);

test('behaviour: the two editions have no id, no pattern and no price in common', () => {
  const [first, second] = EDITIONS.map((edition) => makeRoutes(1000, edition));
  for (const key of ['id', 'pattern', 'amount'] as const) {
    const known = new Set(first?.map((route) => route[key]));
    expect(second?.filter((route) => known.has(route[key]))).toEqual([]);
  }
});

test('behaviour: the small answer has the size that the tables say', () => {
  expect(Buffer.byteLength(UPSTREAM_BODY)).toBe(197);
});

function readIfThere(url: URL): string {
  try {
    return readFileSync(url, 'utf8');
  } catch {
    return '';
  }
}
