// A model of the rail: credentials that are plain JSON, and a facilitator that sends transactions, forgets, refuses and
// answers late. Calls to it are lost on the way there or back; what it does goes on when its caller has crashed.
import { createHash } from 'node:crypto';
import { problem } from '../../../src/domain/problem.ts';
import type { PaymentKey } from '../../../src/domain/payment/charge.ts';
import type { RailOffer } from '../../../src/domain/payment/way.ts';
import type { PresentedPayment, Rail, Settlement } from '../../../src/gateway/rails/rail.ts';
import { modelLook, type ModelChain } from './chain.ts';
import type { Actor, Scheduler } from './scheduler.ts';
import type { Weather } from './weather.ts';

export type ModelFacilitator = {
  /** A call to settle may yet arrive or be worked on. */
  readonly busyWith: (key: PaymentKey) => boolean;
  readonly settle: (presented: PresentedPayment, offer: RailOffer) => Promise<FacilitatorSays>;
  /** `valid`, or why not. */
  readonly verify: (presented: PresentedPayment) => string;
};

type FacilitatorSays =
  | { readonly kind: 'settled'; readonly transaction: string }
  | { readonly kind: 'refused'; readonly reason: string }
  | { readonly kind: 'may_have_settled'; readonly reason: string };

/** What a model client signs. */
export type Signed = {
  readonly payer: string;
  readonly nonce: string;
  readonly ref: string | undefined;
  readonly amount: string;
  readonly payTo: string;
  readonly validBefore: number;
};

export function createModelFacilitator(scheduler: Scheduler, chain: ModelChain, weather: Weather): ModelFacilitator {
  const actor = { name: 'facilitator', alive: true };
  const { draw } = scheduler;
  const busy: string[] = [];

  const work = async ({ key, deadline = 0n }: PresentedPayment): Promise<FacilitatorSays> => {
    await scheduler.point(actor, `gets ${key.unique.slice(-4)} to settle`, weather.delay());
    // Somebody who watches the pool may be first with the very same transfer, or the payer voids the nonce.
    // (Not both that and a final refusal: who has sent the transfer himself and then lacks the money pays nobody twice.)
    const overtaken = chain.used(key) === undefined && weather.happens('overtaken');
    if (overtaken) {
      void chain.send(key, deadline, draw.below(2_000), !draw.chance(0.2));
      await scheduler.point(actor, `looks at ${key.unique.slice(-4)}`, draw.below(4_000));
    }
    const before = chain.used(key);
    if (before !== undefined) {
      return before.paid && weather.remembers()
        ? { kind: 'settled', transaction: before.transaction }
        : { kind: 'may_have_settled', reason: 'nonce_already_used' };
    }
    if (chain.timeOf(chain.head() + 1) >= deadline || (!overtaken && weather.happens('refusal')))
      return { kind: 'refused', reason: 'insufficient_funds' };
    if (weather.happens('odd_refusal')) return { kind: 'may_have_settled', reason: 'no_reason_at_all' };
    const sent = chain.send(key, deadline, weather.miningDelay());
    if (weather.happens('impatience')) return { kind: 'may_have_settled', reason: 'settlement_pending' };
    const transfer = await sent;
    return transfer === undefined
      ? { kind: 'may_have_settled', reason: 'transaction_failed' }
      : { kind: 'settled', transaction: transfer.transaction };
  };

  return {
    busyWith: ({ unique: nonce }) => busy.includes(nonce),
    verify: ({ key, deadline = 0n }) => {
      if (chain.used(key) !== undefined) return 'nonce_already_used';
      if (chain.timeOf(chain.head()) + 6n > deadline) return 'expired';
      return weather.happens('refused_verification') ? 'insufficient_funds' : 'valid';
    },
    settle: async (presented) => {
      busy.push(presented.key.unique);
      try {
        return await work(presented);
      } finally {
        busy.splice(busy.indexOf(presented.key.unique), 1);
      }
    },
  };
}

/** The rail as one process has it. `touched` is called at the moment a call takes effect. */
export function createModelRail(
  scheduler: Scheduler,
  chain: ModelChain,
  facilitator: ModelFacilitator,
  weather: Weather,
  asker: Actor,
  touched: (key: PaymentKey) => void,
): Rail {
  const conclude = (said: FacilitatorSays, afterUnknown: boolean): Settlement => {
    switch (said.kind) {
      case 'settled':
        return { kind: 'settled', transaction: said.transaction, via: VIA };
      case 'may_have_settled':
        return unknown(said.reason);
      case 'refused':
        if (afterUnknown) return unknown(said.reason);
        return { ...said, via: VIA };
      default:
        return said satisfies never;
    }
  };
  return {
    requirement: () => undefined,
    read: ({ version, value }, [way]) => {
      const signed = readSigned(value);
      if (signed === undefined) return problem('payment_malformed', 'not a credential');
      const { payer, nonce, ref, amount, validBefore } = signed;
      return {
        version,
        way: way ?? { reason: 'way_mismatch' },
        key: { network: NETWORK, asset: ASSET, payer, unique: nonce },
        sha256: createHash('sha256').update(value).digest('hex'),
        chargeId: ref,
        amount: BigInt(amount),
        deadline: BigInt(validBefore),
        payload: signed,
      };
    },
    check: ({ deadline = 0n }, _offer, nowMs) =>
      deadline < BigInt(Math.floor(nowMs / 1000)) + 6n ? { reason: 'valid_before' } : undefined,
    verify: async (presented) => {
      await scheduler.point(asker, 'asks to verify', weather.delay());
      if (weather.happens('verify_away')) return { kind: 'unavailable', detail: 'no answer', retryAfterMs: undefined };
      touched(presented.key);
      const said = facilitator.verify(presented);
      await scheduler.point(asker, `hears that it is ${said}`, weather.delay());
      return said === 'valid' ? { kind: 'valid', payer: presented.key.payer } : { kind: 'refused', reason: said };
    },
    settle: async (presented, offer, { afterUnknown }, sending) => {
      if (!(await sending(VIA))) return { kind: 'not_carried_out', reason: 'stopped', retryAfterMs: undefined };
      await scheduler.point(asker, `sends ${presented.key.unique.slice(-4)} to settle`);
      if (weather.happens('settle_lost')) return unknown('facilitator_no_answer');
      const working = facilitator.settle(presented, offer);
      if (weather.happens('settle_timeout')) {
        await scheduler.point(asker, 'waited in vain for settle', 15_000);
        return unknown('facilitator_no_answer');
      }
      const said = await scheduler.crossing(asker, 'hears of settle', working);
      scheduler.say(`${asker.name}: settle is ${said.kind}${'reason' in said ? `, ${said.reason}` : ''}`);
      return conclude(said, afterUnknown);
    },
    receiptHeader: (_version, receipt) => ['PAYMENT-RESPONSE', receipt.transaction],
    isCallable: () => true,
    firstVia: () => VIA,
    look: modelLook(scheduler, chain, asker, () => weather.happens('chain_away')),
  };
}

const VIA = 'model';
export const NETWORK = 'eip155:84532';
export const ASSET = '0x036cbd53842c5426634e7929541ec2318f3dcf7e';

function unknown(reason: string): Settlement {
  return { kind: 'unknown', reason, via: VIA, detail: reason };
}

function readSigned(value: string): Signed | undefined {
  try {
    return JSON.parse(value) as Signed;
  } catch {
    return undefined;
  }
}
