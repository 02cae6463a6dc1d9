// Whether a route that an SDK registers would make a path cheaper that somebody else's route charges for: an API key adds
// routes, prices that the dashboard or the configuration set are changed there. Asks the matcher that the proxy uses about
// one path for each way in which two patterns can meet, because for every other path of it the answer is the same.
import type { UndeclaredMethods } from '../domain/explain.ts';
import { comparePrices, parsePrice } from '../domain/money.ts';
import { overlapOf, pathsCovered } from '../domain/overlap.ts';
import { parsePattern, type Pattern } from '../domain/pattern.ts';
import type { Route } from '../domain/route.ts';
import type { Snapshot } from '../domain/snapshot.ts';
import type { RouteInput } from './schemas.ts';
import type { StoredRoute } from './store/ports.ts';

export type LoweredDeps = {
  readonly book: { readonly get: (id: string) => StoredRoute | undefined; readonly all: () => Iterable<StoredRoute> };
  readonly snapshot: () => Pick<Snapshot, 'resolve'>;
  /** Those that a proxy lets in. */
  readonly methods: () => ReadonlySet<string>;
  readonly undeclaredMethods: () => UndeclaredMethods;
};

/** The route whose price would be undercut. `input` is none that is stored already. */
export function findLowered(input: RouteInput, deps: LoweredDeps): StoredRoute | undefined {
  const pattern = readPattern(input.route_pattern);
  for (const path of pathsOf(input, pattern, deps)) {
    for (const method of methodsOf(input.method, deps.methods())) {
      const route = chargedRoute(input, pattern, path, method, deps);
      if (route !== undefined) return route;
    }
  }
  return undefined;
}

/** Any of the pattern; and, where it leaves segments open, those that a pattern with literals there covers too. */
function* pathsOf(input: RouteInput, pattern: Pattern, { book, undeclaredMethods }: LoweredDeps): Generator<string> {
  yield* pathsCovered(pattern);
  if (pattern.segments.every(({ kind }) => kind === 'literal')) return;
  const pay = undeclaredMethods() === 'pay';
  for (const route of book.all()) {
    // One without a parameter covers all of the pattern, or wins where the two meet; but it wins for its methods alone.
    if (!(pay && route.method !== input.method) && !/[:{]/.test(route.pattern)) continue;
    if (!isGuarded(route) || !isCheaper(input, route)) continue;
    const overlap = overlapOf(pattern, readPattern(route.pattern));
    if (overlap.kind === 'first' || (pay && overlap.kind !== 'apart')) yield* overlap.paths;
  }
}

function methodsOf(method: string, allowed: ReadonlySet<string>): Iterable<string> {
  if (method === '*') return allowed;
  return method === 'GET' ? ['GET', 'HEAD'] : [method];
}

/** The guarded route that `method` on `path` is charged by today, and would not be with `input`. */
function chargedRoute(
  input: RouteInput,
  pattern: Pattern,
  path: string,
  method: string,
  { book, snapshot, undeclaredMethods }: LoweredDeps,
): StoredRoute | undefined {
  const resolution = snapshot().resolve(method, path);
  if (!resolution.ok) return undefined;
  const { match } = resolution;
  switch (match.kind) {
    case 'none':
      return undefined;
    case 'undeclared': {
      const paid = undeclaredMethods() === 'pay' ? match.dearest : undefined;
      return paid && guarded(paid, input, book);
    }
    case 'route':
      return wins(input, pattern, match.route, method) ? guarded(match.route, input, book) : undefined;
    default:
      return match satisfies never;
  }
}

function guarded(route: Route, input: RouteInput, book: LoweredDeps['book']): StoredRoute | undefined {
  const stored = book.get(route.id);
  return stored !== undefined && isGuarded(stored) && isCheaper(input, stored) ? stored : undefined;
}

function wins(input: RouteInput, pattern: Pattern, other: Route, method: string): boolean {
  const { kind } = overlapOf(pattern, readPattern(other.pattern));
  switch (kind) {
    case 'first':
      return true;
    case 'second':
      return false;
    case 'same':
      return rankOf(input.method, method) > rankOf(other.method, method);
    case 'apart':
      // It was found by another reading of the path, which `input` spells letter by letter.
      return true;
    default:
      return kind satisfies never;
  }
}

function rankOf(declared: string, method: string): number {
  if (declared === method) return 2;
  return declared === '*' ? 0 : 1;
}

function isGuarded({ status, writtenBy }: StoredRoute): boolean {
  return status === 'active' && !writtenBy.startsWith('api_key:');
}

/** A price in another currency counts as cheaper: nobody here knows the rate. */
function isCheaper({ status, amount, currency }: RouteInput, route: Route): boolean {
  if (status === 'paused' || currency !== route.currency) return true;
  const [asked, charged] = [parsePrice(amount), parsePrice(route.amount)];
  return asked === undefined || charged === undefined || comparePrices(asked, charged) < 0;
}

function readPattern(text: string): Pattern {
  const parsed = parsePattern(text);
  if (!parsed.ok) throw new Error(`a pattern that was checked is not valid: ${parsed.reason}`);
  return parsed.pattern;
}
