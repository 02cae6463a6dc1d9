// Keys of a later version: known by name, and refused, so that no operator believes that they are in force.
// The schema never sees them, so it does not call them unknown.
import { isMap, valueAt, type Issue, type Path } from './problems.ts';

/** A key, `*` for each entry of a list, and the advice about it. */
const LATER: readonly { readonly path: Path; readonly advice: string }[] = [
  { path: ['selling', 'plans', '*', 'meter'], advice: 'take it out; a request costs what its route says' },
];

/** Takes keys of a later version out of `data`, which it changes, and complains about each. */
export function takeLaterKeys(data: Record<string, unknown>): Issue[] {
  return LATER.flatMap(({ path, advice }) =>
    placesOf(data, path).flatMap((place): Issue[] => {
      const [holder, key] = [valueAt(data, place.slice(0, -1)), place.at(-1)];
      if (!isMap(holder) || typeof key !== 'string' || !Object.hasOwn(holder, key)) return [];
      delete holder[key];
      return [{ path: place, message: `is not in this version; ${advice}`, at: 'key' }];
    }),
  );
}

/** The places that `path` means in `data`. */
function placesOf(data: unknown, path: Path): readonly Path[] {
  const star = path.indexOf('*');
  if (star < 0) return [path];
  const before = path.slice(0, star);
  const list = valueAt(data, before);
  if (!Array.isArray(list)) return [];
  return list.flatMap((_, index) => placesOf(data, [...before, index, ...path.slice(star + 1)]));
}
