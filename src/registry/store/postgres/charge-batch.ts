// Calls of the ledger that share one transaction: locks, inserts, changes and COMMIT go out in one round trip. Calls
// that wrote nothing are looked up after it. Only the word COMMIT says that something was written.
import { fnv1a } from '../../../domain/fnv.ts';
import type { KeptAnswer, PaymentKey } from '../../../domain/payment/charge.ts';
import type { ChargeName, StoredCharge } from '../../../domain/payment/ledger.ts';
import {
  type InsertRefusal,
  type UpdateRefusal,
  type RowChange,
  type Room,
  type RowInsert,
  readStored,
  type Value,
} from '../charge-values.ts';
import type { TransferPlace } from '../refund-change.ts';
import { AUDIT_COLUMNS } from '../audit-values.ts';
import { DRAW_COLUMNS, PASS_COLUMNS } from '../pass-values.ts';
import { integer, text, type Row } from '../rows.ts';
import type { ChangeKindOfRow, ChargeSql } from './charge-sql.ts';
import { codeOf, constraintOf, PostgresRefusal, type Answer, type Session, type Statement } from './connection.ts';

export type BatchCall =
  | { readonly kind: 'find'; readonly by: ChargeName }
  | { readonly kind: 'insert'; readonly insert: RowInsert }
  | { readonly kind: 'update'; readonly change: RowChange; readonly kept: KeptAnswer | undefined };
export type BatchResult = StoredCharge | InsertRefusal | UpdateRefusal | undefined;
/** Outcome of a call. `again`: it was not tried, because another call of the batch was about the same. */
type BatchOutcome = { readonly kind: 'done'; readonly result: BatchResult } | { readonly kind: 'again' };

export type BatchOptions = {
  readonly sql: ChargeSql;
  readonly now: () => number;
  readonly shift: () => number;
  /** Time until which a lease that ran out counts as running: its owner may soon be back. Undefined: none does. */
  readonly quietUntil: () => number | undefined;
  readonly shard: number;
  /** Hears what the database's clock said, at the latest when `at` was. */
  readonly onClock: (clock: number) => void;
  /** Settings that a transaction makes for itself. */
  readonly settings: () => string;
};

/** An outcome for each call, in their order. Rejects as a whole: nothing was written then, or it is ConnectionLost. */
export async function runBatch(
  session: Session,
  calls: readonly BatchCall[],
  options: BatchOptions,
): Promise<readonly BatchOutcome[]> {
  const { sql } = options;
  const plan = planOf(calls);
  const until = options.quietUntil();
  const done = plan.writes ? await write(session, plan, options, until) : new Set<number>();
  const outcomes: BatchOutcome[] = calls.map(() => ({ kind: 'done', result: undefined }));
  for (const place of plan.again) outcomes[place] = { kind: 'again' };
  const missing = calls.flatMap((call, place) => (done.has(place) || plan.again.has(place) ? [] : [{ call, place }]));
  if (missing.length === 0) return outcomes;

  // Payments are read after the transaction, by statements of their own: one that met what another transaction just
  // wrote does not see it yet.
  const payments = missing.flatMap(({ call, place }) => {
    if (call.kind === 'insert') return [{ place, key: call.insert.payment }];
    return call.kind === 'find' && 'payment' in call.by ? [{ place, key: call.by.payment }] : [];
  });
  const ids = missing.flatMap(({ call, place }) => {
    if (call.kind === 'insert') return [{ place, key: call.insert.id }];
    if (call.kind === 'update') return [{ place, key: call.change.id }];
    return 'id' in call.by ? [{ place, key: call.by.id }] : [];
  });
  const [byPayment, byId, full] = await Promise.all([
    found(session, sql.findByPayments, payments, (keys: readonly PaymentKey[]) => [
      keys.map(({ payer }) => plain(payer)),
      keys.map(({ unique }) => plain(unique)),
      keys.map(({ network }) => plain(network)),
      keys.map(({ asset }) => plain(asset)),
    ]),
    found(session, sql.findByIds, ids, (keys: readonly string[]) => [keys.map(plain)]),
    fullOfPasses(session, sql.full, missing, options.now()),
  ]);
  const seen = (stored: StoredCharge | undefined): StoredCharge | undefined => stored && held(stored, until);
  for (const { call, place } of missing)
    outcomes[place] = {
      kind: 'done',
      result: missed(call, {
        ...{ ofPayment: seen(byPayment.get(place)), ofId: seen(byId.get(place)) },
        full: full.has(place) ? 'too_many_passes' : 'too_many_unsettled',
      }),
    };
  return outcomes;
}

