// Attacks on sessions of the desk, each told by what it would gain. A registry over real HTTP, its real store, and a clock that
// the test moves. Requests are sent as a browser or a thief would send them.
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { API } from '../../../src/registry/api.ts';
import { makeDeskLink } from '../../../src/registry/desk/desk-links.ts';
import type { DeskSettings } from '../../../src/registry/desk/desk-settings.ts';
import { createRandom } from '../../../src/host/clock.ts';
import { SignJWT } from 'jose';
import { withoutDeskCookies } from '../../../src/gateway/header-rules.ts';
import { LIST, SDK_KEY, SECRET, SETTINGS, startRegistry, token, type Ask, type Kit, type Reply } from '../kit.ts';

const DESK: DeskSettings = {
  ...{ publicUrl: undefined, signIn: ['link', 'token'], oidc: undefined, testnet: true },
  session: { idleMs: 8 * 3_600_000, maxMs: 24 * 3_600_000 },
};
type Session = { cookie: string; key: string };

let kit: Kit;
let own: string;
beforeEach(async () => {
  // Held: a machine under load takes more than the second that lies between a token's end and the look before it.
  const now = Date.now();
  kit = await startRegistry({ now: () => now, settings: { desk: DESK } });
  own = `127.0.0.1:${kit.port}`;
});
afterEach(() => kit.close());

async function linkCode(role: 'admin' | 'viewer' = 'admin'): Promise<string> {
  const deps = { store: kit.store.desk, random: createRandom(), now: kit.clock.now };
  const link = await makeDeskLink(deps, `http://${own}`, { subject: 'ann', role });
  return link === 'full' ? '' : new URL(link.url).hash.slice('#code='.length);
}
const signIn = (body: unknown, headers: Record<string, string> = {}): Promise<Reply> =>
  kit.ask('POST', '/desk/session', { body, headers: { Host: own, Origin: `http://${own}`, ...headers } });
function sessionIn(reply: Reply): Session {
  expect(reply.status).toBe(200);
  const { key } = JSON.parse(reply.body.toString()) as { key: string };
  return { cookie: String(reply.headers['set-cookie']).split(';', 1)[0] ?? '', key };
}
const signedIn = async (role?: 'admin' | 'viewer'): Promise<Session> =>
  sessionIn(await signIn({ code: await linkCode(role) }));
const ask = (method: string, path: string, { cookie, key }: Partial<Session>, more: Ask = {}): Promise<Reply> =>
  kit.ask(method, path, {
    ...more,
    headers: {
      ...{ Host: own, 'Sec-Fetch-Site': 'same-origin' },
      ...(cookie === undefined ? {} : { Cookie: cookie }),
      ...(key === undefined ? {} : { 'Tollgate-Desk': key }),
      ...more.headers,
    },
  });
const codeOf = ({ status, json }: Reply): unknown[] => [status, json?.code];

describe('what is meant to work', () => {
  test('behaviour: a link opens a session that acts on /v1, says who it is, and ends everywhere with DELETE', async () => {
    const opened = await signIn({ code: await linkCode() });
    expect(String(opened.headers['set-cookie'])).toMatch(
      /^tollgate_desk=[\w-]{43}; Path=\/; HttpOnly; SameSite=Strict$/,
    );
    const session = sessionIn(opened);
    expect(await ask('GET', '/desk/session', session)).toMatchObject({
      status: 200,
      json: { subject: 'ann', role: 'admin', via: 'link', version: '1.2.3', testnet: true },
    });
    const made = await ask('POST', LIST, session, { body: { route_pattern: '/a', method: 'GET', amount: '1' } });
    expect(made.status).toBe(201);
    expect((await ask('DELETE', '/desk/session', session)).status).toBe(204);
    const over = await ask('GET', '/desk/session', session);
    expect([over.status, JSON.parse(over.body.toString()).sign_in]).toEqual([401, ['link', 'token']]);
    expect((await ask('GET', LIST, session)).status).toBe(401);
  });

  test('behaviour: a token opens a session that ends with it; idle and longest time end one too', async () => {
    const byToken = sessionIn(await signIn({ token: await token({ now: kit.clock.now(), ttlSeconds: 600 }) }));
    kit.clock.advance(599_000);
    expect((await ask('GET', LIST, byToken)).status).toBe(200);
    kit.clock.advance(2_000);
    expect((await ask('GET', LIST, byToken)).status).toBe(401);
    const idle = await signedIn();
    kit.clock.advance(DESK.session.idleMs + 1);
    expect((await ask('GET', LIST, idle)).status).toBe(401);
  });
});

