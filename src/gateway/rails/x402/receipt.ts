// The receipt of x402: the header that tells a client what became of its payment.
// Sources: x402 v1 `X-PAYMENT-RESPONSE`, x402 v2 `PAYMENT-RESPONSE`.
import type { Credential } from '../../../domain/decide.ts';
import type { Receipt } from '../rail.ts';

/** For a client of x402 `version`. `v1Network`: the name of the network in version 1. */
export function writeReceipt(
  version: Credential['version'],
  { success, network, payer, amount, transaction, reason }: Receipt,
  v1Network: string | undefined,
): readonly [name: string, value: string] {
  const settlement = {
    success,
    ...(success ? {} : { errorReason: reason }),
    transaction,
    network: version === 2 ? network : (v1Network ?? network),
    payer,
    ...(success && version === 2 ? { amount } : {}),
  };
  const name = version === 2 ? 'PAYMENT-RESPONSE' : 'X-PAYMENT-RESPONSE';
  return [name, Buffer.from(JSON.stringify(settlement)).toString('base64')];
}
