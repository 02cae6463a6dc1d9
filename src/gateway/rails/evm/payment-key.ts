// The one spelling of a payment on an EVM network: what can move money only once on its chain, so that fifty encodings of
// one payment are one payment.
import type { PaymentKey } from '../../../domain/charge.ts';
import { findEvmNetwork } from './networks.ts';

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
