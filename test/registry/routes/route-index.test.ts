// The routes in memory are found by method and pattern, also two of them that share a hash.
import { expect, it } from 'vitest';
import { fnv1a } from '../../../src/domain/fnv.ts';
import { routeName } from '../../../src/domain/routing/pattern.ts';
import { createLog } from '../../../src/host/log.ts';
import { createRouteMemory } from '../../../src/registry/routes/route-index.ts';
import type { ChangeKind, StoredRoute } from '../../../src/registry/store/ports.ts';
import { storedRoute } from '../../cases/routes.ts';

/** Two names of one hash: found by trying. */
const [FIRST, SECOND] = ['/reports/4wzx', '/reports/b6cd'];

it('finds each of two routes that share a hash, whatever happens to the other', () => {
  expect(fnv1a(routeName('GET', FIRST))).toBe(fnv1a(routeName('GET', SECOND)));
  const stored = (id: string, pattern: string): StoredRoute => ({
    ...storedRoute(`GET ${pattern}`, { id }),
    seq: 1,
  });
  const [a, b, moved] = [stored('a', FIRST), stored('b', SECOND), stored('a', '/elsewhere')];
  const found = (memory: ReturnType<typeof createRouteMemory>): (string | undefined)[] =>
    [FIRST, SECOND, '/Elsewhere/', '/reports/4'].map((pattern) => memory.find('GET', pattern)?.id);
  for (const routes of [
    [a, b],
    [b, a],
  ]) {
    const head = { revision: 1, stamp: '' };
    const memory = createRouteMemory(
      'registry',
      { head, routes },
      createLog('error', () => undefined, Date.now),
    );
    const apply = (kind: ChangeKind, route: StoredRoute): boolean =>
      memory.apply(kind, { revision: memory.head().revision + 1, stamp: '' }, route);
    expect(found(memory)).toEqual(['a', 'b', undefined, undefined]);
    apply('updated', moved);
    expect(found(memory)).toEqual([undefined, 'b', 'a', undefined]);
    apply('updated', a);
    expect(found(memory)).toEqual(['a', 'b', undefined, undefined]);
    apply('deleted', a);
    expect(found(memory)).toEqual([undefined, 'b', undefined, undefined]);
    apply('deleted', b);
    apply('created', a);
    expect(found(memory)).toEqual(['a', undefined, undefined, undefined]);
    memory.replace({ head, routes: [b] });
    expect(found(memory)).toEqual([undefined, 'b', undefined, undefined]);
  }
});
