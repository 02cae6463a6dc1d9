// Checks whether a route of an SDK would make a path cheaper than a route with another writer does. An API key may add
// routes, but prices of the dashboard or the configuration are changed only there. It asks the proxy's matcher about
// one path for each way in which two patterns can meet: what it costs, and what it would cost beside the new route. All
// other paths of that kind have the same answer.
import type { UndeclaredMethods } from '../../domain/decide.ts';
import { comparePrices, parsePrice } from '../../domain/payment/money.ts';
import { highestPriceBy } from '../../domain/selling/highest-price.ts';
import { STANDARD_PLAN, type Plans } from '../../domain/selling/plan.ts';
import { overlapOf, pathsCovered } from '../../domain/routing/overlap.ts';
import { parsePattern, type Pattern, type Segment } from '../../domain/routing/pattern.ts';
import type { Route, RouteInput } from '../../domain/routing/route.ts';
import { compileSnapshot, type Snapshot } from '../../domain/routing/snapshot.ts';
import type { StoredRoute } from '../store/ports.ts';

type PriceGuardDeps = {
  readonly routes: { readonly get: (id: string) => StoredRoute | undefined; readonly all: () => Iterable<StoredRoute> };
  readonly snapshot: () => Snapshot;
  /** Methods that a proxy lets in. */
  readonly methods: () => ReadonlySet<string>;
  readonly undeclaredMethods: () => UndeclaredMethods;
};

/** The route whose price would be undercut. `input` is not stored yet. */
export function findLowered(input: RouteInput, deps: PriceGuardDeps): StoredRoute | undefined {
  const pattern = readPattern(input.route_pattern);
  for (const path of pathsOf(input, pattern, deps)) {
    for (const method of methodsOf(input.method, deps.methods())) {
      const route = chargedRoute(input, path, method, deps);
      if (route !== undefined) return route;
    }
  }
  return undefined;
}

/**
 * Yields paths of the pattern, and those that a guarded pattern covers too if one of the two leaves something open. No
 * further name of what is filled in there is looked at: `/a.b/c` for `/:x/c`.
 */
function* pathsOf(input: RouteInput, pattern: Pattern, deps: PriceGuardDeps): Generator<string> {
  const forms = [...formsOf(pattern), ...namedForms(pattern, deps)];
  for (const form of forms) yield* pathsCovered(form.pattern).map(form.fill);
  const pay = deps.undeclaredMethods() === 'pay';
  const meetings = function* (route: StoredRoute): Generator<string> {
    const other = readPattern(route.pattern);
    for (const form of forms) {
      const overlap = overlapOf(form.pattern, other);
      if (overlap.kind === 'apart' || (overlap.kind === 'second' && !pay && !form.named)) continue;
      yield* overlap.paths.map(form.fill);
    }
  };
  const { plans } = deps.snapshot().paths;
  const undercut = (route: StoredRoute): boolean => isGuarded(route) && isCheaper(input, route, plans);
  const plain = isPlain(input.route_pattern) && forms.every(({ named }) => !named);
  let mixed = !plain;
  for (const route of candidates(pattern, deps)) {
    // A plain route without a parameter covers all of the pattern, or wins where the two meet, but only for its own
    // method.
    if (plain && PLAIN.test(route.pattern) && !(pay && route.method !== input.method)) continue;
    if (!undercut(route)) continue;
    for (const path of meetings(route)) {
      mixed ||= !isPlain(route.pattern);
      yield path;
    }
  }
  // A third route may stand between the two, if one literal is spelled in two ways.
  if (mixed) for (const route of candidates(pattern, deps)) if (!undercut(route)) yield* meetings(route);
}

