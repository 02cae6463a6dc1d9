// Credentials: what may be one, what is refused and how, and that one payment has one key however it is spelled.
import { describe, expect, test } from 'vitest';
import type { Credential } from '../../../src/domain/decide.ts';
import type { PresentedPayment } from '../../../src/gateway/rails/rail.ts';
import { PAY_TO, SIGNED, acceptedOf, encode, makeOffer, makeRail, v2Json } from './kit.ts';
import type { Signed } from '../../support/chain/payer.ts';

const { rail } = makeRail();
const OFFER = makeOffer();
const V2 = v2Json(OFFER, SIGNED);
const V1 = { x402Version: 1, scheme: 'exact', network: 'base-sepolia', payload: SIGNED };

type Json = Record<string, unknown>;

function readV2(value: unknown): ReturnType<typeof rail.read> {
  return rail.read({ version: 2, value: encode(value) }, [OFFER.way]);
}

function accept(credential: Credential): PresentedPayment {
  const presented = rail.read(credential, [OFFER.way]);
  if (!('key' in presented)) throw new Error(JSON.stringify(presented));
  return presented;
}

/** `base` with the value at `path` replaced; undefined removes it. */
function change(base: unknown, path: string, value: unknown): Json {
  const copy = structuredClone(base) as Json;
  const names = path.split('.');
  const last = names.pop() ?? '';
  const place = names.reduce((at, name) => at[name] as Json, copy);
  if (value === undefined) delete place[last];
  else place[last] = value;
  return copy;
}

const KEY = {
  network: 'eip155:84532',
  asset: '0x036cbd53842c5426634e7929541ec2318f3dcf7e',
  payer: SIGNED.authorization.from,
  unique: SIGNED.authorization.nonce,
};

describe('one payment, many spellings', () => {
  const upper = (hex: string): string => `0x${hex.slice(2).toUpperCase()}`;
  const mixed = (hex: string): string =>
    `0x${Array.from(hex.slice(2), (c, i) => (i % 2 ? c.toUpperCase() : c)).join('')}`;
  const payer = '0xabcdefabcdefabcdefabcdefabcdefabcdefabcd';
  const base = change(V2, 'payload.authorization.from', payer);
  const reversed = (value: unknown): unknown =>
    typeof value !== 'object' || value === null
      ? value
      : Object.fromEntries(
          Object.entries(value)
            .toReversed()
            .map(([name, member]) => [name, reversed(member)]),
        );

  const texts: string[] = [];
  for (const json of [
    base,
    reversed(base),
    change(base, 'payload.authorization.from', upper(payer)),
    change(base, 'payload.authorization.from', mixed(payer)),
    change(base, 'payload.authorization.nonce', upper(KEY.unique)),
    change(base, 'payload.authorization.nonce', mixed(KEY.unique)),
    change(base, 'accepted.asset', KEY.asset),
    change(base, 'accepted.asset', upper(KEY.asset)),
    change(base, 'accepted.payTo', PAY_TO.toLowerCase()),
    change(base, 'payload.signature', upper(SIGNED.signature)),
    change(base, 'extensions', { anything: [1, 2, 3] }),
    change(base, 'accepted.extra.more', 'x'),
    change(base, 'unknown', true),
  ]) {
    const text = JSON.stringify(json);
    texts.push(text, JSON.stringify(json, undefined, 2), ` \n${text}\t `, text.replace('"payload"', '"\\u0070ayload"'));
  }

  test('behaviour: 52 encodings of one payment have one key', () => {
    expect(texts.length).toBeGreaterThanOrEqual(50);
    expect(new Set(texts).size).toBe(texts.length);
    for (const text of texts) expect(accept({ version: 2, value: encode(text) }).key).toEqual({ ...KEY, payer });
  });

  test('behaviour: every encoding of a payment has a digest of its own', () => {
    const digests = texts.map((text) => accept({ version: 2, value: encode(text) }).sha256);
    expect(new Set(digests).size).toBe(texts.length);
    expect(digests[0]).toMatch(/^[0-9a-f]{64}$/);
  });

  test('behaviour: a payment with and without padding is the same, and has the same digest', () => {
    for (const spaces of ['', ' ', '  ']) {
      const padded = encode(JSON.stringify(V2) + spaces);
      const bare = padded.replace(/=+$/, '');
      const [one, two] = [padded, bare].map((value) => accept({ version: 2, value }));
      expect(two).toEqual(one);
    }
  });

  test('behaviour: v1 and v2 of one authorization are one payment', () => {
    const v1 = accept({ version: 1, value: encode(V1) });
    expect(v1.key).toEqual(accept({ version: 2, value: encode(V2) }).key);
    expect(v1.chargeId).toBeUndefined();
  });

  test('behaviour: a v1 name of a network in a v2 credential is the same network, for the key', () => {
    expect(accept({ version: 2, value: encode(change(V2, 'accepted.network', 'base-sepolia')) }).key).toEqual(KEY);
  });
});

