// The cases of a seed: a base request, changed one to four times. Case number n of a seed is the same everywhere and does
// not depend on how many others are made, so that a report names it by these two numbers.
import { draftOf, type Draft } from './draft.ts';
import { MESSAGE_MUTATORS } from './mutators/message.ts';
import { PATH_MUTATORS } from './mutators/path.ts';
import { createRng } from '../../support/random.ts';
import { BASES } from './routes.ts';

const PATHS = Object.values(PATH_MUTATORS);
const MESSAGES = Object.values(MESSAGE_MUTATORS);

/** One change is tried more often than four: most ways in need one. */
const DEPTHS = [1, 1, 1, 1, 2, 2, 2, 3, 3, 4] as const;

export function caseOf(seed: number, index: number): Draft {
  const rng = createRng(seed, index);
  const base = rng.pick(BASES);
  const depth = rng.pick(DEPTHS);
  // A path alone, a message alone, or both.
  const messages = rng.chance(0.6) ? 0 : rng.chance(0.5) ? depth : 1;
  let path = base.path;
  for (let i = 0; i < depth - (messages === depth ? depth : 0); i++) path = rng.pick(PATHS)(path, rng);
  let draft = draftOf(base.method, path);
  for (let i = 0; i < messages; i++) draft = rng.pick(MESSAGES)(draft, rng);
  return draft;
}

export function casesOf(seed: number, count: number): Draft[] {
  return Array.from({ length: count }, (_, index) => caseOf(seed, index));
}
