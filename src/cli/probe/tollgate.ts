// Says how Tollgate itself would treat a spelling, under any settings: the proxy's own target, folding and matcher, with
// one route for the known path. Nothing of that is written here a second time; a probe with rules of its own would prove
// something about itself.
import {
  FULL_FOLDING,
  PROFILE_NAMES,
  profileFolding,
  type PathFolding,
  type ProfileName,
} from '../../domain/routing/profile.ts';
import type { Route } from '../../domain/routing/route.ts';
import { compileSnapshot, type PathOptions } from '../../domain/routing/snapshot.ts';
import { allowedMethods } from '../../domain/routing/method.ts';
import { canonicalPath, splitTarget } from '../../domain/routing/target.ts';
import { parsePattern } from '../../domain/routing/pattern.ts';
import type { KnownPath } from './canaries.ts';

export type Treatment =
  /** Asks for payment. `target`: what the upstream gets once it is paid. */
  | { readonly kind: 'asks'; readonly target: string }
  | { readonly kind: 'refuses' }
  /** Free. `target`: what the upstream would get. */
  | { readonly kind: 'forwards'; readonly target: string };

type PathTreatment = (target: string) => Treatment;

const TARGET_LIMIT = 8192;
const METHODS = allowedMethods();

/** Default treatment of encoded slashes and double slashes. */
const DEFAULT_PATHS = { encodedSlashes: 'refuse', doubleSlashes: 'merge' } as const;

/** The path that was named, in the one spelling in which Tollgate forwards it, or what is wrong with it. */
export function readKnownPath(text: string): { ok: true; known: KnownPath } | { ok: false; reason: string } {
  const mark = text.indexOf('?');
  const raw = mark < 0 ? text : text.slice(0, mark);
  const query = mark < 0 ? '' : text.slice(mark);
  const canonical = canonicalPath(raw, { ...DEFAULT_PATHS, folding: FULL_FOLDING });
  if (!canonical.ok) return { ok: false, reason: canonical.reason };
  const split = splitTarget(
    { method: 'GET', target: canonical.path + query, host: '' },
    targetOptions(pathsOf('unknown')),
  );
  if ('code' in split) return { ok: false, reason: split.detail };
  const pattern = parsePattern(patternOf(canonical.path));
  return pattern.ok ? { ok: true, known: { path: canonical.path, query, parameter: false } } : pattern;
}

export function pathsOf(profile: ProfileName, rest: Partial<Omit<PathOptions, 'folding'>> = {}): PathOptions {
  return { ...DEFAULT_PATHS, ...rest, folding: profileFolding(profile) };
}

/** Everything folded but `rule`. */
export function pathsWithout(rule: keyof PathFolding): PathOptions {
  return { ...DEFAULT_PATHS, folding: { ...FULL_FOLDING, [rule]: false } };
}

/** Says how Tollgate treats a GET under `paths` if exactly the pattern of `known` is protected. */
export function treatmentUnder(paths: PathOptions, known: KnownPath, host: string): PathTreatment {
  const snapshot = compileSnapshot({ registryId: 'probe', revision: 0, routes: [routeFor(known)] }, paths);
  const options = targetOptions(paths);
  return (target) => {
    const split = splitTarget({ method: 'GET', target, host }, options);
    if ('code' in split) return { kind: 'refuses' };
    const resolution = snapshot.resolve('GET', split.rawPath);
    if (!resolution.ok) return { kind: 'refuses' };
    const forwarded = resolution.path + split.query;
    switch (resolution.match.kind) {
      case 'route':
        return { kind: 'asks', target: forwarded };
      case 'undeclared':
      case 'none':
        return { kind: 'forwards', target: forwarded };
      default:
        return resolution.match satisfies never;
    }
  };
}

/** Targets that some setting would send upstream, free, in place of one of `targets`. They have to be asked as well. */
export function forwardedSpellings(targets: readonly string[], known: KnownPath, host: string): Map<string, string> {
  const asked = new Set([known.path + known.query, ...targets]);
  const further = new Map<string, string>();
  for (const folding of new Set(PROFILE_NAMES.map((name) => profileFolding(name)))) {
    for (const encodedSlashes of ['refuse', 'keep'] as const) {
      for (const doubleSlashes of ['merge', 'keep'] as const) {
        const treat = treatmentUnder({ folding, encodedSlashes, doubleSlashes }, known, host);
        for (const target of targets) {
          const treatment = treat(target);
          if (treatment.kind === 'forwards' && !asked.has(treatment.target)) further.set(treatment.target, target);
        }
      }
    }
  }
  return further;
}

function targetOptions(paths: PathOptions): Parameters<typeof splitTarget>[1] {
  return { ...paths, limit: TARGET_LIMIT, methods: METHODS };
}

/** A path as the pattern that means it literally: what a pattern takes for syntax is escaped. */
function patternOf(path: string): string {
  return path.replace(/[*+()[\]{}:?]/g, (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`);
}

/** The pattern that protects `known` and nothing more: `/reports/q3`, or `/reports/:parameter`. */
export function patternFor({ path, parameter }: KnownPath): string {
  const pattern = patternOf(path);
  return parameter ? `${pattern.replace(/[^/]+\/?$/, '')}:parameter` : pattern;
}

function routeFor(known: KnownPath): Route {
  return {
    id: 'probe',
    pattern: patternFor(known),
    method: 'GET',
    amount: '1',
    currency: 'USD',
    name: null,
    description: null,
    status: 'active',
    allowAnonymous: true,
    source: null,
    receiverConfigId: null,
    planId: null,
    createdAt: '',
    updatedAt: '',
  };
}
