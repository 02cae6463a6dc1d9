import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { explainMatch, matchRoute, type MatchRules } from '../../../src/domain/explanation.ts';
import { allowedMethods } from '../../../src/domain/routing/method.ts';
import { FULL_FOLDING, PROFILE_NAMES, profileFolding } from '../../../src/domain/routing/profile.ts';
import type { Route } from '../../../src/domain/routing/route.ts';
import { compileSnapshot, compileSnapshotInSlices, type Snapshot } from '../../../src/domain/routing/snapshot.ts';
import { MATCHES } from '../../cases/matches.ts';
import { route } from '../../cases/routes.ts';
import { SPELLINGS_OF_EXPORT } from '../../cases/targets.ts';
import { findLinear } from '../oracle.ts';

const PATHS = { encodedSlashes: 'refuse', doubleSlashes: 'merge', folding: FULL_FOLDING } as const;
const RULES: MatchRules = { undeclaredMethods: 'forward', methods: allowedMethods(), targetBytes: 8192 };
const compile = (routes: readonly Route[]): Snapshot =>
  compileSnapshot({ registryId: 'r', revision: 1, routes }, PATHS);

function winner(snapshot: Snapshot, request: string): string {
  const [method = '', path = ''] = request.split(' ');
  const resolution = snapshot.resolve(method, path);
  if (!resolution.ok) return 'refused';
  const { match } = resolution;
  if (match.kind === 'route') return `${match.route.method} ${match.route.pattern}`;
  return match.kind === 'none' ? 'free' : 'undeclared';
}

