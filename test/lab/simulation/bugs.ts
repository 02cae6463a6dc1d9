// Planted faults: each is a mistake that somebody could make in the journey, the ledger or the reconciler, as a small
// change around the real thing. The simulation is worth as much as it finds of these.
import type { Ledger } from '../../../src/domain/payment/ledger.ts';
import { decideClaim } from '../../../src/domain/payment/claim-policy.ts';
import { transition, type ChargeEvent } from '../../../src/domain/payment/transition.ts';
import type { Settlement } from '../../../src/gateway/rails/rail.ts';
import type { Bug, World } from './process.ts';
import type { Actor } from './scheduler.ts';

export const BUGS: Readonly<Record<string, Bug>> = {
  'settle is sent before settle_started is durable': writesLater('settle_started'),
  'the answer flows before settled is durable': writesLater('settled'),
  'a settlement of unknown end releases the charge': events((event) =>
    event.kind === 'settle_unknown' ? { kind: 'released', reason: event.reason } : event,
  ),
  'a used nonce counts as refused': settles((end, refused) =>
    end.kind === 'unknown' && end.reason === 'nonce_already_used' ? refused(end.reason) : end,
  ),
  'a time-out counts as refused': settles((end, refused) =>
    end.kind === 'unknown' && end.reason === 'facilitator_no_answer' ? refused(end.reason) : end,
  ),
  'a claim reads and then writes': { ledger: claimInTwoSteps },
  'the reconciler settles without looking at the chain': {
    rail: (rail) => ({ ...rail, look: async () => ({ kind: 'unavailable', detail: 'not asked' }) }),
  },
  'the reconciler believes its own clock, not the nonce': {
    rail: (rail) => ({ ...rail, look: async () => ({ kind: 'impossible', reason: 'authorization_expired_unused' }) }),
  },
  'a lost owner of a settling charge releases it': {
    rules: {
      decideClaim,
      transition: (charge, event, actor, now) => {
        const next = transition(charge, event, actor, now);
        if (!next.ok || event.kind !== 'taken_over' || charge.state !== 'settling') return next;
        return { ok: true, charge: { ...next.charge, state: 'released', owner: null } };
      },
    },
  },
  'asking the upstream again is not counted': {
    rules: {
      decideClaim,
      transition: (charge, event, actor, now) => {
        const next = transition(charge, event, actor, now);
        return next.ok && event.kind === 'redeem_started'
          ? { ok: true, charge: { ...next.charge, asks: charge.asks } }
          : next;
      },
    },
  },
  'a client that left counts as delivered': events((event) =>
    event.kind === 'answer_kept' || event.kind === 'undelivered' ? { kind: 'delivered', partial: false } : event,
  ),
  'a late owner may settle what was taken from it': {
    rules: {
      decideClaim,
      transition: (charge, event, actor, now) =>
        event.kind === 'settle_started' && charge.state === 'released'
          ? { ok: true, charge: { ...charge, state: 'released', owner: actor.owner } }
          : transition(charge, event, actor, now),
    },
    // Else it would learn beforehand that it has it no more.
    ledger: (ledger) => ({
      ...ledger,
      renew: async (run, ids, leaseMs) => (await ledger.renew(run, ids, leaseMs), ids),
    }),
  },
  'an older search takes the place of a further one': {
    rules: {
      decideClaim,
      transition: (charge, event, actor, now) => {
        const next = transition(charge, event, actor, now);
        if (!next.ok || (event.kind !== 'settle_unknown' && event.kind !== 'looked')) return next;
        return { ok: true, charge: { ...next.charge, search: event.search ?? next.charge.search } };
      },
    },
  },
  'a payment is settled without a connection to the upstream': { settlesAnyway: true },
  'an allow is repeated to whoever shows the credential': {
    rules: {
      decideClaim,
      transition: (charge, event, actor, now) => {
        if (event.kind !== 'allow_repeated' || event.request.asker === undefined)
          return transition(charge, event, actor, now);
        const asker = { ...event.request.asker, askSha256: charge.askSha256 };
        return transition(charge, { ...event, request: { ...event.request, asker } }, actor, now);
      },
    },
  },
  'an allow that nobody was handed counts as delivered': {
    rules: {
      decideClaim,
      transition: (charge, event, actor, now) =>
        event.kind === 'undelivered' && charge.asker !== null
          ? transition(charge, { kind: 'delivered', partial: false }, actor, now)
          : transition(charge, event, actor, now),
    },
  },
  'a report changes nothing': {
    rules: {
      decideClaim,
      transition: (charge, event, actor, now) => {
        const next = transition(charge, event, actor, now);
        return next.ok && event.kind === 'failure_reported' ? { ok: true, charge: { ...charge } } : next;
      },
    },
  },
  'being allowed again after a report is not counted': {
    rules: {
      decideClaim,
      transition: (charge, event, actor, now) => {
        const next = transition(charge, event, actor, now);
        return next.ok && event.kind === 'redeem_started' && charge.asker !== null
          ? { ok: true, charge: { ...next.charge, asks: charge.asks } }
          : next;
      },
    },
  },
  'a report that is faster than the ledger is refused': {
    ledger: (ledger) => ({
      ...ledger,
      advance: async (id, event, actor) => {
        const advanced = await ledger.advance(id, event, actor);
        return advanced.kind === 'ok' || event.kind !== 'failure_reported'
          ? advanced
          : { ...advanced, charge: undefined };
      },
    }),
  },
  'a charge that is settling may be claimed again': {
    rules: {
      transition,
      decideClaim: (existing, claim, options, now) =>
        decideClaim(
          existing?.state === 'settling' ? { ...existing, state: 'released' } : existing,
          claim,
          options,
          now,
        ),
    },
    ledger: (ledger) => ({
      ...ledger,
      find: async (payment) => {
        const charge = await ledger.find(payment);
        return charge?.state === 'settling' ? { ...charge, state: 'released' } : charge;
      },
    }),
  },
};

