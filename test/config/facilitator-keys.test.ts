// How facilitators are written: short forms, keys from files and the environment, and what would give a key away.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createPublicKey } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { FacilitatorAuth } from '../../src/domain/payment/offer.ts';
import { markOf } from '../../src/config/environment.ts';
import { quickConfig } from '../../src/config/quick.ts';
import { NETWORKS } from '../../src/gateway/rails/rails.ts';
import { keepSecret } from '../support/canaries.ts';
import { newCdpAccount, newPayaiAccount } from '../support/callers.ts';
import { ADDRESS, configOf, problemsOf } from './support.ts';

const cdp = newCdpAccount('ed25519');
const pem = newCdpAccount('pem');
const payai = newPayaiAccount();
for (const { secret } of [cdp, pem, payai]) keepSecret('FACILITATOR_KEY', secret);
const TOKEN = 'token-of-a-facilitator';
keepSecret('FACILITATOR_TOKEN', TOKEN);

const CDP_ENV = { CDP_API_KEY_ID: cdp.keyId, CDP_API_KEY_SECRET: cdp.secret };
const PAYAI_ENV = { PAYAI_API_KEY_ID: payai.keyId, PAYAI_API_KEY_SECRET: payai.secret };
const CDP_URL = 'https://api.cdp.coinbase.com/platform/v2/x402';
const PAYAI_URL = 'https://facilitator.payai.network';

const receiver = (facilitators: string, network = 'base'): string =>
  `registry: {}\nreceivers:\n  - id: a\n    network: ${network}\n    pay_to_address: "${ADDRESS}"\n    facilitators: ${facilitators}\n`;
const facilitatorOf = (written: string, env = {}, network = 'base') =>
  configOf(receiver(`[${written}]`, network), env).receivers[0]?.ways[0]?.facilitators[0];

/** Whether it signs with the account's key. */
function signsFor(auth: FacilitatorAuth | undefined, { account }: typeof cdp): boolean {
  if (auth === undefined || auth.kind === 'bearer' || account.kind === 'bearer') return false;
  return createPublicKey(auth.key).equals(account.publicKey);
}

