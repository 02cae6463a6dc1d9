// Words about refunds of a charge: whether one can be recorded, who recorded one, and what a registry's answer means.
import type { CallProblem } from '../../net/client.ts';
import { moneyText } from '../../format/money.ts';
import type { ChargeRecord, RefundRecord } from '../../wire/billing.ts';
import type { AuditLine } from '../../wire/house.ts';

/** Whether some of the charge's money can be recorded as sent back still. */
export function canRefund({ status, amount_atomic: amount, refunds = [] }: ChargeRecord): boolean {
  if (status !== 'settled' && status !== 'delivered') return false;
  return refunds.reduce((left, { amount_atomic: given }) => left - BigInt(given), BigInt(amount)) > 0n;
}

/** Who recorded a refund: the first entry of the audit log that names its transaction; null: that is not known. */
export function recorderOf({ transaction }: RefundRecord, entries: readonly AuditLine[]): string | null {
  const names = ({ to }: AuditLine): boolean => (JSON.stringify(to['refunds']) ?? '').includes(transaction);
  return entries.findLast(names)?.actor || null;
}

/** Whether the operator's word may stand where the chain does not. */
export function takesWord({ code }: CallProblem): boolean {
  return code === 'refund_unproven' || code === 'chain_unavailable';
}

/** What came of recording `transaction`, from the charge before and after. */
export function recordedText(transaction: string, before: ChargeRecord, after: ChargeRecord): string {
  const named = ({ transaction: each }: RefundRecord): boolean => each.toLowerCase() === transaction.toLowerCase();
  const [was, is] = [before.refunds?.find(named), after.refunds?.find(named)];
  if (is === undefined) return 'The refund is recorded.';
  const money = moneyText(is.amount, after.currency);
  if (was !== undefined && was.proven === is.proven) return `It was recorded before: ${money}. Nothing changed.`;
  return is.proven
    ? `The chain shows the transfer: ${money} are recorded as sent back.`
    : `Recorded by your word alone: ${money} sent back.`;
}
