// Charges in memory: the store that the contract suite compares others with, and the one of the simulation. It is as exact
// as a real one and forgets everything with its process. Every call takes effect in one go and answers later.
import { UNKNOWN_MS } from '../../src/domain/attention/judgements.ts';
import { endsAt, type Charge, type ChargeState } from '../../src/domain/payment/charge.ts';
import { isOfPart } from '../../src/domain/payment/quote.ts';
import { CHARGE_STATES } from '../../src/domain/payment/charge-fields.ts';
import { OVERDUE_MS, owedBecauseOf } from '../../src/domain/payment/claim-policy.ts';
import { historyOf } from '../../src/domain/payment/charge-history.ts';
import { standingOf } from '../../src/domain/payment/whereabouts.ts';
import type {
  ChargeChange,
  ChargeFilter,
  ChargeReports,
  ListedCharge,
  OwedSum,
  Sum,
} from '../../src/domain/payment/reports.ts';
import { refundedAmount } from '../../src/domain/payment/refund.ts';
import { paymentProofOf, refundIn } from '../../src/registry/store/charge-values.ts';
import type { TransferPlace } from '../../src/registry/store/refund-change.ts';
import { SPELLING } from '../../src/gateway/rails/rails.ts';
import { ledgerOf } from '../../src/registry/store/stored-ledger.ts';
import type { ChargesStore } from '../../src/registry/store/ports.ts';
import { leavesToOwner } from '../../src/domain/payment/transition.ts';
import { PASSES_OF_A_PAYER } from '../../src/domain/selling/pass-store.ts';
import { createMemoryCounters } from './memory-counters.ts';
import { createMemoryPasses, type MemoryPasses, type PassRules } from './memory-passes.ts';
import {
  createLedger,
  samePayment,
  type ChargeStore,
  type Ledger,
  type LedgerRules,
  type StoredCharge,
} from '../../src/domain/payment/ledger.ts';

export type MemoryCharges = ChargeStore &
  ChargeReports &
  Pick<ChargesStore, 'endRun' | 'counters'> & { readonly all: () => readonly Charge[]; readonly passes: MemoryPasses };
export type MemoryLedger = Ledger &
  ChargeReports &
  Pick<MemoryCharges, 'all' | 'passes'> & { readonly store: MemoryCharges };

/** `rules` decide; the simulation plants faults there. */
export function createMemoryLedger(now: () => number, rules?: LedgerRules, passRules?: PassRules): MemoryLedger {
  const store = createMemoryCharges(now, passRules);
  return {
    ...store,
    ...ledgerOf(store, SPELLING),
    ...(rules === undefined ? {} : createLedger(store, SPELLING, rules)),
    passes: store.passes,
    store,
  };
}

