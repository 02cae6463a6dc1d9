// Key sets that rotate, stall, lie or go away, and tokens that try to make them be fetched. The clock is the test's own;
// the key set is a real server where the wire matters and a function where time does.
import { generateKeyPairSync } from 'node:crypto';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, describe, expect, test } from 'vitest';
import { createJwtVerifier } from '../../../src/registry/auth/dashboard-tokens.ts';
import { createKeySet, KEY_SET_TIMES, type FetchKeys } from '../../../src/host/jwt/key-set.ts';
import { LIST, SETTINGS, startRegistry, type Kit } from '../kit.ts';
import { ecdsa, encode, issuerEc, issuerEd, issuerRsa, join, rsa, type Signer } from './forge.ts';
import { AUDIENCE, goodClaims, ISSUER, jwkOf, NOW } from './settings.ts';

const closers: (() => Promise<unknown> | void)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).toReversed()) await close();
});

const A = jwkOf(issuerRsa.publicKey, { kid: 'a', alg: 'RS256' });
const B = jwkOf(issuerEc.publicKey, { kid: 'b', alg: 'ES256' });
const byA = rsa(256, issuerRsa.privateKey);
const byB = ecdsa(issuerEc.privateKey);
const SECOND = 1000;
const HOUR = 3600 * SECOND;

/** A token that outlives every test of rotation. */
const tokenOf = (signer: Signer, kid?: string): string =>
  join(encode({ alg: signer.alg, kid }), encode(goodClaims({ exp: NOW + 1_000_000 })), signer);

type Source = { answer: () => Response | Promise<Response>; calls: number; readonly urls: string[] };

/** A verifier over a key set that can be changed, and a clock that can be moved. */
function verifierOver(...keys: unknown[]): {
  source: Source;
  pass: (ms: number) => void;
  ask: (token: string) => Promise<string>;
} {
  let now = NOW * 1000;
  const source: Source = { answer: () => Response.json({ keys }), calls: 0, urls: [] };
  const fetch: FetchKeys = async (url) => {
    source.calls++;
    source.urls.push(url);
    return source.answer();
  };
  const verify = createJwtVerifier(
    { issuer: ISSUER, audience: AUDIENCE, key: { kind: 'jwks', url: 'https://id.example.com/keys' } },
    { now: () => now, monotonic: () => now },
    fetch,
  );
  return { source, pass: (ms) => void (now += ms), ask: async (token) => (await verify(token)).kind };
}

