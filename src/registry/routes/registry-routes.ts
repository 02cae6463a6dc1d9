// The routes of this registry. Reads and lists come from memory. Writes go to the store, one batch at a time, and are
// applied to memory once they are durable. A write is decided when its turn comes. If the store has moved on since,
// memory catches up and it is decided again. Where other processes write too, what memory alone would refuse or leave as
// it is is decided again after reading on. What an answer says is in force in this process.
import type { FieldError } from '../../domain/problem.ts';
import { toWire, type Route, type RouteInput, type RoutePatch } from '../../domain/routing/route.ts';
import type { Clock, Random } from '../../host/clock.ts';
import { makeUuid } from '../../host/identifiers.ts';
import type { Log } from '../../host/log.ts';
import { createSingleFlight, type SingleFlight } from './single-flight.ts';
import { applyPatch, findChangeFaults, findNewFaults, keyOf, makeRoute, type RouteRules } from './route-changes.ts';
import { createRouteMemory, type RouteMemory } from './route-index.ts';
import { createRouteTurns, type TurnOutcome, type Plan, type TakeTurn } from './write-queue.ts';
import type {
  Author,
  Conflict,
  NewRoute,
  RouteChange,
  RouteStore,
  RouteWrite,
  StoredRoute,
  Writer,
} from '../store/ports.ts';

export type InvalidRoute = { readonly kind: 'invalid'; readonly errors: readonly FieldError[] };
/** The registry holds as many routes as it may. */
export type FullRegistry = { readonly kind: 'full'; readonly limit: number };
export type CreateResult =
  | { readonly kind: 'created'; readonly route: StoredRoute }
  | Conflict
  | InvalidRoute
  | FullRegistry;
/** Result of a patch. `refused`: by the caller's own condition. */
type PatchResult =
  | { readonly kind: 'updated'; readonly before: StoredRoute; readonly route: StoredRoute }
  | { readonly kind: 'unchanged'; readonly route: StoredRoute }
  | { readonly kind: 'gone' | 'refused' }
  | Conflict
  | InvalidRoute;
type RemoveResult = { readonly kind: 'removed'; readonly route: StoredRoute } | { readonly kind: 'gone' | 'refused' };

/** A route to be made, and who makes it. */
export type Creation = { readonly input: RouteInput; readonly by: Writer | Author };
/** Whether a route, as it is when the turn comes, may be changed. */
type Condition = (route: StoredRoute) => boolean;

export type Routes = Omit<RouteMemory, 'apply' | 'noteDeclared' | 'replace' | 'find'> & {
  readonly registryId: string;
  /** The route that `input` would be a duplicate of. */
  readonly find: (input: Pick<RouteInput, 'route_pattern' | 'method'>) => StoredRoute | undefined;
  /** The route with this id. If other processes write too, an id that is not known here is looked for in the store. */
  readonly seek: (id: string) => Promise<StoredRoute | undefined>;
  /** Resolves once this process has what other processes had written before; at once if there are none. */
  readonly refresh: SingleFlight;
  /** Changes of one route, newest first, also of one that was deleted; `before` is what `nextBefore` gave. */
  readonly history: (
    id: string,
    before: number | undefined,
    limit: number,
  ) => Promise<{ readonly changes: readonly RouteChange[]; readonly nextBefore: number | undefined }>;
  readonly changesAfter: RouteStore['changesAfter'];
  /**
   * Resolves once this process has `revision`, or what the store has if that is less. Rejects if the store cannot say it: who
   * saw `revision` elsewhere must not be told an older set here.
   */
  readonly reach: (revision: number) => Promise<void>;
  readonly create: (creation: Creation) => Promise<CreateResult>;
  /** Several at once in one transaction; each may have an outcome of its own. */
  readonly createAll: (creations: readonly Creation[]) => Promise<readonly CreateResult[]>;
  readonly patch: (id: string, patch: RoutePatch, by: Writer | Author, may: Condition) => Promise<PatchResult>;
  readonly remove: (id: string, by: Writer | Author, may: Condition) => Promise<RemoveResult>;
  /** Writes decided over the whole set, in one transaction: all of them, or none if `plan` throws. */
  readonly writeTogether: <T>(by: Writer, plan: (writes: Writes) => T) => Promise<T>;
  /** Ends the watch of the store. */
  readonly close: () => void;
};

