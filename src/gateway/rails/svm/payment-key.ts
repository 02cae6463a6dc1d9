// The one spelling of a payment on a Solana network: a message can land only once, whoever signs beside its payer.
import type { Spelling } from '../../../domain/charge.ts';
import { isSvmAddress } from './addresses.ts';
import { findSvmNetwork } from './networks.ts';

const SHA256 = /^[0-9a-f]{64}$/;

/** Undefined: the parts name no payment of a Solana network. */
export const canonicalPayment: Spelling['payment'] = ({ network: name, asset, payer, unique: raw }) => {
  const network = findSvmNetwork(name)?.caip2;
  const unique = raw.toLowerCase();
  if (network === undefined || !isSvmAddress(asset) || !isSvmAddress(payer) || !SHA256.test(unique)) return undefined;
  return { network, asset, payer, unique };
};