export function createMemoryCharges(now: () => number, passRules?: PassRules): MemoryCharges {
  const charges = new Map<string, StoredCharge>();
  const values = (): Charge[] => [...charges.values()].map(({ charge }) => charge);
  const ofPayment = (payment: Charge['payment']): StoredCharge | undefined =>
    [...charges.values()].find(({ charge }) => samePayment(charge.payment, payment));
  const dueAt = (charge: Charge): number => Math.max(charge.leaseUntil, charge.lookAt ?? 0);
  const isOpen = ({ state }: Charge): boolean => state === 'claimed' || state === 'settling';
  const changes: ChargeChange[] = [];
  const put = (charge: Charge, version: number): StoredCharge => {
    const stored = { charge, version };
    const { id, state } = charge;
    if (charges.get(id)?.charge.state !== state)
      changes.push({ n: changes.length + 1, id, routeId: charge.route.id, state, at: now() });
    charges.set(charge.id, stored);
    return stored;
  };
  const isFull = ({ payment: { network, payer } }: Charge, most: number): boolean =>
    values().filter(
      ({ payment, ...charge }) =>
        payment.network === network && payment.payer === payer && takesPlace({ payment, ...charge }, now()),
    ).length >= most;
  const passes = createMemoryPasses(now, passRules);
  const isFullOfPasses = ({ id, pass, payment: { payer } }: Charge): boolean => {
    const plan = pass?.['plan'];
    if (plan === undefined) return false;
    const good = passes.good(payer, plan);
    const buying = values().filter(
      (other) =>
        other.id !== id &&
        other.payment.payer === payer &&
        other.pass?.['plan'] === plan &&
        (other.state === 'settling' || (other.state === 'claimed' && other.leaseUntil > now())),
    );
    return good + buying.length >= PASSES_OF_A_PAYER;
  };
  const isProofUsed = ({ id, proof, payment }: Charge): boolean =>
    proof !== null &&
    proof.logIndex !== null &&
    values().some(
      (other) =>
        other.id !== id &&
        other.proof?.transaction === proof.transaction &&
        other.proof.logIndex === proof.logIndex &&
        other.payment.network === payment.network,
    );

  const proofs = new Set<string>();
  const refunds: { readonly charge: Charge; readonly at: number; readonly amount: bigint }[] = [];
  const nameOf = ({ network, transaction, logIndex }: TransferPlace): string => `${network} ${transaction} ${logIndex}`;
  const isPayment = ({ network, transaction, logIndex }: TransferPlace): boolean =>
    values().some(
      ({ proof, payment }) =>
        payment.network === network &&
        proof?.transaction === transaction &&
        (proof.logIndex === null || proof.logIndex === logIndex),
    );

  return {
    keptBodyBytes: 16 * 1024 * 1024,
    run: 'memory',
    now,
    all: values,
    find: async (by) => ('id' in by ? charges.get(by.id) : ofPayment(by.payment)),
    insert: async ({ charge, options }) => {
      const known = ofPayment(charge.payment);
      if (known !== undefined) return { kind: 'payment_known', charge: known };
      if (charges.has(charge.id)) return { kind: 'id_taken' };
      if (isFull(charge, options.maxUnsettledPerPayer)) return { kind: 'too_many_unsettled' };
      if (isFullOfPasses(charge)) return { kind: 'too_many_passes' };
      return { kind: 'written', charge: put(charge, 1) };
    },
    update: async ({ before, after, actor, because }) => {
      const known = charges.get(before.charge.id);
      const isOwner = before.charge.owner === actor.owner || leavesToOwner(before.charge, after);
      if (
        known === undefined ||
        known.version !== before.version ||
        !(isOwner || known.charge.leaseUntil === before.charge.leaseUntil)
      )
        return { kind: 'stale', charge: known };
      if ('claim' in because && isFull(after, because.options.maxUnsettledPerPayer))
        return { kind: 'too_many_unsettled' };
      if ('claim' in because && isFullOfPasses(after)) return { kind: 'too_many_passes' };
      if (isProofUsed(after)) return { kind: 'proof_used' };
      const refund = refundIn(before.charge, after);
      const proof = refund === undefined ? paymentProofOf(before.charge, after) : refund.proof;
      if (proof !== null && (proofs.has(nameOf(proof)) || (refund !== undefined && isPayment(proof))))
        return { kind: 'proof_used' };
      if (refund !== undefined && refund.proof !== null) proofs.add(nameOf(refund.proof));
      if (refund !== undefined && refund.amount > 0n) refunds.push({ charge: after, at: now(), amount: refund.amount });
      const isRenewed = after.leaseUntil === before.charge.leaseUntil;
      const charge = isRenewed ? { ...after, leaseUntil: known.charge.leaseUntil } : after;
      passes.opened(known.charge, charge);
      return { kind: 'written', charge: put(charge, known.version + 1) };
    },
    due: async (limit) =>
      [...charges.values()]
        .filter(({ charge }) => isOpen(charge) && dueAt(charge) <= now())
        .sort((a, b) => dueAt(a.charge) - dueAt(b.charge))
        .slice(0, limit),
    counters: createMemoryCounters(),
    passes,
    endRun: async (run) => {
      for (const { charge, version } of charges.values())
        if (charge.owner !== null && isOfRun(charge.owner, run) && charge.leaseUntil > now())
          put({ ...charge, leaseUntil: now() }, version);
      passes.endRun(run);
    },
    renew: async (run, ids, leaseMs) =>
      ids.filter((id) => {
        const known = charges.get(id);
        const owner = known?.charge.owner ?? null;
        if (known === undefined || owner === null || !isOfRun(owner, run)) return false;
        put({ ...known.charge, leaseUntil: now() + leaseMs }, known.version);
        return true;
      }),
    check: async () => undefined,
    close: async () => undefined,
    list: async ({ limit, before, states, owed, fromMs, toMs, idStart, ...named }) => {
      const rows = values()
        .map((charge, index) => ({ charge, seq: index + 1 }))
        .reverse();
      const found = rows.filter(
        ({ charge, seq }) =>
          (before === undefined || seq < before) &&
          (states === undefined || states.includes(charge.state)) &&
          (idStart === undefined || charge.id.startsWith(idStart)) &&
          (owed !== true || owedBecauseOf(charge, now()) !== undefined) &&
          isNamed(charge, named) &&
          (fromMs === undefined || charge.createdAt >= fromMs) &&
          (toMs === undefined || charge.createdAt < toMs),
      );
      const page = found.slice(0, limit);
      return {
        charges: page.map(({ charge }) => listed(charge, now())),
        nextBefore: found.length > limit ? page.at(-1)?.seq : undefined,
      };
    },
    get: async (id) => {
      const charge = charges.get(id)?.charge;
      return charge && listed(charge, now());
    },
    watchChanges: async () => ({ after: changes.length, last: changes.length }),
    changesAfter: async (n, limit) => changes.slice(n, n + limit),
    history: async (id) => {
      const charge = charges.get(id)?.charge;
      return charge && historyOf(charge, charge.events);
    },
    alarms: async () => {
      const sums = new Map<string, OwedSum>();
      for (const charge of values()) {
        const because = owedBecauseOf(charge, now());
        if (because === undefined) continue;
        const { currency } = charge.price;
        const amount = charge.amount - refundedAmount(charge);
        const assetDecimals = charge.way.decimals;
        const name = `${currency} ${because} ${assetDecimals}`;
        const known = sums.get(name) ?? { currency, because, assetDecimals, charges: 0, amount: 0n };
        sums.set(name, { ...known, charges: known.charges + 1, amount: known.amount + amount });
      }
      const ends = values()
        .filter(({ state }) => state === 'settling')
        .map(endsAt);
      const late = values().flatMap(({ state, claimedAt }) =>
        state === 'settling' && claimedAt < now() - UNKNOWN_MS ? [claimedAt] : [],
      );
      const unknown = { count: late.length, since: late.length === 0 ? null : Math.min(...late) };
      return { owed: [...sums.values()], settlingEndsAt: ends.length === 0 ? null : Math.min(...ends), unknown };
    },
    search: async ({ idPart, requestId, transaction }, limit) =>
      values()
        .filter(
          (charge) =>
            (idPart !== undefined && isOfPart(charge.id, idPart)) ||
            (requestId !== undefined && charge.requestId === requestId) ||
            (transaction !== undefined && charge.proof?.transaction === transaction),
        )
        .toReversed()
        .slice(0, limit)
        .map((charge) => listed(charge, now())),
    summary: async (query) => {
      const sums = new Map<string, Sum>();
      const hour = 3_600_000;
      const [first, end] = [Math.floor(query.fromMs / hour), Math.ceil(query.toMs / hour)];
      const settled = values()
        .filter(({ state }) => state === 'settled' || state === 'delivered')
        .map((charge) => ({
          charge,
          hour: Math.floor((charge.settledAt ?? 0) / hour),
          taken: charge.amount,
          given: 0n,
        }));
      const returned = refunds.map(({ charge, at, amount }) => ({
        ...{ charge, hour: Math.floor(at / hour), taken: 0n, given: amount },
      }));
      for (const { charge, hour: at, taken, given } of [...settled, ...returned].sort((a, b) => a.hour - b.hour)) {
        if (at < first || at >= end) continue;
        if (query.routeId !== undefined && query.routeId !== charge.route.id) continue;
        if (query.currency !== undefined && query.currency !== charge.price.currency) continue;
        const date = new Date(at * hour).toISOString();
        const start =
          query.bucket === 'total'
            ? query.fromMs
            : Date.parse(
                { hour: date, day: `${date.slice(0, 10)}T00:00:00Z`, month: `${date.slice(0, 7)}-01T00:00:00Z` }[
                  query.bucket
                ],
              );
        const { network, asset } = charge.payment;
        const key = {
          start,
          routeId: query.groupBy === 'network' ? null : charge.route.id,
          currency: charge.price.currency,
          network,
          asset,
          assetDecimals: charge.way.decimals,
        };
        const known = sums.get(JSON.stringify(key));
        sums.set(JSON.stringify(key), {
          ...key,
          charges: (known?.charges ?? 0) + (taken > 0n ? 1 : 0),
          amount: (known?.amount ?? 0n) + taken,
          refunded: (known?.refunded ?? 0n) + given,
        });
      }
      return sums.size > query.limit ? { kind: 'too_long' } : { kind: 'sums', sums: [...sums.values()] };
    },
    refunded: async () => {
      const sums = Map.groupBy(refunds, ({ charge }) => `${charge.price.currency} ${charge.way.decimals}`);
      return [...sums.values()].flatMap((all) => {
        const [first] = all;
        if (first === undefined) return [];
        const { price, way } = first.charge;
        const amount = all.reduce((sum, each) => sum + each.amount, 0n);
        return [{ currency: price.currency, assetDecimals: way.decimals, amount }];
      });
    },
    countByState: async () => {
      const count = (state: ChargeState): [ChargeState, number] => [
        state,
        values().filter((charge) => charge.state === state).length,
      ];
      return Object.fromEntries(CHARGE_STATES.map(count)) as Record<ChargeState, number>;
    },
  };
}

