// The rail of EVM networks: scheme `exact`, paid by EIP-3009 authorizations, verified and settled by x402 facilitators.
// Here a credential becomes a payment key and is compared with our own terms before anybody is asked. What the client
// echoes has to agree with the terms but is never what is charged: that is what was signed, and it has to be equal.
// Sources: x402 v1 and v2, EIP-3009.
import type { RailOffer } from '../../../domain/payment/way.ts';
import { problem } from '../../../domain/problem.ts';
import type { RailDeps } from '../family.ts';
import type { NetworkRail, Presented, Refusal } from '../rail.ts';
import type { ChainWords } from '../x402/chain-words.ts';
import { writeReceipt, createRequirement } from '../x402/client-wire.ts';
import { createLook } from './look.ts';
import { EVM_NETWORKS, findEvmNetwork } from './networks.ts';
import { payloadOf, readPayload, type EvmPayload, canonicalPayment } from './payload.ts';
import type { Log } from '../../../host/log.ts';

/** Facilitators refuse what expires within 6 seconds: it might not be on the chain in time. */
export const EXPIRY_MARGIN_SECONDS = 6n;

/** How much longer than was asked for an authorization may hold: a charge of unknown end stays open for as long. */
const BEYOND_TIMEOUT_SECONDS = 600n;

export function createEvmRail(deps: RailDeps): NetworkRail {
  const watchClock = createClockWatch(deps.log);
  return {
    serves: (network) => findEvmNetwork(network) !== undefined,
    requirement: createRequirement(EVM_WORDS),
    revision: () => 0,
    watch: () => () => undefined,
    read: readPresented,
    check: (presented, offer, nowMs) => {
      const { authorization } = payloadOf(presented.payload);
      const signed = { validAfter: BigInt(authorization.validAfter), validBefore: BigInt(authorization.validBefore) };
      const longest = BigInt(offer.way.timeoutSeconds) + BEYOND_TIMEOUT_SECONDS;
      watchClock(signed, longest, BigInt(Math.floor(nowMs / 1000)));
      return checkPayment(presented, offer, nowMs);
    },
    ...deps.facilitators.askFor(EVM_WORDS),
    receiptHeader: (version, receipt) => writeReceipt(version, receipt, v1NameOf(receipt.network)),
    look: createLook(deps),
  };
}

function v1NameOf(network: string): string | undefined {
  return findEvmNetwork(network)?.v1;
}

const TRANSACTION = /^0x[0-9a-fA-F]{64}$/;

export const EVM_WORDS: ChainWords = {
  payload: ({ payload }, { way }) => {
    const { signature, authorization } = payloadOf(payload);
    // `to` is written as configured: some facilitators compare it as text with payTo.
    return { signature, authorization: { ...authorization, to: way.payTo } };
  },
  extra: ({ terms }) => terms,
  readTransaction: (text) => (TRANSACTION.test(text) ? text.toLowerCase() : undefined),
  findCaip2: (network) => findEvmNetwork(network)?.caip2,
  isKnown: (network) => EVM_NETWORKS.some(({ caip2, v1 }) => caip2 === network || v1 === network),
  v1NameOf,
  isSameAddress: isSame,
};

const readPresented: NetworkRail['read'] = (envelope, way) => {
  const result = readPayload(envelope);
  if (!result.ok) return problem('payment_malformed', result.detail);
  const { version, sha256, network, accepted } = envelope;
  const { from, nonce, value, validBefore } = result.payload.authorization;
  // Version 1 does not say which token was signed for. The facilitator takes it to be ours, so here it is ours as well.
  const asset = accepted?.asset ?? way?.asset ?? '';
  const key = canonicalPayment({ network, asset, payer: from, unique: nonce });
  if (key === undefined) return undefined;
  return {
    version,
    key,
    sha256,
    chargeId: accepted?.extra?.external_ref,
    amount: BigInt(value),
    deadline: BigInt(validBefore),
    payload: result.payload,
  };
};