describe('which route applies', () => {
  for (const { why, rules, asks } of MATCHES) {
    test(`behaviour: ${why}`, () => {
      const snapshot = compile(rules.map((rule) => route(rule)));
      const expected = asks.map(([request, wins]) => [request, wins]);
      expect(asks.map(([request]) => [request, winner(snapshot, request)])).toEqual(expected);
      // The same in another spelling, and again when the cache knows it.
      const spelled = (request: string): string =>
        request.replace(/[a-z](?=[^/]*$)/, (letter) => `%${letter.charCodeAt(0).toString(16)}`);
      for (let i = 0; i < 3; i++) {
        expect(asks.map(([request]) => [request, winner(snapshot, spelled(request))])).toEqual(expected);
      }
      expect(asks.map(([request]) => [request, winner(snapshot, request)])).toEqual(expected);
    });
  }

  test.each(SPELLINGS_OF_EXPORT)('attack: %s costs what /v1/export costs', (spelling) => {
    expect(winner(compile([route('GET /v1/export')]), `GET ${spelling}`)).toBe('GET /v1/export');
  });

  test('behaviour: a snapshot agrees with the linear oracle on random routes and paths', () => {
    const segment = fc.constantFrom('a', 'b', 'A', 'c', ':x', ':y', '{z:int}');
    const pattern = fc
      .tuple(fc.array(segment, { maxLength: 4 }), fc.boolean())
      .map(
        ([parts, wild]) =>
          `/${[...new Set(parts.map((part, i) => (part.length > 1 ? `:p${i}` : part)).concat(wild ? ['*'] : []))].join('/')}`,
      );
    const method = fc.constantFrom('GET', 'POST', 'HEAD', '*');
    const rules = fc.uniqueArray(fc.tuple(method, pattern), {
      maxLength: 12,
      selector: ([m, p]) => `${m} ${p.toLowerCase().replace(/:p\d/g, ':')}`,
    });
    const path = fc
      .array(fc.constantFrom('a', 'b', 'c', 'd', 'B'), { maxLength: 5 })
      .map((parts) => `/${parts.join('/')}`);
    fc.assert(
      fc.property(
        rules,
        fc.array(fc.tuple(fc.constantFrom('GET', 'HEAD', 'POST', 'PUT'), path), { minLength: 5, maxLength: 20 }),
        (made, asks) => {
          const routes = made.map(([m, p]) => route(`${m} ${p}`));
          const { matcher } = compile(routes);
          for (const [m, p] of asks) {
            const key = p.toLowerCase();
            const found = matcher.find(key, m);
            expect(typeof found === 'object' ? found.id : undefined).toBe(findLinear(routes, key, m, FULL_FOLDING)?.id);
            expect(found === undefined).toBe(matcher.findAll(key).length === 0);
          }
        },
      ),
      { numRuns: 2000 },
    );
  });

  test('behaviour: a paused route still wins by the order and then costs nothing', () => {
    const snapshot = compile([route('GET /a/*'), route('GET /a/free', { status: 'paused' })]);
    expect(matchRoute(snapshot, { method: 'GET', path: '/a/free', rules: RULES })).toMatchObject({
      matched: true,
      payment_required: false,
      route: { route_pattern: '/a/free', status: 'paused' },
    });
    expect(matchRoute(snapshot, { method: 'GET', path: '/a/b', rules: RULES }).payment_required).toBe(true);
  });

  test('behaviour: a paused route keeps its paths free, whatever other names they have', () => {
    const paused = { status: 'paused' } as const;
    const rules = ['GET /* 1.00', 'GET /static/dear 1.00', 'GET /v1/* 1.00', 'GET /x/old-name 1.00'];
    const snapshot = compile([
      ...rules.map((rule) => route(rule)),
      route('GET /static/*', paused),
      route('GET /v1/:id', paused),
    ]);
    for (const path of ['/static/app.js', '/static/a/b.min.css', '/static/a,b', '/v1/a-b', '/v1/a,b'])
      expect([path, winner(snapshot, `GET ${path}`)]).toEqual([
        path,
        path.startsWith('/v1') ? 'GET /v1/:id' : 'GET /static/*',
      ]);
    // Not where a router may run a neighbour that has a price.
    expect(winner(snapshot, 'GET /static/dear.json')).toBe('GET /static/dear');
    expect(winner(snapshot, 'GET /STATIC/app.js')).toBe('GET /*');
  });

  test('behaviour: an undeclared method that pays costs what the dearest active route does', () => {
    const dear = route('PUT /a 9.90');
    const snapshot = compile([route('GET /a 0.10'), dear, route('PATCH /a 99', { status: 'paused' })]);
    const resolution = snapshot.resolve('POST', '/a');
    expect(resolution).toMatchObject({ ok: true, match: { kind: 'undeclared', highestPriced: { id: dear.id } } });
  });

  test('behaviour: an undeclared method is told which ones some route of the path declares, HEAD with GET', () => {
    const snapshot = compile([
      route('PUT /a'),
      route('GET /:any'),
      route('PATCH /a', { status: 'paused' }),
      route('DELETE /b'),
    ]);
    for (const [request, declared] of [
      ['POST /a', ['GET', 'HEAD', 'PATCH', 'PUT']],
      ['POST /b', ['DELETE', 'GET', 'HEAD']],
    ] as const) {
      const [method = '', path = ''] = request.split(' ');
      expect(snapshot.resolve(method, path)).toMatchObject({ ok: true, match: { kind: 'undeclared', declared } });
    }
  });
});

describe('the cache', () => {
  test('attack: paths that never come twice push none that do out of the cache', () => {
    const snapshot = compile([route('GET /a/*')]);
    for (let i = 0; i < 3; i++) snapshot.resolve('GET', '/a/Hot');
    for (let i = 0; i < 50_000; i++) snapshot.resolve('GET', `/a/A${i}`);
    const before = snapshot.cache.hits;
    snapshot.resolve('GET', '/a/Hot');
    expect(snapshot.cache.hits).toBe(before + 1);
  });

  test('behaviour: a route that was cached for one method does not answer another', () => {
    const snapshot = compile([route('GET /a')]);
    for (let i = 0; i < 3; i++) expect(winner(snapshot, 'GET /A')).toBe('GET /a');
    for (let i = 0; i < 3; i++) expect(winner(snapshot, 'POST /A')).toBe('undeclared');
    expect(snapshot.cache.hits).toBeGreaterThan(0);
  });
});

describe('compiling', () => {
  test.each([
    ['a pattern that is none', [route('GET a')]],
    ['an amount that is none', [route('GET /a 0')]],
    ['two routes with one key and method', [route('GET /a/:x'), route('GET /A/{y}/')]],
  ])('refuses: a set with %s, whole', (_why, routes) => {
    expect(() => compile([route('GET /fine'), ...routes])).toThrow(/^route /);
  });

  test('refuses: a set with one id twice', () => {
    const first = route('GET /a');
    expect(() => compile([first, { ...route('GET /b'), id: first.id }])).toThrow(/the id stands twice/);
  });

  test('behaviour: a set compiled in slices is the same, and lets others run in between', async () => {
    const routes = Array.from({ length: 1000 }, (_, i) => route(`GET /r${i}/:id`));
    let breaths = 0;
    const sliced = await compileSnapshotInSlices(
      { registryId: 'r', revision: 1, routes },
      PATHS,
      async () => void breaths++,
    );
    expect(breaths).toBe(3);
    expect(winner(sliced, 'GET /r999/x')).toBe('GET /r999/:id');
  });
});