describe('codes and tokens', () => {
  test('attack: a link is replayed, one that is over is opened, and a code is made up: 401 in the same words', async () => {
    const code = await linkCode();
    await signedIn();
    expect((await signIn({ code })).status).toBe(200);
    const old = await linkCode();
    kit.clock.advance(5 * 60_000);
    const [replayed, expired, madeUp, odd] = [
      await signIn({ code }),
      await signIn({ code: old }),
      await signIn({ code: 'A'.repeat(43) }),
      await signIn({ token: 'x.y.z' }),
    ];
    for (const reply of [replayed, expired, madeUp, odd]) expect(reply.body).toEqual(replayed.body);
    expect(codeOf(replayed)).toEqual([401, 'credentials_invalid']);
  });

  test('attack: codes are guessed: the eleventh wrong one of a minute and address is 429, and so is a right one then', async () => {
    const right = await linkCode();
    for (let i = 0; i < 10; i++) expect((await signIn({ code: `${'B'.repeat(42)}${i}` })).status).toBe(401);
    const limited = await signIn({ code: right });
    expect(codeOf(limited)).toEqual([429, 'too_many_requests']);
    expect(Number(limited.headers['retry-after'])).toBeGreaterThan(0);
    kit.clock.advance(60_000);
    expect((await signIn({ code: right })).status).toBe(200);
  });

  test('attack: a token of another secret, and one whose role is no role, open nothing', async () => {
    const other = await token({ now: kit.clock.now(), secret: 'another secret of thirty-two bytes or more' });
    expect((await signIn({ token: other })).status).toBe(401);
    for (const role of ['admin', 'Viewer', '', ['viewer'], null, 1, true]) {
      const jwt = await new SignJWT({ tollgate_role: role })
        .setProtectedHeader({ alg: 'HS256' })
        .setIssuer('tollgate')
        .setAudience('dashboard')
        .setExpirationTime(Math.floor(kit.clock.now() / 1000) + 60)
        .sign(Buffer.from(SECRET));
      expect([role, (await kit.ask('GET', LIST, { auth: jwt })).status]).toEqual([role, 401]);
    }
  });

  test('attack: a body of more than 16 KiB is 413, a form is 415, and two credentials are 422', async () => {
    expect((await signIn({ code: 'a'.repeat(17_000) })).status).toBe(413);
    const form = { 'Content-Type': 'application/x-www-form-urlencoded' };
    expect((await kit.ask('POST', '/desk/session', { body: 'code=a', headers: { Host: own, ...form } })).status).toBe(
      415,
    );
    expect((await signIn({ code: 'a', token: 'b' })).status).toBe(422);
  });
});

describe('stolen halves', () => {
  test('attack: the cookie alone, the key alone, and halves of two sessions open nothing', async () => {
    const [a, b] = [await signedIn(), await signedIn()];
    for (const half of [
      { cookie: a.cookie },
      { key: a.key },
      { cookie: a.cookie, key: b.key },
      { cookie: 'tollgate_desk=x', key: a.key },
    ])
      expect((await ask('GET', LIST, half)).status).toBe(401);
  });

  test('attack: another port throws a cookie of the same name in: the own session goes on', async () => {
    const { cookie, key } = await signedIn();
    const tossed = `tollgate_desk=${'C'.repeat(43)}; ${cookie}`;
    expect((await ask('GET', LIST, { cookie: tossed, key })).status).toBe(200);
  });

  test('attack: a session of another registry is unknown here', async () => {
    const elsewhere = await startRegistry({ settings: { desk: DESK } });
    try {
      const session = await signedIn();
      const there = `127.0.0.1:${elsewhere.port}`;
      const headers = {
        Host: there,
        Cookie: session.cookie,
        'Tollgate-Desk': session.key,
        'Sec-Fetch-Site': 'same-origin',
      };
      expect((await elsewhere.ask('GET', LIST, { headers })).status).toBe(401);
    } finally {
      await elsewhere.close();
    }
  });

  test('attack: Authorization beside a session counts alone, and an SDK key makes no session of it', async () => {
    const session = await signedIn();
    expect((await ask('GET', LIST, session, { auth: 'wrong.token.here' })).status).toBe(401);
    expect((await ask('GET', '/desk/session', session, { auth: SDK_KEY })).status).toBe(401);
    expect((await ask('GET', '/v1/protected-routes/routes', session)).status).toBe(401);
  });
});

