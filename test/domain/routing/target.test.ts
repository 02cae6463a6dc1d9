import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { FULL_FOLDING, PROFILE_NAMES, profileFolding } from '../../../src/domain/routing/profile.ts';
import { allowedMethods } from '../../../src/domain/routing/method.ts';
import { canonicalPath, splitTarget, type TargetOptions } from '../../../src/domain/routing/target.ts';
import { SPELLINGS_OF_EXPORT, TARGETS } from '../../cases/targets.ts';
import { threadMs } from '../../support/thread-time.ts';

const OPTIONS: TargetOptions = {
  limit: 64,
  methods: allowedMethods(['PURGE']),
  encodedSlashes: 'refuse',
  doubleSlashes: 'merge',
  folding: FULL_FOLDING,
};
const KEEP: TargetOptions = { ...OPTIONS, encodedSlashes: 'keep', doubleSlashes: 'keep' };

describe('canonicalPath', () => {
  test.each(TARGETS)('behaviour: $why ($raw)', ({ raw, path, key }) => {
    const result = canonicalPath(raw, OPTIONS);
    expect(result.ok ? { path: result.path, key: result.keys[0] } : 'refused').toEqual(
      path === undefined ? 'refused' : { path, key },
    );
  });

  test.each(SPELLINGS_OF_EXPORT)('attack: %s has a reading that is /v1/export, its suffix aside', (raw) => {
    const result = canonicalPath(raw, OPTIONS);
    expect(result.ok && result.keys.some((key) => /^\/v1\/export(\..*)?$/.test(key))).toBe(true);
  });

  // Paths built from pieces that parsers disagree about, so that random search lands near trouble.
  const pieces = fc.constantFrom(
    ...[
      '/',
      '//',
      '.',
      '..',
      '%2e',
      '%2E%2e',
      ';',
      ';a=b',
      '%3b',
      '%2f',
      '%2F',
      '%5c',
      '\\',
      '%25',
      '%2565',
      '%',
      '%4',
      '%41',
      '%7e',
    ],
    ...[
      'a',
      'B',
      'é',
      '%c3%a9',
      '%EF%BD%85',
      '%e2%80%a5',
      '[',
      '|',
      '"',
      '#',
      ' ',
      '%20',
      '%00',
      '\t',
      '+',
      ':',
      '@',
      '~',
      '-',
      '%ff',
    ],
  );
  const paths = fc.array(pieces, { maxLength: 12 }).map((parts) => `/${parts.join('')}`);

  for (const [name, options] of [
    ['refuse and merge', OPTIONS],
    ['keep', KEEP],
  ] as const) {
    test(`behaviour: canonicalising a path twice changes nothing, and URL parsers read the same path (${name})`, () => {
      fc.assert(
        fc.property(paths, (raw) => {
          const once = canonicalPath(raw, options);
          if (!once.ok) return;
          // What is left of the budget depends on the spelling.
          expect(canonicalPath(once.path, options)).toEqual({ ...once, left: expect.any(Number) });
          expect(new URL(`http://host${once.path}`).pathname).toBe(once.path);
          expect(once.path).toMatch(/^\/[\x21-\x7e]*$/);
          for (const key of once.keys) expect(key).toMatch(/^\/(.*[^/])?$/s);
        }),
        { numRuns: 3000 },
      );
    });
  }

  // What needs no decoding takes a shorter way through the code: an escaped letter sends it the long one.
  test('behaviour: a letter that is written as an escape changes nothing, neither the path nor a reading of it', () => {
    const plain = fc
      .array(fc.constantFrom('/', 'a', 'B', '.', '..', ';x', '~', '-9', '/', '{', '%20', '%C3%89', '%2e', '\\'), {
        maxLength: 10,
      })
      .map((parts) => `/${parts.join('')}z`);
    fc.assert(
      fc.property(plain, fc.constantFrom(OPTIONS, KEEP), fc.constantFrom(...PROFILE_NAMES), (raw, options, name) => {
        const profiled = { ...options, folding: profileFolding(name) };
        const plainly = canonicalPath(raw, profiled);
        const escaped = canonicalPath(`${raw.slice(0, -1)}%7a`, profiled);
        expect(escaped).toEqual(plainly.ok ? { ...plainly, left: expect.any(Number) } : plainly);
      }),
      { numRuns: 3000 },
    );
  });

  test('behaviour: a profile only ever drops readings, so that a wrong guess towards unknown never makes a request free', () => {
    fc.assert(
      fc.property(paths, fc.constantFrom(...PROFILE_NAMES), (raw, name) => {
        const unknown = canonicalPath(raw, OPTIONS);
        const profiled = canonicalPath(raw, { ...OPTIONS, folding: profileFolding(name) });
        expect(profiled.ok).toBe(unknown.ok);
        if (profiled.ok && unknown.ok) expect(profiled.path).toBe(unknown.path);
      }),
      { numRuns: 1000 },
    );
  });

  test('behaviour: encoded_slashes: keep forwards the escape and matches both readings', () => {
    const result = canonicalPath('/group%2fproject\\x', KEEP);
    expect(result).toMatchObject({ ok: true, path: '/group%2Fproject%5Cx' });
    // Some routers split at the slash alone, some at the backslash alone.
    expect(result.ok && result.keys).toEqual([
      '/group\u0000project\u0001x',
      '/group/project/x',
      '/group/project\u0001x',
      '/group\u0000project/x',
    ]);
  });

  test('attack: encoded_slashes: keep still refuses dots between encoded slashes', () => {
    for (const raw of ['/free/..%2Fv1/export', '/free%2f..%2fv1', '/a%5c..%5cb', '/a\\..\\b']) {
      expect(canonicalPath(raw, KEEP).ok).toBe(false);
    }
  });

  test('behaviour: double_slashes: keep forwards double slashes and matches them merged', () => {
    expect(canonicalPath('/v1//export', KEEP)).toMatchObject({
      ok: true,
      path: '/v1//export',
      keys: ['/v1/export', '/v1/\u0002/export'],
    });
  });

  test('attack: double slashes at the beginning are merged even where others are kept, or they would name an authority', () => {
    expect(canonicalPath('//x/v1//export', KEEP)).toMatchObject({ ok: true, path: '/x/v1//export' });
  });

  test('attack: a path that can be read in too many ways is refused', () => {
    const folded = canonicalPath('/a.php;x%2fb%5cc&d+e/%ef%bd%86.cgi;y+z%3f/g&h', KEEP);
    expect(folded).toMatchObject({ ok: false, reason: 'the path can be read in too many ways for its length' });
    expect(canonicalPath('/a.php;x/b.cgi&y+z%3fq', OPTIONS).ok).toBe(true);
  });

  test('attack: long runs of dots, slashes and parameters take no more than linear time', () => {
    for (const unit of [
      '.',
      '%20',
      ';',
      '/a.',
      '%3b',
      '/.a',
      '/a.php',
      '+',
      '&',
      '/a.cgi;x&y+z%3f',
      '%ef%bc%8f',
      '/%c2%ad%2f;x.php',
    ]) {
      const raw = `/${unit.repeat(8000)}x`;
      const startedAt = threadMs();
      canonicalPath(raw, OPTIONS);
      // Quadratic work on these would take seconds.
      expect(threadMs() - startedAt).toBeLessThan(500);
    }
  });
});

