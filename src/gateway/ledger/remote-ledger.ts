// The charges of the registry over HTTP: the port of the ledger's store for a sidecar without one of its own. An insert is a
// POST and an update a PATCH with its event; the registry decides again, so what is decided here never counts against it.
// Every change carries an id, so that one whose answer was lost is sent again and is the same change; whatever else goes
// wrong is LedgerUnavailable. An answer is believed only if it is about the charge that was asked about.
import type { z } from 'zod';
import { CHARGE_ID, type Charge, type Claim } from '../../domain/payment/charge.ts';
import { ANSWER_BYTES } from '../../domain/payment/charge-fields.ts';
import { chargeFromWire, claimToWire } from '../../domain/payment/charge-wire.ts';
import {
  LedgerUnavailable,
  samePayment,
  type Change,
  type ChargeStore,
  type InsertResult,
  type StoredCharge,
  type UpdateResult,
} from '../../domain/payment/ledger.ts';
import { advancedWire, chargesWire, claimedWire, eventToWire, renewedWire } from '../../domain/payment/ledger-wire.ts';
import type { ClaimOptions } from '../../domain/payment/claim-policy.ts';
import type { Actor, ChargeEvent } from '../../domain/payment/transition.ts';
import type { Random } from '../../host/clock.ts';
import type { CounterChanger } from '../../domain/selling/counter.ts';
import { counterResultsWire, counterToWire, resultFromWire } from '../../domain/selling/counter-wire.ts';
import type { PassLedger } from '../../domain/selling/pass-store.ts';
import { createRegistryCalls, type RegistryCallOptions } from './registry-calls.ts';
import { createRemoteClock } from './remote-clock.ts';
import { createRemotePasses } from './remote-passes.ts';

type RemoteChargesOptions = RegistryCallOptions & {
  readonly random: Random;
  /** Names this run of the process; drawn if left out. */
  readonly run?: string;
};

const CLAIMS = 'v1/ledger/claims';
const MAX_DUE = 20;
/** An id that no charge has. */
const NO_CHARGE = 'chg_none';

export function createRemoteCharges(
  options: RemoteChargesOptions,
): ChargeStore & { readonly counters: CounterChanger; readonly passes: PassLedger } {
  const { clock, random } = options;
  const run = options.run ?? `sidecar-${drawId(random)}`;
  const theirs = createRemoteClock(clock);
  const { call, close } = createRegistryCalls(options, theirs);

  const read = (wire: Parameters<typeof chargeFromWire>[0]): Charge => {
    const charge = chargeFromWire(wire);
    theirs.passed(charge.updatedAt);
    return charge;
  };

  const findOne = async (search: Readonly<Record<string, string>>): Promise<Charge | undefined> => {
    const { data } = await call(
      { method: 'GET', path: `${CLAIMS}?${new URLSearchParams(search).toString()}` },
      chargesWire,
    );
    return data[0] && read(data[0]);
  };

  const post = async (claim: Claim, options: ClaimOptions): Promise<z.output<typeof claimedWire>> => {
    const { owner, leaseMs, maxUnsettledPerPayer, changeId } = options;
    const json = {
      ...claimToWire(claim),
      owner,
      lease_ms: leaseMs,
      max_unsettled_per_payer: maxUnsettledPerPayer,
      change_id: changeId ?? drawId(random),
    };
    return call({ method: 'POST', path: CLAIMS, json }, claimedWire);
  };

  const insert = async (claim: Claim, options: ClaimOptions): Promise<InsertResult> => {
    const answer = await post(claim, options);
    if (answer.kind === 'quote_already_used') return { kind: 'id_taken' };
    if (!('charge' in answer)) return { kind: answer.kind };
    const charge = about(read(answer.charge), (each) => samePayment(each.payment, claim.payment));
    if (answer.kind !== 'claimed') return { kind: 'payment_known', charge: stored(charge) };
    // Another owner would settle and deliver the charge too.
    about(charge, (each) => each.state === 'claimed' && each.owner === options.owner);
    return { kind: 'written', charge: stored(charge) };
  };

  const patch = async (id: string, event: ChargeEvent, actor: Actor): Promise<UpdateResult> => {
    const json = { event: eventToWire(event), owner: actor.owner, change_id: actor.changeId ?? drawId(random) };
    const answer = await call({ method: 'PATCH', path: `${CLAIMS}/${encodeURIComponent(id)}`, json }, advancedWire);
    const charge = answer.charge === null ? undefined : about(read(answer.charge), (each) => each.id === id);
    if (answer.kind === 'ok') {
      if (charge === undefined) throw new LedgerUnavailable('The registry answered about no charge.');
      return { kind: 'written', charge: stored(charge) };
    }
    if (answer.because === 'proof_used') return { kind: 'proof_used' };
    return { kind: 'stale', charge: charge && stored(charge) };
  };

  const update = async ({ before, actor, because }: Change): Promise<UpdateResult> => {
    if ('event' in because) return patch(before.charge.id, because.event, actor);
    const inserted = await insert(because.claim, because.options);
    switch (inserted.kind) {
      case 'payment_known':
        return { kind: 'stale', charge: inserted.charge };
      case 'id_taken':
        return { kind: 'stale', charge: undefined };
      case 'written':
        return inserted;
      case 'too_many_unsettled':
      case 'too_many_passes':
        return { kind: inserted.kind };
      default:
        return inserted satisfies never;
    }
  };

  return {
    keptBodyBytes: ANSWER_BYTES,
    run,
    now: theirs.now,
    find: async (by) => {
      if ('id' in by && !CHARGE_ID.test(by.id)) return undefined;
      const charge = await findOne('id' in by ? by : by.payment);
      if (charge === undefined) return undefined;
      return stored(about(charge, (each) => ('id' in by ? each.id === by.id : samePayment(each.payment, by.payment))));
    },
    insert: ({ claim, options }) => insert(claim, options),
    update,
    due: async (limit) => {
      const due = Math.min(limit, MAX_DUE);
      const { data } = await call({ method: 'GET', path: `${CLAIMS}?due=true&limit=${due}` }, chargesWire);
      return data.map((each) => stored(read(each)));
    },
    // A renewal is not tried again: the next one is on its way.
    renew: async (run, ids, leaseMs) => {
      const json = { owner: run, ids, lease_ms: leaseMs };
      const { ids: ours } = await call({ method: 'POST', path: 'v1/ledger/renewals', json }, renewedWire, []);
      return ours;
    },
    counters: {
      change: async (changes) => {
        const json = { changes: changes.map(counterToWire) };
        const { results } = await call({ method: 'POST', path: 'v1/ledger/counters', json }, counterResultsWire);
        const read = results.flatMap((each) => resultFromWire(each) ?? []);
        if (read.length !== changes.length)
          throw new LedgerUnavailable('The registry answered about other counters than were asked.');
        return read;
      },
    },
    passes: createRemotePasses(call, run),
    // The registry answers our key, which a call that needs the scope `ledger` shows.
    check: async () => {
      await findOne({ id: NO_CHARGE });
    },
    close,
  };
}

/** The registry decides on the version that it has. */
function stored(charge: Charge): StoredCharge {
  return { charge, version: 0 };
}

function about(charge: Charge, holds: (charge: Charge) => boolean): Charge {
  if (!holds(charge)) throw new LedgerUnavailable('The registry answered about another charge than was asked.');
  return charge;
}

function drawId(random: Random): string {
  return random(16).toString('base64url');
}