type Named = 'routeId' | 'network' | 'payer' | 'customerId' | 'requestId' | 'transaction' | 'currency' | 'receiverId';

function isNamed(charge: Charge, filter: Pick<ChargeFilter, Named>): boolean {
  const { network, payer } = charge.payment;
  const { customerId, requestId } = charge;
  const has: Readonly<Record<Named, string | null>> = {
    ...{ routeId: charge.route.id, network, payer, customerId, requestId, receiverId: charge.way.receiverId },
    ...{ transaction: charge.proof?.transaction ?? null, currency: charge.price.currency },
  };
  return Object.entries(has).every(([name, value]) => {
    const wanted = filter[name as Named];
    return wanted === undefined || wanted === value;
  });
}

function listed(charge: Charge, now: number): ListedCharge {
  const {
    credential: _credential,
    credentialSha256: _digest,
    answer: _answer,
    owner: _owner,
    changeId: _change,
    search: _search,
    events: _events,
    ...rest
  } = charge;
  return { ...rest, ...standingOf(charge, now) };
}

/** Whether a charge counts as unsettled for its payer. */
export function takesPlace(charge: Charge, now: number): boolean {
  if (charge.state === 'settling') return endsAt(charge) > now - OVERDUE_MS;
  return charge.state === 'claimed' && charge.leaseUntil > now;
}

function isOfRun(owner: string, run: string): boolean {
  return owner.startsWith(`${run}/`);
}
