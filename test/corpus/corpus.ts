// Reads the corpus of benign request targets: what each is, and the profiles and settings under which it has to go through.
import { readFileSync } from 'node:fs';
import { PROFILE_NAMES, profileFolding, type ProfileName } from '../../src/domain/routing/profile.ts';
import type { PathOptions } from '../../src/domain/routing/snapshot.ts';

export type Group = {
  readonly name: string;
  readonly profiles: readonly ProfileName[];
  readonly settings: Pick<PathOptions, 'encodedSlashes' | 'doubleSlashes'>;
  readonly targets: readonly string[];
};

export function readCorpus(): Group[] {
  const groups: (Group & { targets: string[] })[] = [];
  for (const line of readFileSync(new URL('urls.txt', import.meta.url), 'utf8').split('\n')) {
    if (line === '' || line.startsWith('#')) continue;
    if (line.startsWith(';')) groups.push(readHeading(line));
    else if (!line.startsWith('/')) throw new Error(`neither a heading nor a target: ${line}`);
    else groups.at(-1)?.targets.push(line);
  }
  return groups;
}

function readHeading(line: string): Group & { targets: string[] } {
  const [name = '', profiles = '', settings = ''] = line
    .slice(1)
    .split('|')
    .map((part) => part.trim());
  return {
    name,
    profiles: profiles.split(' ').map((word) => {
      const profile = PROFILE_NAMES.find((known) => known === word);
      if (profile === undefined) throw new Error(`${name}: no profile: ${word}`);
      return profile;
    }),
    settings: {
      encodedSlashes: settings.includes('encoded_slashes=keep') ? 'keep' : 'refuse',
      doubleSlashes: settings.includes('double_slashes=keep') ? 'keep' : 'merge',
    },
    targets: [],
  };
}

export function pathsOf(profile: ProfileName, settings: Group['settings']): PathOptions {
  return { ...settings, folding: profileFolding(profile) };
}
