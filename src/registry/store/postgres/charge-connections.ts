// Connections that write charges: each carries batches of calls from the queue, one at a time, and lends itself to other
// work. A batch without an answer may have been written or not. Its calls are made again, as they were, until their
// time is over. The ledger recognises by its change id what was written the first time.
import { setTimeout as wait } from 'node:timers/promises';
import { LedgerUnavailable } from '../../../domain/payment/ledger.ts';
import type { Random } from '../../../host/clock.ts';
import type { Log } from '../../../host/log.ts';
import { createCallQueue, type Answers, type CallQueue, type Carrier, type PendingCall } from '../call-queue.ts';
import { refusalOf, runBatch, type BatchCall, type BatchOptions, type BatchResult } from './charge-batch.ts';
import { byteOf, ConnectionLost, messageOf, type Link, type Session } from './connection.ts';
import { insist, isContended, TRIES } from './contention.ts';

type ChargeConnections = Omit<CallQueue<BatchCall, BatchResult>, 'isClosed'> & {
  /**
   * Lends a connection for work that is no call of a payment. Work that waited too long for another transaction is done
   * again from its beginning. Rejects with LedgerUnavailable.
   */
  readonly use: <T>(work: (session: Session, shard: number) => Promise<T>) => Promise<T>;
};

type ChargeConnectionsOptions = {
  readonly connections: readonly Link[];
  readonly batch: Omit<BatchOptions, 'shard'>;
  readonly timeoutMs: number;
  readonly maxQueued: number;
  /** Hears how many calls go out in one transaction. */
  readonly onBatch: (calls: number) => void;
  readonly log: Log;
  readonly random: Random;
};

type PendingBatch = PendingCall<BatchCall, BatchResult>;
/** Connection for writes. `shard`: its rows of the sums, so that connections seldom wait for each other. */
type Lane = { readonly connection: Link; shard: number };

const MAX_BATCH = 256;
const SHARDS = 16;
/** Pause before what a lost connection left unknown is asked again. */
const LOST_MS = 20;

export function createChargeConnections(options: ChargeConnectionsOptions): ChargeConnections {
  const { connections, random, timeoutMs, maxQueued, log } = options;
  const drawShard = (): number => byteOf(random) % SHARDS;
  const lanes = connections.map((connection): Lane => ({ connection, shard: drawShard() }));
  const queue = createCallQueue({
    carriers: lanes.map((lane) => createCarrier(lane, drawShard, options)),
    ...{ maxBatch: MAX_BATCH, next: 'at_once', maxQueued, timeoutMs, log },
  });
  let next = 0;
  return {
    ...queue,
    use: async (work) => {
      if (queue.isClosed()) throw new LedgerUnavailable('The ledger is closed.');
      const deadline = performance.now() + timeoutMs;
      try {
        return await insist(deadline, async () => {
          const lane = lanes[next++ % lanes.length];
          if (lane === undefined) throw new Error('There is no connection for it.');
          return lane.connection.use(deadline, (session) => work(session, lane.shard));
        });
      } catch (error) {
        throw new LedgerUnavailable(messageOf(error), { cause: error });
      }
    },
  };
}

function createCarrier(
  lane: Lane,
  drawShard: () => number,
  { batch, onBatch }: Pick<ChargeConnectionsOptions, 'batch' | 'onBatch'>,
): Carrier<BatchCall, BatchResult> {
  const carry = async (
    all: readonly PendingBatch[],
    answers: Answers<BatchCall, BatchResult>,
  ): Promise<readonly PendingBatch[]> => {
    const pending = all.filter(({ isOver }) => !isOver);
    if (pending.length === 0) return [];
    const deadline = Math.max(...pending.map((each) => each.deadline));
    for (let tries = 1; ; tries++) {
      try {
        const calls = pending.map(({ call }) => call);
        onBatch(calls.length);
        const outcomes = await lane.connection.use(deadline, (session) =>
          runBatch(session, calls, { ...batch, shard: lane.shard }),
        );
        return pending.filter((each, index) => {
          const outcome = outcomes[index];
          if (outcome?.kind !== 'done') return true;
          answers.finish(each, outcome.result);
          return false;
        });
      } catch (error) {
        // Unknown: no caller gets an answer yet, and the calls are made again.
        if (error instanceof ConnectionLost) {
          await wait(LOST_MS);
          return unlessLate(pending, answers, messageOf(error));
        }
        if (isContended(error)) lane.shard = drawShard();
        // A call may be one that cannot be carried out; the others must not suffer.
        if (pending.length > 1) {
          const half = Math.ceil(pending.length / 2);
          const left = await carry(pending.slice(0, half), answers);
          return [...left, ...(await carry(pending.slice(half), answers))];
        }
        const [only] = pending;
        if (only === undefined || (isContended(error) && tries < TRIES)) continue;
        const refusal = refusalOf(only.call, error);
        if (refusal === undefined) answers.refuse(only, messageOf(error));
        else answers.finish(only, refusal);
        return [];
      }
    }
  };
  return { carry, close: lane.connection.close };
}

/** Leaves those that still have time, and refuses the others. */
function unlessLate(
  all: readonly PendingBatch[],
  { refuse }: Answers<BatchCall, BatchResult>,
  message: string,
): readonly PendingBatch[] {
  return all.filter((each) => {
    if (performance.now() < each.deadline && !each.isOver) return true;
    refuse(each, message);
    return false;
  });
}
