// Charges as rows of the store and back. Column names stand here once, in the order in which values are bound. A row that
// does not say a charge throws: a charge half read must not decide about money.
import { CHARGE_STATES, isUnsettled, type Charge, type KeptAnswer } from '../../domain/charge.ts';
import type { ListedCharge } from '../../domain/ledger.ts';
import { bytes, integer, nullableInteger, nullableText, text, type Row } from './rows.ts';

export type Value = string | number | null;

/** What a claim fixes; a claim after a release writes them again, all but the id. */
const CLAIM_COLUMNS = [
  ...['network', 'asset', 'payer', 'nonce', 'credential_sha256', 'x402_version', 'scheme', 'terms_asset', 'pay_to'],
  ...['amount', 'max_timeout_seconds', 'asset_name', 'asset_version', 'asset_decimals', 'valid_after', 'valid_before'],
  ...['route_id', 'route_method', 'route_pattern', 'request_method', 'request_target', 'price_amount'],
  ...['price_currency', 'receiver_id', 'customer_id', 'settle', 'from_block'],
];
export const CHANGING_COLUMNS: readonly string[] = [
  ...['state', 'owner', 'lease_until', 'claims', 'attempts', 'next_try_at', 'settled_transaction', 'settled_log_index'],
  ...['reason', 'failed_by', 'asks', 'repeats', 'undelivered', 'undelivered_at', 'change_id'],
  ...['created_at', 'updated_at', 'settled_at', 'delivered_at'],
];
const ALL = ['id', ...CLAIM_COLUMNS, ...CHANGING_COLUMNS];

const assignments = (columns: readonly string[]): string => columns.map((column) => `${column} = ?`).join(', ');

/** Binds `allValues`. */
export const INSERT = `INSERT INTO charges (${ALL.join(', ')}) VALUES (${ALL.map(() => '?').join(', ')})`;
/** Binds `allValues`, then the id. */
export const REWRITE = `UPDATE charges SET ${assignments(ALL)} WHERE id = ?`;
/** Binds `changingValues`, then the id. */
export const UPDATE = `UPDATE charges SET ${assignments(CHANGING_COLUMNS)} WHERE id = ?`;
/**
 * Changes those of CHANGING_COLUMNS whose position has its bit in `columns`, of one version of one row; binds their values in
 * that order, then the version. A row's `seq` is never another's.
 */
export function swapOf(columns: number): string {
  const changed = CHANGING_COLUMNS.filter((_, index) => (columns & (1 << index)) !== 0);
  return `UPDATE charges SET ${assignments(changed)}
    WHERE seq = ? AND change_id = ? AND updated_at = ? AND lease_until = ?`;
}
/** `readCharge` reads what it selects; the condition follows. */
const select = (hint = ''): string => `SELECT charges.seq AS seq, ${ALL.join(', ')},
  charge_credentials.credential AS credential,
  charge_answers.status AS answer_status, charge_answers.headers AS answer_headers, charge_answers.body AS answer_body
  FROM charges ${hint} LEFT JOIN charge_credentials ON charge_credentials.seq = charges.seq
  LEFT JOIN charge_answers ON charge_answers.seq = charges.seq`;
/** Binds the id. */
export const SELECT_BY_ID = `${select()} WHERE id = ?`;
/** How indexes hold what is hexadecimal, word for word as migration 005 has it: a query without it does not find them. */
const keyOf = (term: string): string =>
  `CASE WHEN ${term} GLOB '0x*' THEN coalesce(unhex(substr(${term}, 3)), ${term}) ELSE ${term} END`;
/** Binds network, asset, payer and nonce. */
export const SELECT_BY_PAYMENT = `${select('INDEXED BY charges_payment')} WHERE network = ?1
  AND ${keyOf('asset')} = ${keyOf('?2')} AND ${keyOf('payer')} = ${keyOf('?3')} AND ${keyOf('nonce')} = ${keyOf('?4')}`;
/** Binds network, transaction and log index; the latter -1 where there is none. */
export const SELECT_PROOF_USED = `SELECT 1 AS used FROM charges INDEXED BY charges_proof
  WHERE settled_transaction IS NOT NULL AND network = ?1
    AND ${keyOf('settled_transaction')} = ${keyOf('?2')} AND coalesce(settled_log_index, -1) = ?3`;
/** Binds the payer and a `seq`: the numbers of the payer's charges before it, newest first. */
export const SEQS_OF_PAYER = `SELECT seq FROM charges INDEXED BY charges_payment
  WHERE ${keyOf('payer')} = ${keyOf('?1')} AND seq < ?2 ORDER BY seq DESC`;
/** `readListed` reads what it selects. It names neither credentials nor answers. */
export const SELECT_LISTED = `SELECT seq, ${ALL.filter((name) => name !== 'credential_sha256').join(', ')} FROM charges`;