describe('other pages', () => {
  test('attack: a form, a fetch of another port and one of another site reach nothing, and nothing is done', async () => {
    const session = await signedIn();
    const body = { route_pattern: '/stolen', method: 'GET', amount: '1' };
    for (const headers of [
      { 'Sec-Fetch-Site': 'cross-site', Origin: 'https://evil.example' },
      { 'Sec-Fetch-Site': 'same-site', Origin: `http://127.0.0.1:1` },
      { 'Sec-Fetch-Site': 'none' },
      { 'Sec-Fetch-Site': 'same-origin', Origin: 'https://evil.example' },
      { 'Sec-Fetch-Site': 'same-origin', Origin: 'null' },
    ])
      expect(codeOf(await ask('POST', LIST, session, { body, headers }))).toEqual([403, 'origin_refused']);
    const silent = { Host: own, Cookie: session.cookie, 'Tollgate-Desk': session.key };
    expect(codeOf(await kit.ask('POST', LIST, { body, headers: silent }))).toEqual([403, 'origin_refused']);
    expect((await kit.ask('GET', LIST, { headers: silent })).json.data).toEqual([]);
    expect((await signIn({ code: await linkCode() }, { Origin: 'https://evil.example' })).status).toBe(403);
  });

  test('attack: DNS rebinding with a stolen session is 403 host_refused on /v1 too, and so is a target that names another host', async () => {
    const session = await signedIn();
    expect(codeOf(await ask('GET', LIST, session, { headers: { Host: `evil.example:${kit.port}` } }))).toEqual([
      403,
      'host_refused',
    ]);
    expect(codeOf(await ask('GET', `http://evil.example${LIST}`, session))).toEqual([403, 'host_refused']);
  });

  test('attack: CORS never allows the cookie, whatever origin asks', async () => {
    const reply = await kit.ask('OPTIONS', LIST, {
      headers: { Origin: 'https://dash.example.com', 'Access-Control-Request-Method': 'GET' },
    });
    expect(reply.headers).not.toHaveProperty('access-control-allow-credentials');
    expect(String(reply.headers['access-control-allow-headers']).toLowerCase()).not.toContain('tollgate-desk');
  });
});

describe('roles and ends', () => {
  test('attack: a viewer writes: every row of the table that changes something is 403, by session and by token', async () => {
    const session = await signedIn('viewer');
    const jwt = await new SignJWT({ tollgate_role: 'viewer' })
      .setProtectedHeader({ alg: 'HS256' })
      .setIssuer('tollgate')
      .setAudience('dashboard')
      .setExpirationTime(Math.floor(kit.clock.now() / 1000) + 60)
      .sign(Buffer.from(SECRET));
    const rows = API.filter(({ auth, method }) => auth.kind === 'jwt' && method !== 'GET');
    expect(rows.length).toBeGreaterThan(3);
    for (const { method, path, auth } of rows) {
      const at = path.replaceAll(/\{\w+\}/g, '00000000-0000-4000-8000-000000000000');
      const answers = [
        await kit.ask(method, at, { auth: jwt, body: {} }),
        await ask(method, at, session, { body: {} }),
      ];
      for (const reply of answers)
        expect([path, auth.kind, ...codeOf(reply)]).toEqual([path, 'jwt', 403, 'scope_insufficient']);
    }
    expect((await ask('GET', LIST, session)).status).toBe(200);
  });

  test('attack: the 1,001st session is 429; a reload that takes a way away ends its sessions with the next request', async () => {
    const holding = { createdAfter: 0, seenAfter: 0, now: kit.clock.now() };
    const first = await signedIn();
    for (let i = 1; i < 1000; i++) {
      const digest = Buffer.alloc(32);
      digest.writeUInt32BE(i);
      const at = kit.clock.now();
      const who = { subject: 's', role: 'admin', via: 'link', members: [], notAfter: null } as const;
      await kit.store.desk.addSession(
        { id: `s${i}`, digest, keyDigest: digest, createdAt: at, seenAt: at, ...who },
        2_000,
        holding,
      );
    }
    expect(codeOf(await signIn({ code: await linkCode() }))).toEqual([429, 'too_many_requests']);
    kit.registry.reconfigure({ ...SETTINGS, desk: { ...DESK, signIn: ['token'] } });
    expect((await ask('GET', LIST, first)).status).toBe(401);
  });

  test('attack: somebody is taken out of the provider’s list: the session ends; a viewer of a wider list stays', async () => {
    const oidc = {
      issuer: 'https://i.example',
      clientId: 'c',
      clientSecret: undefined,
      scopes: ['openid'],
      claim: 'email',
    };
    const desk = (admins: string[], viewers: string[]): DeskSettings => ({
      ...DESK,
      signIn: ['oidc'],
      oidc: { ...oidc, admins, viewers },
    });
    kit.registry.reconfigure({ ...SETTINGS, desk: desk(['a@x.example'], ['*@x.example']) });
    const { makeCode, digestOf } = await import('../../../src/registry/desk/secret-codes.ts');
    const make = async (id: string, role: 'admin' | 'viewer', member: string): Promise<Session> => {
      const [cookie, key, at] = [makeCode(createRandom()), makeCode(createRandom()), kit.clock.now()];
      const kept = {
        id,
        digest: digestOf(cookie),
        keyDigest: digestOf(key),
        createdAt: at,
        seenAt: at,
        notAfter: null,
      };
      const holding = { createdAfter: 0, seenAfter: 0, now: at };
      await kit.store.desk.addSession({ ...kept, subject: member, role, via: 'oidc', members: [member] }, 10, holding);
      return { cookie: `tollgate_desk=${cookie}`, key };
    };
    const [admin, viewer] = [await make('1', 'admin', 'a@x.example'), await make('2', 'viewer', 'b@x.example')];
    const forged = await make('3', 'viewer', 'b@evil@x.example');
    const statuses = async (): Promise<number[]> =>
      Promise.all([admin, viewer, forged].map(async (each) => (await ask('GET', LIST, each)).status));
    expect(await statuses()).toEqual([200, 200, 401]);
    kit.registry.reconfigure({ ...SETTINGS, desk: desk([], ['*@x.example']) });
    expect(await statuses()).toEqual([401, 200, 401]);
  });
});

