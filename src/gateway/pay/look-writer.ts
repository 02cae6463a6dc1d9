// Writes the result of a look whose payer waits no longer, as the reconciler does. So every process that the payer asks
// next knows it: none searches again what was searched, and none asks the chain for what was proven.
import type { Charge } from '../../domain/payment/charge.ts';
import type { Log } from '../../host/log.ts';
import type { Look } from '../rails/rail.ts';
import { endOf, searchOf } from './look-change.ts';
import type { SettleModes } from './payment.ts';
import type { Recorder } from './recorder.ts';

type LookWriterDeps = {
  readonly recorder: Recorder;
  readonly ranUnpaid: SettleModes['ranUnpaid'];
  readonly log: Log;
  readonly pause: (ms: number) => Promise<void>;
};

/** Writes what `looked` finds in the end; never rejects. */
export type WriteLook = (charge: Charge, looked: Promise<Look>) => Promise<void>;

export function createLookWriter(deps: LookWriterDeps): WriteLook {
  return (charge, looked) => writeLook(deps, charge, looked);
}

/** Pause between two tries to write what a look found: another request may have the charge until then. */
const WRITE_PAUSE_MS = 2_000;
/** Number of tries to write an end. */
const WRITE_TRIES = 15;
/** Number of tries to write a search. Only a ledger of an older version refuses one while a request has the charge. */
const SEARCH_TRIES = 3;

const RECONCILER = { owner: 'reconciler' };

async function writeLook(
  { recorder, ranUnpaid, log, pause }: LookWriterDeps,
  charge: Charge,
  looked: Promise<Look>,
): Promise<void> {
  const seen = await looked.catch(() => undefined);
  if (seen === undefined) return;
  const event = endOf(seen) ?? searchOf(seen);
  if (event === undefined) return;
  const changeId = recorder.newId();
  const most = event.kind === 'looked' ? SEARCH_TRIES : WRITE_TRIES;
  for (let tries = 0; tries < most; tries++) {
    try {
      const advanced = await recorder.change(RECONCILER, charge.id, event, changeId);
      if (advanced.kind === 'ok' && event.kind === 'failed' && charge.settle === 'before_response')
        ranUnpaid(charge.payment.payer);
      if (advanced.kind === 'ok' || advanced.because !== 'lease_running') return;
    } catch (error) {
      log.debug('what a look found was not written', { charge_id: charge.id, error });
    }
    await pause(WRITE_PAUSE_MS);
  }
}
