// Imports a module of the product from the checkout that is measured. A revision may hold a module under an older name.
import { existsSync } from 'node:fs';
import path from 'node:path';
import { pathToFileURL } from 'node:url';

/** The module under ROOT/src that stands at the first of `names` that is there. Throws if none is. */
export async function importFrom(root: string, ...names: readonly string[]): Promise<unknown> {
  const file = names.map((name) => path.join(root, 'src', name)).find((each) => existsSync(each));
  if (file === undefined) throw new Error(`${root} has none of ${names.join(', ')}`);
  return import(pathToFileURL(file).href);
}
