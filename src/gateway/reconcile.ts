// Takes unfinished charges on, after a crash or a settlement whose end is not known: asks the chain for proof, settles
// again where nothing says that it happened, and gives up only where the chain itself says that it never can. It goes by
// the ledger alone, so that any process which has it may do this for any other. CONTRACT section 6, rule 7.
import type { Charge } from '../domain/charge.ts';
import type { Ledger } from '../domain/ledger.ts';
import type { Receiver } from '../domain/receiver.ts';
import type { ChargeEvent } from '../domain/transition.ts';
import type { Clock, Random } from '../host/clock.ts';
import type { Log } from '../host/log.ts';
import type { ChargeLog } from './pay/charge-log.ts';
import { storedOffer, type Evidence, type Rail } from './rails/rail.ts';

export type ReconcileDeps = {
  readonly rail: Rail;
  readonly ledger: Ledger;
  readonly receivers: ReadonlyMap<string, Receiver>;
  readonly chargeLog: Pick<ChargeLog, 'changed'>;
  readonly log: Log;
  readonly clock: Clock;
  readonly random: Random;
};

/** One round: every charge that nobody works on is taken a step further. Returns them as they are afterwards. */
export type Reconcile = () => Promise<readonly Charge[]>;

const LEASE_MS = 120_000;
const BATCH = 20;
const FIRST_RETRY_MS = 2_000;
const LONGEST_RETRY_MS = 300_000;
/** Clocks of chains and of ours differ: proof is looked for from a little before the claim. */
const CLOCK_MARGIN_SECONDS = 300n;

export function createReconcile(deps: ReconcileDeps): Reconcile {
  return async () => {
    const owner = newOwner(deps);
    const taken = await deps.ledger.unfinished({ owner, leaseMs: LEASE_MS, limit: BATCH });
    return Promise.all(taken.map((charge) => takeOn(deps, charge, owner)));
  };
}

/** The same for one charge and at once, also before its next try is due; undefined where somebody works on it. */
export async function reconcileNow(deps: ReconcileDeps, id: string): Promise<Charge | undefined> {
  const owner = newOwner(deps);
  const taken = await deps.ledger.advance(id, { kind: 'taken_over', leaseMs: LEASE_MS, early: true }, { owner });
  return taken.kind === 'ok' ? takeOn(deps, taken.charge, owner) : undefined;
}

/** Takes `charge`, which belongs to `owner` now, a step further. */
async function takeOn(deps: ReconcileDeps, charge: Charge, owner: string): Promise<Charge> {
  const { ledger, random, log, chargeLog } = deps;
  if (charge.state !== 'settling') {
    chargeLog.changed(charge);
    return charge;
  }
  const event = await nextStep(deps, charge).catch((error: unknown): ChargeEvent => {
    log.error('a charge could not be reconciled', { charge_id: charge.id, error });
    return { kind: 'settle_unknown', reason: 'reconciler_failed', retryInMs: retryIn(charge) };
  });
  const advanced = await ledger.advance(charge.id, event, { owner, changeId: random(12).toString('hex') });
  if (advanced.kind === 'ok') {
    chargeLog.changed(advanced.charge);
    return advanced.charge;
  }
  const { because } = advanced;
  log.error('a charge could not be reconciled', { charge_id: charge.id, event: event.kind, because });
  return advanced.charge ?? charge;
}

function newOwner({ random }: ReconcileDeps): string {
  return `reconciler-${random(8).toString('hex')}`;
}

/** What is known of a `settling` charge now, as an event of it. Nothing here is guessed: without an answer it stays. */
async function nextStep({ rail, receivers, clock }: ReconcileDeps, charge: Charge): Promise<ChargeEvent> {
  const later = (reason: string, ms = retryIn(charge)): ChargeEvent => ({
    kind: 'settle_unknown',
    reason,
    retryInMs: ms,
  });
  const receiver = receivers.get(charge.receiverId);
  if (receiver === undefined) return later('receiver_not_configured', LONGEST_RETRY_MS);
  const offer = storedOffer(charge.terms, receiver, `${charge.route.method} ${charge.route.pattern}`);

  const evidence = rail.evidence(offer.receiver);
  if (evidence !== undefined) {
    const seen = await lookAtChain(evidence, charge);
    if (seen === 'may_settle') {
      // The nonce is unused and the authorization good: settling again cannot take the money twice.
    } else if (seen !== 'unavailable') {
      return typeof seen === 'string' ? later(seen) : seen;
    }
  }

  if (charge.credential === null) return later('credential_gone', LONGEST_RETRY_MS);
  const presented = rail.read({ version: charge.x402Version, value: charge.credential }, offer);
  if ('code' in presented) return later('credential_unreadable', LONGEST_RETRY_MS);
  const expired = charge.terms.validBefore * 1000n <= BigInt(clock.now());
  // Past its end nobody settles it any more; without the chain only a facilitator's memory or an operator can tell.
  const end = await rail.settle(presented, offer, { afterUnknown: true });
  switch (end.kind) {
    case 'settled': {
      const { transaction } = end.receipt;
      const proof = { transaction, logIndex: null, amount: charge.terms.amount, payer: charge.payment.payer };
      return { kind: 'settled', proof, leaseMs: 0 };
    }
    case 'refused':
    case 'unknown':
      return later(end.reason, expired ? LONGEST_RETRY_MS : retryIn(charge));
    default:
      return end satisfies never;
  }
}

async function lookAtChain(
  evidence: Evidence,
  charge: Charge,
): Promise<ChargeEvent | 'may_settle' | 'unavailable' | 'unconfirmed' | 'contradicted' | 'nonce_used'> {
  const { payment, terms } = charge;
  const since = BigInt(Math.floor(charge.createdAt / 1000)) - CLOCK_MARGIN_SECONDS;
  const start =
    charge.fromBlock === null
      ? await evidence.blockAt(since > 0n ? since : 0n)
      : { kind: 'block' as const, block: BigInt(charge.fromBlock) };
  if (start.kind === 'unavailable') return 'unavailable';
  let fromBlock = start.block;
  for (;;) {
    const found = await evidence.findProof({ key: payment, payTo: terms.payTo, amount: terms.amount, fromBlock });
    switch (found.kind) {
      case 'found': {
        const { transaction, logIndex } = found;
        return {
          kind: 'settled',
          proof: { transaction, logIndex, amount: terms.amount, payer: payment.payer },
          leaseMs: 0,
        };
      }
      case 'unconfirmed':
      case 'contradicted':
      case 'unavailable':
        return found.kind;
      case 'absent':
        if (found.complete) break;
        fromBlock = found.scannedTo + 1n;
        continue;
      default:
        return found satisfies never;
    }
    break;
  }
  const nonce = await evidence.nonceState(payment);
  if (nonce.kind === 'unavailable') return 'unavailable';
  if (nonce.used) return 'nonce_used';
  if (nonce.time > terms.validBefore)
    return { kind: 'failed', by: 'chain', chainTime: nonce.time, reason: 'authorization_expired_unused' };
  return 'may_settle';
}

function retryIn({ attempts }: Charge): number {
  return Math.min(LONGEST_RETRY_MS, FIRST_RETRY_MS * 2 ** Math.min(attempts, 10));
}
