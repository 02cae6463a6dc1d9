// Finds the route that applies to a path: a trie over folded segments, compiled once per set of routes and never
// changed while it serves. Precedence is total and written as the order of the walk: literal over parameter over
// wildcard, segment by segment, and only routes whose method matches too compete; then exact method over `*`.
// No regular expression is built from a pattern. test/domain/matcher.test.ts holds it against a linear oracle.
import { foldSegment } from './fold.ts';
import type { Pattern } from './pattern.ts';
import type { Folding } from './profile.ts';
import type { Route } from './route.ts';

type Entry = { readonly method: string; readonly route: Route };

type Node = {
  literals: Map<string, Node> | undefined;
  param: Node | undefined;
  /** Routes that end here. */
  ends: Entry[] | undefined;
  /** Routes whose wildcard stands here: they cover this path and everything below. */
  wildcards: Entry[] | undefined;
};

export type Matcher = {
  /** The route for `method` on `key` (a key of fold.ts), or undefined. */
  readonly find: (key: string, method: string) => Route | undefined;
  /** Every route whose pattern matches `key`, whatever its method, most specific first. */
  readonly findAll: (key: string) => Route[];
};

export type MatcherBuilder = {
  /** Returns the route that stands there already with this method, if one does: then nothing was added. */
  readonly add: (route: Route, pattern: Pattern) => Route | undefined;
  readonly matcher: Matcher;
};

/** An empty matcher and the way to fill it: route by route, so that a large set can be compiled in slices. */
export function createMatcher(folding: Folding): MatcherBuilder {
  const root = emptyNode();
  const add = (route: Route, pattern: Pattern): Route | undefined => {
    let node = root;
    for (const segment of pattern.segments) {
      if (segment.kind === 'wildcard') return put((node.wildcards ??= []), route);
      node =
        segment.kind === 'param'
          ? (node.param ??= emptyNode())
          : literalChild(node, foldSegment(segment.text, folding));
    }
    return put((node.ends ??= []), route);
  };
  return {
    add,
    matcher: {
      find: (key, method) => walk(root, key, key.length > 1 ? 1 : key.length, method),
      findAll: (key) => {
        const found: Route[] = [];
        collect(root, key, key.length > 1 ? 1 : key.length, found);
        return found;
      },
    },
  };
}

function emptyNode(): Node {
  return { literals: undefined, param: undefined, ends: undefined, wildcards: undefined };
}

function put(entries: Entry[], route: Route): Route | undefined {
  const { method } = route;
  const other = entries.find((entry) => entry.method === method);
  if (other === undefined) entries.push({ method, route });
  return other?.route;
}

function literalChild(node: Node, literal: string): Node {
  const literals = (node.literals ??= new Map());
  let child = literals.get(literal);
  if (child === undefined) literals.set(literal, (child = emptyNode()));
  return child;
}

/** `at` is where the next segment of `key` starts; the length of `key` or more: none is left. */
function walk(node: Node, key: string, at: number, method: string): Route | undefined {
  if (at >= key.length) {
    return (node.ends && pick(node.ends, method)) ?? (node.wildcards && pick(node.wildcards, method));
  }
  if (node.literals !== undefined || node.param !== undefined) {
    const slash = key.indexOf('/', at);
    const end = slash < 0 ? key.length : slash;
    const child = node.literals?.get(key.slice(at, end));
    const found =
      (child && walk(child, key, end + 1, method)) ?? (node.param && walk(node.param, key, end + 1, method));
    if (found !== undefined) return found;
  }
  return node.wildcards && pick(node.wildcards, method);
}

function collect(node: Node, key: string, at: number, found: Route[]): void {
  if (at >= key.length) {
    for (const entry of node.ends ?? []) found.push(entry.route);
  } else {
    const slash = key.indexOf('/', at);
    const end = slash < 0 ? key.length : slash;
    const child = node.literals?.get(key.slice(at, end));
    if (child !== undefined) collect(child, key, end + 1, found);
    if (node.param !== undefined) collect(node.param, key, end + 1, found);
  }
  for (const entry of node.wildcards ?? []) found.push(entry.route);
}

/** Exact method first; HEAD is answered by what answers GET; then `*`. */
function pick(entries: readonly Entry[], method: string): Route | undefined {
  let get: Route | undefined;
  let any: Route | undefined;
  for (const entry of entries) {
    if (entry.method === method) return entry.route;
    if (entry.method === '*') any = entry.route;
    else if (method === 'HEAD' && entry.method === 'GET') get = entry.route;
  }
  return get ?? any;
}
