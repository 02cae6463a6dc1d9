// The credentials of x402, version 1 and 2: the only place that knows how either is written. What comes out is one shape
// for both, canonical where two spellings mean the same, with nothing in it that a schema did not name. Only EIP-3009
// authorizations pass; other ways to pay are refused by their name, because guessing at one would deliver for nothing.
// Sources: x402 v1 `X-PAYMENT`, x402 v2 `PAYMENT-SIGNATURE`, EIP-3009.
import { hash } from 'node:crypto';
import { z } from 'zod';
import type { Credential } from '../../../domain/decide.ts';
import { decodeBase64 } from '../../base64.ts';
import { readJson } from '../bounded-json.ts';

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

export type Decoded = {
  /** SHA-256 of the decoded bytes, in hex. */
  readonly sha256: string;
  readonly scheme: string;
  /** As written: CAIP-2 in version 2, a name in version 1. */
  readonly network: string;
  readonly payment: SignedPayment;
  /** Version 2 only. */
  readonly accepted: Accepted | undefined;
  readonly resource: string | undefined;
};
export type Accepted = z.output<typeof acceptedSchema>;

export type DecodeResult =
  | { readonly ok: true; readonly decoded: Decoded }
  /** A public sentence without any of the credential's content. */
  | { readonly ok: false; readonly detail: string };

const MAX_BASE64 = 16 * 1024;
const MAX_DECODED = 12 * 1024;
const LIMITS = { depth: 8, nodes: 256, string: 8192 } as const;
/** Bytes: 65 of a key's signature; a contract's (ERC-1271, ERC-6492) may be longer. */
const SIGNATURE = { min: 65, max: 4000 } as const;
const MAX_UINT256 = 2n ** 256n - 1n;
const MAX_DIGITS = MAX_UINT256.toString().length;
const DIGITS = /^(?:0|[1-9]\d{0,77})$/;

const text = (what: string, max: number) => z.string(`is not ${what}`).max(max, `is longer than ${max} characters`);
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
  .toLowerCase();

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

const acceptedSchema = z.object({
  scheme: text('a scheme', 64),
  network: text('a network', 64),
  amount: uint256,
  asset: text('an asset', 128),
  payTo: text('an address', 128),
  extra: z
    .object({
      name: text('a name', 128).optional(),
      version: text('a version', 32).optional(),
      external_ref: text('a reference', 256).optional(),
      assetTransferMethod: text('a method', 64).optional(),
    })
    .nullish(),
});

const v1Schema = z.object({
  x402Version: z.literal(1, 'is not 1, the version that X-PAYMENT carries'),
  scheme: text('a scheme', 64),
  network: text('a network', 64),
  payload: paymentSchema,
});

const v2Schema = z.object({
  x402Version: z.literal(2, 'is not 2, the version that PAYMENT-SIGNATURE carries'),
  accepted: acceptedSchema,
  resource: z.object({ url: text('a URL', 2048).optional() }).nullish(),
  payload: paymentSchema,
});

/** Canonical: no sign, no leading zero. */
function isUint256(text: string): boolean {
  return DIGITS.test(text) && (text.length < MAX_DIGITS || BigInt(text) <= MAX_UINT256);
}

/** Reads the header value of a credential: at most 16 KiB of standard base64 over at most 12 KiB of JSON. */
export function decodeCredential({ version, value }: Credential): DecodeResult {
  if (value.length > MAX_BASE64) return refuse('is longer than 16 KiB');
  const bytes = decodeBase64(value);
  if (bytes === undefined) return refuse('is not base64 of the standard alphabet');
  if (bytes.length > MAX_DECODED) return refuse('is longer than 12 KiB once decoded');
  const json = readJson(bytes, LIMITS);
  if (!json.ok) return refuse(json.why);
  const foreign = nameForeignPayload(json.value);
  if (foreign !== undefined) return refuse(foreign);
  const sha256 = hash('sha256', bytes, 'hex');
  return version === 2 ? decodeV2(json.value, sha256) : decodeV1(json.value, sha256);
}

function decodeV1(value: unknown, sha256: string): DecodeResult {
  const { success, data, error } = v1Schema.safeParse(value);
  if (!success) return refuse(describe(error));
  const { scheme, network, payload } = data;
  return { ok: true, decoded: { sha256, scheme, network, payment: payload, accepted: undefined, resource: undefined } };
}

function decodeV2(value: unknown, sha256: string): DecodeResult {
  const { success, data, error } = v2Schema.safeParse(value);
  if (!success) return refuse(describe(error));
  const { accepted, payload, resource } = data;
  const { scheme, network } = accepted;
  return { ok: true, decoded: { sha256, scheme, network, payment: payload, accepted, resource: resource?.url } };
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

function nameForeignPayload(value: unknown): string | undefined {
  const payload = member(value, 'payload');
  for (const [name, kind] of FOREIGN) {
    if (member(payload, name) !== undefined) return `is ${kind}, which ${ADVICE}`;
  }
  const method = member(member(member(value, 'accepted'), 'extra'), 'assetTransferMethod');
  if (method === 'permit2') return `is a Permit2 payment, which ${ADVICE}`;
  if (method !== undefined && method !== 'eip3009') return `names an asset transfer method that ${ADVICE}`;
  return undefined;
}

function member(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null && Object.hasOwn(value, name)
    ? Reflect.get(value, name)
    : undefined;
}

/** The first thing that is wrong: where, in the schema's own words. */
function describe({ issues }: z.ZodError): string {
  const [issue] = issues;
  if (issue === undefined) return 'does not have the form of x402';
  const where = issue.path.map(String).join('.');
  const what =
    issue.code === 'invalid_type' && issue.message.startsWith('Invalid input')
      ? 'is missing or of another type'
      : issue.message;
  return where === '' ? 'is not a JSON object' : `has a wrong ${where}: it ${what}`;
}

function refuse(why: string): DecodeResult {
  return { ok: false, detail: `The payment ${why}.` };
}

/** The signed part out of a `Presented`; throws where it is not one that this module made, whose schema it has passed. */
export function readSigned(payload: unknown): SignedPayment {
  if (!isSigned(payload)) throw new TypeError('a payment of another rail');
  return payload;
}

function isSigned(payload: unknown): payload is SignedPayment {
  if (typeof payload !== 'object' || payload === null) return false;
  return 'signature' in payload && 'authorization' in payload && typeof payload.authorization === 'object';
}