describe('rotation', () => {
  test('behaviour: old and new key both count while both are published, then only the new one', async () => {
    const { source, pass, ask } = verifierOver(A);
    expect([await ask(tokenOf(byA, 'a')), await ask(tokenOf(byB, 'b'))]).toEqual(['valid', 'invalid']);
    source.answer = () => Response.json({ keys: [A, B] });
    pass(30 * SECOND);
    expect([await ask(tokenOf(byB, 'b')), await ask(tokenOf(byA, 'a'))]).toEqual(['valid', 'valid']);
    expect(source.calls).toBe(2);
    source.answer = () => Response.json({ keys: [B] });
    pass(KEY_SET_TIMES.freshMs - 1);
    expect(await ask(tokenOf(byA, 'a'))).toBe('valid');
    pass(1);
    expect([await ask(tokenOf(byA, 'a')), await ask(tokenOf(byB, 'b'))]).toEqual(['invalid', 'valid']);
    expect(source.calls).toBe(3);
  });

  test('behaviour: a set is fetched once in ten minutes, whoever asks how often', async () => {
    const { source, pass, ask } = verifierOver(A);
    const token = tokenOf(byA, 'a');
    for (let minute = 0; minute < 60; minute++) {
      for (let nth = 0; nth < 3; nth++) expect(await ask(token)).toBe('valid');
      pass(60 * SECOND);
    }
    expect(source.calls).toBe(6);
  });

  test('attack: unknown key ids cause one fetch in thirty seconds, at the limit and one past it', async () => {
    const { source, pass, ask } = verifierOver(A);
    expect(await ask(tokenOf(byA, 'a'))).toBe('valid');
    const guesses = Array.from({ length: 20 }, (_, nth) => tokenOf(byB, `guess-${nth}`));
    const guess = async (): Promise<void> => {
      for (const token of guesses) expect(await ask(token)).toBe('invalid');
    };
    await guess();
    expect(source.calls).toBe(1);
    pass(KEY_SET_TIMES.cooldownMs - 1);
    await guess();
    expect(source.calls).toBe(1);
    pass(1);
    await guess();
    expect(source.calls).toBe(2);
    // An hour of guessing, five seconds apart.
    for (let nth = 0; nth < 720; nth++) {
      pass(5 * SECOND);
      await ask(guesses[nth % guesses.length] ?? '');
    }
    expect(source.calls).toBe(2 + 120);
    expect(new Set(source.urls)).toEqual(new Set(['https://id.example.com/keys']));
  });

  test.each([0, 1, 15, 29, 30, 31])(
    'behaviour: a key that was published thirty seconds before it signs is taken, whatever guesses come: %i s after a fetch',
    async (since) => {
      const { source, pass, ask } = verifierOver(A);
      expect(await ask(tokenOf(byA, 'a'))).toBe('valid');
      pass(since * SECOND);
      source.answer = () => Response.json({ keys: [A, B] });
      for (let second = 0; second < 30; second++) {
        expect(await ask(tokenOf(byB, 'guess'))).toBe('invalid');
        pass(SECOND);
      }
      expect(await ask(tokenOf(byB, 'b'))).toBe('valid');
    },
  );

  test('attack: a hundred tokens at once wait for one fetch', async () => {
    const { source, pass, ask } = verifierOver(A);
    const [ofKnown, ofNew] = [tokenOf(byA, 'a'), tokenOf(byB, 'b')];
    const held: (() => void)[] = [];
    const hold = (keys: object[]) => () =>
      new Promise<Response>((resolve) => void held.push(() => resolve(Response.json({ keys }))));
    for (const keys of [[A], [A, B]]) {
      source.answer = hold(keys);
      const asked = Array.from({ length: 100 }, (_, nth) => ask(nth % 2 ? ofKnown : ofNew));
      await expect.poll(() => held.length).toBe(1);
      held.pop()?.();
      const [ofB, ofA] = [keys.length === 2 ? 'valid' : 'invalid', 'valid'];
      expect(await Promise.all(asked)).toEqual(Array.from({ length: 100 }, (_, nth) => (nth % 2 ? ofA : ofB)));
      pass(30 * SECOND);
    }
    expect(source.calls).toBe(2);
  });
});

describe('a key set that is away', () => {
  test('behaviour: the last good set serves for 24 hours, then it is 503 and never 401', async () => {
    const { source, pass, ask } = verifierOver(A);
    expect(await ask(tokenOf(byA, 'a'))).toBe('valid');
    source.answer = () => Promise.reject(new Error('connect ECONNREFUSED'));
    pass(KEY_SET_TIMES.staleMs);
    expect(await ask(tokenOf(byA, 'a'))).toBe('valid');
    pass(1);
    for (const token of [tokenOf(byA, 'a'), tokenOf(byB, 'b'), tokenOf(byA)])
      expect(await ask(token)).toBe('unavailable');
    expect(source.calls).toBe(2);
    source.answer = () => Response.json({ keys: [A] });
    pass(30 * SECOND);
    expect([await ask(tokenOf(byA, 'a')), await ask(tokenOf(byB, 'b'))]).toEqual(['valid', 'invalid']);
  });

  test('behaviour: while a key set is away, a key that is not in it may be a new one: 503, and what is forged with a known one is 401', async () => {
    const { source, pass, ask } = verifierOver(A);
    expect(await ask(tokenOf(byA, 'a'))).toBe('valid');
    source.answer = () => new Response('', { status: 503 });
    pass(30 * SECOND);
    expect(await ask(tokenOf(byB, 'b'))).toBe('unavailable');
    expect(await ask(tokenOf(byA, 'a'))).toBe('valid');
    expect(await ask(tokenOf(rsa(256, generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey), 'a'))).toBe(
      'invalid',
    );
    expect(source.calls).toBe(2);
  });

  test('attack: a key set that is away is asked once in thirty seconds, and nobody waits in between', async () => {
    const { source, pass, ask } = verifierOver();
    source.answer = () => Promise.reject(new Error('connect ECONNREFUSED'));
    const token = tokenOf(byA, 'a');
    for (let second = 0; second < 300; second += 5) {
      expect(await ask(token)).toBe('unavailable');
      pass(5 * SECOND);
    }
    expect(source.calls).toBe(10);
  });
});

