// The Solana networks as a chain family: those that are known by name, and what serves their payments.
import type { ChainFamily } from '../chain-family.ts';
import { isSvmAddress, readBase58 } from './addresses.ts';
import { SVM_IDENTITY } from './look.ts';
import { SVM_NETWORKS } from './known-networks.ts';
import { hasTransaction, UNSIGNED_PAYMENT } from './payload.ts';
import { canonicalPayment } from './spelling.ts';
import { createSvmRail, fullRequirement, SVM_WORDS } from './svm-rail.ts';
import { readSvmWay } from './read-way.ts';
import { SVM_WALLETS } from './message-signature.ts';
import { findSvmRefund } from './find-refund.ts';
import { checkNode } from './check-node.ts';

/** Length of the signature by which a transaction is known. */
const SIGNATURE_BYTES = 64;

export const SVM: ChainFamily = {
  networks: SVM_NETWORKS,
  readWay: readSvmWay,
  canonicalPayment,
  // Base58 means something else in another letter case.
  canonicalIdentifier: () => undefined,
  nameAddress: (text) => (isSvmAddress(text) ? 'an address of Solana' : undefined),
  isTransaction: (text) => readBase58(text, SIGNATURE_BYTES) !== undefined,
  addressForm: 'base58 of 32 bytes, in quotes',
  otherNetworks: undefined,
  isPaidInBrowser: () => false,
  payments: {
    createRail: createSvmRail,
    words: SVM_WORDS,
    fullRequirement,
    isPayment: hasTransaction,
    unsignedPayment: UNSIGNED_PAYMENT,
    identity: SVM_IDENTITY,
    findRefund: findSvmRefund,
    checkNode,
  },
  wallets: SVM_WALLETS,
};
