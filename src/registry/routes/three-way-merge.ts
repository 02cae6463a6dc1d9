// Merges declared routes: those of the configuration, which the store follows three-way, as `kubectl apply` does it.
// For each field the file's last applied value decides. What changed in the file since is applied. What changed only in
// the store stays and counts as a difference. Pure: a start, a reload, `check` and `match` share it.
import { routeName } from '../../domain/routing/pattern.ts';
import { fromWire, routeBody, toWire, type Route, type RouteWire } from '../../domain/routing/route.ts';

/** Route as a file says it, by the names of the file; what it leaves out has its default. */
export type DeclaredRoute = Pick<RouteWire, 'method' | Field>;

/** The spelling of the pattern is a field as well: method and pattern key say which route is meant. */
const DECLARED_FIELDS = Object.keys(routeBody).filter((name): name is Field => name !== 'method');
type Field = Exclude<keyof typeof routeBody, 'method'>;

/** A stored route, and what the file said when it was last applied to it. */
type AppliedRoute = { readonly route: Route; readonly said: DeclaredRoute };

type DeclaredState = {
  readonly file: readonly DeclaredRoute[];
  readonly applied: readonly AppliedRoute[];
  /** The stored route with this method and, up to spelling, this pattern. */
  readonly find: (declared: DeclaredRoute) => Route | undefined;
  /** Routes of the file before a reload. One of them that is missing in the store was deleted meanwhile. */
  readonly before?: readonly DeclaredRoute[];
  /** Says that another file may still declare what this one does not name: nothing is deleted. */
  readonly isShared?: boolean;
};

/**
 * Change of a stored route; `fields` are named as in the file, and `source` if the route is taken over. `overrules`:
 * what it changes is what another file said of it, or this one before the process ended.
 */
type DeclaredChange = {
  readonly route: Route;
  readonly next: Route;
  readonly overrules: boolean;
  readonly fields: readonly { readonly field: string; readonly from: unknown; readonly to: unknown }[];
};

/**
 * Difference between store and file that goes on. Without `route` it was deleted in the store; without `declared` this
 * file does not name it, and it stays in force because another file on the store may.
 */
export type Difference =
  | {
      readonly declared: DeclaredRoute;
      readonly route: Route | undefined;
      readonly fields: readonly { readonly field: string; readonly store: unknown; readonly file: unknown }[];
    }
  | { readonly declared: undefined; readonly route: Route; readonly fields: readonly [] };

export type DeclaredPlan = {
  readonly creates: readonly DeclaredRoute[];
  readonly changes: readonly DeclaredChange[];
  readonly deletes: readonly Route[];
  /** Routes that were declared once, are not named by this file, and are in force all the same. */
  readonly left: readonly Route[];
  /** Routes as the file says them that the store does not remember yet, by route id. */
  readonly said: ReadonlyMap<string, DeclaredRoute>;
  /** Ids of routes that were given another method or pattern since: they are not declared any more. */
  readonly released: readonly string[];
  readonly differences: readonly Difference[];
  /** Number of declared routes that the store holds before. */
  readonly held: number;
};

export function planDeclared({ file, applied, find, before, isShared = false }: DeclaredState): DeclaredPlan {
  const marked = applied.filter(isStill);
  const saidOf = new Map(marked.map(({ route, said }) => [route.id, said]));
  const earlier = new Map(before?.map((declared) => [routeName(declared.method, declared.route_pattern), declared]));
  const creates: DeclaredRoute[] = [];
  const changes: DeclaredChange[] = [];
  const differences: Difference[] = [];
  const said = new Map<string, DeclaredRoute>();
  const named = new Set<string>();
  for (const declared of file) {
    const name = routeName(declared.method, declared.route_pattern);
    named.add(name);
    const route = find(declared);
    if (route === undefined) {
      const last = earlier.get(name);
      if (last !== undefined && isSame(last, declared)) differences.push({ declared, route, fields: [] });
      else creates.push(declared);
      continue;
    }
    const last = saidOf.get(route.id);
    if (last === undefined || !isSame(last, declared)) said.set(route.id, declared);
    const own = earlier.get(name);
    const isOwn = last === undefined || (own !== undefined && isSame(own, last));
    const change = { ...changeOf(route, declared, last), overrules: isShared && !isOwn };
    if (change.fields.length > 0) changes.push(change);
    const fields = fieldsThatDiffer(change.next, declared);
    if (fields.length > 0) differences.push({ declared, route: change.next, fields });
  }
  const gone = marked.filter(({ route }) => !named.has(nameOf(route)));
  return {
    creates,
    changes,
    deletes: isShared ? [] : gone.map(({ route }) => route),
    left: isShared ? gone.map(({ route }) => route) : [],
    said,
    released: applied.filter((entry) => !isStill(entry)).map(({ route }) => route.id),
    differences,
    held: marked.length,
  };
}

