// A folder for what this process writes. One that it makes is its owner's alone, because secrets, payments and locks lie in
// it. One that is there stays as it is: it may be the folder of a project or of a volume.
import { mkdirSync } from 'node:fs';

/** Makes `folder`, and those above it that are missing; throws as mkdir does. */
export function makePrivateFolder(folder: string): void {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
}
