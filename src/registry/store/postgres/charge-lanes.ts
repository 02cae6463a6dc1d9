// Connections that write charges. Calls that come together leave together: whatever waits when a lane is free is its
// next batch. A batch without an answer may have been written or not. Its calls are made again, as they were, until
// their time is over. The ledger recognises by its change id what was written the first time. The queue is bounded.
import { setTimeout as wait } from 'node:timers/promises';
import { LedgerUnavailable } from '../../../domain/payment/ledger.ts';
import { type Random, createWhenIdle } from '../../../host/clock.ts';
import type { Log } from '../../../host/log.ts';
import {
  refusalOf,
  runBatch,
  type BatchCall,
  type BatchOptions,
  type BatchResult,
  type BatchOutcome,
} from './charge-batch.ts';
import { byteOf, codeOf, ConnectionLost, messageOf, type Link, type Session } from './connection.ts';

type Lanes = {
  readonly call: (call: BatchCall) => Promise<BatchResult>;
  /** The same for a call without a waiting caller: it goes along with the next one, or by itself after a moment. */
  readonly callLater: Lanes['call'];
  /** A connection for work that is no call of a payment. Rejects with LedgerUnavailable. */
  readonly use: <T>(work: (session: Session, shard: number) => Promise<T>) => Promise<T>;
  /** Calls that wait for a connection. */
  readonly waiting: () => number;
  /** Finishes what was called. */
  readonly close: () => Promise<void>;
};

type LanesOptions = {
  readonly connections: readonly Link[];
  readonly batch: Omit<BatchOptions, 'shard'>;
  readonly timeoutMs: number;
  readonly maxQueued: number;
  /** Told how many calls go out in one transaction. */
  readonly onBatch: (calls: number) => void;
  readonly log: Log;
  readonly random: Random;
};

type Waiting = {
  readonly call: BatchCall;
  readonly deadline: number;
  readonly resolve: (result: BatchResult) => void;
  readonly reject: (error: Error) => void;
  readonly timer: NodeJS.Timeout;
  over: boolean;
};
type Lane = { readonly connection: Link; shard: number; busy: boolean };

const MAX_BATCH = 256;
const LATER_MS = 20;
const COMPANY_MS = 8;
const SHARDS = 16;
/** Of two transactions that wait for each other one is given up; so is one that waits for too long. */
const CONTENDED: ReadonlySet<string> = new Set(['40P01', '55P03', '40001']);
const TRIES = 5;
/** Before what a lost connection left unknown is asked again. */
const LOST_MS = 20;

export function createLanes({ connections, batch, timeoutMs, maxQueued, onBatch, log, random }: LanesOptions): Lanes {
  const whenIdle = createWhenIdle(COMPANY_MS);
  const drawShard = (): number => byteOf(random) % SHARDS;
  const lanes: readonly Lane[] = connections.map((connection) => ({ connection, shard: drawShard(), busy: false }));
  let queue: Waiting[] = [];
  let scheduled = false;
  let urgent = false;
  let sendingLater: NodeJS.Timeout | undefined;
  let closing: (() => void) | undefined;
  let closed: Promise<void> | undefined;

  const { refuse, finish } = createTelling(log);
  const carryOut = createCarrying({ batch, onBatch }, drawShard, { refuse, finish });

  const run = async (lane: Lane): Promise<void> => {
    lane.busy = true;
    while (queue.length > 0) {
      const again = await carryOut(lane, queue.splice(0, MAX_BATCH));
      queue.unshift(...again);
    }
    lane.busy = false;
    if (closing !== undefined && lanes.every(({ busy }) => !busy)) closing();
  };
  const pump = (): void => {
    scheduled = false;
    urgent = false;
    clearTimeout(sendingLater);
    sendingLater = undefined;
    const free = lanes.find(({ busy }) => !busy);
    if (free !== undefined && queue.length > 0) void run(free);
  };
  const soon = (): void => {
    if (scheduled) return;
    scheduled = true;
    whenIdle(pump);
  };

  const enqueue = (call: BatchCall): Promise<BatchResult> => {
    const { promise, resolve, reject } = Promise.withResolvers<BatchResult>();
    if (closed !== undefined) reject(new LedgerUnavailable('The ledger is closed.'));
    else if (queue.length >= maxQueued) reject(new LedgerUnavailable('Too many calls wait for the ledger.'));
    else {
      const late = `The ledger did not answer within ${timeoutMs} milliseconds.`;
      const timer = setTimeout(() => {
        queue = queue.filter((each) => each !== waiting);
        refuse(waiting, late);
      }, timeoutMs);
      const waiting: Waiting = { call, deadline: performance.now() + timeoutMs, resolve, reject, timer, over: false };
      queue.push(waiting);
    }
    return promise;
  };
  let next = 0;

  return {
    call: (call) => {
      const answer = enqueue(call);
      urgent = true;
      soon();
      return answer;
    },
    callLater: (call) => {
      const answer = enqueue(call);
      if (!urgent) sendingLater ??= setTimeout(soon, LATER_MS);
      return answer;
    },
    use: async (work) => {
      if (closed !== undefined) throw new LedgerUnavailable('The ledger is closed.');
      const lane = lanes[next++ % lanes.length];
      if (lane === undefined) throw new LedgerUnavailable('There is no connection for it.');
      try {
        return await lane.connection.use(performance.now() + timeoutMs, (session) => work(session, lane.shard));
      } catch (error) {
        throw new LedgerUnavailable(messageOf(error), { cause: error });
      }
    },
    waiting: () => queue.length,
    close: () =>
      (closed ??= new Promise<void>((resolve) => {
        closing = resolve;
        pump();
        if (lanes.every(({ busy }) => !busy)) resolve();
      }).then(async () => {
        await Promise.all(connections.map((connection) => connection.close()));
      })),
  };
}

