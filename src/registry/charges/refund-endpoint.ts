// POST /v1/billing/charges/{id}/refunds: records what an operator sent back. Tollgate holds no key and sends no money.
import type { z } from 'zod';
import { readRefunds } from '../../domain/payment/refund.ts';
import { formatPrice } from '../../domain/payment/money.ts';
import { standingOf } from '../../domain/payment/whereabouts.ts';
import { problem, type Problem } from '../../domain/problem.ts';
import { causeOf } from '../auth/author.ts';
import { describePrincipal } from '../auth/credentials.ts';
import { fail, invalidBody, jsonResponse, type EndpointCall, type EndpointOutcome } from '../http/endpoint.ts';
import type { Services } from '../http/services.ts';
import type { chargeParams, refundBody } from './charge-schemas.ts';
import { viewCharge } from './charge-view.ts';
import { withLedger } from './ledger-endpoints.ts';
import { recordRefund, type RefundOutcome } from './record-refund.ts';

const ACTOR_BYTES = 8;
const BUSY_SECONDS = 10;
const CHAIN_SECONDS = 5;

export function refundCharge(
  call: EndpointCall<z.output<typeof chargeParams>, unknown, z.output<typeof refundBody>>,
  services: Services,
): Promise<EndpointOutcome> {
  const { params, body, principal } = call;
  const { prover, random, log, networks } = services;
  return withLedger(services, async (ledger) => {
    const actor = { owner: `operator-${random(ACTOR_BYTES).toString('hex')}`, cause: causeOf(call) };
    const { transaction, amount, reason = '', unproven: isUnproven = false } = body;
    const request = { chargeId: params.id, transaction, amount, reason, isUnproven };
    const outcome = await recordRefund(request, { ledger, prover, actor });
    if (outcome.kind !== 'recorded' && outcome.kind !== 'known') return fail(problemOf(outcome));
    const { charge } = outcome;
    if (outcome.kind === 'recorded') {
      const recorded = ledger.spelling.identifier(transaction);
      log.info('charge refunded', {
        charge_id: charge.id,
        route_id: charge.route.id,
        payer: charge.payment.payer,
        network: charge.payment.network,
        asset: charge.way.asset,
        amount: formatPrice({ units: outcome.amount, scale: charge.way.decimals }),
        currency: charge.price.currency,
        amount_atomic: outcome.amount,
        transaction: recorded,
        proven: readRefunds(charge.refunds).some((each) => each.transaction === recorded && each.logIndex !== null),
        reason: reason === '' ? undefined : reason,
        by: describePrincipal(principal),
      });
    }
    const view = viewCharge({ ...charge, ...standingOf(charge, ledger.now()) }, networks);
    return jsonResponse(outcome.kind === 'recorded' ? 201 : 200, view);
  });
}

function problemOf(outcome: Exclude<RefundOutcome, { readonly kind: 'recorded' | 'known' }>): Problem {
  switch (outcome.kind) {
    case 'unknown_charge':
      return problem('not_found', 'There is no charge with this id.');
    case 'invalid':
      return invalidBody([{ pointer: `/${outcome.member}`, detail: `This member ${outcome.why}.` }]);
    case 'exceeds':
      return problem('refund_exceeds', `The refund is not recorded: ${outcome.why}.`);
    case 'differs':
      return problem('duplicate', `The refund is not recorded: ${outcome.why}.`);
    case 'busy':
      return problem('payment_in_use', `The refund is not recorded: ${outcome.why}.`, {
        retryAfter: BUSY_SECONDS,
      });
    case 'unproven':
      return problem('refund_unproven', `The refund is not proven: ${outcome.why}.`);
    case 'chain_away':
      return problem('chain_unavailable', `The refund is not recorded: ${outcome.why}.`, {
        retryAfter: CHAIN_SECONDS,
      });
    default:
      return outcome satisfies never;
  }
}
