// Lists of charges on SQLite, newest first, by whatever people look for. Each kind of question has an index that leads to
// its charges in the order of the list, or to so few that they can be sorted. SQLite keeps no statistics of this file, so
// the index is named here. A range of times is a range of `seq`.
import type { DatabaseSync, SQLInputValue, StatementSync } from 'node:sqlite';
import { isUnsettled, type ChargeState } from '../../../domain/payment/charge.ts';
import type { ChargeFilter } from '../../../domain/payment/reports.ts';
import { searchSeqRange, type SeqRange } from '../seq-search.ts';
import { BY_TRANSACTION, SELECT_LISTED, SEQS_OF_PAYER } from './charge-rows.ts';
import { integer, text, type Row } from '../rows.ts';

export type StatementPreparer = (sql: string) => StatementSync;
type Values = Record<string, SQLInputValue>;
/** Conditions on a charge, and what they bind. */
type Conditions = { readonly where: readonly string[]; readonly values: Values };
/** A way into the charges: the index, and the condition that it serves. */
type Lead = Conditions & { readonly index: string };

/** Charges that are looked through, newest first, before an index that is not in the order of the list is used. */
const NEWEST_WALK = 20_000;
/** Charges that are few enough to be sorted. */
const FEW = 1_000;
const OPEN = "state IN ('claimed', 'settling')";
const ENDED = "(state = 'settled' OR state = 'released' OR state = 'failed')";
/** A character that sorts after every character of an id, so that it ends a range of ids with the same beginning. */
const AFTER_IDS = '~';

/** Keeps statements by their texts, which are made of fixed parts: there are few of them. */
export function rememberStatements(db: DatabaseSync): StatementPreparer {
  const known = new Map<string, StatementSync>();
  return (sql) => {
    let statement = known.get(sql);
    if (statement === undefined) known.set(sql, (statement = db.prepare(sql)));
    return statement;
  };
}

/** Rows of a page, and one more if there is one. */
export function readPage(prepare: StatementPreparer, filter: ChargeFilter, newestWalk = NEWEST_WALK): Row[] {
  const { requestId, transaction, idStart, payer, customerId, routeId, states } = filter;
  if (states?.length === 0) return [];
  const asked: ListQuery = { prepare, conditions: conditionsOf(prepare, filter), count: filter.limit + 1 };
  if (requestId !== undefined) return readByLead(asked, REQUEST);
  if (transaction !== undefined) return readByLead(asked, TRANSACTION);
  if (idStart !== undefined) return readByIdStart(asked, idStart, newestWalk);
  if (payer !== undefined && states?.every(isUnsettled) !== true)
    return readNearOrElse(asked, newestWalk, (floor) => prepare(SEQS_OF_PAYER).iterate(payer, floor));
  if (states !== undefined && !states.includes('delivered')) return readByLeads(asked, stateLeads(states));
  if (customerId !== undefined) return readByLead(asked, CUSTOMER);
  if (routeId !== undefined) return readByLead(asked, ROUTE);
  const { network, currency, receiverId } = filter;
  if (network !== undefined || currency !== undefined || receiverId !== undefined)
    return readByLeads(asked, wayLeads(prepare, filter));
  return readByLead(asked, NEWEST);
}

/** All of a filter as conditions on a row. */
export function conditionsOf(prepare: StatementPreparer, filter: Partial<ChargeFilter>): Conditions {
  const { from, before } = seqRangeOf(prepare, filter);
  const asked: readonly (readonly [name: string, condition: string, value: SQLInputValue | undefined])[] = [
    ['before', 'seq < :before', filter.before],
    ['fromSeq', 'seq >= :fromSeq', from],
    ['beforeSeq', 'seq < :beforeSeq', before],
    ['route', 'route_id = :route', filter.routeId],
    ['network', 'network = :network', filter.network],
    ['payer', 'payer = :payer', filter.payer],
    ['customer', 'customer_id = :customer', filter.customerId],
    ['request', 'request_id = :request', filter.requestId],
    ['transaction', BY_TRANSACTION, filter.transaction],
    ['currency', 'price_currency = :currency', filter.currency],
    ['receiver', 'receiver_id = :receiver', filter.receiverId],
    ['idStart', `id >= :idStart AND id < :idStart || '${AFTER_IDS}'`, filter.idStart],
    ['fromMs', 'created_at >= :fromMs', filter.fromMs],
    ['toMs', 'created_at < :toMs', filter.toMs],
  ];
  const given = asked.flatMap(([name, condition, value]) => (value === undefined ? [] : [{ name, condition, value }]));
  const inStates = filter.states === undefined ? [] : [`state IN (${wordsOf(filter.states)})`];
  return {
    where: [...given.map(({ condition }) => condition), ...inStates],
    values: Object.fromEntries(given.map(({ name, value }) => [name, value])),
  };
}