export function allValues(charge: Charge): Value[] {
  const { payment, terms, route, request, price } = charge;
  return [
    charge.id,
    payment.network,
    payment.asset,
    payment.payer,
    payment.nonce,
    charge.credentialSha256,
    charge.x402Version,
    terms.scheme,
    terms.asset,
    terms.payTo,
    terms.amount.toString(),
    terms.maxTimeoutSeconds,
    terms.assetName,
    terms.assetVersion,
    terms.assetDecimals,
    terms.validAfter.toString(),
    terms.validBefore.toString(),
    route.id,
    route.method,
    route.pattern,
    request.method,
    request.target,
    price.amount,
    price.currency,
    charge.receiverId,
    charge.customerId,
    charge.settle,
    charge.fromBlock,
    ...changingValues(charge),
  ];
}

export function changingValues(charge: Charge): Value[] {
  return [
    charge.state,
    charge.owner,
    charge.leaseUntil,
    charge.claims,
    charge.attempts,
    charge.nextTryAt,
    charge.proof?.transaction ?? null,
    charge.proof?.logIndex ?? null,
    charge.reason,
    charge.failedBy,
    charge.asks,
    charge.repeats,
    charge.undelivered,
    charge.undeliveredAt,
    charge.changeId,
    charge.createdAt,
    charge.updatedAt,
    charge.settledAt,
    charge.deliveredAt,
  ];
}

export function readCharge(row: Row): Charge {
  const listed = readListed(row);
  const credential = nullableText(row, 'credential');
  if ((credential !== null) !== isUnsettled(listed.state))
    throw new TypeError(
      `the store holds a charge that is ${listed.state} ${credential ? 'with' : 'without'} a credential`,
    );
  return {
    ...listed,
    credential,
    credentialSha256: text(row, 'credential_sha256'),
    owner: nullableText(row, 'owner'),
    answer: readAnswer(row),
    changeId: nullableText(row, 'change_id'),
  };
}

export function readListed(row: Row): ListedCharge {
  const amount = BigInt(text(row, 'amount'));
  const [network, payer] = [text(row, 'network'), text(row, 'payer')];
  const transaction = nullableText(row, 'settled_transaction');
  return {
    id: text(row, 'id'),
    payment: { network, asset: text(row, 'asset'), payer, nonce: text(row, 'nonce') },
    x402Version: integer(row, 'x402_version') === 1 ? 1 : 2,
    terms: {
      scheme: text(row, 'scheme'),
      network,
      asset: text(row, 'terms_asset'),
      payTo: text(row, 'pay_to'),
      amount,
      maxTimeoutSeconds: integer(row, 'max_timeout_seconds'),
      assetName: text(row, 'asset_name'),
      assetVersion: text(row, 'asset_version'),
      assetDecimals: integer(row, 'asset_decimals'),
      validAfter: BigInt(text(row, 'valid_after')),
      validBefore: BigInt(text(row, 'valid_before')),
    },
    route: { id: text(row, 'route_id'), method: text(row, 'route_method'), pattern: text(row, 'route_pattern') },
    request: { method: text(row, 'request_method'), target: text(row, 'request_target') },
    price: { amount: text(row, 'price_amount'), currency: text(row, 'price_currency') },
    receiverId: text(row, 'receiver_id'),
    customerId: nullableText(row, 'customer_id'),
    settle: oneOf(row, 'settle', ['before_response', 'before_forward']),
    fromBlock: nullableInteger(row, 'from_block'),
    state: oneOf(row, 'state', CHARGE_STATES),
    leaseUntil: integer(row, 'lease_until'),
    claims: integer(row, 'claims'),
    attempts: integer(row, 'attempts'),
    nextTryAt: nullableInteger(row, 'next_try_at'),
    proof:
      transaction === null ? null : { transaction, logIndex: nullableInteger(row, 'settled_log_index'), amount, payer },
    reason: nullableText(row, 'reason'),
    failedBy: nullableOneOf(row, 'failed_by', ['operator', 'chain', 'refusal']),
    asks: integer(row, 'asks'),
    repeats: integer(row, 'repeats'),
    undelivered: nullableOneOf(row, 'undelivered', ['upstream_failed', 'answer_lost']),
    undeliveredAt: nullableInteger(row, 'undelivered_at'),
    createdAt: integer(row, 'created_at'),
    updatedAt: integer(row, 'updated_at'),
    settledAt: nullableInteger(row, 'settled_at'),
    deliveredAt: nullableInteger(row, 'delivered_at'),
  };
}

function readAnswer(row: Row): KeptAnswer | null {
  if (row['answer_status'] === null) return null;
  const headers: unknown = JSON.parse(text(row, 'answer_headers'));
  if (!Array.isArray(headers) || !headers.every((each) => typeof each === 'string'))
    throw new TypeError('the store holds an answer whose headers are not text');
  return { status: integer(row, 'answer_status'), headers, body: bytes(row, 'answer_body') };
}

function oneOf<T extends string>(row: Row, column: string, known: readonly T[]): T {
  const value = text(row, column);
  const found = known.find((each) => each === value);
  if (found === undefined) throw new TypeError(`the column ${column} of the store holds ${value}`);
  return found;
}

function nullableOneOf<T extends string>(row: Row, column: string, known: readonly T[]): T | null {
  return row[column] === null ? null : oneOf(row, column, known);
}
