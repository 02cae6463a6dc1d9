// Who may do what: every endpoint of the table with every kind of credential, sessions of the desk and roles included, on the
// registry and through a sidecar, there and while the registry is away. The table makes the tests, so that no endpoint can be left out; the list of who may,
// written by hand, makes that a new endpoint is decided about by somebody.
import { createServer } from 'node:http';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { API } from '../../src/registry/api.ts';
import { createKeyCheck } from '../../src/registry/auth/api-keys.ts';
import { createJwtVerifier } from '../../src/registry/auth/dashboard-tokens.ts';
import { createAuthenticator, type Auth } from '../../src/registry/auth/credentials.ts';
import { emptyResponse, endpoint } from '../../src/registry/http/endpoint.ts';
import { createRouter } from '../../src/registry/http/router.ts';
import { nothing } from '../../src/registry/http/schemas.ts';
import { SignJWT } from 'jose';
import { startRelayStage, type RelayStage } from '../gateway/sync/relay/relay-stage.ts';
import {
  FEED,
  LEDGER_KEY,
  LIST,
  MATCH,
  REGISTER,
  SDK_KEY,
  SECRET,
  send,
  SETTINGS,
  startRegistry,
  token,
  type Ask,
  type Kit,
} from './kit.ts';
import { DESK, signIn } from './desk/signed-in.ts';

/** `dashboard`: a JWT or a session, of a viewer to read alone. `token`: the JWT of an admin. `session`: a session of either. */
type Who = 'dashboard' | 'token' | 'session' | 'sdk' | 'ledger' | 'anyone';

/** Interface section 4, and what is ours. An endpoint that is added stands here too, or this is red. */
const WHO: Readonly<Record<string, Who>> = {
  'GET /v1/billing/protected-routes': 'dashboard',
  'POST /v1/billing/protected-routes': 'dashboard',
  'GET /v1/billing/protected-routes/{id}': 'dashboard',
  'PATCH /v1/billing/protected-routes/{id}': 'dashboard',
  'DELETE /v1/billing/protected-routes/{id}': 'dashboard',
  'GET /v1/billing/protected-routes/{id}/changes': 'dashboard',
  'GET /v1/protected-routes/routes': 'sdk',
  'POST /v1/protected-routes/routes/register': 'sdk',
  'GET /v1/protected-routes/match': 'sdk',
  'GET /v1/protected-routes/events': 'sdk',
  'GET /v1/billing/charges': 'dashboard',
  'GET /v1/billing/charges.csv': 'dashboard',
  'GET /v1/billing/charges/events': 'dashboard',
  'GET /v1/billing/charges/{id}': 'dashboard',
  'GET /v1/billing/charges/{id}/history': 'dashboard',
  'POST /v1/billing/charges/{id}/refunds': 'dashboard',
  'GET /v1/billing/owed.csv': 'dashboard',
  'GET /v1/billing/why/{id}': 'dashboard',
  'GET /v1/billing/summary': 'dashboard',
  'GET /v1/billing/overview': 'dashboard',
  'GET /v1/billing/series': 'dashboard',
  'GET /v1/billing/top-routes': 'dashboard',
  'GET /v1/billing/plans': 'dashboard',
  'GET /v1/billing/passes': 'dashboard',
  'GET /v1/billing/passes/{id}': 'dashboard',
  'POST /v1/billing/passes/{id}/revoke': 'dashboard',
  'GET /v1/billing/pattern': 'dashboard',
  'GET /v1/billing/try': 'dashboard',
  'GET /v1/api-keys': 'dashboard',
  'POST /v1/api-keys': 'dashboard',
  'DELETE /v1/api-keys/{id}': 'dashboard',
  'GET /v1/audit': 'dashboard',
  'GET /v1/receivers': 'dashboard',
  'POST /v1/receivers/{id}/check': 'dashboard',
  'GET /v1/sidecars': 'dashboard',
  'GET /v1/billing/attention': 'dashboard',
  'GET /v1/webhooks': 'dashboard',
  'GET /v1/webhooks/{id}/deliveries': 'dashboard',
  'POST /v1/webhooks/{id}/test': 'dashboard',
  'POST /v1/webhooks/{id}/enable': 'dashboard',
  'POST /v1/webhooks/{id}/deliveries/{event_id}/retry': 'dashboard',
  'POST /v1/ledger/claims': 'ledger',
  'GET /v1/ledger/claims': 'ledger',
  'PATCH /v1/ledger/claims/{id}': 'ledger',
  'POST /v1/ledger/counters': 'ledger',
  'POST /v1/ledger/passes/{id}/draws': 'ledger',
  'GET /v1/ledger/passes': 'ledger',
  'GET /v1/ledger/revocations': 'ledger',
  'POST /v1/ledger/renewals': 'ledger',
  'POST /v1/ledger/totals': 'ledger',
  'GET /desk/session': 'session',
  'POST /desk/session': 'anyone',
  'DELETE /desk/session': 'session',
  'POST /desk/downloads': 'session',
  'GET /desk/oidc/start': 'anyone',
  'GET /desk/oidc/callback': 'anyone',
  'POST /v1/desk-links': 'token',
  'GET /v1/health': 'anyone',
  'GET /v1/openapi.json': 'anyone',
  'GET /openapi.json': 'anyone',
};

