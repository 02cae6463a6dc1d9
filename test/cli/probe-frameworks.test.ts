// The probe against real routers, which count by themselves how often the protected handler ran: a profile that is
// promised for a framework has to come out as safe, and no handler may run for a spelling that was called harmless.
import { describe, expect, onTestFinished, test } from 'vitest';
import type { UpstreamSpec } from '../lab/bypass/upstream.ts';
import { NPM } from '../lab/bypass/upstreams/npm.ts';
import { namesOf, probeJson, reachedIn } from './probe-support.ts';

/** How often a path is asked before and after its spellings. */
const TIMES_KNOWN = 5;
/** Settings as the framework comes: here the profile that is recommended is its own, or folds exactly as its own. */
const AS_IT_COMES = new Set(['express 4', 'express 5', 'fastify', 'koa and @koa/router', 'hono', 'hapi']);

const SPECS = NPM.filter(({ missing }) => missing?.() === undefined).map((spec): [string, UpstreamSpec] => [
  spec.name,
  spec,
]);

describe('behaviour: the probe tells', () => {
  test('the probe tells the frameworks as they come', () => {
    expect(SPECS.filter(([name, { profile }]) => AS_IT_COMES.has(name) && profile !== undefined)).toHaveLength(
      AS_IT_COMES.size,
    );
  });

  test.each(SPECS)('the probe tells %s', async (name, spec) => {
    const upstream = await spec.start();
    onTestFinished(upstream.close);
    // A path with capitals and with every letter that another one folds to, and one that ends in a parameter.
    const paths = ['--path', '/v1/Kiss/Data', '--path', '/v1/reports/q3'];
    const { code, report } = await probeJson(`http://127.0.0.1:${upstream.port}`, ...paths);
    const [literal, parameter] = report.paths;
    expect([literal?.doubt, parameter?.doubt, parameter?.protected_as]).toEqual([null, null, '/v1/reports/:parameter']);
    const reached = report.paths.map((path) => reachedIn({ ...report, paths: [path] }));
    const methods = report.paths.flatMap((path) => path.methods.filter(({ alike }) => alike));
    // A neighbour of a path with a parameter is answered by the same handler.
    const known = TIMES_KNOWN * 3 - 1;
    expect(upstream.executions()).toBeGreaterThanOrEqual(known);
    expect(upstream.executions()).toBeLessThanOrEqual(known + reached.flat().length + methods.length);
    const { recommended, safe } = report;
    if (spec.profile !== undefined) expect(namesOf(safe)).toContain(spec.profile);
    if (AS_IT_COMES.has(name)) expect([recommended.upstream_profile, ...recommended.alike]).toContain(spec.profile);
    // Some model may be looser than anything that is folded; then that is what is said.
    expect(code).toBe(safe.length > 0 ? 0 : 1);
    const free = report.paths.flatMap(({ canaries }, index) =>
      canaries.filter(({ target, tollgate }) => tollgate === 'forwards' && reached[index]?.includes(target)),
    );
    if (safe.length > 0) expect(free).toEqual([]);
  });
});