/** Keeps a charge as its owner's until then, as long as somebody owns it. */
function held(stored: StoredCharge, until: number | undefined): StoredCharge {
  const { charge } = stored;
  return until === undefined || charge.owner === null || charge.leaseUntil >= until
    ? stored
    : { ...stored, charge: { ...charge, leaseUntil: until } };
}

/** The result of a single call that the database refused; undefined: the fault is the database's own. */
export function refusalOf(call: BatchCall, error: unknown): BatchResult {
  const isProof = codeOf(error) === UNIQUE && PROOFS.has(constraintOf(error) ?? '');
  return call.kind === 'update' && isProof ? { kind: 'proof_used' } : undefined;
}

const UNIQUE = '23505';
const PROOFS: ReadonlySet<string> = new Set(['charges_proof', 'refund_proofs_pkey']);

type BatchPlan = {
  readonly writes: boolean;
  readonly again: ReadonlySet<number>;
  readonly inserts: readonly { readonly place: number; readonly insert: RowInsert }[];
  readonly updates: readonly {
    readonly kind: ChangeKindOfRow;
    readonly changes: readonly {
      readonly place: number;
      readonly change: RowChange;
      readonly kept: KeptAnswer | undefined;
    }[];
  }[];
  readonly locks: readonly number[];
};

function planOf(calls: readonly BatchCall[]): BatchPlan {
  const again = new Set<number>();
  const seen = new Set<string>();
  const locks = new Set<number>();
  const inserts: { place: number; insert: RowInsert }[] = [];
  const updates = new Map<
    string,
    { kind: ChangeKindOfRow; changes: BatchPlan['updates'][number]['changes'][number][] }
  >();
  for (const [place, call] of calls.entries()) {
    if (call.kind === 'insert') {
      const { insert } = call;
      const { payer, unique, network, asset } = insert.payment;
      const names = [`id ${insert.id}`, `payment ${payer} ${unique} ${network} ${asset}`];
      if (names.some((name) => seen.has(name))) {
        again.add(place);
        continue;
      }
      for (const name of names) seen.add(name);
      inserts.push({ place, insert });
      for (const lock of locksOf(insert.room)) locks.add(lock);
    } else if (call.kind === 'update') {
      const { change, kept } = call;
      const kind = kindOf(change, kept);
      // A claim counts what the claims before it wrote, and a proof is compared with those: each has a statement of its own.
      const name = `${Object.values(kind).join(' ')} ${change.room === null && change.proof === null ? '' : place}`;
      const group = updates.get(name) ?? { kind, changes: [] };
      group.changes.push({ place, change, kept });
      updates.set(name, group);
      if (change.room !== null) for (const lock of locksOf(change.room)) locks.add(lock);
      if (change.proof !== null) locks.add(lockOfProof(change.proof));
    }
  }
  const sorted = [...updates].toSorted(([a], [b]) => (a < b ? -1 : 1)).map(([, group]) => group);
  for (const { changes } of sorted) changes.sort((a, b) => (a.change.id < b.change.id ? -1 : 1));
  return {
    writes: inserts.length > 0 || updates.size > 0,
    again,
    inserts,
    updates: sorted,
    locks: [...locks].toSorted((a, b) => a - b),
  };
}