describe('a key set that hangs', () => {
  test('behaviour: known keys wait once for a key set that hangs, then go on with the last good one; unknown keys wait', async () => {
    const { source, pass, ask } = verifierOver(A);
    expect(await ask(tokenOf(byA, 'a'))).toBe('valid');
    const held: (() => void)[] = [];
    source.answer = () => new Promise((_resolve, reject) => void held.push(() => reject(new Error('time-out'))));
    pass(HOUR);
    const first = ask(tokenOf(byA, 'a'));
    await expect.poll(() => held.length).toBe(1);
    held[0]?.();
    expect(await first).toBe('valid');
    pass(30 * SECOND);
    // The next attempt hangs, and nobody with a known key notices.
    expect(await ask(tokenOf(byA, 'a'))).toBe('valid');
    await expect.poll(() => held.length).toBe(2);
    const unknown = ask(tokenOf(byB, 'b'));
    held[1]?.();
    expect(await unknown).toBe('unavailable');
  });
});

describe('a key set that is not one', () => {
  const small = generateKeyPairSync('rsa', { modulusLength: 1024 }).publicKey;
  const bad: [string, () => Response][] = [
    ['no JSON', () => new Response('<html>')],
    ['nothing', () => new Response('')],
    ['an array', () => Response.json([A])],
    ['keys that are no list', () => Response.json({ keys: { 0: A } })],
    ['an empty list', () => Response.json({ keys: [] })],
    ['101 keys', () => Response.json({ keys: Array.from({ length: 101 }, (_, nth) => ({ ...A, kid: `${nth}` })) })],
    ['more than 256 KiB', () => Response.json({ keys: [A], padding: 'x'.repeat(256 * 1024) })],
    ['status 201', () => Response.json({ keys: [A] }, { status: 201 })],
    ['status 404', () => Response.json({ keys: [A] }, { status: 404 })],
    ['a redirect', () => new Response('', { status: 302, headers: { Location: 'https://evil.example.com/keys' } })],
    ['a private key', () => Response.json({ keys: [{ ...issuerRsa.privateKey.export({ format: 'jwk' }), kid: 'a' }] })],
    ['a symmetric key', () => Response.json({ keys: [{ kty: 'oct', k: 'AAAA', kid: 'a', alg: 'HS256' }] })],
    ['a key for encryption', () => Response.json({ keys: [{ ...A, use: 'enc' }] })],
    ['a key that may not verify', () => Response.json({ keys: [{ ...A, key_ops: ['encrypt'] }] })],
    ['a small RSA key', () => Response.json({ keys: [jwkOf(small, { kid: 'a' })] })],
    ['a broken key', () => Response.json({ keys: [{ ...A, n: undefined }, { ...B, x: 'AAAA' }, { kty: 'RSA' }] })],
    ['a key of another kind', () => Response.json({ keys: [jwkOf(generateKeyPairSync('x25519').publicKey)] })],
    ['a key of another curve', () => Response.json({ keys: [jwkOf(ecOf('secp256k1'), { kid: 'a' })] })],
    [
      'a key for an algorithm of another kind',
      () =>
        Response.json({
          keys: [
            { ...A, alg: 'ES256' },
            { ...B, alg: 'HS256' },
          ],
        }),
    ],
    ['an id that is no text', () => Response.json({ keys: [{ ...A, kid: 1 }] })],
    ['keys that are no objects', () => Response.json({ keys: [null, 1, 'a', [A]] })],
  ];
  const ecOf = (namedCurve: string) => generateKeyPairSync('ec', { namedCurve }).publicKey;

  test.each(bad)('attack: a key set of %s is 503 at first, and replaces no good set', async (_what, answer) => {
    const first = verifierOver();
    first.source.answer = answer;
    expect(await first.ask(tokenOf(byA, 'a'))).toBe('unavailable');
    const later = verifierOver(A);
    expect(await later.ask(tokenOf(byA, 'a'))).toBe('valid');
    later.source.answer = answer;
    later.pass(HOUR);
    expect(await later.ask(tokenOf(byA, 'a'))).toBe('valid');
    expect([first.source.calls, later.source.calls]).toEqual([1, 2]);
  });

  test('behaviour: keys of a set that cannot be used are left out, the others count', async () => {
    const broken = [null, { ...A, kid: 'x', use: 'enc' }, { ...B, kid: 'y', d: 'AAAA' }, { ...A, kid: 'z', n: 'AAAA' }];
    const { ask } = verifierOver(...broken, A);
    expect(await ask(tokenOf(byA, 'a'))).toBe('valid');
    for (const [signer, kid] of [
      [byA, 'x'],
      [byB, 'y'],
      [byA, 'z'],
    ] as const)
      expect([kid, await ask(tokenOf(signer, kid))]).toEqual([kid, 'invalid']);
  });

  test('behaviour: a key set of 100 keys or of 256 KiB is taken', async () => {
    const others = Array.from({ length: 99 }, (_, nth) => ({ ...B, kid: `k${nth}` }));
    const { source, ask } = verifierOver();
    const bare = JSON.stringify({ keys: [A, ...others], padding: '' }).length;
    source.answer = () =>
      new Response(JSON.stringify({ keys: [A, ...others], padding: 'x'.repeat(256 * 1024 - bare) }));
    expect(await ask(tokenOf(byA, 'a'))).toBe('valid');
  });

  test('behaviour: one id for keys of two kinds is no riddle, one id for two keys of one kind is', async () => {
    const twins = verifierOver({ ...A, kid: 'same' }, { ...B, kid: 'same' }, { ...A, kid: 'same' });
    expect([await twins.ask(tokenOf(byA, 'same')), await twins.ask(tokenOf(byB, 'same'))]).toEqual(['valid', 'valid']);
    const other = jwkOf(generateKeyPairSync('rsa', { modulusLength: 2048 }).publicKey, { kid: 'same', alg: 'RS256' });
    const riddle = verifierOver({ ...A, kid: 'same' }, other, B);
    expect([await riddle.ask(tokenOf(byA, 'same')), await riddle.ask(tokenOf(byB, 'b'))]).toEqual(['invalid', 'valid']);
  });

  test('behaviour: a key without alg serves its own kind and size only, one with alg that alone', async () => {
    const bare = [
      jwkOf(issuerRsa.publicKey, { kid: 'r' }),
      jwkOf(issuerEc.publicKey, { kid: 'e' }),
      jwkOf(issuerEd.publicKey, { kid: 'd' }),
    ];
    const set = createKeySet('https://id.example.com/keys', { now: () => 0, monotonic: () => 0 }, async () =>
      Response.json({ keys: [...bare, { ...A, kid: 'pinned' }] }),
    );
    const algorithms = [
      ...['HS256', 'RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512'],
      ...['ES256', 'ES384', 'ES512', 'EdDSA', 'Ed25519', 'none', 'constructor', ''],
    ];
    const served = async (kid: string): Promise<string[]> => {
      const found = await Promise.all(algorithms.map(async (alg) => [alg, await set.find(alg, kid)] as const));
      return found.filter(([, key]) => typeof key !== 'string').map(([alg]) => alg);
    };
    expect(await served('r')).toEqual(['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512']);
    expect(await served('e')).toEqual(['ES256']);
    expect(await served('d')).toEqual(['EdDSA', 'Ed25519']);
    expect(await served('pinned')).toEqual(['RS256']);
  });
});

