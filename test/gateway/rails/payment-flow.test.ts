// `paymentFlow` of a 402, held against the reference packages: their servers would write the same word for the same flow, and
// their clients pay it.
import { applyPaymentFlowWireExtra, resolvePaymentFlow, resolvePaymentFlowPhases } from '@x402/core/server';
import type { PaymentRequired } from '@x402/core/types';
import { ExactEvmScheme } from '@x402/evm/exact/server';
import { ExactSvmScheme } from '@x402/svm/exact/server';
import { describe, expect, test } from 'vitest';
import { makeOffer, settlesFirst, type Receiver } from '../../../src/domain/payment/offer.ts';
import { createPaymentRequired } from '../../../src/domain/payment/payment-required.ts';
import { fullRequirement } from '../../../src/gateway/rails/rails.ts';
import { receiverOf } from '../../cases/receivers.ts';
import { route } from '../../cases/routes.ts';
import { SVM_NETWORK, SVM_USDC } from '../../support/svm/chain.ts';
import { keyOf } from '../../support/svm/wire.ts';

const EVM = receiverOf().ways;
const SOLANA = receiverOf({ network: SVM_NETWORK, asset: SVM_USDC, payTo: keyOf('shop').address }).ways;

function challenge(settle: Receiver['settle'], method: string): PaymentRequired {
  const receiver = { ...receiverOf({ settle }), ways: [...EVM, ...SOLANA] };
  const offer = makeOffer(route('* /r 0.10'), new Map([[receiver.id, receiver]]));
  if ('code' in offer) throw new Error(offer.detail);
  const { header = '' } =
    createPaymentRequired({ v1: false, requirement: fullRequirement })({
      ...{ offer, method, origin: 'https://api.example.com', path: '/r', reason: 'payment_required' },
      chargeId: { signed: `chg_${'x'.repeat(96)}`, nonce: 'x'.repeat(16) },
    }) ?? {};
  return JSON.parse(Buffer.from(header, 'base64').toString()) as PaymentRequired;
}

const SCHEMES = [new ExactEvmScheme(), new ExactSvmScheme()];

describe.each(['auto', 'before_forward', 'before_response'] as const)('settle: %s', (settle) => {
  test.each(['GET', 'HEAD', 'POST', 'PUT', 'DELETE', 'OPTIONS', 'PURGE'])(
    'behaviour: the challenge for a %s names its flow',
    (method) => {
      const { accepts } = challenge(settle, method);
      expect(accepts).toHaveLength(2);
      for (const [index, entry] of accepts.entries()) {
        const scheme = SCHEMES[index];
        if (scheme === undefined) throw new Error('no scheme');
        const resolved = resolvePaymentFlow(scheme, entry);
        const phases = resolvePaymentFlowPhases(resolved.paymentFlow);
        expect(phases.settleBeforeHandler).toBe(settlesFirst(settle, method));
        expect(phases.settleAfterHandler).toBe(!settlesFirst(settle, method));
        const { paymentFlow: _, ...without } = entry.extra;
        expect(applyPaymentFlowWireExtra(without, resolved)).toEqual(entry.extra);
      }
    },
  );
});