function kindOf(change: RowChange, kept: KeptAnswer | undefined): ChangeKindOfRow {
  return {
    columns: change.columns,
    before: change.before,
    after: change.after,
    isOwner: change.leaseUntil === null,
    hasRoom: change.room !== null,
    buysPass: change.room !== null && change.room.plan !== null,
    setsCredential: change.credential !== undefined,
    setsAnswer: kept !== undefined || change.dropsAnswer,
    isSettled: change.settled !== null,
    opensPass: change.opens !== null,
    revokesPass: change.revokesPassAt !== null,
    isRefund: change.refunded !== null,
    isProvenRefund: change.settled === null && change.proof !== null,
    tells: change.tells,
    isAudited: change.audit !== null,
  };
}

/** The places of the calls that were written. */
async function write(
  session: Session,
  plan: BatchPlan,
  options: BatchOptions,
  quietUntil: number | undefined,
): Promise<ReadonlySet<number>> {
  const { sql, now, shift, shard, onClock, settings } = options;
  const [at, shifted, quiet] = [now(), shift(), quietUntil ?? 0];
  const begun = session.simple(`BEGIN${settings()}`);
  const locked = session.query(sql.lock, [plan.locks]);
  const sent: { readonly answer: Promise<Answer>; readonly places: (rows: readonly Row[]) => readonly number[] }[] = [];
  if (plan.inserts.length > 0) {
    const placeOf = new Map(plan.inserts.map(({ insert, place }) => [insert.id, place]));
    sent.push({
      answer: session.query(sql.insert, [at, shard, ...insertValues(plan.inserts)]),
      places: (rows) => rows.flatMap((row) => placeOf.get(text(row, 'id')) ?? []),
    });
  }
  for (const { kind, changes } of plan.updates)
    sent.push({
      answer: session.query(sql.update(kind), [at, shard, shifted, quiet, ...updateValues(kind, changes)]),
      places: (rows) => rows.map((row) => integer(row, 'n')),
    });
  const committed = session.simple('COMMIT');
  const answers = await Promise.allSettled([begun, locked, ...sent.map(({ answer }) => answer), committed]);
  const commit = await committed;
  const failed = answers.find((answer) => answer.status === 'rejected');
  if (failed !== undefined) throw failed.reason;
  if (commit.command !== 'COMMIT') throw new PostgresRefusal(`the transaction ended with ${commit.command}`);
  onClock(integer((await locked).rows[0] ?? {}, 'now'));
  const places = await Promise.all(sent.map(async ({ answer, places }) => places((await answer).rows)));
  return new Set(places.flat());
}

/** Columns of the batch: the other way round than its rows. */
function insertValues(inserts: BatchPlan['inserts']): unknown[] {
  const width = inserts[0]?.insert.values.length ?? 0;
  return [
    inserts.map(({ place }) => place),
    inserts.map(({ insert }) => insert.room.maxUnsettled),
    inserts.map(({ insert }) => bound(insert.room.plan)),
    inserts.map(({ insert }) => plain(insert.credential)),
    ...Array.from({ length: width }, (_, column) => inserts.map(({ insert }) => bound(insert.values[column]))),
  ];
}

function updateValues(kind: ChangeKindOfRow, changes: BatchPlan['updates'][number]['changes']): unknown[] {
  return [
    changes.map(({ place }) => place),
    changes.map(({ change }) => plain(change.id)),
    changes.map(({ change }) => change.version),
    ...(kind.isOwner ? [] : [changes.map(({ change }) => change.leaseUntil)]),
    ...(kind.hasRoom ? [changes.map(({ change }) => change.room?.maxUnsettled)] : []),
    ...(kind.buysPass ? [changes.map(({ change }) => bound(change.room?.plan))] : []),
    ...(kind.setsCredential ? [changes.map(({ change }) => bound(change.credential))] : []),
    ...(kind.setsAnswer
      ? [
          changes.map(({ kept }) => kept?.status),
          changes.map(({ kept }) => kept && plain(JSON.stringify(kept.headers))),
          changes.map(({ kept }) => kept && Buffer.from(kept.body)),
        ]
      : []),
    ...kind.columns.map((_, column) => changes.map(({ change }) => bound(change.values[column]))),
    ...(kind.isAudited ? AUDIT_COLUMNS.map((_, at) => changes.map(({ change }) => bound(change.audit?.[at]))) : []),
    ...(kind.opensPass
      ? [
          ...PASS_COLUMNS.map((_, at) => changes.map(({ change }) => bound(change.opens?.pass[at]))),
          ...DRAW_COLUMNS.map((_, at) => changes.map(({ change }) => bound(change.opens?.first?.[at]))),
        ]
      : []),
    ...(kind.isRefund
      ? [changes.map(({ change }) => change.refunded?.amount), changes.map(({ change }) => change.refunded?.at)]
      : []),
    ...(kind.isProvenRefund
      ? [changes.map(({ change }) => change.proof?.transaction), changes.map(({ change }) => change.proof?.logIndex)]
      : []),
  ];
}

