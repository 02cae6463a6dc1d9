// The proof of a set that changes: it is of the set as it is when the proof is there, whatever changed while it was reckoned.
import { setImmediate } from 'node:timers/promises';
import { expect, test } from 'vitest';
import type { Route } from '../../../src/domain/routing/route.ts';
import { createSetDigest } from '../../../src/domain/routing/set-digest.ts';
import { createSetProver } from '../../../src/domain/routing/set-proof.ts';
import { route } from '../../cases/routes.ts';

const many = (prefix: string, count: number): Route[] =>
  Array.from({ length: count }, (_, i) => route(`GET /${prefix}${i}`, { id: `${prefix}${i}` }));

function digestOf(routes: readonly Route[]): string {
  const digest = createSetDigest();
  for (const each of routes) digest.add(each);
  return digest.hex();
}

/** A set at revision 1 that a test changes. */
function stage(first: readonly Route[]) {
  const set = { revision: 1, routes: [...first], breaths: 0 };
  let onBreath = (): void => undefined;
  const prover = createSetProver(
    { routes: () => set.routes, head: () => ({ revision: set.revision, routes: set.routes.length }) },
    async () => {
      set.breaths++;
      await setImmediate();
      onBreath();
      onBreath = () => undefined;
    },
  );
  const change = (was: Route | undefined, is: Route | undefined): void => {
    if (was !== undefined) set.routes = set.routes.filter((each) => each !== was);
    if (is !== undefined) set.routes.push(is);
    set.revision++;
    prover.change(was, is);
  };
  const replace = (routes: readonly Route[]): void => {
    set.routes = [...routes];
    set.revision++;
    prover.replace();
  };
  const expected = () => ({ revision: set.revision, routes: set.routes.length, digest: digestOf(set.routes) });
  return { set, prover, change, replace, expected, atBreath: (run: () => void) => void (onBreath = run) };
}

test('behaviour: a changed set is proven without reckoning the whole of it again', async () => {
  const { set, prover, change, expected } = stage(many('a', 600));
  expect(await prover.prove()).toEqual(expected());
  const { breaths } = set;
  expect(breaths).toBeGreaterThan(0);
  change(set.routes[0], route('GET /a0 0.90', { id: 'a0' }));
  change(set.routes[1], undefined);
  change(undefined, route('GET /new', { id: 'new' }));
  expect(await prover.prove()).toEqual(expected());
  expect(set.breaths).toBe(breaths);
});

test('behaviour: a change while the digest is reckoned is part of the proof', async () => {
  const { set, prover, change, expected, atBreath } = stage(many('a', 600));
  atBreath(() => {
    change(set.routes[0], undefined);
    change(set.routes.at(-1), route('GET /last', { id: 'last' }));
  });
  expect(await prover.prove()).toEqual(expected());
  expect(set.revision).toBe(3);
});

test('behaviour: a set that is replaced while its digest is reckoned is never proven; the new one is', async () => {
  const { set, prover, replace, expected, atBreath } = stage(many('a', 600));
  atBreath(() => replace(many('b', 400)));
  const [one, other] = await Promise.all([prover.prove(), prover.prove()]);
  expect([one, other]).toEqual([expected(), expected()]);
  expect(set.revision).toBe(2);
});