function isSame(address: string, other: string | undefined): boolean {
  return address.toLowerCase() === other?.toLowerCase();
}

/** Reasons are x402's own words where it has them: clients may know them. */
function checkPayment(presented: Presented, offer: RailOffer, nowMs: number): Refusal | undefined {
  const { scheme } = offer.way;
  const payload = payloadOf(presented.payload);
  if (payload.envelope.scheme !== scheme) return { reason: 'invalid_scheme', expected: scheme };
  return checkAccepted(payload, offer) ?? checkSigned(payload, offer) ?? checkTimes(payload, offer, nowMs);
}

function checkAccepted({ envelope, token }: EvmPayload, { way, amount }: RailOffer): Refusal | undefined {
  const { accepted } = envelope;
  if (accepted === undefined) return undefined;
  if (accepted.amount !== amount.toString()) return { reason: 'invalid_amount', expected: amount.toString() };
  const { name, version } = way.terms;
  // What is left out is not compared: the signature decides.
  if ((token.name ?? name) !== name) return { reason: 'invalid_exact_evm_token_name_mismatch' };
  if ((token.version ?? version) !== version) return { reason: 'invalid_exact_evm_token_version_mismatch' };
  return undefined;
}

function checkSigned({ authorization }: EvmPayload, { way, amount }: RailOffer): Refusal | undefined {
  if (!isSame(way.payTo, authorization.to))
    return { reason: 'invalid_exact_evm_recipient_mismatch', expected: way.payTo };
  if (BigInt(authorization.value) !== amount)
    return { reason: 'invalid_exact_evm_payload_authorization_value_mismatch', expected: amount.toString() };
  return undefined;
}

function checkTimes({ authorization }: EvmPayload, { way }: RailOffer, nowMs: number): Refusal | undefined {
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
  const beyond = validBefore - now - BigInt(way.timeoutSeconds) - BEYOND_TIMEOUT_SECONDS;
  return beyond > 0n ? { reason, expected: `${beyond} s too long` } : undefined;
}

// Recognises a machine whose clock is off by the payments that come in: payers sign for a time that begins about now and
// ends soon, so several in a row that all lie in the past, or all in the future, say more about our clock than about
// theirs. Said once in the log, because every one of them is refused and nothing else says why.

/** Seconds since the epoch. */
type Signed = { readonly validAfter: bigint; readonly validBefore: bigint };
type ClockWatch = (signed: Signed, longestSeconds: bigint, now: bigint) => void;

const IN_A_ROW = 10;
/** Anybody can make up such payments: they do not fill the log. */
const SAY_AGAIN_SECONDS = 3600n;

function createClockWatch(log: Log): ClockWatch {
  let row: { readonly side: 'past' | 'future'; readonly count: number } | undefined;
  let saidAt: bigint | undefined;
  return ({ validAfter, validBefore }, longestSeconds, now) => {
    const side =
      validBefore <= now ? 'past' : validAfter > now || validBefore > now + longestSeconds ? 'future' : undefined;
    if (side === undefined) {
      row = undefined;
      saidAt = undefined;
      return;
    }
    row = { side, count: row?.side === side ? row.count + 1 : 1 };
    if (row.count < IN_A_ROW || (saidAt !== undefined && now < saidAt + SAY_AGAIN_SECONDS && now >= saidAt)) return;
    saidAt = now;
    const off =
      side === 'past' ? now - validBefore : validAfter > now ? validAfter - now : validBefore - now - longestSeconds;
    log.warn(
      `the clock of this machine may be ${side === 'past' ? 'fast' : 'slow'}: payments in a row were signed for a time in the ${side}, and are refused`,
      {
        payments: row.count,
        seconds_off_at_least: off.toString(),
        time_here: new Date(Number(now) * 1000).toISOString(),
      },
    );
  };
}