async function found<K>(
  session: Session,
  statement: Statement,
  wanted: readonly { readonly place: number; readonly key: K }[],
  bind: (keys: readonly K[]) => unknown[],
): Promise<ReadonlyMap<number, StoredCharge>> {
  if (wanted.length === 0) return new Map();
  const { rows } = await session.query(statement, bind(wanted.map(({ key }) => key)));
  return new Map(
    rows.flatMap((row) => {
      const place = wanted[integer(row, 'n') - 1]?.place;
      return place === undefined ? [] : [[place, readStored(row)] as const];
    }),
  );
}

/** Places of the calls whose payers have as many passes as there may be. */
async function fullOfPasses(
  session: Session,
  statement: Statement,
  missing: readonly { readonly call: BatchCall; readonly place: number }[],
  now: number,
): Promise<ReadonlySet<number>> {
  const buyers = missing.flatMap(({ call, place }) => {
    const room = call.kind === 'insert' ? call.insert.room : call.kind === 'update' ? call.change.room : null;
    return room === null || room.plan === null ? [] : [{ place, room, plan: room.plan }];
  });
  if (buyers.length === 0) return new Set();
  const columns = [
    buyers.map(({ room }) => plain(room.payer)),
    buyers.map(({ plan }) => plain(plan)),
    buyers.map(({ room }) => plain(room.charge)),
  ];
  const { rows } = await session.query(statement, [...columns, now]);
  return new Set(rows.flatMap((row) => buyers[integer(row, 'n') - 1]?.place ?? []));
}

/** What a look-up found for a call that wrote nothing; `full`: the limit of its payer, if nothing else was in the way. */
type Found = {
  readonly ofPayment: StoredCharge | undefined;
  readonly ofId: StoredCharge | undefined;
  readonly full: 'too_many_unsettled' | 'too_many_passes';
};

function missed(call: BatchCall, { ofPayment, ofId, full }: Found): BatchResult {
  switch (call.kind) {
    case 'find':
      return ofPayment ?? ofId;
    case 'insert':
      if (ofPayment !== undefined) return { kind: 'payment_known', charge: ofPayment };
      return { kind: ofId === undefined ? full : 'id_taken' };
    case 'update': {
      const { version, leaseUntil, room, proof } = call.change;
      const same = ofId?.version === version && (leaseUntil === null || ofId.charge.leaseUntil === leaseUntil);
      if (room !== null && same) return { kind: full };
      return proof !== null && same ? { kind: 'proof_used' } : { kind: 'stale', charge: ofId };
    }
    default:
      return call satisfies never;
  }
}

/** A text of this database holds no NUL; nothing that is compared has one. */
export function plain(value: string): string {
  return value.includes('\0') ? value.replaceAll('\0', '\uFFFD') : value;
}

function bound(value: Value | undefined): Value {
  return typeof value === 'string' ? plain(value) : (value ?? null);
}

/** Of two changes that one transfer proves, the second sees what the first wrote. */
function lockOfProof({ network, transaction }: TransferPlace): number {
  return fnv1a(`proof ${network} ${transaction}`);
}

/** A payer that shares them with another waits for it, and no more. Passes are counted over all networks. */
function locksOf({ network, payer, plan }: Room): readonly number[] {
  return [fnv1a(`${network} ${payer}`), ...(plan === null ? [] : [fnv1a(`pass ${payer}`)])];
}
