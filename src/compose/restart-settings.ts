// The settings that a reload cannot change: what was bound, opened or begun at the start, as the description of the
// configuration says of each key. Such a setting keeps the value of the start and is named in the log.
import { isDeepStrictEqual } from 'node:util';
import type { Config } from '../config/config.ts';
import { describedKeys, type DescribedKey } from '../config/keys.ts';
import { createConfigSchema } from '../config/schema.ts';

type AppliedConfig = {
  /** Configuration `next`, with the values of the start if only a restart changes them. */
  readonly config: Config;
  /** Names of the settings that differ from the start and are not in force. */
  readonly restart: readonly string[];
};

const KEYS = describedKeys(createConfigSchema(''));
/** Keys that are compared: not those that are only judged, nor what stands below one that is compared as a whole. */
const WATCHED: readonly DescribedKey[] = KEYS.filter(
  ({ path, inForce, names }) =>
    inForce !== 'at once' &&
    !names.includes('') &&
    !KEYS.some((whole) => whole.inForce === 'restart' && path.startsWith(`${whole.path}.`)),
);

/** Throws a sentence if `next` is another kind of Tollgate than the one that runs. */
export function applyConfig(started: Config, next: Config): AppliedConfig {
  if (started.shape !== next.shape) {
    throw new Error(
      `the sections make another shape: ${started.shape} runs, ${next.shape} is configured; restart to change it`,
    );
  }
  const restart: string[] = [];
  let config: unknown = next;
  // A listener is known by its place in the list. What stands there for another address is not for the port that is bound.
  if (!isDeepStrictEqual(addressesOf(started), addressesOf(next))) {
    restart.push('decision');
    config = { ...next, decision: started.decision };
  }
  for (const { path, names, inForce } of WATCHED) {
    const value = valueAt(started, names);
    if (isDeepStrictEqual(value, valueAt(config, names))) continue;
    restart.push(inForce === 'clients' ? `${path} (towards clients)` : path);
    if (inForce === 'restart') config = withValue(config, names, value);
  }
  return { restart, config: config as Config };
}

function addressesOf({ decision }: Config): readonly unknown[] | undefined {
  return decision?.map(({ front }) => front.listen);
}

function valueAt(from: unknown, names: readonly string[]): unknown {
  if (Array.isArray(from)) return from.map((each: unknown) => valueAt(each, names));
  const [name, ...below] = names;
  if (name === undefined) return from;
  return isSection(from) ? valueAt(from[name], below) : undefined;
}

/** A copy of `section` with `value` at `names`; a section that is not there stays away. Of a list, `value` has one for each. */
function withValue(section: unknown, names: readonly string[], value: unknown): unknown {
  if (Array.isArray(section) && Array.isArray(value))
    return section.map((each: unknown, index) => withValue(each, names, value[index]));
  const [name = '', ...below] = names;
  if (!isSection(section)) return section;
  return { ...section, [name]: below.length === 0 ? value : withValue(section[name], below, value) };
}

function isSection(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null;
}
