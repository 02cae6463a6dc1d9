// What the probe concludes from what it was told, without an upstream: above all when not even the coarsest folding covers
// a spelling that reaches the path.
import { describe, expect, test } from 'vitest';
import { PROFILE_NAMES, profileFolding } from '../../src/domain/routing/profile.ts';
import { spellings, unknownPaths, withQuery } from '../../src/cli/probe/canaries.ts';
import type { PathReport } from '../../src/cli/probe/path.ts';
import { FOLDING_RULES, judgeProfiles } from '../../src/cli/probe/profiles.ts';
import { createProgress } from '../../src/cli/probe.ts';
import { textReport } from '../../src/cli/probe/report.ts';

const HOST = 'api.example';

/** A path whose upstream answers `reached` like it, besides itself. */
function told(...reached: string[]): PathReport {
  return {
    known: { path: '/v1/export', query: '', parameter: false },
    first: { kind: 'answer', status: 200, headers: {}, body: '' },
    unknownStatus: 404,
    told: {
      ok: true,
      asked: reached.map((target) => ({ kind: 'slashes', target, deed: { kind: 'reached' } })),
      methods: [],
    },
  };
}
const doubted: PathReport = { ...told(), told: { ok: false, doubt: 'catch_all' } };

describe('attack: a spelling that nothing folds', () => {
  const report = told('/v1/elsewhere', '/V1/export');

  test('a spelling that nothing folds leaves no profile safe, and is named', () => {
    const judgement = judgeProfiles([report], HOST);
    expect(judgement.recommended).toBeUndefined();
    expect(judgement.safe).toEqual([]);
    expect(judgement.unsafe.flatMap(({ names }) => names).toSorted()).toEqual(PROFILE_NAMES.toSorted());
    const probed = {
      upstream: 'http://x',
      host: HOST,
      reports: [report],
      judgement,
      tried: [],
      asked: undefined,
      all: false,
    };
    const text = textReport(probed).join('\n');
    expect(text).toContain('Not even unknown covers /v1/elsewhere.');
    expect(text).toMatch(/\/v1\/elsewhere +REACHED +FREE: NOT SAFE/);
    expect(text).toMatch(/\/V1\/export +REACHED +asks for payment/);
    expect(text).toContain('upstream_profile: unknown');
  });

  test('a spelling that nothing folds does not hide which folding is needed otherwise', () => {
    const { needs } = judgeProfiles([report], HOST);
    expect(needs.filter(({ because }) => because.length > 0)).toEqual([
      { rule: 'letterCase', because: [{ target: '/V1/export', path: '/v1/export' }] },
    ]);
  });

  test('a spelling that nothing folds is judged by what Tollgate would forward for it, too', () => {
    // The upstream reads the spelling in which Tollgate forwards it, not the one that was asked.
    const forwarded = told('/v1/%5Belsewhere%5D');
    const asked = { kind: 'slashes', target: '/v1/[elsewhere]', deed: { kind: 'not_found', status: 404 } } as const;
    if (!forwarded.told.ok) throw new Error('it was told');
    const both = { ...forwarded, told: { ...forwarded.told, asked: [...forwarded.told.asked, asked] } };
    const leaks = judgeProfiles([both], HOST).unsafe.find(({ names }) => names.includes('unknown'))?.leaks;
    expect(leaks?.map(({ target }) => target)).toEqual(['/v1/%5Belsewhere%5D', '/v1/[elsewhere]']);
  });
});

describe('refuses: a path that told nothing', () => {
  test('a path that told nothing makes no profile safe', () => {
    expect(judgeProfiles([doubted], HOST)).toEqual({
      safe: [],
      unproven: [],
      unsafe: [],
      needs: [],
      unasked: FOLDING_RULES,
      recommended: undefined,
    });
  });

  test('a path that told nothing does not speak against what another one told', () => {
    const { safe, unproven } = judgeProfiles([doubted, told('/V1/export')], HOST);
    const names = [...safe, ...unproven].flatMap((group) => group.names);
    expect(names).toContain('express');
    expect(names).not.toContain('fastify');
  });
});