describe('what is read', () => {
  test('behaviour: a payment is read with all that the journey needs, as the client wrote it', () => {
    const presented = accept({ version: 2, value: encode(V2) });
    expect(presented).toMatchObject({
      version: 2,
      chargeId: 'chg_test',
      amount: 100_000n,
      deadline: 99_999_999_999n,
      payload: {
        envelope: { scheme: 'exact', network: 'eip155:84532', accepted: { amount: '100000', payTo: PAY_TO } },
        authorization: { to: PAY_TO.toLowerCase(), validAfter: '0' },
        token: { name: 'USDC', version: '2' },
      },
    });
  });

  test('behaviour: a member that no schema names is not kept for the facilitator', () => {
    const { payload } = accept({ version: 2, value: encode(change(V2, 'payload.authorization.more', 'x')) });
    const { signature, authorization } = payload as Signed;
    expect({ signature, authorization }).toEqual({
      signature: SIGNED.signature,
      authorization: { ...SIGNED.authorization, to: PAY_TO.toLowerCase() },
    });
  });

  test('behaviour: extra may be null, as some clients write it', () => {
    expect(accept({ version: 2, value: encode(change(V2, 'accepted.extra', null)) }).chargeId).toBeUndefined();
  });

  test.each<[string, Json]>([
    ['null', { resource: null, extensions: null }],
    ['another type', { resource: 7, extensions: 'x' }],
    ['longer than any URL', { resource: { url: 'x'.repeat(9000) } }],
    ['deep', { extensions: { bazaar: { schema: JSON.parse('['.repeat(12) + ']'.repeat(12)) as unknown } } }],
  ])('behaviour: resource and extensions are read past: %s', (_, more) => {
    expect(readV2({ ...V2, ...more })).toMatchObject({ key: KEY, way: OFFER.way });
  });
});

