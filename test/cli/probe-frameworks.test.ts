// The probe against real routers, which count by themselves how often the protected handler ran: a profile that is
// promised for a framework has to come out as safe, and no handler may run for a spelling that was called harmless.
import { describe, expect, onTestFinished, test } from 'vitest';
import type { UpstreamSpec } from '../bypass/upstream.ts';
import { NPM } from '../bypass/upstreams/npm.ts';
import { namesOf, probeJson, reachedIn } from './probe-support.ts';

/** How often a path is asked before and after its spellings. */
const TIMES_KNOWN = 5;
/** Settings as the framework comes: here the profile that is recommended is its own, or folds exactly as its own. */
const AS_IT_COMES = new Set(['express 4', 'express 5', 'fastify', 'koa and @koa/router', 'hono', 'h3 2', 'hapi']);

const SPECS = NPM.filter(({ missing }) => missing?.() === undefined).map((spec): [string, UpstreamSpec] => [
  spec.name,
  spec,
]);

describe('behaviour: the probe tells', () => {
  test('the frameworks as they come', () => {
    expect(SPECS.filter(([name, { profile }]) => AS_IT_COMES.has(name) && profile !== undefined)).toHaveLength(
      AS_IT_COMES.size,
    );
  });

  test.each(SPECS)('%s', async (name, spec) => {
    const upstream = await spec.start();
    onTestFinished(upstream.close);
    // A path with capitals and with every letter that another one folds to.
    const { code, report } = await probeJson(`http://127.0.0.1:${upstream.port}`, '--path', '/v1/Kiss/Data');
    const [path] = report.paths;
    expect(path?.doubt).toBeNull();
    const reached = reachedIn(report);
    const methods = path?.methods.filter(({ alike }) => alike) ?? [];
    expect(upstream.executions()).toBeGreaterThanOrEqual(TIMES_KNOWN);
    expect(upstream.executions()).toBeLessThanOrEqual(TIMES_KNOWN + reached.length + methods.length);
    const { recommended, safe } = report;
    if (spec.profile !== undefined) expect(namesOf(safe)).toContain(spec.profile);
    if (AS_IT_COMES.has(name)) expect([recommended.upstream_profile, ...recommended.alike]).toContain(spec.profile);
    // Some model may be looser than anything that is folded; then that is what is said.
    expect(code).toBe(safe.length > 0 ? 0 : 1);
    const free = path?.canaries.filter(({ target, tollgate }) => tollgate === 'forwards' && reached.includes(target));
    if (safe.length > 0) expect(free).toEqual([]);
  });
});
