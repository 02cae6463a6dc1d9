// Dashboard tokens against what attackers do to JWTs, and key sets that rotate, stall or lie. API keys by their digests.
import { createHmac, createSecretKey, generateKeyPairSync, type KeyObject } from 'node:crypto';
import { exportJWK, SignJWT, UnsecuredJWT } from 'jose';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { createKeyCheck, digestKey } from '../../../src/registry/auth/api-keys.ts';
import {
  createJwtVerifier,
  mintToken,
  type JwtKey,
  type JwtResult,
} from '../../../src/registry/auth/dashboard-tokens.ts';
import type { FetchKeys } from '../../../src/host/jwt/key-set.ts';
import { SECRET } from '../kit.ts';

let now = 0;
beforeEach(() => {
  now = Date.UTC(2026, 0, 1);
  // Key sets go by the process's own clock.
  vi.useFakeTimers({ toFake: ['Date'], now });
});
afterEach(() => void vi.useRealTimers());
const pass = (ms: number): void => {
  now += ms;
  vi.setSystemTime(now);
};
const clock = { now: () => now, monotonic: () => now };
const HMAC = createSecretKey(Buffer.from(SECRET));
const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 });
const otherRsa = generateKeyPairSync('rsa', { modulusLength: 2048 });
const ec = generateKeyPairSync('ec', { namedCurve: 'P-256' });
const ed = generateKeyPairSync('ed25519');
const pem = (key: KeyObject): string => key.export({ type: 'spki', format: 'pem' });

const seconds = (): number => Math.floor(now / 1000);
const claims = (rest: object = {}): Record<string, unknown> => ({
  iss: 'tollgate',
  aud: 'dashboard',
  sub: 'ann',
  exp: seconds() + 60,
  ...rest,
});
const sign = (alg: string, key: KeyObject, payload: object = claims(), header: object = {}): Promise<string> =>
  new SignJWT({ ...payload }).setProtectedHeader({ alg, ...header }).sign(key);
const encode = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64url');
/** Signed by hand, so that the library under test has no say in what can be made. */
const forge = (header: object, payload: unknown, key: string): string => {
  const signed = `${encode(header)}.${typeof payload === 'string' ? payload : encode(payload)}`;
  return `${signed}.${createHmac('sha256', key).update(signed).digest('base64url')}`;
};
const verifier = (key: JwtKey, fetch?: FetchKeys): ((token: string) => Promise<JwtResult>) =>
  createJwtVerifier({ issuer: 'tollgate', audience: 'dashboard', key }, clock, fetch);
const secretVerifier = verifier({ kind: 'secret', secret: SECRET });

