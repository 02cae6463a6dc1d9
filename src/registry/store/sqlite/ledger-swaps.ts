// The short way to change a charge: this side of the thread decides with domain/payment/claim-policy and domain/payment/transition on the
// charge as it was when it was last told of it, and the ledger's thread writes that only where the row still has that version
// (compare and swap). Where it is not, nothing is written and the call is decided by the thread on what the row says:
// what is known here can be out of date, but never wrong for long enough to be written.
import type { Charge, Claim } from '../../../domain/charge.ts';
import type { Advanced } from '../../../domain/payment/ledger.ts';
import { decideClaim, type Claimed, type ClaimOptions } from '../../../domain/payment/claim-policy.ts';
import { transition, type Actor, type ChargeEvent } from '../../../domain/payment/transition.ts';
import { allValues, changingValues, type Value } from './ledger-rows.ts';
import type { Thread } from './ledger-thread.ts';

/** A charge that nobody has yet, as the row it becomes. */
export type Insert = {
  readonly payer: string;
  readonly maxUnsettledPerPayer: number;
  readonly now: number;
  readonly state: Charge['state'];
  readonly values: readonly Value[];
  readonly credential: string;
};

/** A change of the row that is still as it is described. */
export type Swap = {
  readonly seq: number;
  readonly version: number;
  readonly before: Charge['state'];
  readonly after: Charge['state'];
  /** Positions of CHANGING_COLUMNS, and what they hold from now on. */
  readonly columns: readonly number[];
  readonly values: readonly Value[];
  /** Nobody may need the credential any more. */
  readonly dropsCredential: boolean;
  /** Money that moved with this change. */
  readonly settled: Settled | null;
};

/** What the sums are made of. */
export type Settled = {
  readonly routeId: string;
  readonly currency: string;
  readonly network: string;
  readonly asset: string;
  readonly assetDecimals: number;
  readonly settledAt: number;
  /** Decimal digits. */
  readonly amount: string;
};

export type Swaps = {
  readonly claim: (claim: Claim, options: ClaimOptions) => Promise<Claimed>;
  readonly advance: (id: string, event: ChargeEvent, actor: Actor) => Promise<Advanced>;
};

type Known = { readonly seq: number; readonly version: number; readonly charge: Charge };

/** Charges of this process that are in work; the others go the long way. */
const MAX_KNOWN = 4096;

export function createSwaps(thread: Thread, now: () => number): Swaps {
  const known = new Map<string, Known>();

  const learn = (seq: number, version: number, charge: Charge): void => {
    if (charge.owner === null) {
      known.delete(charge.id);
      return;
    }
    if (known.size >= MAX_KNOWN && !known.has(charge.id)) {
      const [oldest] = known.keys();
      if (oldest !== undefined) known.delete(oldest);
    }
    known.set(charge.id, { seq, version, charge });
  };

  return {
    claim: async (claim, options) => {
      const at = now();
      const { maxUnsettledPerPayer } = options;
      const decided = decideClaim({ existing: undefined, idTaken: false, unsettled: 0 }, claim, options, at);
      if (decided.kind === 'claimed') {
        const { payer } = claim.payment;
        const seq = await thread.call('insert', {
          payer,
          maxUnsettledPerPayer,
          now: at,
          state: decided.charge.state,
          values: allValues(decided.charge),
          credential: claim.credential,
        });
        if (seq !== undefined) {
          learn(seq, 1, decided.charge);
          return decided;
        }
      }
      return thread.call('claim', claim, options, now());
    },
    advance: async (id, event, actor) => {
      const at = now();
      // What is known of a lease is its first end: whether it was renewed the row says, to everybody but its owner.
      const remembered = known.get(id);
      const last = remembered?.charge.owner === actor.owner ? remembered : undefined;
      const swap = last && describeSwap(last, event, actor, at);
      // That an answer arrived is owed to nobody at once: it shares the next commit.
      const call = event.kind === 'delivered' ? thread.callLater : thread.call;
      if (swap !== undefined && (await call('swap', swap.swap))) {
        learn(swap.swap.seq, swap.swap.version + 1, swap.charge);
        return { kind: 'ok', charge: swap.charge };
      }
      known.delete(id);
      return thread.call('advance', id, event, actor, now());
    },
  };
}

/** Undefined where the change is not allowed as far as is known here, changes nothing of the row, or touches a kept answer. */
function describeSwap(
  { seq, version, charge }: Known,
  event: ChargeEvent,
  actor: Actor,
  now: number,
): { readonly swap: Swap; readonly charge: Charge } | undefined {
  const moved = transition(charge, event, actor, now);
  if (!moved.ok || moved.charge === charge) return undefined;
  const after = moved.charge;
  if (charge.answer !== null || after.answer !== null) return undefined;
  const [old, fresh] = [changingValues(charge), changingValues(after)];
  const columns: number[] = [];
  const values: Value[] = [];
  for (let index = 0; index < fresh.length; index++) {
    const value = fresh[index] ?? null;
    if (value === old[index]) continue;
    columns.push(index);
    values.push(value);
  }
  return {
    charge: after,
    swap: {
      ...{ seq, version, columns, values },
      ...{ before: charge.state, after: after.state },
      dropsCredential: charge.credential !== null && after.credential === null,
      settled: hasSettled(charge, after) ? settledOf(after) : null,
    },
  };
}

export function hasSettled(before: Charge, after: Charge): boolean {
  return before.settledAt === null && after.settledAt !== null;
}

/** What a charge that was settled adds to the sums. */
export function settledOf({ route, price, payment, terms, settledAt }: Charge): Settled {
  return {
    routeId: route.id,
    currency: price.currency,
    network: payment.network,
    asset: payment.asset,
    assetDecimals: terms.assetDecimals,
    settledAt: settledAt ?? 0,
    amount: terms.amount.toString(),
  };
}
