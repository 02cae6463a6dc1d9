// Rules that hold for every endpoint, made from the table itself: a new row is tested by being there.
import { createHmac } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { API } from '../../src/registry/api.ts';
import type { Auth } from '../../src/registry/auth/credentials.ts';
import { EVENTS as ROUTE_EVENTS, LEDGER_KEY, SDK_KEY, startRegistry, token, type Kit } from './kit.ts';

/** A GET of these does not end by itself. */
const STREAMS: ReadonlySet<string> = new Set([ROUTE_EVENTS, '/v1/billing/charges/events']);

let kit: Kit;
beforeAll(async () => {
  kit = await startRegistry();
});
afterAll(() => kit.close());

const ID = '00000000-0000-4000-8000-000000000000';
/** The desk's own rows take no token: desk/attacks.test.ts. */
const ofTheDesk = (path: string): boolean => path.startsWith('/desk/');
const rows = API.filter(({ path }) => !ofTheDesk(path)).map(({ method, path, auth }) => ({
  method,
  path,
  auth,
  name: `${method} ${path}`,
  url: path.replace('{id}', ID),
}));
const guarded = rows.filter(({ auth }) => auth.kind !== 'none');

describe.each(guarded)('$name', ({ method, url, auth }) => {
  const realm = auth.kind === 'jwt' ? 'dashboard' : 'sdk';
  const body = method === 'POST' || method === 'PATCH' ? {} : undefined;
  const wrong: [string, () => string | Promise<string>][] = [
    ['a credential of the other kind', () => (auth.kind === 'jwt' ? SDK_KEY : token())],
    ['an unknown API key', () => 'tg_0123456789abcdef_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA'],
    ['a guess that is not even a key', () => 'x'],
    [
      'a revoked API key',
      async () => {
        const { key, stored } = await kit.createKey('revoked', ['sdk', 'ledger']);
        await kit.revokeKey(stored.id);
        return key;
      },
    ],
    ['an expired JWT', () => token({ now: Date.now() - 120_000 })],
    ['a JWT of another secret', () => token({ secret: 'b'.repeat(40) })],
    ['a JWT of another issuer', () => token({ issuer: 'evil' })],
    ['a JWT for another audience', () => token({ audience: 'sdk' })],
    [
      'an unsigned JWT',
      () => `${encode({ alg: 'none' })}.${encode({ iss: 'tollgate', aud: 'dashboard', exp: 9999999999 })}.`,
    ],
    ['a JWT signed with an API key', () => forge({ alg: 'HS256' }, SDK_KEY)],
  ];

  test('refuses: a request without credentials', async () => {
    const reply = await kit.ask(method, url, { body });
    expect(reply.status).toBe(401);
    expect(reply.json).toMatchObject({ code: 'credentials_missing', status: 401 });
    expect(reply.headers['www-authenticate']).toBe(`Bearer realm="${realm}"`);
  });

  test.each(wrong)('refuses: a request with %s', async (_what, credential) => {
    const reply = await kit.ask(method, url, { auth: await credential(), body });
    expect(reply.status).toBe(401);
    expect(reply.json).toMatchObject({ code: 'credentials_invalid', status: 401 });
    expect(reply.headers['www-authenticate']).toMatch(
      new RegExp(`^Bearer realm="${realm}", error="invalid_token", error_description="[^"]+"$`),
    );
  });

  test('refuses: a credential of another scheme, and two credentials', async () => {
    const basic = await kit.ask(method, url, {
      body,
      headers: { Authorization: `Basic ${Buffer.from(`a:${SDK_KEY}`).toString('base64')}` },
    });
    expect([basic.status, basic.json.code]).toEqual([401, 'credentials_missing']);
    const good = auth.kind === 'jwt' ? await token() : keyOf(auth);
    const twice = await kit.ask(method, url, { body, headers: { Authorization: [`Bearer ${good}`, 'Bearer other'] } });
    expect([twice.status, twice.json.code]).toEqual([400, 'malformed']);
  });

  test('behaviour: the right credential passes, its scheme in any letter case, and the wrong scope is 403', async () => {
    const good = auth.kind === 'jwt' ? await token() : keyOf(auth);
    // HEAD where there is one, so that an event stream ends.
    const asked = method === 'GET' ? 'HEAD' : method;
    const reply = await kit.ask(asked, url, { body, headers: { Authorization: `bEaReR  ${good}` } });
    expect([401, 403]).not.toContain(reply.status);
    if (auth.kind !== 'api_key') return;
    const scoped = await kit.ask(method, url, { auth: auth.scope === 'sdk' ? LEDGER_KEY : SDK_KEY, body });
    expect([scoped.status, scoped.json.code]).toEqual([403, 'scope_insufficient']);
    expect(scoped.headers['www-authenticate']).toContain('error="insufficient_scope"');
    expect(scoped.headers['www-authenticate']).toContain(`scope="${auth.scope}"`);
  });

  test('behaviour: a credential is asked for before the body is read', async () => {
    if (body === undefined) return;
    const reply = await kit.ask(method, url, { body: '{not json', headers: { 'Content-Type': 'text/plain' } });
    expect(reply.status).toBe(401);
  });
});

