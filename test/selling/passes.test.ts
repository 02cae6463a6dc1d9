// Passes as they are sold and shown: what a 402 offers, what a payment buys, how a pass by seconds is presented, and every way in
// which somebody presents one that is not theirs, not ours, or not good here.
import type { RequestListener } from 'node:http';
import { createPrivateKey, generateKeyPairSync, sign } from 'node:crypto';
import { privateKeyToAccount, generatePrivateKey } from 'viem/accounts';
import { createSIWxMessage, encodeSIWxHeader } from '@x402/extensions/sign-in-with-x';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { tellWhy } from '../../src/cli/why-text.ts';
import type { SoldPass } from '../../src/domain/selling/pass.ts';
import type { WhyReport } from '../../src/registry/charges/charge-schemas.ts';
import { createPassTokens } from '../../src/domain/selling/pass-token.ts';
import { writeBase58 } from '../../src/gateway/rails/svm/addresses.ts';
import { makeUpPayment } from '../support/made-up-payment.ts';
import { buyPass, present as presentPass, tokenOf, type Bought } from './bought-passes.ts';
import { codeOf, seriesOf, startPlans, type Answer, type Ask, type PlanKit } from './kit.ts';

type Entry = {
  readonly amount: string;
  readonly payTo: string;
  readonly network: string;
  readonly extra: { readonly external_ref: string; readonly pass?: { readonly id: string } };
  readonly [field: string]: unknown;
};
type Required402 = {
  readonly accepts: readonly Entry[];
  readonly extensions?: { readonly 'sign-in-with-x'?: { readonly info: Record<string, string> } };
};

const DAY = '{ id: day, amount: "0.75", seconds: 86400 }';
const PLANS = [
  'selling:',
  '  plans:',
  `    - { id: api, passes: [${DAY}, { id: one, amount: "0.20", seconds: 3600, scope: route }], cookie: true }`,
  '    - { id: other, passes: [{ id: day, amount: "0.75", seconds: 86400 }] }',
  '    - { id: only, single: false, passes: [{ id: week, amount: "0.90", seconds: 604800 }], wallet: false }',
].join('\n');
const SECRETS = 'charges: { secrets: ["first-secret-of-the-passes-of-32-bytes"] }';
const ROUTES = [
  'routes:',
  '  - { method: GET, route_pattern: "/a", amount: "0.10", plan_id: api }',
  '  - { method: POST, route_pattern: "/a", amount: "0.10", plan_id: api }',
  '  - { method: GET, route_pattern: "/b", amount: "0.10", plan_id: api }',
  '  - { method: GET, route_pattern: "/shop/:id", amount: "0.10", plan_id: api }',
  '  - { method: GET, route_pattern: "/shop/vault", amount: "0.10", plan_id: api }',
  '  - { method: GET, route_pattern: "/other", amount: "0.10", plan_id: other }',
  '  - { method: GET, route_pattern: "/only", amount: "0.10", plan_id: only }',
  '  - { method: GET, route_pattern: "/plain", amount: "0.10" }',
].join('\n');
const PUBLIC = 'https://api.example.com';

let kit: PlanKit;
beforeAll(async () => {
  const handle: RequestListener = (req, res) => {
    if (req.url?.endsWith('?fails') === true) res.statusCode = 500;
    if (req.url?.endsWith('?missing') === true) res.statusCode = 404;
    res.end(`served ${req.url}`);
  };
  kit = await startPlans([PLANS, SECRETS, ROUTES].join('\n'), { handle, proxy: `public_url: "${PUBLIC}"` });
});
afterAll(() => kit?.close());

const readRequired = ({ headers }: Answer): Required402 =>
  JSON.parse(Buffer.from(String(headers['payment-required']), 'base64').toString()) as Required402;
