// The ledger as one process has it: every call takes effect at one moment and is answered at another, and may be lost on
// the way there or back, or arrive twice. What was written survives its process.
import type { PaymentKey } from '../../src/domain/charge.ts';
import { LedgerUnavailable, type Ledger } from '../../src/domain/payment/ledger.ts';
import type { MemoryLedger } from '../support/memory-ledger.ts';
import type { Actor, Scheduler } from './scheduler.ts';
import type { Watch } from './watch.ts';
import type { Weather } from './weather.ts';

export function reachLedger(
  scheduler: Scheduler,
  durable: MemoryLedger,
  weather: Weather,
  watch: Watch,
  asker: Actor,
  touched: (key: PaymentKey) => void,
  /** Whether a claim may be settling at once, as in a store of our own; a ledger elsewhere leaves that to `advance`. */
  settlesAtOnce: boolean,
): Ledger {
  const network = { name: `${asker.name}'s network`, alive: true };

  const call = async <T>(label: string, effect: () => Promise<T>): Promise<T> => {
    await scheduler.point(asker, `ledger: ${label}`, weather.delay());
    if (weather.happens('ledger_lost')) throw new LedgerUnavailable('no answer');
    const result = await effect();
    if (weather.happens('ledger_doubled'))
      void scheduler.point(network, `delivers ${label} again`, weather.delay()).then(effect);
    const lost = weather.happens('ledger_answer_lost');
    await scheduler.point(asker, lost ? `hears nothing: ${label}` : `ledger did: ${label}`, weather.delay());
    if (lost) throw new LedgerUnavailable('no answer');
    return result;
  };

  const settledBefore = (id: string): boolean =>
    durable.all().some((charge) => charge.id === id && charge.settledAt !== null);

  return {
    answerLimitBytes: durable.answerLimitBytes,
    run: asker.name,
    find: (payment) =>
      call('find', () => {
        touched(payment);
        return durable.find(payment);
      }),
    findByChargeId: (id) => call('find by id', () => durable.findByChargeId(id)),
    claim: (claim, options) =>
      call(`claim ${claim.payment.nonce.slice(-4)}`, async () => {
        const claimed = await durable.claim(claim, settlesAtOnce ? options : { ...options, settleVia: undefined });
        scheduler.say(
          `ledger: claim of ${claim.payment.nonce.slice(-4)} for ${options.owner.slice(0, 4)} is ${claimed.kind}`,
        );
        touched(claim.payment);
        return claimed;
      }),
    advance: (id, event, by) =>
      call(event.kind, async () => {
        const before = settledBefore(id);
        const advanced = await durable.advance(id, event, by);
        const to = advanced.kind === 'ok' ? advanced.charge.state : advanced.because;
        scheduler.say(`ledger: ${event.kind} of ${id.slice(-4)} by ${by.owner.slice(0, 4)}: ${to}`);
        if (event.kind === 'settled' && advanced.kind === 'ok' && !before) watch.settledAt(id);
        if (event.kind === 'redeem_started' && advanced.kind === 'ok' && advanced.charge.answer !== null)
          watch.replayed(id);
        if (advanced.charge !== undefined) touched(advanced.charge.payment);
        return advanced;
      }),
    due: (limit) => call('due', () => durable.due(limit)),
    renew: (run, ids, leaseMs) => call('renew', () => durable.renew(run, ids, leaseMs)),
  };
}
