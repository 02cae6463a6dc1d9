// Charges on PostgreSQL: the ports of the ledger's store over any number of processes that share it. The ledger has
// decided what is written. It is written only if the row still has the version that was decided on. Time is the
// database's.
import {
  LedgerUnavailable,
  type Change,
  type StoredCharge,
  type UpdateResult,
} from '../../../domain/payment/ledger.ts';
import { LOCAL_RUN } from '../../../domain/payment/run-names.ts';
import {
  keptBy,
  toRowChange,
  toRowInsert,
  type InsertRefusal,
  type UpdateRefusal,
  type RowChange,
  readStored,
} from '../charge-values.ts';
import { StoreRefused, type ChargesStore } from '../ports.ts';
import { text } from '../rows.ts';
import { plain, type BatchResult } from './charge-batch.ts';
import { createChargeConnections } from './charge-connections.ts';
import { watchChanges } from './charge-changes.ts';
import { createCounters } from './counters.ts';
import { createLivePassLimit, TOO_MANY_PASSES } from './live-pass-limit.ts';
import { createPasses } from './pass-store.ts';
import { createPrune } from './charge-prune.ts';
import type { AskReader } from './charge-lists.ts';
import { createReports } from './charge-reports.ts';
import { createChargeSql } from './charge-sql.ts';
import { isRefusal, messageOf, type Statement } from './connection.ts';
import { createTotals } from './request-totals.ts';
import { createWebhooks } from './webhook-store.ts';
import type { Links } from './links.ts';
import { timedClaim } from './call-timing.ts';

export type PostgresChargesOptions = {
  readonly answerLimitBytes?: number;
  readonly maxQueued?: number;
  /** Names this run of the process; drawn if left out. */
  readonly run?: string | undefined;
  /** Offset of the ledger's clock in tests, in milliseconds. */
  readonly shift?: () => number;
  /** Passes that may be good at a time, in tests. */
  readonly mostLivePasses?: number;
};

const ANSWER_BYTES = 1024 * 1024;
const MAX_QUEUED = 20_000;
/** Milliseconds after an outage in which nothing is taken from owners: every lease has run out at once. */
const QUIET_MS = 10_000;

