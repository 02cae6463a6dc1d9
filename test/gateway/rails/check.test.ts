// What is compared before anybody is asked: every field of a payment with our own terms, and its time window.
import { describe, expect, test } from 'vitest';
import type { RailOffer } from '../../../src/domain/payment/way.ts';
import { findServices } from '../../../src/domain/payment/offer.ts';
import type { PresentedPayment } from '../../../src/gateway/rails/rail.ts';
import { PAY_TO, PRICE, SIGNED, acceptedOf, encode, makeOffer, makeRail, makeReceiver, v2Json } from './kit.ts';

const { rail } = makeRail();
const OFFER = makeOffer();
const NOW = 1_800_000_000_000;
const SOON = String(NOW / 1000 + 300);
const ELSEWHERE = '0x2222222222222222222222222222222222222222';

function readV2(changes: { accepted?: object; authorization?: object } = {}): PresentedPayment {
  const authorization = { ...SIGNED.authorization, validBefore: SOON, ...changes.authorization };
  const json = {
    ...v2Json(OFFER, { ...SIGNED, authorization }),
    accepted: { ...acceptedOf(OFFER), ...changes.accepted },
  };
  return read(2, json);
}

function readV1(changes: { scheme?: string; network?: string; authorization?: object } = {}): PresentedPayment {
  const { scheme = 'exact', network = 'base-sepolia' } = changes;
  const authorization = { ...SIGNED.authorization, validBefore: SOON, ...changes.authorization };
  return read(1, { x402Version: 1, scheme, network, payload: { ...SIGNED, authorization } });
}

function read(version: 1 | 2, json: unknown): PresentedPayment {
  const presented = rail.read({ version, value: encode(json) }, [OFFER.way]);
  if (!('key' in presented)) throw new Error(JSON.stringify(presented));
  return presented;
}

const check = (presented: PresentedPayment, offer: RailOffer = OFFER): string | undefined =>
  rail.check(presented, offer, NOW)?.reason;

test('behaviour: a payment of what was offered passes, over v2 and v1', () => {
  expect(check(readV2())).toBeUndefined();
  expect(check(readV1())).toBeUndefined();
});

test('behaviour: addresses are compared without regard to case', () => {
  expect(check(readV2({ accepted: { payTo: PAY_TO.toLowerCase() } }))).toBeUndefined();
  expect(check(readV2({ authorization: { to: PAY_TO.toUpperCase().replace('0X', '0x') } }))).toBeUndefined();
});

test('behaviour: a member of extra that a client leaves out is not compared', () => {
  for (const extra of [null, undefined, {}, { name: 'USDC' }, { version: '2' }]) {
    expect(check(readV2({ accepted: { extra } }))).toBeUndefined();
  }
});

describe('one field tampered with', () => {
  test.each<[string, Parameters<typeof readV2>[0], string]>([
    ['scheme', { accepted: { scheme: 'upto' } }, 'invalid_scheme'],
    ['amount, less', { accepted: { amount: '1' } }, 'invalid_amount'],
    ['amount, more', { accepted: { amount: '100001' } }, 'invalid_amount'],
    [
      'EIP-712 name',
      { accepted: { extra: { name: 'USD Coin', version: '2' } } },
      'invalid_exact_evm_token_name_mismatch',
    ],
    [
      'EIP-712 version',
      { accepted: { extra: { name: 'USDC', version: '1' } } },
      'invalid_exact_evm_token_version_mismatch',
    ],
    ['signed recipient', { authorization: { to: ELSEWHERE } }, 'invalid_exact_evm_recipient_mismatch'],
    [
      'signed value, less',
      { authorization: { value: '99999' } },
      'invalid_exact_evm_payload_authorization_value_mismatch',
    ],
    [
      'signed value, more',
      { authorization: { value: '100001' } },
      'invalid_exact_evm_payload_authorization_value_mismatch',
    ],
    [
      'signed value, nothing',
      { authorization: { value: '0' } },
      'invalid_exact_evm_payload_authorization_value_mismatch',
    ],
  ])('attack: a payment of v2 whose %s was tampered with is refused', (_, changes, reason) => {
    expect(check(readV2(changes))).toBe(reason);
  });

  test.each<[string, Parameters<typeof readV1>[0], string]>([
    ['scheme', { scheme: 'upto' }, 'invalid_scheme'],
    ['signed recipient', { authorization: { to: ELSEWHERE } }, 'invalid_exact_evm_recipient_mismatch'],
    ['signed value', { authorization: { value: '1' } }, 'invalid_exact_evm_payload_authorization_value_mismatch'],
  ])('attack: a payment of v1 whose %s was tampered with is refused', (_, changes, reason) => {
    expect(check(readV1(changes))).toBe(reason);
  });

  test('attack: a payment by the terms of another receiver is refused', () => {
    expect(check(readV2(), makeOffer({ payTo: ELSEWHERE }))).toBe('invalid_exact_evm_recipient_mismatch');
    expect(check(readV2(), makeOffer({}, PRICE + 1n))).toBe('invalid_amount');
  });
});

