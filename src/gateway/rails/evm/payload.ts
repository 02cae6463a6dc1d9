// The signed payload of a payment on an EVM network: an EIP-3009 authorization, canonical where two spellings mean the
// same, with nothing in it that the schema does not name. Other ways to pay are refused by name, because guessing at one
// would deliver for nothing. Sources: EIP-3009, EIP-712 (the token's name and version), ERC-1271 and ERC-6492
// (signatures).
import { z } from 'zod';
import { describeFault, type Envelope } from '../x402/envelope.ts';
import { isMalformedWrapper } from './wrapper.ts';

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
