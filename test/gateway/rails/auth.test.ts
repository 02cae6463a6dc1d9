// What a facilitator is told of who calls: tokens read again by code that knows node:crypto alone.
import { createPrivateKey, randomBytes } from 'node:crypto';
import { inspect } from 'node:util';
import { describe, expect, test } from 'vitest';
import { readSigningKey } from '../../../src/config/signing-keys.ts';
import type { FacilitatorAuth } from '../../../src/domain/payment/offer.ts';
import { createAuthorize } from '../../../src/gateway/rails/x402/auth.ts';
import {
  createDoorkeeper,
  newCdpAccount,
  newPayaiAccount,
  type Account,
  type NewAccount,
} from '../../support/callers.ts';

const NOW = 1_764_000_000_900;
const CALL = new URL('https://api.cdp.example/platform/v2/x402/verify');
const LOCAL = new URL('http://127.0.0.1:4021/settle');

const signing = ({ account, keyId, secret }: NewAccount): FacilitatorAuth => {
  const kind = account.kind === 'payai' ? 'payai' : 'cdp';
  const key = readSigningKey(kind, secret);
  if (typeof key === 'string') throw new Error(key);
  return { kind, keyId, key };
};
const authorizeAt = (nowMs: number) => createAuthorize({ now: () => nowMs }, randomBytes);
const incoming = (method: string, { host, pathname }: URL, authorization: string) => ({
  method,
  url: pathname,
  headers: { host, authorization },
});
const partsOf = (value: string): Record<string, unknown>[] =>
  value
    .replace('Bearer ', '')
    .split('.')
    .slice(0, 2)
    .map((part) => JSON.parse(Buffer.from(part, 'base64url').toString()) as Record<string, unknown>);

test('behaviour: a bearer token goes to the facilitator as it is', async () => {
  const auth = { kind: 'bearer', token: 'tok-3f!' } as const;
  expect(await authorizeAt(NOW)(auth, 'POST', CALL)).toBe('Bearer tok-3f!');
});

test('behaviour: a token of CDP has exactly these members, nothing more', async () => {
  const [header, claims] = partsOf(await authorizeAt(NOW)(signing(newCdpAccount('pem')), 'POST', CALL));
  expect(header).toEqual({
    alg: 'ES256',
    kid: 'cdp-key-7',
    typ: 'JWT',
    nonce: expect.stringMatching(/^[0-9a-f]{32}$/),
  });
  expect(claims).toEqual({
    sub: 'cdp-key-7',
    iss: 'cdp',
    uris: ['POST api.cdp.example/platform/v2/x402/verify'],
    iat: 1_763_999_995,
    nbf: 1_763_999_995,
    exp: 1_764_000_115,
  });
});

test('behaviour: a token of PayAI has exactly these members, nothing more', async () => {
  const [header, claims] = partsOf(await authorizeAt(NOW)(signing(newPayaiAccount()), 'POST', CALL));
  expect(header).toEqual({ alg: 'EdDSA', kid: 'payai-key-7', typ: 'JWT' });
  expect(claims).toEqual({
    sub: 'payai-key-7',
    iss: 'payai-merchant',
    iat: 1_764_000_000,
    exp: 1_764_000_120,
    jti: expect.stringMatching(/^[0-9a-f-]{36}$/),
  });
});

describe('a facilitator that looks at everything', () => {
  test.each<[string, NewAccount]>([
    ['CDP, P-256', newCdpAccount('pem')],
    ['CDP, Ed25519', newCdpAccount('ed25519')],
    ['PayAI', newPayaiAccount()],
  ])('behaviour: a facilitator with %s takes every call once, whatever its path', async (_, made) => {
    const keep = createDoorkeeper(made.account, () => NOW);
    const authorize = authorizeAt(NOW);
    for (const [method, url] of [
      ['POST', CALL],
      ['POST', CALL],
      ['POST', LOCAL],
      ['GET', new URL('http://127.0.0.1:4021/supported')],
      ['GET', new URL('http://[::1]/x402/supported')],
    ] as const) {
      const value = await authorize(signing(made), method, url);
      expect(keep(incoming(method, url, value))).toBeUndefined();
      expect(keep(incoming(method, url, value))).toBe('nonce was used before');
    }
  });

  const made = newCdpAccount();
  test.each<[string, Account, number, 'POST' | 'GET', URL, string]>([
    ['another path', made.account, 0, 'POST', new URL('https://api.cdp.example/platform/v2/x402/settle'), 'uris'],
    ['another method', made.account, 0, 'GET', CALL, 'uris'],
    ['another host', made.account, 0, 'POST', new URL('https://api.other.example/platform/v2/x402/verify'), 'uris'],
    ['another port', made.account, 0, 'POST', new URL('https://api.cdp.example:8443/platform/v2/x402/verify'), 'uris'],
    ['a clock five minutes ahead of it', made.account, -300_000, 'POST', CALL, 'time'],
    ['a clock five minutes behind it', made.account, 300_000, 'POST', CALL, 'time'],
    ['another key', newCdpAccount().account, 0, 'POST', CALL, 'signature'],
    ['a key of another kind', newCdpAccount('pem').account, 0, 'POST', CALL, 'signature'],
    ['another key id', { ...made.account, keyId: 'other' }, 0, 'POST', CALL, 'key id'],
  ])('refuses: a token at %s', async (_, account, clockMs, method, url, why) => {
    const value = await authorizeAt(NOW)(signing(made), 'POST', CALL);
    expect(createDoorkeeper(account, () => NOW + clockMs)(incoming(method, url, value))).toBe(why);
  });

  test('behaviour: CDP takes a token of a clock that is up to five seconds ahead', async () => {
    const value = await authorizeAt(NOW + 4900)(signing(made), 'POST', CALL);
    expect(createDoorkeeper(made.account, () => NOW)(incoming('POST', CALL, value))).toBeUndefined();
  });
});

test('attack: a key shows nothing of itself where somebody prints it', () => {
  const made = newPayaiAccount();
  const auth = signing(made);
  const { d = '' } = createPrivateKey({
    key: Buffer.from(made.secret.replace('payai_sk_', ''), 'base64'),
    format: 'der',
    type: 'pkcs8',
  }).export({ format: 'jwk' });
  for (const text of [JSON.stringify(auth), inspect(auth, { depth: 9, showHidden: true })])
    expect(text).not.toContain(d);
});
