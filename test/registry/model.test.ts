// Random histories of registrations, changes and deletions against a model of a few lines: the list, the set, the
// events, the revision and what a restart finds must all tell the same story.
import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { parsePattern } from '../../src/domain/routing/pattern.ts';
import type { RouteWire } from '../../src/domain/routing/route.ts';
import { createRandom, systemClock } from '../../src/host/clock.ts';
import { createLog } from '../../src/host/log.ts';
import { openRoutes, type Routes } from '../../src/registry/routes/registry-routes.ts';
import { createBody } from '../../src/registry/http/schemas.ts';
import { openStore } from '../../src/registry/store/sqlite/store.ts';
import { toWire } from '../../src/domain/routing/route.ts';
import { RECEIVERS } from '../cases/receivers.ts';
import { temporaryFolder } from './kit.ts';

type Step =
  | { do: 'create'; pattern: string; method: string; amount: string }
  | { do: 'patch'; at: number; pattern?: string; amount?: string; status?: 'active' | 'paused' }
  | { do: 'delete'; at: number };

const pattern = fc.constantFrom('/a', '/A/', '/a/:x', '/a/{y}', '/b/*', '/b/*rest', '/B/*');
const amount = fc.constantFrom('1', '2', '0.50');
const at = fc.nat({ max: 5 });
const step: fc.Arbitrary<Step> = fc.oneof(
  fc.record({ do: fc.constant('create' as const), pattern, method: fc.constantFrom('GET', '*'), amount }),
  fc.record(
    {
      do: fc.constant('patch' as const),
      at,
      pattern,
      amount,
      status: fc.constantFrom('active' as const, 'paused' as const),
    },
    { requiredKeys: ['do', 'at'] },
  ),
  fc.record({ do: fc.constant('delete' as const), at }),
);

const BY = 'dashboard:ann';

const keyOf = (route: { route_pattern: string; method: string }): string => {
  const parsed = parsePattern(route.route_pattern);
  return `${route.method} ${parsed.ok ? parsed.pattern.key : ''}`;
};

describe('random histories', () => {
  test('behaviour: the routes, their store and its changes agree with the model', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 25 }), async (steps) => {
        const { folder, remove } = temporaryFolder();
        const random = createRandom();
        const open = (): ReturnType<typeof openStore> => openStore(`${folder}/t.db`, { random });
        const store = open();
        const log = createLog('error', () => undefined, systemClock.now);
        const routesOf = (over: typeof store): Promise<Routes> =>
          openRoutes({
            store: over.routes,
            isShared: false,
            receivers: () => RECEIVERS,
            unknownReceiver: () => 'store',
            methods: () => new Set(['GET']),
            maxRoutes: 100,
            clock: systemClock,
            random,
            log,
          });
        const routes = await routesOf(store);
        const model: RouteWire[] = [];
        const replica = new Map<string, RouteWire>();
        let revision = 0;
        routes.subscribe((change) => {
          expect(change.revision).toBe(revision + 1);
          if (change.kind === 'deleted') replica.delete(change.route.id);
          else if (change.kind !== 'reset') replica.set(change.route.id, toWire(change.route));
        });
        for (const each of steps) revision += await apply(each, routes, model);
        expect(routes.head().revision).toBe(revision);
        expect(routes.routeSet().routes.map(toWire)).toEqual(model);
        expect([...replica.values()].sort(byId)).toEqual([...model].sort(byId));
        const filter = {
          limit: 200,
          before: undefined,
          status: undefined,
          method: undefined,
          source: undefined,
          q: undefined,
        };
        expect(routes.list(filter).routes.map(toWire)).toEqual(model.toReversed());
        const changes = await store.routes.changesAfter(0, 1000);
        expect(changes === 'too_old' ? changes : changes.length).toBe(revision);
        store.close();
        const again = open();
        expect((await routesOf(again)).routeSet()).toEqual(routes.routeSet());
        again.close();
        remove();
      }),
      { numRuns: 40 },
    );
  });
});

/** Does `step` to the routes and to the model; returns by how much the revision must have grown. */
async function apply(step: Step, routes: Routes, model: RouteWire[]): Promise<number> {
  if (step.do === 'create') {
    const wanted = { route_pattern: step.pattern, method: step.method, amount: step.amount };
    const created = await routes.create({ input: createBody.parse(wanted), by: BY });
    const taken = model.find((route) => keyOf(route) === keyOf(wanted));
    if (taken) {
      expect(created).toMatchObject({ kind: 'conflict', existing: { id: taken.id } });
      return 0;
    }
    if (created.kind !== 'created') throw new Error(created.kind);
    expect(toWire(created.route)).toMatchObject(wanted);
    model.push(toWire(created.route));
    return 1;
  }
  const target = model[step.at];
  const route = target && routes.get(target.id);
  expect(route && toWire(route)).toEqual(target);
  if (!target || !route) return 0;
  if (step.do === 'delete') {
    expect(await routes.remove(route.id, BY, () => true)).toMatchObject({ kind: 'removed' });
    expect(routes.get(route.id)).toBeUndefined();
    model.splice(step.at, 1);
    return 1;
  }
  const { pattern, amount, status } = step;
  const changes = {
    ...(pattern ? { route_pattern: pattern } : {}),
    ...(amount ? { amount } : {}),
    ...(status ? { status } : {}),
  };
  const changed = { ...target, ...changes };
  const patched = await routes.patch(route.id, changes, BY, () => true);
  const taken = model.find((other) => other !== target && keyOf(other) === keyOf(changed));
  const same = JSON.stringify(changed) === JSON.stringify(target);
  expect(patched.kind).toBe(same ? 'unchanged' : taken ? 'conflict' : 'updated');
  if (patched.kind !== 'updated') return 0;
  model[step.at] = { ...changed, updated_at: patched.route.updatedAt };
  expect(toWire(patched.route)).toEqual(model[step.at]);
  return 1;
}

function byId(a: RouteWire, b: RouteWire): number {
  return a.id < b.id ? -1 : 1;
}