/** An event that nobody has. */
const EVENT = `evt_${'0'.repeat(32)}`;

/** What a credential is good for; `reading` is `dashboard` without a change. */
type Right = Exclude<Who, 'anyone'> | 'reading';
type Held = { readonly headers: () => Ask['headers'] | Promise<Ask['headers']>; readonly may: readonly Right[] };
const bearer = (value: string): NonNullable<Ask['headers']> => ({ Authorization: `Bearer ${value}` });
const keys = new Map<string, string>();
/** A stored key, made once. */
const made = async (name: string, scopes: readonly ('sdk' | 'ledger')[], revoked = false): Promise<string> => {
  const known = keys.get(name);
  if (known !== undefined) return known;
  const { key, stored } = await kit.createKey(name, scopes);
  if (revoked) await kit.revokeKey(stored.id);
  keys.set(name, key);
  return key;
};
const viewersJwt = async (): Promise<Ask['headers']> =>
  bearer(
    await new SignJWT({ tollgate_role: 'viewer' })
      .setProtectedHeader({ alg: 'HS256' })
      .setIssuer('tollgate')
      .setAudience('dashboard')
      .setExpirationTime(Math.floor(Date.now() / 1000) + 60)
      .sign(Buffer.from(SECRET)),
  );
const jwt = async (rest: Parameters<typeof token>[0] = {}): Promise<Ask['headers']> => bearer(await token(rest));

