// The signed payload of a payment on an EVM network: an EIP-3009 authorization, canonical where two spellings mean the
// same, with nothing in it that the schema does not name. Other ways to pay are refused by name, because guessing at one
// would deliver for nothing. Sources: EIP-3009, EIP-712 (the token's name and version), ERC-1271 and ERC-6492
// (signatures).
import { z } from 'zod';
import { describeFault, type Envelope } from '../x402/client-wire.ts';
import type { PaymentKey } from '../../../domain/charge.ts';
import { findEvmNetwork } from './networks.ts';

export type Authorization = {
  /** Addresses and nonce in lower case; numbers as canonical decimals. */
  readonly from: string;
  readonly to: string;
  readonly value: string;
  readonly validAfter: string;
  readonly validBefore: string;
  readonly nonce: string;
};

/** What of a credential goes on to a facilitator. */
export type SignedPayment = { readonly signature: string; readonly authorization: Authorization };

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
export type SaidToken = { readonly name: string | undefined; readonly version: string | undefined };

export type EvmPayload = SignedPayment & {
  /** Everything that the client says beside it. */
  readonly envelope: Envelope;
  readonly token: SaidToken;
};

export type PayloadReading =
  | { readonly ok: true; readonly payload: EvmPayload }
  /** A public sentence without any of the credential's content. */
  | { readonly ok: false; readonly detail: string };

/** Bytes: 65 of a key's signature; a contract's (ERC-1271, ERC-6492) may be longer. */
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
const signature = z
  .string('is not a signature')
  .regex(/^0x(?:[0-9a-fA-F]{2})+$/, 'is not 0x and pairs of hex digits')
  .refine(
    (hex) => hex.length >= 2 + 2 * SIGNATURE.min && hex.length <= 2 + 2 * SIGNATURE.max,
    `is not of ${SIGNATURE.min} to ${SIGNATURE.max} bytes`,
  )
  .toLowerCase()
  .refine(
    (hex) => !isMalformedWrapper(hex),
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

export function readPayload(envelope: Envelope): PayloadReading {
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

/** The payload of a `Presented`; throws if it is not one that this folder made, whose schema it has passed. */
export function payloadOf(payload: unknown): EvmPayload {
  if (!isPayload(payload)) throw new TypeError('a payment of another rail');
  return payload;
}

function isPayload(payload: unknown): payload is EvmPayload {
  if (typeof payload !== 'object' || payload === null) return false;
  return 'signature' in payload && 'authorization' in payload && typeof payload.authorization === 'object';
}

// The one spelling of a payment on an EVM network: what can move money only once on its chain, so that fifty encodings of
// one payment are one payment.

const ADDRESS = /^0x[0-9a-f]{40}$/;
const NONCE = /^0x[0-9a-f]{64}$/;

/** Undefined: the parts name no payment of an EVM network. */
export function canonicalPayment(raw: PaymentKey): PaymentKey | undefined {
  const network = findEvmNetwork(raw.network)?.caip2;
  const [asset, payer, nonce] = [raw.asset.toLowerCase(), raw.payer.toLowerCase(), raw.unique.toLowerCase()];
  if (network === undefined || !ADDRESS.test(asset) || !ADDRESS.test(payer) || !NONCE.test(nonce)) return undefined;
  return { network, asset, payer, unique: nonce };
}

/** An address, or the hash of a transaction; undefined: it is not hexadecimal. */
export function canonicalIdentifier(text: string): string | undefined {
  return /^0x[0-9a-f]+$/i.test(text) ? text.toLowerCase() : undefined;
}

// The signature of a contract that may not be on the chain yet: a factory, the call that makes it put the contract there, and
// the signature that the contract is shown then. Facilitators read it leniently, and take for valid what no transaction
// settles, so here it has exactly one form.
// Source: ERC-6492.

const MAGIC = '6492'.repeat(16);
const WORD = 32;
const ADDRESS_BYTES = 20;
const SELECTOR_BYTES = 4;

/** Whether `signature`, as hex in lower case, is such a one and not in its exact form. */
function isMalformedWrapper(signature: string): boolean {
  if (!signature.endsWith(MAGIC)) return false;
  return !isWrapped(Buffer.from(signature.slice(2, -MAGIC.length), 'hex'));
}

/** Three words (the factory, and where the two others begin), then the call and the inner signature, with nothing between. */
function isWrapped(bytes: Buffer): boolean {
  const factory = bytes.subarray(WORD - ADDRESS_BYTES, WORD);
  if (!isZero(bytes.subarray(0, WORD - ADDRESS_BYTES)) || isZero(factory)) return false;
  const call = readBytes(bytes, 3 * WORD);
  if (call === undefined || call.value.length < SELECTOR_BYTES) return false;
  const inner = readBytes(bytes, call.end);
  if (inner === undefined || inner.value.length === 0 || inner.end !== bytes.length) return false;
  // A signature in two wrappers is taken out of one of them to be verified and out of both to be settled.
  if (inner.value.toString('hex').endsWith(MAGIC)) return false;
  return readNumber(bytes, WORD) === 3 * WORD && readNumber(bytes, 2 * WORD) === call.end;
}

/** A length, so many bytes, and zeros up to a whole word; `end` may be beyond the last byte. */
function readBytes(bytes: Buffer, at: number): { readonly value: Buffer; readonly end: number } | undefined {
  const length = readNumber(bytes, at);
  if (length === undefined) return undefined;
  const start = at + WORD;
  const end = start + Math.ceil(length / WORD) * WORD;
  const isFilledUp = isZero(bytes.subarray(start + length, end));
  return isFilledUp ? { value: bytes.subarray(start, start + length), end } : undefined;
}

/** A word that is a small number. */
function readNumber(bytes: Buffer, at: number): number | undefined {
  const word = bytes.subarray(at, at + WORD);
  return word.length === WORD && isZero(word.subarray(0, WORD - 4)) ? word.readUInt32BE(WORD - 4) : undefined;
}

function isZero(bytes: Buffer): boolean {
  return bytes.every((byte) => byte === 0);
}