const offered = async (target: string, ask?: Ask): Promise<Required402> => readRequired(await kit.ask(target, ask));
const entryOf = ({ accepts }: Required402, pass: string | undefined): Entry => {
  const found = accepts.find(({ extra }) => extra.pass?.id === pass);
  if (found === undefined) throw new Error(`${pass} is not offered`);
  return found;
};
const buy = (target: string, pass: string, ask?: Ask): Promise<Bought> => buyPass(kit, target, pass, ask);
const present = (target: string, token: string, more?: Ask): Promise<Answer> => presentPass(kit, target, token, more);
const reasonOf = ({ headers }: Answer): unknown => headers['tollgate-reason'];

describe('what a 402 offers', () => {
  test('behaviour: a 402 shows the single price first and each pass after it, each with its own amount and reference', async () => {
    const answer = await kit.ask('/a');
    const { accepts } = readRequired(answer);
    expect(accepts.map(({ amount, extra }) => [amount, extra.pass])).toEqual([
      ['100000', undefined],
      ['750000', { id: 'day', seconds: 86400, scope: 'plan', valid: 86400 }],
      ['200000', { id: 'one', seconds: 3600, scope: 'route', valid: 3600 }],
    ]);
    expect(new Set(accepts.map(({ extra }) => extra.external_ref)).size).toBe(3);
    const body = JSON.parse(answer.body) as { amount: string; charge_id: string };
    expect([body.amount, body.charge_id]).toEqual(['0.10', accepts[0]?.extra.external_ref]);
  });

  test('behaviour: a plan that sells no single requests offers its pass first, in the body too', async () => {
    const answer = await kit.ask('/only');
    const { accepts } = readRequired(answer);
    expect(accepts.map(({ extra }) => extra.pass?.id)).toEqual(['week']);
    expect(JSON.parse(answer.body)).toMatchObject({
      amount: '0.90',
      charge_id: accepts[0]?.extra.external_ref,
      x402_requirements: { amount: '0.90' },
    });
    const { answer: bought } = await buy('/only', 'week');
    expect([bought.status, bought.headers['tollgate-pass-left']]).toEqual([200, '604800s']);
  });

  test('behaviour: a route without a plan answers as it did: one price, no extension', async () => {
    const { accepts, extensions } = await offered('/plain');
    expect([accepts.length, extensions]).toEqual([1, undefined]);
  });

  test('attack: a path that another route may mean is sold no pass, and takes none', async () => {
    const { answer } = await buy('/shop/7', 'day');
    const folded = await kit.ask('/shop/vault;x');
    expect(folded.status).not.toBe(200);
    const token = tokenOf(answer);
    expect((await present('/shop/7', token)).status).toBe(200);
    const two = await present('/SHOP/vault', token);
    expect([two.status, two.status === 402 ? readRequired(two).accepts.length : 1]).toEqual([402, 1]);
  });
});

