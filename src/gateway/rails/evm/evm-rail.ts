// The rail of EVM networks: scheme `exact`, paid by EIP-3009 authorizations, verified and settled by x402 facilitators.
// A credential becomes a payment key here, and is compared with our own terms before a facilitator is asked. What the
// client repeats of the terms must agree with them. Only what was signed is charged, and it must equal them. Sources:
// x402 v1 and v2, EIP-3009, EIP-712 (the token's name and version), ERC-1271 and ERC-6492 (signatures).
import { z } from 'zod';
import type { RailOffer } from '../../../domain/payment/way.ts';
import { problem } from '../../../domain/problem.ts';
import type { Log } from '../../../host/log.ts';
import type { RailDeps } from '../chain-family.ts';
import type { NetworkRail, PresentedPayment, Refusal } from '../rail.ts';
import type { ChainWords } from '../x402/chain-words.ts';
import { createRequirement } from '../x402/accepts-entry.ts';
import { describeFault, writeReceipt, type Envelope } from '../x402/client-wire.ts';
import { createLook } from './look.ts';
import { canonicalPayment, findEvmNetwork } from './spelling.ts';
import { EVM_NETWORKS } from './known-networks.ts';
import { isExactWrapper, MAGIC } from './erc-6492.ts';

/** Facilitators refuse what expires within 6 seconds: it might not be on the chain in time. */
const EXPIRY_MARGIN_SECONDS = 6n;

