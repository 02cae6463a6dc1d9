// The Solana networks as a chain family. They are listed; a receiver cannot name one yet, and no payment is theirs.
import type { ChainFamily } from '../family.ts';
import type { WayReading } from '../../../domain/network.ts';
import { isSvmAddress } from './addresses.ts';
import { isSvmNetwork, SVM_NETWORKS } from './networks.ts';

const NOT_YET: WayReading = {
  kind: 'issues',
  issues: [
    { field: 'network', message: 'is Solana, which is not taken in this version; write an EVM network such as base' },
  ],
  whole: true,
};

export const SVM: ChainFamily = {
  networks: SVM_NETWORKS,
  readWay: ({ network }) => (isSvmNetwork(network) ? NOT_YET : undefined),
  canonicalPayment: () => undefined,
  nameAddress: (text) => (isSvmAddress(text) ? 'an address of Solana' : undefined),
  addressForm: 'base58 of 32 bytes, in quotes',
  otherNetworks: undefined,
  payments: undefined,
};
