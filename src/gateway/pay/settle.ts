// One attempt to settle a claimed charge, and the three ways in which it can end. The ledger knows that a settlement may
// have been sent before it is sent; whatever is not certain afterwards stays `settling` for the reconciler.
// CONTRACT section 6, rule 6.
import type { Charge } from '../../domain/charge.ts';
import { LedgerUnavailable, type Advanced } from '../../domain/ledger.ts';
import type { ChargeEvent } from '../../domain/transition.ts';
import type { Receipt } from '../rails/rail.ts';
import type { PayDeps, Payment } from './payment.ts';

export type SettleEnd =
  | { readonly kind: 'settled'; readonly charge: Charge; readonly receipt: Receipt }
  | { readonly kind: 'refused'; readonly receipt: Receipt }
  /** The money may have moved, or may yet. */
  | { readonly kind: 'unknown' }
  /** The charge is somebody else's by now, or the ledger is away: nothing was sent by us. */
  | { readonly kind: 'lost'; readonly because: 'taken_over' | 'ledger' };

export async function settleCharge(deps: PayDeps, payment: Payment, charge: Charge): Promise<SettleEnd> {
  const { rail, log, options } = deps;
  // A claim may have come this far in one step.
  const started =
    charge.state === 'settling'
      ? ({ kind: 'ok', charge } as const)
      : await step(deps, payment, charge.id, { kind: 'settle_started', leaseMs: options.leaseMs });
  if (started === 'unavailable') return { kind: 'lost', because: 'ledger' };
  if (started.kind !== 'ok') return { kind: 'lost', because: 'taken_over' };
  if (started.charge !== charge) deps.chargeLog.changed(started.charge);

  const end = await rail.settle(payment.presented, payment.railOffer, { afterUnknown: started.charge.attempts > 0 });
  switch (end.kind) {
    case 'settled': {
      const { transaction } = end.receipt;
      const proof = { transaction, logIndex: null, amount: payment.offer.atomic, payer: payment.presented.key.payer };
      const settled = await step(deps, payment, charge.id, { kind: 'settled', proof, leaseMs: options.leaseMs });
      if (settled !== 'unavailable' && settled.kind === 'ok') {
        deps.chargeLog.changed(settled.charge);
        return { kind: 'settled', charge: settled.charge, receipt: end.receipt };
      }
      // Settled, and the ledger does not hold it: serving now and again after the reconciler found it would be twice.
      log.error('a settlement could not be recorded', { charge_id: charge.id, transaction });
      return { kind: 'unknown' };
    }
    case 'refused': {
      const { reason, final } = end;
      const refused = await step(deps, payment, charge.id, {
        kind: 'settle_refused',
        reason,
        final,
        retryInMs: options.retryMs,
      });
      if (refused === 'unavailable' || refused.kind !== 'ok') return { kind: 'unknown' };
      deps.chargeLog.changed(refused.charge);
      return refused.charge.state === 'failed' ? { kind: 'refused', receipt: end.receipt } : { kind: 'unknown' };
    }
    case 'unknown': {
      log.warn('a settlement has an unknown end', { charge_id: charge.id, reason: end.reason, detail: end.detail });
      const doubted = await step(deps, payment, charge.id, {
        kind: 'settle_unknown',
        reason: end.reason,
        retryInMs: options.retryMs,
      });
      if (doubted !== 'unavailable' && doubted.kind === 'ok') deps.chargeLog.changed(doubted.charge);
      return { kind: 'unknown' };
    }
    default:
      return end satisfies never;
  }
}

/** One change of the ledger, tried twice: the second time the ledger recognises the first. */
async function step(
  { ledger, newId, log }: PayDeps,
  { owner }: Payment,
  id: string,
  event: ChargeEvent,
): Promise<Advanced | 'unavailable'> {
  const actor = { owner, changeId: newId() };
  for (let tries = 0; ; tries++) {
    try {
      return await ledger.advance(id, event, actor);
    } catch (error) {
      if (!(error instanceof LedgerUnavailable)) throw error;
      if (tries > 0) {
        log.error('the ledger is unavailable', { charge_id: id, event: event.kind, error });
        return 'unavailable';
      }
    }
  }
}
