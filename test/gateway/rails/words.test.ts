// A facilitator's word for "no": every word of the table, however it is spelled, and what is on no list.
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Settlement, Verification } from '../../../src/gateway/rails/rail.ts';
import { CANNOT_JUDGE_PATTERNS, classifyWord, normaliseWord, WORDS } from '../../../src/gateway/rails/x402/reasons.ts';
import {
  FRESH,
  GO,
  SIGNED,
  facilitatorAt,
  json,
  makeOffer,
  makeRail,
  read,
  startScripted,
  type Scripted,
} from './kit.ts';

/** What the contract lists by name. */
const PAYMENT =
  'signature signature_address typed_data_message failed_to_parse_signature insufficient_funds insufficient_balance value value_mismatch value_too_low amount payment_amount valid_before valid_after payment_expired payment_early recipient_mismatch nonce_already_used transaction_simulation transaction_simulation_failed from_address_kyt to_address_kyt payload'.split(
    ' ',
  );
const CANNOT_JUDGE =
  'unsupported_chain unsupported_scheme unexpected_error unexpected_verify_error unknown_error internal_server_error rpc_error rate_limit_exceeded rate_limited scheme network network_mismatch chain_id_mismatch asset_mismatch token_name_mismatch token_version_mismatch missing_eip712_domain asset_not_deployed_contract accepted_requirements_mismatch payment_requirements x402_version format no_matching_payment_handler_found couldn_t_validate_payload'.split(
    ' ',
  );
/** It takes no such payment, whatever is in it: if none does, the payer is told what helps. */
const DECLINED = [
  'fee_payer_not_managed',
  'eip6492_factory_not_allowed',
  'undeployed_smart_wallet',
  'smart_wallet_deployment_failed',
  'eip3009_not_supported',
];
const UNLISTED = ['policy_denied', 'payer_is_blocked', 'no', 'a', '', 'error', 'networks', 'signature_of_somebody'];
/** At settling: the money may have moved. */
const HIDES = new Set(['nonce_already_used', 'transaction_simulation', 'transaction_simulation_failed']);
const OWN_FAILURES = /^(?:unexpected_|unknown_|internal_)|_error$/;
const PREFIXES = [
  '',
  'invalid_',
  'exact_evm_',
  'invalid_exact_evm_',
  'invalid_exact_evm_payload_',
  'invalid_exact_evm_payload_authorization_',
  'exact_evm_payload_',
];

let first: Scripted;
let second: Scripted;
let says = '';
const payer = SIGNED.authorization.from;
beforeAll(async () => {
  first = await startScripted((req, res) =>
    json(
      res,
      req.url === '/settle'
        ? { success: false, errorReason: says, transaction: '' }
        : { isValid: false, invalidReason: says },
    ),
  );
  second = await startScripted((req, res) =>
    json(
      res,
      req.url === '/settle' ? { success: true, transaction: `0x${'9a'.repeat(32)}` } : { isValid: true, payer },
    ),
  );
});
afterAll(async () => {
  await first.close();
  await second.close();
});

const { rail } = makeRail();
const offerOf = (...scripted: Scripted[]) => makeOffer({ facilitators: scripted.map(({ url }) => facilitatorAt(url)) });
const verify = (word: string, ...by: Scripted[]): Promise<Verification> => {
  says = word;
  return rail.verify(read(rail, offerOf(...by), SIGNED), offerOf(...by));
};
const settle = (word: string, ...by: Scripted[]): Promise<Settlement> => {
  says = word;
  // Another rail: it does not know who verified the payment.
  const { rail: other } = makeRail();
  return other.settle(read(other, offerOf(...by), SIGNED), offerOf(...by), FRESH, GO);
};

test('behaviour: every word of the table has a source and is written as it is compared', () => {
  expect(WORDS.size).toBeGreaterThan(40);
  for (const [word, { source }] of WORDS) {
    expect([word, normaliseWord(word)]).toEqual([word, word]);
    expect(source).not.toBe('');
  }
  for (const { source } of CANNOT_JUDGE_PATTERNS) expect(source).not.toBe('');
});