describe('time', () => {
  const now = NOW / 1000;
  test.each<[string, object, string | undefined]>([
    ['validAfter now', { validAfter: String(now) }, undefined],
    [
      'validAfter a second later',
      { validAfter: String(now + 1) },
      'invalid_exact_evm_payload_authorization_valid_after',
    ],
    ['6 seconds left', { validBefore: String(now + 6) }, undefined],
    ['5 seconds left', { validBefore: String(now + 5) }, 'invalid_exact_evm_payload_authorization_valid_before'],
    ['expired', { validBefore: String(now - 1) }, 'invalid_exact_evm_payload_authorization_valid_before'],
    ['as long as was asked for and 10 minutes', { validBefore: String(now + 300 + 600) }, undefined],
    [
      'a second longer',
      { validBefore: String(now + 300 + 601) },
      'invalid_exact_evm_payload_authorization_valid_before',
    ],
    [
      'never expires',
      { validBefore: (2n ** 256n - 1n).toString() },
      'invalid_exact_evm_payload_authorization_valid_before',
    ],
  ])('behaviour: the time of a payment is judged: %s', (_, authorization, reason) => {
    expect(check(readV2({ authorization }))).toBe(reason);
  });

  test('behaviour: a payment with too short or too long a time is told how many seconds are missing or too many', () => {
    const expected = (seconds: number): string | undefined =>
      rail.check(readV2({ authorization: { validBefore: String(now + seconds) } }), OFFER, NOW)?.expected;
    expect([expected(2), expected(6), expected(912)]).toEqual(['4 s are missing', undefined, '12 s too long']);
  });
});

test('behaviour: a stored charge is held to the way it was claimed for, whatever is configured by now', () => {
  const way = {
    ...{ receiverId: 'default', network: OFFER.way.network, scheme: 'exact', asset: OFFER.way.asset, decimals: 6 },
    ...{ payTo: PAY_TO, timeoutSeconds: 300, terms: { name: 'USDC', version: '2' } },
  };
  const stored = { way, amount: PRICE, description: 'GET /report', resource: undefined };
  expect(check(readV2(), stored)).toBeUndefined();
  expect(check(readV1(), stored)).toBeUndefined();
  const asked = { rpcUrls: ['http://node.test'], confirmations: 7 };
  const moved = makeReceiver({ payTo: ELSEWHERE, asset: ELSEWHERE, ...asked });
  expect(findServices(new Map([['default', moved]]), way)).toMatchObject(asked);
  const abroad = makeReceiver({ ...asked, network: 'eip155:8453' });
  expect(findServices(new Map([['default', abroad]]), way)).toBeUndefined();
});

describe('receipts', () => {
  const key = { network: 'eip155:84532', asset: '0x', payer: '0xpayer', nonce: '0x' };
  const decode = (value: string): unknown => JSON.parse(Buffer.from(value, 'base64').toString());

  test('behaviour: a settled payment has a receipt, over v2 and v1', () => {
    const receipt = {
      payment: key,
      amount: 100_000n,
      transaction: '0xabc',
      reason: undefined,
    };
    const [name, value] = rail.receiptHeader(2, receipt);
    expect(name).toBe('PAYMENT-RESPONSE');
    expect(decode(value)).toEqual({
      success: true,
      transaction: '0xabc',
      network: 'eip155:84532',
      payer: '0xpayer',
      amount: '100000',
    });
    const [nameV1, valueV1] = rail.receiptHeader(1, receipt);
    expect(nameV1).toBe('X-PAYMENT-RESPONSE');
    expect(decode(valueV1)).toEqual({ success: true, transaction: '0xabc', network: 'base-sepolia', payer: '0xpayer' });
  });

  test('behaviour: a refused payment has a receipt', () => {
    const receipt = {
      payment: key,
      amount: 1n,
      transaction: '',
      reason: 'insufficient_funds',
    };
    expect(decode(rail.receiptHeader(2, receipt)[1])).toEqual({
      success: false,
      errorReason: 'insufficient_funds',
      transaction: '',
      network: 'eip155:84532',
      payer: '0xpayer',
    });
  });
});