export function whereOf({ where }: Pick<Conditions, 'where'>): string {
  return where.length === 0 ? '' : `WHERE ${where.join(' AND ')}`;
}

type ListQuery = {
  readonly prepare: StatementPreparer;
  readonly conditions: Conditions;
  /** Rows that are wanted. */
  readonly count: number;
};

const leadBy = (index: string, ...where: string[]): Lead => ({ index: `INDEXED BY ${index}`, where, values: {} });
const NEWEST: Lead = { index: 'NOT INDEXED', where: [], values: {} };
const REQUEST = leadBy('charges_by_request', 'request_id IS NOT NULL');
const TRANSACTION = leadBy('charges_by_transaction');
const CUSTOMER = leadBy('charges_by_customer', 'customer_id IS NOT NULL');
const ROUTE = leadBy('charges_by_route');

function readByLead({ prepare, conditions, count }: ListQuery, lead: Lead): Row[] {
  const where = whereOf({ where: [...lead.where, ...conditions.where] });
  const sql = `${SELECT_LISTED} ${lead.index} ${where} ORDER BY seq DESC LIMIT :count`;
  return prepare(sql).all({ ...lead.values, ...conditions.values, count });
}

/** Every lead has its charges in the order of the list, so the newest of all are among the newest of each. */
function readByLeads(asked: ListQuery, leads: readonly Lead[]): Row[] {
  const [only] = leads;
  if (only === undefined) return [];
  if (leads.length === 1) return readByLead(asked, only);
  const { prepare, conditions, count } = asked;
  const seqs = leads.flatMap(({ index, where, values }) => {
    const all = whereOf({ where: [...where, ...conditions.where] });
    const sql = `SELECT seq FROM charges ${index} ${all} ORDER BY seq DESC LIMIT :count`;
    return prepare(sql)
      .all({ ...values, ...conditions.values, count })
      .map((row) => integer(row, 'seq'));
  });
  return rowsOf(prepare, seqs.toSorted((a, b) => b - a).slice(0, count));
}

/** The open ones are few; each of the other states has its charges in order. */
function stateLeads(states: readonly ChargeState[]): Lead[] {
  const open = states.some(isUnsettled) ? [leadBy('charges_unsettled', OPEN)] : [];
  const ended = states.filter((state) => !isUnsettled(state));
  return [...open, ...ended.map((state) => leadBy('charges_ended', ENDED, `state = '${state}'`))];
}

/** Each way in which charges were paid and that fits. There are few: they are found by skipping from one to the next. */
function wayLeads(prepare: StatementPreparer, { network, currency, receiverId }: ChargeFilter): Lead[] {
  const next = (where: string) =>
    prepare(`SELECT network, price_currency, receiver_id FROM charges INDEXED BY charges_by_way
      WHERE ${where} ORDER BY network, price_currency, receiver_id LIMIT 1`);
  // One comparison of all three would read every charge of the network.
  const [receiverAfter, currencyAfter, networkAfter] = [
    next('network = ?1 AND price_currency = ?2 AND receiver_id > ?3'),
    next('network = ?1 AND price_currency > ?2'),
    next('network > ?1'),
  ];
  const leads: Lead[] = [];
  let way = { network: network ?? '', currency: '', receiver: '' };
  for (;;) {
    const row =
      receiverAfter.get(way.network, way.currency, way.receiver) ??
      currencyAfter.get(way.network, way.currency) ??
      (network === undefined ? networkAfter.get(way.network) : undefined);
    if (row === undefined) return leads;
    way = {
      network: text(row, 'network'),
      currency: text(row, 'price_currency'),
      receiver: text(row, 'receiver_id'),
    };
    if (currency !== undefined && way.currency !== currency) continue;
    if (receiverId !== undefined && way.receiver !== receiverId) continue;
    const where = 'network = :wayNetwork AND price_currency = :wayCurrency AND receiver_id = :wayReceiver';
    const values = { wayNetwork: way.network, wayCurrency: way.currency, wayReceiver: way.receiver };
    leads.push({ ...leadBy('charges_by_way', where), values });
  }
}

