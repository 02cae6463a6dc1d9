// A wallet that finds its pass by its signature (SIGN-IN-WITH-X): a good one gets in and is handed the token, of the pass that ends
// first; and every way in which one is not good, up to the edges of its time and of how many a client may get wrong.
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { generatePrivateKey, privateKeyToAccount, type PrivateKeyAccount } from 'viem/accounts';
import { createSIWxMessage, encodeSIWxHeader } from '@x402/extensions/sign-in-with-x';
import { LedgerUnavailable } from '../../src/domain/payment/ledger.ts';
import { createSignInNonces } from '../../src/domain/selling/sign-in.ts';
import { createSignIn, type SignInDeps } from '../../src/gateway/selling/passes/wallet-sign-in.ts';
import { createRateLimit } from '../../src/host/rate-limit.ts';
import { createSlowLane } from '../../src/host/slow-lane.ts';
import { makeUpPayment } from '../support/made-up-payment.ts';
import { codeOf, startPlans, type Answer, type Ask, type PlanKit } from './kit.ts';

const PUBLIC = 'https://api.example.com';
const SECRET = 'first-secret-of-the-passes-of-32-bytes';
const LIFE_MS = 300_000;
const TEXT = [
  'selling:',
  '  plans:',
  '    - { id: api, passes: [{ id: day, amount: "0.75", seconds: 86400 }, { id: three, amount: "0.50", uses: 3, valid: 30m }] }',
  '    - { id: other, passes: [{ id: day, amount: "0.75", seconds: 86400 }] }',
  '    - { id: paid, passes: [{ id: small, amount: "0.30", credit: "0.25", valid: 30m }, { id: large, amount: "0.90", credit: "1.00" }] }',
  '    - { id: deaf, passes: [{ id: day, amount: "0.75", seconds: 86400 }], wallet: false }',
  `charges: { secrets: ["${SECRET}"] }`,
  'routes:',
  '  - { method: GET, route_pattern: "/a", amount: "0.10", plan_id: api }',
  '  - { method: GET, route_pattern: "/other", amount: "0.10", plan_id: other }',
  '  - { method: GET, route_pattern: "/paid", amount: "0.10", plan_id: paid }',
  '  - { method: GET, route_pattern: "/deaf", amount: "0.10", plan_id: deaf }',
].join('\n');

let kit: PlanKit;
let isAway = false;
beforeAll(async () => {
  kit = await startPlans(TEXT, {
    proxy: `public_url: "${PUBLIC}", trusted_proxies: [127.0.0.1]`,
    aroundPasses: (ledger) => ({
      ...ledger,
      ofPayer: (payer) => (isAway ? Promise.reject(new LedgerUnavailable('it is away')) : ledger.ofPayer(payer)),
    }),
  });
  kit.hold();
});
afterAll(() => kit?.close());
// Each test comes from a client of its own.
let clients = 0;
beforeEach(() => void clients++);
const from = (client: number): string => `198.51.100.${client}`;

type Info = Record<string, string>;
type Entry = Parameters<typeof makeUpPayment>[0] & { readonly extra: { readonly pass?: { readonly id: string } } };
const requiredOf = async (
  target: string,
): Promise<{ accepts: readonly Entry[]; extensions?: { 'sign-in-with-x'?: { info: Info } } }> => {
  const { headers } = await kit.ask(target);
  return JSON.parse(Buffer.from(String(headers['payment-required']), 'base64').toString()) as never;
};
const newWallet = (): PrivateKeyAccount => privateKeyToAccount(generatePrivateKey());
async function buy(target: string, pass: string, wallet: PrivateKeyAccount): Promise<Answer> {
  const { accepts } = await requiredOf(target);
  const entry = accepts.find(({ extra }) => extra.pass?.id === pass);
  if (entry === undefined) throw new Error(`${pass} is not offered`);
  return kit.ask(target, {
    headers: { 'payment-signature': makeUpPayment(entry, kit.now(), wallet.address) },
  });
}
async function infoOf(target = '/a'): Promise<Info> {
  const { extensions } = await requiredOf(target);
  return { ...extensions?.['sign-in-with-x']?.info, chainId: 'eip155:84532', type: 'eip191' };
}
/** A sign-in with `info`, whose message is signed by `signer` for the account of `wallet`. */
async function headerOf(info: Info, wallet: PrivateKeyAccount, signer = wallet, signed = info): Promise<string> {
  const signature = await signer.signMessage({ message: createSIWxMessage(signed as never, wallet.address) });
  return encodeSIWxHeader({ ...info, address: wallet.address, signature } as never);
}
const signIn = (target: string, value: string, client = clients, more: Ask = {}): Promise<Answer> =>
  kit.ask(target, { ...more, headers: { ...more.headers, 'sign-in-with-x': value, 'x-forwarded-for': from(client) } });
const tokenOf = ({ headers }: Answer): string => String(headers['tollgate-pass']);
const leftOf = ({ headers }: Answer): unknown => headers['tollgate-pass-left'];
const reasonOf = ({ status, headers }: Answer): unknown => [status, headers['tollgate-reason']];

