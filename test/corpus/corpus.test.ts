// What a paywall that refuses what is ambiguous costs those who mean no harm: over thousands of request targets as real
// APIs receive them, not one refusal and not one wrong 402 under the profile and settings that fit, and exactly known
// rates under `unknown`.
import { describe, expect, test } from 'vitest';
import { FULL_FOLDING, type PathFolding, type ProfileName } from '../../src/domain/routing/profile.ts';
import { compileSnapshot, type PathOptions, type Snapshot } from '../../src/domain/routing/snapshot.ts';
import { allowedMethods } from '../../src/domain/routing/method.ts';
import { canonicalPath, splitTarget } from '../../src/domain/routing/target.ts';
import { pathsOf, readCorpus, type Group } from './corpus.ts';
import { protect, routesFor } from './protect.ts';

const CORPUS = readCorpus();
const ALL = CORPUS.flatMap(({ targets }) => targets);
const METHODS = allowedMethods();
const FOLDING = Object.keys(FULL_FOLDING) as (keyof PathFolding)[];
const DEFAULTS: Group['settings'] = { encodedSlashes: 'refuse', doubleSlashes: 'merge' };

type Passage =
  | { readonly ok: true; readonly path: string; readonly raw: string }
  | { readonly ok: false; readonly reason: string };

/** `target` through the proxy's own reading of targets. */
function pass(target: string, paths: PathOptions): Passage {
  const split = splitTarget(
    { method: 'GET', target, host: 'api.example' },
    { ...paths, limit: 8192, methods: METHODS },
  );
  if ('code' in split) return { ok: false, reason: split.detail };
  expect(split.query).toBe(target.slice(split.rawPath.length));
  const canonical = canonicalPath(split.rawPath, paths);
  return canonical.ok ? { ok: true, path: canonical.path, raw: split.rawPath } : canonical;
}