/** Seconds that an authorization may hold longer than was asked for: a charge of unknown end stays open for as long. */
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
    receiptHeader: (version, receipt) => writeReceipt(version, receipt, v1NameOf(receipt.payment.network)),
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
    // Address `to` is written as configured: some facilitators compare it as text with payTo.
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
function checkPayment(presented: PresentedPayment, offer: RailOffer, nowMs: number): Refusal | undefined {
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
  // Members that the client leaves out are not compared: the signature decides.
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

// The signed payload: an EIP-3009 authorization, canonical where two spellings mean the same, with nothing in it that the
// schema does not name. Other ways to pay are refused by name, because guessing at one would deliver for nothing.

type Authorization = {
  /** Addresses and nonce in lower case; numbers as canonical decimals. */
  readonly from: string;
  readonly to: string;
  readonly value: string;
  readonly validAfter: string;
  readonly validBefore: string;
  readonly nonce: string;
};

/** The part of a credential that goes on to a facilitator. */
type SignedPayment = { readonly signature: string; readonly authorization: Authorization };

/** A payment with no valid signature that ended in 1970: a facilitator may be asked about it, and nothing can move. */
export const UNSIGNED_PAYMENT: SignedPayment = {
  signature: `0x${'00'.repeat(65)}`,
  authorization: {
    from: `0x${'0'.repeat(39)}1`,
    to: `0x${'0'.repeat(40)}`,
    value: '1',
    validAfter: '0',
    validBefore: '1',
    nonce: `0x${'00'.repeat(32)}`,
  },
};

/** The token's EIP-712 domain that a client says it signed for. */
type SaidToken = { readonly name: string | undefined; readonly version: string | undefined };

type EvmPayload = SignedPayment & {
  /** Everything that the client says beside it. */
  readonly envelope: Envelope;
  readonly token: SaidToken;
};

type PayloadReading =
  | { readonly ok: true; readonly payload: EvmPayload }
  /** A public sentence without any of the credential's content. */
  | { readonly ok: false; readonly detail: string };

/** Length of a signature in bytes: a key's has 65; a contract's (ERC-1271, ERC-6492) may be longer. */
const SIGNATURE = { min: 65, max: 4000 } as const;
const MAX_UINT256 = 2n ** 256n - 1n;
const MAX_DIGITS = MAX_UINT256.toString().length;
const DIGITS = /^(?:0|[1-9]\d{0,77})$/;

const address = z
  .string('is not an address')
  .regex(/^0x[0-9a-fA-F]{40}$/, 'is not an address: 0x and 40 hex digits')
  .toLowerCase();
const uint256 = z
  .string('is not a number written as a string')
  .refine(isUint256, 'is not a whole number of 256 bits in decimal digits');
export const signature = z
  .string('is not a signature')
  .regex(/^0x(?:[0-9a-fA-F]{2})+$/, 'is not 0x and pairs of hex digits')
  .refine(
    (hex) => hex.length >= 2 + 2 * SIGNATURE.min && hex.length <= 2 + 2 * SIGNATURE.max,
    `is not of ${SIGNATURE.min} to ${SIGNATURE.max} bytes`,
  )
  .toLowerCase()
  .refine(
    (hex) => !hex.endsWith(MAGIC) || isExactWrapper(hex),
    'is not an ERC-6492 signature in its exact form: a factory, its call and the signature for the wallet',
  );

const paymentSchema = z.object({
  signature,
  authorization: z.object({
    from: address,
    to: address,
    value: uint256,
    validAfter: uint256,
    validBefore: uint256,
    nonce: z
      .string('is not a nonce')
      .regex(/^0x[0-9a-fA-F]{64}$/, 'is not 0x and 64 hex digits')
      .toLowerCase(),
  }),
});
const tokenSchema = z.object({
  name: z.string('is not a name').max(128, 'is longer than 128 characters').optional(),
  version: z.string('is not a version').max(32, 'is longer than 32 characters').optional(),
});

/** Canonical: no sign, no leading zero. */
function isUint256(text: string): boolean {
  return DIGITS.test(text) && (text.length < MAX_DIGITS || BigInt(text) <= MAX_UINT256);
}

function readPayload(envelope: Envelope): PayloadReading {
  const foreign = nameForeignPayload(envelope);
  if (foreign !== undefined) return { ok: false, detail: `The payment ${foreign}.` };
  const signed = paymentSchema.safeParse(envelope.payload);
  if (!signed.success) return { ok: false, detail: describeFault(signed.error, 'payload') };
  const token = tokenSchema.safeParse(envelope.accepted?.extra ?? {});
  if (!token.success) return { ok: false, detail: describeFault(token.error, 'accepted', 'extra') };
  const { name, version } = token.data;
  return { ok: true, payload: { ...signed.data, envelope, token: { name, version } } };
}

const ADVICE = 'is not taken here; pay with an EIP-3009 authorization (transferWithAuthorization)';

/** Kinds of payment that x402 has and this rail does not, told by the member that only they have. */
const FOREIGN: ReadonlyMap<string, string> = new Map([
  ['permit2Authorization', 'a Permit2 payment'],
  ['delegationManager', 'an ERC-7710 payment'],
  ['permissionContext', 'an ERC-7710 payment'],
  ['delegator', 'an ERC-7710 payment'],
  ['transaction', 'a payment that is a signed transaction'],
  ['voucher', 'a payment by voucher'],
  ['channelConfig', 'a payment by channel'],
  ['channelId', 'a payment by channel'],
  ['deposit', 'a payment by deposit'],
]);

function nameForeignPayload({ payload, accepted }: Envelope): string | undefined {
  for (const [name, kind] of FOREIGN) {
    if (member(payload, name) !== undefined) return `is ${kind}, which ${ADVICE}`;
  }
  const method = member(accepted?.extra, 'assetTransferMethod');
  if (method === 'permit2') return `is a Permit2 payment, which ${ADVICE}`;
  if (method !== undefined && method !== 'eip3009') return `names an asset transfer method that ${ADVICE}`;
  return undefined;
}

function member(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null && Object.hasOwn(value, name)
    ? Reflect.get(value, name)
    : undefined;
}

export function hasAuthorization(payload: unknown): boolean {
  return member(payload, 'authorization') !== undefined;
}

/** The payload of a `PresentedPayment`; throws if it is not one that this folder made, whose schema it has passed. */
function payloadOf(payload: unknown): EvmPayload {
  if (!isPayload(payload)) throw new TypeError('a payment of another rail');
  return payload;
}

function isPayload(payload: unknown): payload is EvmPayload {
  if (typeof payload !== 'object' || payload === null) return false;
  return 'signature' in payload && 'authorization' in payload && typeof payload.authorization === 'object';
}

// Recognises from the payments that come in that this machine's clock is off. Payers sign for a time that begins about
// now and ends soon. If several in a row lie in the past, or all in the future, our clock is wrong rather than theirs.
// The log says it once: all of them are refused, and nothing else says why.

/** Seconds since the epoch. */
type SignedPeriod = { readonly validAfter: bigint; readonly validBefore: bigint };
type ClockWatch = (signed: SignedPeriod, longestSeconds: bigint, now: bigint) => void;

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