describe('what operators are told', () => {
  type Tried = {
    readonly answer: { readonly headers: readonly (readonly [string, string])[] } | null;
    readonly plan: { readonly decides: string } | null;
  };
  const tried = async (path: string): Promise<Tried> =>
    JSON.parse(
      (await kit.dashboard('GET', `/v1/billing/try?${new URLSearchParams({ method: 'GET', path })}`)).body,
    ) as Tried;
  const entriesOf = (accepts: readonly Entry[]): unknown => accepts.map(({ amount, extra }) => [amount, extra.pass]);

  test('behaviour: a tried request is offered what the proxy offers it: passes, and none where another route may be meant', async () => {
    for (const [path, count] of [
      ['/a', 3],
      ['/only', 1],
      ['/SHOP/vault', 1],
      ['/plain', 1],
    ] as const) {
      const { answer } = await tried(path);
      const [, header = ''] = answer?.headers.find(([name]) => name === 'PAYMENT-REQUIRED') ?? [];
      const { accepts } = JSON.parse(Buffer.from(header, 'base64').toString()) as Required402;
      expect([path, accepts.length, entriesOf(accepts)]).toEqual([
        ...[path, count],
        entriesOf((await offered(path)).accepts),
      ]);
    }
    expect((await tried('/a')).plan?.decides).toBe(
      'by the plan api: free with a pass (day: 0.75 for 86400 seconds, one: 0.20 for 3600 seconds), then a payment of 0.10 USD at most',
    );
    expect((await tried('/only')).plan?.decides).toBe(
      'by the plan only: free with a pass (week: 0.90 for 604800 seconds), then a payment for such a pass',
    );
  });

  test('behaviour: why says in a sentence what was wrong with a pass', async () => {
    const why = async (target: string, headers: Record<string, string>): Promise<string> => {
      const answer = await kit.ask(target, { headers });
      const { body } = await kit.dashboard('GET', `/v1/billing/why/${String(answer.headers['x-request-id'])}`);
      return tellWhy(JSON.parse(body) as WhyReport, kit.now()).join('\n');
    };
    const { answer } = await buy('/a', 'one');
    const token = tokenOf(answer);
    const unknown = await why('/a', { 'tollgate-pass': `pass_${'A'.repeat(152)}` });
    expect(unknown).toContain('because: the pass that was shown is not one of ours');
    const elsewhere = await why('/b', { 'tollgate-pass': token });
    expect(elsewhere).toContain('because: the pass that was shown is good for another plan or route');
    const malformed = await why('/a', { 'tollgate-pass': 'pass' });
    expect(malformed).toContain('because: the request showed two passes, or one that was never given here');
    const refusal = { at: new Date(0).toISOString(), request_id: 'r', method: 'GET', path: '/a', status: 402 };
    const rest = { outcome: 'payment_required', route_id: null, route_pattern: null, charge_id: null };
    for (const [reason, sentence] of [
      ['pass_expired', 'the pass that was shown had come to its end'],
      ['pass_used_up', 'nothing was left of the pass that was shown'],
      ['pass_revoked', 'the pass that was shown was revoked'],
      ['wallet_unsupported', 'the wallet that signed in is a contract'],
      ['pass_in_use', 'what was left of the pass was held by requests under way'],
      ['idempotency_conflict', 'the Idempotency-Key of this use stands for another request'],
      ['too_many_passes', 'the payer has four passes of this plan'],
    ])
      expect(
        tellWhy({ charges: [], quote: null, refusals: [{ ...refusal, ...rest, reason }] } as never, 0).join(),
      ).toContain(`because: ${sentence}`);
  });
});

