// What the configuration decides: origins, keys, routes of its own; and what a reload or a restart keeps.
import { DatabaseSync } from 'node:sqlite';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { FEED, LIST, REGISTER, SETTINGS, startRegistry, token, type Kit } from './kit.ts';

let kit: Kit;
beforeEach(async () => {
  kit = await startRegistry();
});
afterEach(() => kit.close());

const good = { route_pattern: '/a', method: 'GET', amount: '1' };

describe('CORS', () => {
  const preflight = { 'Access-Control-Request-Method': 'PATCH', Origin: 'https://dash.example.com' };

  test('behaviour: a configured CORS origin may read and change, problems too; others may not', async () => {
    const options = await kit.ask('OPTIONS', LIST, { headers: preflight });
    expect(options.status).toBe(204);
    expect(options.headers).toMatchObject({
      'access-control-allow-origin': 'https://dash.example.com',
      'access-control-allow-methods': 'GET, POST, HEAD, OPTIONS',
      'access-control-allow-headers': expect.stringMatching(/Authorization.*If-Match/),
      vary: 'Origin',
    });
    const refused = await kit.ask('GET', LIST, { headers: { Origin: 'https://dash.example.com' } });
    expect([refused.status, refused.headers['access-control-allow-origin']]).toEqual([401, 'https://dash.example.com']);
    expect(refused.headers['access-control-expose-headers']).toContain('ETag');
    for (const origin of [
      'https://evil.example.com',
      'null',
      'https://dash.example.com.evil.com',
      'HTTPS://DASH.EXAMPLE.COM',
    ]) {
      const reply = await kit.ask('GET', '/v1/health', { headers: { Origin: origin } });
      expect([origin, reply.headers['access-control-allow-origin'], reply.headers['vary']]).toEqual([
        origin,
        undefined,
        'Origin',
      ]);
    }
    expect(options.headers['access-control-allow-credentials']).toBeUndefined();
  });

  test('behaviour: CORS of * allows any origin, and no origin is allowed if none is configured', async () => {
    kit.registry.reconfigure({ ...SETTINGS, corsOrigins: ['*'] });
    expect(
      (await kit.ask('GET', '/v1/health', { headers: { Origin: 'https://x' } })).headers['access-control-allow-origin'],
    ).toBe('*');
    kit.registry.reconfigure({ ...SETTINGS, corsOrigins: [] });
    const reply = await kit.ask('OPTIONS', LIST, { headers: preflight });
    expect([reply.status, reply.headers['access-control-allow-origin'], reply.headers['vary']]).toEqual([
      204,
      undefined,
      undefined,
    ]);
  });
});

describe('settings that change while it runs', () => {
  test('behaviour: keys and tokens of the old configuration are refused from the next request', async () => {
    const old = await token();
    const secret = 'another secret of thirty-two bytes!!';
    kit.registry.reconfigure({
      ...SETTINGS,
      jwt: { issuer: 'tollgate', audience: 'dashboard', key: { kind: 'secret', secret } },
      apiKeys: [{ name: 'app', key: 'a-new-key-for-the-app', scopes: ['sdk'] }],
    });
    expect((await kit.sdk('GET', FEED)).status).toBe(401);
    expect((await kit.sdk('GET', FEED, { auth: 'a-new-key-for-the-app' })).status).toBe(200);
    expect((await kit.ask('GET', LIST, { auth: old })).status).toBe(401);
    expect((await kit.ask('GET', LIST, { auth: await token({ secret }) })).status).toBe(200);
  });

  test('behaviour: settings that cannot be used throw and change nothing', async () => {
    const jwt = { issuer: 'tollgate', audience: 'dashboard', key: { kind: 'secret', secret: 'short' } } as const;
    expect(() => kit.registry.reconfigure({ ...SETTINGS, apiKeys: [], corsOrigins: ['*'], jwt })).toThrow(
      'at least 32 bytes',
    );
    const reply = await kit.sdk('GET', FEED, { headers: { Origin: 'https://x' } });
    expect([reply.status, reply.headers['access-control-allow-origin']]).toEqual([200, undefined]);
  });

  test('behaviour: a stored key works until it is revoked, in this process or by another connection', async () => {
    const { key, stored } = await kit.createKey('sidecar', ['sdk']);
    expect((await kit.sdk('GET', FEED, { auth: key })).status).toBe(200);
    for (const wrong of [
      key.slice(0, -1),
      `${key}A`,
      key.replace('tg_', 'TG_'),
      key.replace(/_[^_]/, '_!'),
      `${key} x`,
    ]) {
      expect((await kit.sdk('GET', FEED, { auth: wrong })).status).toBe(401);
    }
    const other = new DatabaseSync(kit.file);
    other.prepare('UPDATE api_keys SET revoked_at = ? WHERE id = ?').run('2026-01-01T00:00:00.000Z', stored.id);
    other.close();
    expect((await kit.sdk('GET', FEED, { auth: key })).status).toBe(401);
  });
});

test('behaviour: a registry that starts again on the same file has the same routes, id, revision and tags', async () => {
  // Half a character and a NUL: what memory holds must be what the disk gives back.
  const odd = JSON.stringify({ ...good, name: 'half \ud800 of it', description: 'a\u0000b' });
  const { json } = await kit.sdk('POST', REGISTER, { body: odd });
  const before = await kit.sdk('GET', FEED);
  const again = await startRegistry({ file: kit.file });
  const after = await again.sdk('GET', FEED);
  expect([
    after.body,
    after.headers['etag'],
    after.headers['tollgate-registry'],
    after.headers['tollgate-revision'],
  ]).toEqual([
    ...[before.body, before.headers['etag'], before.headers['tollgate-registry'], before.headers['tollgate-revision']],
  ]);
  expect((await again.dashboard('GET', `${LIST}/${json.id}`)).json).toEqual(json);
  await again.close();
});
