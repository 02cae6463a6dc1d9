// The next snapshot from the one before: any sequence of changes gives the same answers as compiling from scratch, and
// what was made before goes on giving its own.
import { isDeepStrictEqual } from 'node:util';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { FULL_FOLDING } from '../../../src/domain/routing/profile.ts';
import { changeSnapshot, reviseSnapshot, type SetChange } from '../../../src/domain/routing/revise.ts';
import type { Route } from '../../../src/domain/routing/route.ts';
import { compileSnapshot, type RouteSet, type Snapshot } from '../../../src/domain/routing/snapshot.ts';
import { route } from '../../cases/routes.ts';

const PATHS = { encodedSlashes: 'refuse', doubleSlashes: 'merge', folding: FULL_FOLDING } as const;
const setOf = (routes: readonly Route[], revision = 1): RouteSet => ({ registryId: 'r', revision, routes });
const compile = (routes: readonly Route[]): Snapshot => compileSnapshot(setOf(routes), PATHS);

const PATTERNS = [
  '/',
  '/a',
  '/a/b',
  '/a/:x',
  '/a/:x/b',
  '/a/*',
  '/:x',
  '/:x/b',
  '/*',
  '/B/c.d',
  '/ü/:x',
  '/a/b/*',
  '/a-b/:x',
];
const METHODS = ['GET', 'HEAD', 'POST', '*'];
const ASKED = ['GET', 'HEAD', 'POST', 'PUT'].flatMap((method) =>
  [
    '/',
    '/a',
    '/A',
    '/a/b',
    '/a/b/c',
    '/a/x/b',
    '/b/c.d',
    '/b/c',
    '/x',
    '/x/y/z',
    '/%C3%BC/1',
    '/a%20/b',
    '/a//b',
    '/x/y.z',
  ].map((path) => [method, path] as const),
);

/** Everything that a request could be told, and what the metrics say. */
function answersOf(snapshot: Snapshot): unknown {
  return {
    counts: snapshot.counts,
    size: snapshot.matcher.size,
    routes: snapshot.routes.map(({ id }) => id).toSorted(),
    asked: ASKED.map(([method, path]) => {
      const resolution = snapshot.resolve(method, path);
      if (!resolution.ok) return resolution.reason;
      const { match } = resolution;
      const found =
        match.kind === 'route' ? match.route : match.kind === 'undeclared' ? match.highestPriced : undefined;
      const all = resolution.keys.flatMap((key) => snapshot.matcher.findAll(key).map(({ id }) => id));
      return [method, path, match.kind, found, all.toSorted(), resolution.names];
    }),
    lost: snapshot.routes.filter((one) => snapshot.matcher.get(one.id) !== one),
  };
}

/** Compares the quick way first: `toEqual`, which says where they differ, takes most of the time of a long run. */
function expectAnswers(answers: unknown, wanted: unknown): void {
  if (!isDeepStrictEqual(answers, wanted)) expect(answers).toEqual(wanted);
}

type Step = { readonly what: 'add' | 'reprice' | 'pause' | 'move' | 'remove'; readonly at: number; readonly n: number };
const step: fc.Arbitrary<Step> = fc.record({
  what: fc.constantFrom('add', 'add', 'add', 'reprice', 'pause', 'move', 'remove', 'remove'),
  at: fc.nat(100),
  n: fc.nat(1000),
});

const ruleOf = (n: number): { method: string; pattern: string } => ({
  method: METHODS[n % METHODS.length] ?? '*',
  pattern: PATTERNS[Math.floor(n / METHODS.length) % PATTERNS.length] ?? '/',
});
const isFree = (routes: readonly Route[], { method, pattern }: { method: string; pattern: string }): boolean =>
  !routes.some((other) => other.method === method && other.pattern.replace(':y', ':x') === pattern);

/** The change that `step` makes of `routes`, where it makes sense, and the set after it. */
function play(
  routes: readonly Route[],
  { what, at, n }: Step,
  revision: number,
): { change: SetChange; routes: readonly Route[] } | undefined {
  const old = routes[at % Math.max(1, routes.length)];
  if (what === 'add') {
    const rule = ruleOf(n);
    if (!isFree(routes, rule)) return undefined;
    const added = route(`${rule.method} ${rule.pattern} 0.${(n % 9) + 1}`);
    return { change: { kind: 'created', revision, route: added }, routes: [...routes, added] };
  }
  if (old === undefined) return undefined;
  if (what === 'remove')
    return { change: { kind: 'deleted', revision, route: old }, routes: routes.filter((other) => other !== old) };
  const rule = ruleOf(n);
  if (what === 'move' && !isFree(routes, rule)) return undefined;
  const changes = {
    reprice: { amount: `${(n % 50) + 1}.${(n % 9) + 1}` },
    pause: { status: old.status === 'active' ? 'paused' : 'active' },
    move: rule,
  } as const;
  const next: Route = { ...old, ...changes[what] };
  return {
    change: { kind: 'updated', revision, route: next },
    routes: routes.map((other) => (other === old ? next : other)),
  };
}

