// What was sent to a facilitator as a secret reaches no log, no client, no ledger and no terminal, whatever it answers.
import { randomBytes } from 'node:crypto';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { readSigningKey } from '../../../src/config/signing-keys.ts';
import type { Facilitator, FacilitatorAuth } from '../../../src/domain/payment/offer.ts';
import { checkReceivers } from '../../../src/gateway/rails/online-check.ts';
import { createAuthorize } from '../../../src/gateway/rails/x402/auth.ts';
import { createSecretFilter } from '../../../src/gateway/rails/x402/secrets.ts';
import { systemClock } from '../../../src/host/clock.ts';
import { newCdpAccount, newPayaiAccount, type NewAccount } from '../../support/callers.ts';
import {
  facilitatorAt,
  FRESH,
  GO,
  json,
  makeOffer,
  makeRail,
  makeReceiver,
  read,
  SIGNED,
  startScripted,
  type Scripted,
} from './kit.ts';
import { threadMs } from '../../support/thread-time.ts';

const PRESENTED = read(makeRail().rail, makeOffer(), SIGNED);

let facilitator: Scripted;
beforeEach(async () => {
  facilitator = await startScripted((_, res) => res.end());
});
afterEach(() => facilitator.close());

function authOf({ account, keyId, secret }: NewAccount): FacilitatorAuth {
  const kind = account.kind === 'payai' ? 'payai' : 'cdp';
  const key = readSigningKey(kind, secret);
  if (typeof key === 'string') throw new Error(key);
  return { kind, keyId, key };
}

const ACCOUNTS: readonly (readonly [string, Pick<Facilitator, 'auth' | 'headers'>, header: string])[] = [
  ['a bearer token', { auth: { kind: 'bearer', token: 'tok_live_4f9Kq2' }, headers: {} }, 'authorization'],
  ['a token of CDP', { auth: authOf(newCdpAccount('pem')), headers: {} }, 'authorization'],
  ['a token of PayAI', { auth: authOf(newPayaiAccount()), headers: {} }, 'authorization'],
  ['a key in a header', { auth: undefined, headers: { 'X-API-Key': 'key_live_77Zxw1' } }, 'x-api-key'],
];

const base64 = (text: string): string => Buffer.from(text).toString('base64');
const SPELLINGS: readonly (readonly [string, (secret: string) => string])[] = [
  ['as it was sent', (secret) => secret],
  ['in a sentence', (secret) => `no account for ${secret}, sorry`],
  ['in a word', (secret) => `unsupported_${secret}_key`],
  ['in lower case', (secret) => secret.toLowerCase()],
  ['percent-encoded', (secret) => `no%20${encodeURIComponent(secret).replaceAll('_', '%5F')}`],
  ['in base64', (secret) => base64(`who is ${secret}?`)],
  ['in base64 behind other letters', (secret) => `a${base64(`who is ${secret}?`)}`],
  ['in base64 of base64', (secret) => base64(JSON.stringify({ said: base64(secret) }))],
  ['in escapes of JSON', (secret) => base64(JSON.stringify(secret).replaceAll('_', '\\u005f'))],
];

/** Everything that was said of one payment and one check, with `answer` to every call. */
async function everythingSaid(
  account: Pick<Facilitator, 'auth' | 'headers'>,
  answer: Scripted['answer'],
): Promise<string> {
  facilitator.answer = answer;
  const called: Facilitator = { ...facilitatorAt(facilitator.url), ...account, account: 'default' };
  const { rail, lines } = makeRail();
  const offer = makeOffer({ facilitators: [called] });
  const deps = { fetch, clock: systemClock, authorize: createAuthorize(systemClock, randomBytes), v1: false };
  const said = [
    await rail.verify(PRESENTED, offer),
    await rail.settle(PRESENTED, offer, FRESH, GO),
    await rail.settle(PRESENTED, offer, { afterUnknown: true, via: undefined }, GO),
    await checkReceivers([makeReceiver({ facilitators: [called] })], deps),
    rail.standing([called]),
  ];
  expect(facilitator.requests.length).toBeGreaterThan(3);
  return [JSON.stringify(said), ...lines].join('\n');
}

/** Every text that somebody who saw `text` could read in it. */
const readings = (text: string): string =>
  [
    text,
    decodeURIComponent(text.replaceAll(/%(?![0-9a-f]{2})/gi, '')),
    text.replaceAll(/\\+u005f/g, '_'),
    ...(text.match(/[A-Za-z0-9+/_-]{8,}=*/g) ?? []).flatMap((run) =>
      [0, 1, 2, 3].map((offset) => Buffer.from(run.slice(offset), 'base64').toString('latin1')),
    ),
  ]
    .join('\n')
    .toLowerCase();