describe('explaining', () => {
  const snapshot = compile([route('GET /v1/reports/:id'), route('POST /v1/reports/:id'), route('* /v1/*')]);

  test('behaviour: an explanation says which routes were considered and why one won', () => {
    const explanation = explainMatch(snapshot, {
      method: 'get',
      path: '/v1/reports/q%203?full=1',
      rules: RULES,
    });
    expect(explanation.answer).toMatchObject({ matched: true, payment_required: true, params: { id: 'q 3' } });
    expect(explanation.path).toBe('/v1/reports/q%203');
    expect(explanation.considered.map(({ route, because }) => `${route.method} ${route.pattern}: ${because}`)).toEqual([
      'GET /v1/reports/:id: wins',
      'POST /v1/reports/:id: is for POST, not GET',
      '* /v1/*: is less specific: segment 2 is a wildcard here and "reports" in the route that wins',
    ]);
  });

  test('behaviour: the segment that decided is named, and none if a route loses by something else', () => {
    const routes = ['/users/me', '/users/:id', '/users/*', '/users/me/*', '/:any/me'].map((each) =>
      route(`GET ${each}`),
    );
    const { considered } = explainMatch(compile(routes), { method: 'GET', path: '/users/me', rules: RULES });
    expect(new Map(considered.map(({ route: { pattern }, because }) => [pattern, because]))).toEqual(
      new Map([
        ['/users/me', 'wins'],
        ['/users/:id', 'is less specific: segment 2 is a parameter here and "me" in the route that wins'],
        ['/users/*', 'is less specific: segment 2 is a wildcard here and "me" in the route that wins'],
        ['/users/me/*', 'is less specific, or cheaper where the path can be read in two ways'],
        ['/:any/me', 'is less specific: segment 1 is a parameter here and "users" in the route that wins'],
      ]),
    );
  });

  test('behaviour: bytes that a target cannot hold are percent-encoded before they are explained', () => {
    expect(matchRoute(snapshot, { method: 'GET', path: '/v1/reports/q 3 é', rules: RULES }).params).toEqual({
      id: 'q 3 é',
    });
  });

  test('behaviour: a path that the proxy would refuse is explained as protected and ambiguous', () => {
    expect(matchRoute(snapshot, { method: 'GET', path: '/free/../v1', rules: RULES })).toEqual({
      matched: true,
      payment_required: true,
      ambiguous: true,
      route: null,
      params: {},
    });
  });

  test('behaviour: an unmatched path is explained as no match, with every member there', () => {
    expect(
      matchRoute(snapshot, { method: 'GET', path: '/free', rules: { ...RULES, undeclaredMethods: 'pay' } }),
    ).toEqual({
      matched: false,
      payment_required: false,
      route: null,
      params: {},
    });
  });
});

describe('profiles', () => {
  test.each(PROFILE_NAMES)('behaviour: profile %s matches a spelling exactly if its router would', (name) => {
    const folding = profileFolding(name);
    const snapshot = compileSnapshot(
      {
        registryId: 'r',
        revision: 1,
        routes: ['GET /v1/export', 'GET /v1/reports/:id', 'GET /v1/daily_report'].map((rule) => route(rule)),
      },
      { ...PATHS, folding },
    );
    const costs = (spelling: string): boolean => winner(snapshot, `GET ${spelling}`) === 'GET /v1/export';
    expect({
      letterCase: costs('/V1/Export'),
      compatibility: costs('/v1/%EF%BD%85xport'),
      matrix: costs('/v1/export;x'),
      suffix: costs('/v1/export.json'),
      trim: costs('/v1/export%20'),
      empty: winner(snapshot, 'GET /v1/reports/') === 'GET /v1/reports/:id',
      form: costs('/v1/export&x=y') && costs('/v1/export%26x=y'),
      script: costs('/index.php/v1/export'),
      pageData: costs('/_next/data/x/v1/export.json'),
      index: costs('/v1/export/index'),
      dots: costs('/v1.export'),
      dashes: winner(snapshot, 'GET /v1/daily-report') === 'GET /v1/daily_report',
      views: costs('/v1/@@export'),
      lists: costs('/v1/free,export'),
    }).toEqual(folding);
    expect([costs('/v1/export'), costs('/v1/export/'), costs('/v1/%65xport'), costs('/v1/other')]).toEqual([
      true,
      true,
      true,
      false,
    ]);
  });
});