describe('short forms', () => {
  test('behaviour: the short form x402.org stands for its facilitator of test networks', () => {
    expect(facilitatorOf('x402.org', {}, 'base-sepolia')).toMatchObject({
      url: 'https://x402.org/facilitator',
      auth: undefined,
      account: undefined,
    });
  });

  test('behaviour: the short form cdp takes its key from the environment', () => {
    const found = facilitatorOf('cdp', CDP_ENV);
    expect(found).toMatchObject({ url: CDP_URL, account: cdp.keyId, auth: { kind: 'cdp', keyId: cdp.keyId } });
    expect(signsFor(found?.auth, cdp)).toBe(true);
  });

  test('behaviour: the short form payai takes its key from the environment, too, and goes without', () => {
    const found = facilitatorOf('payai', PAYAI_ENV);
    expect(found).toMatchObject({ url: PAYAI_URL, account: payai.keyId });
    expect(signsFor(found?.auth, payai)).toBe(true);
    for (const env of [{}, { PAYAI_API_KEY_ID: 'only-the-id' }, { ...PAYAI_ENV, PAYAI_API_KEY_SECRET: '' }]) {
      expect(facilitatorOf('payai', env)).toMatchObject({ url: PAYAI_URL, auth: undefined, account: undefined });
    }
  });

  test.each<[string, string, Readonly<Record<string, string>>, string, string]>([
    [
      'cdp without its key',
      'cdp',
      {},
      'base',
      '6:20 receivers[0].facilitators[0]: takes its key from the environment, where CDP_API_KEY_ID and CDP_API_KEY_SECRET are not set; set them',
    ],
    [
      'cdp without its secret',
      'cdp',
      { CDP_API_KEY_ID: 'a' },
      'base',
      '6:20 receivers[0].facilitators[0]: takes its key from the environment, where CDP_API_KEY_SECRET is not set; set it',
    ],
    [
      'cdp with an empty id',
      'cdp',
      { ...CDP_ENV, CDP_API_KEY_ID: '' },
      'base',
      '6:20 receivers[0].facilitators[0]: takes its key from the environment, where CDP_API_KEY_ID is not set; set it',
    ],
    [
      'cdp with a secret of another form',
      'cdp',
      { ...CDP_ENV, CDP_API_KEY_SECRET: 'hunter2' },
      'base',
      '6:20 receivers[0].facilitators[0]: takes CDP_API_KEY_SECRET from the environment, which is not a CDP key: PEM of a P-256',
    ],
    [
      'cdp with an id that holds a space',
      'cdp',
      { ...CDP_ENV, CDP_API_KEY_ID: 'a b' },
      'base',
      '6:20 receivers[0].facilitators[0]: takes CDP_API_KEY_ID from the environment, which is not the id of the key',
    ],
    [
      'payai with a key of cdp',
      'payai',
      { ...PAYAI_ENV, PAYAI_API_KEY_SECRET: cdp.secret },
      'base',
      '6:20 receivers[0].facilitators[0]: takes PAYAI_API_KEY_SECRET from the environment, which is not a PayAI key',
    ],
    ['x402.org for real money', 'x402.org', {}, 'base', '6:20 receivers[0].facilitators[0]: serves test networks only'],
    [
      'a short form that is none',
      'coinbase',
      {},
      'base',
      '6:20 receivers[0].facilitators[0].url: is not the http or https URL of an x402 facilitator, without query, or x402.org, cdp or payai',
    ],
  ])('refuses: %s', (_, written, env, network, problem) => {
    expect(problemsOf(receiver(`[${written}]`, network), env)).toEqual([expect.stringContaining(problem)]);
  });

  test('behaviour: flags take the short forms, and what is kept of the flags holds no key', () => {
    const flags = {
      upstream: 'http://127.0.0.1:3000',
      routes: ['GET /a 0.10'],
      payTo: ADDRESS,
      network: 'base',
      facilitators: ['cdp'],
      ...{ listen: undefined, registryListen: undefined, adminListen: undefined, data: undefined },
      ...{ publicUrl: undefined, profile: undefined },
    };
    const result = quickConfig(flags, '/srv', CDP_ENV, NETWORKS);
    if (!result.ok) throw new Error(JSON.stringify(result.problems));
    expect(result).toMatchObject({ testnet: false, network: 'base' });
    expect(signsFor(result.config.receivers[0]?.ways[0]?.facilitators[0]?.auth, cdp)).toBe(true);
    expect(result.data['receivers']).toMatchObject([{ facilitators: ['cdp'] }]);
    expect(quickConfig(flags, '/srv', {}, NETWORKS)).toMatchObject({
      ok: false,
      problems: [
        {
          path: '--facilitator',
          message: expect.stringContaining('CDP_API_KEY_ID and CDP_API_KEY_SECRET are not set'),
        },
      ],
    });
  });
});