describe('a pass by seconds', () => {
  test('behaviour: a payment buys the pass that it names, and the answer carries token and rest', async () => {
    const before = await kit.metrics();
    const { answer } = await buy('/a', 'day');
    expect([answer.status, answer.body]).toEqual([200, 'served /a']);
    expect(answer.headers['tollgate-pass']).toMatch(/^pass_[A-Za-z0-9_-]{1,155}$/);
    expect(tokenOf(answer).length).toBeLessThanOrEqual(160);
    expect(answer.headers['tollgate-pass-left']).toBe('86400s');
    expect(answer.headers['payment-response']).toBeDefined();
    expect(kit.told()).toMatchObject({ 'tollgate-access': 'paid', 'tollgate-amount': '0.75' });
    const sold = (text: string): number => Number(seriesOf(text, 'tollgate_passes_sold_total', { pass: 'day' }) ?? 0);
    expect(sold(await kit.metrics()) - sold(before)).toBe(1);
  });

  test('behaviour: every request of its scope passes by the token, at no charge, until it ends', async () => {
    const { answer } = await buy('/a', 'day');
    const token = tokenOf(answer);
    const calls = kit.facilitated.length;
    for (const [target, method] of [
      ['/a', 'GET'],
      ['/b', 'GET'],
      ['/a', 'POST'],
    ] as const) {
      const used = await present(target, token, { method });
      expect([used.status, used.headers['tollgate-pass'], used.headers['payment-response']]).toEqual([
        200,
        token,
        undefined,
      ]);
      expect(kit.told()).toMatchObject({ 'tollgate-access': 'pass' });
      expect(kit.told()).not.toHaveProperty('tollgate-pass');
      expect(kit.told()).not.toHaveProperty('tollgate-charge-id');
    }
    expect(kit.facilitated.length).toBe(calls);
    const metrics = await kit.metrics();
    expect(Number(seriesOf(metrics, 'tollgate_pass_uses_total', { plan: 'api', pass: 'day' }))).toBeGreaterThan(2);
    expect(seriesOf(metrics, 'tollgate_requests_total', { outcome: 'pass' })).toBeDefined();
    const logged = kit.lines.filter(({ outcome }) => outcome === 'pass');
    expect(logged.at(-1)).toMatchObject({ charge_id: expect.stringMatching(/^chg_/) });
    expect(JSON.stringify(kit.lines)).not.toContain(token);
  });

  test('behaviour: a pass keeps the end that it was sold with, and tells it, though the plan now sells a shorter one for the same money', async () => {
    const text = [PLANS, SECRETS, ROUTES].join('\n');
    const { answer } = await buy('/a', 'day');
    await kit.reload(text.replace('amount: "0.75", seconds: 86400 }', 'amount: "0.75", seconds: 3600 }'));
    const told = async (): Promise<unknown> => {
      const { status, headers } = await present('/a', tokenOf(answer));
      const life = /Max-Age=(\d+)/.exec(String(headers['set-cookie']))?.[1];
      return [status, headers['tollgate-pass-left'], `${life}s`];
    };
    const whole = expect.stringMatching(/^863\d\ds$|^86400s$/) as string;
    expect(await told()).toEqual([200, whole, whole]);
    kit.pass(2 * 3_600_000);
    const rest = expect.stringMatching(/^791\d\ds$|^79200s$/) as string;
    expect(await told()).toEqual([200, rest, rest]);
    await kit.reload(text);
  });

  test('behaviour: the identical payment is as good as the token on every route of its scope, whatever happened to the answer', async () => {
    const { credential } = await buy('/a', 'day');
    const calls = kit.facilitated.length;
    for (const target of ['/a', '/b']) {
      const again = await kit.ask(target, { headers: { 'payment-signature': credential } });
      expect([again.status, again.body]).toEqual([200, `served ${target}`]);
      expect(again.headers['tollgate-pass-left']).toMatch(/^863\d\ds$|^86400s$/);
    }
    expect(kit.facilitated.length).toBe(calls);
    const elsewhere = await kit.ask('/other', { headers: { 'payment-signature': credential } });
    expect([elsewhere.status, reasonOf(elsewhere)]).toEqual([402, 'pass_scope']);
  });

  test('attack: the signed part of a payment that bought a pass, without our charge id, is no pass', async () => {
    const { credential } = await buy('/a', 'day');
    const rebuilt = JSON.parse(Buffer.from(credential, 'base64').toString()) as { accepted: Entry };
    const { external_ref: _, ...extra } = rebuilt.accepted.extra;
    const forged = { ...rebuilt, accepted: { ...rebuilt.accepted, extra } };
    const answer = await kit.ask('/a', {
      headers: { 'payment-signature': Buffer.from(JSON.stringify(forged)).toString('base64') },
    });
    expect([answer.status, answer.headers['tollgate-pass']]).toEqual([402, undefined]);
  });

  test('behaviour: an upstream that fails after the settlement leaves the pass as it is', async () => {
    const { answer } = await buy('/a?fails', 'day', { method: 'POST' });
    expect([answer.status, answer.headers['payment-response'] === undefined]).toEqual([500, false]);
    expect((await present('/b', tokenOf(answer))).status).toBe(200);
  });

  test('behaviour: an answer that is not charged sells no pass', async () => {
    const { answer } = await buy('/a?missing', 'day');
    expect([answer.status, answer.headers['tollgate-pass']]).toEqual([404, undefined]);
  });

  test('behaviour: a payment for the single price buys one request and no pass', async () => {
    const answer = await kit.pay('/a');
    expect([answer.status, answer.headers['tollgate-pass']]).toEqual([200, undefined]);
  });

  test('behaviour: a cookie is given where the plan says so, and takes its holder on this site in', async () => {
    const { answer } = await buy('/a', 'day');
    const cookie = String(answer.headers['set-cookie']);
    expect(cookie).toMatch(/^tollgate_pass=pass_[\w-]+; HttpOnly; SameSite=Lax; Path=\/; Max-Age=86400; Secure$/);
    const pair = cookie.split(';', 1)[0] ?? '';
    const headers = { cookie: `theirs=1; ${pair}; more=2` };
    const used = await kit.ask('/b', { headers });
    expect([used.status, kit.told()['cookie']]).toEqual([200, 'theirs=1; more=2']);
    const foreign = { ...headers, 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'no-cors' };
    expect((await kit.ask('/b', { headers: foreign })).status).toBe(402);
    const link = { ...headers, 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'navigate' };
    expect((await kit.ask('/b', { headers: link })).status).toBe(200);
    const noCookies = await buy('/other', 'day');
    expect(noCookies.answer.headers['set-cookie']).toBeUndefined();
    const given = { cookie: `tollgate_pass=${tokenOf(noCookies.answer)}` };
    expect((await kit.ask('/other', { headers: given })).status).toBe(402);
    const doubled = { cookie: `${pair}; ${pair}` };
    expect((await kit.ask('/b', { headers: doubled })).status).toBe(402);
  });
});

