// The routes of this registry in memory, over the store that keeps them. Every write goes through here: it is checked,
// committed, applied to memory and told to the listeners, all before the caller goes on, so that no reader that hears of
// a change can still see the old state in this process. Nothing here waits for the disk: who answers the request does. A
// busy or broken store throws.
import type { FieldError } from '../domain/problem.ts';
import type { Receiver } from '../domain/receiver.ts';
import { fromWire, patchRoute, type Route, type RouteInput, type RoutePatch } from '../domain/route.ts';
import type { RouteSet } from '../domain/snapshot.ts';
import { parsePattern } from '../domain/pattern.ts';
import { refuseMethod } from '../domain/method.ts';
import { findUnpayable } from '../domain/payable.ts';
import type { Clock, Random } from '../host/clock.ts';
import type { Log } from '../host/log.ts';
import type { ChangeKind, Conflict, Head, RouteStore, StoredRoute, Writer, Written } from './store/ports.ts';
import { makeUuid } from '../host/uuid.ts';

/** `reset`: anything may have changed, read the whole set again. A deleted route is given as it was. */
export type Change =
  | { readonly kind: ChangeKind; readonly revision: number; readonly route: Route }
  | { readonly kind: 'reset'; readonly revision: number };

export type Invalid = { readonly kind: 'invalid'; readonly errors: readonly FieldError[] };
/** The registry holds as many routes as it may. */
export type Full = { readonly kind: 'full'; readonly limit: number };
export type Created = { readonly kind: 'created'; readonly route: StoredRoute } | Conflict | Invalid | Full;
export type Patched =
  | { readonly kind: 'updated' | 'unchanged'; readonly route: StoredRoute }
  | { readonly kind: 'gone' }
  | Conflict
  | Invalid;

/** A route to be made, and who makes it. */
export type Creation = { readonly input: RouteInput; readonly by: Writer };

export type RouteBook = {
  readonly registryId: string;
  readonly head: () => Head;
  /** Oldest first; the same array until something changes. */
  readonly routeSet: () => RouteSet;
  readonly get: (id: string) => StoredRoute | undefined;
  /** Oldest first. */
  readonly all: () => Iterable<StoredRoute>;
  /** The stored route that `input` would be a duplicate of. */
  readonly find: (input: Pick<RouteInput, 'route_pattern' | 'method'>) => StoredRoute | undefined;
  readonly create: (creation: Creation) => Created;
  /** Several at once in one transaction; each may have an outcome of its own. */
  readonly createAll: (creations: readonly Creation[]) => readonly Created[];
  readonly patch: (route: StoredRoute, patch: RoutePatch, by: Writer) => Patched;
  /** False if there is no such route any more. */
  readonly remove: (route: StoredRoute, by: Writer) => boolean;
  /** Several writes of any kind in one transaction: all of them or, if `run` throws, none. */
  readonly writeTogether: <T>(by: Writer, run: (writes: Writes) => T) => T;
  readonly subscribe: (listener: (change: Change) => void) => () => void;
};

/** Of routes that were checked, and of which no other has the method and pattern key. */
export type Writes = {
  readonly insert: (input: RouteInput) => Route;
  readonly update: (route: Route) => void;
  readonly remove: (route: Route) => void;
};

export type BookOptions = {
  readonly registryId: string;
  readonly store: RouteStore;
  readonly receivers: () => ReadonlyMap<string, Receiver>;
  /** What to do with a route whose receiver is not among them. */
  readonly unknownReceiver: () => 'refuse' | 'store';
  /** Those that a proxy lets in. */
  readonly methods: () => ReadonlySet<string>;
  readonly maxRoutes: number;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
};

