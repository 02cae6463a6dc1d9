// The dashboard's list: pages, filters, and what a query may not be.
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { declared, LIST, startRegistry, type Kit } from './kit.ts';

describe('GET list', () => {
  let one: Kit;
  beforeAll(async () => {
    one = await startRegistry();
    const routes = Array.from({ length: 60 }, (_, index) => ({
      ...{ route_pattern: `/r${index}/Some_thing%`.replace('%', ''), method: index % 2 ? 'GET' : 'POST', amount: '1' },
      ...{ name: index === 7 ? 'Über 100%_Sure' : null, status: index < 5 ? ('paused' as const) : ('active' as const) },
    }));
    await one.registry.declare(declared(routes), 'start');
    await one.dashboard('POST', LIST, { body: { route_pattern: '/last', method: '*', amount: '1', source: 'sdk-go' } });
  });
  afterAll(() => one.close());
  const patterns = async (query: string): Promise<string[]> =>
    (await one.dashboard('GET', `${LIST}${query}`)).json.data.map((each) => each.route_pattern);

  test('behaviour: routes are listed newest first, 50 a page; the cursor leads through all of them once, also while routes come and go', async () => {
    const first = (await one.dashboard('GET', LIST)).json;
    expect(first.data.length).toBe(50);
    expect(first.data[0]?.route_pattern).toBe('/last');
    expect(Object.keys(first.data[0] ?? {}).length).toBe(14);
    const between = await one.dashboard('POST', LIST, {
      body: { route_pattern: '/between', method: 'GET', amount: '1' },
    });
    await one.dashboard('DELETE', `${LIST}/${between.json.id}`);
    const second = (await one.dashboard('GET', `${LIST}?cursor=${first.next_cursor}`)).json;
    expect([second.data.length, second.next_cursor]).toEqual([11, null]);
    const all = [...first.data, ...second.data].map((each) => each.id);
    expect(new Set(all).size).toBe(61);
    const exact = (await one.dashboard('GET', `${LIST}?limit=61`)).json;
    expect([exact.data.length, exact.next_cursor]).toEqual([61, null]);
  });

  test('behaviour: the list of routes filters by status, method, source and text, and combines them', async () => {
    expect((await patterns('?status=paused')).length).toBe(5);
    expect((await patterns('?method=post&limit=200')).length).toBe(30);
    expect(await patterns('?method=*')).toEqual(['/last']);
    expect(await patterns('?source=sdk-go')).toEqual(['/last']);
    expect(await patterns('?source=nobody')).toEqual([]);
    expect(await patterns('?q=R59')).toEqual(['/r59/Some_thing']);
    expect(await patterns('?q=100%25_s')).toEqual(['/r7/Some_thing']);
    expect(await patterns('?q=100%25xs')).toEqual([]);
    expect(await patterns(`?q=${encodeURIComponent("' OR 1=1 --")}`)).toEqual([]);
    expect(await patterns('?q=%C3%9Cber&status=active')).toEqual(['/r7/Some_thing']);
    expect(await patterns('?q=r7&status=paused&limit=200')).toEqual([]);
  });

  test.each([
    'limit=0',
    'limit=201',
    'limit=-1',
    'limit=1.5',
    'limit=',
    'limit=1e1',
    'limit=1&limit=2',
    'cursor=x',
    'cursor=',
    'cursor=cjE%3D',
    'cursor=cjAx',
    'status=deleted',
    'status=',
    'method=a%20b',
    `q=${'x'.repeat(201)}`,
  ])('refuses: a list of routes with %s, with 400', async (query) => {
    const reply = await one.dashboard('GET', `${LIST}?${query}`);
    expect([reply.status, reply.json.code]).toEqual([400, 'malformed']);
    expect(reply.json.detail).toContain(query.split('=')[0]);
  });
});
