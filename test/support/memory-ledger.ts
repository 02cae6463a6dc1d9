// The ledger in memory: the reference that the contract suite compares others with, and the one of the simulation. It is
// as exact as a real one and forgets everything with its process. Every call takes effect in one go and answers later.
import {
  canonicalHex,
  CHARGE_STATES,
  endsAt,
  findClaimFault,
  isOfRun,
  type Charge,
  type ChargeState,
} from '../../src/domain/charge.ts';
import { isOfPart } from '../../src/domain/id-part.ts';
import type { Ledger, ListedCharge, OwedSum, Reports, Sum } from '../../src/domain/payment/ledger.ts';
import { decideClaim, owedBecauseOf, takesPlace } from '../../src/domain/payment/claim-policy.ts';
import { transition, type Actor, type ChargeEvent } from '../../src/domain/payment/transition.ts';

export type MemoryLedger = Ledger & Reports & { readonly all: () => readonly Charge[] };

/** What decides; the simulation plants faults here. */
export type LedgerRules = { readonly decideClaim: typeof decideClaim; readonly transition: typeof transition };

export function createMemoryLedger(now: () => number, rules: LedgerRules = { decideClaim, transition }): MemoryLedger {
  const charges = new Map<string, Charge>();
  const keyOf = ({ payment }: Pick<Charge, 'payment'>): string => JSON.stringify(Object.values(payment));
  const byId = (id: string): Charge | undefined => [...charges.values()].find((charge) => charge.id === id);
  const dueAt = (charge: Charge): number => Math.max(charge.leaseUntil, charge.lookAt ?? 0);
  const isOpen = ({ state }: Charge): boolean => state === 'claimed' || state === 'settling';
  const put = (charge: Charge): void => void charges.set(keyOf(charge), charge);

  const isProofUsed = (charge: Charge, event: ChargeEvent): boolean => {
    if (event.kind !== 'settled') return false;
    const { transaction, logIndex } = event.proof;
    if (logIndex === null) return false;
    return [...charges.values()].some(
      (other) =>
        other.proof?.transaction === canonicalHex(transaction) &&
        other.proof.logIndex === logIndex &&
        other.payment.network === charge.payment.network,
    );
  };

  const advance = (id: string, event: ChargeEvent, actor: Actor): Awaited<ReturnType<Ledger['advance']>> => {
    const charge = byId(id);
    if (charge === undefined) return { kind: 'conflict', because: 'unknown_charge', charge };
    const moved = rules.transition(charge, event, actor, now());
    if (!moved.ok) return { kind: 'conflict', because: moved.because, charge };
    if (moved.charge !== charge && isProofUsed(charge, event))
      return { kind: 'conflict', because: 'proof_used', charge };
    put(moved.charge);
    return { kind: 'ok', charge: moved.charge };
  };

  const due = (limit: number): Charge[] =>
    [...charges.values()]
      .filter((charge) => isOpen(charge) && dueAt(charge) <= now())
      .sort((a, b) => dueAt(a) - dueAt(b))
      .slice(0, limit);

  return {
    answerLimitBytes: 16 * 1024 * 1024,
    run: 'memory',
    all: () => [...charges.values()],
    find: async (payment) => charges.get(keyOf({ payment })),
    findByChargeId: async (id) => byId(id),
    claim: async (claim, options) => {
      const fault = findClaimFault(claim);
      if (fault !== undefined) throw new TypeError(fault);
      const at = now();
      const existing = charges.get(keyOf(claim));
      const unsettled = [...charges.values()].filter(
        (other) => other !== existing && other.payment.payer === claim.payment.payer && takesPlace(other, at),
      ).length;
      const idTaken = existing === undefined && byId(claim.id) !== undefined;
      const claimed = rules.decideClaim({ existing, idTaken, unsettled }, claim, options, at);
      if (claimed.kind === 'claimed') put(claimed.charge);
      return claimed;
    },
    advance: async (id, event, actor) => advance(id, event, actor),
    due: async (limit) => due(limit),
    renew: async (run, ids, leaseMs) =>
      ids.filter((id) => {
        const charge = byId(id);
        const owner = charge?.owner ?? null;
        if (charge === undefined || owner === null || !isOfRun(owner, run)) return false;
        put({ ...charge, leaseUntil: now() + leaseMs });
        return true;
      }),
    list: async ({ limit, before, state, owed, routeId, payer, customerId, fromMs, toMs }) => {
      const rows = [...charges.values()].map((charge, index) => ({ charge, seq: index + 1 })).reverse();
      const found = rows.filter(
        ({ charge, seq }) =>
          (before === undefined || seq < before) &&
          (state === undefined || charge.state === state) &&
          (owed !== true || owedBecauseOf(charge, now()) !== undefined) &&
          (routeId === undefined || charge.route.id === routeId) &&
          (payer === undefined || charge.payment.payer === canonicalHex(payer)) &&
          (customerId === undefined || charge.customerId === customerId) &&
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
      const charge = byId(id);
      return charge && listed(charge, now());
    },
    alarms: async () => {
      const sums = new Map<string, OwedSum>();
      for (const charge of charges.values()) {
        const because = owedBecauseOf(charge, now());
        if (because === undefined) continue;
        const { currency } = charge.price;
        const { assetDecimals, amount } = charge.terms;
        const name = `${currency} ${because} ${assetDecimals}`;
        const known = sums.get(name) ?? { currency, because, assetDecimals, charges: 0, amount: 0n };
        sums.set(name, { ...known, charges: known.charges + 1, amount: known.amount + amount });
      }
      const ends = [...charges.values()].filter(({ state }) => state === 'settling').map(endsAt);
      return { owed: [...sums.values()], settlingEndsAt: ends.length === 0 ? null : Math.min(...ends) };
    },
    search: async ({ idPart, requestId, transaction }, limit) =>
      [...charges.values()]
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
      const settled = [...charges.values()]
        .map((charge) => ({ charge, hour: Math.floor((charge.settledAt ?? 0) / hour) }))
        .filter(({ charge }) => charge.state === 'settled' || charge.state === 'delivered')
        .sort((a, b) => a.hour - b.hour);
      for (const { charge, hour: at } of settled) {
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
          routeId: charge.route.id,
          currency: charge.price.currency,
          network,
          asset,
          assetDecimals: charge.terms.assetDecimals,
        };
        const known = sums.get(JSON.stringify(key));
        sums.set(JSON.stringify(key), {
          ...key,
          charges: (known?.charges ?? 0) + 1,
          amount: (known?.amount ?? 0n) + charge.terms.amount,
        });
      }
      return sums.size > query.limit ? { kind: 'too_long' } : { kind: 'sums', sums: [...sums.values()] };
    },
    countByState: async () => {
      const count = (state: ChargeState): [ChargeState, number] => [
        state,
        [...charges.values()].filter((charge) => charge.state === state).length,
      ];
      return Object.fromEntries(CHARGE_STATES.map(count)) as Record<ChargeState, number>;
    },
  };
}

function listed(charge: Charge, now: number): ListedCharge {
  const {
    credential: _credential,
    credentialSha256: _digest,
    answer: _answer,
    owner: _owner,
    changeId: _change,
    search: _search,
    ...rest
  } = charge;
  return { ...rest, owed: owedBecauseOf(charge, now) ?? null };
}
