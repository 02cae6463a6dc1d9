// Spells a payment on a Solana network in one way: its message can land only once, with whatever signatures.
import type { Spelling } from '../../../domain/payment/charge.ts';
import { isSvmAddress } from './addresses.ts';
import { findSvmNetwork } from './known-networks.ts';

const SHA256 = /^[0-9a-f]{64}$/;

/** Spells a payment; undefined: the parts name no payment of a Solana network. */
export const canonicalPayment: Spelling['payment'] = ({ network: name, asset, payer, unique: raw }) => {
  const network = findSvmNetwork(name)?.caip2;
  const unique = raw.toLowerCase();
  if (network === undefined || !isSvmAddress(asset) || !isSvmAddress(payer) || !SHA256.test(unique)) return undefined;
  return { network, asset, payer, unique };
};
