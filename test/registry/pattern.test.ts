// GET /v1/billing/pattern: what a pattern would do, held against what the registry then matches.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { parsePattern } from '../../src/domain/routing/pattern.ts';
import { SDK_KEY, LIST, MATCH, startRegistry, type Kit } from './kit.ts';

type Help = Record<'valid' | 'problem' | 'key' | 'existing_id', unknown> & {
  matches: string[];
  not: string[];
  shadows: { route_id: string; by_whom: string }[];
};

let kit: Kit;
beforeAll(async () => {
  kit = await startRegistry();
});
afterAll(() => kit.close());

const ask = async (pattern: string, method?: string): Promise<Help> => {
  const query = new URLSearchParams({ route_pattern: pattern, ...(method === undefined ? {} : { method }) });
  const reply = await kit.dashboard('GET', `/v1/billing/pattern?${query}`);
  expect(reply.status).toBe(200);
  return JSON.parse(reply.body.toString()) as Help;
};
const make = async (pattern: string, method = 'GET'): Promise<string> =>
  (await kit.dashboard('POST', LIST, { body: { route_pattern: pattern, method, amount: '1' } })).json.id;

test('behaviour: the examples given for a pattern are matched, or not, as it says once the route is there', async () => {
  for (const pattern of ['/one/*', '/users/:id', '/files/{name}/parts/*rest', '/f/é', '/ex', '/two/{id:int}']) {
    const { valid, key, matches, not } = await ask(pattern, 'GET');
    const parsed = parsePattern(pattern);
    expect([valid, key]).toEqual([true, parsed.ok && parsed.pattern.key]);
    expect(matches.length).toBeGreaterThan(0);
    expect(matches.length).toBeLessThanOrEqual(5);
    expect([1, 2, 3]).toContain(not.length);
    const id = await make(pattern);
    for (const [paths, matched] of [
      [matches, true],
      [not, false],
    ] as const)
      for (const path of paths) {
        const query = new URLSearchParams({ method: 'GET', path });
        const { json } = await kit.sdk('GET', `${MATCH}?${query}`);
        expect([pattern, path, json.matched]).toEqual([pattern, path, matched]);
      }
    await kit.dashboard('DELETE', `${LIST}/${id}`);
  }
});

test('behaviour: the answer about a pattern names the route that exists, and which route wins if patterns meet', async () => {
  const below = await make('/s/*');
  const exact = await make('/s/x');
  const other = await make('/s/:id', 'POST');
  expect(await ask('/S/{rest:path}', 'GET')).toMatchObject({
    existing_id: below,
    shadows: [{ route_id: exact, by_whom: exact }],
  });
  const { existing_id, shadows } = await ask('/s/:id');
  expect(existing_id).toBeNull();
  expect(shadows).toHaveLength(3);
  expect(shadows).toEqual(
    expect.arrayContaining([
      { route_id: below, by_whom: 'this one' },
      { route_id: exact, by_whom: exact },
      { route_id: other, by_whom: other },
    ]),
  );
});

test('refuses: anything that is no pattern, with a sentence; no query is read as another one', async () => {
  for (const pattern of ['', 'x', '/*/a', '/a?b', '/a//b', '/:id/:id', `/${'a'.repeat(600)}`]) {
    const { problem, ...help } = await ask(pattern);
    expect(help).toEqual({ valid: false, key: null, matches: [], not: [], existing_id: null, shadows: [] });
    expect(problem).toMatch(/^The .*\.$/);
  }
  for (const query of [
    '',
    '?route_pattern=/a&method=G%20T',
    '?route_pattern=/a&x=1',
    '?route_pattern=/a&route_pattern=/b',
  ])
    expect((await kit.dashboard('GET', `/v1/billing/pattern${query}`)).status).toBe(400);
  expect((await kit.ask('GET', '/v1/billing/pattern?route_pattern=/a', { auth: SDK_KEY })).status).toBe(401);
});
