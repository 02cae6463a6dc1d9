// The routes that a new pattern shares paths with: none is passed over, however quickly, and many are read a few at a time.
import { expect, test } from 'vitest';
import { overlapOf } from '../../../src/domain/routing/overlap.ts';
import { parsePattern, type Pattern } from '../../../src/domain/routing/pattern.ts';
import { findShared } from '../../../src/domain/routing/pattern-help.ts';
import type { Route } from '../../../src/domain/routing/route.ts';

const TEXTS = [
  ...['/', '/*', '/a', '/A', '/a/', '/a.', '/a.b', '/A.B', '/.a', '/a~', '/a-b', '/a_b', '/%61', '/%41.b', '/é', '/É'],
  ...[
    '/:x',
    '/{x:int}',
    '/a/:x',
    '/a/{x}/*',
    '/:x/a',
    '/a/b',
    '/a/B.',
    '/a/b/*rest',
    '/a/{rest:path}',
    '/a%20',
    '/%20a',
  ],
  ...[
    '/a/:x/c',
    '/a/b/c',
    '/:x/:y/:z',
    '/b/*',
    '/a/%2e%62',
    '/a/x.json',
    '/a/x.json/',
    '/a/X.JSON/*',
    '/ａ',
    '/ß',
    '/SS',
  ],
];

const routeOf = (pattern: string, id = pattern): Route =>
  ({ id, pattern, method: '*', status: 'active' }) as unknown as Route;

function read(text: string): Pattern | undefined {
  const parsed = parsePattern(text);
  return parsed.ok ? parsed.pattern : undefined;
}

function all<T>(work: Generator<undefined, T>): T {
  for (let step = work.next(); ; step = work.next()) if (step.done === true) return step.value;
}

test('behaviour: every route that meets a pattern is found, in whatever spelling, and no other', () => {
  const patterns = TEXTS.flatMap((text) => read(text) ?? []);
  expect(patterns.length).toBeGreaterThan(30);
  for (const pattern of patterns)
    for (const other of patterns) {
      const { kind } = overlapOf(pattern, other);
      const shared = all(findShared(pattern, 'GET', [routeOf(other.text)]));
      const expected = kind === 'apart' ? [] : [[other.text, kind === 'second' ? 'other' : 'this']];
      expect([pattern.text, shared.map(({ route, wins }) => [route.pattern, wins])]).toEqual([pattern.text, expected]);
    }
});

test('behaviour: a hundred thousand routes of one first segment are read a few at a time, the last one too', () => {
  let taken = 0;
  const routes = function* (): Generator<Route> {
    for (let n = 0; n < 100_000; n++) {
      taken++;
      // Every third one has to be read: no quick look tells it apart.
      yield routeOf(n % 3 === 0 ? `/api/r%2B${n}/items` : `/api/r${n}/items`);
    }
    yield routeOf('/api/new/:x', 'last');
  };
  const pattern = read('/api/new/items');
  if (pattern === undefined) throw new Error('it is a pattern');
  const work = findShared(pattern, 'GET', routes());
  let slices = 0;
  for (let step = work.next(); ; step = work.next()) {
    // One of three is read: about 125 of those between two yields.
    expect(taken).toBeLessThanOrEqual(500);
    taken = 0;
    slices++;
    if (step.done !== true) continue;
    expect(step.value.map(({ route }) => route.id)).toEqual(['last']);
    break;
  }
  expect(slices).toBeGreaterThan(200);
});
