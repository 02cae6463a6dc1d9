// Which set ends up in force where several are being compiled at once.
import { describe, expect, test } from 'vitest';
import { FULL_FOLDING } from '../../../src/domain/routing/profile.ts';
import type { Route } from '../../../src/domain/routing/route.ts';
import { createCompiler } from '../../../src/gateway/routes/snapshot-compiler.ts';
import { createCurrent, type CurrentSnapshot } from '../../../src/gateway/routes/current-snapshot.ts';
import { route } from '../../cases/routes.ts';
import { collectLog } from '../sync/fakes.ts';

const PATHS = { encodedSlashes: 'refuse', doubleSlashes: 'merge', folding: FULL_FOLDING } as const;
const priceOf = (current: CurrentSnapshot, path: string): string | undefined => {
  const resolution = current.snapshot?.resolve('GET', path);
  return resolution?.ok === true && resolution.match.kind === 'route' ? resolution.match.route.amount : undefined;
};

const many = (prefix: string) => Array.from({ length: 1500 }, (_, i) => route(`GET /${prefix}/${i}`));

describe('a set from elsewhere', () => {
  test.each([1, 1500])(
    'attack: a reload while a set of %i more routes is compiled does not keep the older one in force',
    async (more) => {
      const current = createCurrent();
      let doubleSlashes: 'merge' | 'keep' = 'merge';
      const compiler = createCompiler(
        current,
        () => ({ encodedSlashes: 'refuse', doubleSlashes, folding: FULL_FOLDING }),
        collectLog().log,
      );
      const old = more === 1 ? [route('GET /old')] : many('old');
      expect(await compiler.take({ registryId: 'A', revision: 1, routes: old })).toEqual({ ok: true });
      const taking = compiler.take({ registryId: 'A', revision: 2, routes: many('new') });
      doubleSlashes = 'keep';
      compiler.recompile();
      expect(await taking).toEqual({ ok: true });
      await compiler.settled();
      expect(current.snapshot).toMatchObject({ revision: 2, paths: { doubleSlashes: 'keep' } });
    },
  );

  test('refuses: a route set that is not valid, by name of the route; the one that was in force stays', async () => {
    const current = createCurrent();
    const compiler = createCompiler(
      current,
      () => ({ encodedSlashes: 'refuse', doubleSlashes: 'merge', folding: FULL_FOLDING }),
      collectLog().log,
    );
    await compiler.take({ registryId: 'A', revision: 1, routes: [route('GET /a')] });
    const bad = route('GET /b 0');
    expect(await compiler.take({ registryId: 'A', revision: 2, routes: [route('GET /c'), bad] })).toEqual({
      ok: false,
      reason: `route ${bad.id}: the amount is not a price`,
    });
    expect(current.snapshot?.revision).toBe(1);
  });
});

describe('a change of a large set', () => {
  const start = async () => {
    const current = createCurrent();
    const { log, lines } = collectLog();
    const compiler = createCompiler(current, () => PATHS, log);
    const routes = many('old');
    await compiler.take({ registryId: 'A', revision: 1, routes });
    const [first] = routes;
    if (first === undefined) throw new Error('no routes');
    return { current, compiler, routes, first, lines };
  };
  const never = (): never => {
    throw new Error('the whole set was asked for');
  };

  test('behaviour: a change of one route is in force when the call returns, without the rest of the set', async () => {
    const { current, compiler, first } = await start();
    const changed = { ...first, amount: '7' };
    expect(compiler.change({ kind: 'updated', revision: 2, route: changed }, never)).toBe(true);
    expect(priceOf(current, '/old/0')).toBe('7');
    const added = route('GET /added 3');
    expect(compiler.change({ kind: 'created', revision: 3, route: added }, never)).toBe(true);
    expect(compiler.change({ kind: 'deleted', revision: 4, route: changed }, never)).toBe(true);
    expect([priceOf(current, '/added'), priceOf(current, '/old/0'), current.snapshot?.revision]).toEqual([
      '3',
      undefined,
      4,
    ]);
  });

  test.each([
    ['a change that does not follow', (changed: Route) => ({ kind: 'updated', revision: 5, route: changed }) as const],
    ['a reset', () => ({ kind: 'reset' }) as const],
  ])('behaviour: the whole of a large set is compiled after %s', async (_why, make) => {
    const { current, compiler, routes, first } = await start();
    const changed = { ...first, amount: '7' };
    const whole = { registryId: 'A', revision: 5, routes: routes.with(0, changed) };
    expect(compiler.change(make(changed), () => whole)).toBe(true);
    expect([priceOf(current, '/old/0'), current.snapshot?.revision]).toEqual(['7', 5]);
  });

  test('refuses: a change that is not valid; the set that was in force stays', async () => {
    const { current, compiler, routes, first, lines } = await start();
    const bad = { ...first, amount: '0' };
    const whole = { registryId: 'A', revision: 2, routes: routes.with(0, bad) };
    expect(compiler.change({ kind: 'updated', revision: 2, route: bad }, () => whole)).toBe(false);
    await compiler.settled();
    expect([priceOf(current, '/old/0'), current.snapshot?.revision]).toEqual(['0.10', 1]);
    expect(lines.map(({ msg }) => msg)).toContain('route set refused, the last good one stays');
  });

  test('behaviour: a set that differs little from the one in force is in force when load returns', async () => {
    const { current, compiler, routes, first } = await start();
    const next = routes.with(0, { ...first, amount: '7' });
    expect(compiler.load({ registryId: 'A', revision: 2, routes: next })).toBe(true);
    expect(priceOf(current, '/old/0')).toBe('7');
  });

  test('behaviour: sets that come faster than they compile are in force one after the other, the newest last', async () => {
    const { current, compiler } = await start();
    const seen: (number | undefined)[] = [];
    for (let revision = 2; revision < 6; revision++) {
      compiler.load({ registryId: 'A', revision, routes: many(`set${revision}`) });
      for (let turn = 0; turn < 4; turn++) await new Promise((resolve) => setImmediate(resolve));
      seen.push(current.snapshot?.revision);
    }
    await compiler.settled();
    expect(current.snapshot?.revision).toBe(5);
    expect(new Set(seen).size).toBeGreaterThan(1);
    expect(priceOf(current, '/set5/7')).toBe('0.10');
  });

  test('attack: an older set that is still being compiled does not replace a newer one', async () => {
    const { current, compiler } = await start();
    compiler.load({ registryId: 'A', revision: 2, routes: many('slow') });
    expect(compiler.load({ registryId: 'A', revision: 3, routes: [route('GET /small 4')] })).toBe(true);
    await compiler.settled();
    expect([current.snapshot?.revision, priceOf(current, '/small')]).toEqual([3, '4']);
  });
});
