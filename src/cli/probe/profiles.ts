// Finds the settings that no spelling gets around. A setting is safe if Tollgate refuses every spelling that reaches
// the path, or folds it into the path. This is proven only for the paths that were asked. A profile only ever switches
// folding off, so the worst of several paths counts.
import {
  FULL_FOLDING,
  PROFILE_NAMES,
  profileFolding,
  type PathFolding,
  type ProfileName,
} from '../../domain/routing/profile.ts';
import type { PathOptions } from '../../domain/routing/snapshot.ts';
import { counts } from './answers.ts';
import type { PathReport } from './path.ts';
import { pathsOf, pathsWithout, treatmentUnder } from './tollgate.ts';

/** A spelling that reaches the path and that Tollgate would let through free. */
export type Leak = { readonly target: string; readonly path: string };

export type ProfileGroup = {
  /** Profiles that fold alike, the ones that the upstream's own headers name first. */
  readonly names: readonly [ProfileName, ...ProfileName[]];
  readonly folds: readonly (keyof PathFolding)[];
  readonly leaks: readonly Leak[];
};

export type Judgement = {
  /** Groups of safe profiles, the most permissive first. */
  readonly safe: readonly ProfileGroup[];
  /** No spelling got around these, but they leave out a rule about parameters, and no path with a parameter was asked. */
  readonly unproven: readonly ProfileGroup[];
  readonly unsafe: readonly ProfileGroup[];
  /** Spellings that only one folding rule catches, for each rule that is needed. */
  readonly needs: readonly { readonly rule: keyof PathFolding; readonly because: readonly Leak[] }[];
  /** Rules that nothing was asked about. */
  readonly unasked: readonly (keyof PathFolding)[];
  readonly recommended: Recommendation | undefined;
};

type Recommendation = {
  readonly profile: ProfileName;
  /** Other profiles that fold exactly as this one does. */
  readonly alike: readonly ProfileName[];
  /** Leaks under this profile if encoded slashes are kept (`keep`). */
  readonly keepEncodedSlashes: readonly Leak[];
  readonly keepDoubleSlashes: readonly Leak[];
};

export const FOLDING_RULES = keysOf(FULL_FOLDING);
/** Rules that a path without a parameter can tell nothing about. */
const ABOUT_PARAMETERS: readonly (keyof PathFolding)[] = ['empty'];

export function judgeProfiles(probed: readonly PathReport[], host: string): Judgement {
  // A path that told nothing must not pass for one without leaks.
  const reports = probed.filter(({ told }) => told.ok);
  if (reports.length === 0)
    return { safe: [], unproven: [], unsafe: [], needs: [], unasked: FOLDING_RULES, recommended: undefined };
  const leaksUnder = (paths: PathOptions): Leak[] => reports.flatMap((report) => leaksOf(report, paths, host));
  const hints = reports.flatMap(({ first }) => (first.kind === 'answer' ? hintsIn(first.headers) : []));
  const applications = new Set(hints.flatMap(({ name, application }) => (application ? [name] : [])));
  const asked = reports.some(({ known }) => known.parameter);
  const groups = groupProfiles(hints.map(({ name }) => name)).map((names) => ({
    names,
    folds: FOLDING_RULES.filter((rule) => profileFolding(names[0])[rule]),
    leaks: leaksUnder(pathsOf(names[0])),
  }));
  const held = groups.filter(({ leaks }) => leaks.length === 0);
  // A framework that names itself is known beyond what was asked; a server in front of it says nothing about it.
  const isProven = ({ names, folds }: ProfileGroup): boolean =>
    asked || applications.has(names[0]) || ABOUT_PARAMETERS.every((rule) => folds.includes(rule));
  const safe = held.filter(isProven);
  const chosen = safe.find(({ names }) => hints.some(({ name }) => name === names[0])) ?? safe[0];
  const everything = new Set(leaksUnder(pathsOf('unknown')).map(({ target }) => target));
  return {
    safe,
    unproven: held.filter((group) => !isProven(group)),
    unsafe: groups.filter(({ leaks }) => leaks.length > 0),
    needs: FOLDING_RULES.map((rule) => ({
      rule,
      because: leaksUnder(pathsWithout(rule)).filter(({ target }) => !everything.has(target)),
    })),
    unasked: asked ? [] : ABOUT_PARAMETERS,
    recommended: chosen && {
      profile: chosen.names[0],
      alike: chosen.names.slice(1),
      keepEncodedSlashes: leaksUnder(pathsOf(chosen.names[0], { encodedSlashes: 'keep' })),
      keepDoubleSlashes: leaksUnder(pathsOf(chosen.names[0], { doubleSlashes: 'keep' })),
    },
  };
}