describe('every path', () => {
  const paths = [...new Set(rows.map(({ url }) => url))];

  test.each(paths)('behaviour: OPTIONS %s is 204 with Allow, and 405 says the same', async (url) => {
    const methods = rows.filter((row) => row.url === url).map((row) => row.method);
    const allow = [...methods, ...(methods.includes('GET') ? ['HEAD'] : []), 'OPTIONS'].join(', ');
    const options = await kit.ask('OPTIONS', url);
    expect([options.status, options.headers['allow'], options.body.length]).toEqual([204, allow, 0]);
    for (const method of ['PUT', 'PATCH', 'DELETE', 'POST', 'PROPFIND'].filter(
      (each) => !methods.some((known) => known === each),
    )) {
      const reply = await kit.ask(method, url);
      expect([method, reply.status, reply.headers['allow'], reply.json.code]).toEqual([
        method,
        405,
        allow,
        'method_not_allowed',
      ]);
    }
  });

  test.each(rows.filter(({ method, path }) => method === 'GET' && !STREAMS.has(path)))(
    'behaviour: HEAD $url is GET without its body',
    async ({ url, auth }) => {
      const ask = auth.kind === 'jwt' ? kit.dashboard : kit.sdk;
      const [get, head] = [await ask('GET', url), await ask('HEAD', url)];
      expect(head.status).toBe(get.status);
      expect(head.body.length).toBe(0);
      for (const name of ['content-type', 'content-length', 'etag', 'cache-control'])
        expect(head.headers[name]).toBe(get.headers[name]);
    },
  );

  test.each(paths.filter((url) => !STREAMS.has(url)))(
    'behaviour: %s is served with a slash behind it too',
    async (url) => {
      const plain = await kit.ask('GET', url);
      const slashed = await kit.ask('GET', `${url}/`);
      expect([slashed.status, slashed.json?.code]).toEqual([plain.status, plain.json?.code]);
      expect((await kit.ask('GET', `${url}//`)).status).toBe(404);
    },
  );

  test.each([
    '/',
    '/v1',
    '/v1/',
    '//',
    '/v1/billing',
    '/v1/billing/charge',
    '/v1/billing/summary/x',
    '/v1/ledger',
    '/v1/ledger/claims/x/y',
    '/V1/health',
    '/v1/%68ealth',
    '/v1/health/x',
    `/v1/billing/protected-routes/${ID}/x`,
    '/v1/protected-routes/{id}',
    '/__proto__',
    '/constructor',
  ])('refuses: %s is 404', async (path) => {
    const reply = await kit.sdk('GET', path);
    expect([reply.status, reply.json.code]).toEqual([404, 'not_found']);
    expect(reply.headers['content-type']).toBe('application/problem+json');
  });

  test('behaviour: an absolute request target is taken', async () => {
    expect((await kit.ask('GET', `http://127.0.0.1:${kit.port}/v1/health`)).status).toBe(200);
  });

  test('behaviour: every answer says not to be sniffed, and not to be stored unless it says so', async () => {
    for (const { url, method } of rows.filter((row) => !STREAMS.has(row.path))) {
      const reply = await kit.ask(method, url);
      expect([url, reply.headers['x-content-type-options'], reply.headers['cache-control']]).toEqual([
        url,
        'nosniff',
        'no-store',
      ]);
    }
  });
});

function keyOf(auth: Auth): string {
  return auth.kind === 'api_key' && auth.scope === 'ledger' ? LEDGER_KEY : SDK_KEY;
}

function encode(value: unknown): string {
  return Buffer.from(JSON.stringify(value)).toString('base64url');
}

function forge(header: object, key: string): string {
  const signed = `${encode(header)}.${encode({ iss: 'tollgate', aud: 'dashboard', exp: Math.floor(Date.now() / 1000) + 60 })}`;
  return `${signed}.${createHmac('sha256', key).update(signed).digest('base64url')}`;
}
