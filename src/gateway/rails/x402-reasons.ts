// What a facilitator's word for "no" means for money. Three questions, three lists: is the facilitator itself unable to
// judge (ask the next one), may the refusal hide that the money moved (nobody knows), or was it decided before anything
// could move (final). A word that is on no list is a refusal that is not final. Words are those of x402 v1 and v2 and of
// the reference facilitator (@x402/evm 2.27); its prefixes are dropped, because others leave them out.

/** Public form of a facilitator's reason: lower-case words joined by `_`, or `fallback` where it is anything else. */
export function publicReason(reason: string | null | undefined, fallback: string): string {
  return typeof reason === 'string' && /^[A-Za-z][A-Za-z0-9_]{2,99}$/.test(reason) ? reason.toLowerCase() : fallback;
}

/**
 * A refused verification that says nothing about the payment: scheme, network and token were compared with our own terms
 * before anybody was asked, so whoever objects to them does not serve this receiver, or failed while looking.
 */
export function cannotJudge(reason: string): boolean {
  return CANNOT_JUDGE.has(stem(reason));
}

/** A refused settlement after which the money may have moved all the same: by this call, an earlier one, or the payer. */
export function mayHideSuccess(reason: string): boolean {
  return MAY_HIDE_SUCCESS.test(stem(reason));
}

/** A refused settlement that is decided before a transaction is sent. */
export function isFinal(reason: string): boolean {
  return FINAL.has(stem(reason));
}

function stem(reason: string): string {
  return reason
    .toLowerCase()
    .replace(/^(?:invalid_exact_evm_|exact_evm_|invalid_)(?:payload_)?(?:authorization_)?/, '');
}

const CANNOT_JUDGE = new Set([
  'unexpected_verify_error',
  'unsupported_scheme',
  'unsupported_network',
  'unsupported_payload_type',
  'scheme',
  'network',
  'x402_version',
  'payment_requirements',
  'network_mismatch',
  'missing_eip712_domain',
  'token_name_mismatch',
  'token_version_mismatch',
  'eip3009_not_supported',
  'asset_not_deployed_contract',
]);

// A used nonce is what a settled payment leaves behind, and a simulation fails on one too. The rest says that something
// was sent and that its end is not known.
const MAY_HIDE_SUCCESS =
  /pending|nonce|already|duplicate|transaction|transfer_event|simulation|timeout|timed_out|unexpected|unknown|internal|error|broadcast|confirm|deployment/;

const FINAL = new Set([
  'insufficient_funds',
  'insufficient_balance',
  'signature',
  'failed_to_parse_signature',
  'eip6492_factory_not_allowed',
  'valid_before',
  'valid_after',
  'value',
  'value_mismatch',
  'value_too_low',
  'recipient_mismatch',
  'typed_data_message',
  'signature_address',
  'from_address_kyt',
  'to_address_kyt',
  'payload',
  ...[...CANNOT_JUDGE].filter((word) => word !== 'unexpected_verify_error'),
]);
