// The Solana networks as a chain family: those that are known by name.
import type { ChainFamily } from '../family.ts';
import { isSvmAddress } from './addresses.ts';
import { checkNode } from './check-node.ts';
import { SVM_NETWORKS } from './networks.ts';
import { hasTransaction, UNSIGNED_PAYMENT, canonicalPayment } from './payload.ts';
import { createSvmRail, fullRequirement, SVM_WORDS } from './rail.ts';
import { readSvmWay } from './read-way.ts';

export const SVM: ChainFamily = {
  networks: SVM_NETWORKS,
  readWay: readSvmWay,
  canonicalPayment,
  // Base58 means something else in another letter case.
  canonicalIdentifier: () => undefined,
  nameAddress: (text) => (isSvmAddress(text) ? 'an address of Solana' : undefined),
  addressForm: 'base58 of 32 bytes, in quotes',
  otherNetworks: undefined,
  isPaidInBrowser: () => false,
  payments: {
    createRail: createSvmRail,
    words: SVM_WORDS,
    fullRequirement,
    isPayment: hasTransaction,
    unsignedPayment: UNSIGNED_PAYMENT,
    checkNode,
  },
};
