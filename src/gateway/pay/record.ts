// Changes of the ledger that a request makes: tried twice if the request waits for the end, and for as long as it takes
// if it does not: a lost change would leave money or a service hanging.
import { LedgerUnavailable, type Advanced } from '../../domain/payment/ledger.ts';
import type { Charge } from '../../domain/charge.ts';
import type { ChargeEvent } from '../../domain/payment/transition.ts';
import type { PayDeps, Payment } from './payment.ts';

/** One change, tried twice: the second time the ledger recognises the first. */
export async function step(
  { ledger, newId, log, chargeLog }: PayDeps,
  { owner }: Payment,
  id: string,
  event: ChargeEvent,
  changeId = newId(),
): Promise<Advanced | 'unavailable'> {
  const actor = { owner, changeId };
  for (let tries = 0; ; tries++) {
    try {
      const advanced = await ledger.advance(id, event, actor);
      if (advanced.kind === 'ok') chargeLog.changed(advanced.charge, event.kind);
      return advanced;
    } catch (error) {
      if (!(error instanceof LedgerUnavailable)) throw error;
      if (tries > 0) {
        log.error('the ledger is unavailable', { charge_id: id, event: event.kind, error });
        return 'unavailable';
      }
    }
  }
}

const PAUSES_MS = [100, 500, 2_000, 10_000, 30_000];

/**
 * A change that must not be lost over a passing fault of the ledger; given up in the end, when the lease decides.
 * `changeId`: of an attempt before this one, which may have been written all the same: then this one is told as that one.
 */
export async function retryUntilRecorded(
  deps: PayDeps,
  { owner }: Payment,
  id: string,
  event: ChargeEvent,
  changeId?: string,
): Promise<Charge | undefined> {
  const { ledger, log, newId, chargeLog } = deps;
  const actor = { owner, changeId: changeId ?? newId() };
  for (const pauseMs of [...PAUSES_MS, undefined]) {
    try {
      const advanced = await ledger.advance(id, event, actor);
      if (advanced.kind === 'ok') {
        chargeLog.changed(advanced.charge, event.kind);
        return advanced.charge;
      }
      log.warn('a charge is not ours any more', { charge_id: id, event: event.kind, because: advanced.because });
      return undefined;
    } catch (error) {
      log.error('the ledger is unavailable', { charge_id: id, event: event.kind, error });
    }
    if (pauseMs !== undefined) await deps.pause(pauseMs);
  }
  return undefined;
}

/** Releases a charge for which nothing was sent, however far it came: also if its last change has no certain end. */
export async function releaseUnsent(deps: PayDeps, payment: Payment, charge: Charge, reason: string): Promise<void> {
  const { ledger, log, newId, chargeLog } = deps;
  const changeIds = { released: newId(), not_carried_out: newId() };
  for (const pauseMs of [...PAUSES_MS, undefined]) {
    try {
      for (const kind of ['released', 'not_carried_out'] as const) {
        const actor = { owner: payment.owner, changeId: changeIds[kind] };
        const advanced = await ledger.advance(charge.id, { kind, reason }, actor);
        if (advanced.kind === 'ok') {
          chargeLog.changed(advanced.charge, kind);
          return;
        }
        if (advanced.because !== 'wrong_state') return;
      }
      return;
    } catch (error) {
      log.error('the ledger is unavailable', { charge_id: charge.id, event: 'released', error });
    }
    if (pauseMs !== undefined) await deps.pause(pauseMs);
  }
}

const FIRST_PAUSE_MS = 250;
const LONGEST_PAUSE_MS = 30_000;
/** Of the ledger, without such a claim: after them none will come. */
const ANSWERS = 6;

/** A claim that was refused for want of an answer may have been written: it is given back as soon as it is seen. */
export async function giveBackLater(deps: PayDeps, payment: Payment): Promise<void> {
  // A write that is on its way to a ledger elsewhere may arrive after the first answers.
  let pauseMs = FIRST_PAUSE_MS;
  for (let answers = 0; answers < ANSWERS; pauseMs = Math.min(2 * pauseMs, LONGEST_PAUSE_MS)) {
    await deps.pause(pauseMs);
    try {
      const known = await deps.ledger.find(payment.presented.key);
      answers += 1;
      if (known?.owner === payment.owner) return await releaseUnsent(deps, payment, known, 'ledger_unavailable');
    } catch (error) {
      if (!(error instanceof LedgerUnavailable)) throw error;
    }
  }
}