/** Ids of one route share their beginning: where they are not few, the newest are looked through first. */
function readByIdStart(asked: ListQuery, idStart: string, newestWalk: number): Row[] {
  const { prepare } = asked;
  const seqs = `SELECT seq FROM charges WHERE id >= ?1 AND id < ?1 || '${AFTER_IDS}'`;
  const few = prepare(`${seqs} LIMIT ${FEW + 1}`).all(idStart);
  if (few.length <= FEW)
    return pick(
      asked,
      few.map((row) => integer(row, 'seq')).toSorted((a, b) => b - a),
    );
  return readNearOrElse(asked, newestWalk, (floor) =>
    prepare(`${seqs} AND seq < ?2 ORDER BY seq DESC`).iterate(idStart, floor),
  );
}

/**
 * An index that is not in the order of the list costs payments nothing for it. Frequent ones are found among the newest;
 * of any other the index holds few enough to be sorted. `older` gives the numbers before `floor`, newest first.
 */
function readNearOrElse(asked: ListQuery, newestWalk: number, older: (floor: number) => Iterable<Row>): Row[] {
  const { prepare, conditions, count } = asked;
  const { before, beforeSeq } = conditions.values;
  const bounds = [before, beforeSeq].filter((bound) => typeof bound === 'number');
  const newest = bounds.length === 0 ? lastSeq(prepare) + 1 : Math.min(...bounds);
  const floor = newest - newestWalk;
  const near = `${SELECT_LISTED} NOT INDEXED ${whereOf({ where: [...conditions.where, 'seq >= :floor'] })}`;
  const rows = prepare(`${near} ORDER BY seq DESC LIMIT :count`).all({ ...conditions.values, floor, count });
  if (rows.length === count || floor <= 1) return rows;
  return [...rows, ...pick({ ...asked, count: count - rows.length }, seqsIn(older(floor)))];
}

function* seqsIn(rows: Iterable<Row>): Generator<number> {
  for (const row of rows) yield integer(row, 'seq');
}

/** Rows with these numbers that fit, in this order, no more than are wanted. */
function pick({ prepare, conditions, count }: ListQuery, seqs: Iterable<number>): Row[] {
  const one = prepare(`${SELECT_LISTED} NOT INDEXED ${whereOf({ where: ['seq = :seq', ...conditions.where] })}`);
  const rows: Row[] = [];
  for (const seq of seqs) {
    const row = one.get({ ...conditions.values, seq });
    if (row !== undefined && rows.push(row) === count) break;
  }
  return rows;
}

function rowsOf(prepare: StatementPreparer, seqs: readonly number[]): Row[] {
  const one = prepare(`${SELECT_LISTED} WHERE seq = ?`);
  return seqs.map((seq) => one.get(seq)).filter((row) => row !== undefined);
}

function lastSeq(prepare: StatementPreparer): number {
  return integer(prepare('SELECT coalesce(max(seq), 0) AS last FROM charges').get() ?? {}, 'last');
}

function seqRangeOf(prepare: StatementPreparer, filter: Partial<ChargeFilter>): SeqRange {
  if (filter.fromMs === undefined && filter.toMs === undefined) return { from: undefined, before: undefined };
  const next = prepare('SELECT seq, created_at FROM charges WHERE seq >= ? ORDER BY seq LIMIT 1');
  const search = searchSeqRange(filter, lastSeq(prepare));
  for (let step = search.next(); ;) {
    if (step.done === true) return step.value;
    const row = next.get(step.value);
    step = search.next(row && { seq: integer(row, 'seq'), createdAt: integer(row, 'created_at') });
  }
}

/** The words are of a fixed list: none of them needs to be bound. */
function wordsOf(states: readonly ChargeState[]): string {
  return states.map((state) => `'${state}'`).join(', ');
}
