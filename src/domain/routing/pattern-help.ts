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
/** Routes that are passed over between two yields, and how many of them one that is read counts for: a millisecond. */
const SLICE_COST = 2000;
const READING_COST = 16;
/** A segment that stands for itself and that folding changes in its case alone. */
const PLAIN = /^[A-Za-z0-9_.~-]*[A-Za-z0-9_~-]$/;
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

/**
 * Finds the routes that cover paths of `pattern` too, for a method that both take; at most 20. It yields after every few routes,
 * because there may be many: who runs it decides when the next ones are read.
 */
export function* findShared(
  pattern: Pattern,
  method: string,
  routes: Iterable<Route>,
): Generator<undefined, readonly SharedPaths[]> {
  const shared: SharedPaths[] = [];
  const literals = plainLiterals(pattern);
  let cost = 0;
  for (const route of routes) {
    if (shared.length === MOST_SHARED) break;
    if (cost >= SLICE_COST) {
      cost = 0;
      yield undefined;
    }
    cost += 1;
    if (!takeOneMethod(method, route.method)) continue;
    // Most of many routes differ in a word, and need not be read.
    if (differsPlainly(literals, route.pattern)) continue;
    cost += READING_COST;
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

/** The literals of a pattern that every router reads as they are but for their case, each at the number of its segment. */
function plainLiterals({ segments }: Pattern): readonly (string | undefined)[] {
  return segments.map((segment) =>
    segment.kind === 'literal' && PLAIN.test(segment.text) ? segment.text.toLowerCase() : undefined,
  );
}

/** Whether `pattern` has another plain literal where the first pattern has one of `literals`: then no path is of both. */
function differsPlainly(literals: readonly (string | undefined)[], pattern: string): boolean {
  let start = 1;
  for (const literal of literals) {
    const slash = pattern.indexOf('/', start);
    const end = slash < 0 ? pattern.length : slash;
    // A segment of a pattern is a literal as a whole, or none.
    const text = literal === undefined ? '' : pattern.slice(start, end);
    if (text !== literal && PLAIN.test(text) && text.toLowerCase() !== literal) return true;
    if (slash < 0) return false;
    start = slash + 1;
  }
  return false;
}

function parentOf(path: string): string {
  return path.slice(0, path.lastIndexOf('/')) || '/';
}

function takeOneMethod(one: string, other: string): boolean {
  if (one === other || one === '*' || other === '*') return true;
  const both = new Set([one, other]);
  return both.has('GET') && both.has('HEAD');
}