describe('the corpus', () => {
  test('behaviour: the corpus has at least 5,000 targets, none twice, all of them what a client can send', () => {
    expect(ALL.length).toBeGreaterThanOrEqual(5000);
    expect(new Set(ALL).size).toBe(ALL.length);
    expect(ALL.filter((target) => !/^\/[\x21-\x7e]*$/.test(target) || target.includes('#'))).toEqual([]);
    for (const { profiles, targets } of CORPUS)
      expect([profiles.length > 0, targets.length > 20]).toEqual([true, true]);
  });

  test('behaviour: the corpus has of everything that APIs put into their targets', () => {
    const shapes: Readonly<Record<string, RegExp>> = {
      'encoded slash': /^[^?]*%2f/i,
      'encoded backslash': /^[^?]*%5c/i,
      'two slashes': /^[^?]*\/\//,
      parentheses: /^[^?]*\(/,
      quotes: /^[^?]*'/,
      semicolon: /^[^?]*;/,
      'custom verb': /^[^?]*:[a-z]+[A-Z]/,
      'address with @': /^[^?]*@[a-z]+\./,
      'encoded @': /^[^?]*%40/,
      tilde: /^[^?]*~/,
      plus: /^[^?]*\+/,
      'encoded space': /^[^?]*%20/,
      'encoded percent sign': /^[^?]*%25/,
      'brackets in a query': /\?.*\[\]=/,
      'encoded brackets in a query': /\?.*%5B%5D=/,
      'URL in a query': /\?.*https?(?::|%3A)/,
      emoji: /%F0%9F/,
      'two letters of UTF-8': /%D0%/,
      'three letters of UTF-8': /%E4%|%E3%|%ED%/,
      'padding of base64': /==(?:&|$)/,
      'JSON Web Token': /\/eyJ[\w-]+\.eyJ/,
      'trailing slash': /^[^?]*[^/]\/(?:\?|$)/,
      'well-known': /^\/\.well-known\//,
      'version with dots': /\d+\.\d+\.\d+/,
      'dots in the middle': /^[^?]*\w\.\.\.?\w/,
    };
    const missing = Object.entries(shapes).filter(([, shape]) => ALL.filter((target) => shape.test(target)).length < 3);
    expect(missing).toEqual([]);
  });
});

describe.each(CORPUS.map((group): [string, Group] => [group.name, group]))(
  '%s',
  (_, { profiles, settings, targets }) => {
    test.each(profiles)(
      'behaviour: the corpus goes through %s without a refusal, as it came or in a canonical spelling',
      (profile) => {
        const paths = pathsOf(profile, settings);
        const changed = targets.flatMap((target) => {
          const passage = pass(target, paths);
          if (!passage.ok) return [`${target}: ${passage.reason}`];
          if (passage.path === passage.raw) return [];
          // Another spelling of the very same bytes, which stays as it is when it is read again.
          const same = decodeURIComponent(passage.path) === decodeURIComponent(passage.raw);
          const again = canonicalPath(passage.path, paths);
          return same && again.ok && again.path === passage.path ? [] : [`${target} became ${passage.path}`];
        });
        expect(changed).toEqual([]);
      },
    );

    test.each(profiles)('behaviour: the corpus is never charged under %s for what other paths cost', (profile) => {
      if (profile === 'unknown') return;
      expect(wronglyCharged(pathsOf(profile, settings), targets)).toEqual([]);
    });
  },
);

// Every second path of the corpus is protected; what is asked are the others.
const PROTECTED = protect(ALL.filter((_, index) => index % 2 === 0));
const ASKED = new Set(ALL.filter((_, index) => index % 2 === 1));
const snapshots = new Map<string, Snapshot>();

function wronglyCharged(paths: PathOptions, targets: readonly string[]): string[] {
  const key = JSON.stringify(paths);
  const snapshot =
    snapshots.get(key) ?? compileSnapshot({ registryId: 'corpus', revision: 0, routes: routesFor(PROTECTED) }, paths);
  snapshots.set(key, snapshot);
  return targets.flatMap((target) => {
    const path = target.split('?')[0] ?? '';
    if (!ASKED.has(target) || PROTECTED.has(decodeURIComponent(path).replace(/(?<=.)\/$/, ''))) return [];
    const resolution = snapshot.resolve('GET', path);
    return resolution.ok && resolution.match.kind !== 'none' ? [target] : [];
  });
}

describe('behaviour: under unknown', () => {
  test('exactly so many targets are refused under unknown, and why', () => {
    const reasons = new Map<string, number>();
    for (const target of ALL) {
      const passage = pass(target, pathsOf('unknown', DEFAULTS));
      if (!passage.ok) reasons.set(passage.reason, (reasons.get(passage.reason) ?? 0) + 1);
    }
    expect(Object.fromEntries(reasons)).toEqual({ 'the path holds an encoded slash or backslash': 320 });
    expect(ALL.length).toBe(6030);
  });

  test('exactly so many targets are charged under unknown for what another path costs, and which folding does it', () => {
    const charged = new Set(wronglyCharged(pathsOf('unknown', DEFAULTS), ALL));
    const because: Record<string, number> = {};
    for (const rule of FOLDING) {
      const without = wronglyCharged({ ...DEFAULTS, folding: { ...FULL_FOLDING, [rule]: false } }, ALL);
      because[rule] = charged.size - without.length;
    }
    // Some need two rules to go wrong, so the parts are more than the whole.
    expect({ asked: ASKED.size, charged: charged.size, because }).toEqual({
      asked: 3015,
      charged: 79,
      because: {
        ...{ letterCase: 15, compatibility: 3, matrix: 53, suffix: 27, trim: 1, empty: 0, form: 0, script: 0 },
        ...{ pageData: 0, index: 2, dots: 0, dashes: 0, views: 0, lists: 1 },
      },
    });
  });

  test.each([
    ['/sale/20%25cashback', 'a percent sign before two letters that are hexadecimal digits'],
    ['/wiki/...', 'a segment of dots'],
    ['/caf%E9', 'Latin-1'],
    ['/caf\u00e9', 'letters that are not percent-encoded'],
    ['/notes/a%0Ab', 'a line break in a name'],
  ])('refuses: %s, under every profile: %s', (target) => {
    const profiles: readonly ProfileName[] = ['unknown', 'go', 'express'];
    for (const profile of profiles)
      expect(pass(target, pathsOf(profile, { encodedSlashes: 'keep', doubleSlashes: 'keep' }))).toMatchObject({
        ok: false,
      });
  });
});