describe('one change after the other', () => {
  test('behaviour: a changed set gives the answers of one compiled from scratch, and older snapshots keep theirs', () => {
    fc.assert(
      fc.property(fc.array(step, { minLength: 5, maxLength: 40 }), (steps) => {
        let routes: readonly Route[] = [route('GET /a 0.30')];
        let snapshot = compile(routes);
        const past: { snapshot: Snapshot; answers: unknown }[] = [];
        for (const each of steps) {
          const played = play(routes, each, snapshot.revision + 1);
          if (played === undefined) continue;
          past.push({ snapshot, answers: answersOf(snapshot) });
          const next = changeSnapshot(snapshot, played.change);
          if (next === undefined) throw new Error('it was not made');
          ({ routes } = played);
          snapshot = next;
          expectAnswers(answersOf(snapshot), answersOf(compile(routes)));
          expect(snapshot.revision).toBe(played.change.revision);
          for (const { id } of routes) expect(snapshot.matcher.get(id)).toBe(routes.find((one) => one.id === id));
        }
        for (const { snapshot: older, answers } of past) expectAnswers(answersOf(older), answers);
      }),
      { numRuns: 300 },
    );
  });

  test('attack: a price that was remembered for a path does not outlive the change of its route', () => {
    const before = route('GET /a 0.10');
    const snapshot = compile([before]);
    for (let i = 0; i < 5; i++) snapshot.resolve('GET', '/a');
    expect(snapshot.cache.hits).toBeGreaterThan(0);
    const after = { ...before, amount: '9.90' };
    const next = changeSnapshot(snapshot, { kind: 'updated', revision: 2, route: after });
    expect(next?.resolve('GET', '/a')).toMatchObject({ match: { kind: 'route', route: { amount: '9.90' } } });
    expect(next?.cache).toEqual({ hits: 0, misses: 1 });
  });

  test('behaviour: routes that did not change stay the same objects, because prices are remembered by them', () => {
    const [a, b] = [route('GET /a'), route('GET /b')];
    const next = changeSnapshot(compile([a, b]), { kind: 'updated', revision: 2, route: { ...a, amount: '2' } });
    expect(next?.matcher.get(b.id)).toBe(b);
  });

  test.each([
    ['an amount that is none', (a: Route) => ({ kind: 'updated', route: { ...a, amount: '0' } }) as const],
    ['a pattern that is none', (a: Route) => ({ kind: 'updated', route: { ...a, pattern: 'a' } }) as const],
    ['a pattern that another has', (a: Route) => ({ kind: 'updated', route: { ...a, pattern: '/B/' } }) as const],
    ['a new route where one stands', () => ({ kind: 'created', route: route('GET /b') }) as const],
  ])('refuses: a change to %s, and the snapshot before goes on', (_why, make) => {
    const a = route('GET /a 0.10');
    const snapshot = compile([a, route('GET /b')]);
    const answers = answersOf(snapshot);
    expect(() => changeSnapshot(snapshot, { revision: 2, ...make(a) })).toThrow(/^route /);
    expectAnswers(answersOf(snapshot), answers);
    const next = changeSnapshot(snapshot, { kind: 'updated', revision: 2, route: { ...a, amount: '0.70' } });
    expect(next?.resolve('GET', '/a')).toMatchObject({ match: { route: { amount: '0.70' } } });
  });

  test('refuses: a change of a route that is not there, and a second route with one id', () => {
    const a = route('GET /a');
    const snapshot = compile([a]);
    for (const kind of ['updated', 'deleted'] as const)
      expect(changeSnapshot(snapshot, { kind, revision: 2, route: route('GET /b') })).toBeUndefined();
    expect(changeSnapshot(snapshot, { kind: 'created', revision: 2, route: { ...a, pattern: '/c' } })).toBeUndefined();
  });

  test('behaviour: only the newest snapshot can be changed, and one that has seen many routes leave has to be compiled anew', () => {
    const a = route('GET /a');
    const first = compile([a]);
    const second = changeSnapshot(first, { kind: 'updated', revision: 2, route: { ...a, amount: '2' } });
    expect(changeSnapshot(first, { kind: 'updated', revision: 2, route: { ...a, amount: '3' } })).toBeUndefined();
    expect(first.matcher.get(a.id)?.amount).toBe('0.10');
    let snapshot = second;
    let changes = 0;
    while (snapshot !== undefined && changes < 5000) {
      const added = route(`GET /gone/${changes++}`);
      const one = changeSnapshot(snapshot, { kind: 'created', revision: changes, route: added });
      snapshot = one && changeSnapshot(one, { kind: 'deleted', revision: changes, route: added });
    }
    expect(changes).toBeGreaterThan(1000);
    expect(changes).toBeLessThan(2000);
  });

  test('attack: a route made and deleted at one pattern again and again does not make its place longer', () => {
    let snapshot: Snapshot | undefined = compile([route('GET /a')]);
    for (let i = 0; i < 5000 && snapshot !== undefined; i++) {
      const added = route('POST /a');
      const one = changeSnapshot(snapshot, { kind: 'created', revision: i, route: added });
      snapshot = one && changeSnapshot(one, { kind: 'deleted', revision: i, route: added });
    }
    expect(snapshot?.matcher.size).toBe(1);
  });
});

