// The credentials of x402, version 1 and 2: the only place that knows how either is written. What comes out is one shape
// for both; what was signed stays in it unread, for the rail of its network. Bounded before it is parsed.
// Sources: x402 v1 `X-PAYMENT`, x402 v2 `PAYMENT-SIGNATURE`.
import { hash } from 'node:crypto';
import { z } from 'zod';
import type { Credential } from '../../../domain/decide.ts';
import { decodeBase64 } from '../../base64.ts';
import { readJson } from '../service-call.ts';

export type Envelope = {
  readonly version: Credential['version'];
  /** SHA-256 of the decoded bytes, in hex. */
  readonly sha256: string;
  readonly scheme: string;
  /** As written: CAIP-2 in version 2, a name in version 1. */
  readonly network: string;
  /** The terms that the client says it accepted; version 2 only. */
  readonly accepted: Accepted | undefined;
  /** What was signed: the rail's to read. */
  readonly payload: unknown;
};
export type Accepted = z.output<typeof acceptedSchema>;

export type EnvelopeReading =
  | { readonly ok: true; readonly envelope: Envelope }
  /** A public sentence without any of the credential's content. */
  | { readonly ok: false; readonly detail: string };

const MAX_BASE64 = 16 * 1024;
const MAX_DECODED = 12 * 1024;
/** What a client gives back of a 402 nests deep and is long, and is not read. */
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

/** The first thing that is wrong below the members `above`: where, in the schema's own words. */
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
