// Every network that is known by name, whichever chain family it is of.
import type { KnownNetwork } from '../../domain/network.ts';
import { suggest } from '../../domain/suggest.ts';
import { EVM_NETWORKS } from './evm/networks.ts';
import { SVM_NETWORKS } from './svm/networks.ts';

export const NETWORKS: readonly KnownNetwork[] = [...EVM_NETWORKS, ...SVM_NETWORKS];

/** Spellings of other programs. */
const ALIASES: Readonly<Record<string, string>> = { 'solana-mainnet': 'solana' };

/** By its name, its x402 v1 name or its CAIP-2 name. */
export function findKnownNetwork(name: string): KnownNetwork | undefined {
  const meant = ALIASES[name] ?? name;
  return NETWORKS.find((network) => network.name === meant || network.caip2 === meant);
}

/** The name that was probably meant. */
export function suggestNetwork(name: string): string | undefined {
  return suggest(
    name,
    NETWORKS.map((network) => network.name),
  );
}
