// What the tests of Solana's rail towards facilitators share: one way, one offer, and an honest payment of it.
import type { RailOffer, Way } from '../../../../src/domain/payment/way.ts';
import type { PresentedPayment, Rail } from '../../../../src/gateway/rails/rail.ts';
import { findTokenAccount } from '../../../../src/gateway/rails/svm/addresses.ts';
import { SVM_NETWORK, SVM_USDC } from '../../../support/svm/chain.ts';
import {
  buildTransaction,
  computeLimit,
  computePrice,
  keyOf,
  transferChecked,
  type Draft,
} from '../../../support/svm/wire.ts';
import { encode } from '../kit.ts';

export const FEE_PAYER = keyOf('fee payer');
export const PAYER = keyOf('payer');
export const SHOP = keyOf('shop');

export const WAY: Way = {
  ...{
    receiverId: 'default',
    network: SVM_NETWORK,
    scheme: 'exact',
    asset: SVM_USDC,
    decimals: 6,
    payTo: SHOP.address,
  },
  ...{ timeoutSeconds: 300, terms: {} },
};
export const OFFER: RailOffer = {
  way: WAY,
  amount: 10_000n,
  resource: 'http://api.test/report',
  description: 'a report',
};

/** The three instructions of a payment to the shop. */
export function payInstructions(amount: bigint): readonly Draft['instructions'][number][] {
  return [
    computeLimit(20_000),
    computePrice(1n),
    transferChecked({
      source: findTokenAccount(PAYER.address, SVM_USDC) ?? '',
      mint: SVM_USDC,
      destination: findTokenAccount(SHOP.address, SVM_USDC) ?? '',
      authority: PAYER.address,
      amount,
      decimals: 6,
    }),
  ];
}

export const { base64: TRANSACTION } = buildTransaction({
  feePayer: FEE_PAYER,
  sign: [PAYER],
  instructions: payInstructions(10_000n),
});
export const ACCEPTED = {
  scheme: 'exact',
  network: SVM_NETWORK,
  amount: '10000',
  asset: SVM_USDC,
  payTo: SHOP.address,
};

export function readPayment(rail: Rail): PresentedPayment {
  const value = encode({ x402Version: 2, accepted: ACCEPTED, payload: { transaction: TRANSACTION } });
  const presented = rail.read({ version: 2, value }, [WAY]);
  if (!('key' in presented)) throw new Error(JSON.stringify(presented));
  return presented;
}
