// Transfers that prove refunds, on SQLite: each proves one, and none that paid for a charge. They outlive their charges, or one
// that a charge of last year was refunded by would prove another refund.
import type { DatabaseSync } from 'node:sqlite';
import type { TransferPlace } from '../refund-change.ts';
import { BY_TRANSACTION } from './charge-rows.ts';

type RefundProofs = {
  /** Whether the transfer proves something already. A payment is compared with refunds alone: an index compares it with others. */
  readonly isUsed: (proof: TransferPlace, by: 'refund' | 'payment') => boolean;
  readonly use: (proof: TransferPlace, chargeId: string) => void;
};

export function createProofs(db: DatabaseSync): RefundProofs {
  const sql = {
    refund: db.prepare('SELECT 1 FROM refund_proofs WHERE network = ? AND transaction_id = ? AND log_index = ?'),
    // A payment whose place is not known may be any transfer of its transaction.
    payment: db.prepare(
      `SELECT 1 FROM charges WHERE ${BY_TRANSACTION} AND network = :network
         AND (settled_log_index IS NULL OR settled_log_index = :logIndex)`,
    ),
    use: db.prepare('INSERT INTO refund_proofs (network, transaction_id, log_index, charge_id) VALUES (?, ?, ?, ?)'),
  };
  return {
    isUsed: ({ network, transaction, logIndex }, by) =>
      sql.refund.get(network, transaction, logIndex) !== undefined ||
      (by === 'refund' && sql.payment.get({ network, transaction, logIndex }) !== undefined),
    use: ({ network, transaction, logIndex }, chargeId) => void sql.use.run(network, transaction, logIndex, chargeId),
  };
}
