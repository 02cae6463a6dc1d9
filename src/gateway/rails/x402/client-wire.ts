// The messages of x402 to and from a client, version 1 and 2: the credential, an entry of `accepts`, the receipt. No
// other file knows how they are written. The signed part stays unread in a credential's envelope, for the rail of its
// network. A credential is bounded before it is parsed. Sources: x402 v1 `X-PAYMENT`, x402 v2 `PAYMENT-SIGNATURE`.
import { hash } from 'node:crypto';
import { z } from 'zod';
import type { Credential } from '../../../domain/decide.ts';
import { readJson } from '../service-call.ts';
import type { Receipt } from '../../../domain/payment/charge.ts';

export type Envelope = {
  readonly version: Credential['version'];
  /** SHA-256 of the decoded bytes, in hex. */
  readonly sha256: string;
  readonly scheme: string;
  /** Network as written: CAIP-2 in version 2, a name in version 1. */
  readonly network: string;
  /** The terms that the client says it accepted; version 2 only. */
  readonly accepted: AcceptedWay | undefined;
  /** Payload that was signed: the rail's to read. */
  readonly payload: unknown;
};
type AcceptedWay = z.output<typeof acceptedSchema>;

type EnvelopeReading =
  | { readonly ok: true; readonly envelope: Envelope }
  /** A public sentence without any of the credential's content. */
  | { readonly ok: false; readonly detail: string };

const MAX_BASE64 = 16 * 1024;
const MAX_DECODED = 12 * 1024;
/** Clients give parts of a 402 back, which nest deep and are long. They are not read. */
const LIMITS = { depth: 16, nodes: 2048, string: MAX_DECODED } as const;

const text = (what: string, max: number) => z.string(`is not ${what}`).max(max, `is longer than ${max} characters`);

const acceptedSchema = z.object({
  scheme: text('a scheme', 64),
  network: text('a network', 64),
  amount: z
    .string('is not a number written as a string')
    .regex(/^(?:0|[1-9]\d{0,77})$/, 'is not a whole number in decimal digits'),
  asset: text('an asset', 128),
  payTo: text('an address', 128),
  extra: z.looseObject({ external_ref: text('a reference', 256).optional() }).nullish(),
});

const v1Schema = z.object({
  x402Version: z.literal(1, 'is not 1, the version that X-PAYMENT carries'),
  scheme: text('a scheme', 64),
  network: text('a network', 64),
  payload: z.unknown(),
});

const v2Schema = z.object({
  x402Version: z.literal(2, 'is not 2, the version that PAYMENT-SIGNATURE carries'),
  accepted: acceptedSchema,
  payload: z.unknown(),
});

/** Reads the header value of a credential: at most 16 KiB of standard base64 over at most 12 KiB of JSON. */
export function readEnvelope({ version, value }: Credential): EnvelopeReading {
  if (value.length > MAX_BASE64) return refuse('is longer than 16 KiB');
  const bytes = decodeBase64(value);
  if (bytes === undefined) return refuse('is not base64 of the standard alphabet');
  if (bytes.length > MAX_DECODED) return refuse('is longer than 12 KiB once decoded');
  const json = readJson(bytes, LIMITS);
  if (!json.ok) return refuse(json.why);
  const sha256 = hash('sha256', bytes, 'hex');
  if (version === 1) {
    const { success, data, error } = v1Schema.safeParse(json.value);
    if (!success) return { ok: false, detail: describeFault(error) };
    const { scheme, network, payload } = data;
    return { ok: true, envelope: { version, sha256, scheme, network, accepted: undefined, payload } };
  }
  const { success, data, error } = v2Schema.safeParse(json.value);
  if (!success) return { ok: false, detail: describeFault(error) };
  const { accepted, payload } = data;
  const { scheme, network } = accepted;
  return { ok: true, envelope: { version, sha256, scheme, network, accepted, payload } };
}

/** Describes the first fault below the members `above`: its place, in the schema's own words. */
export function describeFault({ issues }: z.ZodError, ...above: readonly string[]): string {
  const [issue] = issues;
  if (issue === undefined) return 'The payment does not have the form of x402.';
  const where = [...above, ...issue.path].map(String).join('.');
  const what =
    issue.code === 'invalid_type' && issue.message.startsWith('Invalid input')
      ? 'is missing or of another type'
      : issue.message;
  return where === '' ? 'The payment is not a JSON object.' : `The payment has a wrong ${where}: it ${what}.`;
}

function refuse(why: string): EnvelopeReading {
  return { ok: false, detail: `The payment ${why}.` };
}

// Base64 as credentials are written: the standard alphabet, with or without padding, nothing else in between (RFC 4648,
// section 4). To decode and count takes a tenth of the time that an expression over every character takes.

/** The bytes that `value` writes; undefined if it is anything else, or empty. */
export function decodeBase64(value: string): Buffer | undefined {
  const padding = value.endsWith('==') ? 2 : value.endsWith('=') ? 1 : 0;
  if (padding > 0 && value.length % 4 !== 0) return undefined;
  // These two characters of the other alphabet are the only ones that Node's decoder takes besides.
  if (value.includes('-') || value.includes('_')) return undefined;
  // The decoder would take one byte of a character that has two.
  if (Buffer.byteLength(value) !== value.length) return undefined;
  const digits = value.length - padding;
  // A single digit writes no byte.
  if (digits === 0 || digits % 4 === 1) return undefined;
  const bytes = Buffer.from(value, 'base64');
  // Node skips letters that are not base64. Then there are fewer bytes than the digits promise.
  return bytes.length === Math.floor((digits * 3) / 4) ? bytes : undefined;
}

// The receipt of x402: the header that tells a client what became of its payment.
// Sources: x402 v1 `X-PAYMENT-RESPONSE`, x402 v2 `PAYMENT-RESPONSE`.

/** Writes the receipt for a client of x402 `version`. `v1Network`: the name of the network in version 1. */
export function writeReceipt(
  version: Credential['version'],
  { payment: { network, payer }, amount, transaction, reason }: Receipt,
  v1Network: string | undefined,
): readonly [name: string, value: string] {
  const success = reason === undefined;
  const settlement = {
    success,
    ...(success ? {} : { errorReason: reason }),
    transaction,
    network: version === 2 ? network : (v1Network ?? network),
    payer,
    ...(success && version === 2 ? { amount: amount.toString() } : {}),
  };
  const name = version === 2 ? 'PAYMENT-RESPONSE' : 'X-PAYMENT-RESPONSE';
  return [name, Buffer.from(JSON.stringify(settlement)).toString('base64')];
}