type Telling = {
  readonly refuse: (waiting: Waiting, message: string) => void;
  readonly finish: (waiting: Waiting, result: BatchResult) => void;
};

function createTelling(log: Log): Telling {
  let failing: string | undefined;
  const refuse = (waiting: Waiting, message: string): void => {
    if (waiting.over) return;
    // Every payment of an outage fails the same way; it is told once.
    if (message !== failing) log.error('the ledger refused a call', { error: message });
    failing = message;
    end(waiting);
    waiting.reject(new LedgerUnavailable(message));
  };
  const finish = (waiting: Waiting, result: BatchResult): void => {
    failing = undefined;
    end(waiting);
    waiting.resolve(result);
  };
  return { refuse, finish };
}

/** Carries calls out on a lane; whatever does not stand in what it returns was answered. */
function createCarrying(
  { batch, onBatch }: Pick<LanesOptions, 'batch' | 'onBatch'>,
  drawShard: () => number,
  { refuse, finish }: Telling,
): (lane: Lane, all: readonly Waiting[]) => Promise<readonly Waiting[]> {
  const carryOut = async (lane: Lane, all: readonly Waiting[]): Promise<readonly Waiting[]> => {
    const waiting = all.filter(({ over }) => !over);
    if (waiting.length === 0) return [];
    const deadline = Math.max(...waiting.map((each) => each.deadline));
    for (let tries = 1; ; tries++) {
      try {
        const calls = waiting.map(({ call }) => call);
        onBatch(calls.length);
        const outcomes = await lane.connection.use(deadline, (session) =>
          runBatch(session, calls, { ...batch, shard: lane.shard }),
        );
        return waiting.filter((each, index) => !answered(each, outcomes[index]));
      } catch (error) {
        // Unknown: no caller gets an answer yet, and the calls are made again.
        if (error instanceof ConnectionLost) {
          await wait(LOST_MS);
          return unlessOver(waiting, messageOf(error));
        }
        const isContended = CONTENDED.has(codeOf(error) ?? '');
        if (isContended) lane.shard = drawShard();
        // One call cannot be carried out; the others must not suffer.
        if (waiting.length > 1) {
          const half = Math.ceil(waiting.length / 2);
          const left = await carryOut(lane, waiting.slice(0, half));
          return [...left, ...(await carryOut(lane, waiting.slice(half)))];
        }
        const [only] = waiting;
        if (only === undefined || (isContended && tries < TRIES)) continue;
        const refusal = refusalOf(only.call, error);
        if (refusal === undefined) refuse(only, messageOf(error));
        else finish(only, refusal);
        return [];
      }
    }
  };
  const answered = (waiting: Waiting, outcome: BatchOutcome | undefined): boolean => {
    if (outcome?.kind !== 'done') return false;
    finish(waiting, outcome.result);
    return true;
  };
  const unlessOver = (all: readonly Waiting[], message: string): readonly Waiting[] =>
    all.filter((each) => {
      if (performance.now() < each.deadline && !each.over) return true;
      refuse(each, message);
      return false;
    });
  return carryOut;
}

function end(waiting: Waiting): void {
  waiting.over = true;
  clearTimeout(waiting.timer);
}