describe('a good signature', () => {
  test('behaviour: a wallet that bought a pass passes by its signature, and is handed the token', async () => {
    const wallet = newWallet();
    const bought = await buy('/a', 'day', wallet);
    const asked = kit.upstream.seen.length;
    const signedIn = await signIn('/a', await headerOf(await infoOf(), wallet));
    expect([signedIn.status, tokenOf(signedIn), leftOf(signedIn)]).toEqual([200, tokenOf(bought), '86400s']);
    expect(kit.upstream.seen.length - asked).toBe(1);
    expect(kit.told()).toMatchObject({ 'tollgate-access': 'pass' });
    for (const name of ['sign-in-with-x', 'tollgate-pass']) expect(kit.told()).not.toHaveProperty(name);
    const used = await kit.ask('/a', { headers: { 'tollgate-pass': tokenOf(signedIn) } });
    expect(used.status).toBe(200);
  });

  test('behaviour: it finds the pass that ends first, the next one once that is used up, and none of another plan', async () => {
    const wallet = newWallet();
    for (const pass of ['day', 'three']) await buy('/a', pass, wallet);
    const lefts: unknown[] = [];
    for (let times = 0; times < 3; times++)
      lefts.push(leftOf(await signIn('/a', await headerOf(await infoOf(), wallet))));
    expect(lefts).toEqual(['1', '0', '86400s']);
    const elsewhere = await signIn('/other', await headerOf(await infoOf(), wallet));
    expect(reasonOf(elsewhere)).toEqual([402, 'pass_scope']);
  });

  test('behaviour: a credit that holds less than a request costs does not hide the next one', async () => {
    const wallet = newWallet();
    await buy('/paid', 'small', wallet);
    const value = await headerOf(await infoOf('/paid'), wallet);
    expect(leftOf(await signIn('/paid', value))).toBe('0.05 USD');
    expect(reasonOf(await signIn('/paid', value))).toEqual([402, 'pass_used_up']);
    const large = await buy('/paid', 'large', wallet);
    const next = await signIn('/paid', value);
    expect([next.status, tokenOf(next), leftOf(next)]).toEqual([200, tokenOf(large), '0.80 USD']);
  });

  test('refuses: a wallet whose passes are used up, one that bought none, and any where the plan says so', async () => {
    const wallet = newWallet();
    await buy('/a', 'three', wallet);
    for (const status of [200, 200, 402])
      expect((await signIn('/a', await headerOf(await infoOf(), wallet))).status).toBe(status);
    expect(reasonOf(await signIn('/a', await headerOf(await infoOf(), wallet)))).toEqual([402, 'pass_used_up']);
    expect(reasonOf(await signIn('/a', await headerOf(await infoOf(), newWallet())))).toEqual([402, 'pass_unknown']);
    const deaf = newWallet();
    await buy('/deaf', 'day', deaf);
    const unasked = await signIn('/deaf', await headerOf(await infoOf(), deaf));
    expect(reasonOf(unasked)).toEqual([402, 'payment_required']);
  });

  test('behaviour: a ledger that is away is 503, and nobody is asked to pay again', async () => {
    const wallet = newWallet();
    await buy('/a', 'day', wallet);
    const value = await headerOf(await infoOf(), wallet);
    isAway = true;
    const away = await signIn('/a', value);
    isAway = false;
    expect([away.status, codeOf(away), away.headers['retry-after']]).toEqual([503, 'ledger_unavailable', '5']);
    expect((await signIn('/a', value)).status).toBe(200);
  });
});

describe('a sign-in that is sent again, late or elsewhere', () => {
  test('attack: a sign-in is good until its nonce ends, however often it is sent and whenever it came first', async () => {
    const wallet = newWallet();
    await buy('/a', 'day', wallet);
    const [first, late] = [await headerOf(await infoOf(), wallet), await headerOf(await infoOf(), newWallet())];
    expect((await signIn('/a', first)).status).toBe(200);
    kit.pass(LIFE_MS - 1000);
    const unseen = await headerOf(await infoOf(), wallet);
    expect((await signIn('/a', first)).status).toBe(200);
    kit.pass(1000);
    // The last moment, for one that was seen and for one that was not.
    expect((await signIn('/a', first)).status).toBe(200);
    kit.pass(1);
    for (const value of [first, late]) expect(reasonOf(await signIn('/a', value))).toEqual([402, 'pass_unknown']);
    // One that comes first just before its end is good to that end, and no longer.
    kit.pass(LIFE_MS - 1000 - 1);
    expect((await signIn('/a', unseen)).status).toBe(200);
    kit.pass(1);
    expect(reasonOf(await signIn('/a', unseen))).toEqual([402, 'pass_unknown']);
  });

  test('attack: a signature for another site, another time, another chain or another account is nobody', async () => {
    const wallet = newWallet();
    await buy('/a', 'day', wallet);
    const info = await infoOf();
    const strange = createSignInNonces(['another-secret-of-at-least-32-bytes!']).issue(kit.now());
    const later = new Date(kit.now() + LIFE_MS).toISOString();
    const tried: Record<string, string> = {
      'another domain': await headerOf({ ...info, domain: 'evil.example' }, wallet),
      'another uri': await headerOf({ ...info, uri: 'https://evil.example' }, wallet),
      'our site over a signature for another': await headerOf(info, wallet, wallet, {
        ...info,
        domain: 'evil.example',
      }),
      'a nonce of another secret': await headerOf({ ...info, ...strange }, wallet),
      'a nonce that is made up': await headerOf({ ...info, nonce: 'ab'.repeat(20) }, wallet),
      'a longer life than was issued': await headerOf({ ...info, expirationTime: later }, wallet),
      'a statement that we did not write': await headerOf({ ...info, statement: 'Sign me' }, wallet),
      'the key of another wallet': await headerOf(info, wallet, newWallet()),
      'a signature for another chain': await headerOf(info, wallet, wallet, { ...info, chainId: 'eip155:8453' }),
    };
    const seen = kit.upstream.seen.length;
    for (const [what, value] of Object.entries(tried))
      expect([what, reasonOf(await signIn('/a', value))]).toEqual([what, [402, 'pass_unknown']]);
    expect(kit.upstream.seen.length).toBe(seen);
    expect((await signIn('/a', await headerOf(info, wallet))).status).toBe(200);
  });
});

