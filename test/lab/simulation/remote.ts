// The store of charges as one process has it: every call takes effect at one moment and is answered at another, and may be
// lost on the way there or back, or arrive twice. What was written survives its process. It is a store of the process's own,
// which keeps what was decided, or a registry's, which decides again.
import type { PaymentKey } from '../../../src/domain/payment/charge.ts';
import {
  LedgerUnavailable,
  type Change,
  type ChargeStore,
  type Entry,
  type InsertResult,
  type UpdateResult,
} from '../../../src/domain/payment/ledger.ts';
import type { MemoryLedger } from '../../support/memory-ledger.ts';
import type { Actor, Scheduler } from './scheduler.ts';
import type { Watch } from './watch.ts';
import type { Weather } from './weather.ts';

export function reachStore(
  scheduler: Scheduler,
  durable: MemoryLedger,
  weather: Weather,
  watch: Pick<Watch, 'written' | 'settledAt' | 'reported' | 'replayed'>,
  asker: Actor,
  touched: (key: PaymentKey) => void,
  where: 'own' | 'registry',
): ChargeStore {
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
  const { insert, update } = where === 'own' ? durable.store : atRegistry(durable);

  return {
    ...durable.store,
    run: asker.name,
    find: (by) =>
      call('id' in by ? 'find by id' : 'find', async () => {
        const found = await durable.store.find(by);
        const payment = 'payment' in by ? by.payment : found?.charge.payment;
        if (payment !== undefined) touched(payment);
        return found;
      }),
    insert: (entry) =>
      call(`claim ${entry.claim.payment.unique.slice(-4)}`, async () => {
        const inserted = await insert(entry);
        const { unique: nonce } = entry.claim.payment;
        scheduler.say(`ledger: claim of ${nonce.slice(-4)} for ${entry.options.owner.slice(0, 4)} is ${inserted.kind}`);
        touched(entry.claim.payment);
        return inserted;
      }),
    update: (change) => {
      const { before, actor, because } = change;
      const { id } = before.charge;
      const kind = 'event' in because ? because.event.kind : 'claim';
      return call(kind, async () => {
        const wasSettled = settledBefore(id);
        const updated = await update(change);
        const charge = 'charge' in updated ? updated.charge?.charge : undefined;
        const to = updated.kind === 'written' ? updated.charge.charge.state : updated.kind;
        scheduler.say(`ledger: ${kind} of ${id.slice(-4)} by ${actor.owner.slice(0, 4)}: ${to}`);
        if (updated.kind === 'written') {
          const written = durable.all().find((each) => each.id === id);
          if (written !== undefined) watch.written(written);
          if (kind === 'settled' && !wasSettled) watch.settledAt(id);
          if (kind === 'failure_reported') watch.reported(id);
          if (kind === 'redeem_started' && updated.charge.charge.answer !== null) watch.replayed(id);
        }
        touched(charge?.payment ?? before.charge.payment);
        return updated;
      });
    },
    due: (limit) => call('due', () => durable.store.due(limit)),
    renew: (run, ids, leaseMs) => call('renew', () => durable.renew(run, ids, leaseMs)),
  };
}

/** Decides again on what it has; leaves a claim that would settle at once to the change after it. */
function atRegistry(ledger: MemoryLedger): Pick<ChargeStore, 'insert' | 'update'> {
  const claim = async ({ claim: wanted, options }: Omit<Entry, 'charge'>): Promise<InsertResult> => {
    const claimed = await ledger.claim(wanted, { ...options, settleVia: undefined });
    if (claimed.kind === 'quote_already_used') return { kind: 'id_taken' };
    if (!('charge' in claimed)) return { kind: 'too_many_unsettled' };
    const charge = { charge: claimed.charge, version: 0 };
    return claimed.kind === 'claimed' ? { kind: 'written', charge } : { kind: 'payment_known', charge };
  };
  const update = async ({ before, actor, because }: Change): Promise<UpdateResult> => {
    if ('claim' in because) {
      const inserted = await claim(because);
      if (inserted.kind === 'written') return inserted;
      if (inserted.kind === 'too_many_unsettled') return { kind: 'too_many_unsettled' };
      return { kind: 'stale', charge: 'charge' in inserted ? inserted.charge : undefined };
    }
    const advanced = await ledger.advance(before.charge.id, because.event, actor);
    if (advanced.kind === 'ok') return { kind: 'written', charge: { charge: advanced.charge, version: 0 } };
    if (advanced.because === 'proof_used') return { kind: 'proof_used' };
    return { kind: 'stale', charge: advanced.charge && { charge: advanced.charge, version: 0 } };
  };
  return { insert: claim, update };
}
