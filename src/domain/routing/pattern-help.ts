// Describes a pattern to whoever is writing it: paths that it covers and paths that it does not, and the routes that it
// shares paths with. Every path was asked of the matcher of the proxy.
import { overlapOf } from './overlap.ts';
import { parsePattern, type Pattern, type Segment } from './pattern.ts';
import type { PathOptions } from './resolve.ts';
import type { Route } from './route.ts';
import { compileSnapshot } from './snapshot.ts';

/** `wins` is who gets the paths that both cover. */
type SharedPaths = { readonly route: Route; readonly wins: 'this' | 'other' };

const MOST_MATCHES = 5;
const MOST_OTHERS = 3;
const MOST_SHARED = 20;
/** What fills a parameter in one example after another. */
const SAMPLES = ['7', '2026', 'abc'];
const BELOW = ['', '/2026', '/2026/q3'];

/** Example paths that the pattern covers, and near ones that it does not. */
export function examplesOf(
  pattern: Pattern,
  paths: PathOptions,
): { readonly matches: readonly string[]; readonly not: readonly string[] } {
  const route = { ...SOME_ROUTE, pattern: pattern.text };
  const snapshot = compileSnapshot({ registryId: '', revision: 0, routes: [route] }, paths);
  const matchOf = (path: string): string | undefined => {
    const found = snapshot.resolve('GET', path);
    return found.ok ? found.match.kind : undefined;
  };
  const near = [...new Set(fillings(pattern))];
  const far = [...new Set(near.flatMap((path) => [`${path}s`, parentOf(path), `${path}/more`]))];
  return {
    matches: near.filter((path) => matchOf(path) === 'route').slice(0, MOST_MATCHES),
    not: far.filter((path) => matchOf(path) === 'none').slice(0, MOST_OTHERS),
  };
}

/** The routes that cover paths of `pattern` too, for a method that both take; at most 20. */
export function sharedPaths(pattern: Pattern, method: string, routes: Iterable<Route>): readonly SharedPaths[] {
  const shared: SharedPaths[] = [];
  const start = plainStart(pattern.text);
  for (const route of routes) {
    if (shared.length === MOST_SHARED) break;
    if (!takeOneMethod(method, route.method)) continue;
    // Most of many routes begin otherwise, and need not be read.
    const begins = start === undefined ? undefined : plainStart(route.pattern);
    if (begins !== undefined && begins !== start) continue;
    const other = parsePattern(route.pattern);
    if (!other.ok) continue;
    const { kind } = overlapOf(pattern, other.pattern);
    if (kind === 'apart' || (kind === 'same' && route.method === method)) continue;
    // Of two equal patterns the one with a method of its own wins.
    const isFirst = kind === 'first' || (kind === 'same' && (route.method === '*' || method === 'HEAD'));
    shared.push({ route, wins: isFirst ? 'this' : 'other' });
  }
  return shared;
}

const SOME_ROUTE: Omit<Route, 'pattern'> = {
  ...{ id: '00000000-0000-4000-8000-000000000000', method: '*', amount: '1', currency: 'USD', status: 'active' },
  ...{ name: null, description: null, allowAnonymous: true, source: '', receiverConfigId: null, planId: null },
  ...{ createdAt: '', updatedAt: '' },
};

function fillings({ segments }: Pattern): readonly string[] {
  const fill = (segment: Segment, sample: string, below: string): string => {
    switch (segment.kind) {
      case 'literal':
        return `/${encodeURIComponent(segment.text)}`;
      case 'param':
        return `/${sample}`;
      case 'wildcard':
        return below;
      default:
        return segment satisfies never;
    }
  };
  return SAMPLES.flatMap((sample) =>
    BELOW.map((below) => segments.map((segment) => fill(segment, sample, below)).join('') || '/'),
  );
}

/** First segment, if it is of letters and digits alone, which every router reads as they are but for their case. */
function plainStart(pattern: string): string | undefined {
  return /^\/([A-Za-z0-9]+)(?:\/|$)/.exec(pattern)?.[1]?.toLowerCase();
}

function parentOf(path: string): string {
  return path.slice(0, path.lastIndexOf('/')) || '/';
}

function takeOneMethod(one: string, other: string): boolean {
  if (one === other || one === '*' || other === '*') return true;
  const both = new Set([one, other]);
  return both.has('GET') && both.has('HEAD');
}