/** Every kind of credential, and what it is good for. */
const CREDENTIALS: Readonly<Record<string, Held>> = {
  none: { headers: () => ({}), may: [] },
  'a JWT': { headers: () => jwt(), may: ['dashboard', 'reading', 'token'] },
  'a JWT of a viewer': { headers: viewersJwt, may: ['reading'] },
  'an expired JWT': { headers: () => jwt({ now: Date.now() - 120_000 }), may: [] },
  'a JWT of another secret': { headers: () => jwt({ secret: 'b'.repeat(40) }), may: [] },
  'a JWT for another audience': { headers: () => jwt({ audience: 'sdk' }), may: [] },
  'a configured sdk key': { headers: () => bearer(SDK_KEY), may: ['sdk'] },
  'a configured ledger key': { headers: () => bearer(LEDGER_KEY), may: ['ledger'] },
  'a stored sdk key': { headers: async () => bearer(await made('s', ['sdk'])), may: ['sdk'] },
  'a stored ledger key': { headers: async () => bearer(await made('l', ['ledger'])), may: ['ledger'] },
  'a key with both scopes': { headers: async () => bearer(await made('b', ['sdk', 'ledger'])), may: ['sdk', 'ledger'] },
  'a revoked key with both scopes': { headers: async () => bearer(await made('r', ['sdk', 'ledger'], true)), may: [] },
  'an unknown key': { headers: () => bearer(`tg_0123456789abcdef_${'A'.repeat(43)}`), may: [] },
  'the id of a key without its secret': {
    headers: async () => bearer((await made('i', ['sdk'])).slice(0, 20)),
    may: [],
  },
  'junk of one letter': { headers: () => bearer('x'), may: [] },
  'junk of 8,000 letters': { headers: () => bearer('x'.repeat(8000)), may: [] },
  'two dots': { headers: () => bearer('..'), may: [] },
  'an sdk key by Basic': {
    headers: () => ({ Authorization: `Basic ${Buffer.from(`k:${SDK_KEY}`).toString('base64')}` }),
    may: [],
  },
  'an sdk key in other headers': {
    headers: () => ({ 'X-API-Key': SDK_KEY, Cookie: `key=${SDK_KEY}`, 'Proxy-Authorization': `Bearer ${SDK_KEY}` }),
    may: [],
  },
  'a JWT and an API key': {
    headers: async () => ({ Authorization: [`Bearer ${await token()}`, `Bearer ${SDK_KEY}`] }),
    may: [],
  },
  'an API key and a JWT in one header': {
    headers: async () => ({ Authorization: `Bearer ${SDK_KEY}, Bearer ${await token()}` }),
    may: [],
  },
  'a session of an admin': { headers: () => signIn(kit, 'admin'), may: ['dashboard', 'reading', 'session'] },
  'a session of a viewer': { headers: () => signIn(kit, 'viewer'), may: ['reading', 'session'] },
  'the cookie of a session without its key': {
    headers: async () => ({ ...(await signIn(kit)), 'Tollgate-Desk': '' }),
    may: [],
  },
  'the key of a session without its cookie': { headers: async () => ({ ...(await signIn(kit)), Cookie: '' }), may: [] },
};
const UNREAD = new Set([
  'none',
  'an sdk key by Basic',
  'an sdk key in other headers',
  'an API key and a JWT in one header',
  'the cookie of a session without its key',
  'the key of a session without its cookie',
]);
/** Credentials that a sidecar takes no part of. */
const SESSIONS = new Set(['a session of an admin', 'a session of a viewer']);

type Refusal = { readonly status: number; readonly code: string; readonly challenged: boolean };

/** What is said to those who may not. */
function refusal(credential: string, { may }: Held, { auth, place }: { auth: Auth; place: Place }): Refusal {
  if (credential === 'a JWT and an API key') return { status: 400, code: 'malformed', challenged: false };
  const missing = { status: 401, code: 'credentials_missing', challenged: true };
  if (UNREAD.has(credential) || auth.kind === 'session') return missing;
  const isKey = may.includes('sdk') || may.includes('ledger');
  if (auth.kind === 'api_key' && isKey) return { status: 403, code: 'scope_insufficient', challenged: true };
  if (SESSIONS.has(credential) && (auth.kind === 'api_key' || place.takesNoSession)) return missing;
  const isPerson = may.includes('reading');
  if (auth.kind === 'jwt' && isPerson) return { status: 403, code: 'scope_insufficient', challenged: false };
  return { status: 401, code: 'credentials_invalid', challenged: true };
}

let kit: Kit;
let relay: RelayStage;
let routeId = '';
beforeAll(async () => {
  kit = await startRegistry({ settings: { desk: DESK } });
  relay = await startRelayStage(`http://127.0.0.1:${kit.port}`);
  const body = { route_pattern: '/kept', method: 'GET', amount: '1' };
  routeId = (await kit.dashboard('POST', LIST, { body })).json.id;
});
afterAll(async () => {
  await relay.close();
  await kit.close();
});

const UNKNOWN = '00000000-0000-4000-8000-000000000000';
const ENDPOINTS = API.map(({ method, path, auth }) => ({ method, path, auth, name: `${method} ${path}` }));
type Place = {
  readonly name: string;
  readonly ask: Kit['ask'];
  readonly takesNoSession: boolean;
  readonly rows: typeof ENDPOINTS;
};
/** The desk is no part of the interface: nothing under its path is relayed. */
const RELAYED = ENDPOINTS.filter(({ path }) => !path.startsWith('/desk/'));
const PLACES: readonly Place[] = [
  { name: 'on the registry', ask: (...ask) => kit.ask(...ask), takesNoSession: false, rows: ENDPOINTS },
  { name: 'through a sidecar', ask: (...ask) => relay.ask(...ask), takesNoSession: true, rows: RELAYED },
];
/** What would change something if it were let through. */
const BODIES: Readonly<Record<string, unknown>> = {
  [`POST ${LIST}`]: { route_pattern: '/new', method: 'GET', amount: '1' },
  [`PATCH ${LIST}/{id}`]: { amount: '9' },
  [`POST ${REGISTER}`]: { route_pattern: '/new', method: 'GET', amount: '1' },
  'POST /v1/api-keys': { name: 'new', scopes: ['sdk'] },
};
/** A body that no endpoint takes. */
const WRONG = { nobody_knows: true };

