// Writes of the registry's routes, one batch at a time. Each is decided when its turn comes, by what is in memory then.
// It is applied to memory once it is durable. If the store has moved on since, memory catches up and it is decided
// again.
import type { Log } from '../../host/log.ts';
import type { RouteMemory } from './route-index.ts';
import {
  StoreUnavailable,
  type Head,
  type RouteStore,
  type RouteWrite,
  type StoredRoute,
  type WriteOutcome,
} from '../store/ports.ts';

/** End of a write. `route` is as it is in memory now. */
export type TurnOutcome =
  | Exclude<WriteOutcome, { readonly kind: 'written' }>
  | { readonly kind: 'written'; readonly route: StoredRoute };
/**
 * Plan of a turn: what it writes, and what its outcomes come to; undefined: it was decided on what is no more, and has
 * another turn.
 */
export type Plan<T> = {
  readonly writes: readonly RouteWrite[];
  readonly end: (outcomes: readonly TurnOutcome[]) => T | undefined;
};
export type TakeTurn = <T>(
  plan: () => Plan<T>,
  /**
   * Says that the plan was decided over the whole set: it is written if the set is still that one, and without the
   * limit of routes.
   */
  alone?: boolean,
) => Promise<T>;

type Turn = {
  readonly plan: () => PlannedTurn;
  readonly fail: (error: unknown) => void;
  readonly alone: boolean;
  /** The store is read again when its turn comes. */
  readonly afresh: boolean;
  turns: number;
};
/** Planned turn. `end` gives false for another turn. */
type PlannedTurn = {
  readonly writes: readonly RouteWrite[];
  readonly end: (outcomes: readonly TurnOutcome[]) => boolean;
};

/** Turns that share a transaction: so long a one takes a few milliseconds beside the disk. */
const TOGETHER = 8;
/** Turns of one write, each after the store had moved on. */
const MAX_TURNS = 4;
const PAGE = 500;
const NOTHING = (): Plan<true> => ({ writes: [], end: () => true });

type RouteTurns = {
  readonly takeTurn: TakeTurn;
  /** Resolves once memory holds what the store held after this call; rejects if the store cannot say it. */
  readonly catchUp: () => Promise<void>;
  /** Ends the watch of the store. */
  readonly close: () => void;
};

export function createRouteTurns(store: RouteStore, memory: RouteMemory, maxRoutes: number, log: Log): RouteTurns {
  let waiting: Turn[] = [];
  let working = false;
  /** The store may hold what memory does not. */
  let behind = false;

  const catchUp = async (): Promise<void> => {
    for (;;) {
      const { revision } = memory.head();
      const changes = await store.changesAfter(revision, PAGE);
      if (
        changes === 'too_old' ||
        !changes.every(({ kind, route, ...head }) => memory.apply(kind, headOf(head), route))
      ) {
        log.warn('the routes were read anew: they have changes that the log of changes does not tell', { revision });
        memory.replace(await store.load());
        break;
      }
      if (changes.length === 0) break;
    }
    behind = false;
  };

  const run = async (turns: readonly Turn[]): Promise<void> => {
    const planned = turns.flatMap((turn): readonly (PlannedTurn & { readonly turn: Turn })[] => {
      try {
        return [{ turn, ...turn.plan() }];
      } catch (error) {
        turn.fail(error);
        return [];
      }
    });
    const all = planned.flatMap(({ writes }) => writes);
    // The limit keeps SDKs and people out, not what is decided over the whole set.
    const options =
      turns[0]?.alone === true ? { maxRoutes: Infinity, ifRevision: memory.head().revision } : { maxRoutes };
    const written = all.length === 0 ? undefined : await store.write(all, options);
    if (written === 'moved') {
      behind = true;
      return again(turns);
    }
    const ended = all.map((write, index) => keep(write, written?.outcomes[index], written?.head));
    if (ended.some((each) => each.kind === 'stale' || (each.kind === 'conflict' && !memory.get(each.existing.id))))
      behind = true;
    // An answer says what is in force.
    if (behind) await catchUp();
    let from = 0;
    for (const { turn, writes, end } of planned) {
      const own = ended.slice(from, (from += writes.length));
      if (!end(own)) again([turn]);
    }
  };

  const keep = (write: RouteWrite, outcome: WriteOutcome | undefined, head: Head | undefined): TurnOutcome => {
    if (outcome === undefined || head === undefined) throw new Error('a write had no outcome');
    if (outcome.kind !== 'written') return outcome;
    const { revision } = outcome;
    const route =
      write.kind === 'insert' ? { ...write.route, seq: revision } : write.kind === 'update' ? write.route : write.was;
    const kind = { insert: 'created', update: 'updated', delete: 'deleted' } as const;
    if (write.kind === 'update' && revision <= memory.head().revision) memory.noteDeclared(route);
    else if (!memory.apply(kind[write.kind], { revision, stamp: head.stamp }, route)) behind = true;
    return { kind: 'written', route };
  };

  const again = (turns: readonly Turn[]): void => {
    for (const turn of turns) {
      turn.turns += 1;
      if (turn.turns < MAX_TURNS) waiting.unshift(turn);
      else turn.fail(new StoreUnavailable('The routes keep changing while one of them is written.'));
    }
  };

  const work = async (): Promise<void> => {
    while (waiting.length > 0) {
      const next = waiting.findIndex(({ alone }) => alone);
      const turns = waiting.splice(0, next === 0 ? 1 : Math.min(TOGETHER, next < 0 ? TOGETHER : next));
      try {
        if (behind || turns.some(({ afresh }) => afresh)) await catchUp();
        await run(turns);
      } catch (error) {
        // The outcome of each write is not known.
        behind = true;
        for (const turn of turns) turn.fail(error);
      }
    }
    working = false;
  };

  const queue = <T>(plan: () => Plan<T>, { alone = false, afresh = false }): Promise<T> =>
    new Promise((resolve, reject) => {
      waiting.push({ plan: () => endingWith(plan(), resolve), fail: reject, alone, afresh, turns: 0 });
      if (working) return;
      working = true;
      void work();
    });

  const close = store.watch(() => {
    behind = true;
    if (working) return;
    working = true;
    void catchUp()
      .catch(() => undefined)
      .then(work);
  });

  return {
    takeTurn: (plan, alone) => queue(plan, { alone }),
    catchUp: () => queue(NOTHING, { afresh: true }).then(() => undefined),
    close,
  };
}

function endingWith<T>({ writes, end }: Plan<T>, resolve: (result: T) => void): PlannedTurn {
  return {
    writes,
    end: (outcomes) => {
      const result = end(outcomes);
      if (result !== undefined) resolve(result);
      return result !== undefined;
    },
  };
}

function headOf({ revision, stamp }: Head): Head {
  return { revision, stamp };
}
