// The EVM networks as a chain family: any chain by its number, many by name.
import type { ChainFamily } from '../chain-family.ts';
import { findEvmRefund } from './find-refund.ts';
import { checkNode } from './check-node.ts';
import { EVM_IDENTITY } from './look.ts';
import { canonicalIdentifier, canonicalPayment } from './spelling.ts';
import { CHAIN, EVM_NETWORKS } from './known-networks.ts';
import { createEvmRail, EVM_WORDS, hasAuthorization, UNSIGNED_PAYMENT } from './evm-rail.ts';
import { readEvmWay } from './read-way.ts';
import { EVM_WALLETS } from './message-signature.ts';
import { createRequirement } from '../x402/accepts-entry.ts';

const ADDRESS = /^0x[0-9a-fA-F]{40}$/;
const TRANSACTION = /^0x[0-9a-fA-F]{64}$/;

export const EVM: ChainFamily = {
  networks: EVM_NETWORKS,
  readWay: readEvmWay,
  canonicalPayment,
  canonicalIdentifier,
  nameAddress: (text) => (ADDRESS.test(text) ? 'an address of an EVM network' : undefined),
  isTransaction: (text) => TRANSACTION.test(text),
  addressForm: '0x and 40 hex digits, in quotes',
  otherNetworks: 'any other EVM chain is eip155: and its chain id',
  isPaidInBrowser: (network) => CHAIN.test(network),
  payments: {
    createRail: createEvmRail,
    words: EVM_WORDS,
    fullRequirement: createRequirement(EVM_WORDS),
    isPayment: hasAuthorization,
    unsignedPayment: UNSIGNED_PAYMENT,
    identity: EVM_IDENTITY,
    findRefund: findEvmRefund,
    checkNode,
  },
  wallets: EVM_WALLETS,
};
