// The statements of charges on SQLite. An update changes one version of one row; a look-up names the index that it needs.
import { ALL, DIGESTS, UNLISTED } from '../charge-values.ts';

const bound = (column: string): string => (DIGESTS.has(column) ? 'unhex(?)' : '?');
const selected = (columns: readonly string[]): string =>
  columns.map((column) => (DIGESTS.has(column) ? `lower(hex(${column})) AS ${column}` : column)).join(', ');

const assignment = (column: string): string => `${column} = ${bound(column)}`;

/** Binds `allValues`. */
export const INSERT = `INSERT INTO charges (${ALL.join(', ')}) VALUES (${ALL.map(bound).join(', ')})`;
/**
 * Changes the columns at these positions of one version of one row. Binds their values in that order, then the row's number if it
 * is named `bySeq`, the id, the version and, `withLease`, the end of the lease.
 */
export function updateOf(columns: readonly number[], bySeq: boolean, withLease: boolean): string {
  const changed = columns.flatMap((index) => ALL[index] ?? []);
  const [seq, lease] = [bySeq ? 'seq = ? AND ' : '', withLease ? ' AND lease_until = ?' : ''];
  return `UPDATE charges SET ${['version = version + 1', ...changed.map(assignment)].join(', ')}
    WHERE ${seq}id = ? AND version = ?${lease}`;
}
/** Selects what `readStored` reads; the condition follows. */
const select = (hint = ''): string => `SELECT charges.seq AS seq, version, ${selected(ALL)},
  charge_credentials.credential AS credential,
  charge_answers.status AS answer_status, charge_answers.headers AS answer_headers, charge_answers.body AS answer_body
  FROM charges ${hint} LEFT JOIN charge_credentials ON charge_credentials.seq = charges.seq
  LEFT JOIN charge_answers ON charge_answers.seq = charges.seq`;
/** Binds the id. */
export const SELECT_BY_ID = `${select()} WHERE id = ?`;
/** Writes a hexadecimal value as indexes hold it, word for word as in the schema: else a query does not find them. */
const keyOf = (term: string): string =>
  `CASE WHEN ${term} GLOB '0x*' THEN coalesce(unhex(substr(${term}, 3)), ${term}) ELSE ${term} END`;
/** Binds network, asset, payer and what makes the payment unique. */
export const SELECT_BY_PAYMENT = `${select('INDEXED BY charges_payment')} WHERE network = ?1
  AND ${keyOf('asset')} = ${keyOf('?2')} AND ${keyOf('payer')} = ${keyOf('?3')} AND ${keyOf('unique_key')} = ${keyOf('?4')}`;
/** Binds the payer and a `seq`: the numbers of the payer's charges before it, newest first. */
export const SEQS_OF_PAYER = `SELECT seq FROM charges INDEXED BY charges_payment
  WHERE ${keyOf('payer')} = ${keyOf('?1')} AND seq < ?2 ORDER BY seq DESC`;
/** Condition of charges that the transaction `:transaction` paid, as its index has it. */
export const BY_TRANSACTION = `settled_transaction IS NOT NULL AND ${keyOf('settled_transaction')} = ${keyOf(':transaction')}`;
/** `readListed` reads what it selects. It names neither credentials nor answers. */
export const SELECT_LISTED = `SELECT seq, ${selected(ALL.filter((name) => !UNLISTED.has(name)))},
  EXISTS (SELECT 1 FROM charge_answers WHERE charge_answers.seq = charges.seq) AS has_answer FROM charges`;
/** Binds the id. */
export const SELECT_HISTORY = `${SELECT_LISTED.replace('SELECT seq', 'SELECT events, seq')} WHERE id = ?`;