/** Whether the route still has the method and pattern that it was declared with. */
function isStill({ route, said }: AppliedRoute): boolean {
  return routeName(said.method, said.route_pattern) === nameOf(route);
}

function nameOf({ method, pattern }: Route): string {
  return routeName(method, pattern);
}

/** Routes that some file declared on a store that several share, and that `file` does not name. */
export function leftOf(file: readonly DeclaredRoute[], applied: readonly AppliedRoute[]): readonly Difference[] {
  const named = new Set(file.map((declared) => routeName(declared.method, declared.route_pattern)));
  const left = applied.filter((entry) => isStill(entry) && !named.has(nameOf(entry.route)));
  return left.map(({ route }) => leave(route));
}

/** The difference that a route makes which this file does not name. */
export function leave(route: Route): Difference {
  return { declared: undefined, route, fields: [] };
}

/**
 * Says how many declared routes `plan` deletes, if that is every one, or more than half of at least four. A file that
 * is half written, or made from a template without its values, looks like that too.
 */
export function sweep({ deletes, held }: DeclaredPlan): string | undefined {
  const most = held >= 4 && deletes.length * 2 > held;
  if (deletes.length === 0 || (deletes.length < held && !most)) return undefined;
  return deletes.length === held
    ? `deletes every declared route (${held})`
    : `deletes ${deletes.length} of ${held} declared routes`;
}

/** Lists `routes` as they are after `plan`, the created ones last. `make` gives a new route its identity. */
export function afterPlan(
  routes: readonly Route[],
  plan: DeclaredPlan,
  make: (declared: DeclaredRoute, index: number) => Route,
): readonly Route[] {
  const deleted = new Set(plan.deletes.map(({ id }) => id));
  const changed = new Map(plan.changes.map(({ route, next }) => [route.id, next]));
  return [
    ...routes.filter(({ id }) => !deleted.has(id)).map((route) => changed.get(route.id) ?? route),
    ...plan.creates.map(make),
  ];
}

/** A sentence for an operator. */
export function describeDifference({ declared, route, fields }: Difference): string {
  if (declared === undefined)
    return `${route.method} ${route.pattern} is not in this file and stays in force, because another file on this store may declare it; \`tollgate routes delete ${route.id}\` deletes it`;
  const name = `${declared.method} ${declared.route_pattern}`;
  if (route === undefined) return `${name} was deleted in the store; the next start makes it again`;
  const list = fields.map(
    ({ field, store, file }) => `${field} is ${show(store)} in the store, ${show(file)} in the file`,
  );
  return `${name}: ${list.join('; ')}; the store's value stays until the file's changes`;
}

export function describeChange({ route, fields }: DeclaredChange): string {
  return `${route.method} ${route.pattern}: ${fields.map(({ field, from, to }) => `${field} ${show(from)} -> ${show(to)}`).join(', ')}`;
}

/** The differences between the store and `file`. */
export function differencesOf(file: readonly DeclaredRoute[], find: DeclaredState['find']): readonly Difference[] {
  return file.flatMap((declared): Difference[] => {
    const route = find(declared);
    const fields = route === undefined ? [] : fieldsThatDiffer(route, declared);
    return route !== undefined && fields.length === 0 ? [] : [{ declared, route, fields }];
  });
}

/** Compares a route field by field: the file's value counts if it differs from what the file said last. */
function changeOf(
  route: Route,
  declared: DeclaredRoute,
  last: DeclaredRoute | undefined,
): Omit<DeclaredChange, 'overrules'> {
  const wanted = DECLARED_FIELDS.filter((field) => last === undefined || last[field] !== declared[field]);
  const source = last === undefined ? 'config' : route.source;
  const wire = toWire(route);
  const next = fromWire({ ...wire, ...Object.fromEntries(wanted.map((field) => [field, declared[field]])), source });
  const fields: { field: string; from: unknown; to: unknown }[] = wanted
    .map((field) => ({ field, from: wire[field], to: declared[field] }))
    .filter(({ from, to }) => from !== to);
  if (source !== route.source) fields.push({ field: 'source', from: route.source, to: source });
  return { route, next: fields.length === 0 ? route : next, fields };
}

function fieldsThatDiffer(route: Route, declared: DeclaredRoute): Difference['fields'] {
  const wire = toWire(route);
  return DECLARED_FIELDS.map((field) => ({ field, store: wire[field], file: declared[field] })).filter(
    ({ store, file }) => store !== file,
  );
}

function isSame(a: DeclaredRoute, b: DeclaredRoute): boolean {
  return DECLARED_FIELDS.every((field) => a[field] === b[field]);
}

function show(value: unknown): string {
  return JSON.stringify(value) ?? 'nothing';
}