describe('signatures that are no good', () => {
  test('attack: twenty wrong signatures of a client and more never turn a right one of it away', async () => {
    const wallet = newWallet();
    await buy('/a', 'day', wallet);
    const info = await infoOf();
    const wrong = await headerOf(info, wallet, newWallet());
    const answers = await Promise.all(Array.from({ length: 25 }, () => signIn('/a', wrong)));
    for (const answer of answers) expect(reasonOf(answer)).toEqual([402, 'pass_unknown']);
    expect((await signIn('/a', await headerOf(info, wallet))).status).toBe(200);
  });

  const site = { domain: 'api.example.com', uri: PUBLIC };
  const clock = { now: () => Date.parse('2026-12-01T00:00:00Z'), monotonic: () => 0 };
  const nonces = createSignInNonces([SECRET]);
  async function unit(places: number): Promise<{
    readonly read: ReturnType<typeof createSignIn>;
    readonly value: (isGood: boolean) => Promise<string>;
    readonly checked: () => number;
    readonly turn: () => void;
  }> {
    const wallet = newWallet();
    let checks = 0;
    const due: (() => void)[] = [];
    const deps: SignInDeps = {
      ...{ site, nonces, clock, spell: (account) => account },
      checkWallet: async (_chain, { signature }) => {
        checks++;
        return signature === `0x${'00'.repeat(65)}` ? 'forged' : 'genuine';
      },
      limit: createRateLimit({ perMinute: 20, burst: 20, keys: 100 }, clock.monotonic),
      slowly: createSlowLane({ pauseMs: 1, places }, (_ms, run) => {
        due.push(run);
        return () => undefined;
      }),
    };
    let made = 0;
    return {
      read: createSignIn(deps),
      value: async (isGood) => {
        const info = { ...site, version: '1', ...nonces.issue(clock.now()), chainId: 'eip155:84532', type: 'eip191' };
        const signature = `0x${(isGood ? 'ff' : '00').repeat(65)}`;
        return encodeSIWxHeader({ ...info, address: wallet.address, signature, requestId: String(made++) } as never);
      },
      checked: () => checks,
      turn: () => due.shift()?.(),
    };
  }

  test('attack: of a thousand wrong signatures at once twenty are checked, the next waits for its turn, and the lane has an end', async () => {
    const { read, value, checked, turn } = await unit(2);
    const values = await Promise.all(Array.from({ length: 1000 }, () => value(false)));
    const verdicts = values.map((each) => read(each, 'a'));
    await Promise.all(verdicts.slice(0, 21));
    expect(checked()).toBe(21);
    // The one behind it waits; all others were not looked at.
    await Promise.all(verdicts.slice(22));
    expect(checked()).toBe(21);
    turn();
    await verdicts[21];
    expect(checked()).toBe(22);
    for (const verdict of await Promise.all(verdicts))
      expect(verdict).toEqual({ kind: 'refused', because: 'pass_unknown' });
  });

  test('behaviour: the limit is of each client, at twenty and one past it, and right signatures do not count', async () => {
    const { read, value, checked } = await unit(0);
    for (let times = 0; times < 19; times++) await read(await value(false), 'a');
    for (let times = 0; times < 50; times++) expect((await read(await value(true), 'a')).kind).toBe('signed');
    expect((await read(await value(false), 'a')).kind).toBe('refused');
    expect(checked()).toBe(70);
    const known = await value(true);
    expect((await read(known, 'b')).kind).toBe('signed');
    for (const isGood of [false, true]) expect((await read(await value(isGood), 'a')).kind).toBe('refused');
    expect(checked()).toBe(71);
    // One that was checked is known, whoever shows it; and another client has a limit of its own.
    expect((await read(known, 'a')).kind).toBe('signed');
    expect((await read(await value(true), 'b')).kind).toBe('signed');
    expect(checked()).toBe(72);
  });
});