export function createRouteBook(options: BookOptions): RouteBook {
  const { registryId, store, receivers, unknownReceiver, methods, maxRoutes, clock, random, log } = options;
  const listeners = new Set<(change: Change) => void>();
  let { head, byId } = load(store);
  let set: RouteSet | undefined;

  const tell = (change: Change): void => {
    for (const listener of listeners) {
      try {
        listener(change);
      } catch (error) {
        // The change is committed whatever a listener makes of it.
        log.error('a listener of route changes failed', { error: describe(error) });
      }
    }
  };

  /** Another process wrote to the file, against the rules: what is in memory is not the truth any more. */
  const reload = (): void => {
    log.warn('the routes were changed by another process; one registry process owns a store', {
      revision: head.revision,
    });
    ({ head, byId } = load(store));
    set = undefined;
    tell({ kind: 'reset', revision: head.revision });
  };

  const apply = (kind: ChangeKind, written: Head, route: StoredRoute): void => {
    if (written.revision <= head.revision) return;
    if (written.revision > head.revision + 1) return reload();
    head = written;
    set = undefined;
    if (kind === 'deleted') byId.delete(route.id);
    else byId.set(route.id, route);
    tell({ kind, revision: head.revision, route });
  };

  const conflict = (outcome: Conflict): Conflict => {
    if (!byId.has(outcome.existing.id)) reload();
    return outcome;
  };

  /** Checks and stores `input`, without telling anyone: the caller applies it once it is committed. */
  const insert = ({ input, by }: Creation, held: number): Written | Invalid | Full => {
    const now = new Date(clock.now()).toISOString();
    const route = makeRoute(makeUuid(random), input, now, by);
    const errors = [...findUnreceivable(route, methods()), ...findUnpayable(route, receivers(), unknownReceiver())];
    if (errors.length > 0) return { kind: 'invalid', errors };
    // A duplicate is told before a full book: an SDK registers what is there at every start.
    if (held >= maxRoutes) {
      const existing = store.findByKey(keyOf(route.pattern), route.method);
      return existing ? { kind: 'conflict', existing } : { kind: 'full', limit: maxRoutes };
    }
    return store.insert(route, keyOf(route.pattern));
  };

  const createAll = (creations: readonly Creation[]): readonly Created[] => {
    const outcomes = store.batch(() => {
      let held = byId.size;
      return creations.map((creation) => {
        const outcome = insert(creation, held);
        if (outcome.kind === 'written') held++;
        return outcome;
      });
    });
    return outcomes.map((outcome) => {
      if (outcome.kind === 'conflict') return conflict(outcome);
      if (outcome.kind !== 'written') return outcome;
      apply('created', outcome.head, outcome.route);
      return { kind: 'created', route: outcome.route };
    });
  };

  return {
    registryId,
    head: () => head,
    routeSet: () => (set ??= { registryId, revision: head.revision, routes: [...byId.values()] }),
    get: (id) => byId.get(id),
    all: () => byId.values(),
    find: ({ route_pattern: pattern, method }) => store.findByKey(keyOf(pattern), method),
    create: (creation) => {
      const [outcome] = createAll([creation]);
      if (!outcome) throw new Error('creating a route had no outcome');
      return outcome;
    },
    createAll,
    patch: (route, patch, by) => {
      const changed = patchRoute(route, patch);
      if (!differs(route, changed)) return { kind: 'unchanged', route };
      // Pausing must work even if the receiver's configuration has moved on since: only what is asked anew is checked.
      const activated = changed.status === 'active' && route.status === 'paused';
      const repriced = activated || changed.amount !== route.amount || changed.currency !== route.currency;
      const errors = [
        ...(changed.method === route.method ? [] : findUnreceivable(changed, methods())),
        ...(repriced || changed.receiverConfigId !== route.receiverConfigId
          ? findUnpayable(changed, receivers(), unknownReceiver())
          : []),
      ];
      if (errors.length > 0) return { kind: 'invalid', errors };
      const next = { ...changed, updatedAt: new Date(clock.now()).toISOString(), writtenBy: by };
      const written = store.update(next, keyOf(next.pattern));
      if (written === undefined) {
        reload();
        return { kind: 'gone' };
      }
      if (written.kind === 'conflict') return conflict(written);
      apply('updated', written.head, next);
      return { kind: 'updated', route: next };
    },
    remove: (route, by) => {
      const written = store.remove(route.id, by, new Date(clock.now()).toISOString());
      if (written === undefined) {
        reload();
        return false;
      }
      apply('deleted', written, route);
      return true;
    },
    writeTogether: (by, run) => {
      const done: { kind: ChangeKind; head: Head; route: StoredRoute }[] = [];
      const now = new Date(clock.now()).toISOString();
      const result = store.batch(() =>
        run({
          insert: (input) => {
            const route = makeRoute(makeUuid(random), input, now, by);
            done.push({ kind: 'created', route, head: headOf(store.insert(route, keyOf(route.pattern))) });
            return route;
          },
          update: (changed) => {
            const route = { ...changed, updatedAt: now, writtenBy: by };
            done.push({ kind: 'updated', route, head: headOf(store.update(route, keyOf(route.pattern))) });
          },
          remove: (route) => {
            const written = store.remove(route.id, by, now);
            if (written === undefined) throw new Error(`the route ${route.id} is gone`);
            done.push({ kind: 'deleted', route: { ...route, writtenBy: by }, head: written });
          },
        }),
      );
      for (const { kind, head: written, route } of done) apply(kind, written, route);
      return result;
    },
    subscribe: (listener) => {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
  };
}

/** A route whose method no proxy lets in protects nothing. */
function findUnreceivable({ method }: Route, allowed: ReadonlySet<string>): readonly FieldError[] {
  const wrong = refuseMethod(method, allowed);
  return wrong === undefined
    ? []
    : [{ pointer: '/method', detail: `${method} ${wrong}${wrong.endsWith('?') ? '' : '.'}` }];
}

function headOf(written: Written | undefined): Head {
  if (written?.kind !== 'written') throw new Error('a route was not written: another one has its method and pattern');
  return written.head;
}

function load(store: RouteStore): { head: Head; byId: Map<string, StoredRoute> } {
  const { head, routes } = store.all();
  return { head, byId: new Map(routes.map((route) => [route.id, route])) };
}

function keyOf(pattern: string): string {
  const parsed = parsePattern(pattern);
  if (!parsed.ok) throw new Error(`a pattern that was checked is not valid: ${parsed.reason}`);
  return parsed.pattern.key;
}

function makeRoute(id: string, input: RouteInput, now: string, writtenBy: Writer): StoredRoute {
  return { ...fromWire({ ...input, id, created_at: now, updated_at: now }), writtenBy };
}

function differs(a: Route, b: Route): boolean {
  return JSON.stringify(a) !== JSON.stringify(b);
}

function describe(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
