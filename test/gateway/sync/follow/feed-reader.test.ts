// Feeds as registries write them: ours, one that serves no more than the interface, and bytes that are no feed at all.
import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { toWire, type Route } from '../../../../src/domain/routing/route.ts';
import { feedPieces } from '../../../../src/gateway/routes/feed-writer.ts';
import { FEED_LIMITS, readFeed } from '../../../../src/gateway/sync/follow/feed-reader.ts';
import { createArrayCutter } from '../../../../src/gateway/sync/follow/json-array.ts';
import { route } from '../../../cases/routes.ts';

const ID = '3f0b3d0e-3b55-4d4f-9a0e-6c2f5f1c7a11';
const BARE = { id: ID, route_pattern: '/reports/*', method: 'GET', amount: '0.10' };
const read = (feed: unknown) => readFeed([Buffer.from(typeof feed === 'string' ? feed : JSON.stringify(feed))]);

describe('routes of a feed', () => {
  test('behaviour: a route of a feed needs four fields; the rest has the defaults of the contract', async () => {
    expect(await read([BARE])).toEqual({
      ok: true,
      routes: [
        {
          id: ID,
          pattern: '/reports/*',
          method: 'GET',
          amount: '0.10',
          currency: 'USD',
          name: null,
          description: null,
          status: 'active',
          allowAnonymous: true,
          source: null,
          receiverConfigId: null,
          planId: null,
          createdAt: '1970-01-01T00:00:00.000Z',
          updatedAt: '1970-01-01T00:00:00.000Z',
        },
      ],
    });
  });

  test('behaviour: null in a route is the same as absent, unknown members are ignored, spellings are made one', async () => {
    const nulls = { currency: null, status: null, allow_anonymous: null, name: null, source: null, created_at: null };
    const result = await read([
      { ...BARE, ...nulls, id: ID.toUpperCase(), method: 'get', plan: { tier: [1, { deep: '],[' }] }, __proto__: 1 },
      {
        ...BARE,
        id: ID.replace('3', '4'),
        route_pattern: '/b',
        currency: 'usdc',
        created_at: '2026-03-01T10:00:00+02:00',
        updated_at: 'yesterday',
      },
    ]);
    expect(result).toMatchObject({
      ok: true,
      routes: [
        { id: ID, method: 'GET', currency: 'USD', status: 'active', allowAnonymous: true },
        { currency: 'USDC', createdAt: '2026-03-01T08:00:00.000Z', updatedAt: '1970-01-01T00:00:00.000Z' },
      ],
    });
  });

  test('behaviour: a field that only decorates a route is cut to size, and is no reason to refuse the set', async () => {
    const result = await read([
      {
        ...BARE,
        name: 'n'.repeat(201),
        description: `${'d'.repeat(999)}😀`,
        source: 'made by hand, in a hurry '.repeat(9),
      },
    ]);
    if (!result.ok) throw new Error(result.reason);
    expect(result.routes[0]).toMatchObject({ name: 'n'.repeat(200), description: `${'d'.repeat(999)}�` });
    expect(result.routes[0]?.source).toHaveLength(64);
  });

  test.each<[string, Record<string, unknown>, RegExp]>([
    ['no id', { id: undefined }, /number 1: id/],
    ['an id that is no UUID', { id: 'r1' }, /number 1: id/],
    ['no pattern', { route_pattern: undefined }, /route_pattern/],
    ['no method', { method: undefined }, /method/],
    ['no amount', { amount: undefined }, /amount/],
    ['an amount that is a number', { amount: 0.1 }, /amount: an amount is a decimal written as a string/],
    ['a status of its own', { status: 'archived' }, /status/],
    ['allow_anonymous as text', { allow_anonymous: 'no' }, /allow_anonymous/],
    ['a currency that is none', { currency: '€' }, /currency/],
  ])('refuses: a route with %s, and the whole feed with it', async (_what, fields, reason) => {
    const result = await read([
      { ...BARE, ...fields },
      { ...BARE, id: ID.replace('3', '4') },
    ]);
    expect(result).toMatchObject({ ok: false, reason: expect.stringMatching(reason) as string });
  });

  test('behaviour: a feed of our own writing reads back the same, in many slices', async () => {
    const routes = Array.from({ length: 1203 }, (_, i) =>
      route(`GET /r/${i}/:id 0.0${(i % 9) + 1}`, { name: `"${i}\\`, description: '], [ { "é" 😀' }),
    );
    const text = [...feedPieces(routes)].join('');
    expect(JSON.parse(text)).toEqual(routes.map(toWire));
    const bytes = Buffer.from(text);
    const chunks = Array.from({ length: Math.ceil(bytes.length / 777) }, (_, i) =>
      bytes.subarray(i * 777, (i + 1) * 777),
    );
    expect(await readFeed(chunks)).toEqual({ ok: true, routes });
    expect([...feedPieces([])].join('')).toBe('[]');
  });
});

