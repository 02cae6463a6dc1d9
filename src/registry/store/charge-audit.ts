// The entry of the audit log that an operator's word about a charge leaves.
import { differingMembers, type AuditEntry, type AuditKind, type AuditMembers } from '../../domain/audit.ts';
import type { Charge } from '../../domain/payment/charge.ts';
import { formatPrice } from '../../domain/payment/money.ts';
import { readRefunds } from '../../domain/payment/refund.ts';
import type { Change } from '../../domain/payment/ledger.ts';
import type { ChargeEvent } from '../../domain/payment/transition.ts';

const KINDS: Readonly<Partial<Record<ChargeEvent['kind'], AuditKind>>> = {
  settled: 'charge.settled',
  failed: 'charge.failed',
  refunded: 'charge.refunded',
};

/** Entry of a change; undefined if no operator made it. */
export function auditOfCharge({ before, after, actor, because }: Change, at: number): AuditEntry | undefined {
  const kind = 'event' in because ? KINDS[because.event.kind] : undefined;
  if (actor.cause === undefined || kind === undefined) return undefined;
  return {
    ...actor.cause,
    at,
    kind,
    subject: after.id,
    ...differingMembers(membersOf(before.charge), membersOf(after)),
  };
}

function membersOf({ state, reason, proof, refundedAt, refundNote, refunds, way }: Charge): AuditMembers {
  const refunded = refundedAt === null ? null : new Date(refundedAt).toISOString();
  const transaction = proof?.transaction ?? null;
  const transfers = readRefunds(refunds).map(({ transaction, amount, logIndex }) => {
    const given = formatPrice({ units: amount, scale: way.decimals });
    return `${transaction}: ${given}${logIndex === null ? ', unproven' : ''}`;
  });
  return {
    ...{ status: state, reason, transaction, refunded_at: refunded, refund_note: refundNote },
    refunds: transfers.length === 0 ? null : transfers.join('; '),
  };
}