describe.each(ACCOUNTS)('%s that a facilitator repeats is not shown', (_, account, header) => {
  test.each(SPELLINGS)('attack: a secret that a facilitator repeats %s is not shown', async (_spelling, spell) => {
    const seen = new Set<string>();
    const said = await everythingSaid(account, (req, res) => {
      const sent = String(req.headers[header]).replace(/^Bearer /, '');
      seen.add(sent);
      const told = spell(sent);
      res.setHeader('EXTENSION-RESPONSES', told);
      const words = { error: told, invalidReason: told.slice(0, 500), errorReason: told.slice(0, 500) };
      const turn = seen.size % 2 === 0 ? 403 : 200;
      if (req.url === '/settle') return json(res, { success: false, ...words, transaction: told.slice(0, 500) });
      if (req.url === '/verify') return json(res, { isValid: false, ...words });
      return json(res, { kinds: [], ...words }, turn);
    });
    expect(seen.size).toBeGreaterThan(0);
    for (const sent of seen)
      expect(
        readings(said)
          .split('\n')
          .filter((line) => line.includes(sent.toLowerCase())),
      ).toEqual([]);
    // Something was said all the same.
    expect(said).toContain('extensions');
  });
});

test('attack: a password of basic authentication is not shown, nor a key in the path', async () => {
  const called = {
    ...facilitatorAt(`${facilitator.url}/v1/keys/qW8x_topsecret_path/x402`),
    headers: { Authorization: `Basic ${base64('shop:open_sesame_9')}` },
  };
  facilitator.answer = (req, res) =>
    json(res, { isValid: false, invalidReason: `unknown_${req.url?.includes('topsecret') && 'qW8x_topsecret_path'}` });
  const { rail, lines } = makeRail();
  const offer = makeOffer({ facilitators: [called] });
  const first = await rail.verify(PRESENTED, offer);
  facilitator.answer = (_, res) => json(res, { isValid: false, invalidReason: 'unknown_open_sesame_9' });
  const second = await rail.verify(PRESENTED, offer);
  const said = JSON.stringify([first, second, lines]);
  expect(said).not.toMatch(/topsecret|sesame/i);
  expect(said).toContain('payment_invalid');
});

describe('what stays', () => {
  test.each([
    ['a word of the table', { 'X-Word': 'insufficient_funds' }, 'insufficient_funds'],
    ['a word that a short header is part of', { 'X-Env': 'fund' }, 'insufficient_fundings'],
    ['any text, if what was sent is too short to be told from it', { 'X-Version': '2' }, 'version 2'],
    ['ordinary text in base64', { 'X-Key': 'sk_12345678' }, base64('ordinary text')],
    ['a percent sign', { 'X-Key': 'sk_12345678' }, '100% wrong, %zz'],
  ])('behaviour: an answer keeps %s', (_, headers, text) => {
    const filter = createSecretFilter(Object.values(headers), (word) => word === 'insufficient_funds');
    expect(filter.text(text)).toBe(text);
  });

  test('behaviour: a settlement whose network, payer and amount stand in our headers too is a settlement', async () => {
    const { payer } = PRESENTED.key;
    const headers = { 'X-Network': 'eip155:84532', 'X-Payer': payer, 'X-Amount': '100000' };
    const called = { ...facilitatorAt(facilitator.url), headers };
    const transaction = `0x${'9a'.repeat(32)}`;
    facilitator.answer = (_, res) =>
      json(res, { success: true, transaction, network: 'eip155:84532', payer, amount: '100000' });
    const settled = await makeRail().rail.settle(PRESENTED, makeOffer({ facilitators: [called] }), FRESH, GO);
    expect(settled).toMatchObject({ kind: 'settled', transaction });
  });

  test('attack: an answer of 16 KiB is read in milliseconds, whatever it holds', () => {
    const filter = createSecretFilter(['x'.repeat(8192), 'a.'.repeat(2000)], () => false);
    const texts = [
      'x'.repeat(16_000),
      base64('x'.repeat(12_000)),
      '%78'.repeat(5000),
      'a.'.repeat(8000),
      '\\u0078'.repeat(2600),
    ];
    const since = threadMs();
    for (const text of texts) filter.text(text);
    expect(threadMs() - since).toBeLessThan(1000);
  });
});