describe('a route as our registry writes it', () => {
  const usual = { ...toWire(route('GET /a/:id')), id: ID };
  const text = (max: number) => [null, '', 'é 😀', 'half \ud800', ...[max, max + 1].map((size) => 'x'.repeat(size))];
  const time = ['2026-03-01T10:00:00.000Z', '2026-03-01T10:00:00Z', '2026-03-01T10:00:00.000+02:00', '2026'];
  const values: Readonly<Record<string, readonly unknown[]>> = {
    id: [ID.slice(1), `${ID}0`, ID.replace('a', 'g'), ID.replaceAll('-', '')],
    route_pattern: ['no pattern'],
    method: ['*', 'get', 'A B', 'X'.repeat(32), 'X'.repeat(33)],
    amount: ['no amount'],
    currency: ['usd', 'US', 'USDCUSDCUS', 'USDCUSDCUSD'],
    name: text(200),
    description: text(1000),
    status: ['paused', 'archived', 'Active'],
    allow_anonymous: [false, 'false'],
    source: text(64),
    receiver_config_id: text(64),
    created_at: time,
    updated_at: time,
    note: ['a member that nobody knows'],
  };
  const member = fc
    .constantFrom(...Object.keys(values))
    .chain((key) =>
      fc.constantFrom(undefined, null, 0, {}, '', ...(values[key] ?? [])).map((value) => ({ [key]: value })),
    );
  const wire = fc.tuple(member, member).map(([one, other]) => ({ ...usual, ...one, ...other }));

  test('attack: a route that our registry writes is read, or refused, as the schema would, whatever its members hold', async () => {
    await fc.assert(
      fc.asyncProperty(wire, async (plain) => {
        // An id in capitals is nothing that our registry writes: the schema reads it, and makes it the same id.
        const id: unknown = typeof plain.id === 'string' ? plain.id.toUpperCase() : plain.id;
        const bySchema = await read([{ ...plain, id }]);
        const short = await read([plain]);
        expect(short.ok ? short : { ...short, reason: short.reason.toUpperCase() }).toEqual(
          bySchema.ok ? bySchema : { ...bySchema, reason: bySchema.reason.toUpperCase() },
        );
      }),
      { numRuns: 3000 },
    );
  });
});

describe('a feed after another', () => {
  const bytesOf = (routes: readonly Route[]): Buffer[] => [...feedPieces(routes)].map((piece) => Buffer.from(piece));
  const again = async (bytes: Iterable<Uint8Array>, known: readonly Route[]): Promise<readonly Route[]> => {
    const result = await readFeed(bytes, FEED_LIMITS, known);
    if (!result.ok) throw new Error(result.reason);
    return result.routes;
  };
  const known = Array.from({ length: 300 }, (_, i) =>
    route(`GET /r${i}`, { name: `n${i}`, source: 'sdk-of-some-kind' }),
  );

  test('behaviour: a route that did not change is the very object that it was, whatever came, went or changed beside it', async () => {
    const changed = { ...known[5], amount: '9' } satisfies Partial<Route>;
    const added = route('GET /added');
    const next = known
      .toSpliced(200, 3)
      .toSpliced(100, 0, added)
      .with(5, { ...route('GET /x'), ...changed });
    const routes = await again(bytesOf(next), known);
    expect(routes).toEqual(next);
    const kept = new Set(known);
    expect(routes.filter((one) => !kept.has(one))).toEqual([next[5], added]);
  });

  test('behaviour: a registry that leaves out members that have a default says the same as before, too', async () => {
    const feed = [Buffer.from(JSON.stringify([BARE, { ...BARE, id: route('GET /').id, route_pattern: '/b' }]))];
    const first = await again(feed, []);
    const second = await again(feed, first);
    expect(second.map((one, i) => one === first[i])).toEqual([true, true]);
  });

  test.each(Object.keys(toWire(route('GET /a'))))(
    'attack: a route whose %s changed is not taken for the old one',
    async (name) => {
      const old = route('GET /a');
      const other = {
        ...toWire(route('POST /b 7')),
        ...{ currency: 'EUR', name: 'x', description: 'x', status: 'paused', allow_anonymous: false, source: 'x' },
        ...{ receiver_config_id: 'x', created_at: '2027-01-01T00:00:00.000Z', updated_at: '2027-01-01T00:00:00.000Z' },
      };
      const wire = { ...toWire(old), ...Object.fromEntries(Object.entries(other).filter(([key]) => key === name)) };
      const [read] = await again([Buffer.from(JSON.stringify([wire]))], [old]);
      expect(read === undefined ? undefined : toWire(read)).toEqual(wire);
    },
  );
});

