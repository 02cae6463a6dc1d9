// Signing in to the desk through an independent OpenID provider (oidc-provider), by requests as a browser sends them: what
// opens a session, what the provider can get wrong at each step, and what a stranger can try with the two addresses.
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { SignJWT } from 'jose';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import type { DeskSettings, OidcSettings } from '../../../src/registry/desk/desk-settings.ts';
import { landingOf } from '../../../src/registry/desk/oidc/landing.ts';
import { keepSecret } from '../../support/canaries.ts';
import { CLIENT_SECRET, signInAt, startOpenId, visit, type OpenIdProvider, type Visit } from '../../support/openid.ts';
import { LIST, SETTINGS, startRegistry, type Kit } from '../kit.ts';

const ORIGIN = 'https://desk.example.com';
const CALLBACK = `${ORIGIN}/desk/oidc/callback`;
const HOST = { Host: 'desk.example.com' };

let kit: Kit;
let provider: OpenIdProvider;
/** Providers that take the client in another way, or tell about people elsewhere. */
let thin: OpenIdProvider;
let open: OpenIdProvider;
beforeAll(async () => {
  const redirectUris = [CALLBACK];
  provider = await startOpenId({ redirectUris });
  thin = await startOpenId({ redirectUris, thinTokens: true, clientAuth: 'client_secret_post', refusesBasic: true });
  open = await startOpenId({ redirectUris, clientAuth: 'none' });
});
afterAll(() => Promise.all([provider, thin, open].map((each) => each.close())));
beforeEach(async () => {
  kit = await startRegistry({ settings: { desk: deskAt(provider) } });
});
afterEach(async () => {
  Object.assign(provider.mood, { away: undefined, slow: undefined, forge: undefined, published: {} });
  await kit.close();
});

/** A registry with other options for one test. */
async function replaceKit(options: Parameters<typeof startRegistry>[0]): Promise<void> {
  await kit.close();
  kit = await startRegistry({ settings: { desk: deskAt(provider) }, ...options });
}
function deskAt({ issuer }: OpenIdProvider, rest: Partial<OidcSettings> = {}): DeskSettings {
  return {
    ...{ publicUrl: ORIGIN, signIn: ['link', 'oidc'], testnet: false },
    session: { idleMs: 8 * 3_600_000, maxMs: 24 * 3_600_000 },
    oidc: {
      ...{ issuer, clientId: 'tollgate', clientSecret: CLIENT_SECRET, scopes: ['openid', 'email'], claim: 'email' },
      ...{ admins: ['ann@example.com'], viewers: ['*@example.com'] },
      ...rest,
    },
  };
}
const reconfigure = (desk: DeskSettings): void => kit.registry.reconfigure({ ...SETTINGS, desk });
const here = (url: string, headers: Record<string, string> = {}): Promise<Visit> => {
  const { pathname, search } = new URL(url, ORIGIN);
  return visit(`http://127.0.0.1:${kit.port}${pathname}${search}`, { headers: { ...HOST, ...headers } });
};
type Begun = { readonly cookie: string; readonly authorizeUrl: string };
async function begin(to = '/desk/'): Promise<Begun> {
  const reply = await here(`/desk/oidc/start?to=${encodeURIComponent(to)}`);
  expect([reply.status, new URL(reply.location ?? '', ORIGIN).pathname]).toEqual([303, '/auth']);
  return { cookie: reply.setCookies[0]?.split(';', 1)[0] ?? '', authorizeUrl: reply.location ?? '' };
}
const back = (url: string, cookie: string): Promise<Visit> => here(url, cookie === '' ? {} : { Cookie: cookie });
async function signIn(login: string, { at = provider, to = '/desk/', refuses = false } = {}): Promise<Visit> {
  const { cookie, authorizeUrl } = await begin(to);
  return back(await signInAt(at, authorizeUrl, login, refuses), cookie);
}
const errorOf = ({ status, location }: Visit): unknown => (status === 303 ? location : status);
const failed = (word: string): string => `/desk/#error=${word}`;
type Session = { readonly cookie: string; readonly key: string };
function sessionOf({ location = '', setCookies }: Visit): Session {
  const key = new URLSearchParams(new URL(location, ORIGIN).hash.slice(1)).get('key') ?? '';
  expect(location).toContain('#key=');
  keepSecret('desk key', key);
  const cookie = setCookies.find((each) => each.startsWith('__Host-tollgate=')) ?? '';
  return { key, cookie: cookie.split(';', 1)[0] ?? '' };
}
const ask = async (method: string, at: string, { cookie, key }: Session, body?: unknown) => {
  const own = { ...HOST, 'Sec-Fetch-Site': 'same-origin', Cookie: cookie, 'Tollgate-Desk': key };
  return kit.ask(method, at, { headers: own, ...(body === undefined ? {} : { body }) });
};
const whoIs = async (reply: Visit): Promise<unknown> =>
  JSON.parse((await ask('GET', '/desk/session', sessionOf(reply))).body.toString());

