// Which set ends up in force where several are being compiled at once.
import { describe, expect, test } from 'vitest';
import { FULL_FOLDING } from '../../../src/domain/profile.ts';
import { createCompiler } from '../../../src/gateway/sync/compile.ts';
import { createCurrent } from '../../../src/gateway/sync/current.ts';
import { route } from '../../cases/routes.ts';
import { collectLog } from './fakes.ts';

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
      expect(current.get()).toMatchObject({ revision: 2, paths: { doubleSlashes: 'keep' } });
    },
  );

  test('refuses: a set that is not valid, by name of the route; what was in force stays', async () => {
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
    expect(current.get()?.revision).toBe(1);
  });
});
