// Turns route sets into the snapshot that serves. What differs little from the set in force is made from it at once, so
// that a changed price is in force when the call returns; a large new set is compiled in slices, so that it
// does not stall the traffic. Of several sets waiting only the newest is compiled, and an older one never replaces a newer.
// A set that is not valid is logged and replaces nothing.
import { changeSnapshot, reviseSnapshot, type SetChange } from '../../domain/revise.ts';
import {
  compileSnapshot,
  compileSnapshotInSlices,
  type PathOptions,
  type RouteSet,
  type Snapshot,
} from '../../domain/snapshot.ts';
import type { Log } from '../../host/log.ts';
import type { Current } from './current.ts';

export type Compiler = {
  /** True if the set is in force when this returns; false if it is being compiled or was refused. */
  readonly load: (set: RouteSet) => boolean;
  /** One change of the set in force. `whole` is the set with it, asked for if the change alone is not enough. */
  readonly change: (change: SetChange | Reset, whole: () => RouteSet) => boolean;
  /** For a set from elsewhere: the caller is told what is wrong with it. */
  readonly take: (set: RouteSet) => Promise<Taken>;
  /** Compiles the newest set again, for paths that are read in another way now. */
  readonly recompile: () => void;
  /** Resolves once nothing is being compiled. */
  readonly settled: () => Promise<void>;
};

/** Anything may have changed. */
export type Reset = { readonly kind: 'reset' };

/** `reason` names the route that is wrong. */
export type Taken = { readonly ok: true } | { readonly ok: false; readonly reason: string };

/** A set and its place in the order in which sets came. */
type Numbered = { readonly set: RouteSet; readonly number: number };

/** Sets up to this many routes are compiled at once: a few milliseconds. */
const AT_ONCE = 1000;

/** `paths` is asked for each compilation: a reload may have changed it. */
export function createCompiler(current: Current, paths: () => PathOptions, log: Log): Compiler {
  let waiting: Numbered | undefined;
  let compiling: Numbered | undefined;
  let working: Promise<void> | undefined;
  let last = 0;
  let inForce = 0;

  const put = (snapshot: Snapshot, number: number, change?: SetChange): void => {
    if (number < inForce) return;
    inForce = number;
    current.swap(snapshot, change);
    log.debug('routes in force', { revision: snapshot.revision, routes: snapshot.matcher.size });
  };
  const refused = (set: RouteSet, error: unknown): void =>
    log.error('route set refused, the last good one stays', { revision: set.revision, error });

  /** What is in force, if the next set of this registry can be made from it. */
  const base = (registryId: string): Snapshot | undefined => {
    const snapshot = current.snapshot;
    return snapshot?.registryId === registryId && readsAlike(snapshot.paths, paths()) ? snapshot : undefined;
  };
  const revise = (set: RouteSet): Snapshot | undefined => {
    const snapshot = base(set.registryId);
    if (snapshot === undefined) return undefined;
    try {
      return reviseSnapshot(snapshot, set);
    } catch {
      // Compiled whole it is refused too, with the same words whatever stood before.
      return undefined;
    }
  };

  const work = async (): Promise<void> => {
    while (waiting !== undefined) {
      compiling = waiting;
      waiting = undefined;
      const { set, number } = compiling;
      try {
        // In force though a newer one may wait: it is newer than what is.
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
      const changed = changeSnapshot(snapshot, next);
      if (changed === undefined) return load(whole());
      waiting = undefined;
      put(changed, ++last, next);
      return true;
    } catch {
      return load(whole());
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
      try {
        for (;;) {
          const number = ++last;
          const snapshot = revise(set) ?? (await compileSnapshotInSlices(set, paths(), breathe));
          // A reload in between compiled the older set anew, for other paths: this one is still the newer.
          if (number !== last) continue;
          put(snapshot, number);
          return { ok: true };
        }
      } catch (error) {
        return { ok: false, reason: error instanceof Error ? error.message : 'the set could not be compiled' };
      }
    },
    settled: async () => {
      await working;
    },
  };
}

function readsAlike(a: PathOptions, b: PathOptions): boolean {
  return a.encodedSlashes === b.encodedSlashes && a.doubleSlashes === b.doubleSlashes && a.folding === b.folding;
}

function breathe(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve);
  });
}