describe('attack: a pass that is no good', () => {
  test.each([
    ['two of them', ['pass_AAAA', 'pass_BBBB']],
    ['no token', 'pass'],
    ['one with a space', 'pass_AA AA'],
    ['one of 161 characters', `pass_${'A'.repeat(156)}`],
    ['two in one line', 'pass_AAAA, pass_BBBB'],
  ])('attack: %s in Tollgate-Pass is 400 pass_malformed', async (_, value) => {
    const answer = await kit.ask('/a', { headers: { 'tollgate-pass': value } });
    expect([answer.status, codeOf(answer)]).toEqual([400, 'pass_malformed']);
  });

  test('attack: a made-up token, a changed one and one of another secret are pass_unknown', async () => {
    const { answer } = await buy('/a', 'day');
    const token = tokenOf(answer);
    const sold: SoldPass = {
      ...{ planId: 'api', termsId: 'day', validMs: 1, first: '0', seconds: 86400 },
      kind: 'seconds',
      scope: 'plan',
      ...{ passId: '', chargeId: `chg_${'A'.repeat(112)}`, routeId: '', payer: '', network: '', soldAtMs: 0 },
      ...{ endsAtMs: kit.now() + 1e9, amount: '0.75', currency: 'USD' },
    };
    const foreign = createPassTokens(['another-secret-of-at-least-32-bytes!']).write(sold);
    for (const [index, wrong] of [
      `pass_${'A'.repeat(152)}`,
      ...[5, 9, 14, 24, 40, 100, 150].map(
        (at) => token.slice(0, at) + (token[at] === 'B' ? 'C' : 'B') + token.slice(at + 1),
      ),
      foreign,
      `${token}A`,
      token.slice(0, -4),
    ].entries()) {
      const refused = await present('/a', wrong);
      expect([index, refused.status, reasonOf(refused)]).toEqual([index, 402, 'pass_unknown']);
    }
  });

  test('attack: a pass of another plan or of another route is pass_scope', async () => {
    const { answer: api } = await buy('/a', 'day');
    const elsewhere = await present('/other', tokenOf(api));
    expect([elsewhere.status, reasonOf(elsewhere)]).toEqual([402, 'pass_scope']);
    const { answer: one } = await buy('/a', 'one');
    expect((await present('/a', tokenOf(one))).status).toBe(200);
    const beside = await present('/b', tokenOf(one));
    expect([beside.status, reasonOf(beside)]).toEqual([402, 'pass_scope']);
    expect((await present('/plain', tokenOf(api))).status).toBe(402);
  });

  test('attack: the charge id of a 402 for a cheap pass buys no dear one, and none on another route', async () => {
    const required = await offered('/a');
    const [cheap, dear] = [entryOf(required, 'one'), entryOf(required, 'day')];
    const crossed = { ...dear, extra: { ...dear.extra, external_ref: cheap.extra.external_ref } };
    const answer = await kit.ask('/a', { headers: { 'payment-signature': makeUpPayment(crossed, kit.now()) } });
    expect([answer.status, answer.headers['tollgate-pass']]).toEqual([402, undefined]);
    const underpaid = { ...dear, amount: cheap.amount };
    const second = await kit.ask('/a', { headers: { 'payment-signature': makeUpPayment(underpaid, kit.now()) } });
    expect([second.status, second.headers['tollgate-pass']]).toEqual([402, undefined]);
    const moved = await kit.ask('/b', { headers: { 'payment-signature': makeUpPayment(cheap, kit.now()) } });
    expect([moved.status, String(reasonOf(moved)).split(':', 1)[0]]).toEqual([402, 'quote_mismatch']);
  });
});