describe('how a word is compared', () => {
  test.each([...PAYMENT, ...CANNOT_JUDGE, ...DECLINED])(
    'behaviour: the word %s means the same in any case, with any punctuation and every prefix',
    (word) => {
      const means = classifyWord(word);
      expect(means).toBe(PAYMENT.includes(word) ? 'payment' : 'cannot_judge');
      for (const prefix of PREFIXES) {
        const spelled = prefix + word;
        for (const text of [
          spelled,
          spelled.toUpperCase(),
          spelled.replaceAll('_', ' '),
          spelled.replaceAll('_', '-'),
          `${spelled}.`,
        ]) {
          expect([text, classifyWord(text)]).toEqual([text, means]);
        }
      }
    },
  );

  test.each(UNLISTED)('behaviour: the word %j is on no list', (word) => {
    expect(classifyWord(word)).toBe('unlisted');
  });

  test('behaviour: a sentence, as some facilitators write it, is understood as its word', () => {
    expect(classifyWord('No matching payment handler found')).toBe('cannot_judge');
    expect(classifyWord("Couldn't validate the payload")).toBe('cannot_judge');
    expect(classifyWord('Unsupported chain: 8453')).toBe('cannot_judge');
  });
});

describe('verify', () => {
  test.each(PAYMENT)('behaviour: the word %s at verifying is about the payment: nobody else is asked', async (word) => {
    const { length } = second.requests;
    expect(await verify(`invalid_exact_evm_${word}`, first, second)).toEqual({
      kind: 'refused',
      reason: `invalid_exact_evm_${word}`,
    });
    expect(second.requests.length).toBe(length);
  });

  test.each(CANNOT_JUDGE)(
    'behaviour: the word %s at verifying: the facilitator cannot judge, and is passed over',
    async (word) => {
      expect(await verify(word, first, second)).toEqual({ kind: 'valid', payer });
      expect(await verify(word, first)).toMatchObject({ kind: 'unavailable' });
    },
  );

  test.each(DECLINED)(
    'behaviour: the word %s at verifying: the next one is asked, and from all it is the answer',
    async (word) => {
      const [once, all] = [offerOf(first, second), offerOf(first, first)];
      says = word;
      expect(await rail.verify(read(rail, once, SIGNED), once)).toEqual({ kind: 'valid', payer });
      const refusal = { reason: word, expected: expect.stringMatching(/^[a-z ,]{10,60}$/) };
      expect(await rail.verify(read(rail, all, SIGNED), all)).toEqual({ kind: 'refused', ...refusal });
      // One that cannot judge may take it another time.
      const away = await startScripted((_, res) => json(res, { error: 'no' }, 500));
      expect(await verify(word, first, away)).toMatchObject({ kind: 'unavailable' });
      await away.close();

      expect(await settle(word, first, second)).toMatchObject({ kind: 'settled' });
      expect(await settle(word, first, first)).toMatchObject({ kind: 'not_carried_out', declined: refusal });
      expect(await settle(`${word}.`, first)).toMatchObject({ kind: 'not_carried_out', declined: { reason: word } });
    },
  );

  test('behaviour: a word on no list is passed over; it is the answer if nobody judged and the last said one', async () => {
    expect(await verify('policy_denied', first, second)).toEqual({ kind: 'valid', payer });
    expect(await verify('policy_denied', first)).toEqual({ kind: 'refused', reason: 'policy_denied' });
    const away = await startScripted((_, res) => json(res, { error: 'no' }, 500));
    expect(await verify('policy_denied', away, first)).toEqual({ kind: 'refused', reason: 'policy_denied' });
    expect(await verify('policy_denied', first, away)).toMatchObject({ kind: 'unavailable' });
    await away.close();
  });
});

describe('settle', () => {
  test.each(PAYMENT)(
    'behaviour: the word %s at settling is about the payment: it is refused, or unknown if the money may have moved',
    async (word) => {
      const kind = HIDES.has(word) ? 'unknown' : 'refused';
      expect(await settle(word, first, second)).toMatchObject({ kind, reason: word });
    },
  );

  test.each(CANNOT_JUDGE)(
    'behaviour: the word %s at settling: the next one is asked, or it is unknown if the settling itself failed',
    async (word) => {
      const unknown = OWN_FAILURES.test(word);
      expect(await settle(word, first, second)).toMatchObject({ kind: unknown ? 'unknown' : 'settled' });
      expect(await settle(word, first)).toMatchObject({ kind: unknown ? 'unknown' : 'not_carried_out' });
    },
  );

  test.each(UNLISTED.filter((word) => word !== ''))(
    'behaviour: the word %s at settling, on no list, is unknown',
    async (word) => {
      expect(await settle(word, first, second)).toMatchObject({ kind: 'unknown' });
    },
  );
});
