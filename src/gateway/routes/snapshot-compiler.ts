// Turns route sets into the snapshot that serves. A set that differs little from the one in force is made from it at
// once, so a changed price is in force when the call returns. A large new set is compiled in slices, so that it does
// not stall the traffic. If several sets wait, only the newest is compiled. An older set never replaces a newer one. A
// set that is not valid is logged and replaces nothing.
import { changeSnapshot, reviseSnapshot, type SetChange } from '../../domain/routing/revise.ts';
import type { Route } from '../../domain/routing/route.ts';
import {
  compileSnapshot,
  compileSnapshotInSlices,
  type PathOptions,
  type RouteSet,
  type Snapshot,
} from '../../domain/routing/snapshot.ts';
import type { Log } from '../../host/log.ts';
import type { CurrentSnapshot, SnapshotChange } from './current-snapshot.ts';

export type Compiler = {
  /** Loads a set. True if it is in force when this returns; false if it is being compiled or was refused. */
  readonly load: (set: RouteSet) => boolean;
  /** Makes one change of the set in force. `whole` is the set with it, asked for if the change alone is not enough. */
  readonly change: (change: SetChange | Reset, whole: () => RouteSet) => boolean;
  /** Takes a set from elsewhere; the caller is told what is wrong with it. */
  readonly take: (set: RouteSet) => Promise<CompileResult>;
  /** Takes the next change of a set from elsewhere. */
  readonly takeChange: (change: FeedChange) => Promise<CompiledChange | RefusedSet>;
  /** Compiles the newest set again, for paths that are read in another way now. */
  readonly recompile: () => void;
  /** Resolves once nothing is being compiled. */
  readonly settled: () => Promise<void>;
};

/** Anything may have changed. */
export type Reset = { readonly kind: 'reset' };

/** A change as a registry tells it; a deleted route by its id alone. */
export type FeedChange =
  | { readonly kind: 'created' | 'updated'; readonly revision: number; readonly route: Route }
  | { readonly kind: 'deleted'; readonly revision: number; readonly id: string };

/** Snapshot with one change. `was` and `is` are the route before and with it. */
type CompiledChange = MadeSnapshot & {
  readonly was: Route | undefined;
  readonly is: Route | undefined;
};
/** Set that was refused. `reason` names the route that is wrong. */
type RefusedSet = { readonly ok: false; readonly reason: string };
export type CompileResult = { readonly ok: true } | RefusedSet;

/** Snapshot that was made. `change` is all that it differs in from the one in force, if that is known. */
type MadeSnapshot = { readonly ok: true; readonly snapshot: Snapshot; readonly change?: SnapshotChange };

/** A set and its place in the order in which sets came. */
type NumberedSet = { readonly set: RouteSet; readonly number: number };

/** Sets up to this many routes are compiled at once: a few milliseconds. */
const AT_ONCE = 1000;