describe('what is meant to work', () => {
  test('behaviour: a sign-in goes to the provider with PKCE, state and nonce, and comes back to where it began with a session', async () => {
    const started = await here('/desk/oidc/start?to=%2Fdesk%2Froutes%3Fq%3Da%2520b');
    const asked = new URL(started.location ?? '').searchParams;
    expect(Object.fromEntries(asked)).toEqual({
      ...{ response_type: 'code', client_id: 'tollgate', redirect_uri: CALLBACK, scope: 'openid email' },
      ...{ state: expect.stringMatching(/^[\w-]{43}$/), nonce: expect.stringMatching(/^[\w-]{43}$/) },
      ...{ code_challenge: expect.stringMatching(/^[\w-]{43}$/), code_challenge_method: 'S256' },
    });
    const [flow = '', ...others] = started.setCookies;
    expect(others).toEqual([]);
    expect(flow).toMatch(/^__Host-tollgate_flow=[\w-]{43}; Path=\/; HttpOnly; SameSite=Lax; Secure; Max-Age=600$/);
    const cookie = flow.split(';', 1)[0] ?? '';
    const reply = await back(await signInAt(provider, started.location ?? '', 'ann'), cookie);
    expect([reply.status, reply.location]).toEqual([
      303,
      expect.stringMatching(/^\/desk\/routes\?q=a%20b#key=[\w-]{43}$/),
    ]);
    expect(reply.setCookies).toEqual([
      '__Host-tollgate_flow=; Path=/; HttpOnly; SameSite=Lax; Secure; Max-Age=0',
      expect.stringMatching(/^__Host-tollgate=[\w-]{43}; Path=\/; HttpOnly; SameSite=Strict; Secure$/),
    ]);
    expect(await whoIs(reply)).toMatchObject({ subject: 'ann@example.com', role: 'admin', via: 'oidc' });
    const body = { route_pattern: '/a', method: 'GET', amount: '1' };
    expect((await ask('POST', LIST, sessionOf(reply), body)).status).toBe(201);
  });

  test('behaviour: a viewer of a whole domain looks and changes nothing', async () => {
    const reply = await signIn('bob');
    expect(await whoIs(reply)).toMatchObject({ subject: 'bob@example.com', role: 'viewer', via: 'oidc' });
    const denied = await ask('POST', LIST, sessionOf(reply), { route_pattern: '/a', method: 'GET', amount: '1' });
    expect([denied.status, denied.json.code]).toEqual([403, 'scope_insufficient']);
  });

  test('behaviour: claims that the ID token lacks come from the user-info endpoint, and a client proves itself as the provider wants it', async () => {
    reconfigure(deskAt(thin));
    for (let time = 0; time < 2; time++)
      expect(await whoIs(await signIn('ann', { at: thin }))).toMatchObject({
        subject: 'ann@example.com',
        role: 'admin',
      });
    const asked = thin.calls.filter((call) => /^(?:POST \/token|GET \/me)$/.test(call));
    // By header first, which this provider refuses, then by form; from then on by form at once.
    expect(asked).toEqual(['POST /token', 'POST /token', 'GET /me', 'POST /token', 'GET /me']);
    reconfigure(deskAt(open, { clientSecret: undefined }));
    expect(await whoIs(await signIn('bob', { at: open }))).toMatchObject({ role: 'viewer' });
  });

  test('behaviour: a claim that is a list lets in by any member, and the session is named by the verified address', async () => {
    const groups = { claim: 'groups', scopes: ['openid', 'email', 'groups'] };
    reconfigure(deskAt(provider, { ...groups, admins: ['ops'], viewers: ['staff'] }));
    expect(await whoIs(await signIn('ann'))).toMatchObject({ subject: 'ann@example.com', role: 'admin' });
    expect(await whoIs(await signIn('bob'))).toMatchObject({ subject: 'bob@example.com', role: 'viewer' });
    expect(errorOf(await signIn('mia'))).toBe(failed('not_allowed'));
    const holding = { createdAfter: 0, seenAfter: 0, now: kit.clock.now() };
    const kept = await kit.store.desk.listSessions(holding);
    expect(Object.fromEntries(kept.map(({ subject, members }) => [subject, members]))).toEqual({
      'ann@example.com': ['staff', 'ops'],
      'bob@example.com': ['staff'],
    });
    reconfigure(deskAt(provider, { claim: 'sub', admins: ['mia'], viewers: [] }));
    expect(await whoIs(await signIn('mia'))).toMatchObject({ subject: 'mia', role: 'admin' });
  });

  test('behaviour: a reload that takes somebody out of the lists ends the session with the next request', async () => {
    const [admin, viewer] = [sessionOf(await signIn('ann')), sessionOf(await signIn('bob'))];
    const statuses = async (): Promise<number[]> =>
      Promise.all([admin, viewer].map(async (each) => (await ask('GET', LIST, each)).status));
    expect(await statuses()).toEqual([200, 200]);
    reconfigure(deskAt(provider, { admins: [] }));
    expect(await statuses()).toEqual([401, 200]);
    reconfigure({ ...deskAt(provider), signIn: ['link'] });
    expect(await statuses()).toEqual([401, 401]);
    expect((await here('/desk/oidc/start')).status).toBe(404);
    expect((await here('/desk/oidc/callback?state=a&code=b')).status).toBe(404);
  });

  test('behaviour: a sign-in that one process began is finished by another one on the same store, once between them', async () => {
    const first = kit;
    const second = await startRegistry({ file: first.file, settings: { desk: deskAt(provider) } });
    onTestFinished(() => {
      kit = first;
      return second.close();
    });
    const { cookie, authorizeUrl } = await begin();
    const url = await signInAt(provider, authorizeUrl, 'ann');
    kit = second;
    const session = sessionOf(await back(url, cookie));
    kit = first;
    expect(errorOf(await back(url, cookie))).toBe(failed('flow_unknown'));
    expect((await ask('GET', LIST, session)).status).toBe(200);
  });

  test('behaviour: the discovery document is asked for once in ten minutes, and the keys with it', async () => {
    const fresh = await startOpenId({ redirectUris: [CALLBACK] });
    onTestFinished(fresh.close);
    reconfigure(deskAt(fresh));
    for (const login of ['ann', 'bob']) expect((await signIn(login, { at: fresh })).location).toContain('#key=');
    reconfigure(deskAt(fresh, { admins: [] }));
    await begin();
    const count = (call: string): number => fresh.calls.filter((each) => each === call).length;
    expect([count('GET /.well-known/openid-configuration'), count('GET /jwks')]).toEqual([1, 1]);
    kit.clock.advance(10 * 60_000);
    await begin();
    expect(count('GET /.well-known/openid-configuration')).toBe(2);
  });
});

describe('a provider that fails', () => {
  test('behaviour: a provider that is away when a sign-in begins is told as such, keeps no flow, and is asked again a second later', async () => {
    provider.mood.away = '/.well-known';
    const away = await here('/desk/oidc/start?to=/desk/keys');
    expect([errorOf(away), away.setCookies]).toEqual([failed('provider_away'), []]);
    provider.mood.away = undefined;
    kit.clock.advance(1_000);
    await begin();
  });

  test.each([
    ['whose document names another issuer', { issuer: 'http://localhost:1' }],
    ['whose token endpoint is plain http elsewhere', { token_endpoint: 'http://id.example/token' }],
    ['whose authorization endpoint is a script', { authorization_endpoint: 'javascript:alert(1)' }],
    ['that publishes no keys', { jwks_uri: undefined }],
  ])('refuses: a provider %s', async (_, published) => {
    provider.mood.published = published;
    expect(errorOf(await here('/desk/oidc/start'))).toBe(failed('provider_away'));
    expect(kit.logs.join('')).toContain('discovery document cannot be used');
  });

  test.each([['/token'], ['/jwks']])(
    'behaviour: a provider that cuts the connection at %s is told as away',
    async (at) => {
      const { cookie, authorizeUrl } = await begin();
      const url = await signInAt(provider, authorizeUrl, 'ann');
      provider.mood.away = at;
      expect(errorOf(await back(url, cookie))).toBe(failed('provider_away'));
      expect(kit.logs.join('')).toContain('a sign-in to the desk could not be checked');
    },
  );

  test('behaviour: a provider that takes longer than its time over a token is told as away', async () => {
    await replaceKit({ providerCallMs: 1_000 });
    await expect.poll(async () => (await here('/desk/oidc/start')).location).toContain('/auth?');
    const { cookie, authorizeUrl } = await begin();
    const url = await signInAt(provider, authorizeUrl, 'ann');
    provider.mood.slow = '/token';
    expect(errorOf(await back(url, cookie))).toBe(failed('provider_away'));
  });

  test('behaviour: a provider that says it cannot now is away, one that says no has refused', async () => {
    for (const [error, word] of [
      ['temporarily_unavailable', 'provider_away'],
      ['server_error', 'provider_away'],
      ['access_denied', 'refused'],
    ] as const) {
      const { cookie, authorizeUrl } = await begin();
      const state = new URL(authorizeUrl).searchParams.get('state') ?? '';
      const answer = new URLSearchParams({ error, state, iss: provider.issuer });
      expect(errorOf(await back(`/desk/oidc/callback?${answer}`, cookie))).toBe(failed(word));
    }
    expect(errorOf(await signIn('ann', { refuses: true }))).toBe(failed('refused'));
  });

  const hmac = (claims: object): Promise<string> =>
    new SignJWT({ ...claims }).setProtectedHeader({ alg: 'HS256' }).sign(Buffer.from(CLIENT_SECRET));
  const unsigned = (claims: object): string =>
    [{ alg: 'none' }, claims].map((part) => Buffer.from(JSON.stringify(part)).toString('base64url')).join('.') + '.';
  type Forge = NonNullable<OpenIdProvider['mood']['forge']>;
  const FORGERIES: readonly (readonly [string, Forge])[] = [
    ['another nonce', (claims, sign) => sign({ ...claims, nonce: 'another' })],
    ['no nonce', ({ nonce: _nonce, ...claims }, sign) => sign(claims)],
    ['another issuer', (claims, sign) => sign({ ...claims, iss: 'http://localhost:1' })],
    ['another audience', (claims, sign) => sign({ ...claims, aud: 'somebody' })],
    ['a second audience and no authorized party', (claims, sign) => sign({ ...claims, aud: ['tollgate', 'other'] })],
    ['an end in the past', (claims, sign) => sign({ ...claims, exp: Math.floor(Date.now() / 1000) - 60 })],
    ['no end', ({ exp: _exp, ...claims }, sign) => sign(claims)],
    ['a signature by the client’s secret', (claims) => hmac(claims)],
    ['no signature', async (claims) => unsigned(claims)],
    ['a signature that is cut off', async (claims, sign) => (await sign(claims)).replace(/[^.]*$/, '')],
    [
      'somebody else in it, under the old signature',
      async (claims, sign) => {
        const [head, , signature] = (await sign(claims)).split('.');
        const changed = Buffer.from(JSON.stringify({ ...claims, email: 'ann@example.com' })).toString('base64url');
        return [head, changed, signature].join('.');
      },
    ],
    ['nothing that is a token', async () => 'no token'],
  ];
  test('attack: an ID token with another nonce, issuer, audience, time, algorithm or signature opens nothing', async () => {
    for (const [what, forge] of FORGERIES) {
      provider.mood.forge = forge;
      // The last one would be an admin's.
      const reply = await signIn(what.startsWith('somebody') ? 'bob' : 'ann');
      expect([what, errorOf(reply)]).toEqual([what, failed('refused')]);
      expect([what, reply.setCookies.filter((each) => !each.includes('_flow'))]).toEqual([what, []]);
    }
    provider.mood.published = {
      id_token_signing_alg_values_supported: ['HS256', 'none', 'RS256'],
      issuer: provider.issuer,
    };
    kit.clock.advance(10 * 60_000);
    for (const forge of [hmac, async (claims: object) => unsigned(claims)]) {
      provider.mood.forge = forge;
      expect(errorOf(await signIn('ann'))).toBe(failed('refused'));
    }
    provider.mood.forge = (claims, sign) => sign(claims);
    expect((await signIn('ann')).location).toContain('#key=');
  });
});

describe('people who may not', () => {
  test('attack: somebody on no list, an address that is not verified, and one whose word for it is text, get no session', async () => {
    for (const login of ['mia', 'eve', 'sam', 'nobody'])
      expect([login, errorOf(await signIn(login))]).toEqual([login, failed('not_allowed')]);
    reconfigure(deskAt(thin));
    for (const login of ['eve', 'sam'])
      expect([login, errorOf(await signIn(login, { at: thin }))]).toEqual([login, failed('not_allowed')]);
  });

  test('behaviour: when a thousand sessions are open the next person is told so', async () => {
    for (let i = 0; i < 1000; i++) {
      const digest = Buffer.alloc(32);
      digest.writeUInt32BE(i);
      const at = kit.clock.now();
      const who = { subject: 's', role: 'admin', via: 'link', members: [], notAfter: null } as const;
      const holding = { createdAfter: 0, seenAfter: 0, now: at };
      await kit.store.desk.addSession(
        { id: `s${i}`, digest, keyDigest: digest, createdAt: at, seenAt: at, ...who },
        2_000,
        holding,
      );
    }
    expect(errorOf(await signIn('ann'))).toBe(failed('too_many'));
  });
});

describe('strangers', () => {
  test('attack: a sign-in is finished twice, in another browser, with the state of another one, or too late', async () => {
    const first = await begin();
    const url = await signInAt(provider, first.authorizeUrl, 'ann');
    expect(errorOf(await back(url, ''))).toBe(failed('flow_unknown'));
    const second = await begin();
    expect(errorOf(await back(url, second.cookie))).toBe(failed('flow_unknown'));
    const [name = ''] = first.cookie.split('=');
    expect(errorOf(await back(url, `${name}=${'A'.repeat(43)}`))).toBe(failed('flow_unknown'));
    // None of these has used it up.
    expect((await back(url, first.cookie)).location).toContain('#key=');
    expect(errorOf(await back(url, first.cookie))).toBe(failed('flow_unknown'));
    const late = await signInAt(provider, second.authorizeUrl, 'ann');
    kit.clock.advance(10 * 60_000);
    expect(errorOf(await back(late, second.cookie))).toBe(failed('flow_unknown'));
  });

  test('attack: a code that was redeemed before is brought into a sign-in of somebody else', async () => {
    const { cookie, authorizeUrl } = await begin();
    const url = new URL(await signInAt(provider, authorizeUrl, 'ann'));
    expect((await back(url.href, cookie)).location).toContain('#key=');
    const other = await begin();
    url.searchParams.set('state', new URL(other.authorizeUrl).searchParams.get('state') ?? '');
    expect(errorOf(await back(url.href, other.cookie))).toBe(failed('refused'));
    // A fresh code of another sign-in too: its challenge is of another verifier.
    const [mine, theirs] = [await begin(), await begin()];
    const stolen = new URL(await signInAt(provider, theirs.authorizeUrl, 'ann'));
    stolen.searchParams.set('state', new URL(mine.authorizeUrl).searchParams.get('state') ?? '');
    kit.logs.length = 0;
    expect(errorOf(await back(stolen.href, mine.cookie))).toBe(failed('refused'));
    // The provider itself says no, before any nonce is looked at.
    expect(kit.logs.join('')).toContain('the provider answered invalid_grant');
  });

  test('attack: an answer that names another issuer, or none where the provider says it names itself, is refused (mix-up)', async () => {
    for (const iss of ['http://localhost:1', undefined]) {
      const { cookie, authorizeUrl } = await begin();
      const url = new URL(await signInAt(provider, authorizeUrl, 'ann'));
      if (iss === undefined) url.searchParams.delete('iss');
      else url.searchParams.set('iss', iss);
      expect(errorOf(await back(url.href, cookie))).toBe(failed('refused'));
    }
  });

  test('attack: a reload to another provider in the middle of a sign-in: what was begun for the first is worth nothing', async () => {
    const { cookie, authorizeUrl } = await begin();
    const url = await signInAt(provider, authorizeUrl, 'ann');
    reconfigure(deskAt(open, { clientSecret: undefined }));
    expect(errorOf(await back(url, cookie))).toBe(failed('flow_unknown'));
  });

  test('attack: an address to return to that is none of the desk’s views leads to its first view', async () => {
    for (const to of [
      ...['https://evil.example', '//evil.example', '/\\evil.example', '/desk/../evil', '/desk//evil.example'],
      ...['/desk/..', '/desk/%2e%2e/evil', '/desk/routes/../../evil', '/desk/routes/%2e%2e', '/desk/oidc/start'],
      ...['/desk/session', '/desk/assets/a.js', '/evil', 'desk/', '/desk', '/desk/routes#key=a', '/desk/\t/evil'],
      ...['/desk/routes?a\r\nSet-Cookie: b=c', '/desk/routes?a b', '/desk/@evil.example', '/desk/routes\\..', ''],
      ...['javascript:alert(1)', '/desk/keys/', `/desk/routes?${'a'.repeat(3_000)}`, '/desk/downloads/x'],
    ])
      expect([to, landingOf(to)]).toEqual([to, '/desk/']);
    for (const to of ['/desk/', '/desk/routes', '/desk/routes?q=%2Fa&status=paused', '/desk/charges/chg_a-B.~%20'])
      expect(landingOf(to)).toBe(to);
    expect((await signIn('ann', { to: 'https://evil.example/desk/' })).location).toMatch(/^\/desk\/#key=/);
  });

  test('attack: another site begins a sign-in, or a page calls the addresses or frames them', async () => {
    const refused = async (url: string, headers: Record<string, string>): Promise<unknown> => {
      const reply = await here(url, headers);
      return [reply.status, JSON.parse(reply.body).code];
    };
    const visited = { 'Sec-Fetch-Mode': 'navigate', 'Sec-Fetch-Dest': 'document' };
    for (const site of ['cross-site', 'same-site'])
      expect(await refused('/desk/oidc/start', { ...visited, 'Sec-Fetch-Site': site })).toEqual([
        403,
        'origin_refused',
      ]);
    for (const at of ['/desk/oidc/start', '/desk/oidc/callback?state=a&code=b'])
      for (const how of [
        { 'Sec-Fetch-Site': 'same-origin', 'Sec-Fetch-Mode': 'cors', 'Sec-Fetch-Dest': 'empty' },
        { 'Sec-Fetch-Site': 'same-site', 'Sec-Fetch-Mode': 'no-cors', 'Sec-Fetch-Dest': 'image' },
        { 'Sec-Fetch-Site': 'cross-site', 'Sec-Fetch-Mode': 'navigate', 'Sec-Fetch-Dest': 'iframe' },
      ])
        expect(await refused(at, how)).toEqual([403, 'origin_refused']);
    for (const site of ['same-origin', 'none'])
      expect((await here('/desk/oidc/start', { ...visited, 'Sec-Fetch-Site': site })).status).toBe(303);
    const { cookie, authorizeUrl } = await begin();
    const url = await signInAt(provider, authorizeUrl, 'ann');
    const reply = await here(url, { ...visited, 'Sec-Fetch-Site': 'cross-site', Cookie: cookie });
    expect(reply.location).toContain('#key=');
    expect(await refused('/desk/oidc/start', { Host: 'evil.example' })).toEqual([403, 'host_refused']);
  });

  test('attack: sign-ins are begun without end: the 121st step of a minute and address is told to wait', async () => {
    const start = Date.now();
    await replaceKit({ now: () => start });
    for (let i = 0; i < 60; i++) {
      await begin();
      expect(errorOf(await here('/desk/oidc/callback?state=a&code=b'))).toBe(failed('flow_unknown'));
    }
    expect(errorOf(await here('/desk/oidc/start'))).toBe(failed('too_many'));
    expect(errorOf(await here('/desk/oidc/callback?state=a&code=b'))).toBe(failed('too_many'));
    kit.clock.advance(1_000);
    await begin();
  });

  test('attack: the store and the log are read: neither holds a token of the provider, a code, a state, a verifier or a cookie', async () => {
    const { cookie, authorizeUrl } = await begin();
    const asked = new URL(authorizeUrl).searchParams;
    const url = new URL(await signInAt(provider, authorizeUrl, 'ann'));
    const files = (): string =>
      readdirSync(kit.folder)
        .map((name) => readFileSync(path.join(kit.folder, name), 'latin1'))
        .join('');
    const middle = files();
    const before = provider.tokens.length;
    const reply = await back(url.href, cookie);
    const { key, cookie: session } = sessionOf(reply);
    const secrets = [
      ...provider.tokens.slice(before),
      ...[cookie, session].map((pair) => pair.split('=')[1] ?? ''),
      ...['state', 'nonce', 'code_challenge'].map((name) => asked.get(name) ?? ''),
      ...[url.searchParams.get('code') ?? '', key, CLIENT_SECRET],
    ];
    expect(secrets.length).toBe(10);
    const seen = middle + files() + kit.logs.join('');
    expect(seen).toContain('ann@example.com');
    for (const secret of secrets) {
      expect(secret.length).toBeGreaterThan(20);
      expect(seen).not.toContain(secret);
    }
  });
});
