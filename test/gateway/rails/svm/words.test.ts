// The words of facilitators of Solana: what each says of a payment, at verifying and at settling. A payment is settled by the
// facilitator that verified it and by no other, so nobody else is asked then, whatever it says.
import { readdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { facilitatorAt, FRESH, GO, json, makeRail, startScripted, type Scripted } from '../kit.ts';
import { OFFER, PAYER, readPayment } from './kit.ts';

/** About the payment: nobody else is asked. */
const REFUSED = { verify: 'refused', settle: 'refused' } as const;
/** The same; at settling it may hide that the money moved. */
const REFUSED_HIDES = { verify: 'refused', settle: 'unknown' } as const;
/** It cannot judge: the next one is asked; to settle it takes nothing, and nothing moved. */
const PASSED_OVER = { verify: 'next', settle: 'not_carried_out' } as const;
const PASSED_OVER_HIDES = { verify: 'next', settle: 'unknown' } as const;
/** On no list: the next one is asked, and from the last it is the answer. */
const UNLISTED = { verify: 'last', settle: 'unknown' } as const;

type Means = {
  readonly verify: 'refused' | 'next' | 'last';
  readonly settle: 'refused' | 'not_carried_out' | 'unknown';
};

const payload = 'invalid_exact_svm_payload_';
const wallet = 'invalid_exact_svm_smart_wallet_';
const compute = `${payload}transaction_instructions_compute_`;
const WORDS: readonly (readonly [word: string, Means])[] = [
  [`${payload}mint_mismatch`, REFUSED],
  [`${payload}recipient_mismatch`, REFUSED],
  [`${payload}amount_mismatch`, REFUSED],
  [`${payload}signature_invalid`, REFUSED],
  [`${payload}memo_mismatch`, REFUSED],
  [`${payload}memo_count`, REFUSED],
  [`${payload}no_transfer_instruction`, REFUSED],
  [`${payload}unknown_fourth_instruction`, REFUSED],
  [`${payload}unknown_fifth_instruction`, REFUSED],
  [`${payload}unknown_sixth_instruction`, REFUSED],
  [`${payload}unknown_seventh_instruction`, REFUSED],
  [`${payload}unknown_optional_instruction`, REFUSED],
  [`${payload}transaction_instructions_length`, REFUSED_HIDES],
  [`${compute}limit_instruction`, REFUSED_HIDES],
  [`${compute}price_instruction`, REFUSED_HIDES],
  [`${payload}transaction_fee_payer_transferring_funds`, REFUSED_HIDES],
  ['invalid_exact_svm_transaction_simulation_failed', REFUSED_HIDES],
  ['transaction_simulation_failed', REFUSED_HIDES],

  ['invalid_exact_svm_fee_payer_not_managed_by_facilitator', PASSED_OVER],
  ['fee_payer_not_managed_by_facilitator', PASSED_OVER],
  ['fee_payer_not_managed', PASSED_OVER],
  [`${payload}missing_fee_payer`, PASSED_OVER],
  [`${payload}excessive_signers`, PASSED_OVER],
  [`${compute}limit_instruction_too_high`, PASSED_OVER_HIDES],
  [`${compute}price_instruction_too_high`, PASSED_OVER_HIDES],
  ['invalid_exact_svm_network_mismatch', PASSED_OVER],
  ['invalid_exact_svm_unsupported_scheme', PASSED_OVER],
  ['unsupported_scheme', PASSED_OVER],
  [`${wallet}fee_payer_not_isolated`, PASSED_OVER],
  [`${wallet}malformed_compute_budget`, PASSED_OVER],
  [`${wallet}malformed_compute_limit`, PASSED_OVER],
  [`${wallet}malformed_compute_price`, PASSED_OVER],
  [`${wallet}compute_units_too_high`, PASSED_OVER],
  [`${wallet}priority_fee_too_high`, PASSED_OVER],
  [`${wallet}unsupported_compute_budget_instruction`, PASSED_OVER],
  [`${wallet}alt_resolution_not_available`, PASSED_OVER],
  [`${wallet}alt_resolution_failed`, PASSED_OVER],
  [`${wallet}compute_budget_violation`, PASSED_OVER],
  [`${wallet}simulation_failed`, PASSED_OVER_HIDES],
  [`${wallet}cannot_derive_destination_ata`, PASSED_OVER],
  [`${wallet}no_transfer_in_simulation`, PASSED_OVER],
  [`${wallet}transfer_mismatch`, PASSED_OVER],
  [`${wallet}multiple_matching_transfers`, PASSED_OVER],
  [`${wallet}program_not_allowed`, PASSED_OVER],

  ['duplicate_settlement', UNLISTED],
  ['settlement_pending', UNLISTED],
  ['post_settlement_transfer_not_confirmed', UNLISTED],
  ['invalid_exact_svm_transaction_failed', UNLISTED],
  ['settle_exact_svm_transaction_confirmation_timed_out', UNLISTED],
  ['settle_exact_svm_block_height_exceeded', UNLISTED],
  ['invalid_exact_svm_verification_failed', UNLISTED],
  ['invalid_exact_svm_fee_payer_mismatch', UNLISTED],
  ['invalid_exact_svm_payload_transaction', UNLISTED],
  [`${payload}transaction_could_not_be_decoded`, UNLISTED],
];

let first: Scripted;
let second: Scripted;
let says = '';
const valid = { isValid: true, payer: PAYER.address };
beforeAll(async () => {
  first = await startScripted((req, res) =>
    json(
      res,
      req.url === '/verify'
        ? { isValid: says === '', invalidReason: says }
        : { success: false, errorReason: says, transaction: '' },
    ),
  );
  second = await startScripted((_, res) => json(res, valid));
});
afterAll(() => Promise.all([first.close(), second.close()]));

function railOf(...asked: readonly Scripted[]) {
  const facilitators = asked.map(({ url }) => facilitatorAt(url));
  const services = { facilitators, rpcUrls: [], rpcPublic: false, confirmations: 1 };
  return makeRail({ services: () => services }).rail;
}

test.each(WORDS)('behaviour: the word %s is understood at verifying', async (word, { verify }) => {
  says = word;
  const { length } = second.requests;
  const [both, alone] = [railOf(first, second), railOf(first)];
  const [asked, last] = [await both.verify(readPayment(both), OFFER), await alone.verify(readPayment(alone), OFFER)];
  expect(second.requests.length - length).toBe(verify === 'refused' ? 0 : 1);
  if (verify === 'refused') expect(asked).toEqual({ kind: 'refused', reason: word });
  else expect(asked).toMatchObject({ kind: 'valid' });
  // What none takes for whose fee it is, is told to its payer.
  const isDeclined = word.includes('fee_payer_not_managed');
  expect(last.kind).toBe(verify === 'next' && !isDeclined ? 'unavailable' : 'refused');
});

test.each(WORDS)('behaviour: the word %s is understood at settling', async (word, { settle }) => {
  const rail = railOf(first, second);
  const presented = readPayment(rail);
  says = '';
  expect(await rail.verify(presented, OFFER)).toMatchObject({ kind: 'valid' });
  says = word;
  const { length } = second.requests;
  expect((await rail.settle(presented, OFFER, FRESH, GO)).kind).toBe(settle);
  expect(second.requests.length).toBe(length);
});

test('behaviour: every word that the reference facilitator has stands in the table', () => {
  const manifest = createRequire(import.meta.url).resolve('@x402/svm/exact/facilitator');
  const folder = path.join(manifest.slice(0, manifest.lastIndexOf('/dist/')), 'dist/esm');
  const files = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((file) => file.endsWith('.mjs'));
  const text = files.map((file) => readFileSync(path.join(folder, file), 'utf8')).join('\n');
  const theirs = new Set(text.match(/(?<=")(?:invalid_exact_svm_\w+|duplicate_settlement|settlement_pending)(?=")/g));
  expect(theirs.size).toBeGreaterThan(40);
  expect([...theirs].filter((word) => !WORDS.some(([known]) => known === word))).toEqual([]);
});
