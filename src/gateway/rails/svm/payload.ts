// Reads what was signed for a payment on a Solana network: a transaction that its payer has signed and its fee payer
// will sign. Source: x402 v2, scheme `exact` on Solana.
import { z } from 'zod';
import { describeFault, type Envelope } from '../x402/client-wire.ts';
import { readTransaction, type Transaction } from './transaction.ts';

type SvmPayload = {
  readonly envelope: Envelope;
  /** Transaction as it was presented: facilitators are given it so. */
  readonly base64: string;
  readonly transaction: Transaction;
};

type SvmPayloadReading =
  | { readonly ok: true; readonly payload: SvmPayload }
  /** A public sentence without any of the credential's content. */
  | { readonly ok: false; readonly detail: string };

const payloadSchema = z.object({
  transaction: z.string('is not a transaction').max(4000, 'is longer than 4000 characters'),
});

/** Payload that no key signed: a facilitator may be asked about it, and nothing can move. */
export const UNSIGNED_PAYMENT = {
  base64: Buffer.alloc(200, 1).toString('base64'),
  transaction: { signers: ['1'.repeat(32)] },
};

export function readSvmPayload(envelope: Envelope): SvmPayloadReading {
  if (envelope.version === 1)
    return { ok: false, detail: 'The payment is of x402 version 1; Solana is paid by version 2.' };
  const { success, data, error } = payloadSchema.safeParse(envelope.payload);
  if (!success) return { ok: false, detail: describeFault(error, 'payload') };
  const reading = readTransaction(data.transaction);
  if (!reading.ok) return { ok: false, detail: `The payment has a wrong payload.transaction: it ${reading.why}.` };
  return { ok: true, payload: { envelope, base64: data.transaction, transaction: reading.transaction } };
}

export function hasTransaction(payload: unknown): boolean {
  return typeof payload === 'object' && payload !== null && Object.hasOwn(payload, 'transaction');
}

/** Payload of a `PresentedPayment`; throws if it is not one that this folder made. */
export function svmPayloadOf(payload: unknown): SvmPayload {
  if (!isPayload(payload)) throw new TypeError('a payment of another rail');
  return payload;
}

function isPayload(payload: unknown): payload is SvmPayload {
  return typeof payload === 'object' && payload !== null && 'base64' in payload && 'transaction' in payload;
}