describe('what is refused', () => {
  const nest = (levels: number): unknown => (levels === 0 ? 1 : { a: nest(levels - 1) });
  const foreign = (payload: Json): Json => ({ ...V2, payload });
  const AUTH = 'payload.authorization';

  test.each<[string, unknown, RegExp]>([
    ['not JSON', 'hello', /not JSON/],
    ['not UTF-8', Buffer.from([0x7b, 0xff, 0x7d]), /not JSON/],
    ['a byte order mark', `\uFEFF${JSON.stringify(V2)}`, /not JSON/],
    ['null', 'null', /not a JSON object/],
    ['an array', [V2], /not a JSON object/],
    ['a number', '7', /not a JSON object/],
    ['no version', change(V2, 'x402Version', undefined), /x402Version/],
    ['version 1 in the header of version 2', change(V2, 'x402Version', 1), /x402Version.*PAYMENT-SIGNATURE/],
    ['version as a string', change(V2, 'x402Version', '2'), /x402Version/],
    ['no accepted', change(V2, 'accepted', undefined), /accepted/],
    ['accepted as an array', change(V2, 'accepted', [acceptedOf(OFFER)]), /accepted/],
    ['amount as a number', change(V2, 'accepted.amount', 100000), /accepted\.amount/],
    ['amount with an exponent', change(V2, 'accepted.amount', '1e5'), /accepted\.amount/],
    ['a reference that is an object', change(V2, 'accepted.extra.external_ref', {}), /external_ref/],
    ['a reference over 256 characters', change(V2, 'accepted.extra.external_ref', 'x'.repeat(257)), /external_ref/],
    ['no payload', change(V2, 'payload', undefined), /payload/],
    ['no signature', change(V2, 'payload.signature', undefined), /signature/],
    ['a signature of 64 bytes', change(V2, 'payload.signature', `0x${'ab'.repeat(64)}`), /signature/],
    ['a signature of half a byte', change(V2, 'payload.signature', `0x${'ab'.repeat(65)}a`), /signature/],
    ['a signature over 4,000 bytes', change(V2, 'payload.signature', `0x${'ab'.repeat(4001)}`), /signature/],
    ['a payer of 39 digits', change(V2, `${AUTH}.from`, `0x${'1'.repeat(39)}`), /authorization\.from/],
    ['a payer with 0X', change(V2, `${AUTH}.from`, `0X${'1'.repeat(40)}`), /authorization\.from/],
    ['a payer with a space', change(V2, `${AUTH}.from`, ` ${SIGNED.authorization.from}`), /authorization\.from/],
    ['a nonce of 31 bytes', change(V2, `${AUTH}.nonce`, `0x${'c0'.repeat(31)}`), /nonce/],
    ['a nonce of 33 bytes', change(V2, `${AUTH}.nonce`, `0x${'c0'.repeat(33)}`), /nonce/],
    ['a nonce with a newline', change(V2, `${AUTH}.nonce`, `${SIGNED.authorization.nonce}\n`), /nonce/],
    ['a value as a number', change(V2, `${AUTH}.value`, 100000), /value/],
    ['a value with a leading zero', change(V2, `${AUTH}.value`, '0100000'), /value/],
    ['a value with a sign', change(V2, `${AUTH}.value`, '+100000'), /value/],
    ['a negative value', change(V2, `${AUTH}.value`, '-1'), /value/],
    ['a value with a fraction', change(V2, `${AUTH}.value`, '100000.0'), /value/],
    ['a value in hex', change(V2, `${AUTH}.value`, '0x186a0'), /value/],
    ['a value of 79 digits', change(V2, `${AUTH}.value`, '1'.repeat(79)), /value/],
    ['a value over 256 bits', change(V2, `${AUTH}.value`, (2n ** 256n).toString()), /value/],
    ['a time that is no number', change(V2, `${AUTH}.validBefore`, 'never'), /validBefore/],
    ['a Permit2 payment', foreign({ signature: SIGNED.signature, permit2Authorization: {} }), /Permit2.*EIP-3009/],
    ['Permit2 asked for in extra', change(V2, 'accepted.extra.assetTransferMethod', 'permit2'), /Permit2/],
    ['another transfer method', change(V2, 'accepted.extra.assetTransferMethod', 'other'), /transfer method/],
    ['a signed transaction', foreign({ transaction: 'AQAB' }), /signed transaction/],
    ['a voucher', foreign({ voucher: {} }), /voucher/],
    ['a channel', foreign({ channelId: '0x1' }), /channel/],
    ['ERC-7710 by its manager', foreign({ delegationManager: '0x1' }), /ERC-7710.*EIP-3009/],
    ['ERC-7710 by its context', foreign({ permissionContext: '0x1' }), /ERC-7710/],
    ['ERC-7710 by its delegator', foreign({ delegator: '0x1' }), /ERC-7710/],
    ['nesting one too deep', { ...V2, more: nest(16) }, /deeper than 16/],
    ['a wide bomb', { ...V2, more: Array.from({ length: 2048 }, () => 0) }, /more than 2048 values/],
    [
      'many members',
      { ...V2, more: Object.fromEntries(Array.from({ length: 1048 }, (_, i) => [i, 0])), list: Array(1000).fill(0) },
      /more than 2048/,
    ],
    ['__proto__', JSON.stringify(V2).replace('{', '{"__proto__":{"x":1},'), /__proto__/],
    ['__proto__ inside', JSON.stringify(V2).replace('"extra":{', '"extra":{"__proto__":{"x":1},'), /__proto__/],
    ['constructor', { ...V2, more: { constructor: 1 } }, /constructor/],
    ['prototype', { ...V2, more: { prototype: 1 } }, /prototype/],
  ])('refuses: a payment with %s', (_, value, why) => {
    const refused = Buffer.isBuffer(value)
      ? rail.read({ version: 2, value: value.toString('base64') }, [OFFER.way])
      : readV2(value);
    expect(refused).toMatchObject({ code: 'payment_malformed', detail: expect.stringMatching(why) });
    expect(({} as Json)['x']).toBeUndefined();
  });

  test('behaviour: a payment of 2,048 values passes, and one more does not', () => {
    const count = (value: unknown): number =>
      typeof value === 'object' && value !== null
        ? Object.values(value).reduce<number>((sum, each) => sum + 1 + count(each), 0)
        : 0;
    const room = 2048 - count({ ...V2, more: [] });
    expect(readV2({ ...V2, more: Array(room).fill(0) })).toHaveProperty('key');
    expect(readV2({ ...V2, more: Array(room + 1).fill(0) })).toHaveProperty('code', 'payment_malformed');
  });

  test('behaviour: a payment with nesting at the limit passes', () => {
    expect(readV2({ ...V2, more: nest(15) })).toHaveProperty('key');
  });

  test.each<[string, string, RegExp]>([
    [
      'base64url',
      encode({ ...V2, more: '???>>>' })
        .replaceAll('/', '_')
        .replaceAll('+', '-'),
      /standard alphabet/,
    ],
    [
      'one digit too many',
      `${encode(V2)
        .replace(/=+$/, '')
        .slice(0, -(encode(V2).replace(/=+$/, '').length % 4) || undefined)}A`,
      /standard alphabet/,
    ],
    ['too little padding', 'eyJ4Ij=', /standard alphabet/],
    ['inner padding', `=${encode(V2).slice(1)}`, /standard alphabet/],
    ['white space', `${encode(V2).slice(0, 8)} ${encode(V2).slice(9)}`, /standard alphabet/],
    ['nothing', '', /standard alphabet/],
    ['over 16 KiB', 'QUFB'.repeat(4097), /16 KiB/],
    ['a deep bomb', encode('['.repeat(6000) + ']'.repeat(6000)), /deeper than 16/],
  ])('refuses: a payment header with %s', (_, value, why) => {
    expect(rail.read({ version: 2, value }, [OFFER.way])).toMatchObject({
      code: 'payment_malformed',
      detail: expect.stringMatching(why),
    });
  });

  test('behaviour: 16 KiB of base64, which is 12 KiB of JSON, is the limit of a payment', () => {
    const room = 12 * 1024 - JSON.stringify({ ...V2, a: '', b: '' }).length;
    const fill = (size: number) => encode({ ...V2, a: 'x'.repeat(8000), b: 'x'.repeat(size - 8000) });
    expect(fill(room).length).toBe(16 * 1024);
    expect(rail.read({ version: 2, value: fill(room) }, [OFFER.way])).not.toHaveProperty('code');
    expect(rail.read({ version: 2, value: fill(room + 1) }, [OFFER.way])).toHaveProperty('code', 'payment_malformed');
  });

  test('refuses: a payment of v2 in X-PAYMENT', () => {
    expect(rail.read({ version: 1, value: encode(V2) }, [OFFER.way])).toMatchObject({
      detail: expect.stringMatching(/x402Version.*X-PAYMENT/),
    });
  });

  test('attack: a refusal of a payment does not repeat what was sent', () => {
    const secret = 'sk_live_abcdef';
    for (const path of [
      'accepted.amount',
      'payload.signature',
      `${AUTH}.nonce`,
      'accepted.network',
      'accepted.asset',
    ]) {
      const refused = readV2(change(V2, path, secret));
      expect(refused).not.toHaveProperty('key');
      expect(JSON.stringify(refused)).not.toContain(secret);
    }
  });
});