const CSV = '/v1/billing/charges.csv?from=2026-01-01T00:00:00Z&to=2026-01-02T00:00:00Z';

describe('downloads', () => {
  test('attack: a download’s link is good once, with the cookie of its session alone, for a minute, from this origin', async () => {
    const [session, other] = [await signedIn(), await signedIn()];
    const allow = async (): Promise<string> => {
      const reply = await ask('POST', '/desk/downloads', session, { body: { path: CSV } });
      expect(reply.status).toBe(201);
      return (JSON.parse(reply.body.toString()) as { url: string }).url;
    };
    const url = await allow();
    for (const thief of [{}, { cookie: other.cookie }, { key: session.key }])
      expect((await ask('GET', url, thief)).status).toBe(401);
    expect((await ask('GET', url, session, { headers: { 'Sec-Fetch-Site': 'cross-site' } })).status).toBe(403);
    const got = await ask('GET', url, { cookie: session.cookie });
    expect([got.status, got.headers['content-disposition'], got.headers['x-frame-options']]).toEqual([
      ...[200, expect.stringContaining('attachment'), 'DENY'],
    ]);
    expect((await ask('GET', url, { cookie: session.cookie })).status).toBe(401);
    const late = await allow();
    kit.clock.advance(60_001);
    expect((await ask('GET', late, { cookie: session.cookie })).status).toBe(401);
  });

  test('refuses: a download of anything but a file, so that a link without a header opens no other endpoint', async () => {
    const session = await signedIn();
    const others = [
      '/desk/session',
      'https://evil.example/v1/x',
      '/v1/../desk',
      '//evil',
      '/v1/a b',
      `${LIST}?limit=1`,
    ];
    for (const path of [...others, '/v1/api-keys', '/v1/protected-routes', '/v1/billing/charges.csv/../summary'])
      expect([path, (await ask('POST', '/desk/downloads', session, { body: { path } })).status]).toEqual([path, 422]);
  });
});

test('attack: no code, key, cookie or token stands in a log line', async () => {
  const code = await linkCode();
  const session = sessionIn(await signIn({ code }));
  await signIn({ code });
  await ask('GET', `/desk/?code=${code}`, session);
  await ask('DELETE', '/desk/session', session);
  const logs = kit.logs.join('\n');
  expect(logs).toContain('signed in to the desk');
  for (const secret of [code, session.key, session.cookie.split('=')[1] ?? '']) expect(logs).not.toContain(secret);
});

test('behaviour: a link is made over HTTP by a JWT of an admin, never by a session', async () => {
  const session = await signedIn();
  expect(codeOf(await ask('POST', '/v1/desk-links', session, { body: {} }))).toEqual([403, 'scope_insufficient']);
  const auth = await token({ now: kit.clock.now() });
  const made = await kit.ask('POST', '/v1/desk-links', {
    auth,
    body: { role: 'viewer', as: 'bo' },
    headers: { Host: own },
  });
  expect(made.status).toBe(201);
  const { url } = JSON.parse(made.body.toString()) as { url: string };
  expect(url).toMatch(new RegExp(`^http://${own}/desk/#code=[\\w-]{43}$`));
  const opened = await signIn({ code: url.split('#code=')[1] });
  expect(JSON.parse(opened.body.toString())).toMatchObject({ subject: 'bo', role: 'viewer' });
});

test('attack: the upstream never sees the desk’s cookies; the others stay byte for byte', () => {
  const value = 'V'.repeat(43);
  for (const [sent, kept] of [
    [`tollgate_desk=${value}`, ''],
    [`a=1; __Host-tollgate=${value}; b="x y"`, 'a=1; b="x y"'],
    [`tollgate_flow=${value};a=1`, 'a=1'],
    [`a=1;tollgate_desk=${value};  b=2`, 'a=1;  b=2'],
    ['tollgate=1; xtollgate_desk=2;;c', 'tollgate=1; xtollgate_desk=2;;c'],
  ] as const)
    expect(withoutDeskCookies(sent)).toBe(kept);
});