describe('auth', () => {
  let folder: string;
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'tollgate-'));
    writeFileSync(join(folder, 'token'), `${TOKEN}\n`);
    writeFileSync(join(folder, 'key.pem'), pem.secret);
  });
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  test('behaviour: a bearer token belongs to its receiver', () => {
    const written = `{ url: https://f.example, auth: { kind: bearer, token: ${TOKEN} } }`;
    expect(facilitatorOf(written)).toMatchObject({ auth: { kind: 'bearer', token: TOKEN }, account: 'a' });
  });

  test('behaviour: a facilitator’s token and key are read from files of their own', () => {
    const written = `[{ url: https://f.example, auth: { kind: bearer, token_file: token } }, { auth: { kind: cdp, key_id: k, key_secret_file: key.pem } }]`;
    const [first, second] =
      configOf(receiver(written), {}, join(folder, 't.yaml')).receivers[0]?.ways[0]?.facilitators ?? [];
    expect(first?.auth).toEqual({ kind: 'bearer', token: TOKEN });
    expect(second).toMatchObject({ url: CDP_URL, account: 'k' });
    expect(signsFor(second?.auth, pem)).toBe(true);
  });

  test('behaviour: a facilitator of a known kind has a known URL, which may be another', () => {
    const written = (kind: string, secret: string): string =>
      `auth: { kind: ${kind}, key_id: k, key_secret: "${secret}" }`;
    expect(facilitatorOf(`{ ${written('cdp', cdp.secret)} }`)?.url).toBe(CDP_URL);
    expect(facilitatorOf(`{ ${written('payai', payai.secret)} }`)?.url).toBe(PAYAI_URL);
    expect(facilitatorOf(`{ url: "http://127.0.0.1:1/x", ${written('cdp', cdp.secret)} }`)?.url).toBe(
      'http://127.0.0.1:1/x',
    );
  });

  test.each([
    'http://127.0.0.1:4021',
    'http://localhost:4021',
    'http://10.1.2.3',
    'http://[::1]:4021',
    'https://f.example',
  ])('behaviour: a facilitator’s secret may go to %s', (url) => {
    expect(facilitatorOf(`{ url: "${url}", auth: { kind: bearer, token: t } }`)?.url).toBe(url);
  });

  test.each(['http://f.example', 'http://8.8.8.8'])('behaviour: insecure lets a secret go to %s', (url) => {
    expect(problemsOf(receiver(`[{ url: "${url}", auth: { kind: bearer, token: t } }]`))).toEqual([
      expect.stringContaining(
        'receivers[0].facilitators[0].url: is plain http beyond this network, and auth would travel in the open',
      ),
    ]);
    expect(facilitatorOf(`{ url: "${url}", auth: { kind: bearer, token: t }, insecure: true }`)?.url).toBe(url);
  });

  test('behaviour: a mark can take the place of a facilitator’s secret that only the server knows', () => {
    const env = { CDP_API_KEY_ID: markOf('CDP_API_KEY_ID'), CDP_API_KEY_SECRET: markOf('CDP_API_KEY_SECRET') };
    expect(facilitatorOf('cdp', env)?.auth).toMatchObject({ kind: 'cdp' });
  });

  test.each<[string, string, string]>([
    ['no kind', 'auth: { token: t }', 'auth.kind: is missing; write bearer, cdp or payai'],
    ['a kind that is none', 'auth: { kind: basic, token: t }', 'auth.kind: is not known; write bearer, cdp or payai'],
    ['a bearer without token', 'auth: { kind: bearer }', 'auth.token: is missing; auth of kind bearer needs it'],
    [
      'a bearer with a key',
      'auth: { kind: bearer, token: t, key_id: k }',
      'auth.key_id: is not of kind bearer; take it out',
    ],
    [
      'cdp without its id',
      `auth: { kind: cdp, key_secret: "${cdp.secret}" }`,
      'auth.key_id: is missing; auth of kind cdp needs it',
    ],
    [
      'cdp without its secret',
      'auth: { kind: cdp, key_id: k }',
      'auth.key_secret: is missing; auth of kind cdp needs it',
    ],
    [
      'a key of another form',
      'auth: { kind: payai, key_id: k, key_secret: hunter2 }',
      'auth.key_secret: is not a PayAI key: base64 of',
    ],
    [
      'a token with a space',
      'auth: { kind: bearer, token: "a b" }',
      'auth.token: is not the token that the facilitator gave out',
    ],
    ['a token over 8 KiB', `auth: { kind: bearer, token: ${'t'.repeat(8193)} }`, 'auth.token: is not the token'],
    [
      'a misspelled key',
      'auth: { kind: cdp, key_id: k, key_secrt: s }',
      'auth.key_secrt: is not known here; did you mean key_secret?',
    ],
    [
      'a header beside it',
      'headers: { authorization: x }, auth: { kind: bearer, token: t }',
      'headers.authorization: stands beside auth',
    ],
    ['insecure without it', 'insecure: true', 'insecure: stands without auth'],
    [
      'a token file that is away',
      'auth: { kind: bearer, token_file: nowhere }',
      'auth.token_file: names a file that cannot be read',
    ],
    [
      'token and token file',
      'auth: { kind: bearer, token: t, token_file: token }',
      'auth.token_file: stands beside token',
    ],
  ])('refuses: auth with %s', (_, written, problem) => {
    expect(problemsOf(receiver(`[{ url: "https://f.example", ${written} }]`))).toEqual([
      expect.stringContaining(`receivers[0].facilitators[0].${problem}`),
    ]);
  });

  test('attack: no complaint about a facilitator repeats what stands there', () => {
    const secret = `${cdp.secret.slice(0, -6)}AAAA==`;
    const [problem = ''] = problemsOf(receiver(`[{ auth: { kind: cdp, key_id: k, key_secret: "${secret}" } }]`));
    expect(problem).toContain('holds a public key that does not belong to its private key');
    for (const piece of secret.match(/.{12}/g) ?? []) expect(problem).not.toContain(piece);
  });
});