/** Makes a compiler. `paths` is asked for each compilation: a reload may have changed it. */
export function createCompiler(current: CurrentSnapshot, paths: () => PathOptions, log: Log): Compiler {
  let waiting: NumberedSet | undefined;
  let compiling: NumberedSet | undefined;
  let working: Promise<void> | undefined;
  let last = 0;
  let inForce = 0;

  const put = (snapshot: Snapshot, number: number, change?: SnapshotChange): void => {
    if (number < inForce) return;
    inForce = number;
    current.swap(snapshot, change);
    log.debug('routes in force', { revision: snapshot.revision, routes: snapshot.matcher.size });
  };
  const refused = (set: RouteSet, error: unknown): void =>
    log.error('route set refused, the last good one stays', { revision: set.revision, error });

  /** The snapshot in force, if the next set of this registry can be made from it. */
  const base = (registryId: string): Snapshot | undefined => {
    const snapshot = current.snapshot;
    return snapshot?.registryId === registryId && readsAlike(snapshot.paths, paths()) ? snapshot : undefined;
  };
  const revise = (set: RouteSet): Snapshot | undefined => reviseOrNot(base(set.registryId), set);

  const work = async (): Promise<void> => {
    while (waiting !== undefined) {
      compiling = waiting;
      waiting = undefined;
      const { set, number } = compiling;
      try {
        // A set replaces an older one, even if a newer one waits already.
        put(revise(set) ?? (await compileSnapshotInSlices(set, paths(), breathe)), number);
      } catch (error) {
        refused(set, error);
      }
      compiling = undefined;
    }
    working = undefined;
  };

  const load = (set: RouteSet): boolean => {
    const number = ++last;
    const revised = revise(set);
    if (revised === undefined && set.routes.length > AT_ONCE) {
      waiting = { set, number };
      working ??= work();
      return false;
    }
    waiting = undefined;
    try {
      put(revised ?? compileSnapshot(set, paths()), number);
      return true;
    } catch (error) {
      refused(set, error);
      return false;
    }
  };

  const change = (next: SetChange | Reset, whole: () => RouteSet): boolean => {
    const snapshot = current.snapshot;
    if (next.kind === 'reset' || snapshot === undefined || snapshot.revision !== next.revision - 1)
      return load(whole());
    if (base(snapshot.registryId) === undefined) return load(whole());
    try {
      const was = snapshot.matcher.get(next.route.id);
      const changed = changeSnapshot(snapshot, next);
      if (changed === undefined) return load(whole());
      waiting = undefined;
      put(changed, ++last, { ...next, was });
      return true;
    } catch {
      return load(whole());
    }
  };

  /** Puts in force what `make` makes; again if a reload compiled the older set anew meanwhile, for other paths. */
  const takeMade = async <T extends MadeSnapshot>(make: () => Promise<T | RefusedSet>): Promise<T | RefusedSet> => {
    try {
      for (;;) {
        const number = ++last;
        const made = await make();
        if (made.ok && number !== last) continue;
        if (made.ok) put(made.snapshot, number, made.change);
        return made;
      }
    } catch (error) {
      return { ok: false, reason: error instanceof Error ? error.message : 'the set could not be compiled' };
    }
  };

  return {
    load,
    change,
    recompile: () => {
      const set = waiting?.set ?? compiling?.set ?? current.snapshot;
      if (set !== undefined) load(set);
    },
    take: async (set) => {
      const make = async (): Promise<MadeSnapshot> => ({
        ok: true,
        snapshot: revise(set) ?? (await compileSnapshotInSlices(set, paths(), breathe)),
      });
      const taken = await takeMade(make);
      return taken.ok ? { ok: true } : taken;
    },
    takeChange: (next) =>
      takeMade<CompiledChange>(async () => {
        // A reload that compiles the set for other paths comes first.
        await working;
        const { snapshot } = current;
        return snapshot === undefined
          ? { ok: false, reason: 'there is no set that could change' }
          : changeFed(snapshot, next, paths());
      }),
    settled: async () => {
      await working;
    },
  };
}

/** Makes `snapshot` with its next change. */
async function changeFed(
  snapshot: Snapshot,
  next: FeedChange,
  paths: PathOptions,
): Promise<CompiledChange | RefusedSet> {
  const { revision } = next;
  const id = next.kind === 'deleted' ? next.id : next.route.id;
  const was = snapshot.matcher.get(id);
  const is = next.kind === 'deleted' ? undefined : next.route;
  if ((was === undefined) !== (next.kind === 'created'))
    return { ok: false, reason: `route ${id}: it is ${was === undefined ? 'not there' : 'there already'}` };
  const route = is ?? was;
  if (route === undefined) throw new Error('a change without a route');
  const change = { kind: next.kind, revision, route, was };
  const changed = readsAlike(snapshot.paths, paths) ? changeSnapshot(snapshot, change) : undefined;
  return {
    ...{ ok: true, was, is, change },
    snapshot: changed ?? (await compileSnapshotInSlices(withChange(snapshot, change), paths, breathe)),
  };
}

function withChange({ registryId, routes }: Snapshot, { kind, revision, route }: SetChange): RouteSet {
  const others = kind === 'updated' ? routes.map((each) => (each.id === route.id ? route : each)) : routes;
  if (kind === 'created') return { registryId, revision, routes: [...routes, route] };
  return { registryId, revision, routes: kind === 'deleted' ? routes.filter(({ id }) => id !== route.id) : others };
}

function reviseOrNot(base: Snapshot | undefined, set: RouteSet): Snapshot | undefined {
  try {
    return base && reviseSnapshot(base, set);
  } catch {
    // A set that fails here is refused when it is compiled whole, with the same words whatever stood before.
    return undefined;
  }
}

/** Whether paths are read in the same way under both. */
export function readsAlike(a: PathOptions, b: PathOptions): boolean {
  return (
    a.encodedSlashes === b.encodedSlashes &&
    a.doubleSlashes === b.doubleSlashes &&
    a.folding === b.folding &&
    a.plans === b.plans
  );
}

function breathe(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve);
  });
}
