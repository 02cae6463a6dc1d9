// Query parameters that are not known: somebody mistyped them, and would take everything for what was asked for.
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { API } from '../../src/registry/api.ts';
import { DESK, signIn } from './desk/signed-in.ts';
import { FEED, LEDGER_KEY, LIST, REGISTER, SDK_KEY, startRegistry, token, type Kit } from './kit.ts';

let kit: Kit;
beforeAll(async () => {
  kit = await startRegistry({ settings: { desk: DESK } });
});
afterAll(() => kit.close());

const ID = '00000000-0000-4000-8000-000000000000';
const IGNORING = new Set([`GET ${FEED}`, `POST ${REGISTER}`, 'GET /desk/oidc/callback']);
const rows = API.map(({ method, path, auth }) => ({ name: `${method} ${path}`, method, path, auth }));

describe.each(rows.filter(({ name }) => !IGNORING.has(name)))('$name', ({ method, path, auth }) => {
  test('refuses: parameters that the endpoint does not know, by name', async () => {
    const credential = auth.kind === 'jwt' ? await token() : auth.kind === 'api_key' ? keyOf(auth.scope) : undefined;
    const headers = auth.kind === 'session' ? await signIn(kit) : {};
    const body = method === 'POST' || method === 'PATCH' ? {} : undefined;
    const url = `${path.replace('{id}', ID)}?zzz=1&__proto__=2&zzz=3`;
    const { status, json } = await kit.ask(method, url, { auth: credential, body, headers });
    expect([status, json.code]).toEqual([400, 'malformed']);
    expect(json.detail).toContain('not known here: zzz, __proto__.');
  });
});

describe('a parameter that is not known', () => {
  test('behaviour: an unknown parameter is answered with the one that was meant, and what is taken', async () => {
    const { status, json } = await kit.dashboard('GET', `${LIST}?stauts=active&limit=1`);
    expect(status).toBe(400);
    expect(json.detail).toContain('stauts (did you mean status?). It takes limit, cursor, status, method, source, q.');
  });

  test('behaviour: an answer about endless unknown parameters names a few of them, cut', async () => {
    const query = Array.from({ length: 50 }, (_, index) => `${'n'.repeat(200)}${index}=1`).join('&');
    const { status, json } = await kit.dashboard('GET', `${LIST}?${query}`);
    expect([status, json.detail.length < 600, json.detail.includes(' and others')]).toEqual([400, true, true]);
  });

  test('behaviour: an unknown parameter on the SDK’s endpoints is ignored and logged', async () => {
    expect((await kit.sdk('GET', `${FEED}?org=7&limit=1`)).status).toBe(200);
    const body = { route_pattern: '/q', method: 'GET', amount: '1' };
    expect((await kit.sdk('POST', `${REGISTER}?source=sdk`, { body })).status).toBe(201);
    const lines = kit.logs.map((line) => JSON.parse(line)).filter(({ msg }) => msg === 'query parameters were ignored');
    expect(lines.map(({ path, parameters, by }) => ({ path, parameters, by }))).toEqual([
      { path: FEED, parameters: ['org', 'limit'], by: 'api_key:app' },
      { path: REGISTER, parameters: ['source'], by: 'api_key:app' },
    ]);
  });

  test('behaviour: an empty query is none', async () => {
    for (const query of ['?', '?&', '?&&']) expect((await kit.ask('GET', `/v1/health${query}`)).status).toBe(200);
  });

  test('behaviour: without a credential nothing is said about an unknown parameter', async () => {
    expect((await kit.ask('GET', `${LIST}?zzz=1`)).status).toBe(401);
  });
});

function keyOf(scope: string): string {
  return scope === 'ledger' ? LEDGER_KEY : SDK_KEY;
}
