// Lists paid routes where agents look for APIs: x402's extension `bazaar`. A listing is made of the route and of the
// request's operation in the owner's API description. A facilitator lists what it is told. So nothing goes out that was
// excluded, and a request's path never stands in for its route's pattern. Source: x402 extension `bazaar`.
import { overlapOf } from '../routing/overlap.ts';
import { parsePattern, type Pattern } from '../routing/pattern.ts';
import type { Route } from '../routing/route.ts';
import { covers, escapeSegment, isExcluded } from './exclusion.ts';
import { describeMethod, describeUnknown, METHODS, withPathParameters, type Description } from './operation.ts';
import type { ApiOperation } from './openapi.ts';
import { createPaths } from './paths.ts';

export type Listing = {
  /**
   * JSON of `bazaar`: whole, then without its output's example if it has one. If even that does not fit, nothing is
   * listed.
   */
  readonly bazaar: readonly [string, ...string[]];
  /** The service that the resource belongs to. */
  readonly service: Service;
};

export type Service = {
  readonly serviceName?: string | undefined;
  readonly tags?: readonly string[] | undefined;
  readonly iconUrl?: string | undefined;
};

/** Finds the listing of a request that costs something, by its method and canonical path; undefined: it is not listed. */
export type ListingOf = (route: Route, method: string, path: string) => Listing | undefined;

export type Discovery = {
  readonly listingOf: ListingOf;
  /** Tells how a route that costs something is listed. `unknown`: listed, and the description has no operation for any request of it. */
  readonly standingOf: (route: Route) => 'hidden' | 'known' | 'unknown';
};

type DiscoverySettings = {
  readonly service: Service;
  readonly exclude: readonly Pattern[];
  readonly operations: readonly ApiOperation[];
};

const MAX_BYTES = 4096;
/**
 * A client gives the listing back with its payment, which is read up to a depth and a number of values. These are the
 * listing's part of both.
 */
const MAX_DEPTH = 14;
const MAX_VALUES = 1_536;
/** Operations of one route that are remembered. */
const REMEMBERED = 256;

/** The form in which a route is listed. */
type ListedForm = {
  readonly pattern: Pattern;
  /** Template of the pattern; undefined if it is a plain path. */
  readonly template: string | undefined;
};

/** A route that was asked for. */
type AskedRoute = ListedForm & {
  /** Patterns that exclude some of its paths. */
  readonly partly: readonly Pattern[];
  /** Listings by operation, or by method if there is none. */
  readonly listings: Map<ApiOperation | string, Listing>;
};

export function createDiscovery({ service, exclude, operations }: DiscoverySettings): Discovery {
  const paths = createPaths(operations.map((value) => ({ method: value.method, path: value.path, value })));
  const asked = new WeakMap<Route, AskedRoute | 'hidden'>();

  const askFor = (route: Route): AskedRoute | 'hidden' => {
    const shown = showRoute(route, exclude);
    if (shown === undefined) return 'hidden';
    const partly = exclude.filter((each) => overlapOf(each, shown.pattern).kind !== 'apart');
    return { ...shown, partly, listings: new Map() };
  };

  return {
    listingOf: (route, method, path) => {
      if (!isListed(method) || (route.method !== '*' && route.method !== method)) return undefined;
      let shown = asked.get(route);
      if (shown === undefined) asked.set(route, (shown = askFor(route)));
      if (shown === 'hidden' || isExcluded(path, shown.partly)) return undefined;
      const { listings, pattern, template } = shown;
      const operation = paths.find(method, path);
      const key = operation ?? method;
      let listing = listings.get(key);
      if (listing === undefined) {
        if (listings.size >= REMEMBERED) listings.clear();
        const described = write(operation?.description, pattern, template);
        const instead = operation === undefined ? describeUnknown(method, namesOf(template)) : describeMethod(method);
        listing = { bazaar: described ?? written(instead, template), service };
        listings.set(key, listing);
      }
      return listing;
    },
    // The answer is not remembered: it is asked about every route, and most are never asked for.
    standingOf: (route) => {
      const shown = route.method === '*' || isListed(route.method) ? showRoute(route, exclude) : undefined;
      if (shown === undefined) return 'hidden';
      return paths.hasAny(route.method, shown.pattern) ? 'known' : 'unknown';
    },
  };
}

