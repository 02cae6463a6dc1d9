// Registrations take turns: what waits is added together, and the event loop has as long for everybody else.
import { expect, test } from 'vitest';
import { problem } from '../../../src/domain/problem.ts';
import type { CreateResult, Creation, Routes } from '../../../src/registry/routes/registry-routes.ts';
import type { Principal } from '../../../src/registry/auth/credentials.ts';
import { createRegistrations, type Registrations } from '../../../src/registry/routes/registrations.ts';
import type { RouteInput } from '../../../src/domain/routing/route.ts';
import { createBody } from '../../../src/registry/http/schemas.ts';

const WRITE_MS = 7;
const KEY: Principal = { kind: 'api_key', id: undefined, name: 'a', scopes: ['sdk'], digest: Buffer.alloc(32, 1) };
const input = (pattern: string): RouteInput => createBody.parse({ route_pattern: pattern, method: 'GET', amount: '1' });

type Kit = {
  readonly registrations: Registrations;
  readonly groups: string[][];
  readonly pauses: number[];
  /** Resolves when the turn before is over and another one has begun. */
  readonly turn: () => Promise<void>;
};

function make(perMinute: number, fails = (): boolean => false): Kit {
  let now = 0;
  const groups: string[][] = [];
  const pauses: number[] = [];
  const stored = new Set<string>();
  let next = (): void => undefined;
  let wake = (): void => undefined;
  let begun = 0;
  /** The turn that is on has ended. */
  const scheduled = async (): Promise<void> => {
    while (pauses.length <= begun) await new Promise<void>((resolve) => (wake = resolve));
    begun += 1;
  };
  const routes = {
    createAll: async (creations: readonly Creation[]) => {
      now += WRITE_MS;
      if (fails()) throw new Error('the disk is full');
      groups.push(creations.map((each) => each.input.route_pattern));
      return creations.map(({ input: { route_pattern } }): CreateResult => {
        const known = stored.has(route_pattern);
        stored.add(route_pattern);
        return known ? { kind: 'full', limit: 0 } : { kind: 'created', route: { pattern: route_pattern } as never };
      });
    },
    find: ({ route_pattern }: { readonly route_pattern: string }) =>
      stored.has(route_pattern) ? ({} as never) : undefined,
    refresh: async () => undefined,
  } satisfies Pick<Routes, 'createAll' | 'find' | 'refresh'>;
  const registrations = createRegistrations({
    ...{ routes, findLowered: () => undefined, perMinute, monotonic: () => now },
    schedule: (ms, run) => {
      pauses.push(ms);
      next = run;
      wake();
      return () => undefined;
    },
  });
  return {
    ...{ registrations, groups, pauses },
    turn: async () => {
      await scheduled();
      now += pauses.at(-1) ?? 0;
      next();
    },
  };
}

test('attack: a flood is added a few at a time, and after each time others have as long', async () => {
  const { registrations, groups, pauses, turn } = make(0);
  const all = Array.from({ length: 20 }, (_, index) => registrations.add(input(`/${index}`), KEY));
  // The first found nobody waiting.
  expect(groups.map((group) => group.length)).toEqual([1]);
  for (let turns = 0; turns < 4; turns++) await turn();
  expect(groups.map((group) => group.length)).toEqual([1, 8, 8, 3]);
  expect(pauses).toEqual([WRITE_MS, WRITE_MS, WRITE_MS, WRITE_MS]);
  expect((await Promise.all(all)).map((each) => ('kind' in each ? each.kind : each.code))).toEqual(
    Array(20).fill('created'),
  );
  // When nobody waits the next one goes at once.
  void registrations.add(input('/later'), KEY);
  expect(groups.at(-1)).toEqual(['/later']);
});

test('refuses: one registration more than may wait; what is known and what failed does not count', async () => {
  let failing = false;
  const { registrations, turn } = make(3, () => failing);
  const said = async (patterns: readonly string[]): Promise<string[]> => {
    const all = patterns.map((pattern) =>
      registrations.add(input(pattern), KEY).then(
        (each) => ('kind' in each ? each.kind : each.code),
        () => 'failed',
      ),
    );
    await turn();
    await turn();
    return Promise.all(all);
  };
  failing = true;
  expect(await said(['/x', '/y', '/z', '/w'])).toEqual(['failed', 'failed', 'failed', 'failed']);
  failing = false;
  expect(await said(['/a', '/a', '/b'])).toEqual(['created', 'full', 'created']);
  expect(await said(['/a', '/b', '/a', '/b'])).toEqual(['full', 'full', 'full', 'full']);
  expect(await said(['/c', '/d', '/a', '/e'])).toEqual([
    'created',
    problem('too_many_requests', '').code,
    'full',
    'too_many_requests',
  ]);
});