export function openPostgresCharges(links: Links, options: PostgresChargesOptions = {}): ChargesStore {
  const { timeoutMs, log } = links;
  const shift = options.shift ?? (() => 0);
  const sql = createChargeSql(links.schema);
  const run = options.run ?? `${LOCAL_RUN}${links.random(12).toString('hex')}`;
  const now = (): number => links.clock.now() + shift();
  const quietUntil = (): number | undefined => {
    const until = links.recoveredAt() + QUIET_MS;
    return now() < until ? until : undefined;
  };
  const writers = createChargeConnections({
    connections: links.writers,
    batch: { sql, now, shift, quietUntil, onClock: links.clock.hear, settings: links.settings },
    timeoutMs,
    onBatch: links.observe.batch,
    maxQueued: options.maxQueued ?? MAX_QUEUED,
    log,
    random: links.random,
  });
  const find = async (by: Parameters<ChargesStore['find']>[0]): Promise<StoredCharge | undefined> =>
    stored(await writers.call({ kind: 'find', by }));
  const write = async (
    change: RowChange,
    kept = undefined as ReturnType<typeof keptBy>,
  ): Promise<UpdateRefusal | undefined> =>
    refusal(await writers.call({ kind: 'update', change, kept })) as UpdateRefusal | undefined;
  const prune = createPrune({
    ...{ sql, run, now, use: writers.use, settings: links.settings },
    find: (id) => find({ id }),
    update: write,
  });
  const shared = { schema: links.schema, named: sql.named, use: writers.use, now, settings: links.settings };
  const counters = createCounters(shared);
  const asking = askingOf(links);
  const readers = { ask: asking(sql.named), once: asking((text) => ({ name: '', text })) };

  const updateLater = async (change: RowChange): Promise<UpdateRefusal | undefined> =>
    refusal(await writers.callLater({ kind: 'update', change, kept: undefined })) as UpdateRefusal | undefined;
  const update = (change: Change): Promise<UpdateRefusal | undefined> => {
    const row = toRowChange(change, now());
    const kept = keptBy(change);
    // No caller waits for the word that an answer arrived: it shares the next commit.
    const isLater = kept === undefined && 'event' in change.because && change.because.event.kind === 'delivered';
    return isLater ? updateLater(row) : write(row, kept);
  };

  const passes = createPasses({ ...shared, run, ask: readers.once });
  const livePasses = createLivePassLimit({
    schema: links.schema,
    ask: readers.once,
    now,
    most: options.mostLivePasses,
  });

  return {
    run,
    now,
    keptBodyBytes: options.answerLimitBytes ?? ANSWER_BYTES,
    find,
    insert: async (entry) => {
      const forbidden = livePasses.forbids(entry);
      // Most claims buy no pass, and wait for nothing.
      if (forbidden !== false && (await forbidden)) return TOO_MANY_PASSES;
      const insert = async (): Promise<ReturnType<typeof refusal>> =>
        refusal(await writers.call({ kind: 'insert', insert: toRowInsert(entry, now()) }));
      const refused = await timedClaim(links.observe, insert, (result) => result === undefined);
      return (
        (refused as InsertRefusal | undefined) ?? { kind: 'written', charge: { charge: entry.charge, version: 1 } }
      );
    },
    update: async (change): Promise<UpdateResult> => {
      const forbidden = 'claim' in change.because && livePasses.forbids(change.because);
      if (forbidden !== false && (await forbidden)) return TOO_MANY_PASSES;
      const refused = await update(change);
      const { before, after } = change;
      return refused ?? { kind: 'written', charge: { charge: after, version: before.version + 1 } };
    },
    due: (limit) =>
      writers.use(async (session) => {
        if (quietUntil() !== undefined) return [];
        return (await session.query(sql.due, [now(), limit])).rows.map(readStored);
      }),
    renew: (run, ids, leaseMs) =>
      writers.use(async (session) => {
        const { rows } = await session.query(sql.renew, [now() + leaseMs, ids.map(plain), plain(run)]);
        const ours = new Set(rows.map((row) => text(row, 'id')));
        return ids.filter((id) => ours.has(id));
      }),
    endRun: (run) =>
      writers.use(async (session) => {
        await session.query(sql.endRun, [now(), run]);
        await session.query(sql.endRunDraws, [now(), run]);
      }),
    check: async () => {
      try {
        await writers.use((session, shard) => session.query(sql.touch, [shard]));
      } catch (error) {
        throw isRefusal(error) ? new StoreRefused(messageOf(error), { cause: error }) : error;
      }
    },
    prune: async (before, limit) => {
      const more = [await prune(before, limit), await counters.prune(limit)];
      return [...more, await passes.prune(before.closedMs, limit)].includes(true);
    },
    counters,
    passes,
    watchChanges: () =>
      writers.use((session) => watchChanges(session, { schema: links.schema, settings: links.settings(), now: now() })),
    ...createReports(sql, readers, now),
    totals: createTotals({ sql, use: writers.use, ask: readers.ask, now, settings: links.settings }),
    webhooks: createWebhooks({ sql, use: writers.use, ask: readers.once, now, settings: links.settings }),
    load: () => ({ ...links.connections(), waiting: writers.waiting() }),
    close: async () => {
      await writers.close();
      await links.close();
    },
  };
}

/** Makes what reads on the connection of reports. */
function askingOf({ reader, timeoutMs }: Links): (prepare: (text: string) => Statement) => AskReader {
  return (prepare) => async (text, values) => {
    const bound = values.map((value) => (typeof value === 'string' ? plain(value) : value));
    try {
      return await reader.use(performance.now() + timeoutMs, (session) => session.query(prepare(text), bound));
    } catch (error) {
      throw new LedgerUnavailable(messageOf(error), { cause: error });
    }
  };
}

function stored(result: BatchResult): StoredCharge | undefined {
  return result !== undefined && 'version' in result ? result : undefined;
}

function refusal(result: BatchResult): InsertRefusal | UpdateRefusal | undefined {
  return result !== undefined && 'kind' in result ? result : undefined;
}
