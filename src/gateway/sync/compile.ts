// Turns route sets into the snapshot that serves. A small set is compiled at once, so that whoever changed a price finds
// it in force when the call returns; a large one in slices, so that compiling it does not stall the traffic. Of several
// sets waiting only the newest is compiled. A set that is not valid is logged and replaces nothing.
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
  /** True where the set is in force when this returns; false where it is being compiled or was refused. */
  readonly load: (set: RouteSet) => boolean;
  /** For a set from elsewhere: in slices whatever its size, and whoever gave it hears what is wrong with it. */
  readonly take: (set: RouteSet) => Promise<Taken>;
  /** Compiles the set in force again, for paths that are read in another way now. */
  readonly recompile: () => void;
  /** Resolves once nothing is being compiled. */
  readonly settled: () => Promise<void>;
};

/** `reason` names the route that is wrong. */
export type Taken = { readonly ok: true } | { readonly ok: false; readonly reason: string };

/** Sets up to this many routes are compiled at once: a few milliseconds. */
const AT_ONCE = 1000;

/** `paths` is asked for each compilation: a reload may have changed it. */
export function createCompiler(current: Current, paths: () => PathOptions, log: Log): Compiler {
  let waiting: RouteSet | undefined;
  let working: Promise<void> | undefined;
  /** Counts up with each set, so that a slower, older compilation never replaces a newer one. */
  let generation = 0;

  const put = (snapshot: Snapshot): void => {
    current.swap(snapshot);
    log.debug('routes in force', { revision: snapshot.revision, routes: snapshot.routes.length });
  };
  const refused = (set: RouteSet, error: unknown): void =>
    log.error('route set refused, the last good one stays', { revision: set.revision, error });

  const work = async (): Promise<void> => {
    while (waiting !== undefined) {
      const set = waiting;
      const mine = generation;
      waiting = undefined;
      try {
        const snapshot = await compileSnapshotInSlices(set, paths(), breathe);
        if (mine === generation) put(snapshot);
      } catch (error) {
        refused(set, error);
      }
    }
    working = undefined;
  };

  const load = (set: RouteSet): boolean => {
    generation++;
    if (set.routes.length > AT_ONCE) {
      waiting = set;
      working ??= work();
      return false;
    }
    waiting = undefined;
    try {
      put(compileSnapshot(set, paths()));
      return true;
    } catch (error) {
      refused(set, error);
      return false;
    }
  };

  return {
    load,
    recompile: () => {
      const set = waiting ?? current.get();
      if (set !== undefined) load(set);
    },
    take: async (set) => {
      try {
        for (;;) {
          const mine = ++generation;
          const snapshot = await compileSnapshotInSlices(set, paths(), breathe);
          // A reload in between compiled the older set anew, for other paths: this one is still the newer.
          if (mine !== generation) continue;
          put(snapshot);
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

function breathe(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve);
  });
}
