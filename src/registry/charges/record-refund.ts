// Records that the money of a charge was given back: what an operator says is held against the charge, then against the chain,
// then written in one change of the ledger. The same transaction again is the same refund. An outcome says in a sentence why
// nothing was recorded; the endpoint and `tollgate charges refund` answer with it.
import { formatPrice, parsePrice, toAtomic } from '../../domain/payment/money.ts';
import type { Charge } from '../../domain/payment/charge.ts';
import type { Ledger } from '../../domain/payment/ledger.ts';
import { MAX_REFUNDS, readRefunds, unrecordedAmount } from '../../domain/payment/refund.ts';
import type { RefundProver } from '../../domain/payment/refund-proof.ts';
import type { Actor } from '../../domain/payment/transition.ts';

export type RefundRequest = {
  readonly chargeId: string;
  readonly transaction: string;
  /** Decimal; undefined: all that is left. */
  readonly amount: string | undefined;
  readonly reason: string;
  /** Recorded by the operator's word, without a look at the chain. */
  readonly isUnproven: boolean;
};

export type RefundOutcome =
  | { readonly kind: 'recorded'; readonly charge: Charge; readonly amount: bigint }
  /** It was recorded before. */
  | { readonly kind: 'known'; readonly charge: Charge }
  | { readonly kind: 'unknown_charge' }
  /** A member of the request is wrong, for this charge. */
  | { readonly kind: 'invalid'; readonly member: 'transaction' | 'amount'; readonly why: string }
  | { readonly kind: 'exceeds' | 'differs' | 'busy' | 'unproven' | 'chain_away'; readonly why: string };

type RecordingDeps = {
  readonly ledger: Pick<Ledger, 'findByChargeId' | 'advance' | 'spelling'>;
  readonly prover: RefundProver;
  readonly actor: Actor;
};

export async function recordRefund(
  request: RefundRequest,
  { ledger, prover, actor }: RecordingDeps,
): Promise<RefundOutcome> {
  const charge = await ledger.findByChargeId(request.chargeId);
  if (charge === undefined) return { kind: 'unknown_charge' };
  const read = readRequest(
    charge,
    { ...request, transaction: ledger.spelling.identifier(request.transaction) },
    prover,
  );
  if ('kind' in read) return read;
  const { transaction, amount, reason } = read;
  const advance = async (logIndex: number | null): Promise<RefundOutcome | 'proof_used'> => {
    const transfer = { transaction, logIndex, amount, reason };
    const advanced = await ledger.advance(charge.id, { kind: 'refunded', note: reason, transfer }, actor);
    if (advanced.kind === 'ok') return { kind: 'recorded', charge: advanced.charge, amount };
    switch (advanced.because) {
      case 'proof_used':
        return 'proof_used';
      case 'unknown_charge':
        return { kind: 'unknown_charge' };
      case 'refund_recorded':
        return { kind: 'differs', why: DIFFERS };
      case 'lease_running':
        return { kind: 'busy', why: 'somebody delivers what was paid for right now; try again in a minute' };
      case 'refund_exceeds':
      case 'wrong_state':
      case 'not_due':
      case 'not_owner':
      case 'not_redeemable':
      case 'proof_mismatch':
      case 'still_redeemable':
        return { kind: 'exceeds', why: whyExceeding(advanced.charge ?? charge, amount) };
      default:
        return advanced.because satisfies never;
    }
  };
  if (request.isUnproven) {
    const recorded = await advance(null);
    return recorded === 'proof_used' ? { kind: 'unproven', why: USED } : recorded;
  }
  const proof = await prover.prove(charge, { transaction, amount });
  switch (proof.kind) {
    case 'unavailable':
      return { kind: 'chain_away', why: `no node answered (${proof.why}); try again, or record it as unproven` };
    case 'unreadable':
      return {
        kind: 'unproven',
        why: `${proof.why}: set rpc_url of its receiver, or record it by your word alone, as unproven`,
      };
    case 'unproven':
      return { kind: 'unproven', why: proof.why };
    case 'proven':
      for (const logIndex of proof.logIndexes) {
        const recorded = await advance(logIndex);
        if (recorded !== 'proof_used') return recorded;
      }
      return { kind: 'unproven', why: USED };
    default:
      return proof satisfies never;
  }
}

const USED = 'its transfer proves another refund, or paid for a charge';
const DIFFERS = 'this transaction is recorded for the charge with another amount';

type ReadRefund = { readonly transaction: string; readonly amount: bigint; readonly reason: string };

function readRequest(
  charge: Charge,
  { transaction, amount: written, reason, isUnproven }: RefundRequest,
  prover: Pick<RefundProver, 'isTransaction'>,
): ReadRefund | RefundOutcome {
  const { state, payment, way } = charge;
  if (state !== 'settled' && state !== 'delivered') return { kind: 'exceeds', why: whyExceeding(charge, 0n) };
  if (!prover.isTransaction(payment.network, transaction))
    return { kind: 'invalid', member: 'transaction', why: `is no transaction of ${payment.network}` };
  const price = written === undefined ? undefined : parsePrice(written);
  if (written !== undefined && price === undefined)
    return { kind: 'invalid', member: 'amount', why: 'is not greater than 0' };
  const given = price && toAtomic(price, way.decimals);
  if (price !== undefined && given === undefined)
    return { kind: 'invalid', member: 'amount', why: `has more than the ${way.decimals} decimals of its token` };
  const same = readRefunds(charge.refunds).find((each) => each.transaction === transaction);
  if (same !== undefined) {
    if (given !== undefined && given !== same.amount) return { kind: 'differs', why: DIFFERS };
    if (isUnproven || same.logIndex !== null) return { kind: 'known', charge };
    return { transaction, amount: same.amount, reason };
  }
  const amount = given ?? unrecordedAmount(charge);
  if (amount > unrecordedAmount(charge) || amount === 0n) return { kind: 'exceeds', why: whyExceeding(charge, amount) };
  return { transaction, amount, reason };
}

function whyExceeding(charge: Charge, amount: bigint): string {
  const { state, way, refunds } = charge;
  if (state === 'settling')
    return 'whether the charge took the money is not known yet; `tollgate charges reconcile` asks the chain';
  if (state !== 'settled' && state !== 'delivered') return `the charge is ${state}: it took nothing`;
  const left = unrecordedAmount(charge);
  if (left === 0n) return 'all of it was given back already';
  if (amount <= left && readRefunds(refunds).length >= MAX_REFUNDS)
    return `a charge takes ${MAX_REFUNDS} refunds at most`;
  return `only ${formatPrice({ units: left, scale: way.decimals })} is left of the charge`;
}