describe('rules that only a parameter can tell about', () => {
  const parameter: PathReport = { ...told('/V1/export'), known: { path: '/v1/q3', query: '', parameter: true } };
  const named: PathReport = {
    ...told('/V1/export'),
    first: { kind: 'answer', status: 200, headers: { 'x-powered-by': 'Express' }, body: '' },
  };
  const inFront: PathReport = {
    ...told(),
    first: { kind: 'answer', status: 200, headers: { server: 'nginx' }, body: '' },
  };
  const namesIn = (groups: readonly { readonly names: readonly string[] }[]): string[] =>
    groups.flatMap(({ names }) => names);

  test('refuses: to call a profile safe that leaves a parameter’s rule out if no parameter was asked', () => {
    const { safe, unproven, unasked, recommended } = judgeProfiles([told('/V1/export')], HOST);
    expect(unasked).toEqual(['empty']);
    expect(namesIn(safe)).not.toContain('koa');
    expect(namesIn(unproven)).toContain('koa');
    expect(profileFolding(recommended?.profile ?? 'koa').empty).toBe(true);
  });

  test('behaviour: a path with a parameter proves the rules that only a parameter can tell about', () => {
    const { safe, unproven, unasked } = judgeProfiles([parameter], HOST);
    expect(unasked).toEqual([]);
    expect(namesIn(safe)).toContain('koa');
    expect(unproven).toEqual([]);
  });

  test('behaviour: a framework that names itself is believed; a server that may stand in front of one is not', () => {
    expect(judgeProfiles([named], HOST).recommended).toMatchObject({ profile: 'express', alike: ['koa'] });
    const { recommended, unproven } = judgeProfiles([inFront], HOST);
    expect(profileFolding(recommended?.profile ?? 'nginx').empty).toBe(true);
    expect(namesIn(unproven)[0]).toBe('nginx');
  });
});

describe('the spellings', () => {
  test.each([
    '/v1/export',
    '/export',
    '/a/b/c/d.json',
    '/v1/export/',
    '/caf%C3%A9/menu',
    '/%C3%A9/x',
    '/v1/kiss',
    '/a/1',
  ])('behaviour: the spellings of %s are sixty and more, none twice, none the path itself', (path) => {
    const targets = spellings({ path, query: '', parameter: false }, HOST).map(({ target }) => target);
    expect(targets.length).toBeGreaterThanOrEqual(60);
    expect(new Set(targets).size).toBe(targets.length);
    expect(targets).not.toContain(path);
    // As node:http writes them: visible bytes, which a request line can hold.
    expect(targets.filter((target) => !/^[\x21-\x7e]+$/.test(target))).toEqual([]);
    // An escape of the path is never torn apart.
    if (path.includes('%C3%A9')) expect(targets.filter((target) => /%[^0-9A-Fa-fu2]/.test(target))).toEqual([]);
  });

  test('behaviour: letters that turn into others when case is folded are tried where the path has them', () => {
    const targets = spellings({ path: '/v1/kiss', query: '', parameter: false }, HOST).map(({ target }) => target);
    for (const escaped of ['%E2%84%AA', '%C5%BF', '%C4%B1', '%C4%B0'])
      expect(targets.some((target) => target.includes(escaped))).toBe(true);
  });

  test('behaviour: a path with a parameter is tried with the letter before it and with nothing in its place', () => {
    const targets = spellings({ path: '/v1/reports/q3', query: '', parameter: true }, HOST).map(({ target }) => target);
    for (const target of ['/v1/reports/', '/v1/reports//', '/v1/reports/;x=1', '/%761/reports/q3'])
      expect(targets).toContain(target);
    const ofRoot = spellings({ path: '/q3', query: '', parameter: true }, HOST).map(({ target }) => target);
    expect(ofRoot).not.toContain('/');
  });

  test('behaviour: a query stands behind the path, before a fragment, and joins another query', () => {
    expect(['/a', '/a?x=1', '/a#x'].map((spelling) => withQuery(spelling, '?q=1'))).toEqual([
      '/a?q=1',
      '/a?x=1&q=1',
      '/a?q=1#x',
    ]);
  });

  test('behaviour: unknown paths are beside and far', () => {
    expect(unknownPaths({ path: '/v1/export/', query: '?q', parameter: false }, 'n')).toEqual({
      beside: '/v1/n?q',
      far: '/n/n?q',
    });
    expect(unknownPaths({ path: '/export', query: '', parameter: false }, 'n')).toEqual({ beside: '/n', far: '/n/n' });
  });
});

test('behaviour: progress is told every two seconds, and not by a quick probe', () => {
  let now = 0;
  const lines: string[] = [];
  const progress = createProgress('/v1/export', { monotonic: () => now }, (line) => lines.push(line));
  for (const [at, done] of [
    [1999, 1],
    [2000, 2],
    [3999, 3],
    [4000, 4],
  ] as const) {
    now = at;
    progress(done, 85);
  }
  expect(lines).toEqual(['/v1/export: 2 of 85 spellings asked', '/v1/export: 4 of 85 spellings asked']);
});
