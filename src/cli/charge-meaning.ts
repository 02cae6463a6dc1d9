// Says in sentences what a charge means: where the money is, whether its answer can still be fetched, and what an
// operator does about one that is owed. `tollgate why` and `tollgate charges show` print it.
import { shortId } from '../domain/payment/quote.ts';
import type { ChargeView } from '../registry/charges/charge-schemas.ts';
import { when } from './time-text.ts';

const FAULT_OF: Readonly<Record<NonNullable<ChargeView['owed']>, string>> = {
  upstream: 'the upstream, which gave no usable answer',
  tollgate: 'Tollgate, which lost the answer or cannot tell its payer from others',
  client: 'the client, which never took the answer',
};

/** Says in one or two sentences what a charge means. */
export function meaningOf(charge: ChargeView, now: number): string {
  const { refunded_at: refundedAt, refund_note: note, refunded, refunds } = charge;
  const unproven = refunds.some(({ proven }) => !proven) ? ', not all of it proven on the chain' : '';
  if (refundedAt === null)
    return refunded === null
      ? meaningOfState(charge, now)
      : `${meaningOfState(charge, now)} ${refunded.amount} of it was given back${unproven}.`;
  const how =
    refunds.length === 0 ? ' outside Tollgate' : ` by ${refunds.map(({ transaction }) => transaction).join(', ')}`;
  const given = `The money was given back${how}${note ? `: ${note}` : ''}${unproven}.`;
  return charge.status === 'settled'
    ? `The money moved and the answer was not delivered. ${given}`
    : `${meaningOfState(charge, now)} ${given}`;
}

function meaningOfState(charge: ChargeView, now: number): string {
  switch (charge.status) {
    case 'claimed':
      return 'A request works on it; nothing has moved.';
    case 'settling':
      return 'Whether the money moved is not known yet; the chain is looked at, and the payer may ask again.';
    case 'settled':
      return meaningOfSettled(charge, now);
    case 'delivered':
      return charge.partial
        ? 'The money moved, and only a part of the answer was delivered; the rest can be fetched no more.'
        : 'The money moved and the answer was delivered.';
    case 'released':
      return 'Nothing was charged: the payment may be presented again.';
    case 'failed':
      return 'Nothing was charged, and this payment can move no more.';
    default:
      return charge.status satisfies never;
  }
}

function meaningOfSettled({ id, owed, retry_until: retryUntil }: ChargeView, now: number): string {
  if (owed !== null)
    return (
      `The money moved and nothing usable was delivered: it is owed, because of ${FAULT_OF[owed]}. The answer can be ` +
      `fetched no more. Give the money back outside Tollgate, then \`tollgate charges refund ${shortId(id)} --tx HASH\`, or ` +
      `\`tollgate charges refunded ${shortId(id)} --note TEXT\`.`
    );
  if (retryUntil === null || Date.parse(retryUntil) <= now)
    return 'The money moved; the answer is on its way, or what is left of it can be fetched no more.';
  return (
    'The money moved; the answer has not been delivered yet and may be fetched with the same payment until ' +
    `${when(retryUntil, now)}.`
  );
}