/** Writes of routes that were checked, and of which no other has the method and pattern key. */
export type Writes = {
  readonly insert: (input: RouteInput, declared: StoredRoute['declared']) => void;
  readonly update: (was: StoredRoute, next: StoredRoute) => void;
  readonly remove: (route: StoredRoute) => void;
};

type RoutesOptions = RouteRules & {
  readonly store: RouteStore;
  /** Whether other processes write to the store as well. */
  readonly isShared: boolean;
  readonly maxRoutes: number;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
};

export async function openRoutes(options: RoutesOptions): Promise<Routes> {
  const { store, isShared, maxRoutes, clock, random, log } = options;
  const memory = createRouteMemory(store.registryId, await store.load(), log);
  const { takeTurn, catchUp, close } = createRouteTurns(store, memory, maxRoutes, log);
  const readStore = createSingleFlight(catchUp);
  const refresh = isShared ? readStore : async () => undefined;
  const parts: Parts = {
    ...{ memory, takeTurn, refresh, rules: options },
    now: () => new Date(clock.now()).toISOString(),
    newId: () => makeUuid(random),
  };
  return {
    ...memory,
    registryId: store.registryId,
    find: ({ route_pattern: pattern, method }) => memory.find(method, pattern),
    seek: async (id) => {
      if (memory.get(id) === undefined) await refresh();
      return memory.get(id);
    },
    refresh,
    changesAfter: store.changesAfter,
    reach: async (revision) => {
      if (revision > memory.head().revision) await readStore();
    },
    history: async (id, before, limit) => {
      const changes = await store.history(id, before, limit + 1);
      const page = changes.slice(0, limit);
      return { changes: page, nextBefore: changes.length > limit ? page.at(-1)?.revision : undefined };
    },
    createAll: (creations) => createAll(parts, creations),
    create: async (creation) => {
      const [created] = await createAll(parts, [creation]);
      if (created === undefined) throw new Error('creating a route had no outcome');
      return created;
    },
    patch: (...asked) => decideSurely(parts, () => patchRoute(parts, asked)),
    remove: (...asked) => decideSurely(parts, () => removeRoute(parts, asked)),
    writeTogether: (by, plan) => writeTogether(parts, by, plan),
    close,
  };
}

type Parts = {
  readonly memory: RouteMemory;
  readonly takeTurn: TakeTurn;
  readonly refresh: SingleFlight;
  readonly rules: RouteRules;
  readonly now: () => string;
  readonly newId: () => string;
};

function createAll(
  { takeTurn, rules, now, newId }: Parts,
  creations: readonly Creation[],
): Promise<readonly CreateResult[]> {
  const made = creations.map(({ input, by }) => {
    const { writer, cause } = authorOf(by);
    return { ...makeRoute(newId(), input, now(), writer), cause };
  });
  return takeTurn(() => {
    const checked = made.map(({ cause, ...route }) => ({ route, cause, errors: findNewFaults(route, rules) }));
    return {
      writes: checked.flatMap(({ route, cause, errors }) => (errors.length > 0 ? [] : [insertOf(route, cause)])),
      end: (outcomes) => {
        let next = 0;
        const created = checked.map(({ errors }) =>
          errors.length > 0 ? ({ kind: 'invalid', errors } as const) : createdOf(outcomes[next++]),
        );
        return created.every((each) => each !== undefined) ? created : undefined;
      },
    };
  });
}