function isListed(method: string): boolean {
  return (METHODS as readonly string[]).includes(method);
}

/** Shows a route in a form that can be listed; undefined if nothing of it is. */
function showRoute(route: Route, exclude: readonly Pattern[]): ListedForm | undefined {
  const parsed = parsePattern(route.pattern);
  if (!parsed.ok || exclude.some((each) => covers(each, parsed.pattern))) return undefined;
  const { pattern } = parsed;
  const template = templateOf(pattern);
  // A facilitator would list the path of each payer's request.
  if (template === undefined && pattern.segments.some(({ kind }) => kind !== 'literal')) return undefined;
  return { pattern, template };
}

/**
 * Writes `pattern` with `:name` for what a path fills in, `:path` for a wildcard; undefined: it cannot be written so.
 */
function templateOf({ segments }: Pattern): string | undefined {
  const names = new Set(segments.map((segment) => (segment.kind === 'param' ? segment.name : '')));
  let rest = 'path';
  for (let number = 2; names.has(rest); number++) rest = `path${number}`;
  const template = segments.map((segment) => {
    if (segment.kind === 'literal') return `/${escapeSegment(segment.text)}`;
    return `/:${segment.kind === 'param' ? segment.name : rest}`;
  });
  const text = template.join('');
  return isTemplate(text) ? text : undefined;
}

/** The names in a template that a program may use for members. */
function namesOf(template = ''): readonly string[] {
  const names = [...template.matchAll(/\/:([A-Za-z0-9_]+)/g)].map(([, name = '']) => name);
  return names.filter((name) => !(name in Object.prototype));
}

/** Tells whether x402 takes a template: no way out of the host in it, however often it is decoded. */
function isTemplate(text: string): boolean {
  if (!/^\/[a-zA-Z0-9_/:.\-~%]+$/.test(text)) return false;
  let decoded = text;
  for (let pass = 0; pass < 5; pass++) {
    let next: string;
    try {
      next = decodeURIComponent(decoded);
    } catch {
      return false;
    }
    if (next === decoded) return !decoded.includes('..') && !decoded.includes('://');
    decoded = next;
  }
  return false;
}

/** Writes the listing of an operation; undefined if there is nothing to show of it, or it is too large. */
function write(
  description: Description | undefined,
  { segments }: Pattern,
  template: string | undefined,
): Listing['bazaar'] | undefined {
  if (description === undefined) return undefined;
  const names = segments.flatMap((segment) => (segment.kind === 'param' ? [segment.name] : []));
  const whole = withPathParameters(description, names);
  const [text, ...others] = written(whole, template);
  return Buffer.byteLength(text) <= MAX_BYTES && isSmall(JSON.parse(text)) ? [text, ...others] : undefined;
}

function written({ info, schema }: Description, template: string | undefined): Listing['bazaar'] {
  const end = template === undefined ? {} : { routeTemplate: template };
  const whole = JSON.stringify({ info, schema, ...end });
  const { output, ...rest } = info;
  return output === undefined ? [whole] : [whole, JSON.stringify({ info: rest, schema, ...end })];
}

/** Members that no program gives back, or reads, as they are. */
const RESERVED = new Set(['__proto__', 'constructor', 'prototype']);

/** A client gives `bazaar` back with its payment, which is refused beyond a depth, a number of values, and such names. */
function isSmall(bazaar: unknown): boolean {
  let values = 0;
  const walk = (value: unknown, depth: number): boolean => {
    if (typeof value !== 'object' || value === null) return true;
    if (depth > MAX_DEPTH) return false;
    return Object.entries(value).every(
      ([name, member]) => ++values <= MAX_VALUES && !RESERVED.has(name) && walk(member, depth + 1),
    );
  };
  return walk(bazaar, 1);
}
