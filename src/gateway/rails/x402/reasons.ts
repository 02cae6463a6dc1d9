// Classifies a facilitator's word for "no". Three classes mean three things for money. A word may be about the payment:
// no other facilitator is asked. It may say that this facilitator cannot judge: another one may. Or it is not known
// here. Every word stands with the source that says it. A word is compared without its case, punctuation and prefixes,
// because facilitators leave those out or add them.

type WordClass = 'payment' | 'cannot_judge' | 'unlisted';

/** The word as it is compared: lower-case letters and digits joined by `_`, without the prefixes that say nothing. */
export function normaliseWord(word: string): string {
  const text = word
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '_')
    .replace(/^_|_$/g, '');
  return text
    .replace(/^(?:invalid_exact_(?:evm|svm)_|exact_(?:evm|svm)_|invalid_)/, '')
    .replace(/^payload_(?=.)/, '')
    .replace(/^authorization_(?=.)/, '');
}

export function classifyWord(word: string): WordClass {
  const text = normaliseWord(word);
  const listed = WORDS.get(text);
  if (listed !== undefined) return listed.means;
  return CANNOT_JUDGE_PATTERNS.some(({ pattern }) => pattern.test(text)) ? 'cannot_judge' : 'unlisted';
}

/** Whether `word` stands in the table itself: then it holds nothing of its sender's. */
export function isListed(word: string): boolean {
  return WORDS.has(normaliseWord(word));
}

/** A refused settlement after which the money may have moved all the same: by this call, an earlier one, or the payer. */
export function mayHideSuccess(word: string): boolean {
  return MAY_HIDE_SUCCESS.test(normaliseWord(word));
}

/** The facilitator failed while it worked: whether before or after anything was sent is not known. */
export function isOwnFailure(word: string): boolean {
  return OWN_FAILURE.test(normaliseWord(word));
}

/**
 * Advice for a payer if no facilitator takes such a payment, whatever is in it. Undefined: the word says something
 * else.
 */
export function adviceFor(word: string): string | undefined {
  return DECLINED.get(normaliseWord(word));
}

/** Makes of a word what a client may be shown: one that could hold anything else is its listed form, or `fallback`. */
export function publicReason(word: string | null | undefined, fallback: string): string {
  if (typeof word !== 'string') return fallback;
  if (/^[A-Za-z][A-Za-z0-9_]{2,99}$/.test(word)) return word.toLowerCase();
  const text = normaliseWord(word);
  return WORDS.has(text) ? text : fallback;
}

/** x402 v1's list of error reasons (x402 1.2.0, types/verify). */
const V1 = 'x402 1.2';
/** The reference facilitator for EVM (@x402/evm 2.27, exact/facilitator). */
const EVM = '@x402/evm 2.27';
/** The reference facilitator for Solana (@x402/svm 2.27, exact/facilitator). */
const SVM = '@x402/svm 2.27';
const CDP = 'Coinbase CDP API';
/** Facilitators in other languages: x402-rs, go, java, and gateways in front of them. */
const OTHERS = 'other facilitators';

type Word = { readonly means: 'payment' | 'cannot_judge'; readonly source: string };

const words = (
  means: Word['means'],
  source: string,
  ...names: readonly string[]
): readonly (readonly [string, Word])[] => names.map((name) => [name, { means, source }] as const);

export const WORDS: ReadonlyMap<string, Word> = new Map([
  ...words(
    'payment',
    V1,
    'insufficient_funds',
    'value',
    'valid_before',
    'valid_after',
    'signature',
    'recipient_mismatch',
  ),
  ...words(
    'payment',
    V1,
    'payload',
    'payment',
    'typed_data_message',
    'signature_address',
    'value_too_low',
    'payment_expired',
  ),
  ...words('payment', EVM, 'insufficient_balance', 'value_mismatch', 'nonce_already_used', 'failed_to_parse_signature'),
  ...words('payment', EVM, 'transaction_simulation', 'transaction_simulation_failed'),
  ...words('payment', SVM, 'mint_mismatch', 'amount_mismatch', 'signature_invalid', 'memo_mismatch', 'memo_count'),
  ...words('payment', SVM, 'no_transfer_instruction', 'transaction_fee_payer_transferring_funds'),
  ...words('payment', SVM, 'unknown_fourth_instruction', 'unknown_fifth_instruction', 'unknown_sixth_instruction'),
  ...words('payment', SVM, 'unknown_seventh_instruction', 'unknown_optional_instruction'),
  ...words('payment', SVM, 'transaction_instructions_length'),
  ...words('payment', SVM, 'transaction_instructions_compute_limit_instruction'),
  ...words('payment', SVM, 'transaction_instructions_compute_price_instruction'),
  ...words('payment', CDP, 'from_address_kyt', 'to_address_kyt'),
  ...words('payment', OTHERS, 'amount', 'payment_amount', 'payment_early'),
  ...words('cannot_judge', V1, 'scheme', 'network', 'x402_version', 'payment_requirements'),
  ...words(
    'cannot_judge',
    EVM,
    'network_mismatch',
    'missing_eip712_domain',
    'token_name_mismatch',
    'token_version_mismatch',
  ),
  ...words('cannot_judge', EVM, 'eip3009_not_supported', 'asset_not_deployed_contract', 'eip6492_factory_not_allowed'),
  ...words('cannot_judge', EVM, 'undeployed_smart_wallet', 'smart_wallet_deployment_failed'),
  ...words('cannot_judge', SVM, 'fee_payer_not_managed_by_facilitator', 'missing_fee_payer', 'excessive_signers'),
  ...words('cannot_judge', OTHERS, 'fee_payer_not_managed'),
  ...words('cannot_judge', OTHERS, 'chain_id_mismatch', 'asset_mismatch', 'accepted_requirements_mismatch', 'format'),
  ...words('cannot_judge', OTHERS, 'no_matching_payment_handler_found'),
]);

export const CANNOT_JUDGE_PATTERNS: readonly { readonly pattern: RegExp; readonly source: string }[] = [
  { pattern: /^unsupported_/, source: V1 },
  { pattern: /^unexpected_/, source: V1 },
  { pattern: /^unknown_/, source: OTHERS },
  { pattern: /^smart_wallet_/, source: SVM },
  { pattern: /_too_high$/, source: SVM },
  { pattern: /^internal_/, source: CDP },
  { pattern: /_error$/, source: OTHERS },
  { pattern: /^rate_limit/, source: CDP },
  { pattern: /^couldn_t_validate_/, source: OTHERS },
];

const MAY_HIDE_SUCCESS =
  /pending|nonce|^transaction_|simulation_failed|duplicate_settlement|^already_|_already_|timeout|timed_out/;
const ANOTHER_FEE_PAYER = 'pay with the fee payer that is named now';
const DEPLOYED = 'deploy the wallet first, or pay otherwise';
/** Words for a payment that no facilitator takes, with what helps. */
const DECLINED: ReadonlyMap<string, string> = new Map([
  ['fee_payer_not_managed', ANOTHER_FEE_PAYER],
  ['fee_payer_not_managed_by_facilitator', ANOTHER_FEE_PAYER],
  ['eip6492_factory_not_allowed', DEPLOYED],
  ['undeployed_smart_wallet', DEPLOYED],
  ['smart_wallet_deployment_failed', DEPLOYED],
  ['eip3009_not_supported', 'pay otherwise'],
]);
const OWN_FAILURE = /^unexpected_|^unknown_|^internal_|_error$/;
