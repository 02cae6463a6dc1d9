// Patterns that need no translation are read by a shorter way; an escaped letter sends the same pattern the long one.
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { parsePattern } from '../../../src/domain/routing/pattern.ts';

const part = fc.constantFrom('a', 'Bc', 'd-1', '_', ':x', ':y', ':x', '*', ':1', ':', '*r', '{z}', 'e.f', '(g)', '');

test('behaviour: both ways of reading a pattern read it alike, or refuse it with the same sentence', () => {
  const seen = { read: 0, refused: 0 };
  fc.assert(
    fc.property(fc.array(part, { maxLength: 6 }), (parts) => {
      const short = parsePattern(['/q', ...parts].join('/'));
      const long = parsePattern(['/%71', ...parts].join('/'));
      seen[short.ok ? 'read' : 'refused']++;
      expect(short.ok ? [short.pattern.segments, short.pattern.key] : short.reason).toEqual(
        long.ok ? [long.pattern.segments, long.pattern.key] : long.reason,
      );
    }),
    { numRuns: 3000 },
  );
  expect(Math.min(seen.read, seen.refused)).toBeGreaterThan(300);
});

test.each(['', 'a', ':x', '*', '/*/', '/a/*/b', '/a//b', '/a\n', '/:x/:x', `/${'a'.repeat(512)}`])(
  'refuses: %j as a pattern',
  (text) => {
    expect(parsePattern(text).ok).toBe(false);
  },
);

test.each([
  ['/', []],
  ['/*', ['wildcard']],
  ['/a/', ['literal']],
  ['/a/:x/*', ['literal', 'param', 'wildcard']],
  [`/${'a'.repeat(511)}`, ['literal']],
])('behaviour: the pattern %s has the segments %j', (text, kinds) => {
  const parsed = parsePattern(text);
  expect(parsed.ok && parsed.pattern.segments.map(({ kind }) => kind)).toEqual(kinds);
});
