// Credentials that read well and that nobody signed: everything about them agrees with the terms of a 402 but the
// signature, which only a facilitator looks at. Each is another payment. For load on the way to a facilitator.
import { randomBytes } from 'node:crypto';

type Accepted = { readonly payTo: string; readonly amount: string; readonly [field: string]: unknown };

/** The terms that a 402 names in its PAYMENT-REQUIRED header. */
export function readTerms(header: string): Accepted {
  const { accepts } = JSON.parse(Buffer.from(header, 'base64').toString()) as { accepts: [Accepted] };
  return accepts[0];
}

/** `payer`: who is said to pay; by default somebody new. */
export function makeUpPayment(
  accepted: Accepted,
  nowMs: number,
  payer = `0x${randomBytes(20).toString('hex')}`,
): string {
  const authorization = {
    from: payer,
    to: accepted.payTo,
    value: accepted.amount,
    validAfter: '0',
    validBefore: String(Math.floor(nowMs / 1000) + 250),
    nonce: `0x${randomBytes(32).toString('hex')}`,
  };
  const payload = { signature: `0x${'11'.repeat(65)}`, authorization };
  return Buffer.from(JSON.stringify({ x402Version: 2, accepted, payload })).toString('base64');
}
