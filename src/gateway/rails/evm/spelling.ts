// Spells an EVM network, and a payment on it, in one way. What a payment names can move money only once on its chain,
// so fifty encodings of one payment are one payment.
import type { PaymentKey } from '../../../domain/payment/charge.ts';
import type { KnownNetwork } from '../../../domain/payment/network.ts';
import { CHAIN, EVM_NETWORKS } from './known-networks.ts';

/** A network that x402 may name: by CAIP-2, or by its name of version 1. Undefined: it is of no EVM network. */
export function findEvmNetwork(name: string): Pick<KnownNetwork, 'caip2' | 'v1' | 'rpcUrls'> | undefined {
  const known = EVM_NETWORKS.find(({ caip2, v1 }) => caip2 === name || v1 === name);
  return known ?? (CHAIN.test(name) ? { caip2: name, v1: undefined, rpcUrls: [] } : undefined);
}

const ADDRESS = /^0x[0-9a-f]{40}$/;
const NONCE = /^0x[0-9a-f]{64}$/;

/** Spells a payment; undefined: the parts name no payment of an EVM network. */
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
