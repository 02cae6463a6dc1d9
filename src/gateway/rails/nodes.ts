// The JSON-RPC nodes that this process asks. A node is often public: it is asked at most five times a second, and payers who
// wait come before the reconciler. Its chain id is asked once, because a node of another chain would prove and disprove
// everything. One look asks a few times at most.
import type { z } from 'zod';
import type { Clock, Schedule } from '../../host/clock.ts';
import { createSemaphore, type Semaphore } from './semaphore.ts';
import type { Fetch } from './service-call.ts';
import { type RpcResult, createRpc } from './json-rpc.ts';

export type NodesDeps = {
  readonly fetch: Fetch;
  readonly schedule: Schedule;
  readonly clock: Pick<Clock, 'monotonic'>;
};

/** Budget of what one look may still do. */
export type Turn = {
  /** A payer waits for it: it comes before those of the reconciler. */
  readonly first: boolean;
  /** Counts looks: one that began before another is let through before it, so that some end however many wait. */
  readonly number: number;
  /** Calls that the look may still make. */
  left: number;
};

export type NodeAnswer<T> = RpcResult<T> | { readonly kind: 'spent' };

export type ChainNode = {
  /**
   * Semaphore of the looks that a payer waits for. A look takes four calls, and a payer waits two seconds. More looks at once would
   * share the calls of those seconds, and none would end in time.
   */
  readonly semaphore: Semaphore;
  readonly ask: <T>(
    turn: Turn,
    method: string,
    params: readonly unknown[],
    schema: z.ZodType<T>,
  ) => Promise<NodeAnswer<T>>;
  /** Finds out whether the node is of another chain; undefined: it is of `caip2`. */
  readonly findFault: (turn: Turn, caip2: string) => Promise<string | undefined>;
};

const CALLS_PER_SECOND = 5;
const SECOND_MS = 1000;
const FIRST_AT_ONCE = 2;
/** Calls, or looks, that wait for one node; beyond them it is as good as away. */
const MAX_WAITING = 1000;

/** Question by which a node says of which chain it is: what it answers to `method`, and the CAIP-2 name in that. */
export type Identity = { readonly method: string; readonly caip2: z.ZodType<string> };

/** The nodes of a process, by URL. */
export function createNodes(deps: NodesDeps, identity: Identity): (url: string) => ChainNode {
  const nodes = new Map<string, ChainNode>();
  return (url) => {
    let node = nodes.get(url);
    if (node === undefined) nodes.set(url, (node = createNode(url, deps, identity)));
    return node;
  };
}

function createNode(url: string, deps: NodesDeps, { method, caip2: schema }: Identity): ChainNode {
  const rpc = createRpc(url, deps.fetch);
  const pace = createPace(deps);
  let chain: string | undefined;

  const ask: ChainNode['ask'] = async (turn, method, params, schema) => {
    if (!(await pace(turn)))
      return { kind: 'unavailable', detail: `${method}: too many calls are waiting for the node` };
    // A second attempt is a call as well: it takes its turn, and counts.
    const mayRepeat = async (): Promise<boolean> => turn.left-- > 0 && pace(turn);
    return rpc(method, params, schema, { mayRepeat });
  };

  return {
    semaphore: createSemaphore(FIRST_AT_ONCE, MAX_WAITING),
    ask: async (turn, method, params, schema) => {
      if (turn.left <= 0) return { kind: 'spent' };
      turn.left--;
      return ask(turn, method, params, schema);
    },
    findFault: async (turn, caip2) => {
      if (chain === undefined || chain !== caip2) {
        const answer = await ask(turn, method, [], schema);
        if (answer.kind !== 'result') return answer.kind === 'error' ? `${method}: error ${answer.code}` : method;
        chain = answer.value;
      }
      return chain === caip2 ? undefined : `the node is of ${chain}, not of ${caip2}`;
    },
  };
}

type QueuedTurn = { readonly number: number; readonly resolve: (admitted: boolean) => void };

/** Resolves when one more call may be made; false if too many are waiting. */
function createPace({ schedule, clock }: NodesDeps): (turn: Turn) => Promise<boolean> {
  const queues = { payers: new Queue(), others: new Queue() };
  /** Times of the last calls, oldest first. */
  const made: number[] = [];
  let waking = false;

  const freeInMs = (): number => {
    const oldest = made[made.length - CALLS_PER_SECOND];
    return oldest === undefined ? 0 : Math.max(0, oldest + SECOND_MS - clock.monotonic());
  };
  const admit = (): void => {
    made.push(clock.monotonic());
    if (made.length > CALLS_PER_SECOND) made.shift();
  };
  const wake = (): void => {
    waking = false;
    for (const queue of [queues.payers, queues.others]) {
      for (let next = queue.first(); next !== undefined; next = queue.first()) {
        if (freeInMs() > 0) return sleep();
        queue.shift();
        admit();
        next.resolve(true);
      }
    }
  };
  const sleep = (): void => {
    if (waking) return;
    waking = true;
    schedule(Math.ceil(freeInMs()), wake);
  };

  return ({ first, number }) => {
    if (queues.payers.size === 0 && (first || queues.others.size === 0) && freeInMs() === 0) {
      admit();
      return Promise.resolve(true);
    }
    const queue = first ? queues.payers : queues.others;
    if (queue.size >= MAX_WAITING) return Promise.resolve(false);
    return new Promise((resolve) => {
      queue.add({ number, resolve });
      sleep();
    });
  };
}

/** Calls that wait, those of the oldest look first. */
class Queue {
  private readonly waiting: QueuedTurn[] = [];

  get size(): number {
    return this.waiting.length;
  }

  first(): QueuedTurn | undefined {
    return this.waiting[0];
  }

  add(call: QueuedTurn): void {
    const at = this.waiting.findLastIndex(({ number }) => number <= call.number);
    this.waiting.splice(at + 1, 0, call);
  }

  shift(): void {
    this.waiting.shift();
  }
}
