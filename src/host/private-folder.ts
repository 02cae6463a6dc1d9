// A folder for what this process writes. One that it makes is its owner's alone, because secrets, payments and locks lie in
// it. One that is there stays as it is: it may be the folder of a project or of a volume.
import { mkdirSync } from 'node:fs';

/** Makes `folder`, and those above it that are missing; throws as mkdir does. Returns the first of them that it made. */
export function makePrivateFolder(folder: string): string | undefined {
  return mkdirSync(folder, { recursive: true, mode: 0o700 });
}