describe('where routers could disagree about the route', () => {
  const PAUSED = { status: 'paused' } as const;
  const snapshotOf = (...routes: Route[]) => compileSnapshot({ registryId: 'r', revision: 1, routes }, PATHS);
  const wins = (snapshot: Snapshot, path: string): string => winner(snapshot, `GET ${path}`);

  test('attack: another spelling of a paused route does not open its priced neighbour', () => {
    const snapshot = snapshotOf(
      route('GET /r/open', PAUSED),
      route('GET /r/:id'),
      route('GET /f/Open', PAUSED),
      route('GET /f/*'),
    );
    expect(wins(snapshot, '/r/open')).toBe('GET /r/open');
    expect(wins(snapshot, '/r/%6fpen')).toBe('GET /r/open');
    expect(wins(snapshot, '/f/Open')).toBe('GET /f/Open');
    for (const path of ['/r/OPEN', '/r/open.', '/r/open%20', '/r/%EF%BD%8Fpen', '/r/open;x'])
      expect(wins(snapshot, path)).toBe('GET /r/:id');
    for (const path of ['/f/open', '/f/Open/', '/f/OPEN']) expect(wins(snapshot, path)).toBe('GET /f/*');
  });

  test('attack: another spelling of a cheap route does not lend its price to a dearer neighbour', () => {
    const snapshot = snapshotOf(
      route('GET /r/cheap', { amount: '0.01' }),
      route('GET /r/:id', { amount: '5' }),
      route('* /r/:id', { amount: '9' }),
    );
    expect(wins(snapshot, '/r/cheap')).toBe('GET /r/cheap');
    // The method is no matter of spelling: of one pattern the exact one stays.
    expect(wins(snapshot, '/r/Cheap')).toBe('GET /r/:id');
  });

  test('attack: a paused route does not hide a price behind a suffix, except where it is spelled letter by letter', () => {
    const snapshot = snapshotOf(
      route('GET /d/*', PAUSED),
      route('GET /d/secret'),
      route('GET /d/secret.csv', PAUSED),
      route('GET /e/:id', PAUSED),
      route('GET /e/secret'),
    );
    expect(wins(snapshot, '/d/secret.json')).toBe('GET /d/secret');
    expect(wins(snapshot, '/e/secret.json')).toBe('GET /e/secret');
    expect(wins(snapshot, '/d/secret.csv')).toBe('GET /d/secret.csv');
    expect(wins(snapshot, '/d/other.json')).toBe('GET /d/*');
  });

  test.each(['unknown', 'rails', 'spring', 'next'] as const)(
    'attack: under %s a suffix does not buy a dear route at the price of what covers the whole',
    (name) => {
      const snapshot = compileSnapshot(
        {
          registryId: 'r',
          revision: 1,
          routes: [route('GET /v1/*', { amount: '0.01' }), route('GET /v1/export', { amount: '1.00' })],
        },
        { ...PATHS, folding: profileFolding(name) },
      );
      expect(wins(snapshot, '/v1/export.json')).toBe('GET /v1/export');
      expect(wins(snapshot, '/v1/other.json')).toBe('GET /v1/*');
    },
  );

  test('behaviour: a path with another name costs the dearer of the two; a route that covers both keeps its rank', () => {
    const snapshot = snapshotOf(
      route('GET /x/:id', { amount: '0.01' }),
      route('GET /x/*', { amount: '5' }),
      route('GET /x/a', { amount: '7' }),
    );
    expect(wins(snapshot, '/x/a.json')).toBe('GET /x/a');
    expect(wins(snapshot, '/x/b.json')).toBe('GET /x/:id');
    expect(wins(snapshot, '/x/B')).toBe('GET /x/:id');
  });
});
