// The rail of EVM networks: scheme `exact`, paid by EIP-3009 authorizations, verified and settled by x402 facilitators.
// Here a credential becomes a payment key and is compared with our own terms before anybody is asked. What the client
// echoes has to agree with the terms but is never what is charged: that is what was signed, and it has to be equal.
// Sources: x402 v1 and v2, EIP-3009.
import { problem } from '../../../domain/problem.ts';
import type { NetworkRail, Presented, RailOffer, Refusal } from '../rail.ts';
import type { ChainWords } from '../x402/facilitator-wire.ts';
import { createFacilitators, type FacilitatorDeps, type Facilitators } from '../x402/facilitators.ts';
import { writeReceipt } from '../x402/receipt.ts';
import { createClockWatch } from './clock-watch.ts';
import { createLook, type LookDeps } from './look.ts';
import { findEvmNetwork } from './networks.ts';
import { payloadOf, readPayload, type EvmPayload } from './payload.ts';
import { canonicalPayment } from './payment-key.ts';

export type EvmRailDeps = FacilitatorDeps & LookDeps;
export type EvmRail = NetworkRail & Pick<Facilitators, 'standing'>;

/** Facilitators refuse what expires within 6 seconds: it might not be on the chain in time. */
export const EXPIRY_MARGIN_SECONDS = 6n;

/** How much longer than was asked for an authorization may hold: a charge of unknown end stays open for as long. */
const BEYOND_TIMEOUT_SECONDS = 600n;

export function createEvmRail(deps: EvmRailDeps): EvmRail {
  const watchClock = createClockWatch(deps.log);
  return {
    serves: (network) => findEvmNetwork(network) !== undefined,
    read: readPresented,
    check: (presented, offer, nowMs) => {
      const { authorization } = payloadOf(presented.payload);
      const signed = { validAfter: BigInt(authorization.validAfter), validBefore: BigInt(authorization.validBefore) };
      const longest = BigInt(offer.receiver.maxTimeoutSeconds) + BEYOND_TIMEOUT_SECONDS;
      watchClock(signed, longest, BigInt(Math.floor(nowMs / 1000)));
      return checkPayment(presented, offer, nowMs);
    },
    ...createFacilitators(deps, EVM_WORDS),
    receiptHeader: (version, receipt) => writeReceipt(version, receipt, findEvmNetwork(receipt.network)?.v1),
    look: createLook(deps),
  };
}

const TRANSACTION = /^0x[0-9a-fA-F]{64}$/;

export const EVM_WORDS: ChainWords = {
  payload: ({ payload }, { receiver }) => {
    const { signature, authorization } = payloadOf(payload);
    // `to` is written as configured: some facilitators compare it as text with payTo.
    return { signature, authorization: { ...authorization, to: receiver.payTo } };
  },
  extra: ({ assetName, assetVersion }) => ({ name: assetName, version: assetVersion }),
  readTransaction: (text) => (TRANSACTION.test(text) ? text.toLowerCase() : undefined),
  findCaip2: (network) => findEvmNetwork(network)?.caip2,
  isSameAddress: (a, b) => a.toLowerCase() === b.toLowerCase(),
};

const readPresented: NetworkRail['read'] = (envelope, offer) => {
  const result = readPayload(envelope);
  if (!result.ok) return problem('payment_malformed', result.detail);
  const { version, sha256, network, accepted, resource } = envelope;
  const { from, nonce, value, validBefore } = result.payload.authorization;
  // Version 1 does not say which token was signed for. The facilitator takes it to be ours, so here it is ours as well.
  const asset = accepted?.asset ?? offer?.receiver.asset ?? '';
  const key = canonicalPayment({ network, asset, payer: from, unique: nonce });
  if (key === undefined)
    return problem('payment_malformed', 'The payment names a network or an asset that is not of an EVM chain.');
  return {
    version,
    key,
    sha256,
    chargeId: accepted?.extra?.external_ref,
    resource,
    amount: BigInt(value),
    deadline: BigInt(validBefore),
    payload: result.payload,
  };
};

/** Reasons are x402's own words if it has them: clients may know them. */
function checkPayment(presented: Presented, offer: RailOffer, nowMs: number): Refusal | undefined {
  const { receiver } = offer;
  const payload = payloadOf(presented.payload);
  const { scheme, network } = payload.envelope;
  if (scheme !== receiver.scheme) return { reason: 'invalid_scheme' };
  if (network !== (presented.version === 2 ? receiver.caip2 : receiver.v1Network)) return { reason: 'invalid_network' };
  if (presented.key.asset !== receiver.asset.toLowerCase()) return { reason: 'invalid_asset' };
  return checkAccepted(payload, offer) ?? checkSigned(payload, offer) ?? checkTimes(payload, offer, nowMs);
}

function checkAccepted({ envelope, token }: EvmPayload, { receiver, atomic }: RailOffer): Refusal | undefined {
  const { accepted } = envelope;
  if (accepted === undefined) return undefined;
  if (accepted.payTo.toLowerCase() !== receiver.payTo.toLowerCase())
    return { reason: 'invalid_exact_evm_recipient_mismatch' };
  if (accepted.amount !== atomic.toString()) return { reason: 'invalid_amount' };
  // What is left out is not compared: the signature decides.
  if ((token.name ?? receiver.assetName) !== receiver.assetName)
    return { reason: 'invalid_exact_evm_token_name_mismatch' };
  if ((token.version ?? receiver.assetVersion) !== receiver.assetVersion)
    return { reason: 'invalid_exact_evm_token_version_mismatch' };
  return undefined;
}

function checkSigned({ authorization }: EvmPayload, { receiver, atomic }: RailOffer): Refusal | undefined {
  if (authorization.to !== receiver.payTo.toLowerCase()) return { reason: 'invalid_exact_evm_recipient_mismatch' };
  if (BigInt(authorization.value) !== atomic)
    return { reason: 'invalid_exact_evm_payload_authorization_value_mismatch' };
  return undefined;
}

function checkTimes({ authorization }: EvmPayload, { receiver }: RailOffer, nowMs: number): Refusal | undefined {
  const now = BigInt(Math.floor(nowMs / 1000));
  const [validAfter, validBefore] = [BigInt(authorization.validAfter), BigInt(authorization.validBefore)];
  if (validAfter > now)
    return {
      reason: 'invalid_exact_evm_payload_authorization_valid_after',
      expected: `${validAfter - now} s too early`,
    };
  const missing = now + EXPIRY_MARGIN_SECONDS - validBefore;
  const reason = 'invalid_exact_evm_payload_authorization_valid_before';
  if (missing > 0n) return { reason, expected: `${missing} s are missing` };
  const beyond = validBefore - now - BigInt(receiver.maxTimeoutSeconds) - BEYOND_TIMEOUT_SECONDS;
  return beyond > 0n ? { reason, expected: `${beyond} s too long` } : undefined;
}