describe('over the wire', () => {
  async function serve(handle: RequestListener): Promise<{ url: string; paths: string[] }> {
    const paths: string[] = [];
    const server = createServer((req, res) => {
      paths.push(req.url ?? '');
      handle(req, res);
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    closers.push(() => {
      server.closeAllConnections();
      return new Promise((resolve) => server.close(resolve));
    });
    return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, paths };
  }
  const registryOver = async (url: string): Promise<Kit> => {
    const kit = await startRegistry({
      now: () => NOW * 1000,
      settings: { jwt: { issuer: ISSUER, audience: AUDIENCE, key: { kind: 'jwks', url } } },
    });
    closers.push(kit.close);
    return kit;
  };

  test('behaviour: a key set is taken in any media type, and asked for as a key set', async () => {
    let accept: string | undefined;
    const keys = await serve((req, res) => {
      accept = req.headers.accept;
      res.setHeader('Content-Type', 'text/html').end(JSON.stringify({ keys: [A] }));
    });
    const kit = await registryOver(`${keys.url}/k?tenant=1`);
    expect((await kit.ask('GET', LIST, { auth: tokenOf(byA, 'a') })).status).toBe(200);
    expect([accept, keys.paths]).toEqual(['application/jwk-set+json, application/json', ['/k?tenant=1']]);
  });

  test('attack: a redirect of a key set is not followed, and the answer is 503 with Retry-After', async () => {
    const elsewhere = await serve((_req, res) => void res.end(JSON.stringify({ keys: [A] })));
    for (const status of [301, 302, 303, 307, 308]) {
      const keys = await serve((_req, res) => void res.writeHead(status, { Location: `${elsewhere.url}/k` }).end());
      const kit = await registryOver(keys.url);
      const reply = await kit.ask('GET', LIST, { auth: tokenOf(byA, 'a') });
      expect([reply.status, reply.json.code, reply.headers['retry-after']]).toEqual([
        503,
        'registry_unavailable',
        '10',
      ]);
      expect(reply.headers['www-authenticate']).toBeUndefined();
    }
    expect(elsewhere.paths).toEqual([]);
  });

  test('attack: a set that trickles for ever, and one that never begins, cost their time-out', async () => {
    const trickle = await serve((_req, res) => {
      const timer = setInterval(() => res.write(' '), 5);
      res.on('close', () => clearInterval(timer));
    });
    const silent = await serve(() => undefined);
    for (const { url, paths } of [trickle, silent]) {
      const times = { ...KEY_SET_TIMES, timeoutMs: 300 };
      const clock = { now: () => 0, monotonic: () => 0 };
      const set = createKeySet(url, clock, (from, init) => fetch(from, init), times);
      expect(await Promise.all([set.find('RS256', 'a'), set.find('ES256', 'b')])).toEqual([
        'unavailable',
        'unavailable',
      ]);
      expect(await set.find('RS256', 'a')).toBe('unavailable');
      // Under load not even the connection may be there in time.
      expect(paths.length).toBeLessThanOrEqual(1);
    }
  });

  test('attack: a set without an end is cut at its limit', async () => {
    let sent = 0;
    const keys = await serve((_req, res) => {
      const more = (): void => {
        while (!res.destroyed && sent < 64 * 1024 * 1024) {
          sent += 65_536;
          if (!res.write('x'.repeat(65_536))) return void res.once('drain', more);
        }
        res.end();
      };
      more();
    });
    const kit = await registryOver(keys.url);
    expect((await kit.ask('GET', LIST, { auth: tokenOf(byA, 'a') })).status).toBe(503);
    expect(sent).toBeLessThan(32 * 1024 * 1024);
  });

  test('behaviour: a reload that changes nothing about tokens keeps the set, one that does asks anew', async () => {
    const keys = await serve((_req, res) => void res.end(JSON.stringify({ keys: [A] })));
    const kit = await registryOver(keys.url);
    const jwt = { issuer: ISSUER, audience: AUDIENCE, key: { kind: 'jwks', url: keys.url } } as const;
    const status = async (): Promise<number> => (await kit.ask('GET', LIST, { auth: tokenOf(byA, 'a') })).status;
    expect(await status()).toBe(200);
    kit.registry.reconfigure({ ...SETTINGS, jwt: { ...jwt, key: { ...jwt.key } }, corsOrigins: ['*'] });
    expect([await status(), keys.paths.length]).toEqual([200, 1]);
    kit.registry.reconfigure({ ...SETTINGS, jwt: { ...jwt, audience: 'another' } });
    expect([await status(), keys.paths.length]).toEqual([401, 2]);
  });
});