describe('tokens under a secret', () => {
  test('behaviour: a secret takes HS256, HS384 and HS512, an audience in a list, and what `token` mints', async () => {
    for (const alg of ['HS256', 'HS384', 'HS512']) {
      expect(await secretVerifier(await sign(alg, HMAC))).toEqual({
        kind: 'valid',
        subject: 'ann',
        role: 'admin',
        expiresAt: expect.any(Number),
      });
    }
    expect((await secretVerifier(await sign('HS256', HMAC, claims({ aud: ['x', 'dashboard'] })))).kind).toBe('valid');
    const minted = await mintToken(SECRET, { issuer: 'tollgate', audience: 'dashboard', ttlSeconds: 3600, now });
    expect(await secretVerifier(minted)).toEqual({
      ...{ kind: 'valid', subject: 'tollgate-cli', role: 'admin', expiresAt: expect.any(Number) },
    });
    now += 3_606_000;
    expect(await secretVerifier(minted)).toEqual({ kind: 'invalid', reason: 'The token has expired.' });
  });

  test('behaviour: five seconds of clock difference are forgiven, six are not', async () => {
    for (const [rest, kind] of [
      [{ exp: seconds() - 4 }, 'valid'],
      [{ exp: seconds() - 6 }, 'invalid'],
      [{ nbf: seconds() + 5 }, 'valid'],
      [{ nbf: seconds() + 6 }, 'invalid'],
    ] as const) {
      expect([rest, (await secretVerifier(await sign('HS256', HMAC, claims(rest)))).kind]).toEqual([rest, kind]);
    }
  });

  const attacks: [string, () => string | Promise<string>][] = [
    ['no algorithm', () => new UnsecuredJWT(claims()).encode()],
    ['alg none with a signature', () => forge({ alg: 'none' }, claims(), SECRET)],
    ['alg None', () => forge({ alg: 'None' }, claims(), SECRET)],
    ['no alg at all', () => forge({ typ: 'JWT' }, claims(), SECRET)],
    ['RS256 under a secret', () => sign('RS256', rsa.privateKey)],
    ['another secret', () => forge({ alg: 'HS256' }, claims(), `${SECRET}.`)],
    ['an empty secret', () => forge({ alg: 'HS256' }, claims(), '')],
    ['a wrong issuer', () => sign('HS256', HMAC, claims({ iss: 'tollgate.evil' }))],
    ['no issuer', () => sign('HS256', HMAC, claims({ iss: undefined }))],
    ['a wrong audience', () => sign('HS256', HMAC, claims({ aud: 'sdk' }))],
    ['no audience', () => sign('HS256', HMAC, claims({ aud: undefined }))],
    ['no exp', () => sign('HS256', HMAC, claims({ exp: undefined }))],
    ['exp as text', () => forge({ alg: 'HS256' }, claims({ exp: '9999999999' }), SECRET)],
    ['exp in the past', () => sign('HS256', HMAC, claims({ exp: 1 }))],
    ['nbf in the future', () => sign('HS256', HMAC, claims({ nbf: seconds() + 600 }))],
    [
      'an embedded jwk',
      async () => sign('RS256', otherRsa.privateKey, claims(), { jwk: await exportJWK(otherRsa.publicKey) }),
    ],
    [
      'a jku and an x5u',
      () =>
        forge(
          { alg: 'HS256', jku: 'https://evil.example.com', x5u: 'https://evil.example.com' },
          claims(),
          'x'.repeat(40),
        ),
    ],
    ['a kid that is a path', () => forge({ alg: 'HS256', kid: '/dev/null' }, claims(), '')],
    ['an unknown critical extension', () => forge({ alg: 'HS256', crit: ['exp'], exp: 1 }, claims(), SECRET)],
    ['an empty crit', () => forge({ alg: 'HS256', crit: [] }, claims(), SECRET)],
    ['an unencoded payload', () => forge({ alg: 'HS256', b64: false, crit: ['b64'] }, claims(), SECRET)],
    ['claims that are no object', () => forge({ alg: 'HS256' }, [claims()], SECRET)],
    ['claims that are not JSON', () => forge({ alg: 'HS256' }, 'e30x', SECRET)],
    [
      'a changed payload',
      async () => (await sign('HS256', HMAC)).replace(/\.[^.]+\./, `.${encode(claims({ sub: 'admin' }))}.`),
    ],
    ['a cut signature', async () => (await sign('HS256', HMAC)).slice(0, -2)],
    ['no signature', async () => (await sign('HS256', HMAC)).replace(/[^.]+$/, '')],
    ['an encrypted token', () => 'a.b.c.d.e'],
    ['garbage', () => '....'],
    ['a token of 8,193 characters', async () => sign('HS256', HMAC, claims({ pad: 'x'.repeat(8193) }))],
  ];
  test.each(attacks)('attack: a dashboard token is refused for %s', async (_what, token) => {
    const result = await secretVerifier(await token());
    expect(result).toEqual({ kind: 'invalid', reason: expect.stringMatching(/^[^"\\\n]+\.$/) });
  });

  test('behaviour: a token may be 8,192 characters long', async () => {
    const bare = await sign('HS256', HMAC, claims({ pad: '' }));
    const token = await sign(
      'HS256',
      HMAC,
      claims({ pad: 'x'.repeat(Math.floor(((8192 - bare.length) * 3) / 4) - 1) }),
    );
    expect(8192 - token.length).toBeLessThan(4);
    expect((await secretVerifier(token)).kind).toBe('valid');
  });
});

describe('tokens under a public key', () => {
  test('behaviour: keys of RSA, P-256 and Ed25519 count by their own algorithms only', async () => {
    const cases: [KeyObject, KeyObject, string[]][] = [
      [rsa.publicKey, rsa.privateKey, ['RS256', 'RS512', 'PS256']],
      [ec.publicKey, ec.privateKey, ['ES256']],
      [ed.publicKey, ed.privateKey, ['EdDSA', 'Ed25519']],
    ];
    for (const [publicKey, privateKey, algorithms] of cases) {
      const verify = verifier({ kind: 'public_key', pem: pem(publicKey) });
      for (const alg of algorithms)
        expect([alg, (await verify(await sign(alg, privateKey))).kind]).toEqual([alg, 'valid']);
      expect((await verify(await sign('RS256', otherRsa.privateKey))).kind).toBe('invalid');
    }
  });

  test('attack: a token signed with the public key as an HMAC secret is refused', async () => {
    const text = pem(rsa.publicKey);
    const verify = verifier({ kind: 'public_key', pem: text });
    for (const key of [text, text.trim(), text.replaceAll('\n', ''), `${text}\n`]) {
      expect((await verify(forge({ alg: 'HS256' }, claims(), key))).kind).toBe('invalid');
    }
  });

  test('refuses: a private key, a small RSA key, another kind of key, a short secret, before any request', () => {
    const small = generateKeyPairSync('rsa', { modulusLength: 1024 }).publicKey;
    const x25519 = generateKeyPairSync('x25519').publicKey;
    const secret = rsa.privateKey.export({ type: 'pkcs8', format: 'pem' });
    expect(() => verifier({ kind: 'public_key', pem: secret })).toThrow('private key');
    expect(() => verifier({ kind: 'public_key', pem: pem(small) })).toThrow('2048 bits');
    expect(() => verifier({ kind: 'public_key', pem: pem(x25519) })).toThrow('must be an RSA');
    expect(() => verifier({ kind: 'public_key', pem: 'no key' })).toThrow();
    expect(() => verifier({ kind: 'secret', secret: 'x'.repeat(31) })).toThrow('at least 32 bytes');
    expect(() => verifier({ kind: 'secret', secret: 'x'.repeat(32) })).not.toThrow();
  });
});

describe('tokens under a key set', () => {
  const jwk = async (key: KeyObject, kid: string): Promise<object> => ({ ...(await exportJWK(key)), kid });
  /** A key set server: what it answers can change, and every call is counted. */
  function keySet(initial: () => Promise<Response>): {
    fetch: FetchKeys;
    calls: () => number;
    answer: (next: () => Promise<Response>) => void;
  } {
    let answer = initial;
    let calls = 0;
    return {
      fetch: () => {
        calls++;
        return answer();
      },
      calls: () => calls,
      answer: (next) => void (answer = next),
    };
  }
  const of = async (...keys: object[]): Promise<Response> => Response.json({ keys });
  const url = 'https://id.example.com/keys';

  test('behaviour: a key set is fetched once and kept; a rotated key is fetched early, but at most twice a minute', async () => {
    const set = keySet(async () => of(await jwk(rsa.publicKey, 'a')));
    const verify = verifier({ kind: 'jwks', url }, set.fetch);
    const a = await sign('RS256', rsa.privateKey, claims({ exp: seconds() + 100_000 }), { kid: 'a' });
    const results = await Promise.all([verify(a), verify(a), verify(a)]);
    expect(results.map(({ kind }) => kind)).toEqual(['valid', 'valid', 'valid']);
    expect(set.calls()).toBe(1);
    const b = await sign('ES256', ec.privateKey, claims(), { kid: 'b' });
    for (let guess = 0; guess < 20; guess++) expect((await verify(b)).kind).toBe('invalid');
    expect(set.calls()).toBe(1);
    set.answer(async () => of(await jwk(rsa.publicKey, 'a'), await jwk(ec.publicKey, 'b')));
    pass(31_000);
    expect((await verify(b)).kind).toBe('valid');
    expect(set.calls()).toBe(2);
  });

  test('behaviour: while the key set is away the last good one serves for a day', async () => {
    const set = keySet(async () => of(await jwk(rsa.publicKey, 'a')));
    const verify = verifier({ kind: 'jwks', url }, set.fetch);
    const token = await sign('RS256', rsa.privateKey, claims({ exp: seconds() + 1_000_000 }), { kid: 'a' });
    expect((await verify(token)).kind).toBe('valid');
    set.answer(() => Promise.reject(new Error('connect')));
    pass(11 * 60_000);
    for (let round = 0; round < 5; round++) expect((await verify(token)).kind).toBe('valid');
    expect(set.calls()).toBe(2);
    expect(
      (await verify(await sign('RS256', otherRsa.privateKey, claims({ exp: seconds() + 1_000_000 }), { kid: 'a' })))
        .kind,
    ).toBe('invalid');
    pass(24 * 60 * 60_000);
    expect(await verify(token)).toEqual({ kind: 'unavailable' });
  });

  test('behaviour: while the key set is away the answer is 503, not 401, and the set is asked for once in the cool-down', async () => {
    const failures = [
      () => Promise.reject(new Error('connect')),
      async () => new Response('', { status: 500 }),
      async () => new Response('<html>'),
      async () => Response.json([]),
      async () => Response.json({ keys: 'x' }),
      async () => new Response('x'.repeat(2_000_000)),
      async () => new Response('', { status: 302, headers: { Location: 'http://169.254.169.254/' } }),
    ];
    for (const failure of failures) {
      const set = keySet(failure);
      const verify = verifier({ kind: 'jwks', url }, set.fetch);
      const token = await sign('RS256', rsa.privateKey, claims(), { kid: 'a' });
      for (let round = 0; round < 5; round++) expect(await verify(token)).toEqual({ kind: 'unavailable' });
      expect(set.calls()).toBe(1);
      set.answer(async () => of(await jwk(rsa.publicKey, 'a')));
      now += 30_001;
      expect((await verify(token)).kind).toBe('valid');
      expect(set.calls()).toBe(2);
    }
  });

  test('attack: a token cannot bring its key or its algorithm', async () => {
    const asked: string[] = [];
    const fetch: FetchKeys = async (from) => {
      asked.push(from);
      return of(await jwk(rsa.publicKey, 'a'), { kty: 'oct', kid: 'o', k: Buffer.from(SECRET).toString('base64url') });
    };
    const verify = verifier({ kind: 'jwks', url }, fetch);
    const evil = await jwk(otherRsa.publicKey, 'a');
    const attacks = [
      await sign('RS256', otherRsa.privateKey, claims(), { kid: 'a', jwk: evil, jku: 'https://evil.example.com/keys' }),
      await sign('RS256', otherRsa.privateKey, claims(), { kid: 'a' }),
      forge({ alg: 'HS256', kid: 'o' }, claims(), SECRET),
      forge({ alg: 'HS256', kid: 'a' }, claims(), pem(rsa.publicKey)),
      forge({ alg: 'none', kid: 'a' }, claims(), ''),
    ];
    for (const token of attacks) expect((await verify(token)).kind).toBe('invalid');
    expect(new Set(asked)).toEqual(new Set([url]));
  });
});

describe('API keys', () => {
  const stored = {
    id: '0123456789abcdef',
    ...({ name: 's', scopes: ['sdk'], createdAt: '', createdBy: null, revokedAt: null } as const),
  } as const;
  const key = `tg_${stored.id}_${'A'.repeat(43)}`;

  test('behaviour: an API key is found by the whole of it only; the same look-up is made for what cannot be one', async () => {
    const asked: Buffer[] = [];
    const check = createKeyCheck([{ name: 'conf', key: 'configured-key-16', scopes: ['ledger'] }], {
      find: async (digest) => {
        asked.push(digest);
        return digest.equals(digestKey(key)) ? { ...stored, digest } : undefined;
      },
    });
    expect(await check.find(key)).toMatchObject({ id: stored.id, scopes: ['sdk'] });
    expect(await check.find('configured-key-16')).toMatchObject({ id: undefined, name: 'conf', scopes: ['ledger'] });
    for (const wrong of ['', 'x', 'configured-key-1', key.replace(/A$/, 'B'), `tg_${stored.id}_`, stored.id])
      expect(await check.find(wrong)).toBeUndefined();
    expect(asked.length).toBe(8);
  });

  test('attack: the digest of nothing is no way in', async () => {
    const check = createKeyCheck([], { find: async () => ({ ...stored, digest: Buffer.alloc(32) }) });
    expect(await check.find(key)).toBeUndefined();
    const revoked = createKeyCheck([], {
      find: async () => ({ ...stored, digest: digestKey(key), revokedAt: '2026-01-01T00:00:00Z' }),
    });
    expect(await revoked.find(key)).toBeUndefined();
  });
});