describe('one list after the other', () => {
  /** Any edit of a list, valid or not. */
  const edit = fc.record({
    what: fc.constantFrom('insert', 'delete', 'replace', 'swap', 'repeat', 'cut'),
    at: fc.nat(100),
    n: fc.nat(1000),
  });
  const edited = (routes: readonly Route[], { what, at, n }: { what: string; at: number; n: number }): Route[] => {
    const i = at % (routes.length + 1);
    const old = routes[i];
    const rule = ruleOf(n);
    const fresh = route(`${rule.method} ${rule.pattern} 0.${(n % 9) + 1}`);
    if (what === 'insert' || old === undefined) return routes.toSpliced(i, 0, fresh);
    if (what === 'delete') return routes.toSpliced(i, 1);
    if (what === 'cut') return routes.toSpliced(i, 5);
    if (what === 'swap') return [...routes.slice(i), ...routes.slice(0, i)];
    if (what === 'repeat') return routes.toSpliced(at % 3, 0, n % 2 === 0 ? old : { ...fresh, id: old.id });
    return routes.with(i, { ...old, ...(n % 2 === 0 ? { amount: `${n + 1}` } : rule) });
  };
  const attempt = (make: () => Snapshot | undefined): Snapshot | 'refused' | undefined => {
    try {
      return make();
    } catch {
      return 'refused';
    }
  };

  test('behaviour: a list taken up by its differences answers as if compiled from scratch; one that is not valid is refused', () => {
    let [taken, refused] = [0, 0];
    fc.assert(
      fc.property(fc.array(fc.array(edit, { maxLength: 4 }), { minLength: 3, maxLength: 12 }), (rounds) => {
        let routes: readonly Route[] = ['/a', '/a/:x', '/*', '/B/c.d'].map((pattern) => route(`GET ${pattern}`));
        let snapshot = compile(routes);
        for (const edits of rounds) {
          const next: readonly Route[] = edits.reduce<readonly Route[]>(edited, routes);
          const answers = answersOf(snapshot);
          const whole = attempt(() => compile(next));
          const revised = attempt(() => reviseSnapshot(snapshot, setOf(next, 7)));
          if (whole === 'refused' || whole === undefined) {
            expect(revised).toBe('refused');
            expectAnswers(answersOf(snapshot), answers);
            refused++;
            continue;
          }
          if (revised === 'refused' || revised === undefined) throw new Error('a valid list was not taken');
          expectAnswers(answersOf(revised), answersOf(whole));
          expect(revised.routes).toBe(next);
          taken++;
          [routes, snapshot] = [next, revised];
        }
      }),
      { numRuns: 300 },
    );
    expect(Math.min(taken, refused)).toBeGreaterThan(100);
  });

  test('behaviour: a few routes that came and went are found among many without the rest', () => {
    const routes = Array.from({ length: 5000 }, (_, i) => route(`GET /r${i}`));
    const snapshot = compile(routes);
    const next = routes.toSpliced(10, 50).toSpliced(4000, 0, route('GET /new'));
    const revised = reviseSnapshot(snapshot, setOf(next));
    expect(revised?.resolve('GET', '/new')).toMatchObject({ match: { kind: 'route' } });
    expect(revised?.resolve('GET', '/r10')).toMatchObject({ match: { kind: 'none' } });
    expect(revised?.resolve('GET', '/r4999')).toMatchObject({ match: { kind: 'route' } });
  });

  test.each([
    [1000, true],
    [1001, false],
  ])('behaviour: %i differences between lists are taken up at once: %s', (differences, taken) => {
    const routes = Array.from({ length: 1200 }, (_, i) => route(`GET /r${i}`));
    const next = routes.map((one, i) => (i < differences ? { ...one, amount: '5' } : one));
    expect(reviseSnapshot(compile(routes), setOf(next)) !== undefined).toBe(taken);
  });
});