test('behaviour: for each endpoint it was decided who may use it', () => {
  const undecided = ENDPOINTS.filter(({ name }) => !(name in WHO));
  expect(
    undecided.map(({ name }) => `${name} lacks a line in WHO of test/registry/scopes.test.ts: who may use it`),
  ).toEqual([]);
  const whoOf = (auth: Auth): Who => {
    if (auth.kind === 'none') return 'anyone';
    if (auth.kind === 'api_key') return auth.scope;
    return auth.kind === 'session' ? 'session' : auth.alone ? 'token' : 'dashboard';
  };
  expect(Object.fromEntries(ENDPOINTS.map(({ name, auth }) => [name, whoOf(auth)]))).toEqual(WHO);
  expect([ENDPOINTS.length, Object.keys(CREDENTIALS).length]).toEqual([Object.keys(WHO).length, 25]);
});

describe.each(PLACES)('$name', (place) => {
  const { ask } = place;
  describe.each(place.rows)('$name', ({ method, path, auth, name }) => {
    const who = WHO[name] ?? 'nobody';
    const body = method === 'POST' || method === 'PATCH' ? (BODIES[name] ?? {}) : undefined;
    // HEAD where there is one, so that an event stream ends.
    const open = (headers: Ask['headers'] = {}): ReturnType<Kit['ask']> =>
      ask(method === 'GET' ? 'HEAD' : method, path.replace('{event_id}', EVENT).replace('{id}', UNKNOWN), {
        headers,
        body: body === undefined ? undefined : WRONG,
      });
    const needed = who === 'dashboard' && method === 'GET' ? 'reading' : who;
    const letsIn = (credential: string, { may }: Held): boolean =>
      needed === 'anyone' ||
      (may.some((each) => each === needed) && !(SESSIONS.has(credential) && place.takesNoSession));

    test.each(Object.entries(CREDENTIALS))(
      'attack: an endpoint lets in by %s whom it is for and nobody else',
      async (credential, held) => {
        const headers = (await held.headers()) ?? {};
        if (letsIn(credential, held)) {
          // Let in, a wrong body and an unknown id are what is wrong with it.
          const expected = body !== undefined && !path.includes('{id}') ? 422 : (await open(await right(who))).status;
          expect((await open(headers)).status).toBe(expected);
          expect([200, 204, 400, 404, 422]).toContain(expected);
          return;
        }
        const { status, code, challenged } = refusal(credential, held, { auth, place });
        // Below /desk/downloads/ lie the links themselves, which are for GET.
        const ends = path === '/desk/downloads' ? [''] : ['', '/'];
        for (const target of ends.map((end) => path.replace('{event_id}', EVENT).replace('{id}', routeId) + end)) {
          const reply = await ask(method, target, { headers, body });
          expect([reply.status, reply.json.code]).toEqual([status, code]);
          const challenge = challenged ? expect.stringMatching(/^Bearer realm="(dashboard|sdk)"/) : undefined;
          expect(reply.headers['www-authenticate']).toEqual(challenge);
          if (method === 'GET') expect((await ask('HEAD', target, { headers })).status).toBe(status);
        }
      },
    );
  });

  test('attack: whoever was refused has changed nothing', async () => {
    const routes = (await kit.sdk('GET', FEED)).list;
    expect(routes.map(({ id, route_pattern, amount }) => [id, route_pattern, amount])).toEqual([
      [routeId, '/kept', '1'],
    ]);
    expect((await kit.dashboard('GET', '/v1/billing/charges')).json.data).toEqual([]);
    const madeByKit = new Set(['app', 'sidecar-ledger', 's', 'l', 'b', 'r', 'i']);
    const names = (await kit.dashboard('GET', '/v1/api-keys')).json.data.map(({ name }) => name ?? '');
    expect(names.filter((name) => !madeByKit.has(name))).toEqual([]);
  });
});

