// The sale of a pass: what becomes of a charge that buys one. With its settlement the pass is sold, and the charge is over:
// nothing of it has to be fetched later. The request that bought is a use of the pass, the first one. An upstream that fails
// after the settlement leaves the pass as it is, and the request is no use of it.
import type { Charge } from '../../domain/payment/charge.ts';
import { soldPassOf, type SoldPass } from '../../domain/selling/pass.ts';
import type { End, PaidOutcome, ResponseVerdict, SeenResponseHead } from '../outcome.ts';
import { boughtUse, type BoughtUse } from '../selling/passes/bought-use.ts';
import type { Passes } from '../selling/passes/passes.ts';
import type { CollectedUse, PassUse } from '../selling/passes/presented-pass.ts';
import { grantOf } from './deliverer.ts';
import type { Lease } from './lease.ts';
import type { Payment, PayOutcome } from './payment.ts';
import type { PaymentResponses } from './payment-responses.ts';
import type { Recorder } from './recorder.ts';

export type PassSaleDeps = {
  readonly recorder: Recorder;
  readonly responses: PaymentResponses;
  readonly passes: Passes;
};

export type PassSale = {
  /** Forwards a request that bought a pass, and whose charge is settled. `receipt`: flat name, value pairs. */
  readonly forward: (payment: Payment, charge: Charge, receipt: readonly string[], lease: Lease) => PaidOutcome;
  /** The use that is reserved for a request whose response settles the charge; undefined: it is taken with the settlement. */
  readonly useOf: (payment: Payment, charge: Charge) => BoughtUse | undefined;
  /** Ends the charge of a request whose response is there, and is a use of the pass. */
  readonly answered: (payment: Payment, charge: Charge, lease: Lease, response: UsedResponse) => Promise<AnsweredSale>;
  /** Answers a payment that bought a pass: it is as good as the token. Undefined: it did not, or is not this one's. */
  readonly present: (payment: Payment, charge: Charge) => Promise<PayOutcome | undefined>;
};

/** A response that settles a charge. `use`: what it is taken of; undefined: that was taken with the settlement. */
type UsedResponse = { readonly head: SeenResponseHead; readonly use: BoughtUse | undefined };

/** What becomes of the response that a pass was bought with. `done` hears how it ended. */
export type AnsweredSale = {
  readonly verdict: Extract<ResponseVerdict, { kind: 'stream' }>;
  readonly done: (end: End) => void;
};

/** First status of a server's failure. */
const FAILURE = 500;

export function createPassSale({ recorder, responses, passes }: PassSaleDeps): PassSale {
  const cookieOf = ({ plan }: Payment): boolean => plan?.cookie === true;
  /** Writes that the charge is over. */
  const close = (payment: Payment, charge: Charge, pass: SoldPass | undefined, lease: Lease): void => {
    recorder.counted(charge.route.id, 'delivered', charge.way.network);
    if (pass !== undefined) passes.sold(pass);
    void recorder.changeUntilWritten(payment, charge.id, { kind: 'delivered', partial: false }).finally(lease.stop);
  };
  /** Collects the response, if the request that bought the pass can be sent again as the same use. */
  const collect = (payment: Payment, pass: SoldPass | undefined): CollectedUse | undefined => {
    const use = pass === undefined || pass.kind === 'seconds' ? undefined : useBy(payment);
    return pass && use && passes.collect?.(pass.passId, use);
  };
  const answerWith = (headers: readonly string[], collected: CollectedUse | undefined): AnsweredSale['verdict'] =>
    collected === undefined ? { kind: 'stream', headers } : { kind: 'stream', headers, keep: collected.keep };
  return {
    forward: (payment, charge, receipt, lease) => {
      const pass = soldPassOf(charge);
      close(payment, charge, pass, lease);
      const collected = collect(payment, pass);
      const use = pass && boughtUse(passes, payment, charge);
      if (pass !== undefined) use?.open(pass);
      return {
        kind: 'paid',
        grant: grantOf(charge),
        route: payment.route,
        customerId: payment.customerId,
        settles: 'before_forward',
        keep: undefined,
        hearer: use?.hearer,
        beforeResponse: async (head): Promise<ResponseVerdict> => {
          const isUsed = head.status < FAILURE;
          if (!isUsed) use?.giveBack();
          const used = isUsed && ((await use?.take(head)) ?? true);
          if (isUsed && pass !== undefined && use === undefined) passes.usedAtOnce(pass);
          const handed = pass === undefined ? [] : passes.handedOver(pass, used, cookieOf(payment));
          return answerWith([...receipt, ...handed], isUsed ? collected : undefined);
        },
        tookMoney: () => true,
        done: (end) => {
          use?.done(end);
          collected?.done(end);
        },
        tell: async (given) => responses.state(payment, charge, true, given),
      };
    },
    useOf: (payment, charge) => boughtUse(passes, payment, charge),
    answered: async (payment, charge, lease, { head, use }) => {
      const pass = soldPassOf(charge);
      close(payment, charge, pass, lease);
      const collected = collect(payment, pass);
      const done: AnsweredSale['done'] = (end) => collected?.done(end);
      if (pass === undefined) return { verdict: answerWith([], collected), done };
      if (use === undefined) passes.usedAtOnce(pass);
      use?.open(pass);
      const headers = passes.handedOver(pass, (await use?.take(head)) ?? true, cookieOf(payment));
      return { verdict: answerWith(headers, collected), done };
    },
    present: async (payment, charge) => {
      const pass = boughtBy(payment, charge);
      const use = useBy(payment);
      if (pass === undefined || use === undefined) return undefined;
      recorder.counted(payment.route.id, 'replayed', charge.way.network);
      const ruling = await passes.useBought(pass, use);
      switch (ruling.kind) {
        case 'granted':
          return ruling;
        case 'answered':
          return ruling.outcome;
        case 'judged':
          return ruling.verdict.kind === 'refuse'
            ? responses.refuse(payment, ruling.verdict.problem)
            : responses.demandAnew(payment, 'payment_already_used');
        case 'next':
          return responses.demandAnew(payment, ruling.because ?? 'payment_already_used');
        default:
          return ruling satisfies never;
      }
    },
  };
}

/** A payment's request as one that wants to pass by a pass; undefined: no plan sells its route. */
function useBy({ route, plan, facts, offer }: Payment): PassUse | undefined {
  if (plan === undefined) return undefined;
  return { route, plan, request: facts, rawHeaders: facts.req?.rawHeaders ?? [], offer: () => offer };
}

/**
 * The pass that this very credential bought. It has to hold our charge id, which no chain shows: what was signed is public, so
 * that anybody could rebuild the rest.
 */
function boughtBy({ presented, isSpelled }: Payment, charge: Charge): SoldPass | undefined {
  if (charge.pass === null || isSpelled !== true || presented.version !== 2) return undefined;
  if (charge.state !== 'settled' && charge.state !== 'delivered') return undefined;
  const isOwn = presented.sha256 === charge.credentialSha256 && presented.chargeId === charge.id;
  return isOwn ? soldPassOf(charge) : undefined;
}
