// The rail x402: scheme `exact` on EVM networks, paid by EIP-3009 authorizations, verified and settled by facilitators.
// Here a credential becomes a payment key and is compared with our own terms before anybody is asked. What the client
// echoes has to agree with the terms but is never what is charged: that is what was signed, and it has to be equal.
// Sources: x402 v1 and v2, EIP-3009, CONTRACT section 6.
import { hash } from 'node:crypto';
import { canonicalPayment } from '../../domain/charge.ts';
import { problem } from '../../domain/problem.ts';
import { findNetwork } from '../../domain/receiver.ts';
import { createEvidence, type EvidenceDeps } from './chain.ts';
import { createFacilitators, type FacilitatorDeps } from './facilitator.ts';
import type { AcceptedTerms, Evidence, Presented, Rail, RailOffer } from './rail.ts';
import { decodeCredential, type Accepted } from './x402-wire.ts';

export type X402Deps = FacilitatorDeps & EvidenceDeps;

/** Facilitators refuse what expires within 6 seconds: it might not be on the chain in time. */
export const EXPIRY_MARGIN_SECONDS = 6n;

export function createX402Rail(deps: X402Deps): Rail {
  const { verify, settle } = createFacilitators(deps);
  // By what makes one differ, not by receiver: a stored charge's receiver is made anew every time.
  const evidence = new Map<string, Evidence>();
  return {
    read: readCredential,
    check: checkPayment,
    verify,
    settle,
    receiptHeader,
    evidence: ({ rpcUrl, caip2, confirmations }) => {
      if (rpcUrl === undefined) return undefined;
      const name = JSON.stringify([rpcUrl, caip2, confirmations]);
      let known = evidence.get(name);
      if (known === undefined) evidence.set(name, (known = createEvidence({ caip2, confirmations }, rpcUrl, deps)));
      return known;
    },
  };
}

const readCredential: Rail['read'] = (credential, { receiver }) => {
  const result = decodeCredential(credential);
  if (!result.ok) return problem('payment_malformed', result.detail);
  const { scheme, network, payment, accepted, resource } = result.decoded;
  const { from, to, nonce, value, validAfter, validBefore } = payment.authorization;
  // Version 1 does not say which token was signed for. Whoever verifies takes it to be ours, so here it is ours as well.
  const asset = accepted?.asset ?? receiver.asset;
  const key = canonicalPayment({ network, asset, payer: from, nonce });
  if (key === undefined)
    return problem('payment_malformed', 'The payment names a network or an asset that is not of an EVM chain.');
  return {
    version: credential.version,
    key,
    sha256: hash('sha256', credential.value, 'hex'),
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
function checkPayment(presented: Presented, offer: RailOffer, nowMs: number): string | undefined {
  const { receiver } = offer;
  if (presented.scheme !== receiver.scheme) return 'invalid_scheme';
  if (presented.network !== (presented.version === 2 ? receiver.caip2 : receiver.v1Network)) return 'invalid_network';
  if (presented.key.asset !== receiver.asset.toLowerCase()) return 'invalid_asset';
  return checkAccepted(presented.accepted, offer) ?? checkSigned(presented, offer, nowMs);
}

function checkAccepted(accepted: AcceptedTerms | undefined, { receiver, atomic }: RailOffer): string | undefined {
  if (accepted === undefined) return undefined;
  if (accepted.payTo.toLowerCase() !== receiver.payTo.toLowerCase()) return 'invalid_exact_evm_recipient_mismatch';
  if (accepted.amount !== atomic.toString()) return 'invalid_amount';
  if (accepted.assetName !== receiver.assetName) return 'invalid_exact_evm_token_name_mismatch';
  if (accepted.assetVersion !== receiver.assetVersion) return 'invalid_exact_evm_token_version_mismatch';
  return undefined;
}

function checkSigned(presented: Presented, { receiver, atomic }: RailOffer, nowMs: number): string | undefined {
  if (presented.payTo !== receiver.payTo.toLowerCase()) return 'invalid_exact_evm_recipient_mismatch';
  if (presented.amount !== atomic) return 'invalid_exact_evm_payload_authorization_value_mismatch';
  const now = BigInt(Math.floor(nowMs / 1000));
  if (presented.validAfter > now) return 'invalid_exact_evm_payload_authorization_valid_after';
  if (presented.validBefore < now + EXPIRY_MARGIN_SECONDS)
    return 'invalid_exact_evm_payload_authorization_valid_before';
  return undefined;
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