/** Decides again what was decided by memory alone, if another process had written meanwhile. */
async function decideSurely<T extends PatchResult | RemoveResult>(
  { memory, refresh }: Parts,
  decide: () => Promise<T>,
): Promise<T> {
  const first = await decide();
  if (DECIDED_BY_STORE.has(first.kind)) return first;
  const { stamp } = memory.head();
  await refresh();
  return memory.head().stamp === stamp ? first : decide();
}

const DECIDED_BY_STORE: ReadonlySet<(PatchResult | RemoveResult)['kind']> = new Set(['updated', 'removed', 'conflict']);

function patchRoute(
  { memory, takeTurn, rules, now }: Parts,
  [id, patch, by, may]: Parameters<Routes['patch']>,
): Promise<PatchResult> {
  return takeTurn<PatchResult>(() => {
    const was = memory.get(id);
    if (was === undefined) return writesNothing({ kind: 'gone' });
    if (!may(was)) return writesNothing({ kind: 'refused' });
    const changed = applyPatch(was, patch);
    if (changed === was) return writesNothing({ kind: 'unchanged', route: was });
    const errors = findChangeFaults(was, changed, rules);
    if (errors.length > 0) return writesNothing({ kind: 'invalid', errors });
    const { writer, cause } = authorOf(by);
    const route = { ...changed, updatedAt: now(), writtenBy: writer };
    return {
      writes: [{ kind: 'update', route, key: keyOf(route.pattern), was, cause }],
      end: ([outcome]) => {
        if (outcome?.kind === 'written') return { kind: 'updated', before: was, route: outcome.route };
        return outcome?.kind === 'conflict' ? outcome : undefined;
      },
    };
  });
}

function removeRoute(
  { memory, takeTurn, now }: Parts,
  [id, by, may]: Parameters<Routes['remove']>,
): Promise<RemoveResult> {
  return takeTurn<RemoveResult>(() => {
    const was = memory.get(id);
    if (was === undefined) return writesNothing({ kind: 'gone' });
    if (!may(was)) return writesNothing({ kind: 'refused' });
    const { writer, cause } = authorOf(by);
    return {
      writes: [{ kind: 'delete', was, by: writer, at: now(), cause }],
      end: ([outcome]) => (outcome?.kind === 'written' ? { kind: 'removed', route: outcome.route } : undefined),
    };
  });
}

async function writeTogether<T>({ takeTurn, now, newId }: Parts, by: Writer, plan: (writes: Writes) => T): Promise<T> {
  const { result } = await takeTurn(() => {
    const writes: RouteWrite[] = [];
    const at = now();
    const planned = plan({
      insert: (input, declared) => void writes.push(insertOf({ ...makeRoute(newId(), input, at, by), declared })),
      update: (was, next) => {
        const same = sameButDeclared(was, next);
        const route = same ? { ...next, updatedAt: was.updatedAt } : { ...next, updatedAt: at, writtenBy: by };
        writes.push({ kind: 'update', route, key: keyOf(route.pattern), was });
      },
      remove: (was) => void writes.push({ kind: 'delete', was, by, at }),
    });
    return { writes, end: () => ({ result: planned }) };
  }, true);
  return result;
}

function writesNothing<T>(result: T): Plan<T> {
  return { writes: [], end: () => result };
}

function insertOf(route: NewRoute, cause?: Author['cause']): RouteWrite {
  return { kind: 'insert', route, key: keyOf(route.pattern), cause };
}

function authorOf(by: Writer | Author): { readonly writer: Writer; readonly cause?: Author['cause'] } {
  return typeof by === 'string' ? { writer: by } : by;
}

function createdOf(outcome: TurnOutcome | undefined): CreateResult | undefined {
  if (outcome === undefined || outcome.kind === 'stale') return undefined;
  return outcome.kind === 'written' ? { kind: 'created', route: outcome.route } : outcome;
}

function sameButDeclared(a: Route, b: Route): boolean {
  return JSON.stringify(toWire(a)) === JSON.stringify(toWire(b));
}