test('attack: nothing under the desk’s path is relayed by a sidecar, whoever asks', async () => {
  const headers = await signIn(kit);
  for (const { method, path } of ENDPOINTS.filter((row) => !RELAYED.includes(row)))
    for (const each of [{}, headers]) expect((await relay.ask(method, path, { headers: each })).status).toBe(404);
});

/** A credential that is certainly good enough. */
async function right(who: string): Promise<Ask['headers']> {
  if (who === 'anyone') return {};
  if (who === 'session') return signIn(kit);
  return who === 'dashboard' || who === 'token' ? jwt() : bearer(who === 'ledger' ? LEDGER_KEY : SDK_KEY);
}

describe('through a sidecar whose registry is away', () => {
  let alone: RelayStage;
  beforeAll(async () => {
    alone = await startRelayStage('http://127.0.0.1:1');
  });
  afterAll(() => alone.close());

  test.each(RELAYED)(
    'attack: $name is answered to the sidecar’s own key alone, and only what it knows',
    async (row) => {
      const stoodFor = [FEED, MATCH].includes(row.path);
      for (const away of [false, true]) {
        alone.away = away;
        for (const [credential, held] of Object.entries(CREDENTIALS)) {
          const reply = await alone.ask(
            row.method === 'GET' ? 'HEAD' : row.method,
            `${row.path.replace('{event_id}', EVENT).replace('{id}', UNKNOWN)}?path=/a&method=GET`,
            {
              headers: (await held.headers()) ?? {},
              body: row.method === 'GET' ? undefined : {},
            },
          );
          const own = stoodFor && credential === 'a configured sdk key';
          expect([credential, reply.status]).toEqual([credential, own ? 200 : 503]);
        }
      }
    },
  );
});

describe('an endpoint that nobody decided about', () => {
  const row = {
    method: 'GET',
    path: '/v1/new',
    id: 'new',
    summary: 'New',
    params: nothing,
    query: nothing,
    body: nothing,
    mediaTypes: [],
    responses: {},
    problems: [],
    handler: () => emptyResponse(204),
  } as const;

  test('refuses: an endpoint without an auth, or with one that does not exist, by not compiling', () => {
    // @ts-expect-error auth is missing
    endpoint(row);
    // @ts-expect-error no such kind
    endpoint({ ...row, auth: { kind: 'cookie' } });
    // @ts-expect-error an API key needs a scope
    endpoint({ ...row, auth: { kind: 'api_key' } });
    endpoint({ ...row, auth: { kind: 'none' } });
  });

  test('attack: an endpoint that nobody decided about lets nobody in if it is run all the same', async () => {
    const lines: string[] = [];
    const log = { debug: () => 0, info: () => 0, warn: () => 0, error: (msg: string) => void lines.push(msg) } as never;
    const clock = { now: () => Date.now(), monotonic: () => performance.now() };
    const verify = SETTINGS.jwt && createJwtVerifier(SETTINGS.jwt, clock);
    const { authenticate } = createAuthenticator(
      verify,
      createKeyCheck(SETTINGS.apiKeys, { find: async () => undefined }),
      Date.now,
    );
    const auths: unknown[] = [
      undefined,
      null,
      {},
      { kind: 'cookie' },
      { kind: 'api_key' },
      { kind: 'api_key', scope: 'all' },
    ];
    const rows = auths.map((auth, nth) => endpoint({ ...row, path: `/v1/new${nth}`, auth } as never));
    const server = createServer(createRouter(rows, {}, { authenticate, corsOrigins: () => [], bodyLimit: 10, log }));
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    try {
      const { port } = server.address() as { port: number };
      for (const [nth, auth] of auths.entries()) {
        for (const headers of [{}, bearer(SDK_KEY), await jwt()]) {
          const { status } = await send(port, 'GET', `/v1/new${nth}`, { headers: headers ?? {} });
          expect([auth, [401, 403, 500].includes(status)]).toEqual([auth, true]);
        }
      }
    } finally {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    }
    expect(lines.length).toBeGreaterThan(0);
  });
});
