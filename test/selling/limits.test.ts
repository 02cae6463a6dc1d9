// The edges of what plans give away: how long a key may be, how long a key set that is away still counts, what the store learns of
// who had a free request, and that nothing is free once the store is gone.
import { createHash, generateKeyPairSync, sign as signBytes, type KeyObject } from 'node:crypto';
import { readdirSync, readFileSync, rmSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { codeOf, startPlans, type Answer, type PlanKit } from './kit.ts';

const digestOf = (key: string): string => createHash('sha256').update(key).digest('hex');
const [SHORT, LONG, TOO_LONG, METERED] = ['k'.repeat(16), 'k'.repeat(512), 'k'.repeat(513), 'a-key-with-a-quota-00001'];
const HOUR = 3_600_000;
const own = generateKeyPairSync('ec', { namedCurve: 'P-256' });
const published = generateKeyPairSync('ed25519');

let kit: PlanKit;
let keySet: Server;
let isAway = false;

const encode = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url');
function token(claims: object, key: KeyObject = own.privateKey): { headers: Record<string, string> } {
  const [alg, hash] = key.asymmetricKeyType === 'ec' ? ['ES256', 'sha256'] : ['EdDSA', null];
  const now = Math.floor(kit.now() / 1000);
  const all = { iss: 'https://id.example.com', aud: ['other', 'api'], sub: 'ann', exp: now + 600, ...claims };
  const input = `${encode({ alg, typ: 'JWT' })}.${encode(all)}`;
  const signature = signBytes(hash ?? null, Buffer.from(input), { key, dsaEncoding: 'ieee-p1363' });
  return { headers: { Authorization: `Bearer ${input}.${signature.toString('base64url')}` } };
}
const reasonOf = (answer: Answer): unknown => [answer.status, answer.headers['tollgate-reason']];
const from = (address: string): { headers: Record<string, string> } => ({ headers: { 'X-Forwarded-For': address } });

beforeAll(async () => {
  keySet = createServer((_req, res) => {
    if (isAway) res.destroy();
    else res.end(JSON.stringify({ keys: [published.publicKey.export({ format: 'jwk' })] }));
  });
  await new Promise<void>((resolve) => {
    keySet.listen(0, '127.0.0.1', resolve);
  });
  const jwks = `http://127.0.0.1:${(keySet.address() as AddressInfo).port}/jwks`;
  const issuer = 'issuer: "https://id.example.com", audience: api';
  kit = await startPlans(
    [
      'selling:',
      '  plans:',
      '    - { id: keys, customers: [keys] }',
      '    - { id: pem, customers: [pem] }',
      '    - { id: set, customers: [set] }',
      '    - { id: metered, customers: [metered] }',
      '    - { id: free, free: { requests: 1000, window: month } }',
      '  customers:',
      '    - { id: keys, header: X-Api-Key, keys_file: keys.txt }',
      '    - { id: metered, header: X-Api-Key, keys_file: metered.txt, quota: { requests: 1000, window: month } }',
      `    - { id: pem, header: Authorization, jwt: { ${issuer}, public_key_file: own.pem, require: { org.plan.kind: [pro] } } }`,
      `    - { id: set, header: Authorization, jwt: { ${issuer}, jwks_url: "${jwks}" } }`,
      'routes:',
      ...['keys', 'pem', 'set', 'metered', 'free'].map(
        (id) => `  - { method: GET, route_pattern: "/${id}/*", amount: "0.10", plan_id: ${id} }`,
      ),
    ].join('\n'),
    {
      proxy: 'trusted_proxies: [127.0.0.1]',
      files: {
        'keys.txt': [SHORT, LONG, TOO_LONG, SHORT.slice(1)].map(digestOf).join('\n'),
        'metered.txt': digestOf(METERED),
        'own.pem': own.publicKey.export({ type: 'spki', format: 'pem' }),
      },
    },
  );
});
afterAll(async () => {
  await kit.close();
  keySet.close();
});

test('behaviour: a key has 16 to 512 characters, a longer or shorter one is nobody’s even if its digest is there', async () => {
  const statuses: unknown[] = [];
  for (const key of [SHORT, LONG, TOO_LONG, SHORT.slice(1)])
    statuses.push(reasonOf(await kit.ask('/keys/a', { headers: { 'X-Api-Key': key } })));
  expect(statuses).toEqual([
    [200, undefined],
    [200, undefined],
    [402, 'customer_unknown'],
    [402, 'customer_unknown'],
  ]);
});

test('behaviour: a token is checked by a key in a file, with a minute for clocks, and a claim may be a list three deep', async () => {
  const org = { org: { plan: { kind: ['basic', 'pro'] } } };
  const now = Math.floor(kit.now() / 1000);
  for (const [claims, expected] of [
    [org, [200, undefined]],
    [{ ...org, exp: now - 50 }, [200, undefined]],
    [{ ...org, nbf: now + 50 }, [200, undefined]],
    [{ ...org, exp: now - 70 }, [402, 'customer_expired']],
    [{ ...org, nbf: now + 70 }, [402, 'customer_unknown']],
    [{ org: { plan: { kind: ['basic'] } } }, [402, 'customer_unknown']],
    [{ org: { plan: [{ kind: 'pro' }] } }, [402, 'customer_unknown']],
    [{}, [402, 'customer_unknown']],
  ] as const)
    expect([claims, reasonOf(await kit.ask('/pem/a', token(claims)))]).toEqual([claims, expected]);
  expect(reasonOf(await kit.ask('/pem/a', token(org, published.privateKey)))).toEqual([402, 'customer_unknown']);
});

test('behaviour: a verdict about a token is kept for a minute, and never beyond the token’s end', async () => {
  const org = { org: { plan: { kind: 'pro' } } };
  const soon = token({ ...org, exp: Math.floor(kit.now() / 1000) + 20 });
  expect((await kit.ask('/pem/a', soon)).status).toBe(200);
  kit.pass(50_000);
  expect((await kit.ask('/pem/a', soon)).status).toBe(200);
  kit.pass(31_000);
  expect(reasonOf(await kit.ask('/pem/a', soon))).toEqual([402, 'customer_expired']);
});

test('behaviour: the last good key set counts for a day while no other can be had, then tokens are 503 and nobody pays for it', async () => {
  const ask = (): Promise<Answer> => kit.ask('/set/a', token({ jti: String(kit.now()) }, published.privateKey));
  expect((await ask()).status).toBe(200);
  isAway = true;
  kit.pass(23 * HOUR);
  expect((await ask()).status).toBe(200);
  kit.pass(2 * HOUR);
  expect(codeOf(await ask())).toBe('customers_unavailable');
  isAway = false;
  kit.pass(31_000);
  expect((await ask()).status).toBe(200);
});

test('attack: once the store is gone nothing is free and no customer with a quota is asked to pay; the store never knew who asked', async () => {
  expect((await kit.ask('/free/a', from('198.51.100.77'))).status).toBe(200);
  expect((await kit.ask('/metered/a', { headers: { 'X-Api-Key': METERED } })).status).toBe(200);
  const stored = readdirSync(kit.folder).filter((name) => name.startsWith('tollgate.db'));
  expect(stored.length).toBeGreaterThan(0);
  for (const name of stored) {
    const bytes = readFileSync(join(kit.folder, name));
    expect([name, bytes.includes('198.51.100.77'), bytes.includes(METERED)]).toEqual([name, false, false]);
    rmSync(join(kit.folder, name));
  }
  for (const address of ['198.51.100.77', '198.51.100.78'])
    expect((await kit.ask('/free/a', from(address))).status).toBe(402);
  const served = kit.upstream.seen.length;
  const answer = await kit.ask('/metered/a', { headers: { 'X-Api-Key': METERED } });
  expect([codeOf(answer), answer.headers['retry-after'] !== undefined]).toEqual(['customers_unavailable', true]);
  expect(kit.upstream.seen.length).toBe(served);
});