/** Faults that make nobody pay twice, but payers wait who insist (insist.ts). */
export const SLOW_BUGS: Readonly<Record<string, Bug>> = {
  'a look forgets what it searched': events((event) =>
    event.kind === 'settle_unknown' || event.kind === 'looked' ? { ...event, search: null } : event,
  ),
  'what a payer searched is not kept': events((event) =>
    event.kind === 'settle_unknown' ? { ...event, search: null } : event,
  ),
  'a search is kept only where no request has the charge': {
    rules: {
      decideClaim,
      transition: (charge, event, actor, now) =>
        event.kind === 'looked' && charge.leaseUntil > now
          ? { ok: false, because: 'lease_running' }
          : transition(charge, event.kind === 'settle_unknown' ? { ...event, search: null } : event, actor, now),
    },
  },
};

/** The caller goes on at once; what it wrote is written later, and lost where it crashes before. */
function writesLater(kind: ChargeEvent['kind']): Bug {
  return {
    ledger: (ledger, { world: { durable, scheduler }, actor }) => ({
      ...ledger,
      advance: async (id, event, by) => {
        const charge = event.kind === kind ? await durable.findByChargeId(id) : undefined;
        const next = charge && transition(charge, event, by, scheduler.now());
        if (!next?.ok) return ledger.advance(id, event, by);
        void ledger.advance(id, event, by).catch(() => undefined);
        await scheduler.point(actor, `goes on before ${kind} is durable`);
        return { kind: 'ok', charge: next.charge };
      },
    }),
  };
}

function events(change: (event: ChargeEvent) => ChargeEvent): Bug {
  return {
    rules: {
      decideClaim,
      transition: (charge, event, actor, now) => {
        const changed = change(event);
        // A release is refused while settling: that refusal is the rule which this fault leaves out.
        const before =
          changed.kind === 'released' && event.kind === 'settle_unknown'
            ? ({ ...charge, state: 'claimed' } as const)
            : charge;
        return transition(before, changed, actor, now);
      },
    },
  };
}

function settles(change: (end: Settlement, refused: (reason: string) => Settlement) => Settlement): Bug {
  return {
    rail: (rail) => ({
      ...rail,
      settle: async (presented, offer, history, sending) =>
        change(await rail.settle(presented, offer, history, sending), (reason) => ({
          kind: 'refused',
          reason,
          via: 'model',
        })),
    }),
  };
}

function claimInTwoSteps(
  ledger: Ledger,
  { world: { durable, scheduler }, actor }: { readonly world: World; readonly actor: Actor },
): Ledger {
  return {
    ...ledger,
    claim: async (claim, options) => {
      const existing = await durable.find(claim.payment);
      await scheduler.point(actor, 'claims in two steps');
      const decided = decideClaim(existing, claim, options, scheduler.now());
      if (decided.kind !== 'claimed') return decided;
      await ledger.claim(claim, options);
      return decided;
    },
  };
}