describe('bytes that are no feed', () => {
  test.each([
    ['nothing', '', 'not a JSON array'],
    ['a page', '<!doctype html><title>502</title>', 'not a JSON array'],
    ['an object', '{"data":[]}', 'not a JSON array'],
    ['a number', '1', 'not a JSON array'],
    ['an array cut off', `[${JSON.stringify(BARE)}`, 'cut off'],
    ['an array cut off in a string', '["', 'cut off'],
    ['a comma too many', `[${JSON.stringify(BARE)},]`, 'not valid JSON'],
    ['something behind the array', '[] []', 'not valid JSON'],
    ['brackets that do not match', '[1}', 'not valid JSON'],
    ['a route that is null', '[null]', 'number 1:'],
    ['routes in a list of lists', `[[${JSON.stringify(BARE)}]]`, 'number 1:'],
  ])('refuses: a feed of %s', async (_what, text, reason) => {
    expect(await read(text)).toMatchObject({ ok: false, reason: expect.stringContaining(reason) as string });
  });

  test('refuses: a feed of one route more than the limit, and one byte more in a route', async () => {
    const feed = [BARE, { ...BARE, id: ID.replace('3', '4') }];
    const bytes = [Buffer.from(JSON.stringify(feed))];
    expect(await readFeed(bytes, { routes: 2, routeBytes: 1000 })).toMatchObject({ ok: true });
    expect(await readFeed(bytes, { routes: 1, routeBytes: 1000 })).toEqual({
      ok: false,
      reason: 'it holds more than 1 routes',
    });
    const long = Buffer.from(`[{"note":"${'x'.repeat(100_000)}`);
    expect(await readFeed([long], { routes: 1, routeBytes: 100_010 })).toMatchObject({
      reason: 'the JSON array is cut off',
    });
    expect(await readFeed([long], { routes: 1, routeBytes: 100_008 })).toMatchObject({
      reason: 'one route is larger than 100008 bytes',
    });
  });

  test('attack: a feed is what JSON.parse says, or refused, whatever its bytes and wherever they are cut', () => {
    const json = fc.json({ maxDepth: 3 });
    const broken = fc.string({
      unit: fc.constantFrom('[', ']', '{', '}', ',', ':', '"', '\\', '1', ' ', '\n', 'é', '\ufeff', 'true'),
      maxLength: 12,
    });
    const text = fc.oneof(
      fc.array(json).map((members) => ` [${members.join(' , ')}]\n`),
      broken,
      broken.map((inner) => `[${inner}]`),
    );
    fc.assert(
      fc.property(text, fc.array(fc.integer({ min: 1, max: 7 }), { minLength: 1 }), (source, sizes) => {
        const bytes = Buffer.from(source);
        const cutter = createArrayCutter(1_000_000);
        const members: unknown[] = [];
        let ok = true;
        for (let at = 0, i = 0; at < bytes.length && ok; i++) {
          const size = sizes[i % sizes.length] ?? 1;
          const piece = cutter.push(bytes.subarray(at, at + size));
          at += size;
          if (piece.ok) members.push(...piece.members);
          ok = piece.ok;
        }
        ok &&= cutter.end().ok;
        let whole: unknown;
        try {
          whole = JSON.parse(source);
        } catch {
          whole = undefined;
        }
        expect(ok ? members : 'refused').toEqual(Array.isArray(whole) ? whole : 'refused');
      }),
      { numRuns: 2000 },
    );
  });
});