const PLAIN = /^[a-z0-9_/*-]+$/;
const PARAMETERS = /:\w+|\{[^}]*\}/g;

/** Every router reads the literals of `pattern` as they are spelled. */
function isPlain(pattern: string): boolean {
  return PLAIN.test(pattern.replaceAll(PARAMETERS, ''));
}

/** Every route that may cover a path of `pattern`. */
function candidates(pattern: Pattern, { routes, snapshot }: PriceGuardDeps): Iterable<StoredRoute> {
  if (pattern.segments.some(({ kind }) => kind !== 'literal')) return routes.all();
  const { matcher, resolve } = snapshot();
  return pathsCovered(pattern).flatMap((path) => {
    const found = resolve('GET', path);
    const covering = found.ok ? found.keys.flatMap((key) => matcher.findAll(key)) : [];
    return covering.flatMap(({ id }) => routes.get(id) ?? []);
  });
}

/** A pattern as some router reads its paths, and for a path that the reading covers the one that is read so. */
type Form = {
  readonly pattern: Pattern;
  readonly fill: (path: string) => string;
  /** Whether it is looked up as another name, and counts if its price is higher than that of the path itself. */
  readonly named: boolean;
};

/** Lists the forms of a pattern: as it stands, and with nothing in the last segment if any text may stand there. */
function formsOf(pattern: Pattern): readonly Form[] {
  const whole: Form = { pattern, fill: (path) => path, named: false };
  const fixed = pattern.segments.filter(({ kind }) => kind !== 'wildcard');
  if (fixed.at(-1)?.kind !== 'param') return [whole];
  const without = { ...pattern, segments: fixed.slice(0, -1) };
  return [whole, { pattern: without, fill: (path) => (path === '/' ? path : `${path}/`), named: false }];
}

/**
 * Lists other names of its paths, such as that without a suffix: their price counts unless the last segment is spelled
 * in the pattern.
 */
function namedForms({ segments, ...pattern }: Pattern, { snapshot }: PriceGuardDeps): readonly Form[] {
  if (segments.at(-1)?.kind !== 'literal') return [];
  const parts = segments.map((segment, index) =>
    segment.kind === 'literal' ? encodeURIComponent(segment.text) : `0~${index}`,
  );
  const found = snapshot().resolve('GET', `/${parts.join('/')}`);
  if (!found.ok) return [];
  return found.names.map((name) => {
    const named = name.split('/').filter((part) => part !== '');
    return {
      pattern: { ...pattern, segments: named.map(readNamed) },
      fill: (path) => {
        const filled = path.split('/').slice(1);
        return `/${parts.map((part) => filled[named.indexOf(part)] ?? part).join('/')}`;
      },
      named: true,
    };
  });
}

function readNamed(text: string): Segment {
  return /^0~\d+$/.test(text) ? { kind: 'param', name: text } : { kind: 'literal', text };
}

function methodsOf(method: string, allowed: ReadonlySet<string>): Iterable<string> {
  if (method === '*') return allowed;
  return method === 'GET' ? ['GET', 'HEAD'] : [method];
}

/** The guarded route that `method` on `path` is charged by today, and would not be with `input`. */
function chargedRoute(
  input: RouteInput,
  path: string,
  method: string,
  { routes, snapshot, undeclaredMethods }: PriceGuardDeps,
): StoredRoute | undefined {
  const today = snapshot();
  const found = today.resolve(method, path);
  if (!found.ok || found.match.kind === 'none') return undefined;
  const { match } = found;
  if (match.kind === 'undeclared' && undeclaredMethods() !== 'pay') return undefined;
  const charged = match.kind === 'route' ? match.route : match.highestPriced;
  const stored = charged && routes.get(charged.id);
  if (stored === undefined || !isGuarded(stored) || !isCheaper(input, stored, today.paths.plans)) return undefined;
  const { route_pattern: pattern, amount, status } = input;
  const added = { ...stored, id: 'added', pattern, method: input.method, amount, status, planId: null };
  // No other route has a say about this path.
  const covering = new Set([...found.keys, ...found.names].flatMap((key) => today.matcher.findAll(key)));
  const set = { registryId: today.registryId, revision: today.revision, routes: [...covering, added] };
  const then = compileSnapshot(set, today.paths).resolve(method, path);
  return then.ok && then.match.kind === 'route' && then.match.route === added ? stored : undefined;
}

function isGuarded({ status, writtenBy }: StoredRoute): boolean {
  return status === 'active' && !writtenBy.startsWith('api_key:');
}

/** A price in another currency counts as cheaper: the rate is not known here. So does a plan that may give more away. */
function isCheaper({ status, amount, currency }: RouteInput, route: Route, plans: Plans | undefined): boolean {
  if (status === 'paused' || currency !== route.currency || givesMore(route, plans)) return true;
  const asked = parsePrice(amount);
  const charged = plans === undefined ? parsePrice(route.amount) : highestPriceBy(plans)(route);
  return asked === undefined || charged === undefined || comparePrices(asked, charged) < 0;
}

/** Whether the plan that an SDK's route has, which names none, may give away what that of `route` does not. */
function givesMore({ planId }: Route, plans: Plans | undefined): boolean {
  if (planId === null) return false;
  return plans === undefined || (planId !== STANDARD_PLAN && plans.hasStandard);
}

function readPattern(text: string): Pattern {
  const parsed = parsePattern(text);
  if (!parsed.ok) throw new Error(`a pattern that was checked is not valid: ${parsed.reason}`);
  return parsed.pattern;
}