function leaksOf({ known, told }: PathReport, paths: PathOptions, host: string): Leak[] {
  if (!told.ok) return [];
  const treat = treatmentUnder(paths, known, host);
  const reaching = new Set(told.asked.filter(({ deed }) => counts(deed)).map(({ target }) => target));
  return told.asked.flatMap(({ target }) => {
    const treatment = treat(target);
    // Two spellings count: the one that was sent, and the one that Tollgate would make of it.
    const leaks = treatment.kind === 'forwards' && (reaching.has(target) || reaching.has(treatment.target));
    return leaks ? [{ target, path: known.path }] : [];
  });
}

/** Profiles that fold alike, the groups in order of how little they fold, `hinted` names first within each. */
function groupProfiles(hinted: readonly ProfileName[]): [ProfileName, ...ProfileName[]][] {
  const groups = new Map<string, [ProfileName, ...ProfileName[]]>();
  const ranked = PROFILE_NAMES.toSorted((a, b) => Number(hinted.includes(b)) - Number(hinted.includes(a)));
  for (const name of ranked) {
    const key = FOLDING_RULES.map((rule) => Number(profileFolding(name)[rule])).join('');
    const group = groups.get(key);
    if (group === undefined) groups.set(key, [name]);
    else group.push(name);
  }
  const foldsOf = ([name]: [ProfileName, ...ProfileName[]]): number =>
    FOLDING_RULES.filter((rule) => profileFolding(name)[rule]).length;
  return [...groups.values()].toSorted((a, b) => foldsOf(a) - foldsOf(b));
}

type Hint = { readonly name: ProfileName; readonly application: boolean };

const HINTS: readonly (readonly [words: RegExp, name: ProfileName])[] = [
  [/^express/i, 'express'],
  [/next\.js/i, 'next'],
  [/^(?:wsgiserver|.*cpython)/i, 'django'],
  [/werkzeug/i, 'flask'],
  [/uvicorn|hypercorn/i, 'fastapi'],
  [/kestrel|microsoft-iis|asp\.net/i, 'aspnet'],
  [/tomcat|coyote|jetty/i, 'spring'],
  [/sinatra|webrick/i, 'sinatra'],
  [/phusion passenger/i, 'rails'],
  [/^php/i, 'php'],
  [/^caddy/i, 'caddy'],
  [/^nginx|openresty/i, 'nginx'],
];
/** Often in front of what runs the routes. */
const IN_FRONT: ReadonlySet<ProfileName> = new Set(['caddy', 'nginx']);

/** The profiles that an upstream's own headers name. */
function hintsIn(headers: Readonly<Record<string, string | string[] | undefined>>): Hint[] {
  const words = [headers['x-powered-by'], headers['server']].flatMap((value) => value ?? []);
  return words.flatMap((word) =>
    HINTS.flatMap(([pattern, name]) => (pattern.test(word) ? [{ name, application: !IN_FRONT.has(name) }] : [])),
  );
}

function keysOf<T extends object>(value: T): (keyof T)[] {
  const keys: (keyof T)[] = [];
  for (const key in value) keys.push(key);
  return keys;
}