describe('splitTarget', () => {
  const split = (target: string, method = 'GET', host: string | undefined = 'api.example.com') =>
    splitTarget({ method, target, host }, OPTIONS);

  test('behaviour: the query of a target goes on byte for byte', () => {
    expect(split('/a?b=%zz&c=/../&d=é'.replace('é', '%e9'))).toEqual({ rawPath: '/a', query: '?b=%zz&c=/../&d=%e9' });
    expect(split('/a?')).toEqual({ rawPath: '/a', query: '?' });
    expect(split('/a?b?c')).toEqual({ rawPath: '/a', query: '?b?c' });
  });

  test('refuses: a target whose query has # or anything but visible ASCII', () => {
    for (const query of ['?a#b', '?a b', '?a\u00e9', '?a\u0000', '?a\u007f']) {
      expect(split(`/a${query}`)).toMatchObject({ code: 'target_ambiguous' });
    }
  });

  test('behaviour: a target of the limit itself passes, one byte more does not', () => {
    expect(split(`/${'a'.repeat(63)}`)).toMatchObject({ query: '' });
    expect(split(`/${'a'.repeat(64)}`)).toMatchObject({ code: 'target_too_long' });
  });

  test('behaviour: a target in absolute form is read only if its authority is the Host', () => {
    expect(split('http://API.example.com/a?b')).toEqual({ rawPath: '/a', query: '?b' });
    expect(split('http://api.example.com')).toEqual({ rawPath: '/', query: '' });
    expect(split('http://api.example.com?a')).toEqual({ rawPath: '/', query: '?a' });
    for (const target of [
      'http://evil.example/a',
      'http://api.example.com:80/a',
      'http://user@api.example.com/a',
      'http:///a',
      'ftp://api.example.com/a',
      'http://[/a',
      'a',
      '*',
      '',
    ]) {
      expect(split(target)).toMatchObject({ code: 'target_ambiguous' });
    }
    expect(splitTarget({ method: 'GET', target: 'http://api.example.com/a', host: undefined }, OPTIONS)).toMatchObject({
      code: 'target_ambiguous',
    });
  });

  test('refuses: methods that were not let in, and TRACE and CONNECT even if they were', () => {
    expect(split('/a', 'PURGE')).toEqual({ rawPath: '/a', query: '' });
    for (const method of ['TRACE', 'CONNECT', 'PROPFIND', 'get', '']) {
      expect(split('/a', method)).toMatchObject({ code: 'method_unsupported' });
    }
    expect(allowedMethods(['TRACE', 'CONNECT']).has('TRACE')).toBe(false);
  });
});
