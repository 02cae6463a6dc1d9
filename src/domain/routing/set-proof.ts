// The proof of a set of routes that changes: its revision, its size and its digest. The digest is reckoned with the first
// proof, in slices, and kept in step with every change from then on. A set that is replaced meanwhile is reckoned anew.
import type { Route } from './route.ts';
import { addAll, createSetDigest, type SetDigest } from './set-digest.ts';

/** Describes a set, so that a follower of its changes can tell whether it has the whole of it. */
export type SetProof = { readonly revision: number; readonly routes: number; readonly digest: string };

type SetProver = {
  /** Notes a change of the set: the route before it and the route with it. */
  readonly change: (was: Route | undefined, is: Route | undefined) => void;
  /** Notes that the set is another one. */
  readonly replace: () => void;
  /** Proves the set as it is when the promise resolves. */
  readonly prove: () => Promise<SetProof>;
};

type ProvableSet = {
  readonly routes: () => Iterable<Route>;
  readonly head: () => Omit<SetProof, 'digest'>;
};

export function createSetProver({ routes, head }: ProvableSet, breathe: () => Promise<unknown>): SetProver {
  let reckoned: { readonly digest: SetDigest; readonly whole: Promise<void> } | undefined;
  const prove = async (): Promise<SetProof> => {
    if (reckoned === undefined) {
      const digest = createSetDigest();
      reckoned = { digest, whole: addAll(digest, [...routes()], breathe) };
    }
    const { digest, whole } = reckoned;
    await whole;
    if (reckoned?.digest !== digest) return prove();
    return { ...head(), digest: digest.hex() };
  };
  return {
    change: (was, is) => {
      if (was !== undefined) reckoned?.digest.remove(was);
      if (is !== undefined) reckoned?.digest.add(is);
    },
    replace: () => {
      reckoned = undefined;
    },
    prove,
  };
}