describe('a wallet signs in', () => {
  const secret = generatePrivateKey();
  const account = privateKeyToAccount(secret);
  type Info = Record<string, string>;
  const infoOf = async (target: string): Promise<Info> => {
    const { extensions } = await offered(target);
    return { ...extensions?.['sign-in-with-x']?.info, chainId: 'eip155:84532', type: 'eip191' };
  };
  const headerOf = async (info: Info, signer = account): Promise<string> => {
    const signature = await signer.signMessage({ message: createSIWxMessage(info as never, signer.address) });
    return encodeSIWxHeader({ ...info, address: signer.address, signature } as never);
  };
  const signIn = (target: string, value: string | readonly string[]): Promise<Answer> =>
    kit.ask(target, { headers: { 'sign-in-with-x': value } });

  test('behaviour: a 402 declares sign-in-with-x as the reference does, for this site alone', async () => {
    const { extensions } = await offered('/other');
    const declared = extensions?.['sign-in-with-x'];
    expect(declared).toMatchObject({
      info: { domain: 'api.example.com', uri: PUBLIC, version: '1', nonce: expect.stringMatching(/^[0-9a-f]{40}$/) },
      supportedChains: [{ chainId: 'eip155:84532', type: 'eip191' }],
      schema: { $schema: 'https://json-schema.org/draft/2020-12/schema' },
    });
    expect((await offered('/a')).extensions?.['sign-in-with-x']?.info['domain']).toBe('api.example.com');
    expect((await offered('/only')).extensions).toBeUndefined();
  });

  test('refuses: a signature that proves who asks does not prove that anything was paid', async () => {
    const answer = await signIn('/a', await headerOf(await infoOf('/a')));
    expect([answer.status, reasonOf(answer)]).toEqual([402, 'pass_unknown']);
    expect(kit.upstream.seen.at(-1)?.headers).not.toHaveProperty('sign-in-with-x');
  });

  test('attack: a doubled or unreadable sign-in is 400 pass_malformed', async () => {
    const good = await headerOf(await infoOf('/a'));
    const doubled = await signIn('/a', [good, good]);
    expect([doubled.status, codeOf(doubled)]).toEqual([400, 'pass_malformed']);
    const junk = await signIn('/a', 'e30=');
    expect([junk.status, codeOf(junk)]).toEqual([400, 'pass_malformed']);
  });

  test('refuses: a signature of a contract, which only its chain can judge', async () => {
    const info = await infoOf('/a');
    const value = encodeSIWxHeader({ ...info, address: account.address, signature: `0x${'ab'.repeat(96)}` } as never);
    const answer = await signIn('/a', value);
    expect([answer.status, reasonOf(answer)]).toEqual([402, 'wallet_unsupported']);
  });

  test('behaviour: a signature of a Solana wallet is read', async () => {
    const { privateKey, publicKey } = generateKeyPairSync('ed25519');
    const key = Buffer.from(String(publicKey.export({ format: 'jwk' }).x), 'base64url');
    const address = writeBase58(key);
    const info = { ...(await infoOf('/a')), chainId: 'solana:EtWTRABZaYq6iMfeYKouRu166VU2xqa1', type: 'ed25519' };
    const message = Buffer.from(createSIWxMessage(info as never, address));
    const signature = writeBase58(
      sign(null, message, createPrivateKey(privateKey.export({ format: 'pem', type: 'pkcs8' }))),
    );
    const answer = await signIn('/a', encodeSIWxHeader({ ...info, address, signature } as never));
    expect([answer.status, reasonOf(answer)]).toEqual([402, 'pass_unknown']);
  });
});
