// The rail x402: scheme `exact` on EVM networks, paid by EIP-3009 authorizations, verified and settled by facilitators.
// Here a credential becomes a payment key and is compared with our own terms before anybody is asked. What the client
// echoes has to agree with the terms but is never what is charged: that is what was signed, and it has to be equal.
// Sources: x402 v1 and v2, EIP-3009.
import { canonicalPayment } from '../../../domain/charge.ts';
import { problem } from '../../../domain/problem.ts';
import { findNetwork } from '../../../domain/receiver.ts';
import { createLook, type LookDeps } from './look.ts';
import { createClockWatch } from '../clock-watch.ts';
import { createFacilitators, type FacilitatorDeps } from '../x402/facilitators.ts';
import type { AcceptedTerms, Presented, Rail, RailOffer, Refusal } from '../rail.ts';
import { decodeCredential, type Accepted } from '../x402/envelope.ts';

export type X402Deps = FacilitatorDeps & LookDeps;

/** Facilitators refuse what expires within 6 seconds: it might not be on the chain in time. */
export const EXPIRY_MARGIN_SECONDS = 6n;

/** How much longer than was asked for an authorization may hold: a charge of unknown end stays open for as long. */
const BEYOND_TIMEOUT_SECONDS = 600n;

export function createX402Rail(deps: X402Deps): Rail {
  const watchClock = createClockWatch(deps.log);
  return {
    read: readCredential,
    check: (presented, offer, nowMs) => {
      const longest = BigInt(offer.receiver.maxTimeoutSeconds) + BEYOND_TIMEOUT_SECONDS;
      watchClock(presented, longest, BigInt(Math.floor(nowMs / 1000)));
      return checkPayment(presented, offer, nowMs);
    },
    ...createFacilitators(deps),
    receiptHeader,
    look: createLook(deps),
  };
}

const readCredential: Rail['read'] = (credential, offer) => {
  const result = decodeCredential(credential);
  if (!result.ok) return problem('payment_malformed', result.detail);
  const { sha256, scheme, network, payment, accepted, resource } = result.decoded;
  const { from, to, nonce, value, validAfter, validBefore } = payment.authorization;
  // Version 1 does not say which token was signed for. Whoever verifies takes it to be ours, so here it is ours as well.
  const asset = accepted?.asset ?? offer?.receiver.asset ?? '';
  const key = canonicalPayment({ network, asset, payer: from, nonce });
  if (key === undefined)
    return problem('payment_malformed', 'The payment names a network or an asset that is not of an EVM chain.');
  return {
    version: credential.version,
    key,
    sha256,
    scheme,
    network,
    externalRef: accepted?.extra?.external_ref,
    accepted: accepted && readAccepted(accepted),
    resource,
    amount: BigInt(value),
    payTo: to,
    validAfter: BigInt(validAfter),
    validBefore: BigInt(validBefore),
    payload: payment,
  };
};

function readAccepted({ asset, payTo, amount, extra }: Accepted): AcceptedTerms {
  return { asset, payTo, amount, assetName: extra?.name, assetVersion: extra?.version };
}

/** Reasons are x402's own words where it has them: clients may know them. */
function checkPayment(presented: Presented, offer: RailOffer, nowMs: number): Refusal | undefined {
  const { receiver } = offer;
  if (presented.scheme !== receiver.scheme) return { reason: 'invalid_scheme' };
  if (presented.network !== (presented.version === 2 ? receiver.caip2 : receiver.v1Network))
    return { reason: 'invalid_network' };
  if (presented.key.asset !== receiver.asset.toLowerCase()) return { reason: 'invalid_asset' };
  return (
    checkAccepted(presented.accepted, offer) ?? checkSigned(presented, offer) ?? checkTimes(presented, offer, nowMs)
  );
}

function checkAccepted(accepted: AcceptedTerms | undefined, { receiver, atomic }: RailOffer): Refusal | undefined {
  if (accepted === undefined) return undefined;
  if (accepted.payTo.toLowerCase() !== receiver.payTo.toLowerCase())
    return { reason: 'invalid_exact_evm_recipient_mismatch' };
  if (accepted.amount !== atomic.toString()) return { reason: 'invalid_amount' };
  // What is left out is not compared: the signature decides.
  if ((accepted.assetName ?? receiver.assetName) !== receiver.assetName)
    return { reason: 'invalid_exact_evm_token_name_mismatch' };
  if ((accepted.assetVersion ?? receiver.assetVersion) !== receiver.assetVersion)
    return { reason: 'invalid_exact_evm_token_version_mismatch' };
  return undefined;
}

function checkSigned(presented: Presented, { receiver, atomic }: RailOffer): Refusal | undefined {
  if (presented.payTo !== receiver.payTo.toLowerCase()) return { reason: 'invalid_exact_evm_recipient_mismatch' };
  if (presented.amount !== atomic) return { reason: 'invalid_exact_evm_payload_authorization_value_mismatch' };
  return undefined;
}

/** What holds far longer than was asked for would keep a charge of unknown end open for as long. */
const LONGEST_BEYOND_SECONDS = 600n;

function checkTimes(presented: Presented, { receiver }: RailOffer, nowMs: number): Refusal | undefined {
  const now = BigInt(Math.floor(nowMs / 1000));
  const { validAfter, validBefore } = presented;
  if (validAfter > now)
    return {
      reason: 'invalid_exact_evm_payload_authorization_valid_after',
      expected: `${validAfter - now} s too early`,
    };
  const missing = now + EXPIRY_MARGIN_SECONDS - validBefore;
  const reason = 'invalid_exact_evm_payload_authorization_valid_before';
  if (missing > 0n) return { reason, expected: `${missing} s are missing` };
  const beyond = validBefore - now - BigInt(receiver.maxTimeoutSeconds) - LONGEST_BEYOND_SECONDS;
  return beyond > 0n ? { reason, expected: `${beyond} s too long` } : undefined;
}

const receiptHeader: Rail['receiptHeader'] = (version, { success, network, payer, amount, transaction, reason }) => {
  const name = version === 2 ? 'PAYMENT-RESPONSE' : 'X-PAYMENT-RESPONSE';
  const settlement = {
    success,
    ...(success ? {} : { errorReason: reason }),
    transaction,
    network: version === 2 ? network : (findNetwork(network)?.v1 ?? network),
    payer,
    ...(success && version === 2 ? { amount } : {}),
  };
  return [name, Buffer.from(JSON.stringify(settlement)).toString('base64')];
};
