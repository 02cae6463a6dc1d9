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
  /** Resolves once nothing is being compiled. */
  readonly settled: () => Promise<void>;
};

/** Sets up to this many routes are compiled at once: a few milliseconds. */
const AT_ONCE = 1000;

export function createCompiler(current: Current, paths: PathOptions, log: Log): Compiler {
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
        const snapshot = await compileSnapshotInSlices(set, paths, breathe);
        if (mine === generation) put(snapshot);
      } catch (error) {
        refused(set, error);
      }
    }
    working = undefined;
  };

  return {
    load: (set) => {
      generation++;
      if (set.routes.length > AT_ONCE) {
        waiting = set;
        working ??= work();
        return false;
      }
      waiting = undefined;
      try {
        put(compileSnapshot(set, paths));
        return true;
      } catch (error) {
        refused(set, error);
        return false;
      }
    },
    settled: async () => {
      while (working !== undefined) await working;
    },
  };
}

function breathe(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve);
  });
}
